"""Every place a parameter can be written to is read back, changes what MuJoCo computes from it, and nothing else."""

import copy
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rsr.common.errors import ScenarioError
from rsr.scenarios.parameters.bindings import bind, in_order, refresh_constants
from rsr.scenarios.parameters.fields import MODEL_FIELDS

MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <option density="1.2" viscosity="0.00002" wind="1 2 3"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <camera name="eye" pos="1 2 3"/>
    <body name="block" pos="0.1 0.2 1">
      <freejoint name="free"/>
      <inertial pos="0.001 0.002 0.003" mass="0.5" diaginertia="0.002 0.0015 0.001"/>
      <geom name="ball" type="sphere" size="0.01" pos="0.04 -0.04 0.03"/>
      <geom name="box" type="box" size="0.05 0.04 0.03"/>
    </body>
    <body name="arm" pos="1 0 1">
      <joint name="hinge" axis="0 1 0" damping="0.1" armature="0.01" frictionloss="0.2" stiffness="3"
        springref="0.3" range="-1 1.5"/><site name="tip" pos="0.1 0.2 0.3"/>
      <inertial pos="0 0 -0.2" mass="1" diaginertia="0.01 0.01 0.001"/>
    </body>
  </worldbody>
  <tendon><fixed name="cord" stiffness="2" damping="0.3" frictionloss="0.1" range="-1 2" springlength="0.2">
    <joint joint="hinge" coef="1"/></fixed></tendon>
  <equality><joint name="lock" joint1="hinge" polycoef="0.1 0.5 0 0 0"/></equality>
  <contact><pair name="touch" geom1="floor" geom2="ball" condim="6"/></contact>
  <actuator><position name="servo" joint="hinge" kp="10" kv="1" timeconst="0.1"
    forcerange="-4 4"/></actuator>
</mujoco>
"""
ELEMENTS = {
    "pair": "touch",
    "geom": "ball",
    "body": "block",
    "joint": "hinge",
    "actuator": "servo",
    "option": "gravity",
    "site": "tip",
    "camera": "eye",
    "tendon": "cord",
    "equality": "lock",
}
WRITTEN = [place for place, field in MODEL_FIELDS.items() if not field.adds]
"""Places whose number the MJCF says; the others are changes to it, 0 there."""


@pytest.fixture(scope="module")
def base() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MJCF)


def written(base: mujoco.MjModel, values: dict, mode: str = "set") -> mujoco.MjModel:
    """The model with {(element name, field): value} written."""
    model = copy.copy(base)
    kinds = {name: kind for kind, name in ELEMENTS.items()} | {"arm": "body", "box": "geom"}
    bindings = [
        bind(base, i, mode, {kinds[name]: name, "field": field}, "here") for i, (name, field) in enumerate(values)
    ]
    for binding in in_order(bindings):
        binding.apply(model, base, list(values.values())[binding.parameter])
    refresh_constants(model)
    return model


@pytest.mark.parametrize(("element", "field"), WRITTEN)
def test_what_is_written_is_read(base, element, field):
    binding = bind(base, 0, "set", {element: ELEMENTS[element], "field": field}, "here")
    (before,) = binding.read(base)
    assert before != 0
    assert binding.read(written(base, {(ELEMENTS[element], field): 1.25 * before})) == pytest.approx(1.25 * before)
    scaled = written(base, {(ELEMENTS[element], field): 1.25}, "scale")
    assert binding.read(scaled) == pytest.approx(1.25 * before)
    assert binding.read(base) == before


def test_only_gravity_is_an_option(base):
    with pytest.raises(ScenarioError, match="got option 'wind'; expected gravity"):
        bind(base, 0, "set", {"option": "wind", "field": "gravity_strength"}, "here")
    np.testing.assert_allclose(written(base, {("gravity", "gravity_strength"): 9.6}).opt.gravity, [0, 0, -9.6])


def test_an_inertia_prevails_over_what_the_mass_does_to_it(base):
    for order in (("mass", "inertia"), ("inertia", "mass")):
        values = {("block", field): {"mass": 1.0, "inertia": 0.003}[field] for field in order}
        model = written(base, values)
        assert model.body("block").mass[0] == 1.0
        np.testing.assert_allclose(model.body("block").inertia, [0.003, 0.00225, 0.0015])


def test_centre_of_mass_moves_the_balance(base):
    model = written(base, {("block", "com_x"): 0.02})
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.body("block").xipos - data.body("block").xpos, [0.02, 0.002, 0.003], atol=1e-12)
    far = written(base, {("arm", "com_distance"): 0.3})
    np.testing.assert_allclose(far.body("arm").ipos, [0, 0, -0.3])
    # Gravity at 90 degrees: m g times the distance.
    data = mujoco.MjData(far)
    data.joint("hinge").qpos[0] = np.pi / 2
    mujoco.mj_forward(far, data)
    assert abs(data.joint("hinge").qfrc_bias[0]) == pytest.approx(9.81 * 0.3)


def test_a_corner_stays_flush_with_the_faces(base):
    model = written(base, {("ball", "corner_radius"): 0.015})
    size = model.geom("ball").size[0]
    assert size == 0.015
    np.testing.assert_allclose(np.abs(model.geom("ball").pos) + size, [0.05, 0.05, 0.04])
    assert model.geom_rbound[model.geom("ball").id] == pytest.approx(0.015)


def test_a_box_keeps_its_proportions(base):
    model = written(base, {("box", "size"): 0.10})
    box = model.geom("box").id
    np.testing.assert_allclose(model.geom_size[box], [0.10, 0.08, 0.06])
    assert model.geom_rbound[box] == pytest.approx(2 * base.geom_rbound[box])


def test_a_centre_of_mass_that_mujoco_compiled_away_is_refused():
    nailed = mujoco.MjModel.from_xml_string(MJCF.replace('pos="0.001 0.002 0.003" ', 'pos="0 0 0" '))
    with pytest.raises(ScenarioError, match="got body 'block' with its centre of mass exactly in its origin") as caught:
        bind(nailed, 0, "set", {"body": "block", "field": "com_z"}, "here")
    assert 'pos="0.000001' in caught.value.next_step


def test_every_place_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    for element, field in MODEL_FIELDS:
        assert f"| `{element}` | `{field}` |" in text, f"docs/scenarios.md says nothing of {field} of {element}"


@pytest.mark.parametrize(
    ("element", "field", "needs"),
    [
        ("actuator", "position_gain", "a <position> servo"),
        ("actuator", "velocity_gain", "a servo"),
        ("actuator", "time_constant", "an actuator with a filter"),
        ("actuator", "force_limit", "an actuator with a forcerange"),
        ("joint", "stiffness", "a hinge or slide with a stiffness"),
        ("joint", "range_upper", "a hinge or slide with a range"),
        ("camera", "x", "a camera of mode fixed"),
    ],
)
def test_a_field_that_its_element_does_not_have_is_refused(element, field, needs):
    plain = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><joint name="hinge"/><site name="tip"/><camera name="eye" mode="track"/>
        <geom size="0.1"/></body></worldbody>
        <actuator><motor name="servo" joint="hinge"/></actuator></mujoco>"""
    )
    with pytest.raises(ScenarioError, match=f"got {field} of {element} '.*'; expected it of {needs}"):
        bind(plain, 0, "set", {element: ELEMENTS[element], "field": field}, "here")


