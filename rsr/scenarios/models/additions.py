"""Additions to a robot's MJCF that leave its files as their makers wrote them: a payload, a sensor, a table.

`adds:` of a scenario's YAML file says them in MuJoCo's own words, by where they belong: what lies in a body under the
body's name, what stands on the ground under `world`, and whole sections (sensor, contact, option, ...) under `mjcf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from rsr.common import ScenarioError, short

WORLD, SECTIONS = "world", "mjcf"
_FILES = ("file", "filename", "fileup", "filedown", "fileleft", "fileright", "filefront", "fileback")
_DIRECTORIES = ("meshdir", "texturedir", "assetdir", "strippath")


def with_additions(mjcf: Path, adds: Mapping[str, object], where: str) -> str:
    """The MJCF or URDF file with additions, as one MJCF that says where its meshes are.

    Args:
        adds: name of a body, `world` or `mjcf` -> MJCF that is put there.

    Raises:
        ScenarioError: there is no such body, or the addition is no XML.
    """
    root = _document(mjcf)
    _place_files(root, mjcf.parent.resolve())
    for keyframe in root.findall("keyframe"):
        root.remove(keyframe)  # too short once a joint is added: see `lengthen_keyframes`
    for name, text in adds.items():
        place = f"{where}, adds, {name}"
        _target(root, name, place).extend(_parsed(text, place))
    return ElementTree.tostring(root, encoding="unicode")


def lengthen_keyframes(spec: mujoco.MjSpec, plain: mujoco.MjModel, where: str) -> None:
    """Give the spec the keyframes of the robot alone, with what was added in its reference pose and its commands 0."""
    if not plain.nkey:
        return
    added = spec.compile()
    joints = [[model.joint(index).name for index in range(model.njnt)] for model in (plain, added)]
    if joints[1][: plain.njnt] != joints[0]:
        raise _refused(
            "joints that are added between those of a robot with keyframes",
            f"bodies with joints added to {WORLD}, where they come last",
            f"{where}, adds",
        )
    for key in range(plain.nkey):
        spec.add_key(
            name=plain.key(key).name,
            qpos=np.concatenate([plain.key_qpos[key], added.qpos0[plain.nq :]]),
            qvel=np.concatenate([plain.key_qvel[key], np.zeros(added.nv - plain.nv)]),
            ctrl=np.concatenate([plain.key_ctrl[key], np.zeros(added.nu - plain.nu)]),
        )


def _document(mjcf: Path) -> ElementTree.Element:
    root = ElementTree.parse(mjcf).getroot()
    if root.tag == "robot":  # a URDF, which has no place for sensors: MuJoCo says it as an MJCF
        return ElementTree.fromstring(mujoco.MjSpec.from_file(str(mjcf)).to_xml())
    _include(root, mjcf.parent)
    return root


def _include(element: ElementTree.Element, folder: Path) -> None:
    """Put what included files say in place of their names; these count from the folder of the whole model."""
    for child in list(element):
        if child.tag != "include":
            _include(child, folder)
            continue
        index, included = list(element).index(child), ElementTree.parse(folder / child.attrib["file"]).getroot()
        _include(included, folder)
        element.remove(child)
        for offset, each in enumerate(included):
            element.insert(index + offset, each)


def _place_files(root: ElementTree.Element, folder: Path) -> None:
    """Say by absolute paths where meshes, textures and attached models lie."""
    stated = {"meshdir": "", "texturedir": ""}
    for compiler in root.iter("compiler"):
        for name in _DIRECTORIES[:3]:
            if (value := compiler.attrib.pop(name, None)) is not None:
                stated |= dict.fromkeys(stated, value) if name == "assetdir" else {name: value}
    placed = {name: str(folder / value) for name, value in stated.items()}
    root.insert(0, ElementTree.Element("compiler", placed))
    for model in root.iter("model"):
        if "file" in model.attrib:
            model.set("file", str(folder / model.attrib["file"]))


def _target(root: ElementTree.Element, name: str, where: str) -> ElementTree.Element:
    """The element that an addition goes into."""
    if name == SECTIONS:
        return root
    if name == WORLD:
        found = root.findall("worldbody")
        return found[-1] if found else ElementTree.SubElement(root, "worldbody")
    bodies = [body for body in root.iter("body") if "name" in body.attrib]
    for body in bodies:
        if body.attrib["name"] == name:
            return body
    raise _refused(
        f"body '{name}'",
        f"one of {', '.join(body.attrib['name'] for body in bodies)}, or {WORLD}, or {SECTIONS} for whole sections",
        where,
    )


def _parsed(text: object, where: str) -> list[ElementTree.Element]:
    if not isinstance(text, str):
        raise _refused(short(text), "MJCF as text, such as '<site name=\"tool\"/>'", where)
    try:
        parts = list(ElementTree.fromstring(f"<adds>{text}</adds>"))
    except ElementTree.ParseError as error:
        raise _refused(f"{short(text)} ({error})", "elements of MJCF", where) from error
    for element in (element for part in parts for element in part.iter()):
        if element.tag == "include" or not element.attrib.keys().isdisjoint((*_FILES, *_DIRECTORIES)):
            expected = "files in the MJCF alone: write one that includes the robot's"
            raise _refused(f"<{element.tag}> that names a file", expected, where)
    return parts


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=got, expected=expected, where=where, next_step="Correct `adds` in the scenario's YAML file."
    )
