"""`rsr check` and `rsr convert`: verdicts with remedies, pages, and sessions for the tools of others."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rsr.cli import main
from rsr.sessions import Episode, Session, read_session, write_session
from rsr.workspace import Workspace


@pytest.fixture(scope="session")
def session(finished: Workspace) -> Path:
    return finished.session_dir(1)


def renamed(session: Session, name: str) -> Session:
    return replace(session, card=replace(session.card, session=name))


def changed(session: Session, name: str, channel: str, change) -> Session:
    episodes = tuple(
        Episode(each.index, each.time_s, {**each.values, channel: change(each[channel])}) for each in session.episodes
    )
    return renamed(replace(session, episodes=episodes), name)


def pendulum(name: str = "swings") -> Session:
    """A made-up double pendulum whose velocities come a row late, as sessions of that scenario look."""
    from shared_data import pendulum_runs

    runs = pendulum_runs()
    return renamed(replace(runs, episodes=runs.episodes[:1]), name)


def test_session_to_use(session, capsys):
    assert main(["check", str(session), "--brief"]) == 0
    assert capsys.readouterr().out == f"use     {session}: 12 episodes, 60 s, 8 channels, simulated\n"


def test_a_page_has_numbers_and_what_they_would_tell(session, capsys):
    assert main(["check", str(session)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"use     {session}: 12 episodes")
    for words in ("rate: 20 Hz, stamped evenly, 0 frames lost", "block_position", "actuator_gain", "observability"):
        assert words in out


def test_damaged_file_is_named(session, tmp_path, capsys):
    folder = write_session(tmp_path, renamed(read_session(session), "damaged"))
    data = next(folder.rglob("*.parquet"))
    data.write_bytes(data.read_bytes()[:-9])
    assert main(["check", str(session), str(folder), "--brief"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"use     {session}")
    assert lines[1] == f"reject  {folder}: 1 problem"
    assert lines[2].strip() == (
        f"{data}: got bytes that do not match their checksum; expected a session as it was written. "
        "Restore it (`dvc checkout`, or a copy) or leave this session out; other sessions are not affected."
    )


def test_every_problem_comes_with_its_remedy(session, tmp_path, capsys):
    found = read_session(session)
    broken = found.episodes[3]
    values = {**broken.values, "block_position": broken["block_position"].copy()}
    values["block_position"][7, 1] = np.nan
    episodes = (*found.episodes[:3], Episode(3, broken.time_s, values), *found.episodes[4:])
    folder = write_session(tmp_path, renamed(replace(found, episodes=episodes), "nan"))
    assert main(["check", str(folder), "--scenario", "push_cube", "--brief"]) == 1
    assert capsys.readouterr().out == (
        f"reject  {folder}: 1 problem\n"
        "        session 'nan', channel 'block_position', episode 3, row 7 (0.350 s): got y = nan (1 of 303 values "
        "are not finite); expected finite numbers. "
        "Drop or re-record this episode: what was not measured cannot be tuned to.\n"
    )


def test_long_lists_are_cut(session, tmp_path, capsys):
    found = read_session(session)
    episodes = tuple(replace(episode, time_s=2 * episode.time_s) for episode in found.episodes)
    folder = write_session(tmp_path, renamed(replace(found, episodes=episodes), "slow"))
    assert main(["check", str(folder), "--brief"]) == 1
    out = capsys.readouterr().out
    assert "12 problems" in out
    assert out.endswith("        ... and 2 more\n")


def test_degrees_for_radians_are_rejected(session, tmp_path, capsys):
    pose = np.array([-0.5, -1.4, 1.5, 0.2, -0.4, 0.3])
    swinging = pose + 0.4 * np.sin(np.arange(101) * 0.1)[:, None]
    whole = changed(read_session(session), "radians", "joint_position", lambda _: swinging)
    degrees = changed(read_session(session), "degrees", "joint_position", lambda _: np.degrees(swinging))
    folders = [str(write_session(tmp_path, each)) for each in (whole, degrees)]
    main(["check", folders[0], "--brief"])
    assert "rad, what the joint can do" not in capsys.readouterr().out
    assert main(["check", folders[1], "--brief"]) == 1
    out = capsys.readouterr().out
    assert "channel 'joint_position': got joint" in out
    assert "These are degrees: multiply by pi / 180 and store the session again." in out


def test_a_copy_under_another_name_is_rejected(session, tmp_path, capsys):
    first = write_session(tmp_path, renamed(read_session(session), "first"))
    second = write_session(tmp_path, renamed(read_session(session), "second"))
    assert main(["check", str(second), "--brief"]) == 1
    out = capsys.readouterr().out
    assert f"got 12 of 12 episodes that {first} holds as well" in out
    assert "Use one of the two" in out
    assert f"ingested anew, delete the older: {first}." in " ".join(out.split())


def test_pages_for_browsers_and_machines(session, tmp_path, capsys):
    folder = write_session(tmp_path, renamed(read_session(session), "angles"))
    page, figures = tmp_path / "page.html", tmp_path / "check.json"
    assert main(["check", str(folder), "--html", str(page), "--json", str(figures)]) == 0
    text = page.read_text()
    assert "angles" in text
    assert '<span class="badge good">use</span>' in text
    assert "actuator_gain" in text
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", re.sub(r'src="data:[^"]*"', "", text))
    (document,) = json.loads(figures.read_text())["sessions"]
    assert (document["verdict"], document["episodes"], document["simulated"]) == ("use", 12, True)
    assert document["rate_hz"] == pytest.approx(20)
    assert set(document["excitation"]["actuator_gain"]) == {"std_share", "observability", "correlated"}
    assert {each["name"] for each in document["channels"]} >= {"joint_position", "block_position"}
    capsys.readouterr()


def test_unreadable_sessions_have_pages_too(tmp_path, capsys):
    page, figures = tmp_path / "page.html", tmp_path / "check.json"
    assert main(["check", str(tmp_path / "<b>"), "--html", str(page), "--json", str(figures)]) == 1
    assert "&lt;b&gt;" in page.read_text()
    assert json.loads(figures.read_text())["sessions"][0]["verdict"] == "reject"
    assert "no such folder" in capsys.readouterr().out


def test_real_recordings_are_used_with_care(tmp_path, capsys):
    folder = write_session(tmp_path, pendulum())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["check", str(folder), "--brief"]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("use with care  ")
    assert "half a frame late, as backward differences are" in written.out
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert written.err == ""


def test_nothing_to_check(capsys):
    assert main(["check"]) == 2
    assert capsys.readouterr().err == (
        "ConfigError command line: got no session; expected at least one folder of a stored session. "
        "Name them, e.g. data/push_cube/session-001.\n"
    )


def test_unknown_scenario(session, capsys):
    assert main(["check", str(session), "--scenario", "push_cubes"]) == 2
    assert capsys.readouterr().err.startswith("ConfigError scenario: got scenario 'push_cubes'; expected one of ")


@pytest.mark.parametrize("form", ["lerobot", "mcap", "rrd"])
def test_a_session_in_other_formats(session, tmp_path, capsys, form):
    out = tmp_path / f"session.{form}"
    assert main(["convert", str(session), "--to", form, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert out.is_dir() if form == "lerobot" else out.stat().st_size > 10_000
    assert main(["convert", str(session), "--to", form, "--out", str(out)]) == 2
    assert "got something there already" in capsys.readouterr().err


def test_a_simulation_is_shown_in_rerun_alone(session, finished, tmp_path, capsys):
    calibration = ["--calibration", str(finished.calibration_dir(1))]
    assert main(["convert", str(session), "--to", "rrd", "--out", str(tmp_path / "s.rrd"), *calibration]) == 0
    assert main(["convert", str(session), "--to", "mcap", "--out", str(tmp_path / "s.mcap"), *calibration]) == 2
    assert "expected format 'rrd'" in capsys.readouterr().err


def test_unknown_format(session, tmp_path, capsys):
    assert main(["convert", str(session), "--to", "bag", "--out", str(tmp_path / "x")]) == 2
    assert "got format 'bag'; expected one of lerobot, mcap, rrd" in capsys.readouterr().err
