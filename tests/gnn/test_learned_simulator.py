"""The learned simulator behind the contract, pushes and policies through it, with a network taught for seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.baselines.gnn_policy import PushPolicy, distances, learn_by_gradients, learn_from_rewards, sample_tasks
from benchmarks.baselines.gnn_scenes import cube_world, pair_task, rollout_in_mujoco, standing_still
from rsr.common.errors import ConfigError, ScenarioError
from rsr.common.rotations import about_z
from rsr.learned.gnn.contact_network import ContactNetwork, rollout
from rsr.learned.gnn.evaluation import errors_of
from rsr.learned.gnn.pushes import PushTask, Rollout, carry_out, optimise_push, pushed, sample_starts
from rsr.learned.gnn.simulator import GnnSimulator, predict
from rsr.learned.gnn.storage import new_network
from rsr.learned.gnn.training import TrainingSettings, train_network
from rsr.learned.gnn.trajectories import FRAME_S, Trajectory
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.two_cubes import SIDE_M, ContactParameters

CONTACT = ContactParameters(mu=0.3, solref=(0.01, 0.8))
GAP_M = 0.03


def recorded(count: int, seed: int, frames: int = 24) -> list[Trajectory]:
    """Pushes along x, a little aside, simulated by the teacher."""
    rng = np.random.default_rng(seed)
    poses = np.tile([0.0, 0, SIDE_M / 2, 1, 0, 0, 0], (count, 2, 1))
    poses[:, 1, 0], poses[:, 1, 1] = SIDE_M + rng.uniform(0.02, 0.05, count), rng.uniform(-0.02, 0.02, count)
    poses[..., 3:] = about_z(rng.normal(0, 0.1, (count, 2)))
    velocity = np.column_stack([rng.uniform(0.6, 1.4, count), rng.normal(0, 0.1, count)])
    start = pushed(torch.as_tensor(poses), 0, torch.as_tensor(velocity), FRAME_S).numpy()
    after = rollout_in_mujoco(cube_world(), CONTACT, start, frames)
    return [Trajectory(cube_world(), each, name=f"push {index}") for index, each in enumerate(after)]


@pytest.fixture(scope="module")
def network() -> ContactNetwork:
    settings = TrainingSettings(steps=180, batch=32, unroll=3, long_from=0.7, rate=4e-3)
    return train_network(recorded(100, seed=0), settings)


@pytest.mark.slow
def test_it_beats_standing_still_by_far_on_pushes_it_never_saw(network):
    judges = recorded(24, seed=1)
    learnt = errors_of(judges, predict(network, judges))
    assert learnt.position_mm() < 0.25 * errors_of(judges, standing_still(judges)).position_mm()


def test_trajectories_of_any_length_and_world_are_predicted_together(network):
    short, long = recorded(1, seed=2, frames=6)[0], recorded(1, seed=3, frames=20)[0]
    alone = Trajectory(cube_world(1), short.poses[:, :1], name="alone")
    together = predict(network, [long, short, alone])
    assert [each.shape for each in together] == [(20, 2, 7), (6, 2, 7), (6, 1, 7)]
    for index, trajectory in enumerate((long, short, alone)):
        np.testing.assert_allclose(together[index], predict(network, [trajectory])[0], atol=1e-5)
        np.testing.assert_array_equal(together[index][:2], trajectory.poses[:2])


def test_another_frame_time_is_refused(network):
    fast = replace(recorded(1, seed=5)[0], dt_s=1 / 120)
    with pytest.raises(ConfigError, match=r"got 8\.333 ms between frames; expected 16\.67 ms, at which the network"):
        predict(network, [fast])


def test_behind_the_contract_states_go_in_and_come_out(network):
    scenario = load_scenario("two_cubes")
    state = np.concatenate([scenario.base_model.qpos0, np.zeros(12)])
    state[:2], state[7:9] = [0, 0], [SIDE_M + GAP_M, 0]
    states = np.stack([state, state])
    states[1, 14] = 1.2
    with GnnSimulator(scenario, network) as simulator:
        found = simulator.rollout(states, np.zeros((2, 20, 0)), scenario.space.nominal)
        again = simulator.rollout(states, np.zeros((2, 20, 0)), np.tile(scenario.space.nominal, (2, 1)))
    assert found.shape == (2, 21, 26)
    np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(found[:, 0], states)
    np.testing.assert_allclose(found[0, -1, :14], state[:14], atol=0.02)  # what rests stays
    assert found[1, -1, 7] - state[7] > 0.03  # what is struck goes
    moved = np.diff(found[1, :, 7:9], axis=0)
    np.testing.assert_allclose(found[1, 1:, 20:22], moved / FRAME_S, atol=1e-9)


def test_an_actuated_scenario_is_refused(network):
    with pytest.raises(ScenarioError, match=r"scenario push_cube, learned simulator: got \d+ actuators"):
        GnnSimulator(load_scenario("push_cube"), network)


def test_gradients_reach_start_forces_masses_and_weights(network):
    task = pair_task(GAP_M, (0.2, 0.0))
    # A network taught for seconds has bumps, so what is known of its slopes is known of their mean over speeds.
    velocity = torch.tensor([[speed, 0.05] for speed in np.linspace(0.6, 1.4, 9).tolist()], requires_grad=True)
    forces = torch.zeros(9, 12, 2, 3, requires_grad=True)
    masses = torch.tensor([0.15, 0.15], requires_grad=True)
    network.requires_grad_(True)
    start = pushed(task.poses.expand(9, -1, -1), 0, velocity, FRAME_S)
    poses = rollout(network, cube_world(), start, 12, masses_kg=masses, forces_n=forces)
    poses[:, -1, 1, 0].sum().backward()
    network.requires_grad_(False)
    weights = [each.grad for each in network.parameters() if each.grad is not None]
    assert weights
    for gradient in (velocity.grad, forces.grad, masses.grad, *weights):
        assert torch.isfinite(gradient).all()
    assert velocity.grad[:, 0].mean() > 0  # harder is farther
    assert forces.grad[:, :, 0, 0].sum() > 0
    assert masses.grad[1] < 0  # heavier is not
    network.zero_grad()


def test_a_push_says_velocities_as_differences():
    poses = torch.tensor([[[0.1, 0.2, 0.04, 1.0, 0, 0, 0], [0.3, 0.2, 0.04, 1.0, 0, 0, 0]]])
    before, after = pushed(poses, 0, torch.tensor([[0.6, -0.3, 2.0]]), 0.02)[0]
    torch.testing.assert_close(after, poses[0])
    torch.testing.assert_close(before[1], poses[0, 1])
    torch.testing.assert_close(before[0, :3], torch.tensor([0.088, 0.206, 0.04]))
    torch.testing.assert_close(before[0, 3:], torch.as_tensor(about_z(-0.04), dtype=torch.float32))


@pytest.mark.slow
def test_gradient_steps_bring_the_push_nearer_from_every_start(network):
    task = pair_task(GAP_M, (SIDE_M + GAP_M + 0.06, 0.0))
    starts = torch.tensor([[0.9, 0.03], [1.4, -0.03]])
    found = optimise_push(lambda start: rollout(network, cube_world(), start, 24), task, starts, steps=5)
    assert found.trace_m.shape == (2, 6)
    torch.testing.assert_close(found.tried_m_s[:, 0], starts)
    assert (found.distance_m < 0.5 * found.trace_m[:, 0]).all()
    torch.testing.assert_close(found.distance_m, found.trace_m.min(dim=1).values)


def test_starts_are_drawn_towards_the_struck_body():
    task = pair_task(GAP_M, (0.2, 0.0))
    starts = sample_starts(task, 50, seed=0)
    torch.testing.assert_close(starts, sample_starts(task, 50, seed=0))
    assert (starts[:, 0] > 0.5).all()
    assert (starts[:, 1].abs() < 0.5 * starts[:, 0]).all()


@pytest.mark.parametrize(
    ("starts", "words"),
    [(torch.zeros(0, 2), "at least one velocity"), (torch.tensor([[float("nan"), 0]]), "finite velocities")],
)
def test_starts_that_are_none_are_refused(network, starts, words):
    task = pair_task(GAP_M, (0.2, 0.0))
    with pytest.raises(ConfigError, match=words):
        optimise_push(lambda start: rollout(network, cube_world(), start, 4), task, starts)


@pytest.mark.parametrize(("target", "steps"), [((0.2, 0.0), -1), ((float("nan"), 0.0), 3)])
def test_a_search_for_nothing_is_refused(network, target, steps):
    task = pair_task(GAP_M, target)
    with pytest.raises(ConfigError, match=rf"got {steps} steps to the target .*; expected 0 steps or more"):
        optimise_push(lambda start: rollout(network, cube_world(), start, 4), task, torch.ones(1, 2), steps)


def test_a_body_does_not_push_itself(network):
    task = replace(pair_task(GAP_M, (0.2, 0.0)), struck=0)
    with pytest.raises(ConfigError, match="expected two different bodies"):
        optimise_push(lambda start: rollout(network, cube_world(), start, 4), task, torch.ones(1, 2))


def test_a_push_of_a_scenario_is_carried_out_by_its_mujoco():
    scenario = load_scenario("two_cubes")
    params = scenario.space.vector({"mu": 0.3})
    task = PushTask.of(scenario, params, (0.15, 0.0))
    np.testing.assert_allclose(task.poses[:, 0], [-SIDE_M, SIDE_M])
    speeds = torch.tensor([[0.4, 0.0], [1.0, 0.0]])  # the first is too slow to get there
    missed = carry_out(scenario, params, task, speeds, 40)
    assert missed[0] == pytest.approx(0.15 - SIDE_M, abs=2e-3)
    assert missed[1] < missed[0]
    with pytest.raises(ScenarioError, match="got a scenario of one free body"):
        PushTask.of(load_scenario("cube_toss"), load_scenario("cube_toss").space.nominal, (0.2, 0.0))


def chain(network: ContactNetwork, frames: int) -> Rollout:
    return lambda start: rollout(network, cube_world(3), start, frames)


def test_equal_seeds_learn_equal_policies(network):
    one, other = (learn_by_gradients(chain(network, 8), FRAME_S, steps=1, batch=2, seed=4) for _ in range(2))
    for first, second in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0)
    by_rewards = learn_from_rewards(chain(network, 8), FRAME_S, steps=1, batch=3)
    assert all(torch.isfinite(each).all() for each in by_rewards.parameters())


@pytest.mark.slow
def test_a_policy_gets_better_by_gradients(network):
    tasks = sample_tasks(24, seed=9)

    def missed(policy: PushPolicy) -> float:
        with torch.no_grad():
            return float(distances(chain(network, 30), tasks, policy(tasks.observations), FRAME_S).mean())

    learnt = learn_by_gradients(chain(network, 30), FRAME_S, steps=15, batch=12)
    assert missed(learnt) < 0.9 * missed(learn_by_gradients(chain(network, 30), FRAME_S, steps=0))


def test_quarter_turns_of_a_cube_look_alike_to_the_policy():
    tasks = sample_tasks(3, seed=1)
    turned = tasks.poses.clone()
    half = torch.as_tensor(about_z(np.pi / 2), dtype=turned.dtype)
    w, z = turned[:, 1, 3].clone(), turned[:, 1, 6].clone()
    turned[:, 1, 3], turned[:, 1, 6] = w * half[0] - z * half[3], w * half[3] + z * half[0]
    torch.testing.assert_close(replace(tasks, poses=turned).observations, tasks.observations, atol=1e-4, rtol=0)


def test_an_untrained_network_is_finite_too():
    fresh = new_network(seed=1)
    assert all(np.isfinite(poses).all() for poses in predict(fresh, recorded(2, seed=6)))
