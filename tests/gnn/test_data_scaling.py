"""Data scaling: the same bytes from the same seed, also after a kill; scenes are possible ones, and differ."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from pushes_at_hand import KNOWN

from rsr.errors import CalibrationError, ConfigError, WorkspaceError
from rsr.files import read_json, sha256
from rsr.gnn import scaling as module
from rsr.gnn.rotations import turned
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.scenarios.two_cubes import ContactParameters

SMALL = 8


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(module, "SHARD", SMALL)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One folder of each kind."""
    root = tmp_path_factory.mktemp("scaled")
    kinds = {"cubes": Scaling(frames=20), "varied": Scaling("varied", 4, 20), "bowling": Scaling("bowling", 11, 40)}
    counts = {"cubes": 40, "varied": 24, "bowling": 2}
    return {
        kind: load_scaled(generate_trajectories(KNOWN, root / kind, counts[kind], each)) for kind, each in kinds.items()
    }


def test_equal_seeds_give_equal_bytes_whatever_was_interrupted(tmp_path):
    whole = generate_trajectories(KNOWN, tmp_path / "whole", 20, Scaling(frames=5), seed=2, threads=1)
    other = generate_trajectories(KNOWN, tmp_path / "other", 20, Scaling(frames=5), seed=2)
    assert sha256(whole) == sha256(other)
    assert sorted(path.name for path in whole.iterdir())[-1] == "sums.json"
    (other / "shard-001.npz").unlink()
    (other / "shard-002.npz").write_bytes(b"cut short")
    (other / "sums.json").unlink()
    with pytest.raises(WorkspaceError, match="that `rsr gnn data` finished"):
        load_scaled(other)
    kept = (other / "shard-000.npz").stat().st_mtime_ns
    seen = []
    generate_trajectories(
        KNOWN, other, 20, Scaling(frames=5), seed=2, advance=lambda fraction, words="": seen.append(fraction)
    )
    assert sha256(whole) == sha256(other)
    assert (other / "shard-000.npz").stat().st_mtime_ns == kept
    assert seen == pytest.approx([1 / 3, 2 / 3, 1])
    third = generate_trajectories(KNOWN, tmp_path / "third", 20, Scaling(frames=5), seed=3)
    assert sha256(whole / "shard-000.npz") != sha256(third / "shard-000.npz")


KILLED = """
import sys
from pathlib import Path
from rsr.gnn import scaling
from rsr.gnn.scaling import Scaling, generate_trajectories
from rsr.scenarios.two_cubes import ContactParameters
scaling.SHARD = 8
say = lambda fraction, words: print(words, flush=True)
generate_trajectories(ContactParameters(0.3), Path(sys.argv[1]), 160, Scaling(frames=5), seed=5, advance=say)
"""


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path):
    """SIGKILL, somewhere in the middle of the shards."""
    folder = tmp_path / "killed"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        said = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGKILL)
    assert said[2] == "24 of 160\n"
    made = len(list(folder.glob("shard-*.npz")))
    assert 3 <= made < 20
    generate_trajectories(ContactParameters(0.3), folder, 160, Scaling(frames=5), seed=5)
    for leftover in folder.glob(".*.part"):
        leftover.unlink()
    whole = generate_trajectories(ContactParameters(0.3), tmp_path / "whole", 160, Scaling(frames=5), seed=5)
    assert sha256(folder) == sha256(whole)


def test_a_folder_holds_one_set(tmp_path):
    folder = generate_trajectories(KNOWN, tmp_path, 4, Scaling(frames=5))
    card = read_json(folder / "card.json")
    assert len(card["settings_sha256"]) == 64
    for changed, message in (
        ((ContactParameters(), folder, 4, Scaling(frames=5), 0), "another contact"),
        ((KNOWN, folder, 4, Scaling(frames=6), 0), "another scaling"),
        ((KNOWN, folder, 5, Scaling(frames=5), 1), "another trajectories, seed"),
    ):
        with pytest.raises(WorkspaceError, match=message):
            generate_trajectories(*changed)
    (folder / "shard-000.npz").write_bytes(b"altered")
    with pytest.raises(WorkspaceError, match="0 whole shards of 1"):
        load_scaled(folder)
    (folder / "card.json").write_text("{")
    with pytest.raises(WorkspaceError, match=r"card\.json that cannot be read"):
        generate_trajectories(KNOWN, folder, 4, Scaling(frames=5))


@pytest.mark.parametrize("settings", [("balls", 2, 30), ("cubes", 1, 30), ("cubes", 2, 2)])
def test_what_cannot_be_drawn_is_refused(settings):
    with pytest.raises(ConfigError, match="data scaling: got .* expected at least 3 frames of at least 2 bodies"):
        Scaling(*settings)


def test_no_trajectories_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="data scaling: got -5 trajectories; expected at least 1"):
        generate_trajectories(KNOWN, tmp_path / "none", -5, Scaling(frames=5))
    assert not (tmp_path / "none").exists()


def test_a_teacher_that_throws_bodies_about_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_FASTEST_M_S", 0.01)
    with pytest.raises(CalibrationError, match="got 50 scenes in a row in which a body topples or is thrown off"):
        generate_trajectories(KNOWN, tmp_path, 1, Scaling(frames=3))


def test_pushes_hit_and_stay_on_the_table(folders):
    for trajectories in folders.values():
        for each in trajectories:
            lowest = [
                (each.poses[:, body, None, 2] + turned(each.poses[:, body, None, 3:], mesh.vertices_m)[..., 2]).min()
                for body, mesh in enumerate(solid.mesh for solid in each.world.bodies)
            ]
            assert -2e-3 < min(lowest) < 1e-3
    struck = [np.linalg.norm(each.poses[-1, 1, :3] - each.poses[0, 1, :3]) > 0.005 for each in folders["cubes"]]
    assert 0.6 < np.mean(struck) < 1.0
    pins = [np.linalg.norm(each.poses[-1, 1:, :3] - each.poses[0, 1:, :3], axis=-1) for each in folders["bowling"]]
    assert all((moved > 0.005).sum() >= 3 for moved in pins)
    assert all(len(each.world.bodies) == 11 and len(each) == 40 for each in folders["bowling"])


def test_varied_scenes_vary(folders):
    varied = folders["varied"]
    bodies = [body for each in varied for body in each.world.bodies]
    assert {len(each.world.bodies) for each in varied} == {2, 3, 4}
    assert {body.mesh.name for body in bodies} == {"cube", "box", "prism"}
    masses = np.array([body.mass_kg for body in bodies])
    assert masses.min() < 0.11
    assert masses.max() > 0.26
    headings = np.array([each.poses[1, 0, :2] - each.poses[0, 0, :2] for each in folders["cubes"]])
    speeds = np.linalg.norm(headings, axis=1) * 60
    assert speeds.min() < 0.5
    assert speeds.max() > 1.1
    assert np.abs(np.mean(headings / np.linalg.norm(headings, axis=1, keepdims=True), axis=0)).max() < 0.4


def test_all_velocities_are_there_from_the_first_two_frames_on(folders):
    """The run-up has been cut off: nothing is at full speed out of nowhere, cubes lie flat."""
    for each in folders["cubes"]:
        assert np.abs(each.poses[0, 0, 4:6]).max() < 0.02
        second = np.linalg.norm(np.diff(each.poses[:3, 0, :2], axis=0), axis=1) * 60
        assert second[0] < 1.6
