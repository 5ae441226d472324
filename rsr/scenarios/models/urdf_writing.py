"""A compiled model as URDF, as far as URDF can say it, and what it cannot."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from rsr.common import write_bytes, write_text

_HINGE, _SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
_GEOM = mujoco.mjtGeom
_UNLIMITED = 1e6
"""URDF demands limits of force, of speed, and of where a slide ends: a number that nothing reaches."""
Element = ElementTree.Element


def write_urdf(model: mujoco.MjModel, path: Path, name: str) -> tuple[str, ...]:
    """Write a URDF and, in `STEM_meshes`, its meshes; returns what it cannot say, in words.

    Links stand at their joints, with the axes of their bodies. A joint is 0 where MuJoCo has its reference (`ref`).
    A named site is a link without mass. Plain MuJoCo reads it back to the same masses, inertias and forces of gravity.
    """
    cannot = _left_out(model)
    if (model.jnt_type == _BALL).any():
        return (*cannot, "all of it: there are ball joints, which URDF does not know; no URDF was written")
    writing = _Writing(model, path, ElementTree.Element("robot", name=name))
    said = ElementTree.SubElement(ElementTree.SubElement(writing.robot, "mujoco"), "compiler")
    said.attrib.update(strippath="false", fusestatic="true", discardvisual="false")
    writing.links()
    ElementTree.indent(writing.robot)
    text = ElementTree.tostring(writing.robot, encoding="unicode")
    write_text(path, f'<?xml version="1.0"?>\n{text}\n')
    return (*cannot, *writing.lost)


_NO_MASS = 1e-12
"""kg and kg m2 of a link between two joints of a body: MuJoCo moves no link without any."""


@dataclass
class _Writing:
    """A URDF in the making: one link a body, and what its shapes could not say."""

    model: mujoco.MjModel
    path: Path
    robot: Element
    lost: list[str] = field(default_factory=list)

    def links(self) -> None:
        """Add all bodies in their order, then the sites."""
        ElementTree.SubElement(self.robot, "link", name=_name(self.model, "body", 0))
        self._shapes(self.robot[-1], 0)
        for body in range(1, self.model.nbody):
            self._body(body)
        for site in range(self.model.nsite):
            if self.model.site(site).name:
                self._site(site)

    def _body(self, body: int) -> None:
        """One joint after the other, between links without mass, and the body's link at the last of them."""
        model, name = self.model, _name(self.model, "body", body)
        parent = int(model.body_parentid[body])
        above, place = _name(model, "body", parent), model.body_pos[body] - _anchor(model, parent)
        turn = _matrix(model.body_quat[body])
        joints = list(range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]))
        for index, joint in enumerate(joints):
            below = name if joint == joints[-1] else f"{name}_before_{_name(model, 'joint', joints[index + 1])}"
            anchor = np.zeros(3) if model.jnt_type[joint] == _FREE else model.jnt_pos[joint]
            self._link(below, body if below == name else None)
            self._joint(joint, above, below, place + turn @ anchor, turn)
            above, place, turn = below, -anchor, np.eye(3)
        if not joints:
            self._link(name, body)
            self._tie(f"{name}_fixed", above, name, place, turn)

    def _link(self, name: str, body: int | None) -> None:
        link, model = ElementTree.SubElement(self.robot, "link", name=name), self.model
        if body is None:
            _inertial(link, np.zeros(3), _NO_MASS, _NO_MASS * np.eye(3))
            return
        if model.body_mass[body] > 0:
            axes = _matrix(model.body_iquat[body])
            inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
            _inertial(link, model.body_ipos[body] - _anchor(model, body), model.body_mass[body], inertia)
        self._shapes(link, body)

    def _joint(self, joint: int, above: str, below: str, place: np.ndarray, turn: np.ndarray) -> None:
        model, kind = self.model, int(self.model.jnt_type[joint])
        limited = bool(model.jnt_limited[joint])
        words = {_FREE: "floating", _SLIDE: "prismatic"}.get(kind, "revolute" if limited else "continuous")
        element = self._tie(_name(model, "joint", joint), above, below, place, turn, words)
        if kind == _FREE:
            return
        dof, reference = int(model.jnt_dofadr[joint]), float(model.qpos0[model.jnt_qposadr[joint]])
        ElementTree.SubElement(element, "axis", xyz=_numbers(model.jnt_axis[joint]))
        friction = {"damping": _number(model.dof_damping[dof]), "friction": _number(model.dof_frictionloss[dof])}
        ElementTree.SubElement(element, "dynamics", friction)
        limits = {"effort": _number(_effort(model, joint)), "velocity": _number(_UNLIMITED)}
        if limited or kind == _SLIDE:
            ends = model.jnt_range[joint] - reference if limited else (-_UNLIMITED, _UNLIMITED)
            limits |= {"lower": _number(ends[0]), "upper": _number(ends[1])}
        ElementTree.SubElement(element, "limit", limits)

    def _tie(
        self, name: str, above: str, below: str, place: np.ndarray, turn: np.ndarray, kind: str = "fixed"
    ) -> Element:
        element = ElementTree.SubElement(self.robot, "joint", name=name, type=kind)
        ElementTree.SubElement(element, "parent", link=above)
        ElementTree.SubElement(element, "child", link=below)
        _origin(element, place, turn)
        return element

    def _site(self, site: int) -> None:
        model, body = self.model, int(self.model.site_bodyid[site])
        taken = {link.attrib["name"] for link in self.robot.iter("link")}
        name = model.site(site).name
        name = f"{name}_site" if name in taken else name
        ElementTree.SubElement(self.robot, "link", name=name)
        place = model.site_pos[site] - _anchor(model, body)
        self._tie(f"{name}_fixed", _name(model, "body", body), name, place, _matrix(model.site_quat[site]))

    def _shapes(self, link: Element, body: int) -> None:
        model = self.model
        first = int(model.body_geomadr[body])
        for geom in range(first, first + int(model.body_geomnum[body])) if first >= 0 else ():
            touches = model.geom_contype[geom] or model.geom_conaffinity[geom] or _is_paired(model, geom)
            place, turn = model.geom_pos[geom] - _anchor(model, body), _matrix(model.geom_quat[geom])
            for shape, along in self._parts(geom):
                part = ElementTree.SubElement(link, "collision" if touches else "visual")
                _origin(part, place + turn[:, 2] * along, turn)
                ElementTree.SubElement(part, "geometry").append(shape)

    def _parts(self, geom: int) -> Iterator[tuple[Element, float]]:
        """Shapes of a geom, and where along its axis each is."""
        model, kind, size = self.model, int(self.model.geom_type[geom]), self.model.geom_size[geom]
        ball = {"radius": _number(size[0])}
        if kind == _GEOM.mjGEOM_SPHERE:
            yield Element("sphere", ball), 0.0
        elif kind == _GEOM.mjGEOM_BOX:
            yield Element("box", size=_numbers(2 * size)), 0.0
        elif kind in (_GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_CAPSULE):
            yield Element("cylinder", ball | {"length": _number(2 * size[1])}), 0.0
            if kind == _GEOM.mjGEOM_CAPSULE:
                yield Element("sphere", ball), size[1]
                yield Element("sphere", ball), -size[1]
        elif kind == _GEOM.mjGEOM_MESH:
            yield Element("mesh", filename=self._mesh(int(model.geom_dataid[geom]))), 0.0
        else:
            self.lost.append(f"geom '{model.geom(geom).name}' ({_GEOM(kind).name.removeprefix('mjGEOM_').lower()})")

    def _mesh(self, mesh: int) -> str:
        """Write a mesh as STL; returns its path beside the URDF."""
        model = self.model
        first, faces = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
        corners = model.mesh_vert[first + model.mesh_face[faces : faces + int(model.mesh_facenum[mesh])]]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
        rows = np.zeros(len(corners), [("numbers", "<f4", 12), ("colour", "<u2")])
        rows["numbers"] = np.concatenate([normals, corners.reshape(-1, 9)], axis=1)
        name = f"{self.path.stem}_meshes/{model.mesh(mesh).name or mesh}.stl"
        write_bytes(self.path.with_name(name.split("/")[0]) / name.split("/")[1],
                    bytes(80) + struct.pack("<I", len(rows)) + rows.tobytes())  # fmt: skip
        return name


