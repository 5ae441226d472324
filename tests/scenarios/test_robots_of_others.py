"""Robots as their makers wrote them: unnamed free joints, classes, keyframes, meshes; additions without an edit."""

from __future__ import annotations

import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml

from rsr.common.errors import ConfigError, ScenarioError
from rsr.scenarios import Scenario, load_scenario
from rsr.simulators import MujocoSimulator

ROBOTS = Path(__file__).resolve().parents[3] / "shared" / "robots"
needs_robots = pytest.mark.skipif(not ROBOTS.is_dir(), reason="no ../shared/robots")
JOINTS = ["Rotation", "Pitch", "Elbow", "Wrist_Pitch", "Wrist_Roll", "Jaw"]
ARM_ADDS = {
    "Fixed_Jaw": '<site name="tool" pos="0 -0.08 0"/>'
    '<body name="payload" pos="0 -0.08 0"><geom name="payload" type="sphere" size="0.02" mass="0.1"/></body>',
    "world": '<geom name="table" type="box" size="0.4 0.4 0.01" pos="0 -0.3 -0.01"/>'
    '<body name="block" pos="0 -0.3 0.02"><freejoint name="block"/>'
    '<geom name="block" type="box" size="0.02 0.02 0.02" mass="0.05"/></body>',
    "mjcf": '<sensor><framepos name="tool_pos" objtype="site" objname="tool"/></sensor>'
    '<option><flag contact="disable"/></option>',
}


def document(mjcf: str, **more) -> dict:
    return {
        "name": "their_arm",
        "title": "An arm of others",
        "mjcf": mjcf,
        "control_dt_s": 0.02,
        "episode_steps": 100,
        "gap_channel": "q",
        "command": "u",
        "channels": {
            "q": {"columns": JOINTS, "unit": "rad", "frame": "joint", "reads": {"joints": JOINTS}, "noise": 0.001},
            "u": {"columns": JOINTS, "unit": "rad", "frame": "joint", "stamp": "held_until_next"},
        },
        "parameters": {
            "friction": {
                "nominal": 1.0,
                "lower": 0.2,
                "upper": 5.0,
                "unit": "1",
                "prior_std": 0.5,
                "scales": [{"joint": JOINTS, "field": "friction_loss"}],
            }
        },
        **more,
    }


def written(folder: Path, entries: dict) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "scenario.yaml").write_text(yaml.safe_dump(entries))
    return folder / "scenario.yaml"


@pytest.fixture
def arm(tmp_path) -> Path:
    """A folder with the files of an arm, untouched."""
    shutil.copytree(ROBOTS / "trs_so_arm100", tmp_path / "arm" / "trs_so_arm100")
    return tmp_path / "arm"


@needs_robots
def test_an_arm_with_payload_tool_table_and_block_and_its_files_untouched(arm):
    tool = {"columns": ["x", "y", "z"], "unit": "m", "frame": "world", "reads": {"sensor": "tool_pos"}, "noise": 0.001}
    block = {**tool, "reads": {"free_joint_position": "block"}}
    entries = document("trs_so_arm100/so_arm100.xml", adds=ARM_ADDS)
    entries["channels"] |= {"tool": tool, "block": block}
    scenario = load_scenario(written(arm, entries))
    model = scenario.base_model
    plain = mujoco.MjModel.from_xml_path(str(ROBOTS / "trs_so_arm100/so_arm100.xml"))
    assert model.body_subtreemass[0] == pytest.approx(plain.body_subtreemass[0] + 0.15)
    assert model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert (model.opt.cone, model.opt.impratio) == (plain.opt.cone, plain.opt.impratio)
    assert model.nmesh == plain.nmesh
    home, command = scenario.home
    np.testing.assert_allclose(home[:6], plain.key_qpos[0])
    np.testing.assert_allclose(home[6:9], [0, -0.3, 0.02])
    np.testing.assert_allclose(command, plain.key_ctrl[0])
    states = np.concatenate([home, np.zeros(model.nv), np.zeros(3)])[None]
    with MujocoSimulator(scenario, threads=1) as simulator:
        after = simulator.rollout(states, np.tile(command, (1, 5, 1)), scenario.space.nominal)
    data = mujoco.MjData(model)
    data.qpos[:] = after[0, -1, : model.nq]
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(scenario.measure(after)["tool"][0, -1], data.site("tool").xpos, atol=1e-9)
    assert scenario.spec().compile().nq == model.nq
    loaded = load_scenario(scenario.save(arm.parent / "saved"))
    assert loaded.base_model.nq == model.nq


@needs_robots
def test_a_scene_that_includes_the_robot_and_muJoCos_own_attach_need_no_additions(arm):
    (arm / "bench.xml").write_text(
        """<mujoco><asset><model name="arm" file="trs_so_arm100/so_arm100.xml"/></asset>
        <worldbody><frame pos="0 0 0.1"><attach model="arm" body="Base" prefix=""/></frame></worldbody></mujoco>"""
    )
    scenario = load_scenario(written(arm, document("bench.xml")))
    assert scenario.base_model.body("Base").pos[2] == pytest.approx(0.1)
    assert load_scenario(written(arm, document("trs_so_arm100/scene.xml"))).base_model.geom("floor").id >= 0


