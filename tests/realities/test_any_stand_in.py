"""The stand-in of a user's own scenario: what it hides by default and as stated, and what its sessions hold."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from benchmarks._two_joint_arm import two_joint_arm
from rsr.common.errors import ScenarioError
from rsr.common.progress import ignore
from rsr.realities import CollectionPlan, StandIn
from rsr.realities._truth import draw_truth, hidden_model
from rsr.scenarios import Scenario, load_scenario, task_of
from rsr.sessions import Session, check_session

PLAN = CollectionPlan("session-001", episodes=4, seed=3)


class Wild:
    """Asks for the largest and smallest of everything in turn."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def act(self, observation: np.ndarray) -> np.ndarray:
        return self._rng.choice([-1.0, 1.0], (len(observation), 2))


def collect(scenario: Scenario, seed: int = 0) -> Session:
    return StandIn(scenario, seed).collect(Wild(), PLAN, ignore)


def test_without_a_section_parameters_hide_within_one_deviation_of_the_prior(tmp_path):
    scenario = two_joint_arm(tmp_path)
    space = scenario.space
    hidden = np.array([space.vector(draw_truth(seed, scenario).parameters) for seed in range(60)])
    away = (space.to_coordinates(hidden) - space.to_coordinates(space.nominal)) / space.prior_std
    assert (np.abs(away) <= 1 + 1e-9).all()
    assert (away[:, :2].min(axis=0) < -0.8).all()
    assert (away.max(axis=0) > 0.8).all()
    assert (hidden[:, 2] >= 0).all(), "a delay is never negative"
    assert draw_truth(4, scenario) == draw_truth(4, scenario) != draw_truth(5, scenario)


def test_without_a_section_effects_hide_that_no_parameter_expresses(tmp_path):
    scenario = two_joint_arm(tmp_path)
    truth = draw_truth(0, scenario)
    hidden, nominal = hidden_model(scenario, truth), scenario.base_model
    # The shoulder's motor exerts 4 N m, the elbow's 2: so does their dry friction differ.
    assert 0.01 * 4 <= hidden.dof_frictionloss[0] <= 0.03 * 4
    assert hidden.dof_frictionloss[1] == pytest.approx(hidden.dof_frictionloss[0] / 2)
    assert hidden.opt.timestep == nominal.opt.timestep / 2
    assert hidden.opt.cone != nominal.opt.cone
    assert truth.delay_jitter_s == pytest.approx(0.1 * scenario.control_dt_s)
    assert 0.8 <= truth.noise_factor <= 1.25


def test_dry_friction_that_is_a_parameter_is_no_effect(tmp_path):
    scenario = two_joint_arm(tmp_path)
    friction = {
        "nominal": 0.1,
        "lower": 0.01,
        "upper": 1.0,
        "unit": "N m",
        "prior_std": 0.5,
        "sets": [{"joint": "elbow", "field": "friction_loss"}],
    }
    scenario = two_joint_arm(tmp_path / "own", parameters={"friction": friction})
    truth = draw_truth(0, scenario)
    losses = hidden_model(scenario, truth).dof_frictionloss
    np.testing.assert_allclose(losses, [0.0, truth.parameters["friction"]])


def test_what_the_section_states_is_what_hides(tmp_path):
    section = {
        "ranges": {"damping": [2.0, 2.5], "delay": 0.03},
        "dry_friction": 0.4,
        "delay_jitter_s": 0.0,
        "sensor_noise": 2.0,
        "timestep_s": 0.001,
    }
    truth = draw_truth(0, two_joint_arm(tmp_path, stand_in=section))
    assert 2.0 <= truth.parameters["damping"] <= 2.5
    assert truth.parameters["delay"] == 0.03
    assert (truth.dry_friction, truth.noise_factor, truth.timestep_s) == (0.4, 2.0, 0.001)
    assert 0.2 < truth.parameters["payload"] < 0.8, "by default"