def _left_out(model: mujoco.MjModel) -> tuple[str, ...]:
    """What the model has and URDF has no words for."""
    counts = {
        "actuators": model.nu,
        "tendons": model.ntendon,
        "equalities": model.neq,
        "sensors": model.nsensor,
        "cameras": model.ncam,
        "contact pairs and their friction": model.npair,
        "armature of joints": np.count_nonzero(model.dof_armature),
        "springs of joints": np.count_nonzero(model.jnt_stiffness),
        "reference angles (a joint is 0 there in the URDF)": _references(model),
        "compensated gravity": np.count_nonzero(model.body_gravcomp),
    }
    gravity = () if np.allclose(model.opt.gravity, (0, 0, -9.81)) else ("gravity other than 9.81 m/s2 along -z",)
    air = ("air",) if model.opt.density or model.opt.viscosity else ()
    return (*(f"{what} ({count})" for what, count in counts.items() if count), *gravity, *air)


def _references(model: mujoco.MjModel) -> int:
    simple = np.isin(model.jnt_type, (_HINGE, _SLIDE))
    return int(np.count_nonzero(model.qpos0[model.jnt_qposadr[simple]]))


def _anchor(model: mujoco.MjModel, body: int) -> np.ndarray:
    """Where the link of a body is, in the body's frame: at its last joint."""
    last = int(model.body_jntadr[body] + model.body_jntnum[body] - 1)
    return np.zeros(3) if not model.body_jntnum[body] or model.jnt_type[last] == _FREE else model.jnt_pos[last]


