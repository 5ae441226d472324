"""The hybrid simulator behind the contract: what it hands to the surrogate and what it leaves to MuJoCo."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import yaml

from rsr.common.errors import CalibrationError, ScenarioError
from rsr.common.rotations import rotated
from rsr.learned.clash import Adapted, adapt, distil, generate_pairs, load_adapted, load_pairs, save_adapted
from rsr.learned.clash.generate import load_definition_of
from rsr.learned.clash.hybrid.contacts import coarsening
from rsr.learned.clash.hybrid.simulator import HybridSimulator
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import (
    Definition,
    RecordedStrikes,
    sample_strikes,
    strikes_at,
    striking,
    struck_shape,
)
from rsr.simulators import MujocoSimulator, Simulator
from rsr.simulators.strikes import Collider

STEPS = 150
BRAKE_N = -4.0 * 13.0


@pytest.fixture(scope="module")
def model(surrogate, square):
    return adapt(surrogate, StrikeStandIn(square, 2).record(10))


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("strike_square")


@pytest.fixture
def simulator(scenario, model):
    with HybridSimulator(scenario, model) as made:
        yield made


def start_of(strikes, far_m=0.02):
    """States [N, 15] with the nose `far_m` before the impact."""
    states = np.zeros((len(strikes), 15))
    states[:, :2] = rotated(strikes.normal * Definition.nose_radius_m - strikes.point_m, strikes.yaw_rad)
    states[:, 2] = 0.02
    states[:, 3], states[:, 6] = np.cos(strikes.yaw_rad / 2), np.sin(strikes.yaw_rad / 2)
    states[:, 7], states[:, 14] = -far_m, strikes.speed_m_s
    return states


@pytest.fixture
def strikes(square):
    return strikes_at(square, np.array([0.4, 0.6, 0.3]), np.array([0.2, -0.5, 0.6]), np.array([0.1, 0.0, -0.2]))


def test_a_strike_is_seen_handled_and_answered_by_the_surrogate(simulator, model, strikes):
    contract: Simulator = simulator
    states = start_of(strikes)
    path = contract.rollout(states, np.zeros((3, STEPS, 1)), model.identified.values)
    assert path.shape == (3, STEPS + 1, 15)
    assert np.array_equal(path[:, 0], states)
    assert np.isfinite(path).all()
    first = {c.window: c for c in reversed(simulator.collisions)}
    assert set(first) == {0, 1, 2}
    for window, collision in first.items():
        assert collision.time_s == pytest.approx(0.02 / strikes.speed_m_s[window], abs=0.002)
        assert collision.strike.speed_m_s[0] == pytest.approx(strikes.speed_m_s[window], rel=0.02)
        assert collision.strike.angle_rad[0] == pytest.approx(strikes.angle_rad[window], abs=0.02)
        assert collision.strike.point_m[0] == pytest.approx(strikes.point_m[window], abs=0.001)
    for window, collision in first.items():
        # What the model said, less the friction of the few milliseconds until the row; MuJoCo's contact adds nothing.
        soon, said = int(np.ceil(collision.time_s / 0.004)), np.linalg.norm(model(collision.strike)[0, :2])
        moved = np.linalg.norm(path[window, soon, 8:10])
        assert said - 0.004 * 9.81 < moved < said + 1e-6


def test_a_window_does_not_depend_on_its_neighbours(simulator, model, strikes):
    states, actions = start_of(strikes), np.full((3, STEPS, 1), BRAKE_N / 20)
    together = simulator.rollout(states, actions, model.identified.values)
    alone = simulator.rollout(states[1:2], actions[1:2], model.identified.values)
    assert np.array_equal(together[1], alone[0])


def test_without_a_collision_it_is_mujoco_at_a_coarse_step(simulator, scenario, model, strikes):
    states = start_of(strikes)
    states[:, 14] = 0
    states[:, 8:10] = 0.2  # the block slides past
    states[:, :2] += 1.0
    actions, params = np.zeros((3, 20, 1)), scenario.space.nominal
    path = simulator.rollout(states, actions, params)
    assert simulator.collisions == ()
    coarse = copy.copy(scenario.base_model)
    coarse.opt.timestep = 0.002
    with MujocoSimulator(replace(scenario, base_model=coarse)) as plain, MujocoSimulator(scenario) as fine:
        # The solver starts cold in each slice, which moves angular velocities by some 1e-9 rad/s.
        assert path == pytest.approx(plain.rollout(states, actions, params), abs=1e-7)
        assert path[:, :, :2] == pytest.approx(fine.rollout(states, actions, params)[:, :, :2], abs=0.0005)


def test_the_step_is_as_coarse_as_the_other_contacts_allow(scenario):
    hit, ground = (scenario.base_model.pair(name).id for name in ("hit", "ground"))

    def factor(time_s, damping_ratio):
        model = scenario.model(scenario.space.nominal)
        model.pair_solref[ground] = time_s, damping_ratio
        return coarsening(model, np.array([hit]), scenario.substeps)

    # 0.25 ms times eight; a contact of 5 ms and a damping ratio of 0.1 oscillates within half a millisecond.
    assert [factor(0.005, ratio) for ratio in (1.0, 0.3, 0.1)] == [8, 4, 1]
    assert factor(0.002, 1.0) == 2


@pytest.mark.parametrize("damping_ratio", [0.1, 1.0, 3.0])
def test_a_slide_ends_where_fine_steps_end_however_springy_the_table(simulator, scenario, strikes, damping_ratio):
    params = scenario.space.nominal.copy()
    params[scenario.space.names.index("ground_damping_ratio")] = damping_ratio
    states = start_of(strikes)
    states[:, 14], states[:, 8:10], states[:, :2] = 0, [0.3, 0.1], states[:, :2] + 1.0
    actions = np.zeros((3, 60, 1))
    path = simulator.rollout(states, actions, params)
    with MujocoSimulator(scenario) as plain:
        expected = plain.rollout(states, actions, params)
    slid = np.linalg.norm(expected[:, -1, :2] - states[:, :2], axis=1)
    assert (np.linalg.norm(path[:, -1, :2] - expected[:, -1, :2], axis=1) < 0.03 * slid).all()


def test_a_striker_that_passes_above_the_block_strikes_nothing(crate, crate_model):
    states = flying_pucks([0.0], speed_m_s=1.5)
    states[:, 2] = 0.3
    with HybridSimulator(crate, crate_model) as hybrid:
        path = hybrid.rollout(states, np.zeros((1, 12, 0)), crate.space.nominal)
        assert hybrid.collisions == ()
    assert path[0, -1, 0] > 0, "it is over the block, and has not fallen so far"
    assert path[0, :, 7:9] == pytest.approx(0, abs=1e-4)


def test_the_arm_pays_for_the_momentum(simulator, model, strikes):
    states = start_of(strikes)
    path = simulator.rollout(states, np.zeros((3, STEPS, 1)), model.identified.values)
    assert (path[:, -1, 14] < strikes.speed_m_s).all()
    assert (path[:, -1, 14] > 0.8 * strikes.speed_m_s).all()


PUCK = """<mujoco>
  <option timestep="0.001" cone="elliptic" integrator="implicitfast"/>
  <worldbody>
    <geom name="table" type="plane" size="2 2 0.1" contype="0" conaffinity="0"/>
    <body name="puck" pos="-0.2 0 0.01">
      <freejoint name="puck"/>
      <geom name="puck" type="cylinder" size="0.015 0.01" mass="0.4"/>
      <geom name="glider" type="sphere" size="0.002" pos="0 0 -0.008" mass="0.001" contype="0" conaffinity="0"/>
    </body>
    <body name="crate" pos="0 0 0.02">
      <freejoint name="crate"/>
      <geom name="crate" type="box" size="0.03 0.02 0.02" mass="0.15"/>
    </body>
  </worldbody>
  <contact>
    <pair name="slide" geom1="table" geom2="crate" condim="3" friction="0.3 0.3" solref="0.005 1"/>
    <pair name="glide" geom1="table" geom2="puck" condim="1" solref="0.005 1"/>
  </contact>
