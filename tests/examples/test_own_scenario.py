"""The example of a scenario of one's own works as its README says, from the YAML file to the calibration."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rsr import calibration
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.planning import judge_support
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Card, Episode, Session, check_session, read_session, write_session
from rsr.simulators import MujocoSimulator, evaluate_recording

ROOT = Path(__file__).parents[2]
FILE = str(ROOT / "examples" / "own_scenario" / "scenario.yaml")
FRICTION = 0.21


def puck() -> Scenario:
    return load_scenario(FILE)


@cache
def slides(count: int = 8, rows: int = 61) -> Session:
    """A stand-in for a lab: slides of a puck with a friction unknown to the scenario, measured with its noise."""
    scenario, rng = puck(), np.random.default_rng(3)
    starts = np.zeros((count, scenario.state_size))
    starts[:, 2], starts[:, 3] = 0.01, 1.0
    starts[:, 7:9] = rng.uniform([0.2, -0.3], [0.9, 0.3], (count, 2))
    params = scenario.space.vector({"friction": FRICTION})
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(starts, np.zeros((count, rows - 1, 0)), params)
    episodes = []
    for index, states_of in enumerate(states):
        values = scenario.measure(states_of)
        values["puck_position"] = values["puck_position"] + rng.normal(0, 0.0005, (rows, 3))
        episodes.append(Episode(index, np.arange(rows) * scenario.control_dt_s, values))
    card = Card("session-001", scenario.name, "lab", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, tuple(episodes))


def test_recordings_of_it_are_stored_and_checked(tmp_path):
    session = read_session(write_session(tmp_path, slides()))
    check_session(session, puck().channels)
    assert (tmp_path / "sliding_puck" / "session-001").is_dir()


def test_it_is_judged_by_its_own_figure():
    nominal = evaluate_recording(puck(), slides(), {})
    true = evaluate_recording(puck(), slides(), {"friction": FRICTION})
    assert nominal["start"] == "windows"
    assert nominal["position_error_mm"] > 3 * true["position_error_mm"]
    assert true["position_error_mm"] < 3


def test_a_puck_recorded_above_its_board_is_named_as_one_that_the_scene_lets_fall():
    """It slides, so it never rests in the air; a fit would take the fall for friction."""
    assert list(judge_support(puck(), slides())) == []
    high = [
        replace(each, values={**each.values, "puck_position": each["puck_position"] + [0.0, 0.0, 0.1]})
        for each in slides().episodes
    ]
    (finding,) = judge_support(puck(), replace(slides(), episodes=tuple(high)))
    assert (finding.severity, finding.topic) == ("care", "physics")
    assert "that the scene lets fall" in finding.got
    assert "a marker, or the origin of the body" in finding.next_step


@pytest.mark.slow
def test_calibration_finds_the_friction_and_does_not_pretend_to_know_the_mass():
    scenario = puck()
    effort = calibration.Effort(budget=200, max_windows=24)
    fitting = calibration.calibrator(TuneConfig(method="cmaes", fit_episodes=4), effort)
    found = fitting.fit(scenario, (slides(),), calibration.start_prior(scenario), 0, ignore)
    friction, mass = found.estimates["friction"], found.estimates["mass"]
    assert friction.value == pytest.approx(FRICTION, rel=0.05)
    assert friction.verdict == "identified"
    assert mass.verdict != "identified"
    after = evaluate_recording(scenario, slides(), found.vector(), episodes=found.evidence.held_out)
    before = evaluate_recording(scenario, slides(), {}, episodes=found.evidence.held_out)
    assert after["position_error_mm"] < 0.5 * before["position_error_mm"]


def test_the_readme_says_how():
    text = (ROOT / "examples" / "own_scenario" / "README.md").read_text()
    for word in ("write_session", "rsr check", "rsr calibrate", "rsr evaluate", "docs/scenarios.md"):
        assert word in text
    # The lines of Python in it run.
    code = "\n".join(
        line[4:] for line in text.splitlines() if line.startswith("    ") and not line.startswith("    rsr")
    )
    session = slides(2)
    yours = [(e.time_s, e["puck_position"], e["puck_orientation"]) for e in session.episodes]
    written: list = []
    code = code.replace('write_session(Path("data"), session)', "written.append(session)")
    exec(code.replace("examples/own_scenario/scenario.yaml", FILE), {"your_slides": yours, "written": written})
    assert replace(written[0].card, simulated=True) == session.card
