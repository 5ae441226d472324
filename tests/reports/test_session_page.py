"""A session's page: numbers, and the parameters about which its motions are informative."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sample_workspace import make_workspace
from shared_data import pendulum_runs

from rsr.planning.excitation import Excitation, find_excitation, judge_excitation
from rsr.reports.session import SessionPage, examine_session, facts, known_prints, page_document
from rsr.reports.session_page import finding_lines, headline, render_sessions
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.recorded import joint_ranges
from rsr.sessions import Session, read_session, write_session
from rsr.sessions.checks.findings import Finding


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("pages")).session_dir(1)


@pytest.fixture(scope="module")
def page(folder) -> SessionPage:
    return examine_session(folder)


def _still(session: Session) -> Session:
    """The same session, were nothing to move."""
    episodes = tuple(
        replace(each, values={name: np.repeat(values[:1], len(values), axis=0) for name, values in each.values.items()})
        for each in session.episodes
    )
    return replace(session, episodes=episodes)


def test_equal_sessions_give_equal_pages(folder, page):
    assert render_sessions([page]) == render_sessions([examine_session(folder)])


def test_a_page_holds_only_plain_numbers(page):
    text = json.dumps(page_document(page), allow_nan=False)
    assert json.loads(text)["rows"] == 12 * 101


def test_text_from_a_session_is_escaped(page):
    worse = replace(page, findings=(Finding("care", "signal", "<script>", "<i>", "&", "[bold]x"),))
    html = render_sessions([worse])
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert list(finding_lines(worse)) == ["care: <script>: got <i>; expected &. [bold]x"]


def test_worst_findings_come_first(page):
    note, care, fault = (Finding(each, "signal", each, "a", "b", "c") for each in ("note", "care", "reject"))
    mixed = replace(page, findings=(note, care, fault))
    assert mixed.verdict == "reject"
    assert [line.split(":")[0] for line in finding_lines(mixed)] == ["reject", "care", "note"]
    assert headline(replace(page, findings=(note, care)))[1].endswith("; 1 problem")


def test_nothing_is_observable_without_motion(folder):
    scenario, session = load_scenario("push_cube"), read_session(folder)
    found = find_excitation(scenario, _still(session))
    assert [each.std_share for each in found] == [1.0] * len(scenario.space)
    (finding,) = judge_excitation(session, found)
    assert (finding.severity, finding.next_step) == (
        "care",
        "Record episodes in which the robot moves and touches.",
    )


def test_episodes_without_motion_are_named(folder, tmp_path):
    session = read_session(folder)
    mixed = replace(session, episodes=(*session.episodes[:-1], _still(session).episodes[-1]))
    found = examine_session(write_session(tmp_path, mixed), simulate=False)
    (said,) = [each for each in found.findings if "nothing observed that moves" in each.got]
    assert (said.severity, said.where) == ("note", f"session '{session.card.session}', episode 11")


def test_motion_of_the_arm_alone_observes_the_arm_alone(page):
    assert page.excitation is not None
    observability = {each.parameter.name: each.observability for each in page.excitation}
    assert observability["control_delay"] == "high"
    assert observability["table_friction"] == "none"
    (note,) = [each for each in page.findings if each.topic == "excitation"]
    assert note.severity == "note"
    assert "table_friction" in note.got


def test_observability_in_words():
    parameter = next(iter(load_scenario("push_cube").space))
    words = [Excitation(parameter, share).observability for share in (0.1, 0.35, 0.5, 0.8, 0.9, 1.0)]
    assert words == ["high", "high", "low", "low", "none", "none"]


def test_friction_is_observable_in_real_swings():
    session = pendulum_runs()
    found = {each.parameter.name: each for each in find_excitation(load_scenario("double_pendulum"), session)}
    assert found["shoulder_friction"].observability == found["elbow_friction"].observability == "high"
    assert found["shoulder_friction"].std_share < found["shoulder_damping"].std_share


def test_a_session_that_cannot_be_simulated_still_has_a_page(folder, tmp_path):
    session = read_session(folder)
    short = replace(session, card=replace(session.card, session="short"))
    short = replace(
        short,
        episodes=tuple(
            replace(each, time_s=each.time_s[:2], values={name: values[:2] for name, values in each.values.items()})
            for each in session.episodes[:1]
        ),
    )
    found = examine_session(write_session(tmp_path, short))
    assert found.verdict in ("use", "use with care")
    assert dict(facts(found))["length"].startswith("1 episode, 2 rows")
    assert "short" in render_sessions([found])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e300, 1e308])
def test_damaged_numbers_have_a_page_too(folder, tmp_path, wrong):
    session = read_session(folder)
    spoilt = {**session.episodes[0].values, "block_position": session.episodes[0]["block_position"].copy()}
    spoilt["block_position"][3:5] = wrong
    time_s = session.episodes[1].time_s.copy()
    time_s[7] = wrong
    episodes = (
        replace(session.episodes[0], values=spoilt),
        replace(session.episodes[1], time_s=time_s),
        *session.episodes[2:],
    )
    page = examine_session(write_session(tmp_path, replace(session, episodes=episodes)))
    assert page.verdict == "reject"
    assert "<figure>" in render_sessions([page])
    json.dumps(page_document(page), allow_nan=False)


@pytest.mark.parametrize("wrong", [1e300, -1e200, 1e9])
def test_absurd_numbers_are_found(folder, tmp_path, wrong):
    session = read_session(folder)
    spoilt = {**session.episodes[0].values}
    for name in ("block_position", "joint_position"):
        spoilt[name] = spoilt[name].copy()
        spoilt[name][30] = wrong
    episodes = (replace(session.episodes[0], values=spoilt), *session.episodes[1:])
    page = examine_session(write_session(tmp_path, replace(session, episodes=episodes)))
    assert page.verdict == "reject"
    assert any("joint_position" in each.where and each.topic == "units" for each in page.findings)
    assert any("block_position" in each.where and "spike" in each.got for each in page.findings)
    assert "<figure>" in render_sessions([page])


def test_unreadable_neighbours_are_passed_over(folder, tmp_path):
    session = read_session(folder)
    own = write_session(tmp_path, session)
    (own.parent / "broken" / "meta").mkdir(parents=True)
    assert {each.session for each in known_prints([own])} == {str(own.resolve())}


def test_ranges_of_joints_reach_their_setpoints():
    ranges = joint_ranges(load_scenario("push_cube"))
    assert set(ranges) >= {"joint_position", "joint_setpoint"}
    np.testing.assert_array_equal(ranges["joint_position"], ranges["joint_setpoint"])
    assert ranges["joint_position"].shape == (6, 2)
    assert np.isnan(joint_ranges(load_scenario("double_pendulum"))["joint_position"]).all()