</mujoco>"""
"""A puck glides over a table and hits a crate: two free bodies, and no stated pair between them."""


@pytest.fixture(scope="module")
def crate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crate")
    (folder / "scene.xml").write_text(PUCK)
    place = {"columns": ["x", "y", "z"], "unit": "m", "frame": "world", "noise": 0.0002}
    document = {
        "name": "crate",
        "title": "A puck hits a crate",
        "mjcf": "scene.xml",
        "control_dt_s": 0.01,
        "episode_steps": 100,
        "gap_channel": "crate",
        "collision": {"striker": "puck", "struck": "crate"},
        "channels": {name: place | {"reads": {"free_joint_position": name}} for name in ("crate", "puck")},
        "parameters": {
            "friction": {
                "nominal": 0.3,
                "lower": 0.05,
                "upper": 1.0,
                "unit": "1",
                "prior_std": 0.5,
                "sets": [{"pair": "slide", "field": "friction"}],
            }
        },
    }
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document))
    return load_scenario(str(folder / "scenario.yaml"))


@pytest.fixture(scope="module")
def crate_model(crate, tmp_path_factory) -> Adapted:
    """A surrogate of what the scenario declares, adapted to strikes that MuJoCo simulated."""
    shape, definition = struck_shape(crate), striking(crate)
    folder = generate_pairs(shape, tmp_path_factory.mktemp("crate-strikes"), 1500, seed=1, definition=definition)
    learnt = distil(shape, load_pairs(folder), 400, seed=1, definition=load_definition_of(folder)).surrogate
    strikes = sample_strikes(shape, 12, np.random.default_rng(2))
    truth = np.tile([0.3, 0.3, 0.3, 1.0], (12, 1))
    return adapt(learnt, RecordedStrikes(strikes, Collider(shape, definition)(strikes, truth).after))


def flying_pucks(offsets_m, speed_m_s=0.6) -> np.ndarray:
    states = np.zeros((len(offsets_m), 26))
    states[:, 0], states[:, 1], states[:, 2], states[:, 3] = -0.15, offsets_m, 0.01, 1.0
    states[:, 9], states[:, 10], states[:, 14] = 0.02, 1.0, speed_m_s
    return states


@pytest.mark.slow
def test_any_scenario_that_declares_a_pair_gets_one(crate, crate_model):
    assert (striking(crate).nose_radius_m, round(striking(crate).striker_mass_kg, 3)) == (0.015, 0.401)
    states = flying_pucks([0.0, 0.01, -0.01, 0.2])  # the last one misses
    with HybridSimulator(crate, crate_model) as hybrid:
        path = hybrid.rollout(states, np.zeros((4, 60, 0)), crate.space.nominal)
        handled = hybrid.collisions
    first = {each.window: each for each in reversed(handled) if each.handled}
    assert set(first) == {0, 1, 2}
    handled = [first[window] for window in range(3)]
    # From -0.15 m to where the puck's rim meets the crate's face, at -0.03 m.
    assert handled[0].time_s == pytest.approx((0.15 - 0.045) / 0.6, abs=0.005)
    assert handled[0].strike.speed_m_s[0] == pytest.approx(0.6, rel=0.03)
    soon = int(handled[0].time_s / 0.01) + 3
    struck, missed = path[:3, soon, 7:14], path[3, -1, 7:14]
    assert (struck[:, 0] > 0.005).all()
    assert np.abs(missed[:2]).max() < 1e-4
    turned = 2 * np.arctan2(struck[:, 6], struck[:, 3])
    assert turned[1] < -0.02
    assert turned[2] > 0.02


def test_every_model_knows_the_striker(crate, crate_model, tmp_path):
    """The law too reckons with a puck of 0.4 kg, not with an arm of 4 kg, also once it was stored."""
    assert crate_model.base.definition == striking(crate)
    assert crate_model.law.striker_mass_kg == striking(crate).striker_mass_kg
    save_adapted(tmp_path, crate_model)
    stored = load_adapted(tmp_path)
    assert stored.base.definition == crate_model.base.definition
    assert stored.law.striker_mass_kg == crate_model.law.striker_mass_kg


def test_what_the_crate_gains_the_puck_loses(crate, crate_model):
    states = flying_pucks([0.008])
    with HybridSimulator(crate, crate_model) as hybrid:
        path = hybrid.rollout(states, np.zeros((1, 30, 0)), crate.space.nominal)
        step = int(np.ceil(hybrid.collisions[0].time_s / 0.01))
    momentum = 0.401 * path[0, :, 14] + 0.15 * path[0, :, 20]
    assert path[0, step, 20] > 0.1
    # Friction with the table takes some in the moments until the row is recorded.
    assert momentum[step] == pytest.approx(momentum[0], rel=0.02)


def test_pushing_is_left_to_mujoco(crate, crate_model):
    """The puck glides without friction, so it catches up with the crate and pushes it: nothing passes through."""
    with HybridSimulator(crate, crate_model) as hybrid:
        path = hybrid.rollout(flying_pucks([0.0]), np.zeros((1, 100, 0)), crate.space.nominal)
        last = hybrid.collisions[-1]
    assert not last.handled
    assert last.strike.speed_m_s[0] < 0.1
    assert (path[0, :, 7] - path[0, :, 0] > 0.03 + 0.015 - 0.002).all()


def test_a_scenario_without_a_pair_and_a_surrogate_of_another_block_are_refused(crate, model):
    with pytest.raises(ScenarioError, match="got no section `collision`"):
        HybridSimulator(load_scenario("push_cube"), model)
    with pytest.raises(CalibrationError, match="a surrogate of 'square'; expected one of 'crate'"):
        HybridSimulator(crate, model)
