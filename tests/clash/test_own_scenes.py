"""Scenes as a user would write them, from YAML alone: a hammer on a bottle, a pad on a box, a cue on a disc."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from rsr.common.errors import SessionError
from rsr.learned.clash import ContactScene, adapt_scene, read_scene_strikes, simulate
from rsr.scenarios import load_scenario

YAML = """name: own
title: A scene of one's own
mjcf: scene.xml
control_dt_s: 0.004
episode_steps: 100
gap_channel: struck
collision: {{base: scene, striker: {striker}, struck: {struck}, plane: {plane}}}
channels:
  struck: {{columns: [x, y, z], unit: m, frame: world, noise: 0.0003, reads: {{free_joint_position: free}}}}
parameters:
  friction:
    {{nominal: 0.4, lower: 0.02, upper: 1.5, unit: "1", prior_std: 1.0,
      sets: [{{geom: {striker}, field: "geom_friction[0]"}}]}}
"""
XML = """<mujoco><option timestep="0.001" cone="elliptic" integrator="implicitfast"/>
  <worldbody><geom type="plane" size="1 1 0.1"/>{striker}{struck}</worldbody></mujoco>"""


@dataclass(frozen=True)
class Own:
    """What is struck by what, in which plane, on which joint; at a metre a second the joint moves at `rate`."""

    striker: str
    struck: str
    plane: str
    joint: str
    begin: float
    rate: float


OWN = {
    "hammer": Own("head", "glass", "xz", "swing", 0.15, -1 / 0.28),
    "pad": Own("face", "box", "xy", "rail", 0.0, 1.0),
    "cue": Own("tip", "disc", "xy", "along", 0.0, 1.0),
}
STRIKERS = {
    "hammer": """<body pos="-0.03 0 0.45"><joint name="swing" type="hinge" axis="0 1 0"/>
      <geom name="head" type="cylinder" fromto="-0.04 0 -0.28 0.02 0 -0.28" size="0.015" mass="0.4"/></body>""",
    "pad": """<body pos="-0.03 0 0.03"><joint name="rail" type="slide" axis="1 0 0"/>
      <geom name="face" type="box" size="0.01 0.03 0.02" mass="2"/></body>""",
    "cue": """<body pos="-0.27 0 0.015"><joint name="along" type="slide" axis="1 0 0"/>
      <geom name="tip" type="capsule" fromto="-0.3 0 0 0.2 0 0" size="0.006" mass="0.5"/></body>""",
}
STRUCK = {
    "hammer": """<body pos="0.03 0 0.1"><freejoint name="free"/><geom name="glass" type="cylinder" size="0.035 0.1"
      mass="0.4"/><geom name="neck" type="cylinder" pos="0 0 0.14" size="0.015 0.04" mass="0.1"/></body>""",
    "pad": """<body pos="0.05 0 0.03"><freejoint name="free"/><geom name="box" type="box" size="0.05 0.04 0.03"
      mass="0.3"/></body>""",
    "cue": """<body pos="0 0 0.012"><freejoint name="free"/><geom name="disc" type="cylinder" size="0.04 0.012"
      mass="0.15"/></body>""",
}


def scene_of(name: str, folder: Path) -> ContactScene:
    own = OWN[name]
    (folder / "scene.xml").write_text(XML.format(striker=STRIKERS[name], struck=STRUCK[name]))
    (folder / "scenario.yaml").write_text(YAML.format(striker=own.striker, struck=own.struck, plane=own.plane))
    return ContactScene(load_scenario(folder))


def recorded(name: str, scene: ContactScene, count: int) -> dict[str, np.ndarray]:
    """Impacts as another MuJoCo has them: stiffer and bouncier contacts, a tenth of a millisecond, motion capture."""
    model, rng = mujoco.MjModel.from_xml_path(str(scene.scenario.mjcf)), np.random.default_rng(5)
    model.opt.timestep = 1e-4
    model.geom_solref[:], model.geom_friction[:, 0] = [0.002, 0.35], 0.25
    rows = [struck(OWN[name], model, rng, name == "hammer") for _ in range(count)]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def struck(own: Own, model: mujoco.MjModel, rng: np.random.Generator, upright: bool) -> dict[str, float]:
    """Let the striker come nearer at some speed, and measure before it touches and after they have parted."""
    data, joint = mujoco.MjData(model), model.joint(own.joint)
    at, dof = joint.qposadr[0], joint.dofadr[0]
    body = int(model.geom(own.struck).bodyid[0])
    place = int(model.jnt_qposadr[model.body_jntadr[body]])
    pair = [model.geom(each).id for each in (own.striker, own.struck)]
    if not upright:
        askew = rng.uniform(-0.06, 0.06)
        data.qpos[place + 1] = rng.uniform(-0.02, 0.02)
        data.qpos[place + 3 : place + 7] = np.cos(askew / 2), 0, 0, np.sin(askew / 2)
    data.qpos[at], speed = own.begin, rng.uniform(0.25, 0.8)
    while mujoco.mj_geomDistance(model, data, *pair, 1.0, None) > 3e-4 or data.time == 0:
        data.qvel[dof] = speed * own.rate
        mujoco.mj_step(model, data)
    before, rail = measured(own, model, data, body), (data.qpos[at], data.qvel[dof])
    touched, apart = False, 0
    while not touched or apart < 40:
        mujoco.mj_step(model, data)
        touching = any(set(contact.geom) == set(pair) and contact.dist < 0 for contact in data.contact)
        touched, apart = touched or touching, 0 if touching else apart + 1
    after = measured(own, model, data, body)
    one, other = own.plane
    names = (one, other, "turn", f"v{one}", f"v{other}", "spin")
    noise = rng.normal(size=6) * [0.0003, 0.0003, 0.004, 0.006, 0.006, 0.1]
    row = dict(zip(names, before + noise * [1, 1, 1, 0, 0, 0], strict=True))
    row |= {own.joint: rail[0], f"{own.joint}_speed": rail[1]}
    return row | dict(zip([f"post_{name}" for name in names[3:]], after[3:] + noise[3:], strict=True))


def measured(own: Own, model: mujoco.MjModel, data: mujoco.MjData, body: int) -> np.ndarray:
    """Centre of mass and turn in the plane, and their velocities, [6]."""
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    axes, sign = ([0, 2], -1) if own.plane == "xz" else ([0, 1], 1)  # from x to z is against the rotation about y
    turn = np.zeros(3)
    mujoco.mju_quat2Vel(turn, data.xquat[body], 1.0)
    about = 1 if own.plane == "xz" else 2
    spin = data.cvel[body, about]
    return np.array([*data.xipos[body][axes], sign * turn[about], *data.subtree_linvel[body][axes], sign * spin])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), [("hammer", 0.4), ("pad", 0.8), ("cue", 0.3)])
def test_ten_impacts_tell_of_others(name, share, tmp_path):
    scene = scene_of(name, tmp_path)
    table = tmp_path / "impacts.csv"
    pyarrow.csv.write_csv(pa.table(recorded(name, scene, 20)), table)
    impacts = read_scene_strikes(table, scene)
    few, others = impacts.take(slice(0, 10)), impacts.take(slice(10, None))
    weights = np.array([1, 1, scene.shape.gyration_m])

    def missed(gained):
        return float(np.linalg.norm((gained - others.gained) * weights, axis=1).mean())

    model = adapt_scene(scene, few)
    assert missed(model(others.states)) < share * missed(simulate(scene, model.values, others.states).gained)


def test_turns_about_the_wrong_axis_are_named(tmp_path):
    scene = scene_of("hammer", tmp_path)
    columns = recorded("hammer", scene, 8)
    turned = {name: -values if name in ("turn", "post_spin") else values for name, values in columns.items()}
    table = tmp_path / "impacts.csv"
    pyarrow.csv.write_csv(pa.table(turned), table)
    with pytest.raises(SessionError, match="Turns and spins run from x to z"):
        read_scene_strikes(table, scene)
