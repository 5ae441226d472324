"""From what sensors say to positions and velocities: a known motion comes back."""

import mujoco
import numpy as np
import pytest

from rsr.scenarios import residuals, rms
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator
from tests.push_samples import push_cube, pushes

TIME_S = np.arange(21) * 0.05
SPIN_RAD_S = 1.5


def episode(**channels: np.ndarray) -> Episode:
    """Channels as given; what is not given rests."""
    rest = {
        "joint_position": np.tile([0.1, -1.0, 1.2, 0.0, 1.3, 0.0], (len(TIME_S), 1)),
        "block_position": np.tile([0.36, 0.0, 0.025], (len(TIME_S), 1)),
        "block_orientation": np.tile([1.0, 0, 0, 0], (len(TIME_S), 1)),
    }
    return Episode(0, TIME_S, {**rest, **channels})


def moving() -> Episode:
    """The cube slides evenly and spins about the vertical; the first joint speeds up, the others rest."""
    turn = SPIN_RAD_S * TIME_S / 2
    joints = np.tile([0.1, -1.0, 1.2, 0.0, 1.3, 0.0], (len(TIME_S), 1))
    joints[:, 0] += 0.4 * TIME_S**2
    return episode(
        joint_position=joints,
        block_position=np.array([0.36, 0.0, 0.025]) + TIME_S[:, None] * [0.2, -0.1, 0.0],
        block_orientation=np.stack([np.cos(turn), 0 * turn, 0 * turn, np.sin(turn)], axis=1),
    )


def test_known_motion_comes_back():
    scenario = push_cube()
    states = scenario.states(moving())
    qvel = states[:, scenario.base_model.nq :]
    np.testing.assert_allclose(qvel[:, :3], [[0.2, -0.1, 0.0]] * 21, atol=1e-9)
    np.testing.assert_allclose(qvel[:, 3:6], [[0, 0, SPIN_RAD_S]] * 21, atol=1e-9)
    # Even at the ends, where differences of neighbours are one-sided, a parabola is known exactly. A slow enough one is
    # within the sensor's noise of a straight line, which is then preferred: hence the tolerance.
    np.testing.assert_allclose(qvel[:, 6], 0.8 * TIME_S, atol=0.1)
    np.testing.assert_allclose(states[:, :13], np.hstack([moving()[name] for name in
        ("block_position", "block_orientation", "joint_position")]), atol=2e-3)  # fmt: skip


def test_what_rests_is_exactly_at_rest():
    scenario = push_cube()
    np.testing.assert_array_equal(scenario.states(episode())[:, scenario.base_model.nq :], 0.0)


def test_noise_at_rest_is_no_motion():
    scenario, rng = push_cube(), np.random.default_rng(0)
    still = episode()
    noisy = episode(
        joint_position=still["joint_position"] + rng.normal(0, 0.002, (21, 6)),
        block_position=still["block_position"] + rng.normal(0, 0.001, (21, 3)),
    )
    qvel = scenario.states(noisy)[:, scenario.base_model.nq :]
    differences = np.gradient(noisy["joint_position"], TIME_S, axis=0)
    assert (qvel[:, 6:] == 0).mean() > 0.9
    assert qvel[:, 6:].std() < 0.3 * differences.std()


def test_a_spin_given_with_changing_signs_is_the_same_spin():
    """A tracker may report q or -q."""
    scenario = push_cube()
    flipped = moving()["block_orientation"].copy()
    flipped[::2] *= -1
    other = episode(**{**moving().values, "block_orientation": flipped})
    states, expected = scenario.states(other), scenario.states(moving())
    np.testing.assert_allclose(states[:, 13:], expected[:, 13:], atol=1e-9)


@pytest.fixture(scope="module")
def simulated() -> np.ndarray:
    """Pushes as they truly went, [B, T + 1, nq + nv]."""
    starts, commands = pushes(count=8)
    with MujocoSimulator(push_cube()) as simulator:
        return simulator.rollout(starts, commands, push_cube().space.nominal)


def recorded(true: np.ndarray, rng: np.random.Generator | None = None) -> Episode:
    """What sensors say of a trajectory, with noise in joints and position where a generator is given."""
    channels = push_cube().measure(true)
    if rng is not None:
        channels["joint_position"] = channels["joint_position"] + rng.normal(0, 0.002, (len(true), 6))
        channels["block_position"] = channels["block_position"] + rng.normal(0, 0.001, (len(true), 3))
    return Episode(0, np.arange(len(true)) * push_cube().control_dt_s, channels)


def test_smoothing_shifts_positions_by_less_than_the_noise(simulated):
    scenario = push_cube()
    for true in simulated:
        states = scenario.states(recorded(true))
        errors = residuals(scenario, scenario.measure(true), scenario.measure(states))
        for observed in scenario.observed:
            assert rms(errors[observed.channel.name][..., None]) < observed.noise


def test_velocities_are_at_least_as_good_as_differences_of_neighbours(simulated):
    """At 20 Hz an arm that starts and stops leaves an error of a third either way; noise makes the difference."""
    scenario, rng = push_cube(), np.random.default_rng(0)
    velocity = {"joints": (slice(7, 13), slice(19, 25)), "cube": (slice(0, 2), slice(13, 15))}
    for noise in (None, rng):
        for qpos, qvel in velocity.values():
            ours, plain = [], []
            for true in simulated:
                episode = recorded(true, noise)
                measured = np.hstack([episode["block_position"], np.zeros((len(true), 4)), episode["joint_position"]])
                differences = np.gradient(measured[:, qpos], scenario.control_dt_s, axis=0)
                # From row 3 on, where windows may begin (`history_steps`).
                ours.append(scenario.states(episode)[3:, qvel] - true[3:, qvel])
                plain.append(differences[3:] - true[3:, qvel])
            assert rms(np.concatenate(ours)) < (1.1 if noise is None else 1.0) * rms(np.concatenate(plain))


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_short_recordings(rows):
    scenario = push_cube()
    short = Episode(0, TIME_S[:rows], {name: values[:rows] for name, values in moving().values.items()})
    states = scenario.states(short)
    assert states.shape == (rows, scenario.state_size)
    np.testing.assert_allclose(states[:, 13], 0.2, atol=1e-9)


def test_unobserved_coordinates_keep_the_reference():
    """All coordinates of push_cube are observed; a model with one channel less keeps qpos0 for it."""
    from dataclasses import replace

    scenario = replace(push_cube(), observed=push_cube().observed[1:])
    states = scenario.states(episode())
    np.testing.assert_array_equal(states[:, 7:13], np.tile(scenario.base_model.qpos0[7:], (21, 1)))
    assert mujoco.mj_id2name(scenario.base_model, mujoco.mjtObj.mjOBJ_JOINT, 1) == "joint1"
