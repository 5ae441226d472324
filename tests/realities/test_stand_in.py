from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rsr.common.files import sha256
from rsr.common.progress import ignore
from rsr.environments.sensor_model import with_noise
from rsr.realities import CollectionPlan, StandIn
from rsr.realities._truth import draw_truth, hidden_model
from rsr.realities.envelope import SafetyEnvelope
from rsr.scenarios import rms
from rsr.scenarios.built_in.pushing import arm, kinematics
from rsr.scenarios.built_in.pushing.limits import ArmLimits
from rsr.sessions import Episode, Session, check_session, write_session
from rsr.simulators import MujocoSimulator
from tests.push_samples import ScriptedPusher, push_cube

PLAN = CollectionPlan("session-001", episodes=12, seed=3, policy_sha256="abc")
GAP_ROWS = 41  # 2 s
SEEDS = (0, 1, 2)


class Wild:
    """Asks for whatever, sometimes for nothing that is a number."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def act(self, observation: np.ndarray) -> np.ndarray:
        action = self._rng.choice([-1.0, 1.0], (len(observation), 6))
        action[self._rng.uniform(size=len(action)) < 0.05] = np.nan
        return action


@pytest.fixture(scope="module")
def sessions() -> dict[int, Session]:
    return {seed: StandIn(push_cube(), seed).collect(ScriptedPusher(), PLAN, ignore) for seed in SEEDS}


def stacked(session: Session, channel: str) -> np.ndarray:
    return np.stack([episode[channel] for episode in session.episodes])


def test_session_fits_its_scenario(sessions):
    for session in sessions.values():
        check_session(session, push_cube().channels)
        assert len(session.episodes) == PLAN.episodes
        assert all(len(episode) == push_cube().episode_steps + 1 for episode in session.episodes)


def test_card_says_that_it_is_simulated(sessions):
    card = sessions[0].card
    assert card.simulated is True
    assert (card.reality, card.scenario, card.session) == ("stand_in", "push_cube", "session-001")
    assert card.policy_sha256 == "abc"
    assert card.limits == SafetyEnvelope.of(push_cube()).stated()


def test_same_seed_same_bytes(sessions, tmp_path):
    again = StandIn(push_cube(), 0).collect(ScriptedPusher(), PLAN, ignore)
    write_session(tmp_path / "first", sessions[0])
    write_session(tmp_path / "second", again)
    assert sha256(tmp_path / "first") == sha256(tmp_path / "second")


def test_another_plan_is_another_session_of_the_same_world(sessions):
    other = StandIn(push_cube(), 0).collect(ScriptedPusher(), replace(PLAN, seed=4), ignore)
    assert (stacked(other, "block_position")[:, 0] != stacked(sessions[0], "block_position")[:, 0]).all()


def test_every_stand_in_seed_is_another_world_within_the_scenarios_bounds():
    space = push_cube().space
    truths = [draw_truth(seed, push_cube()) for seed in range(20)]
    vectors = np.array([space.vector(truth.parameters) for truth in truths])  # raises outside the bounds
    assert all(len(np.unique(column)) == len(truths) for column in vectors.T)
    assert set(truths[0].parameters) == set(space.names)
    # Far from what the loop begins with: a sixth of the value or more, in every parameter but softness.
    away = np.abs(vectors - space.nominal) / np.maximum(space.nominal, 0.05)
    assert (away[:, [name != "contact_softness" for name in space.names]].min(axis=0) > 1 / 6).all()
    assert draw_truth(5, push_cube()) == truths[5]


def test_effects_beyond_any_parameter_are_there():
    scenario, truth = push_cube(), draw_truth(0, push_cube())
    hidden, nominal = hidden_model(scenario, truth), scenario.model(scenario.space.vector(truth.parameters))
    table = mujoco.mj_name2id(hidden, mujoco.mjtObj.mjOBJ_PAIR, "table_cube")
    along, across = hidden.pair_friction[table, :2]
    assert along / across == pytest.approx(truth.anisotropy**2)
    assert np.sqrt(along * across) == pytest.approx(truth.parameters["table_friction"])
    assert (hidden.dof_frictionloss[6:] > 0).all()
    np.testing.assert_array_equal(nominal.dof_frictionloss, 0)
    assert hidden.opt.cone != nominal.opt.cone
    assert hidden.opt.timestep < nominal.opt.timestep
    assert 0 < hidden.body_gravcomp.max() < 1
    assert truth.delay_jitter_s > 0


def replay_gap_m(simulator: MujocoSimulator, episodes: tuple[Episode, ...], params: np.ndarray) -> float:
    """RMS distance between recorded blocks and those of an open-loop replay from the recorded starts, over 2 s."""
    predicted = replay(simulator, episodes, params)
    real = np.stack([episode["block_position"][:GAP_ROWS] for episode in episodes])
    return rms(predicted[:, :GAP_ROWS, :3] - real)


def replay(simulator: MujocoSimulator, episodes: tuple[Episode, ...], params: np.ndarray) -> np.ndarray:
    scenario = push_cube()
    starts = np.stack([scenario.states(episode)[0] for episode in episodes])
    starts[:, scenario.base_model.nq :] = 0.0  # every episode begins at rest
    commands = np.stack([scenario.commands(episode) for episode in episodes])
    before = np.repeat(starts[:, None, 7:13], scenario.history_steps, axis=1)
    return simulator.rollout(starts, np.concatenate([before, commands], axis=1), params)


def measured(states: np.ndarray, like: Episode, rng: np.random.Generator) -> Episode:
    """What the stand-in's sensors would say of a trajectory."""
    channels = push_cube().measure(states)
    for name in ("joint_position", "block_position"):
        channels[name] = with_noise(push_cube().observed_channel(name), channels[name], rng)
    return replace(like, values={**like.values, **channels})


