"""No scenario from outside reads elsewhere, hangs, eats memory or ends the process.

All cases run in one child process (`tests/hostile_trials.py`), each within 2 GB and 20 s; MuJoCo compiles each in a
further one.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

import pytest

from rsr.common.errors import ScenarioError
from rsr.scenarios import load_scenario
from rsr.scenarios.models import _compile_alone, guarded_mjcf
from tests.hostile_trials import assert_harmless, tried
from tests.scenarios.hostile_scenes import CASES, EXAMPLE


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> dict[str, dict[str, Any]]:
    return tried("tests.scenarios.hostile_scenes", tmp_path_factory.mktemp("hostile"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_a_sentence_and_harms_nothing(records, name):
    assert_harmless(records, name)


def test_they_are_sixty():
    assert len(CASES) >= 60


def test_a_scene_that_was_compiled_once_is_not_tried_again(tmp_path, monkeypatch):
    """Neither in this process nor in another of the campaign: what is remembered is the content."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("one", "two"):
        shutil.copytree(EXAMPLE, tmp_path / name)
    load_scenario(str(tmp_path / "one"))
    monkeypatch.setattr(guarded_mjcf, "_try", lambda path: pytest.fail("compiled in a child again"))
    assert load_scenario(str(tmp_path / "two")).name == "sliding_puck"


def test_a_scene_that_changed_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(EXAMPLE, tmp_path / "one")
    load_scenario(str(tmp_path / "one"))
    scene = shutil.copytree(EXAMPLE, tmp_path / "two") / "scene.xml"
    scene.write_text(scene.read_text().replace('mass="0.15"', 'mass="0"'))
    with pytest.raises(ScenarioError, match="mass and inertia of moving bodies must be larger than mjMINVAL"):
        load_scenario(str(tmp_path / "two"))


def test_what_takes_too_long_to_compile_is_said_in_processor_time(tmp_path, monkeypatch):
    """A busy machine refuses nothing: seconds on the wall end a trial only where it hangs."""
    monkeypatch.setattr(guarded_mjcf, "CPU_S", 1)
    body = '<body><joint/><geom size="0.1"/></body>'
    rows = f'<replicate count="190" offset="1 0 0"><replicate count="190" offset="0 1 0">{body}</replicate></replicate>'
    (scene := tmp_path / "scene.xml").write_text(f"<mujoco><worldbody>{rows}</worldbody></mujoco>")
    with pytest.raises(ValueError, match="^a scene that takes more than 1 s of processor time to compile$"):
        guarded_mjcf._try(scene)
    assert guarded_mjcf._HANGS_S > 20 * _compile_alone.CPU_S


def test_meshes_may_lie_in_another_folder_of_the_scenario(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(EXAMPLE, tmp_path / "own")
    (tmp_path / "own" / "scenes").mkdir()
    (tmp_path / "own" / "meshes").mkdir()
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "own" / "meshes" / "m.obj").write_text(corners)
    asset = '<compiler meshdir="../meshes"/><asset><mesh name="m" file="m.obj"/></asset></mujoco>'
    text = (tmp_path / "own" / "scene.xml").read_text().replace("</mujoco>", asset)
    (tmp_path / "own" / "scenes" / "scene.xml").write_text(text)
    file = tmp_path / "own" / "scenario.yaml"
    file.write_text(file.read_text().replace("mjcf: scene.xml", "mjcf: scenes/scene.xml"))
    assert load_scenario(str(file)).base_model.nmesh == 1
