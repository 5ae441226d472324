"""The scenarios of struck blocks: the files are what the code says, and what is declared wrongly is refused."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from rsr.common.errors import ConfigError, ScenarioError
from rsr.common.progress import ignore
from rsr.learned.clash.generate import shape_card, shape_from
from rsr.realities.reality import CollectionPlan
from rsr.realities.strikes import StrikeReality
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, load_shape, scene_xml, striking, struck_shape
from rsr.sessions import check_session, read_session, write_session

SHAPES = {"strike": "semi_cylinder", "strike_square": "square", "strike_triangle": "triangle"}


@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_the_files_are_the_scene_that_surrogates_are_distilled_from(name, shape):
    scenario = load_scenario(name)
    assert scenario.mjcf.read_text() == scene_xml(load_shape(shape), Definition()) + "\n"
    assert striking(scenario) == Definition()
    assert struck_shape(scenario).outline == pytest.approx(load_shape(shape).outline)
    for mine, theirs in zip(scenario.space, PARAMETERS, strict=True):
        assert (mine.name, mine.nominal, mine.lower, mine.upper) == (
            theirs.name,
            theirs.nominal,
            theirs.lower,
            theirs.upper,
        )


def test_a_box_is_the_shape_that_its_geom_is(tmp_path):
    scenario = declared(tmp_path, {"striker": "nose", "struck": "block", "nose_radius_m": 0.01})
    assert struck_shape(scenario).outline == pytest.approx(load_shape("square").outline, abs=1e-6)
    assert struck_shape(scenario).mass_kg == pytest.approx(0.12)


def test_the_struck_block_has_the_inertia_and_the_centre_of_mass_of_the_mjcf(tmp_path):
    entry = {"striker": "nose", "struck": "block", "nose_radius_m": 0.01}
    declared(tmp_path, entry)
    path = tmp_path / "scene.xml"
    block = re.search(r'<inertial pos="0 0 0" mass="0.12" diaginertia="[^"]*"/>', path.read_text())
    assert block is not None
    own = '<inertial pos="0.004 0 0" mass="0.12" diaginertia="1e-4 1e-4 1.2e-4"/>'
    path.write_text(path.read_text().replace(block[0], own))
    shape = struck_shape(load_scenario(str(tmp_path / "scenario.yaml")))
    assert shape.gyration_m == pytest.approx(np.sqrt(1.2e-4 / 0.12))
    assert shape.outline[:, 0].min() == pytest.approx(-0.035 - 0.004)
    assert shape_from(shape_card(shape)).gyration_m == shape.gyration_m
    assert load_shape("square").measured_gyration_m is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"striker": "nose"}, "collision: got no struck; expected all of striker, struck"),
        (
            {"striker": "nos", "struck": "block"},
            "collision, striker: got geom 'nos'; expected one of table, block, nose",
        ),
        ({"striker": "block", "struck": "nose", "nose_radius_m": 0.01}, "got 'nose', on a body without a free joint"),
        ({"striker": "nose", "struck": "block"}, "got no nose_radius_m, and a striker that is not round"),
        ({"striker": "nose", "struck": "block", "nose_radius_m": -1}, "got nose_radius_m -1; expected the radius"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path, entry, message):
    with pytest.raises(ScenarioError) as caught:
        declared(tmp_path, entry)
    assert message in str(caught.value)


def declared(folder: Path, collision: dict, striker_mass: str = "4.0"):
    """The scenario strike_square with another `collision`."""
    original = load_scenario("strike_square").mjcf.parent
    document = yaml.safe_load((original / "scenario.yaml").read_text())
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document | {"collision": collision}))
    scene = (original / "scene.xml").read_text().replace('mass="4.0"', f'mass="{striker_mass}"')
    (folder / "scene.xml").write_text(scene)
    return load_scenario(str(folder / "scenario.yaml"))


class TestStandIn:
    PLAN = CollectionPlan("session-001", 4, seed=9)

    def test_hands_in_ordinary_sessions_that_repeat(self, tmp_path):
        scenario = load_scenario("strike")
        session = StrikeReality(scenario, 3).collect(None, self.PLAN, ignore)
        check_session(session, scenario.channels)
        stored = read_session(write_session(tmp_path, session))
        assert stored.card.simulated
        again = StrikeReality(scenario, 3).collect(None, self.PLAN, ignore)
        for one, other in zip(stored.episodes, again.episodes, strict=True):
            assert np.array_equal(one["block_position"], other["block_position"])
        other = StrikeReality(scenario, 4).collect(None, self.PLAN, ignore)
        assert not np.array_equal(other.episodes[0]["block_position"], stored.episodes[0]["block_position"])

    def test_the_block_rests_is_struck_and_rests_again(self):
        session = StrikeReality(load_scenario("strike_triangle"), 0).collect(None, self.PLAN, ignore)
        for episode in session.episodes:
            speed = np.linalg.norm(np.diff(episode["block_position"][:, :2], axis=0), axis=1) / 0.004
            assert speed[:25].mean() < 0.1
            assert speed[28:40].max() > 0.15
            assert np.linalg.norm(np.diff(episode["block_position"][[-40, -1], :2], axis=0)) < 0.001
            assert set(np.unique(episode["rail_force"])) == {-52.0, 0.0}
            assert (np.diff(episode["nose_position"][:25, 0]) > 0).all()

    def test_strikes_with_no_other_striker_than_its_own(self, tmp_path):
        other = declared(tmp_path, {"striker": "nose", "struck": "block", "nose_radius_m": 0.02}, striker_mass="2.5")
        with pytest.raises(ConfigError, match=r"got a striker of 2.5 kg with a nose of 20 mm; expected the one"):
            StrikeReality(other, 0)

    def test_has_recordings_of_struck_blocks_alone(self):
        with pytest.raises(ConfigError, match="set reality.kind: inbox"):
            StrikeReality(load_scenario("push_cube"), 0)
