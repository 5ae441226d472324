"""Impacts in a scene of one's own: walls, flat strikers and free bodies, from YAML and a table alone."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from benchmarks.strike_worlds.contacts import KINDS, ContactStandIn, write_scene
from rsr.cli import main
from rsr.common.errors import CalibrationError, RsrError, ScenarioError, SessionError
from rsr.learned.clash import load_adapted
from rsr.learned.clash.frame import to_contact
from rsr.learned.clash.residual import Z90
from rsr.learned.clash.scenes.adaptation import adapt_scene
from rsr.learned.clash.scenes.impacts import simulate
from rsr.learned.clash.scenes.meeting import touching
from rsr.learned.clash.scenes.model import AdaptedScene
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.learned.clash.scenes.simulator import HybridScene
from rsr.learned.clash.scenes.storage import load_scene, save_scene
from rsr.learned.clash.scenes.tables import column_names, read_scene_strikes, scene_states
from rsr.pipelines.methods import simulator_of
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import struck_shape

SIDES = np.array([0.035, 0.025])


def scene_of(kind: str, folder: Path) -> ContactScene:
    return ContactScene(load_scenario(write_scene(kind, folder)))


def written(path: Path, columns: dict) -> Path:
    pyarrow.csv.write_csv(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def wall(tmp_path_factory):
    return scene_of("wall", tmp_path_factory.mktemp("scene") / "wall")


@pytest.fixture(scope="module")
def impacts(wall, tmp_path_factory):
    columns = ContactStandIn("wall", 4).record(24)
    return read_scene_strikes(written(tmp_path_factory.mktemp("table") / "wall.csv", columns), wall)


@pytest.fixture(scope="module")
def model(wall, impacts):
    return adapt_scene(wall, impacts.take(slice(0, 10)))


def square_on(scene: ContactScene, speed: float) -> np.ndarray:
    """A state of the block that flies straight at the wall with its long side."""
    state = np.zeros(scene.scenario.physics_size)
    qpos, qvel = state[: scene.model.nq], state[scene.model.nq :]
    qpos[:] = scene.model.qpos0
    scene.place(qpos, qvel, scene.struck, np.array([0.02 + 0.025 + 0.001, 0.0, np.pi / 2]), np.array([-speed, 0, 0]))
    return state


def test_a_block_that_meets_a_wall_flat_does_so_at_both_corners_and_does_not_turn(wall):
    placed, far = touching(wall, square_on(wall, 0.5)[None])
    assert far[0] == pytest.approx(0.001, abs=2e-5)
    found = simulate(wall, wall.scenario.space.nominal, placed)
    # MuJoCo's contacts lie half way into the overlap.
    assert found.strikes.point_m[0] == pytest.approx([0, 0.025], abs=0.0005)
    assert found.strikes.normal[0] == pytest.approx([0, -1], abs=1e-6)
    assert found.strikes.speed_m_s[0] == pytest.approx(0.5, rel=1e-6)
    # Two corners, half the side away from their middle each.
    assert found.patch.spread_m[0] == pytest.approx(0.035, rel=0.02)
    assert -1.0 < found.gained[0, 1] < -0.5, "it comes back, slower than it came"
    assert np.abs(found.gained[0, [0, 2]]).max() < 1e-4


def test_what_has_parted_for_long_enough_is_not_struck_again(wall):
    """A block a degree off the wall meets it with one corner, then with the other some milliseconds later."""
    start = square_on(wall, 0.5)
    wall.place(
        start[: wall.model.nq],
        start[wall.model.nq :],
        wall.struck,
        np.array([0.047, 0, np.pi / 2 + 0.06]),
        np.array([-0.5, 0, 0]),
    )
    placed, _ = touching(wall, start[None])
    first, both = (simulate(wall, np.array([0.2, 0.2, 0.002]), placed, apart_s) for apart_s in (0.0005, 0.02))
    assert both.lasted_s[0] - first.lasted_s[0] > 0.001
    assert np.sign(first.gained[0, 2]) != np.sign(both.gained[0, 2] - first.gained[0, 2])


def test_each_push_of_an_impact_is_corrected_by_itself(wall, model):
    """A block that meets the wall a little askew, and turns into it: one corner, then the other."""
    start = square_on(wall, 0.5)
    pose, velocity = np.array([0.047, 0, np.pi / 2 + 0.03]), np.array([-0.5, 0, 0])
    wall.place(start[: wall.model.nq], start[wall.model.nq :], wall.struck, pose, velocity)
    placed, _ = touching(wall, start[None])
    found = model.collide(placed)
    assert found.pushes[0] >= 2
    assert found.lasted_s[0] > found.first.lasted_s[0] + 0.0002
    once = replace(wall.declared, apart_s=1e-5)
    first = replace(model, scene=ContactScene(replace(wall.scenario, collision=once))).collide(placed)
    assert first.pushes[0] == 1
    assert np.sign(first.gained[0, 2]) != np.sign(found.gained[0, 2] - first.gained[0, 2])
    assert (found.std > first.std).all(), "each push adds to what is not known"


def test_poses_and_velocities_of_the_plane_come_back_as_they_were_placed(wall):
    pose, velocity = np.array([0.3, -0.1, 2.0]), np.array([0.2, 0.4, -3.0])
    state = np.zeros(wall.scenario.physics_size)
    state[: wall.model.nq] = wall.model.qpos0
    wall.place(state[: wall.model.nq], state[wall.model.nq :], wall.struck, pose, velocity)
    assert wall.poses(state[None])[0] == pytest.approx(pose)
    assert wall.velocities(state[None])[0] == pytest.approx(velocity)


def test_momentum_of_two_free_bodies_stays_when_what_was_learnt_is_added(tmp_path):
    scene = scene_of("free", tmp_path)
    table = written(tmp_path / "free.csv", ContactStandIn("free", 4).record(8))
    state = read_scene_strikes(table, scene).states[0]
    change, point = np.array([0.1, -0.05, 2.0]), np.array([0.03, 0.01])
    change[2] = (
        scene.shape.mass_kg
        * (point[0] * change[1] - point[1] * change[0])
        / (scene.shape.mass_kg * scene.shape.gyration_m**2)
    )
    after = scene.corrected(state, change, point)
    data, momenta = mujoco.MjData(scene.model), []
    for each in (state, after):
        data.qpos[:], data.qvel[:] = each[: scene.model.nq], each[scene.model.nq : scene.model.nq + scene.model.nv]
        mujoco.mj_forward(scene.model, data)
        mujoco.mj_subtreeVel(scene.model, data)
        mass = scene.model.body_subtreemass[0]
        momenta.append(np.concatenate([mass * data.subtree_linvel[0], data.subtree_angmom[0]]))
    assert momenta[0] == pytest.approx(momenta[1], abs=1e-9)
    assert scene.velocities(after[None])[0] - scene.velocities(state[None])[0] == pytest.approx(change)


def test_inertia_and_centre_of_mass_are_those_of_the_mjcf(tmp_path):
    write_scene("wall", tmp_path)
    xml = (tmp_path / "scene.xml").read_text()
    inertial = '<inertial pos="0.005 0 0" mass="0.2" diaginertia="1e-4 1e-4 2e-4"/>'
    (tmp_path / "scene.xml").write_text(
        xml.replace('<freejoint name="block"/>', f'<freejoint name="block"/>{inertial}')
    )
    shape = ContactScene(load_scenario(tmp_path)).shape
    assert shape.mass_kg == pytest.approx(0.2)
    assert shape.gyration_m == pytest.approx(np.sqrt(2e-4 / 0.2))
    assert shape.outline[:, 0].max() == pytest.approx(SIDES[0] - 0.005)


def test_columns_are_those_that_the_joints_of_the_scene_ask_for(tmp_path, wall):
    assert column_names(wall)[0] == ["x", "y", "turn", "vx", "vy", "spin"]
    assert column_names(scene_of("flat", tmp_path / "flat"))[0][6:] == ["rail", "rail_speed"]
    assert column_names(scene_of("free", tmp_path / "free"))[0][6:8] == ["striker_x", "striker_y"]


def test_joints_that_are_named_as_columns_are_refused(tmp_path):
    folder = write_scene("flat", tmp_path)
    for name in ("scene.xml", "scenario.yaml"):
        (folder / name).write_text((folder / name).read_text().replace('"rail"', '"x"'))
    with pytest.raises(ScenarioError, match="joints of the striker named x, as columns of the struck body are"):
        column_names(ContactScene(load_scenario(folder)))


def test_ten_impacts_predict_others_better_than_the_scene_as_drawn(wall, impacts, model):
    judged = impacts.take(slice(10, None))
    weights = np.array([1, 1, wall.shape.gyration_m])

    def missed(gained):
        return float(np.sqrt((((gained - judged.gained) * weights) ** 2).sum(axis=1).mean()))

    nominal = simulate(wall, wall.scenario.space.nominal, judged.states).gained
    assert missed(model(judged.states)) < 0.8 * missed(nominal)
    assert 0.7 < model.inside(judged).mean() <= 1


def test_a_tenth_of_a_degree_matters_most_where_bodies_meet_flat(wall, model):
    assert np.degrees(wall.turn_std_rad) == pytest.approx(0.28, abs=0.01), "0.3 mm at both ends of 86 mm"
    states = np.array([square_on(wall, 0.5)] * 2)
    for state, askew in zip(states, (0.001, 0.5), strict=True):
        pose, velocity = np.array([0.06, 0, np.pi / 2 + askew]), np.array([-0.5, 0, 0])
        wall.place(state[: wall.model.nq], state[wall.model.nq :], wall.struck, pose, velocity)
    near, far = np.linalg.norm(model.pose_spread(touching(wall, states)[0]), axis=1)
    assert near > 3 * far


def test_impacts_are_followed_once_as_recorded_and_once_turned_either_way(model, impacts, monkeypatch):
    judged, followed, collide = impacts.take(slice(10, 13)), [], AdaptedScene.collide
    monkeypatch.setattr(AdaptedScene, "collide", lambda self, states: followed.append(1) or collide(self, states))
    model.inside(judged)
    assert len(followed) == 3


@pytest.mark.slow
def test_intervals_of_flat_contacts_hold_what_poses_that_err_do(tmp_path):
    scene = scene_of("flat", tmp_path / "scene")
    table = written(tmp_path / "flat.csv", ContactStandIn("flat", 1).record(70))
    recorded = read_scene_strikes(table, scene)
    model, judged = adapt_scene(scene, recorded.take(slice(0, 10)), 1), recorded.take(slice(10, None))
    found = model.collide(judged.states)
    missed = to_contact(scene.shape, found.first.strikes, found.gained - judged.gained)
    assert (np.abs(missed) <= Z90 * found.std).mean() < 0.8 < 0.84 < model.inside(judged).mean()


@pytest.mark.slow
def test_one_glitch_is_found_and_left_out(wall, impacts):
    spoilt = impacts.take(slice(0, 10))
    spoilt.gained[3] *= -2.0
    assert adapt_scene(wall, spoilt).rejected == (3,)


def test_what_is_stored_predicts_the_same(model, impacts, tmp_path):
    save_scene(tmp_path, model)
    again = load_scene(tmp_path)
    assert np.array_equal(again(impacts.states), model(impacts.states))


def test_an_adapted_scene_is_not_taken_for_a_model_of_a_prism(model, tmp_path):
    save_scene(tmp_path, model)
    with pytest.raises(CalibrationError, match="a round nose that strikes a prism, which alone plans and routes know"):
        load_adapted(tmp_path)


def test_impacts_that_are_yet_to_be_done_are_those_of_a_table(wall, impacts, tmp_path):
    columns = ContactStandIn("wall", 4).record(24)
    states = scene_states(wall, {name: values for name, values in columns.items() if not name.startswith("post")})
    kept = np.delete(np.arange(24), impacts.dropped)
    assert states[kept] == pytest.approx(impacts.states)
    still = dict.fromkeys(column_names(wall)[0], 0.0)
    with pytest.raises(SessionError, match="row 1 in which the two do not meet"):
        scene_states(wall, still | {"x": 0.05})
    with pytest.raises(SessionError, match="no turn, vx"):
        scene_states(wall, {"x": 0.05, "y": 0.0})


def test_the_hybrid_ends_an_impact_as_the_model_says_and_leaves_the_rest_to_mujoco(wall, model):
    start = square_on(wall, 0.4)
    pushed = np.zeros((1, 20, wall.model.nu))
    with HybridScene(wall.scenario, model) as simulator:
        path = simulator.rollout(start[None], pushed, model.values)
        (met,) = simulator.meetings
    assert met.handled
    assert met.speed_m_s == pytest.approx(0.4, rel=1e-3)
    assert met.time_s == pytest.approx(0.001 / 0.4, abs=0.0011)
    placed, _ = touching(wall, start[None])
    said = wall.velocities(path[0, -1:])[0] - wall.velocities(start[None])[0]
    gained = model(placed)[0]  # of the block's frame, which is turned by a quarter
    # MuJoCo's solver leaves a turning of some 1e-6 rad/s, which depends on where the block is in the world.
    assert said == pytest.approx([-gained[1], gained[0], gained[2]], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_said_and_read(kind, tmp_path):
    scene = scene_of(kind, tmp_path)
    recorded = read_scene_strikes(written(tmp_path / "table.csv", ContactStandIn(kind, 5).record(8)), scene)
    assert len(recorded) + len(recorded.dropped) == 8
    found = simulate(scene, scene.scenario.space.nominal, recorded.states)
    # Whatever the law of contact, both push the same way.
    assert ((found.gained[:, :2] * recorded.gained[:, :2]).sum(axis=1) > 0).all()


def test_flat_on_flat_may_turn_either_way_and_is_no_mirrored_table(tmp_path):
    scene = scene_of("flat", tmp_path / "flat")
    columns = ContactStandIn("flat", 2).record(60)
    flush = np.abs((columns["turn"] + np.pi / 4) % (np.pi / 2) - np.pi / 4) < np.radians(1)
    few = {name: values[flush] for name, values in columns.items()}
    few["post_spin"] *= -1
    assert flush.sum() >= 8
    assert len(read_scene_strikes(written(tmp_path / "flush.csv", few), scene)) > 5


def test_tables_that_cannot_be_said_are_refused_with_the_reason(wall, tmp_path):
    columns = ContactStandIn("wall", 4).record(8)
    for changed, message in (
        ({"x": columns["x"] + 0.05}, "in which the two do not meet, such as"),
        ({"post_spin": -columns["post_spin"], "spin": -columns["spin"]}, "Turns and spins run from x to y"),
        ({"vx": 1000 * columns["vx"]}, "expected 0.02 to 5 m/s"),
    ):
        with pytest.raises(SessionError, match=message):
            read_scene_strikes(written(tmp_path / "wrong.csv", columns | changed), wall)
    with pytest.raises(SessionError, match="no column spin"):
        read_scene_strikes(written(tmp_path / "less.csv", {k: v for k, v in columns.items() if k != "spin"}), wall)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{base: scene, striker: striker, struck: block, nose_radius_m: 0.01}", "nose_radius_m with base 'scene'"),
        ("{striker: striker, struck: block, plane: xy}", "plane with base 'prism'"),
        ("{base: scene, striker: block, struck: block}", "a striker on the struck body"),
        ("{base: scene, striker: striker, struck: striker}", "on a body without a free joint"),
        ("{base: scene, striker: striker, struck: block, plane: zx}", "expected xy, xz or yz"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path, entry, message):
    write_scene("wall", tmp_path)
    text = (tmp_path / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(text.replace("{base: scene, striker: striker, struck: block}", entry))
    with pytest.raises(ScenarioError, match=message):
        load_scenario(tmp_path)


def test_what_only_a_round_nose_can_do_is_refused_for_a_scene(wall):
    with pytest.raises(RsrError, match=r"base 'scene'.*`rsr clash adapt --scenario \S+\.yaml --strikes impacts.csv"):
        struck_shape(wall.scenario)


@pytest.mark.slow
def test_adapt_and_evaluate_from_the_command_line(tmp_path, capsys):
    folder = write_scene("wall", tmp_path / "scene")
    text = (folder / "scenario.yaml").read_text().replace("struck: block}", "struck: block, table: {x: puck_x}}")
    (folder / "scenario.yaml").write_text(text)
    columns = ContactStandIn("wall", 4).record(16)
    table = written(tmp_path / "wall.csv", {"puck_x" if k == "x" else k: v for k, v in columns.items()})
    out = tmp_path / "adapted"
    arguments = ["clash", "adapt", "--scenario", str(folder), "--strikes", str(table), "--out", str(out)]
    assert main(arguments) == 0
    assert {"adapted.json", "adaptation.png", "comparison.json", "calibration.json"} <= {p.name for p in out.iterdir()}
    assert "fitted scene" in capsys.readouterr().out
    with simulator_of(load_scenario(folder), "clash", out) as simulator:
        assert isinstance(simulator, HybridScene)
    assert main([*arguments, "--surrogate", str(out)]) == 2
    assert "expected one of them" in capsys.readouterr().err