@needs_robots
def test_a_drones_unnamed_free_joint_is_found_by_its_body(tmp_path):
    shutil.copytree(ROBOTS / "skydio_x2", tmp_path / "x2")
    rotors = [f"thrust{index}" for index in range(1, 5)]
    pose = {
        "position": {"columns": ["x", "y", "z"], "unit": "m", "reads": {"free_joint_position": "x2"}, "noise": 0.002},
        "turn": {
            "columns": ["qw", "qx", "qy", "qz"],
            "unit": "1",
            "noise": 0.005,
            "reads": {"free_joint_quaternion": "x2"},
        },
    }
    channels = {name: {**entry, "frame": "world"} for name, entry in pose.items()}
    channels["u"] = {"columns": rotors, "unit": "N", "frame": "body", "stamp": "held_until_next"}
    mass = {"nominal": 1.0, "lower": 0.5, "upper": 2.0, "unit": "1", "prior_std": 0.3}
    entries = document("x2.xml", channels=channels, gap_channel="position")
    entries["parameters"] = {"mass": {**mass, "scales": [{"body": "x2", "field": "mass"}]}}
    scenario = load_scenario(written(tmp_path / "x2", entries))
    assert scenario.observed_channel("position").dofs == (0, 1, 2)
    assert load_scenario(scenario.save(tmp_path / "saved")).observed == scenario.observed


class TestFunction:
    def write(self, folder: Path, text: str) -> Path:
        (folder).mkdir(exist_ok=True)
        (folder / "model.py").write_text(text)
        entries = document("model.py:build")
        for entry in entries["channels"].values():
            entry["columns"] = ["j"]
        entries["channels"]["q"]["reads"] = {"joints": ["j"]}
        entries["parameters"]["friction"]["scales"] = [{"joint": "j", "field": "friction_loss"}]
        return written(folder, entries)

    def test_a_function_makes_the_model_and_an_edit_of_it_is_seen(self, tmp_path):
        text = """import mujoco

from .parts import LENGTH_M

def build():
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="b")
    body.add_joint(name="j", frictionloss=0.1)
    body.add_geom(size=[LENGTH_M, 0, 0], mass=1.0)
    actuator = spec.add_actuator(name="j", target="j", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    actuator.set_to_position(kp=3.0)
    return spec
"""
        (tmp_path / "parts.py").write_text("LENGTH_M = 0.1\n")
        path = self.write(tmp_path, text)
        scenario = load_scenario(path)
        assert scenario.base_model.actuator_gainprm[0, 0] == 3.0
        assert load_scenario(path) is scenario
        (tmp_path / "parts.py").write_text("LENGTH_M = 0.25\n")
        assert load_scenario(path).base_model.geom_size[0, 0] == 0.25

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "def build():\n    return 3\n",
                "scenario.yaml, mjcf: model.py:build: got int 3; expected a function that returns an mujoco.MjSpec. "
                "Correct the function there.",
            ),
            (
                "def build():\n    return {}['arm']\n",
                "scenario.yaml, mjcf: model.py:build: model.py, line 2: got KeyError: 'arm'; expected Python that "
                "runs. Correct the file there.",
            ),
        ],
    )
    def test_a_function_that_does_not_is_refused_with_its_line(self, tmp_path, text, message):
        with pytest.raises(ScenarioError) as error:
            load_scenario(self.write(tmp_path, text))
        assert str(error.value) == message


@needs_robots
@pytest.mark.parametrize(
    ("adds", "message"),
    [
        (
            {"Jaw": '<site name="tool"/>'},
            "scenario.yaml, adds, Jaw: got body 'Jaw'; expected one of Base, Rotation_Pitch, Upper_Arm, Lower_Arm, "
            "Wrist_Pitch_Roll, Fixed_Jaw, Moving_Jaw, or world, or mjcf for whole sections. Correct `adds` in the "
            "scenario's YAML file.",
        ),
        (
            {"Base": '<site name="tool">'},
            "scenario.yaml, adds, Base: got '<site name=\"tool\">' (mismatched tag: line 1, column 26); expected "
            "elements of MJCF. Correct `adds` in the scenario's YAML file.",
        ),
        (
            {"mjcf": '<asset><mesh file="/etc/hostname"/></asset>'},
            "scenario.yaml, adds, mjcf: got <mesh> that names a file; expected files in the MJCF alone: write one that "
            "includes the robot's. Correct `adds` in the scenario's YAML file.",
        ),
        (
            {"Base": '<geom name="g" tpye="box"/>'},
            "scenario.yaml, mjcf: so_arm100.xml with `adds`: got XML Error: Schema violation: unrecognized attribute",
        ),
    ],
)
def test_what_is_wrong_with_an_addition_is_said(arm, adds, message):
    with pytest.raises(ScenarioError) as error:
        load_scenario(written(arm, document("trs_so_arm100/so_arm100.xml", adds=adds)))
    assert str(error.value).startswith(message)


