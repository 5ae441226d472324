"""Forward kinematics of a batch against MuJoCo's own."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from rsr.scenarios import load_scenario
from rsr.scenarios.motion.kinematics import site_positions

EVERYTHING = """
<mujoco>
  <worldbody>
    <site name="still" pos="0.1 0.2 0.3"/>
    <body name="base" pos="1 2 3" euler="10 20 30">
      <freejoint name="base"/>
      <geom size="0.1"/>
      <body name="turret" pos="0.1 0 0.2" euler="0 40 0">
        <joint name="pan" axis="1 1 0" pos="0.02 0.03 0.01" ref="0.3"/>
        <joint name="lift" type="slide" axis="0 1 2" ref="0.1"/>
        <geom size="0.1"/>
        <site name="eye" pos="0.05 0.02 0.1"/>
        <body name="wrist" pos="0 0.2 0.1">
          <joint name="wrist" type="ball" pos="0 -0.05 0"/>
          <geom size="0.1"/>
          <body name="fixed" pos="0.1 0.1 0" euler="5 0 90">
            <geom size="0.05"/>
            <site name="tool" pos="0 0 0.2"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def mujoco_says(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    data, places = mujoco.MjData(model), []
    for row in qpos:
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        places.append(data.site_xpos.copy())
    return np.array(places)


@pytest.mark.parametrize(
    "model",
    [mujoco.MjModel.from_xml_string(EVERYTHING), load_scenario("push_cube").base_model],
    ids=["every kind of joint", "an arm of six"],
)
def test_sites_are_where_mujoco_puts_them(model):
    rng = np.random.default_rng(0)
    qpos = rng.normal(0, 1, (30, model.nq))  # quaternions not of unit length: MuJoCo normalises them, too
    expected = mujoco_says(model, qpos)
    np.testing.assert_allclose(site_positions(model, qpos, range(model.nsite)), expected, atol=1e-12)
    np.testing.assert_allclose(site_positions(model, qpos, [model.nsite - 1])[:, 0], expected[:, -1], atol=1e-12)
