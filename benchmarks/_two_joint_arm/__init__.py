"""A scenario as a user would write it: two joints, commanded by torque, speed or position. For benchmarks and tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from rsr.scenarios import Scenario, load_scenario

FOLDER = Path(__file__).parent
_MOTORS = {
    "velocity": '<velocity name="{0}" joint="{0}" kv="{1}" ctrlrange="-{2} {2}"/>',
    "position": '<position name="{0}" joint="{0}" kp="{1}" dampratio="1" inheritrange="1"/>',
}
_ACTIONS = {
    "velocity": "AbsoluteAction(lower=(-3.0, -3.0), upper=(3.0, 3.0))",
    "position": "DisplacementAction(scale=(0.03, 0.03), lower=(-2.5, -2.2), upper=(2.5, 2.2))",
}


def two_joint_arm(folder: Path, kind: str = "torque", **changes: Any) -> Scenario:
    """Write the scenario into a folder and load it.

    Args:
        kind: of its commands.
        changes: keys of the YAML file to add or replace.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("scene.xml", "scenario.yaml", "task.py"):
        shutil.copyfile(FOLDER / name, folder / name)
    document = yaml.safe_load((folder / "scenario.yaml").read_text()) | changes
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    if kind != "torque":
        _exchange(folder, kind)
    return load_scenario(folder)


def _exchange(folder: Path, kind: str) -> None:
    scene, task = (folder / "scene.xml").read_text(), (folder / "task.py").read_text()
    head, tail = scene.split("<actuator>")
    rows = [_MOTORS[kind].format("shoulder", 20, 3), _MOTORS[kind].format("elbow", 8, 3)]
    (folder / "scene.xml").write_text(f"{head}<actuator>{''.join(rows)}{tail[tail.index('</actuator>') :]}")
    task = task.replace("AbsoluteAction(lower=(-4.0, -2.0), upper=(4.0, 2.0))", _ACTIONS[kind])
    (folder / "task.py").write_text(
        task.replace("import AbsoluteAction,", "import AbsoluteAction, DisplacementAction,")
    )
