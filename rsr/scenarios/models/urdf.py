"""What MuJoCo leaves out of a URDF without a word, and what to write instead."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from rsr.common import ScenarioError

_DRIVES = ("transmission", "ros2_control")


def check_urdf(path: Path, has_actuators: bool, where: str) -> None:
    """Refuse a URDF of which MuJoCo would simulate something else: macros as they stand, motors that are left out.

    Args:
        has_actuators: the scenario adds actuators, which stand for the URDF's motors.

    Raises:
        ScenarioError: naming each such part.
    """
    found = []
    for element in ElementTree.parse(path).getroot().iter():
        tag, name = str(element.tag), element.attrib.get("name", "")
        if "xacro" in tag:
            found.append(f"xacro ({tag.rpartition('}')[2]})")
        elif tag in _DRIVES and not has_actuators:
            found.append(f"{tag} ({name})")
    if found:
        raise ScenarioError(
            got=f"URDF parts that MuJoCo leaves out: {', '.join(dict.fromkeys(found))}",
            expected="a URDF of links, joints and meshes",
            where=f"{where}, mjcf: {path.name}",
            next_step="Expand macros with xacro; write motors in `adds`: "
            'mjcf: <actuator><position name="a" joint="a" kp="10"/></actuator>.',
        )
