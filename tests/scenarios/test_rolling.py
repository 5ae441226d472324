"""A ball that a camera tracks has a spin that no channel shows: a window begins with that of rolling."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import rsr
from rsr.calibration import start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.windows import cut
from rsr.calibration.search.marginalise import with_initial_states
from rsr.scenarios.channels.rolling import start_spread
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

DT_S, STEPS = 0.04, 8
SCENE = """
<mujoco>
  <option timestep="0.005" tolerance="1e-10"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="plate">
      <joint name="tilt" axis="0 1 0" range="-17 17" limited="true" damping="0.5"/>
      <geom name="plate" type="box" size="0.5 0.3 0.004" mass="3"/>
    </body>
    <body name="ball" pos="0 0 0.024"><freejoint name="ball"/>GEOM</body>
  </worldbody>
  <contact><pair geom1="plate" geom2="ball" condim="3" friction="FRICTION FRICTION 0 0 0"/></contact>
  <actuator><position name="tilt" joint="tilt" kp="60" ctrlrange="-0.3 0.3"/></actuator>
</mujoco>
"""
BALL = '<geom name="ball" type="sphere" size="0.02" mass="0.03"/>'
BLOCK = '<geom name="ball" type="box" size="0.02 0.02 0.02" mass="0.03"/>'


def board(folder, geom: str, friction: float = 0.6, tilt_noise: float = 0.001) -> rsr.Scenario:
    path = folder / "plate.xml"
    path.write_text(SCENE.replace("GEOM", geom).replace("FRICTION", str(friction)))
    return rsr.Scenario.from_mjcf(
        path,
        dt=DT_S,
        measured={"tilt": rsr.joints("tilt", noise=tilt_noise), "ball": rsr.free_joint_position("ball", noise=0.0005)},
        command={"u": rsr.actuators("tilt")},
        tune={"gain": rsr.scale("actuator.kp")},
    )


def recorded(scenario: rsr.Scenario) -> tuple[Episode, np.ndarray]:
    """A second and a half on the plate, measured as the channels say, and its true states [T, nq + nv]."""
    model, rng = scenario.model(scenario.space.nominal), np.random.default_rng(0)
    data = mujoco.MjData(model)
    commands = 0.1 * np.sign(np.sin(4.0 * DT_S * np.arange(38)))[:, None]
    states = []
    for command in commands:
        states.append(np.concatenate([data.qpos, data.qvel]))
        data.ctrl[:] = command
        mujoco.mj_step(model, data, STEPS)
    true = np.array(states)
    tilt, ball = (true[:, columns] for columns in (slice(0, 1), slice(1, 4)))
    noisy = {"tilt": tilt + rng.normal(0, 0.001, tilt.shape), "ball": ball + rng.normal(0, 0.0005, ball.shape)}
    return Episode(0, DT_S * np.arange(len(true)), {**noisy, "u": commands}), true


def in_world(spin: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    turned = np.zeros(3)
    mujoco.mju_rotVecQuat(turned, spin, quaternion)
    return turned


def test_a_ball_whose_orientation_is_not_measured_begins_rolling_and_is_predicted(tmp_path):
    scenario = board(tmp_path, BALL)
    episode, true = recorded(scenario)
    nq, states = scenario.base_model.nq, scenario.states(episode)
    spins = states[:, nq + 4 : nq + 7]
    expected = np.array([in_world(row[nq + 4 : nq + 7], row[4:8]) for row in true])
    assert np.abs(expected).max() > 10.0
    assert np.sqrt(np.mean(np.square(spins - expected)[4:-4])) < 1.5

    def error_m(start: np.ndarray, row: int, ahead: int = 12) -> float:
        model = scenario.model(scenario.space.nominal)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = start[:nq], start[nq : nq + model.nv]
        for command in episode["u"][row : row + ahead]:
            data.ctrl[:] = command
            mujoco.mj_step(model, data, STEPS)
        return float(np.linalg.norm(data.qpos[1:4] - true[row + ahead, 1:4]))

    still = states.copy()
    still[:, nq + 4 : nq + 7] = 0.0
    rows = range(6, 24, 3)
    rolled, slid = (np.mean([error_m(each[row], row) for row in rows]) for each in (states, still))
    assert rolled < 0.5 * slid


@pytest.mark.parametrize("row", [8, 12])
def test_a_block_that_slides_is_not_taken_for_one_that_tips_over(tmp_path, row):
    scenario = board(tmp_path, BLOCK, friction=0.02)
    episode, _ = recorded(scenario)
    nq, states = scenario.base_model.nq, scenario.states(episode)
    assert np.abs(states[row, nq + 1]) > 0.02
    # The plate itself turns, by a fraction of a radian in a second.
    assert np.abs(states[row, nq + 4 : nq + 7]).max() < 0.7


@pytest.mark.parametrize("tilt_noise", [0.001, 0.1])
def test_what_touches_nothing_begins_without_spin(tmp_path, tilt_noise):
    """However noisy another channel is: that of the ball's own position says what it touches."""
    scenario = board(tmp_path, BALL, tilt_noise=tilt_noise)
    episode, _ = recorded(scenario)
    lifted = {**episode.values, "ball": episode["ball"] + [0.0, 0.0, 0.2]}
    states = scenario.states(Episode(0, episode.time_s, lifted))
    assert not states[:, scenario.base_model.nq + 4 :].any()