@needs_robots
def test_a_joint_between_those_of_keyframes_is_refused(tmp_path):
    shutil.copytree(ROBOTS / "trossen_wx250s", tmp_path / "wx")
    hinged = '<body name="hinged"><joint name="extra"/><geom size="0.1" mass="1"/></body>'
    with pytest.raises(ScenarioError) as error:
        load_scenario(written(tmp_path / "wx", document("wx250s.xml", adds={"wx250s/left_finger_link": hinged})))
    assert str(error.value) == (
        "scenario.yaml, adds: got joints that are added between those of a robot with keyframes; expected bodies with "
        "joints added to world, where they come last. Correct `adds` in the scenario's YAML file."
    )


@needs_robots
def test_a_missing_mesh_is_named(arm):
    (arm / "trs_so_arm100/assets/Base.stl").unlink()
    with pytest.raises(
        ScenarioError, match=r"scenario\.yaml, mjcf: so_arm100\.xml: got .*Base\.stl.* expected an MJCF"
    ):
        load_scenario(written(arm, document("trs_so_arm100/so_arm100.xml")))


_INERTIAL = (
    '<inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>'
)
URDF = f"""<robot name="gripper">
  <link name="base"/><link name="left">{_INERTIAL}</link><link name="right">{_INERTIAL}</link>
  <joint name="left" type="revolute"><parent link="base"/><child link="left"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="0.1" friction="0.05"/></joint>
  <joint name="right" type="revolute"><parent link="base"/><child link="right"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="left" multiplier="-1"/></joint>
  <transmission name="left_motor"><joint name="left"/></transmission>
</robot>
"""


class TestUrdf:
    def load(self, folder: Path, text: str, adds: dict[str, str]) -> Scenario:
        (folder / "gripper.urdf").write_text(text)
        entries = document("gripper.urdf", adds={"left": '<site name="tip"/>', **adds})
        for entry in entries["channels"].values():
            entry["columns"] = ["left"]
        entries["channels"]["q"]["reads"] = {"joints": ["left"]}
        entries["parameters"]["friction"]["scales"] = [{"joint": "left", "field": "friction_loss"}]
        return load_scenario(written(folder, entries))

    def test_a_urdf_gets_actuators_and_sites_by_additions_and_its_mimic_is_an_equality(self, tmp_path):
        servo = '<actuator><position name="left" joint="left" kp="2"/></actuator>'
        model = self.load(tmp_path, URDF, {"mjcf": servo}).base_model
        assert (model.nu, model.nsite, model.neq, model.joint("left").id) == (1, 1, 1, 0)
        assert model.dof_frictionloss[0] == pytest.approx(0.05)

    def test_parts_that_mujoco_leaves_out_are_refused(self, tmp_path):
        macro = '<xacro:arm xmlns:xacro="http://ros.org/wiki/xacro"/></robot>'
        with pytest.raises(ScenarioError) as error:
            self.load(tmp_path, URDF.replace("</robot>", macro), {})
        assert str(error.value) == (
            "scenario.yaml, mjcf: gripper.urdf: got URDF parts that MuJoCo leaves out: transmission (left_motor), "
            "xacro (arm); expected a URDF of links, joints and meshes. Expand macros with xacro; write motors in "
            '`adds`: mjcf: <actuator><position name="a" joint="a" kp="10"/></actuator>.'
        )


class TestMenagerie:
    @pytest.fixture(autouse=True)
    def package(self, monkeypatch):
        pytest.importorskip("mujoco_menagerie")
        monkeypatch.setenv("MENAGERIE_ROOT", str(ROBOTS))

    @needs_robots
    def test_a_robot_by_name(self, tmp_path):
        scenario = load_scenario(written(tmp_path, document("menagerie:trs_so_arm100", adds=ARM_ADDS)))
        assert scenario.base_model.nu == 6
        assert (
            load_scenario(written(tmp_path, document("menagerie:trs_so_arm100/scene"))).base_model.geom("floor").id >= 0
        )

    @needs_robots
    def test_no_such_robot_entry_or_download(self, tmp_path, monkeypatch):
        for name, words in (
            ("menagerie:trs_so_arm", "Unknown robot 'trs_so_arm'. Did you mean 'trs_so_arm100'?"),
            ("menagerie:trs_so_arm100/sene", "has no entry point 'sene'"),
        ):
            with pytest.raises(ConfigError) as error:
                load_scenario(written(tmp_path, document(name)))
            assert words in str(error.value)
        monkeypatch.delenv("MENAGERIE_ROOT")
        monkeypatch.setenv("MENAGERIE_CACHE_DIR", str(tmp_path / "cache"))
        with pytest.raises(ConfigError, match="Without network, set MENAGERIE_ROOT"):
            load_scenario(written(tmp_path, document("menagerie:trs_so_arm100")))