@pytest.mark.slow
def test_c_and_mjx_write_the_further_fields_alike():
    import rsr
    from rsr.simulators import MujocoSimulator
    from rsr.simulators.mjx import MjxSimulator

    scene = """<mujoco><option timestep="0.002"/><worldbody>
    <body name="upper" pos="0 0 1"><joint name="a" axis="0 1 0" stiffness="3" springref="20" armature="0.01"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" contype="0" conaffinity="0"/>
    <body name="lower" pos="0.3 0.01 0.02"><joint name="b" axis="0 1 0" range="-20 20" armature="0.01"/>
    <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" contype="0" conaffinity="0"/></body></body></worldbody>
    <actuator><motor name="m" joint="a" gear="2"/><position name="p" joint="b" kp="30" forcerange="-2 2"/></actuator>
    </mujoco>"""
    fields = ("actuator.gear m", "actuator.force_limit p", "joint.stiffness a", "joint.spring_reference a")
    fields += ("joint.range_upper b", "body.x lower", "body.z lower")
    scenario = rsr.Scenario.from_mjcf(
        mujoco.MjSpec.from_string(scene),
        dt=0.01,
        measured={"q": rsr.joints("a", "b", noise=0.001)},
        command={"u": rsr.actuators("m", "p")},
        tune={each.replace(".", "_").replace(" ", "_"): rsr.scale(*each.split()) for each in fields},
    )
    rng = np.random.default_rng(0)
    states, commands = np.zeros((4, scenario.state_size)), rng.uniform(-1, 1, (4, 30, 2))
    values = rng.uniform(0.7, 1.3, len(scenario.space))
    with MujocoSimulator(scenario, threads=1) as simulator:
        expected = simulator.rollout(states, commands, values)
        got, slopes = MjxSimulator(scenario, threads=1).sensitivities(states, commands, values)
        assert np.abs(got - expected).max() < 1e-8
        for index in range(len(values)):
            moved = np.where(np.arange(len(values)) == index, 1e-5, 0.0)
            up, down = (simulator.rollout(states, commands, values * np.exp(sign * moved)) for sign in (1, -1))
            differences = (up - down) / 2e-5
            assert np.abs(slopes[..., index] - differences).max() < 1e-3 * np.abs(differences).max(), fields[index]


