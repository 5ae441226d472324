"""Model error: estimated apart from noise, growing, robust; unequal windows; the end of a search, checked."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import rsr
from rsr.calibration import start_prior
from rsr.calibration.checks.expressiveness import expressed, misfits
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.model_error import ModelError
from rsr.calibration.problem.windows import Windows, choose, cut
from rsr.calibration.search.descent import SearchResult
from rsr.calibration.search.evolution import search_cmaes
from rsr.calibration.search.marginalise import reweighted, with_initial_states
from rsr.calibration.search.second import checked_end
from rsr.common.progress import ignore
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube, pushes

STEPS, COUNT, ROW = 12, 64, 16
CHANNEL = "block_position"


@pytest.fixture(scope="module")
def simulator():
    with MujocoSimulator(push_cube()) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def exact(simulator):
    """Windows that the simulator itself made: starts are exact and nothing is noisy."""
    scenario = push_cube()
    starts, commands = pushes(count=COUNT, steps=40)
    values = scenario.space.vector(TRUTH)
    begun = simulator.rollout(starts, commands, values)[:, ROW]
    sent = commands[:, ROW : ROW + scenario.history_steps + STEPS]
    real = scenario.measure(simulator.rollout(begun, sent, values)[:, 1:])
    windows = Windows(begun, sent, real, np.arange(COUNT), np.full(COUNT, ROW))
    return Loss(scenario, simulator, windows, start_prior(scenario))


@pytest.fixture(scope="module")
def truth(exact):
    return exact.points(push_cube().space.vector(TRUTH))


def off_by(loss: Loss, added: np.ndarray) -> Loss:
    """The loss with errors [W, T, C] in what was recorded of the cube's position."""
    real = {**loss.windows.real, CHANNEL: loss.windows.real[CHANNEL] + added}
    return replace(loss, windows=replace(loss.windows, real=real))


def test_steps_that_no_episode_reaches_keep_the_error_of_the_last_one_that_is(exact, truth):
    """All episodes are shorter than a window, as in a session of short throws."""
    off = off_by(exact, np.random.default_rng(0).normal(0.0, 0.01, (COUNT, STEPS, 3)))
    short = replace(off, windows=replace(off.windows, lengths=np.full(COUNT, STEPS - 4)))
    found = ModelError.of(short, truth).channels[CHANNEL]
    assert (found[-4:] == found[-5]).all()
    assert found[-5] == pytest.approx(0.01, rel=0.2)


def test_noise_alone_is_no_model_error(exact, truth):
    noise = push_cube().observed_channel(CHANNEL).noise
    noisy = off_by(exact, np.random.default_rng(0).normal(0.0, noise, (COUNT, STEPS, 3)))
    found = ModelError.of(noisy, truth)
    assert (found.channels[CHANNEL] < 0.5 * noise).all()
    assert found.rows_as_one < 2.0, "independent rows count one by one"


