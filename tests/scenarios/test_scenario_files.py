"""What is wrong in a scenario's files is refused with the place and what was expected; the docs know every key."""

from pathlib import Path

import pytest
import yaml

from rsr.common.errors import ConfigError, ScenarioError
from rsr.scenarios import built_in_scenarios, load_scenario
from rsr.scenarios.yaml_keys import YAML_KEYS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_scenario"


def edited(folder: Path, change, mjcf: tuple[str, str] = ("", "")) -> str:
    """A copy of the example with its YAML document changed by a function, and one place of its MJCF replaced."""
    document = yaml.safe_load((EXAMPLE / "scenario.yaml").read_text())
    change(document)
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    (folder / "scene.xml").write_text((EXAMPLE / "scene.xml").read_text().replace(*mjcf))
    return str(folder / "scenario.yaml")


def puts(path: str, value):
    """A change that puts a value at a dotted path."""
    *parents, last = path.split(".")

    def change(document: dict) -> None:
        for key in parents:
            document = document[key]
        document[last] = value

    return change


def removes(path: str):
    *parents, last = path.split(".")

    def change(document: dict) -> None:
        for key in parents:
            document = document[key]
        del document[last]

    return change


@pytest.mark.parametrize("name", built_in_scenarios())
def test_built_in_scenarios_load(name):
    scenario = load_scenario(name)
    assert scenario.name == name
    scenario.model(scenario.space.nominal)
    assert scenario.evaluation.metrics


def test_a_folder_will_do(tmp_path):
    edited(tmp_path, lambda document: None)
    assert load_scenario(str(tmp_path)).name == "sliding_puck"


def test_a_folder_named_as_a_built_in_scenario_is_taken_by_its_path_and_refused_by_its_bare_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reach").mkdir()
    edited(tmp_path / "reach", lambda document: None)
    with pytest.raises(ConfigError, match=r"'reach', which is built in and also a folder here.*Write \./reach"):
        load_scenario("reach")
    assert load_scenario("./reach").name == load_scenario(Path("reach")).name == "sliding_puck"
    assert load_scenario("swing_up").name == "swing_up"


def test_what_is_left_out_has_a_default(tmp_path):
    scenario = load_scenario(edited(tmp_path, removes("evaluation")))
    assert (scenario.command, scenario.history_steps, scenario.repeats_share) == (None, 0, None)
    assert scenario.episode_steps * scenario.control_dt_s == 5.0
    names = [metric.name for metric in scenario.evaluation.metrics]
    assert names == ["puck_position_rmse", "puck_orientation_rmse"]
    assert scenario.evaluation.horizon_s == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (puts("titel", "x"), "scenario.yaml: got 'titel'; expected 'title'"),
        (removes("mjcf"), "scenario.yaml: got no mjcf; expected all of "),
        (puts("channels.puck_position.noize", 1), "channel puck_position: got 'noize'; expected 'noise'"),
        (removes("channels.puck_position.noise"), "channel puck_position: got no noise"),
        (puts("channels.puck_position.columns", ["x"]), "got 1 columns (x); expected 3, one a coordinate"),
        (
            puts("channels.puck_position.reads", {"free_joint_position": "puk"}),
            "got free joint 'puk'; expected one of puck",
        ),
        (puts("channels.puck_position.reads", {"position": "puck"}), "got reads 'position'; expected joints, "),
        (removes("parameters.friction.upper"), "parameter friction: got no upper"),
        (puts("parameters.friction", 0.3), "parameter friction: got float instead of a mapping"),
        (puts("parameters.friction.nominal", 3), "got nominal 3 outside [0.02, 1.0]"),
        (
            puts("gap_channel", "puck"),
            "gap_channel: got channel 'puck'; expected one of puck_position, puck_orientation",
        ),
        (puts("command", "torque"), "command: got channel 'torque'; expected one of puck_position"),
        (
            puts("command", "puck_position"),
            "got command 'puck_position', and a model without actuators; expected an actuator for each",
        ),
        (puts("control_dt_s", 0.011), "got control_dt_s 0.011 with a time step of 0.0025 s in the MJCF"),
        (
            lambda document: document.update(history_steps=1) or puts("parameters.mass.delays", "command")(document),
            "parameter mass: got history_steps that reach 0.01 s back, and a delay of up to 0.2 s",
        ),
        (puts("evaluation.starts", ["last"]), "starts: got 'last'; expected one of first, free_flight, windows"),
        (removes("evaluation.horizon_s"), "evaluation: start 'windows' needs horizon_s"),
        (puts("evaluation.metrics.x", {"channel": "a"}), "metric x: got no statistic"),
        (
            puts("evaluation.metrics.x", {"channel": "a", "statistic": "rmse"}),
            "metric x, channel: got 'a'; expected one of puck_position, puck_orientation",
        ),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path, change, message):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(edited(tmp_path, change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("mjcf", "message"),
    [
        (('type="cylinder"', 'type="disc"'), "mjcf: scene.xml: got XML Error: invalid keyword: 'disc'"),
        (
            (
                '<freejoint name="puck"/>',
                '<freejoint name="puck"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/>',
            ),
            "inertia must satisfy A + B >= C",
        ),
    ],
)
def test_an_mjcf_that_does_not_compile_is_refused_with_the_reason(tmp_path, mjcf, message):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(edited(tmp_path, lambda document: None, mjcf))
    assert message in str(caught.value)


def test_broken_yaml_is_refused(tmp_path):
    (tmp_path / "scenario.yaml").write_text("name: [puck\ntitle: x\n")
    with pytest.raises(ScenarioError, match="scenario.yaml: got while parsing a flow sequence"):
        load_scenario(str(tmp_path / "scenario.yaml"))


def test_every_key_is_documented():
    text = (ROOT / "docs" / "scenarios.md").read_text()
    for kind, fields in YAML_KEYS.items():
        for key in fields.known:
            assert f"`{key}`" in text, f"docs/scenarios.md says nothing of '{key}' of a {kind}"
    assert [name for name in built_in_scenarios() if f"| `{name}` |" not in text] == []