@pytest.mark.parametrize("seed", SEEDS)
def test_no_parameter_closes_the_gap(sessions, seed):
    """At the true parameters, the simulator explains its own data to sensor noise, and the stand-in's it does not.

    So what remains is not a matter of parameters: a stand-in that tuning could match exactly would prove nothing.
    Measured: 11-18 mm against 3-4 mm (the noise of 1.2 mm, and what noisy starts make of it).
    """
    truth, episodes = draw_truth(seed, push_cube()), sessions[seed].episodes
    true = push_cube().space.vector(truth.parameters)
    with MujocoSimulator(push_cube()) as simulator:
        gap_m = replay_gap_m(simulator, episodes, true)
        simulated = replay(simulator, episodes, true)
        rng = np.random.default_rng(0)
        own = tuple(measured(s, like, rng) for s, like in zip(simulated, episodes, strict=True))
        own_gap_m = replay_gap_m(simulator, own, true)
        nominal_gap_m = replay_gap_m(simulator, episodes, push_cube().space.nominal)
    assert gap_m > 2 * own_gap_m
    assert gap_m > 0.005
    assert nominal_gap_m > gap_m, "and yet the true parameters are better than the nominal ones"


def test_what_was_sent_respects_the_envelope():
    limits = ArmLimits(joint_speed_rad_s=1.2)
    envelope = SafetyEnvelope(limits)
    session = StandIn(push_cube(), 2, envelope).collect(Wild(), PLAN, ignore)
    sent, clipped = stacked(session, "joint_setpoint"), stacked(session, "clipped")
    step = limits.joint_speed_rad_s * push_cube().control_dt_s
    assert np.isfinite(sent).all()
    assert (np.abs(np.diff(sent, axis=1)) <= step + 1e-12).all()
    assert ((sent >= kinematics.JOINT_LOWER_RAD) & (sent <= kinematics.JOINT_UPPER_RAD)).all()
    tip = kinematics.fingertip(sent)
    assert ((tip >= limits.tip_lower_m) & (tip <= limits.tip_upper_m)).all()
    assert (clipped > 0).mean() > 0.5, "the wild policy is cut"
    check_session(session, push_cube().channels)  # though it asked for NaN: that is in the tags
    for episode in session.episodes:
        rows = [int(row) for part in episode.tags["cut_not_a_number"].split(", ") for row in part.split("-")]
        np.testing.assert_array_equal(episode["action"][rows], 0.0)
        np.testing.assert_array_equal(episode["clipped"][rows], 1.0)
    assert "not_a_number in 12" in session.card.notes
    assert clipped.max() <= 1.0 + 1e-12


def test_what_was_not_cut_is_what_the_policy_asked_for(sessions):
    session = sessions[1]
    sent, clipped = stacked(session, "joint_setpoint")[:, :-1], stacked(session, "clipped")[:, :-1, 0]
    measured_joints, action = stacked(session, "joint_position")[:, :-1], stacked(session, "action")[:, :-1]
    wanted = arm.ACTION.command(action[:, 1:], sent[:, :-1], {"joint_position": measured_joints[:, 1:]})
    untouched = clipped[:, 1:] == 0
    assert untouched.mean() > 0.5, "until the pusher, which aims at nothing, has the cube where the arm is held"
    np.testing.assert_allclose(sent[:, 1:][untouched], wanted[untouched], atol=1e-12)
    assert (np.abs(sent[:, 1:] - wanted)[~untouched].max(axis=-1) > 0).all()


def test_the_last_row_repeats_the_command_in_force(sessions):
    for channel in ("joint_setpoint", "action", "clipped", "target_position"):
        rows = stacked(sessions[0], channel)
        np.testing.assert_array_equal(rows[:, -1], rows[:, -2])


def test_sensors_are_noisy_and_orientations_stay_of_unit_norm(sessions):
    joints, block = stacked(sessions[0], "joint_position"), stacked(sessions[0], "block_position")
    stated = push_cube().observed_channel("block_position").noise
    # Until the finger arrives nothing moves the cube: what differs from row to row is noise.
    resting = np.diff(block[:, :4, :2], axis=1) / np.sqrt(2)
    assert resting.std() == pytest.approx(stated, rel=0.3)
    np.testing.assert_allclose(np.linalg.norm(stacked(sessions[0], "block_orientation"), axis=-1), 1.0)
    np.testing.assert_allclose(stacked(sessions[0], "tip_position"), kinematics.fingertip(joints))


def test_stand_ins_stay_what_they_are():
    """Campaigns and benchmarks were judged on them: another order of draws would be another robot."""
    truth = draw_truth(0, push_cube())
    assert truth.parameters == {
        "table_friction": 0.05201850481827675,
        "finger_friction": 0.28216368898463334,
        "cube_mass": 0.35346633659532567,
        "joint_damping": 2.4820581760315403,
        "actuator_gain": 0.4654183737818252,
        "control_delay": 0.10573154684540319,
        "contact_softness": 0.02062743682646193,
    }
    assert (truth.anisotropy, truth.dry_friction) == (1.2188387638845173, 0.43806100831172357)
    assert (truth.delay_jitter_s, truth.gravity_share) == (0.005, 0.9743158864236172)
    assert (truth.noise_factor, truth.timestep_s) == (1.0, 0.002)
    losses = hidden_model(push_cube(), truth).dof_frictionloss[6:]
    np.testing.assert_array_equal(losses, truth.dry_friction / np.array([1, 1, 1, 3, 3, 3]))