def test_a_scenario_does_not_carry_what_hides(tmp_path):
    scenario = two_joint_arm(tmp_path, stand_in={"ranges": {"damping": 2.7182}})
    shown = " ".join(repr(getattr(scenario, each.name)) for each in fields(scenario))
    assert "2.7182" not in shown


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            {"ranges": {"damping": [2.0, 4.0]}},
            "stand_in, ranges: got damping hidden in [2.0, 4.0]; expected a number or two in order, within its bounds "
            "0.3 to 3. Correct the section `stand_in` of the scenario's YAML file.",
        ),
        ({"ranges": {"damping": [2.0, 1.0]}}, "got damping hidden in [2.0, 1.0]; expected a number or two in order"),
        ({"ranges": {"damping": "much"}}, "got damping hidden in much; expected a number or two"),
        ({"ranges": {"dampnig": 2.0}}, "got parameter 'dampnig'; expected one of damping, payload, delay."),
        (
            {"sliding_pairs": ["table_cube"]},
            "sliding_pairs: got pair 'table_cube'; expected none: the MJCF names no pair.",
        ),
        ({"stiction": 0.2}, "stand_in: got 'stiction'; expected 'dry_friction'."),
        ({"dry_friction": [0.6, 0.2]}, "got dry_friction [0.6, 0.2]; expected a number, or the two between which"),
        ({"timestep_s": 0.003}, "got timestep_s 0.003 with control_dt_s 0.02; expected a whole number of time steps"),
    ],
)
def test_a_wrong_section_is_refused_before_anything_is_recorded(tmp_path, section, message):
    with pytest.raises(ScenarioError) as caught:
        StandIn(two_joint_arm(tmp_path, stand_in=section), 0)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["torque", "velocity", "position"])
def test_a_session_holds_every_channel_of_the_scenario(tmp_path, kind):
    scenario = two_joint_arm(tmp_path, kind)
    names = [channel.name for channel in scenario.channels]
    assert names[-2:] == ["action", "clipped"], "which the YAML file does not declare"
    session = collect(scenario)
    check_session(session, scenario.channels)
    assert session.channels == scenario.channels
    task = task_of(scenario)
    for episode in session.episodes:
        derived = task.derived({"joint_position": episode["joint_position"]})["tool_position"]
        np.testing.assert_array_equal(episode["tool_position"], derived)
        assert (episode["target_position"] == episode["target_position"][0]).all()
        for held in ("joint_torque", "action", "clipped"):
            np.testing.assert_array_equal(episode[held][-1], episode[held][-2])


def test_recorded_velocities_are_those_of_the_positions(tmp_path):
    episode = collect(two_joint_arm(tmp_path)).episodes[0]
    rough = np.gradient(episode["joint_position"], episode.time_s, axis=0)[2:-2]
    off = episode["joint_velocity"][2:-2] - rough
    assert np.corrcoef(rough.ravel(), episode["joint_velocity"][2:-2].ravel())[0, 1] > 0.95
    assert np.abs(np.median(off)) < 0.3


def test_what_was_sent_is_what_the_policy_asked_for_within_the_limits(tmp_path):
    scenario = two_joint_arm(tmp_path, limits={"command_rate": {"shoulder": 20.0}, "command_upper": {"elbow": 0.5}})
    session = collect(scenario)
    torque = np.stack([episode["joint_torque"] for episode in session.episodes])
    growth = np.diff(np.abs(torque[..., 0]), axis=1)  # where a joint is at its end, its torque is taken away at once
    assert growth.max() == pytest.approx(20.0 * scenario.control_dt_s)
    assert torque[..., 1].max() == 0.5
    assert torque[..., 1].min() == -2.0
    assert "cut_command_rate" in session.episodes[0].tags


