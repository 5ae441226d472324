"""The parts of the differentiable simulator: flags, delay, derived constants, refusals, the dump of a NaN."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

from rsr.common.errors import ScenarioError
from rsr.scenarios import Scenario, load_scenario
from rsr.simulators import mujoco as delay
from rsr.simulators.mjx import GradientHealth, MjxSimulator, cache_folder
from rsr.simulators.mjx._flags import with_fast_flags
from rsr.simulators.mjx.dump import dump_first_bad
from rsr.simulators.mjx.health import _compare
from rsr.simulators.mjx.implicit import forward
from rsr.simulators.mjx.parameters import Injector
from rsr.simulators.mjx.parity import pairs_that_touch, touching_states
from rsr.simulators.mjx.simulator import delay_weights


def test_the_users_flags_are_kept():
    flags = with_fast_flags("--xla_dump_to=/somewhere --xla_cpu_use_fusion_emitters=true")
    assert flags.split() == [
        "--xla_dump_to=/somewhere",
        "--xla_cpu_use_fusion_emitters=true",
        "--xla_cpu_experimental_ynn_fusion_type=",
    ]


def test_computes_in_float64():
    assert jnp.zeros(1).dtype == jnp.float64


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("RSR_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.parametrize("delay_s", [0.0, 0.004, 0.01, 0.013, 0.05, 0.0731, 0.14, 0.16])
def test_delay_weights_are_those_of_the_contract(delay_s: float):
    np.testing.assert_allclose(delay_weights(jnp.array(delay_s), 0.05, 5, 3), delay.delay_weights(delay_s, 0.05, 5, 3))


@pytest.mark.parametrize("delay_s", [0.0, 0.004, 0.013, 0.0731])
def test_delay_derivative_looks_towards_longer_delays(delay_s: float):
    derivative = jax.jacfwd(lambda value: delay_weights(value, 0.05, 5, 3))(jnp.array(delay_s))
    step_s = 1e-6
    ahead, here = (delay.delay_weights(value, 0.05, 5, 3) for value in (delay_s + step_s, delay_s))
    np.testing.assert_allclose(derivative, (ahead - here) / step_s, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("push_cube", marks=pytest.mark.slow),
        "cube_toss",
        pytest.param("double_pendulum", marks=pytest.mark.slow),
    ],
)
def test_parameters_reach_the_same_numbers_as_in_c(name: str):
    """Every leaf a parameter writes, and the constants MuJoCo derives from masses (mj_setConst)."""
    scenario = load_scenario(name)
    space = scenario.space
    values = space.nominal + 0.2 * (space.upper - space.nominal)
    leaves = [
        "body_mass body_inertia body_ipos body_subtreemass body_invweight0 dof_invweight0 dof_damping dof_armature",
        "dof_frictionloss pair_friction pair_solref geom_size geom_pos actuator_gainprm actuator_biasprm",
    ]
    names = " ".join(leaves).split()
    injector = Injector(scenario)
    made = jax.jit(lambda values: {leaf: getattr(injector.model(values), leaf) for leaf in names})(values)
    expected = scenario.model(values)
    for leaf in names:
        np.testing.assert_allclose(made[leaf], getattr(expected, leaf), rtol=1e-9, atol=1e-12, err_msg=leaf)


def _with(scenario: Scenario, **options: int) -> Scenario:
    model = mujoco.MjModel.from_xml_path(str(scenario.mjcf))
    for name, value in options.items():
        setattr(model.opt, name, value)
    return dataclasses.replace(scenario, base_model=model)


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"cone": mujoco.mjtCone.mjCONE_ELLIPTIC}, "condim=1"),
        ({"integrator": mujoco.mjtIntegrator.mjINT_RK4}, "integrator RK4"),
        ({"integrator": mujoco.mjtIntegrator.mjINT_IMPLICIT}, "integrator implicit"),
    ],
)
def test_a_feature_that_mjx_lacks_is_named(options: dict[str, int], feature: str):
    with pytest.raises(ScenarioError, match="cmaes") as error:
        MjxSimulator(_with(load_scenario("push_cube"), **options))
    assert feature.lower() in error.value.got.lower()


def test_the_first_nan_is_dumped_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("RSR_CACHE_DIR", str(tmp_path))
    scenario = load_scenario("double_pendulum")
    trajectory = np.zeros((3, 12, 4))
    trajectory[1, 9:] = np.nan
    trajectory[2, 11:] = np.inf
    actions = np.arange(3 * (11 + scenario.history_steps) * 2.0).reshape(3, -1, 2)
    with caplog.at_level(logging.WARNING):
        path = dump_first_bad(scenario, trajectory, actions, scenario.space.nominal)
    assert path is not None
    dump = np.load(path)
    assert np.isfinite(dump["states"][:-1]).all()
    assert np.isnan(dump["states"][-1]).all()
    assert len(dump["actions"]) == len(dump["states"]) - 1 + scenario.history_steps
    assert "window 1, control step 9" in caplog.text
    assert f"python -m rsr.simulators.mjx {path}" in caplog.text


def test_nothing_is_dumped_while_all_is_finite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("RSR_CACHE_DIR", str(tmp_path))
    scenario = load_scenario("double_pendulum")
    shape = (1, 3 + scenario.history_steps, 2)
    assert dump_first_bad(scenario, np.zeros((1, 4, 4)), np.zeros(shape), scenario.space.nominal) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_reverse_mode_agrees_with_forward_mode(cone: str):
    """MJX alone raises in reverse mode, and gives NaN with the elliptic cone."""
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><option timestep="0.004" cone="{cone}" integrator="implicitfast" tolerance="1e-14"/>
          <worldbody><geom name="floor" type="plane" size="1 1 1"/>
            <body pos="0 0 0.049"><freejoint/><geom name="ball" type="sphere" size="0.05" mass="0.2"/></body>
          </worldbody>
          <contact><pair geom1="floor" geom2="ball" condim="3" friction="0.3 0.3 0.005 0.0001 0.0001"/></contact>
        </mujoco>""")
    converted = mjx.put_model(model)
    data = mjx.make_data(converted).replace(qvel=jnp.array([0.5, 0.1, -0.1, 0.0, 1.0, 0.0]))

    def speed(friction: jax.Array) -> jax.Array:
        changed = converted.replace(pair_friction=converted.pair_friction.at[0, :2].set(friction))
        state = data
        for _ in range(3):
            state = mjx.implicit(changed, forward(changed, state))
        return state.qvel[0]

    forwards, reverse = jax.jit(jax.jacfwd(speed))(0.3), jax.jit(jax.jacrev(speed))(0.3)
    assert abs(forwards) > 1e-3
    np.testing.assert_allclose(forwards, reverse, rtol=1e-10)


