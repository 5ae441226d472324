import shutil
from pathlib import Path

import numpy as np
import pytest

import rsr.scenarios
from rsr.common.errors import ConfigError, ScenarioError
from rsr.scenarios import built_in_scenarios, load_scenario
from tests.push_samples import push_cube

SOURCE = Path(rsr.scenarios.__file__).parent / "built_in" / "push_cube"


def edited(folder: Path, before: str, after: str) -> str:
    """A copy of push_cube's files with one place of the YAML changed."""
    shutil.copy(SOURCE / "scene.xml", folder)
    text = (SOURCE / "scenario.yaml").read_text()
    assert before in text
    (folder / "scenario.yaml").write_text(text.replace(before, after, 1))
    return str(folder / "scenario.yaml")


def test_push_cube_has_the_channels_of_a_recording():
    scenario = push_cube()
    widths = {channel.name: (channel.width, channel.unit, channel.stamp) for channel in scenario.channels}
    assert widths == {
        "joint_position": (6, "rad", "at_sample"),
        "block_position": (3, "m", "at_sample"),
        "block_orientation": (4, "1", "at_sample"),
        "joint_setpoint": (6, "rad", "held_until_next"),
        "action": (6, "1", "held_until_next"),
        "tip_position": (3, "m", "at_sample"),
        "target_position": (3, "m", "at_sample"),
        "clipped": (1, "1", "held_until_next"),
    }
    assert scenario.substeps * scenario.base_model.opt.timestep == pytest.approx(scenario.control_dt_s)
    assert "push_cube" in built_in_scenarios()


def test_measure_reads_each_channel_at_its_place():
    scenario = push_cube()
    state = np.arange(float(scenario.state_size))
    measured = scenario.measure(state)
    np.testing.assert_array_equal(measured["block_position"], [0, 1, 2])
    np.testing.assert_array_equal(measured["block_orientation"], [3, 4, 5, 6])
    np.testing.assert_array_equal(measured["joint_position"], np.arange(7, 13))


def test_scenario_loads_from_a_path(tmp_path):
    scenario = load_scenario(edited(tmp_path, "nominal: 0.2\n", "nominal: 0.3\n"))
    assert scenario.space["cube_mass"].nominal == 0.3


def test_unknown_scenario():
    with pytest.raises(ConfigError) as caught:
        load_scenario("push_cub")
    assert str(caught.value) == (
        f"scenario: got scenario 'push_cub'; expected one of {', '.join(built_in_scenarios())}, or the path of a "
        "scenario's YAML file. Correct the name in params.yaml or on the command line."
    )


def test_unknown_element(tmp_path):
    path = edited(tmp_path, "sets: [{pair: table_cube, field: friction}]", "sets: [{pair: floor, field: friction}]")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value) == (
        "scenario.yaml, parameter table_friction: got pair 'floor'; expected one of table_cube, table_finger, "
        "finger_cube. Correct the name in the scenario's YAML file or add it to the MJCF."
    )


def test_unknown_field(tmp_path):
    path = edited(tmp_path, "sets: [{body: cube, field: mass}]", "sets: [{body: cube, field: weight}]")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value).startswith(
        "scenario.yaml, parameter cube_mass: got 'weight' of 'body'; expected one of mass, inertia, "
    )
    assert str(caught.value).endswith(". Correct the entry in the scenario's YAML file.")


def test_nominal_outside_its_bounds(tmp_path):
    path = edited(tmp_path, "nominal: 0.2\n", "nominal: 2.0\n")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value) == (
        "parameter cube_mass: got nominal 2.0 outside [0.04, 1.0]; expected lower <= nominal <= upper. "
        "Correct the bounds in the scenario's YAML file."
    )


def test_channel_width_against_what_it_reads(tmp_path):
    path = edited(tmp_path, "columns: [x, y, z]\n    unit: m", "columns: [x, y]\n    unit: m")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value) == (
        "scenario.yaml, channel block_position: got 2 columns (x, y); expected 3, one a coordinate it reads. "
        "Name one column a coordinate in the scenario's YAML file."
    )


def test_unknown_word_in_reads(tmp_path):
    path = edited(tmp_path, "reads: {free_joint_position: cube}", "reads: {position: cube}")
    with pytest.raises(ScenarioError, match="got reads 'position'"):
        load_scenario(path)


@pytest.mark.parametrize(("value", "shown"), [(1.2, "1.2"), (0.01, "0.01"), (float("nan"), "nan")])
def test_parameter_outside_its_bounds(value, shown):
    scenario = push_cube()
    with pytest.raises(ScenarioError) as caught:
        scenario.model(scenario.space.nominal * np.where(np.array(scenario.space.names) == "cube_mass", value / 0.2, 1))
    assert str(caught.value) == (
        f"parameters: got cube_mass = {shown} kg; expected a value in [0.04, 1]. "
        "Correct the value, or widen the bounds in the scenario's YAML file if they are wrong."
    )


def test_unknown_parameter():
    with pytest.raises(ConfigError) as caught:
        push_cube().space.vector({"cube_weight": 1.0})
    assert str(caught.value) == (
        "parameter space: got parameter 'cube_weight'; expected one of table_friction, finger_friction, cube_mass, "
        "joint_damping, actuator_gain, control_delay, contact_softness. "
        "Correct the name or add the parameter to the scenario's YAML file."
    )


def test_coordinates_and_values_are_inverse():
    space = push_cube().space
    rng = np.random.default_rng(0)
    values = rng.uniform(space.lower, space.upper, (5, len(space)))
    np.testing.assert_allclose(space.to_values(space.to_coordinates(values)), values, rtol=1e-12, atol=1e-15)
    assert space.mapping(space.vector({"cube_mass": 0.3}))["cube_mass"] == 0.3


@pytest.mark.parametrize(
    ("name", "window", "horizon"), [("push_cube", 12, 20), ("cube_toss", 40, 74), ("double_pendulum", 150, 250)]
)
def test_windows_are_given_in_seconds(name, window, horizon):
    scenario = load_scenario(name)
    assert (scenario.window_steps, scenario.gap_horizon_steps) == (window, horizon)