@pytest.mark.parametrize(
    ("element", "field", "leaf"),
    [
        ("geom", "geom_friction[1]", "geom_friction"),
        ("geom", "geom_solmix", "geom_solmix"),
        ("joint", "dof_solref[0]", "dof_solref"),
        ("tendon", "tendon_solref_lim[1]", "tendon_solref_lim"),
        ("equality", "eq_data[2]", "eq_data"),
        ("camera", "cam_fovy", "cam_fovy"),
    ],
)
def test_any_float_is_written_by_mujocos_name(base, element, field, leaf):
    binding = bind(base, 0, "set", {element: ELEMENTS[element], "field": field}, "here")
    model = written(base, {(ELEMENTS[element], field): 0.37})
    assert binding.read(model) == pytest.approx(0.37)
    changed = np.flatnonzero(getattr(model, leaf) != getattr(base, leaf))
    assert len(changed) == 1


@pytest.mark.parametrize(
    ("element", "field", "words"),
    [
        ("geom", "geom_friction", "got geom_friction of an array with 3 columns"),
        ("geom", "geom_friction[7]", "got geom_friction[7] of an array with 3 columns"),
        ("geom", "geom_rbound", "got geom_rbound, which is no float of the MJCF"),
        ("geom", "geom_type", "got geom_type, which is no float of the MJCF"),
        ("body", "body_invweight0[0]", "got body_invweight0, which is no float of the MJCF"),
        ("body", "body_quat[1]", "got body_quat, which the field turn_x, turn_y, turn_z writes"),
        ("joint", "dof_damping", "got dof_damping, which the field damping writes"),
        ("joint", "geom_friction[0]", "got 'geom_friction[0]' of 'joint'; expected one of damping"),
        ("light", "x", "got 'x' of 'light'; expected an element of kind pair, geom, body"),
    ],
)
def test_a_number_that_cannot_be_written_is_refused_with_a_word(base, element, field, words):
    with pytest.raises(ScenarioError) as caught:
        bind(base, 0, "set", {element: ELEMENTS.get(element, "sun"), "field": field}, "here")
    assert words in str(caught.value)


DEFORMATIONS = ("stretch_x", "stretch_y", "stretch_z", "shear_xy", "shear_xz", "shear_yz")


def test_a_deformed_inertia_is_never_unphysical(base):
    """A thousand draws far beyond any prior: a factor of some thousand between the axes."""
    rng, body = np.random.default_rng(0), base.body("arm").id
    for draw in rng.normal(0.0, 2.0, (1000, 6)):
        model = written(base, dict(zip([("arm", field) for field in DEFORMATIONS], draw, strict=True)))
        inertia = np.sort(model.body_inertia[body])
        assert inertia[0] > 0
        assert inertia[0] + inertia[1] >= inertia[2]
        np.testing.assert_allclose(np.linalg.norm(model.body_iquat[body]), 1.0)


def test_deformations_are_those_of_the_mass_distribution(base):
    """Of points of mass: moved by the same map, they have the inertia that is written."""
    body = base.body("block").id
    moments = base.body_inertia[body].sum() / 2 - base.body_inertia[body]
    points = np.concatenate([np.diag(np.sqrt(moments / 2)), -np.diag(np.sqrt(moments / 2))])  # of unit mass
    values = dict(zip(DEFORMATIONS, (0.2, -0.3, 0.1, 0.4, -0.2, 0.3), strict=True))
    for field, value in values.items():
        row, column = ("xyz".index(axis) for axis in (field[-1] * 2 if "stretch" in field else field[-2:]))
        factor = np.eye(3)
        factor[row, column] = np.exp(value) if row == column else value
        points = points @ factor.T
    expected = (np.square(points).sum() * np.eye(3)) - points.T @ points
    model = written(base, {("block", field): value for field, value in values.items()})
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    axes = axes.reshape(3, 3)
    np.testing.assert_allclose(axes @ np.diag(model.body_inertia[body]) @ axes.T, expected, rtol=1e-7, atol=1e-10)
    untouched = written(base, {("block", field): 0.0 for field in DEFORMATIONS})
    np.testing.assert_allclose(np.sort(untouched.body_inertia[body]), np.sort(base.body_inertia[body]), rtol=1e-7)


def test_a_centre_of_mass_leaves_the_shape_where_it_is():
    """MuJoCo compiles a geom that makes up its body to the pose of the body's inertia."""
    base = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body name="a"><joint axis="0 1 0"/><geom name="rod" type="capsule" size="0.02"
        fromto="0 0 0 0.3 0 0" mass="1"/><site name="end" pos="0.15 0 0"/></body></worldbody></mujoco>"""
    )
    model = copy.copy(base)
    bind(base, 0, "set", {"body": "a", "field": "com_x"}, "here").apply(model, base, 0.2)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.geom("rod").xpos, [0.15, 0, 0], atol=1e-12)
    np.testing.assert_allclose(data.body("a").xipos, [0.2, 0, 0], atol=1e-12)
