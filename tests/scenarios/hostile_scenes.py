"""Scenarios that nobody should send: the example's files, each changed in one place for the worse."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from rsr.scenarios import load_scenario
from tests.hostile_trials import Case

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_scenario"
GOOD_XML = (EXAMPLE / "scene.xml").read_text()
_OPTION = '<option timestep="0.0025"'
Place = Callable[[Path, Path], object]
"""Put further files into the scenario's folder; also given a folder outside it."""


def _loads(folder: Path) -> Callable[[], object]:
    """Load the scenario, and a good one after it: it must not suffer."""

    def read() -> object:
        try:
            return load_scenario(str(folder / "scenario.yaml")).name
        finally:
            assert load_scenario("double_pendulum").name == "double_pendulum"

    return read


def _edited(path: str, value: Any) -> Case:
    """The example's YAML with a value at a dotted path."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        document = yaml.safe_load((EXAMPLE / "scenario.yaml").read_text())
        *parents, last = path.split(".")
        place = document
        for key in parents:
            place = place[key]
        place[last] = value(outside) if callable(value) else value
        (folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        (folder / "scene.xml").write_text(GOOD_XML)
        return _loads(folder)

    return make


def _written(content: str | bytes) -> Case:
    """Another YAML file in place of the example's."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        (folder / "scenario.yaml").write_bytes(content.encode() if isinstance(content, str) else content)
        (folder / "scene.xml").write_text(GOOD_XML)
        return _loads(folder)

    return make


def _scene(content: str | bytes | Callable[[Path], str], place: Place = lambda folder, outside: None) -> Case:
    """Another MJCF in place of the example's, and perhaps files beside it."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        (folder / "scenario.yaml").write_text((EXAMPLE / "scenario.yaml").read_text())
        place(folder, outside)
        text = content(outside) if callable(content) else content
        (folder / "scene.xml").write_bytes(text.encode() if isinstance(text, str) else text)
        return _loads(folder)

    return make


def _with(*parts: str, option: str = "", body: str = "") -> str:
    """The example's MJCF with further elements at its end, in its option, and in its world."""
    text = GOOD_XML.replace(_OPTION, f"{_OPTION} {option}").replace("</worldbody>", f"{body}</worldbody>")
    return text.replace("</mujoco>", "".join(parts) + "</mujoco>")


def _asset(element: str) -> Callable[[Path], str]:
    """An MJCF with an asset whose file lies `{outside}`."""
    return lambda outside: _with(f"<asset>{element.format(outside=outside)}</asset>")


def _moved(old: str, new: str) -> str:
    assert old in GOOD_XML
    return GOOD_XML.replace(old, new)


def _nested(levels: int) -> str:
    return "<body>" * levels + '<geom size="0.1"/>' + "</body>" * levels


def _linked(folder: Path, outside: Path) -> None:
    (folder / "m.stl").symlink_to(outside / "secret.bin")


def _piped(folder: Path, outside: Path) -> None:
    os.mkfifo(folder / "m.stl")


def _many_triangles(folder: Path, outside: Path) -> None:
    (folder / "m.stl").write_bytes(bytes(80) + struct.pack("<I", 4_000_000_000) + bytes(500))


def _sparse(folder: Path, outside: Path) -> None:
    with (folder / "m.stl").open("wb") as file:
        file.truncate(3 << 30)


def _includes_itself(folder: Path, outside: Path) -> None:
    (folder / "b.xml").write_text('<mujocoinclude><include file="b.xml"/></mujocoinclude>')


def _laughing(folder: Path, outside: Path) -> None:
    (folder / "b.xml").write_text(ENTITIES.replace("mujoco", "mujocoinclude"))


ENTITIES = '<!DOCTYPE mujoco [<!ENTITY a0 "aaaaaaaaaa">' + "".join(
    f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 12)
)
ENTITIES += "]><mujoco model='&a11;'/>"
_MESH = '<asset><mesh name="m" file="{}"/></asset>'
_LAUGHS = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
)