def test_an_inferred_spin_errs_as_the_speed_does_and_as_far_as_the_ball_may_slide(tmp_path):
    scenario = board(tmp_path, BALL)
    episode, _ = recorded(scenario)
    model, states = scenario.base_model, scenario.states(episode)
    spread, spins = start_spread(scenario, states), slice(model.nv + 4, model.nv + 7)
    np.testing.assert_array_equal(spread[:, : model.nv], np.tile(scenario.start_std[: model.nv], (len(states), 1)))
    speed = np.linalg.norm(states[:, model.nq + 1 : model.nq + 4], axis=1)
    measured = scenario.start_std[model.nv + 1]
    np.testing.assert_allclose(spread[:, spins].T, [np.hypot(0.5 * speed, measured) / 0.02] * 3)


def test_what_an_inferred_spin_leaves_wrong_is_laid_on_it_and_not_on_the_model(tmp_path):
    """A ball that is thrown along the plate slides for half a second, where every window begins with it rolling."""
    scenario = board(tmp_path, BALL, friction=0.04)
    model, rng, episodes = scenario.base_model, np.random.default_rng(0), []
    for index in range(4):
        data = mujoco.MjData(model)
        data.qvel[1:3] = rng.uniform(0.6, 0.9) * np.array([1.0, rng.normal(0.0, 0.3)])
        passed = []
        for _ in range(16):
            passed.append(data.qpos[:4] + rng.normal(0.0, [0.001, 0.0005, 0.0005, 0.0005]))
            mujoco.mj_step(model, data, STEPS)
        seen = {"tilt": np.array(passed)[:, :1], "ball": np.array(passed)[:, 1:], "u": np.zeros((16, 1))}
        episodes.append(Episode(index, DT_S * np.arange(16), seen))
    with MujocoSimulator(scenario, threads=1) as simulator:
        loss = Loss(scenario, simulator, cut(scenario, episodes, 10, 14), start_prior(scenario))
        free = with_initial_states(loss, loss.first)
        slopes = free.initial_states.slopes
        assert slopes.shape[-1] == 2 * 4 + 3, "tilt and place, their velocities, and the spin"
        exact = replace(free, initial_states=replace(free.initial_states, slopes=slopes[..., :-3]))
        left, right = (np.square(each.misfits(loss.first[None])).sum() for each in (free, exact))
    assert left < 0.5 * right