def test_a_biased_and_a_late_sensor(tmp_path):
    """An encoder whose zero differs from episode to episode, and whose clock is one and a half steps late."""
    channels = {
        "joint_position": {
            "columns": ["shoulder", "elbow"],
            "unit": "rad",
            "frame": "joint",
            "reads": {"joints": ["shoulder", "elbow"]},
            "noise": 1e-6,
            "bias_std": 0.05,
        },
        "joint_torque": {"columns": ["shoulder", "elbow"], "unit": "N m", "frame": "joint", "stamp": "held_until_next"},
        "tool_position": {"columns": ["x", "y"], "unit": "m", "frame": "world"},
        "target_position": {"columns": ["x", "y"], "unit": "m", "frame": "world"},
    }
    encoder_delay = {
        "nominal": 0.0,
        "lower": -0.04,
        "upper": 0.04,
        "unit": "s",
        "scale": "linear",
        "prior_std": 0.02,
        "sensor_delay": "joint_position",
    }
    late = two_joint_arm(
        tmp_path / "late",
        channels=channels,
        parameters={"encoder_delay": encoder_delay},
        stand_in={"ranges": {"encoder_delay": 0.03}, "sensor_noise": 1.0},
    )
    stand_in, rng = StandIn(late, 0), np.random.default_rng(0)
    sensors = stand_in.sensors(rng, 500)
    rows = [np.tile([row * 0.1, 0.0, 0.0, 0.0], (500, 1)) for row in range(6)]
    read = np.stack([sensors(SimpleNamespace(states=row))["joint_position"] for row in rows])
    bias = read[0]
    assert bias.std() == pytest.approx(0.05, rel=0.1)
    np.testing.assert_allclose((read - bias)[:, 0, 0], [0.0, 0.0, 0.05, 0.15, 0.25, 0.35], atol=1e-4)
    early = two_joint_arm(
        tmp_path / "early",
        channels=channels,
        parameters={"encoder_delay": encoder_delay},
        stand_in={"ranges": {"encoder_delay": -0.01}},
    )
    with pytest.raises(
        ScenarioError, match="got encoder_delay hidden in -0.01; expected .* within its bounds 0 to 0.04 s"
    ):
        StandIn(early, 0)
    default = two_joint_arm(tmp_path / "default", channels=channels, parameters={"encoder_delay": encoder_delay})
    drawn = [draw_truth(seed, default).parameters["encoder_delay"] for seed in range(20)]
    assert 0 <= min(drawn) < max(drawn) <= 0.02


def test_an_episode_in_which_the_task_fails_ends_there(tmp_path):
    scenario = two_joint_arm(tmp_path)
    task = (tmp_path / "task.py").read_text()
    failing = 'failure=lambda channels: np.abs(channels["joint_position"][..., 0]) > 0.7,\n    derived=tool,'
    (tmp_path / "task.py").write_text(task.replace("derived=tool,", failing))
    session = collect(scenario)
    lengths = [len(episode) for episode in session.episodes]
    assert min(lengths) < max(lengths) <= scenario.episode_steps + 1
    check_session(session, scenario.channels)
    for episode in session.episodes:
        failed = np.abs(episode["joint_position"][:, 0]) > 0.7
        assert not failed[1:-1].any()
        assert failed[-1] == (len(episode) <= scenario.episode_steps)


def test_a_channel_that_nothing_measures_is_refused(tmp_path):
    scenario = two_joint_arm(tmp_path)
    path = tmp_path / "scenario.yaml"
    path.write_text(path.read_text().replace("tool_position:", "gripper_position:"))
    scenario = load_scenario(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        StandIn(scenario, 0)
    assert str(caught.value).startswith(
        "scenario two_joint_arm, channel gripper_position: got a channel that nothing measures; expected one of "
    )


def test_an_action_of_another_width_than_its_channel_is_refused(tmp_path):
    scenario = two_joint_arm(tmp_path)
    task = (tmp_path / "task.py").read_text()
    wider = "AbsoluteAction(lower=(-4.0, -2.0, 0.0), upper=(4.0, 2.0, 1.0))"
    (tmp_path / "task.py").write_text(task.replace("AbsoluteAction(lower=(-4.0, -2.0), upper=(4.0, 2.0))", wider))
    with pytest.raises(ScenarioError, match="action: `lower`: got 3 numbers; expected 2, one a command"):
        StandIn(scenario, 0)


def test_the_cone_is_always_the_other_one(tmp_path):
    scenario = two_joint_arm(tmp_path)
    scene = tmp_path / "scene.xml"
    scene.write_text(scene.read_text().replace("<option ", '<option cone="elliptic" '))
    scenario = load_scenario(tmp_path)
    assert hidden_model(scenario, draw_truth(0, scenario)).opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