def _effort(model: mujoco.MjModel, joint: int) -> float:
    """Largest force that the actuators of a joint exert, as far as it is limited."""
    if model.jnt_actfrclimited[joint]:
        return float(np.abs(model.jnt_actfrcrange[joint]).max())
    of_joint = (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT) & (model.actuator_trnid[:, 0] == joint)
    if not of_joint.any() or not model.actuator_forcelimited[of_joint].all():
        return _UNLIMITED
    largest = np.abs(model.actuator_forcerange[of_joint]).max(axis=1)
    return float((largest * np.abs(model.actuator_gear[of_joint, 0])).sum())


def _is_paired(model: mujoco.MjModel, geom: int) -> bool:
    return bool((model.pair_geom1 == geom).any() or (model.pair_geom2 == geom).any())


def _name(model: mujoco.MjModel, element: str, index: int) -> str:
    return str(getattr(model, element)(index).name) or f"{element}_{index}"


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def _inertial(link: Element, centre: np.ndarray, mass: float, inertia: np.ndarray) -> None:
    inertial = ElementTree.SubElement(link, "inertial")
    _origin(inertial, centre, np.eye(3))
    ElementTree.SubElement(inertial, "mass", value=_number(mass))
    places = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ElementTree.SubElement(inertial, "inertia", {key: _number(inertia[at]) for key, at in places.items()})


def _origin(element: Element, place: np.ndarray, turn: np.ndarray) -> None:
    """URDF's rpy, turns about the parent's axes: turn = Rz(about_z) Ry(pitch) Rx(roll)."""
    about_z = np.arctan2(turn[1, 0], turn[0, 0])
    # Whatever it is near pitch = 90 degrees, where it is arbitrary: the rest is what it leaves.
    cosine, sine = np.cos(about_z), np.sin(about_z)
    rest = np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]]) @ turn
    pitch, roll = np.arctan2(-rest[2, 0], rest[0, 0]), np.arctan2(-rest[1, 2], rest[1, 1])
    ElementTree.SubElement(element, "origin", xyz=_numbers(place), rpy=_numbers((roll, pitch, about_z)))


def _number(value: float) -> str:
    return repr(float(value) + 0.0)


def _numbers(values: np.ndarray | tuple[float, ...]) -> str:
    return " ".join(map(_number, values))
