"""Values that come with each recording, such as a gain or a payload, act in C and MJX alike, and are never guessed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rsr.calibration import Effort, calibrator, start_prior
from rsr.calibration.problem.sensitivity import choose_jacobian
from rsr.calibration.problem.windows import cut
from rsr.common.errors import ScenarioError, SessionError
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.reports.session import examine_session
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.channels.recorded import target_of
from rsr.sessions import Card, Episode, Session, read_session, write_session
from rsr.sessions.ingest.session import ingest
from rsr.simulators import MujocoSimulator, evaluate_recording

MJCF = """
<mujoco>
  <option timestep="0.005" integrator="implicitfast"><flag contact="disable"/></option>
  <worldbody>
    <body name="load">
      <joint name="hinge" axis="0 1 0" damping="0.05" armature="0.005"/>
      <geom size="0.03" pos="0 0 -0.15" mass="0.2"/>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="hinge" kp="1"/></actuator>
</mujoco>
"""
DOCUMENT: dict[str, Any] = {
    "name": "servo",
    "title": "A servo whose gain and payload differ from run to run",
    "mjcf": "servo.xml",
    "control_dt_s": 0.02,
    "episode_steps": 100,
    "gap_channel": "angle",
    "command": "setpoint",
    "channels": {
        "angle": {"columns": ["hinge"], "unit": "rad", "frame": "joint", "reads": {"joints": ["hinge"]}, "noise": 1e-3},
        "setpoint": {"columns": ["hinge"], "unit": "rad", "frame": "joint", "stamp": "held_until_next"},
    },
    "per_episode": {
        "kp": {"nominal": 8.0, "unit": "1"},
        "payload": {"nominal": 0.2, "unit": "kg", "tag": "mass", "sets": [{"body": "load", "field": "mass"}]},
    },
    "parameters": {
        "gain_per_kp": {
            "nominal": 0.1, "lower": 0.02, "upper": 1.0, "unit": "N m/rad", "prior_std": 0.7, "times": "kp",
            "sets": [{"actuator": "servo", "field": "position_gain"}],
        },
        "damping": {
            "nominal": 0.05, "lower": 0.01, "upper": 0.3, "unit": "N m s/rad", "prior_std": 0.5,
            "sets": [{"joint": "hinge", "field": "damping"}],
        },
    },
}  # fmt: skip
TRUTH = {"gain_per_kp": 0.2, "damping": 0.08}
RUNS = ((4.0, 0.1), (8.0, 0.3), (16.0, 0.2), (32.0, 0.25), (6.0, 0.15), (12.0, 0.2))
"""(kp, payload in kg) of each run."""


def servo(folder: Path, **changed: Any) -> Scenario:
    (folder / "servo.xml").write_text(MJCF)
    (folder / "scenario.yaml").write_text(yaml.safe_dump({**DOCUMENT, **changed}))
    return load_scenario(folder)


@pytest.fixture
def scenario(tmp_path) -> Scenario:
    return servo(tmp_path)


def runs(scenario: Scenario, noise: float = 0.001) -> Session:
    """Runs that differ in gain and payload, made by the same motor."""
    rng, rows, episodes = np.random.default_rng(0), 120, []
    time_s = np.arange(rows) * scenario.control_dt_s
    for index, (kp, payload) in enumerate(RUNS):
        hz = rng.uniform(0.3, 1.2, 3)
        sent = 0.4 * np.sin(2 * np.pi * hz * time_s[:, None] + rng.uniform(0, 6, 3)).sum(axis=1, keepdims=True)
        own = np.broadcast_to([kp, payload], (1, rows - 1, 2))
        with MujocoSimulator(scenario) as simulator:
            commands = np.concatenate([sent[None, :-1], own], axis=2)
            path = simulator.rollout(np.zeros((1, 2)), commands, scenario.space.vector(TRUTH))[0]
        values = {"angle": path[:, :1] + noise * rng.normal(size=(rows, 1)), "setpoint": sent}
        episodes.append(Episode(index, time_s, values, {"kp": f"{kp:g}", "mass": f"{payload:g}"}))
    card = Card("session-001", scenario.name, "robot", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, tuple(episodes))


def test_model_of_an_episode_has_its_values(scenario):
    values = scenario.space.vector(TRUTH)
    model = scenario.model(values, per_episode=np.array([32.0, 0.7]))
    assert model.actuator("servo").gainprm[0] == pytest.approx(0.2 * 32)
    assert model.actuator("servo").biasprm[1] == pytest.approx(-0.2 * 32)
    assert model.body("load").mass[0] == pytest.approx(0.7)
    nominal = scenario.model(values)
    assert nominal.actuator("servo").gainprm[0] == pytest.approx(0.2 * 8)
    assert nominal.body("load").mass[0] == pytest.approx(0.2)


def test_windows_carry_the_values_of_their_episodes(scenario):
    windows = cut(scenario, runs(scenario).episodes, 20, 10)
    assert windows.commands.shape[2] == scenario.command_width == 3
    own = np.array(RUNS)[windows.episode]
    np.testing.assert_array_equal(
        windows.commands[:, :, 1:], np.broadcast_to(own[:, None], windows.commands[:, :, 1:].shape)
    )


@pytest.mark.slow
def test_mjx_simulates_each_window_with_its_values(scenario):
    from rsr.simulators.mjx import MjxSimulator, check_gradients

    windows = cut(scenario, runs(scenario).episodes, 10, 40)
    values, simulator = scenario.space.vector(TRUTH), MjxSimulator(scenario)
    with MujocoSimulator(scenario) as reference:
        expected = reference.rollout(windows.starts, windows.commands, values)
        nominal = reference.rollout(windows.starts, windows.commands[:, :, :1], values)
    made = simulator.rollout(windows.starts, windows.commands, values)
    np.testing.assert_allclose(made, expected, atol=1e-9)
    assert np.abs(nominal - expected).max() > 0.01
    np.testing.assert_allclose(
        simulator.rollout(windows.starts, windows.commands[:, :, :1], values), nominal, atol=1e-9
    )
    assert check_gradients(simulator, windows.starts, windows.commands, values).healthy


@pytest.mark.slow
def test_one_parameter_is_found_from_runs_of_different_gains(scenario):
    session = runs(scenario)
    found = calibrator(TuneConfig(method="cmaes"), Effort(budget=120, max_windows=24)).fit(
        scenario, (session,), start_prior(scenario), 0, ignore
    )
    for name, truth in TRUTH.items():
        assert found.estimates[name].value == pytest.approx(truth, rel=0.05)
        assert found.estimates[name].lower < truth < found.estimates[name].upper
    assert found.estimates["gain_per_kp"].verdict == "identified"
    # The same recordings without their tags' differences: one gain for all explains them far worse.
    alike = replace(
        session, episodes=tuple(replace(each, tags={"kp": "8", "mass": "0.2"}) for each in session.episodes)
    )
    right, wrong = (evaluate_recording(scenario, each, TRUTH)["angle_rmse"] for each in (session, alike))
    assert wrong > 3 * right


@pytest.mark.parametrize(("tags", "said"), [({"mass": "0.2"}, "no tag 'kp'"), ({"kp": "soft", "mass": "1"}, "soft")])
def test_episode_that_does_not_say_its_value_is_refused(scenario, tags, said):
    episode = replace(runs(scenario).episodes[1], tags=tags)
    with pytest.raises(SessionError, match=said) as raised:
        scenario.commands_from(episode, 0, 10)
    assert "episode 1" in str(raised.value)
    assert "tags: [kp]" in str(raised.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"times": "voltage"}, "one of kp, payload"),
        ({"sets": [{"body": "load", "field": "mass"}]}, "both write mass of a body"),
    ],
)
def test_contradictions_are_refused(tmp_path, change, said):
    entry = DOCUMENT["parameters"]["gain_per_kp"] | change
    with pytest.raises(ScenarioError, match=said):
        servo(tmp_path, parameters={**DOCUMENT["parameters"], "gain_per_kp": entry})


def test_saved_scenario_keeps_them(scenario, tmp_path):
    again = load_scenario(scenario.save(tmp_path / "saved"))
    assert again.per_episode == scenario.per_episode
    assert again.bindings == scenario.bindings


def test_ingest_keeps_what_the_scenario_asks_for(scenario, tmp_path):
    """Two files of one run each: constant columns become tags, also those of a file alone."""
    session, units = runs(scenario), {"channels": {name: {"unit": "rad"} for name in ("angle", "setpoint")}}
    for episode in session.episodes[:2]:
        columns = {
            "time_s": episode.time_s,
            "angle.hinge": episode["angle"][:, 0],
            "setpoint.hinge": episode["setpoint"][:, 0],
        }
        columns |= {name: np.full(len(episode), float(value)) for name, value in episode.tags.items()}
        file = tmp_path / f"run{episode.index}.csv"
        np.savetxt(file, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
        folder = ingest([file], target_of(scenario), tmp_path / f"data{episode.index}", given=units, keep="hash").folder
        (stored,) = read_session(folder).episodes
        assert (float(stored.tags["kp"]), float(stored.tags["mass"])) == RUNS[episode.index]


def test_a_column_that_the_mapping_asks_for_and_nobody_recorded_is_named(scenario, tmp_path):
    episode = runs(scenario).episodes[0]
    file = tmp_path / "run.csv"
    table = np.column_stack([episode.time_s, episode["angle"], episode["setpoint"]])
    np.savetxt(file, table, delimiter=",", header="time_s,angle.hinge,setpoint.hinge", comments="")
    answers = {"channels": {name: {"unit": "rad"} for name in ("angle", "setpoint")}, "episodes": {"tags": ["kp"]}}
    with pytest.raises(SessionError, match=r"got no column kp; expected one of .*angle\.hinge.*Correct `time:` or"):
        ingest([file], target_of(scenario), tmp_path / "data", given=answers, keep="hash")


def test_a_stored_session_without_its_values_is_rejected_before_anything_is_fitted(scenario, tmp_path):
    session = runs(scenario)
    mute = replace(session, episodes=tuple(replace(each, tags={"mass": "0.2"}) for each in session.episodes))
    folder = write_session(tmp_path / "data", mute)
    page = examine_session(folder, str(tmp_path), simulate=False)
    assert page.verdict == "reject"
    (finding,) = [each for each in page.findings if each.severity == "reject"]
    assert (finding.where, finding.got) == ("episode 0", "no tag 'kp'")
    whole = examine_session(write_session(tmp_path / "whole", session), str(tmp_path), simulate=False)
    assert not [each for each in whole.findings if "no tag" in each.got]


def test_the_default_method_differentiates_a_scenario_with_effects():
    servo = load_scenario(Path(__file__).resolve().parents[2] / "examples" / "servo" / "scenario.yaml")
    assert choose_jacobian(servo, "mjx")[0] == "mjx"
    assert hash(servo) == hash(replace(servo)), "compiled simulators are looked up by their scenario"