CASES: dict[str, Case] = {
    "yaml: aliases of aliases": _written(_LAUGHS),
    "yaml: aliases in a value": _written(_LAUGHS + "name: *h\n"),
    "yaml: deep brackets": _written("name: " + "[" * 100_000),
    "yaml: a list": _written("[1, 2]"),
    "yaml: nothing": _written(""),
    "yaml: no text": _written(bytes(range(256))),
    "yaml: 2 MB": _written("#" * (2 << 20)),
    "yaml: a Python object": _written("!!python/object/apply:os.getcwd []"),
    "yaml: a number base 60": _written("name: 1" + ":59" * 100_000),
    "control_dt_s: soon": _edited("control_dt_s", "soon"),
    "control_dt_s: 1e-3": _edited("control_dt_s", "1e-3"),
    "control_dt_s: 0": _edited("control_dt_s", 0),
    "control_dt_s: infinite": _edited("control_dt_s", float("inf")),
    "control_dt_s: a million steps": _edited("control_dt_s", 10_000.0),
    "control_dt_s: a list": _edited("control_dt_s", [0.01]),
    "history_steps: huge": _edited("history_steps", 10**18),
    "history_steps: below 0": _edited("history_steps", -1),
    "episode_steps: huge": _edited("episode_steps", 10**12),
    "episode_steps: half": _edited("episode_steps", 0.5),
    "name: a path": _edited("name", "../../x"),
    "name: a number": _edited("name", 5),
    "columns: 5": _edited("channels.puck_position.columns", 5),
    "columns: numbers": _edited("channels.puck_position.columns", [1, 2, 3]),
    "columns: a million": _edited("channels.puck_position.columns", ["x"] * 10_000),
    "channels: a list": _edited("channels", [1]),
    "parameters: a word": _edited("parameters", "friction"),
    "reads: a number": _edited("channels.puck_position.reads", {"joints": 5}),
    "reads: a name that is a list": _edited("channels.puck_position.reads", {"free_joint_position": ["puck"]}),
    "noise: a word": _edited("channels.puck_position.noise", "little"),
    "prior_std: not a number": _edited("parameters.mass.prior_std", float("nan")),
    "upper: infinite": _edited("parameters.mass.upper", float("inf")),
    "nominal: true": _edited("parameters.mass.nominal", True),
    "scale: cubic": _edited("parameters.mass.scale", "cubic"),
    "sets: a word": _edited("parameters.mass.sets", "mass"),
    "sets: a list of words": _edited("parameters.mass.sets", ["mass"]),
    "sets: an element that is a list": _edited("parameters.mass.sets", [{"body": [["puck"]], "field": "mass"}]),
    "evaluation: a list": _edited("evaluation", [1]),
    "structure: a list in a list": _edited("structure", {"condim": [[3]]}),
    "mjcf: /etc/passwd": _edited("mjcf", "/etc/passwd"),
    "mjcf: a secret, by ..": _edited("mjcf", "../../outside/secret.bin"),
    "mjcf: a pipe outside": _edited("mjcf", lambda outside: str(outside / "pipe")),
    "mjcf: a folder": _edited("mjcf", "."),
    "mjcf: a list": _edited("mjcf", ["scene.xml"]),
    "xml: entities": _scene(ENTITIES),
    "xml: entities in an include": _scene(_with('<include file="b.xml"/>'), _laughing),
    "xml: an entity of a secret": _scene(
        lambda outside: f'<!DOCTYPE m [<!ENTITY s SYSTEM "file://{outside}/secret.bin">]><mujoco model="m">&s;</mujoco>'
    ),
    "xml: includes itself": _scene(_with('<include file="b.xml"/>'), _includes_itself),
    "xml: 50,000 levels": _scene(_with(body=_nested(50_000))),
    "xml: no text": _scene(bytes(range(256))),
    "xml: a name that is no text": _scene(GOOD_XML.encode().replace(b'model="puck"', b'model="\xff\xfe"')),
    "xml: cut": _scene(GOOD_XML[:300]),
    "xml: nothing": _scene(""),
    "xml: an include by ..": _scene(_with('<include file="../../outside/secret.bin"/>')),
    "xml: an include of a pipe": _scene(lambda outside: _with(f'<include file="{outside}/pipe"/>')),
    "xml: a model of a secret": _scene(_asset('<model name="m" file="{outside}/secret.bin"/>')),
    "mesh: a pipe outside": _scene(_asset('<mesh name="m" file="{outside}/pipe" content_type="model/stl"/>')),
    "mesh: a secret by ..": _scene(_with(_MESH.format("../../outside/secret.bin"))),
    "mesh: a secret by backslashes": _scene(_with(_MESH.format("..\\..\\outside\\secret.bin"))),
    "mesh: a secret by meshdir": _scene(_with('<compiler meshdir="../../outside"/>', _MESH.format("secret.bin"))),
    "mesh: a link out": _scene(_with(_MESH.format("m.stl")), _linked),
    "mesh: a pipe": _scene(_with(_MESH.format("m.stl")), _piped),
    "mesh: four billion triangles": _scene(_with(_MESH.format("m.stl")), _many_triangles),
    "mesh: a sparse file of 3 GB": _scene(_with(_MESH.format("m.stl")), _sparse),
    "texture: a secret": _scene(_asset('<texture name="t" type="2d" file="{outside}/secret.bin"/>')),
    "texture: a pipe, as a face": _scene(_asset('<texture name="t" type="cube" fileright="{outside}/pipe"/>')),
    "texture: 100,000 squared": _scene(
        _with('<asset><texture type="2d" name="t" builtin="flat" width="100000" height="100000"/></asset>')
    ),
    "hfield: 100,000 squared": _scene(
        _with('<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>')
    ),
    "hfield: a pipe": _scene(_asset('<hfield name="h" file="{outside}/pipe" size="1 1 1 1"/>')),
    "replicate: two billion": _scene(
        _with(body='<replicate count="2000000000" offset="1 0 0"><geom size="0.1"/></replicate>')
    ),
    "replicate: 3,000 squared": _scene(
        _with(
            body='<replicate count="3000" offset="1 0 0"><replicate count="3000" offset="0 1 0"><geom size="0.1"/>'
            "</replicate></replicate>"
        )
    ),
    "flexcomp: 2,000 cubed": _scene(
        _with(body='<flexcomp name="f" type="grid" count="2000 2000 2000" spacing="1 1 1" dim="3"/>')
    ),
    "attach: itself": _scene(
        _with(
            '<asset><model name="m" file="scene.xml"/></asset>',
            body='<frame><attach model="m" body="puck" prefix="a"/></frame>',
        )
    ),
    "sensor: a billion numbers": _scene(_with('<sensor><user name="u" dim="1000000000"/></sensor>')),
    "effects: a program": _edited("effects", {"hinge": "__import__('os')._exit(7)"}),
    "task: a program": _edited("task", {"reach": "__import__('os')._exit(7)"}),
    "size: nuser_body 2e9": _scene(_with('<size nuser_body="2000000000"/>')),
    "size: nuser_geom below 0": _scene(_with('<size nuser_geom="-7"/>')),
    "size: 100 GB of memory": _scene(_with('<size memory="100G"/>')),
    "size: 600 MB of memory": _scene(_with('<size memory="600M"/>')),
    "gravity: 1e300": _scene(_moved("2.539 0 -9.4757", "0 0 1e300")),
    "gravity: not a number": _scene(_moved("2.539 0 -9.4757", "0 0 nan")),
    "timestep: 1e-300": _scene(_moved('timestep="0.0025"', 'timestep="1e-300"')),
    "timestep: 0": _scene(_moved('timestep="0.0025"', 'timestep="0"')),
    "mass: infinite": _scene(_moved('mass="0.15"', 'mass="1e999"')),
    "mass: 0": _scene(_moved('mass="0.15"', 'mass="0"')),
    "a plugin that is not there": _scene(_with('<extension><plugin plugin="mujoco.evil"/></extension>')),
}