@pytest.mark.parametrize(("cone", "slope_deg"), [("pyramidal", 0), ("elliptic", 25)])
def test_a_capsule_rubs_on_a_plane_as_in_c_however_steeply_it_stands(cone: str, slope_deg: float):
    """MJX's own tangents are the world's at a steep capsule: on a tilted plane no tangents at all."""
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><option cone="{cone}" tolerance="1e-14"/><worldbody>
          <geom type="plane" size="1 1 1" euler="{slope_deg} 0 0" condim="3"/>
          <body><freejoint/><geom type="capsule" size="0.015 0.1" mass="0.2" condim="3"/></body>
        </worldbody></mujoco>""")
    converted, data = mjx.put_model(model), mujoco.MjData(model)
    start = mjx.make_data(converted)

    def acceleration(qpos: jax.Array, qvel: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = forward(converted, start.replace(qpos=qpos, qvel=qvel)).qacc
        return found, found

    with_slope = jax.jit(jax.jacfwd(acceleration, has_aux=True))
    slope, fall = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(slope, [1.0, 0.0, 0.0], np.deg2rad(slope_deg))
    for lean in (0.0, 1e-3, 0.2, 0.5, 0.6, 1.2):
        mujoco.mju_axisAngle2Quat(fall, [0.6, 0.8, 0.0], lean)
        mujoco.mju_mulQuat(data.qpos[3:], slope, fall)
        height = 0.1 * np.cos(lean) + 0.015 - 5e-4
        mujoco.mju_rotVecQuat(data.qpos[:3], [0.0, 0.0, height], slope)
        data.qvel[:] = [0.3, -0.1, 0.0, 0.2, 0.1, 0.3]
        mujoco.mj_forward(model, data)
        assert data.ncon == 1
        derivative, found = with_slope(data.qpos, data.qvel)
        np.testing.assert_allclose(found, data.qacc, atol=1e-6 * np.abs(data.qacc).max(), err_msg=f"lean {lean}")
        assert np.isfinite(derivative).all()


def test_health_names_inconclusive_parameters():
    """A derivative that deviates no more than two difference steps do from each other is not called healthy."""
    health = GradientHealth(
        relative_error={"friction": 2e-5, "mass": 0.02},
        cosine={"friction": 1.0, "mass": 0.9998},
        difference_error={"friction": 1e-6, "mass": 0.03},
        not_finite=0,
        tolerance=1e-4,
    )
    assert (health.healthy, health.inconclusive, health.worst) == (True, ("mass",), "friction")
    assert str(health) == (
        "gradients healthy where differences are conclusive: worst friction, relative error 2.0e-05, cosine 1.000000; "
        "unchecked, because differences of two steps disagree: mass (3e-02)"
    )
    wrong = dataclasses.replace(health, relative_error={"friction": 0.1, "mass": 0.02})
    assert str(wrong).startswith("gradients NOT healthy: worst friction, relative error 1.0e-01")
    steady = dataclasses.replace(health, relative_error={"friction": 2e-5, "mass": 3e-5})
    assert str(steady) == "gradients healthy: worst mass, relative error 3.0e-05, cosine 0.999800"


def test_health_compares_no_parameter_without_sensitivity():
    """It said "gradients healthy: worst frictionloss, cosine 0.000000" of a parameter on which nothing depended."""
    exact = np.zeros((2, 3, 5))
    exact[:, 0], exact[:, 2] = 1.0, 1e-9
    differences = exact * (1.0 + 2e-5)
    differences[:, 2] = -1e-9  # rounding
    health = _compare(("friction", "frictionloss", "armature"), exact, differences, np.zeros((2, 3)), 1e-4)
    assert (health.healthy, health.worst, health.insensitive) == (True, "friction", ("frictionloss", "armature"))
    assert str(health) == (
        "gradients healthy: worst friction, relative error 2.0e-05, cosine 1.000000; unchecked, because nothing in the "
        "few steps compared depends on them: frictionloss, armature"
    )
    exact[:, 1] = 0.5  # but a derivative where there is none is an error
    assert not _compare(("friction", "frictionloss", "armature"), exact, differences, np.zeros((2, 3)), 1e-4).healthy


FLAIL = """<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody>
    <geom name="board" type="plane" size="1 1 0.1"/>
    <body name="handle" pos="0 0 0.5"><freejoint/><geom name="handle" type="capsule" size="0.015 0.12" mass="0.2"/>
      <body name="beater" pos="0 0 0.12"><joint axis="0 1 0"/>
        <geom name="beater" type="capsule" size="0.015" fromto="0 0 0 0 0 0.18" mass="0.15"/></body></body>
    </worldbody><contact><pair geom1="board" geom2="beater"/></contact></mujoco>"""


def test_parity_brings_a_link_that_hangs_from_a_free_body_into_contact():
    model = mujoco.MjModel.from_xml_string(FLAIL)
    ((name, pair),) = pairs_that_touch(model).items()
    assert name == "board / beater"
    assert len(touching_states(model, pair, np.random.default_rng(0), 4)) == 4


def test_parity_is_judged_where_no_point_of_a_capsule_is_deep_inside():
    model = mujoco.MjModel.from_xml_string(FLAIL.replace('geom2="beater"', 'geom2="handle"'))
    (pair,) = pairs_that_touch(model).values()
    data = mujoco.MjData(model)
    for state in touching_states(model, pair, np.random.default_rng(0), 8):
        data.qpos = state[: model.nq]
        mujoco.mj_forward(model, data)
        assert -data.contact.dist.min() < 0.005  # 0.2 m, where the last point of the pair was taken for the deepest


def test_parity_names_no_pair_where_contact_is_switched_off():
    model = mujoco.MjModel.from_xml_string(FLAIL)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert pairs_that_touch(model) == {}
