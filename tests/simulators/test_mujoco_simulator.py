import mujoco
import numpy as np
import pytest

from rsr.common.errors import ScenarioError
from rsr.simulators import MujocoSimulator, delay_weights, delayed
from tests.push_samples import push_cube, pushes

DELAY_S = 0.034


@pytest.fixture(scope="module")
def simulator():
    with MujocoSimulator(push_cube()) as made:
        yield made


@pytest.fixture(scope="module")
def late() -> np.ndarray:
    """Parameters with a delay that is no whole number of steps."""
    return push_cube().space.vector({"control_delay": DELAY_S, "cube_mass": 0.3})


def stepped(start: np.ndarray, commands: np.ndarray, params: np.ndarray) -> np.ndarray:
    """The same with plain `mj_step`: [T + 1, nq + nv]."""
    scenario = push_cube()
    model = scenario.model(params)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = np.split(start, [model.nq])
    weights = delay_weights(scenario.delay_s(params), scenario.control_dt_s, scenario.substeps, scenario.history_steps)
    states = [start]
    for i, control in enumerate(delayed(commands[None], weights[None])[0]):
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        if (i + 1) % scenario.substeps == 0:
            states.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(states)


def test_shape_and_first_row(simulator):
    starts, commands = pushes()
    states = simulator.rollout(starts, commands, push_cube().space.nominal)
    assert states.shape == (4, 41, push_cube().state_size)
    np.testing.assert_array_equal(states[:, 0], starts)
    assert np.isfinite(states).all()


def test_agrees_with_plain_mj_step(simulator, late):
    """A rollout begins without the solver's warm start; the tolerance of 1e-10 leaves only that between the two.

    Measured: 1e-8 over the 40 steps of a push. With MuJoCo's usual 1e-6 it would be centimetres.
    """
    starts, commands = pushes()
    states = simulator.rollout(starts, commands, late)
    for window in range(4):
        np.testing.assert_allclose(states[window], stepped(starts[window], commands[window], late), atol=1e-6)


def test_a_batch_is_its_windows_one_by_one(simulator, late):
    starts, commands = pushes()
    together = simulator.rollout(starts, commands, late)
    for i in range(len(starts)):
        alone = simulator.rollout(starts[i : i + 1], commands[i : i + 1], late)
        np.testing.assert_array_equal(together[i], alone[0])


def test_params_broadcast(simulator, late):
    starts, commands = pushes()
    np.testing.assert_array_equal(
        simulator.rollout(starts, commands, late), simulator.rollout(starts, commands, np.tile(late, (4, 1)))
    )


def test_every_window_may_have_its_own_params(simulator, late):
    starts, commands = pushes()
    nominal = push_cube().space.nominal
    mixed = simulator.rollout(starts, commands, np.stack([late, nominal, late, nominal]))
    np.testing.assert_array_equal(mixed[::2], simulator.rollout(starts, commands, late)[::2])
    np.testing.assert_array_equal(mixed[1::2], simulator.rollout(starts, commands, nominal)[1::2])


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_the_number_of_threads_changes_no_bit(simulator, late, threads):
    starts, commands = pushes()
    with MujocoSimulator(push_cube(), threads=threads) as other:
        again = other.rollout(starts, commands, late)
    np.testing.assert_array_equal(again, simulator.rollout(starts, commands, late))


def test_a_trajectory_does_not_depend_on_what_was_simulated_before(simulator, late):
    starts, commands = pushes()
    first = simulator.rollout(starts, commands, late)
    simulator.rollout(starts[::-1], commands[::-1], push_cube().space.upper)
    np.testing.assert_array_equal(simulator.rollout(starts, commands, late), first)


def test_delayed_commands_arrive_later(simulator):
    """With a delay of one control step, the state lags as if commands had been sent one step later."""
    scenario = push_cube()
    starts, commands = pushes()
    shifted = np.concatenate([commands[:, :1], commands[:, :-1]], axis=1)
    late = simulator.rollout(starts, commands, scenario.space.vector({"control_delay": scenario.control_dt_s}))
    np.testing.assert_allclose(late, simulator.rollout(starts, shifted, scenario.space.nominal), atol=1e-9)


def test_windows_cut_from_a_trajectory_continue_it(simulator, late):
    """The state and the last H commands are all that the future depends on."""
    starts, commands = pushes()
    whole = simulator.rollout(starts, commands, late)
    rest = simulator.rollout(whole[:, 15], commands[:, 15:], late)
    np.testing.assert_allclose(rest, whole[:, 15:], atol=1e-6)


def test_parameters_outside_their_bounds_are_refused(simulator):
    starts, commands = pushes()
    with pytest.raises(ScenarioError, match="got table_friction = 3"):
        simulator.rollout(starts, commands, push_cube().space.nominal * np.array([6, 1, 1, 1, 1, 1, 1]))
