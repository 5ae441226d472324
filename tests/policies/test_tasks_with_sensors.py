"""Worlds of a task whose channels read MuJoCo's sensors and whose servos have internal state."""

from __future__ import annotations

import mujoco
import numpy as np
from own_arm import write_own_arm

from rsr.common.progress import ignore
from rsr.environments import World
from rsr.environments.gymnasium import TaskEnv
from rsr.environments.vector import TaskVecEnv
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import Scenario, load_scenario

CHANNEL = "  tip: {columns: [x, y, z], unit: m, frame: world, reads: {sensor: [tip]}, noise: 0.001}\n  q_goal:"
SENSOR = """
adds:
  lower: |
    <site name="tip" pos="0.25 0 0"/>
  mjcf: |
    <sensor><framepos name="tip" objtype="site" objname="tip"/></sensor>
"""


def sensing(folder) -> Scenario:
    path = write_own_arm(folder)
    path.write_text(path.read_text().replace("  q_goal:", CHANNEL) + SENSOR)
    arm = (folder / "arm.xml").read_text()
    (folder / "arm.xml").write_text(arm.replace('kp="25"', 'kp="25" timeconst="0.08"'))
    return load_scenario(path)


def test_a_world_reads_sensors_where_it_stands(tmp_path):
    scenario = sensing(tmp_path)
    model, rng = scenario.base_model, np.random.default_rng(1)
    data = mujoco.MjData(model)
    with World.simulated(scenario, scenario.space.nominal, 4) as world:
        world.place(np.arange(4), world.task.reset(rng, 4))
        for _ in range(15):
            for copy in range(4):
                data.qpos[:] = world.states[copy, : model.nq]
                mujoco.mj_kinematics(model, data)
                np.testing.assert_allclose(world.channels["tip"][copy], data.site("tip").xpos, atol=1e-12)
            world.step(rng.uniform(-1, 1, (4, 3)))


def test_filtered_servos_begin_at_rest_and_one_copy_goes_the_way_of_many(tmp_path):
    scenario = sensing(tmp_path)
    single = TaskEnv(scenario, noisy=False)
    batched = TaskVecEnv(scenario, scenario.space.nominal, 1, seed=3, stagger=False, noisy=False)
    seen, _ = single.reset(seed=3)
    np.testing.assert_allclose(batched.reset()[0], seen)
    rng = np.random.default_rng(2)
    for _ in range(20):
        action = rng.uniform(-1, 1, 3)
        others = batched.step(action[None])[0]
        np.testing.assert_allclose(others[0], single.step(action)[0], atol=1e-5)
    batched.close()


def test_the_stand_in_records_the_sensor(tmp_path):
    class Still:
        def act(self, observation: np.ndarray) -> np.ndarray:
            return np.zeros((len(observation), 3))

    session = StandIn(sensing(tmp_path), 2).collect(Still(), CollectionPlan("session-001", 2, seed=1), ignore)
    tips = np.stack([episode["tip"][0] for episode in session.episodes])
    assert (np.linalg.norm(tips - [0.0, 0.0, 1.0], axis=1) < 0.56).all()
    assert np.ptp(tips, axis=0).max() > 1e-3