def test_errors_that_grow_are_found_as_large_as_they_are(exact, truth):
    rng, elapsed = np.random.default_rng(1), np.arange(1, STEPS + 1) / STEPS
    drift = 0.02 * rng.normal(size=(COUNT, 1, 3)) * elapsed[:, None]
    found = ModelError.of(off_by(exact, drift), truth)
    grown = found.channels[CHANNEL]
    assert (np.diff(grown) >= 0.0).all()
    assert grown[-1] == pytest.approx(0.02, rel=0.25)
    assert grown[STEPS // 2 - 1] == pytest.approx(0.01, rel=0.3)
    assert found.rows_as_one > 0.5 * STEPS, "a window that drifts says one thing, however many rows it has"


def test_a_few_wild_windows_do_not_rule(exact, truth):
    rng = np.random.default_rng(2)
    calm = 0.01 * rng.normal(size=(COUNT, STEPS, 3))
    wild = calm.copy()
    wild[:3] += 0.5
    usual, disturbed = (ModelError.of(off_by(exact, each), truth).channels[CHANNEL][-1] for each in (calm, wild))
    assert usual == pytest.approx(0.01, rel=0.25)
    assert disturbed < 2.5 * usual, "the root of the mean square would be eleven times"


def test_a_wrong_model_lets_the_prior_count(exact, truth):
    """The worse the model, the less its residuals weigh: the loss stays about that of their number."""
    rng = np.random.default_rng(3)
    small, large = (
        reweighted(off_by(exact, size * rng.normal(size=(COUNT, 1, 3)) * np.ones((STEPS, 1))), truth)
        for size in (0.003, 0.03)
    )
    data = [float(np.square(each.misfits(truth[None])).sum()) for each in (small, large)]
    assert data[1] == pytest.approx(data[0], rel=0.3)


def test_what_lies_beyond_an_episodes_end_counts_nothing(exact, truth):
    lengths = np.where(np.arange(COUNT) % 2, STEPS, STEPS // 2)
    added = np.zeros((COUNT, STEPS, 3))
    added[::2, STEPS // 2 :] = 0.1
    ended = off_by(replace(exact, windows=replace(exact.windows, lengths=lengths)), added)
    assert np.abs(ended.misfits(truth[None])).max() < 1e-9
    assert np.abs(ModelError.of(ended, truth).channels[CHANNEL]).max() == 0.0
    assert ended.shortened(STEPS // 2).windows.inside.all()


def test_a_model_that_cannot_express_a_channel_is_said(simulator):
    scenario, episodes = push_cube(), recording().episodes
    windows = choose(scenario, cut(scenario, episodes, STEPS, STEPS // 2), 48, np.random.default_rng(0))
    loss = Loss(scenario, simulator, windows, start_prior(scenario))
    truth = loss.points(scenario.space.vector(TRUTH))
    right = misfits(reweighted(loss, truth), episodes, truth, loss.divergence())
    assert expressed(right) == []
    mirrored = off_by(loss, -2.0 * (windows.real[CHANNEL] - windows.real[CHANNEL][:, :1]))
    parted = with_initial_states(loss, truth).divergence()
    wrong = misfits(reweighted(mirrored, truth), episodes, truth, parted)
    assert wrong[CHANNEL].noises > 5 * max(1.0, right[CHANNEL].noises)
    (warning,) = expressed(wrong)
    assert warning.startswith(f"this model cannot express {CHANNEL}: where it fits best it is wrong by ")


POLE = """
<mujoco>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <body name="pole">
      <joint name="hinge" axis="0 1 0" damping="0.001"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.01" mass="0.2"/>
    </body>
  </worldbody>
  <actuator><motor name="hinge" joint="hinge"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize("falls", [True, False])
def test_only_where_starts_that_differ_part_is_the_model_not_to_blame(tmp_path, falls):
    """A pole that falls to one side or the other; and one that hangs and is driven, by a motor of the other sign."""
    (tmp_path / "pole.xml").write_text(POLE)
    scenario = rsr.Scenario.from_mjcf(
        tmp_path / "pole.xml",
        dt=0.01,
        measured={"angle": rsr.joints("hinge", noise=0.01)},
        command={"torque": rsr.actuators("hinge")},
        tune={"damping": rsr.scale("joint.damping")},
    )
    rng, data, episodes = np.random.default_rng(0), mujoco.MjData(scenario.base_model), []
    for index in range(12):
        data.qpos[:], data.qvel[:], angles = (0.001 * rng.normal() if falls else np.pi), 0.0, []
        torque = (0.0 if falls else 0.3) * np.sin(0.05 * np.arange(120) + rng.uniform(0, 6))[:, None]
        for row in torque:
            angles.append(data.qpos.copy())
            data.ctrl[:] = -row
            mujoco.mj_step(scenario.base_model, data, 2)
        seen = np.array(angles) + 0.01 * rng.normal(size=(120, 1))
        episodes.append(Episode(index, 0.01 * np.arange(120), {"angle": seen, "torque": torque}))
    windows = cut(scenario, episodes, 110, 110)
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        parted = with_initial_states(loss, loss.first).divergence()
        (warning,) = expressed(misfits(reweighted(loss, loss.first), episodes, loss.first, parted))
    begins = "angle cannot be predicted for" if falls else "this model cannot express angle"
    assert warning.startswith(begins)


def test_a_search_that_ended_badly_is_bettered_and_it_is_said(exact, truth):
    few = exact.thinned(12)
    lost = np.clip(truth + 2.0, *few.bounds.T)
    begun = SearchResult(lost, "converged", np.zeros((0, 2)))
    found = checked_end(few, begun, search_cmaes, 120, 0, ignore)
    assert few(found.point[None])[0] < 0.5 * few(lost[None])[0]
    assert found.remark.startswith("a second search (cmaes on 16 windows) led to a loss of ")


def test_a_search_that_ended_well_stays(exact, truth):
    few = exact.thinned(12)
    begun = SearchResult(truth, "converged", np.zeros((0, 2)))
    found = checked_end(few, begun, search_cmaes, 120, 0, ignore)
    assert few(found.point[None])[0] <= few(truth[None])[0]
    assert found.remark == "" or few(found.point[None])[0] < 0.99 * few(truth[None])[0]
