"""A campaign takes its scenario into its own folder: copied, versioned, and gone wherever it goes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from rsr.common import ConfigError, RsrError, WorkspaceError, cannot_write, read_yaml, write_text
from rsr.config import load_config
from rsr.workspace import SCENARIO_DIR, Workspace

_LARGEST_MB = 500
MENAGERIE = "menagerie:"
"""What a robot of MuJoCo Menagerie is named with; `rsr.scenarios.models.menagerie` finds it."""


def is_path(scenario: str) -> bool:
    """Whether a scenario is given by the path of its YAML file, or of the folder of `scenario.yaml`."""
    if scenario.startswith(MENAGERIE):
        return False
    if scenario.endswith((".yaml", ".yml")) or os.sep in scenario:
        return True
    if not (Path(scenario) / "scenario.yaml").is_file():
        return False
    from rsr.scenarios import built_in_scenarios

    return scenario not in built_in_scenarios()


def yaml_of(scenario: str, root: Path) -> Path:
    """The YAML file of a scenario given by path: from the workspace on, or else from the current folder."""
    given = next((path for path in (root / scenario, Path(scenario)) if path.exists()), Path(scenario))
    return (given / "scenario.yaml" if given.is_dir() else given).resolve()


def take_in(scenario: str, root: Path) -> str:
    """Copy a scenario's files into the workspace; returns what params.yaml calls it. Only a path becomes another one.

    Copied are the YAML file, the files that it names, what their XML includes (meshes, textures, other XML), and
    Python beside it.

    Raises:
        ConfigError: there is no such scenario, or it needs files that only an absolute path reaches.
    """
    from rsr.scenarios import load_scenario, scenario_file

    if scenario.startswith(MENAGERIE):
        own = draft_into(root / SCENARIO_DIR, scenario)
        _take_in_menagerie(own, root)
        load_scenario(str(own))
        return scenario
    given = is_path(scenario)
    file = yaml_of(scenario, root) if given else scenario_file(scenario)
    load_scenario(str(file) if given else scenario)
    if given and file.is_relative_to(root / SCENARIO_DIR):
        return file.relative_to(root).as_posix()  # a creation that was interrupted, or whoever put it there by hand
    files = sorted({file, *_belonging(file)})
    _check_size(files, file)
    common = Path(os.path.commonpath([each.parent for each in files]))
    own = root / SCENARIO_DIR / file.relative_to(common)
    _copy({each: root / SCENARIO_DIR / each.relative_to(common) for each in files}, root)
    _take_in_menagerie(own, root)
    _check_alone(own, root / SCENARIO_DIR)
    return own.relative_to(root).as_posix() if given else scenario


def draft_into(folder: Path, scenario: str) -> Path:
    """Write a first scenario.yaml for a robot of Menagerie; returns its path."""
    from rsr.scenarios import draft_scenario

    write_text(folder / "scenario.yaml", draft_scenario(scenario))
    return folder / "scenario.yaml"


def _copy(targets: Mapping[Path, Path], root: Path) -> None:
    """Copy files: from -> to."""
    try:
        for each, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(each, target)
    except OSError as error:
        raise cannot_write(root / SCENARIO_DIR, error) from error


def _take_in_menagerie(own: Path, root: Path) -> None:
    """Copy a robot of Menagerie beside the YAML file, and name it there instead of Menagerie."""
    from rsr.scenarios import PREFIX, menagerie_file

    name = read_yaml(own)["mjcf"]
    if not name.startswith(PREFIX):
        return
    from rsr.scenarios import files_of

    mjcf = menagerie_file(name)
    folder = mjcf.parent.resolve()
    files = [*files_of(folder, folder / mjcf.name), *folder.glob("LICENSE*")]
    _copy({each: own.parent / folder.name / each.relative_to(folder) for each in files}, root)
    text = re.sub(r"(?m)^mjcf:.*$", f"mjcf: {folder.name}/{mjcf.name}", own.read_text(), count=1)
    write_text(own, text)


def is_same(scenario: str, workspace: Workspace) -> bool:
    """Whether a scenario that somebody names is the one of a campaign: by name, or by the bytes of its files."""
    if not is_path(scenario):
        return scenario == load_config(workspace.settings_path).scenario
    given, own = yaml_of(scenario, Path()), Path(workspace.settings().scenario)
    try:
        return all(
            each.read_bytes() == (own.parent / os.path.relpath(each, given.parent)).read_bytes()
            for each in {given, *_belonging(given)}
        )
    except OSError:
        return False


def _belonging(file: Path) -> Iterator[Path]:
    """Files that a scenario consists of, itself among them, and those that its YAML names."""
    from rsr.scenarios import is_built_in, scenario_files

    own_python = not is_built_in(file) or (file.parent / "task.py").is_file()  # others' is the project's own
    yield from (path for path in scenario_files(file) if own_python or path.suffix != ".py")
    for word in _words(read_yaml(file)):
        path = _named(file.parent, word.partition(":")[0])
        if path is not None:
            yield path
            if path.suffix == ".py":
                yield from path.parent.glob("*.py")


def _named(folder: Path, word: str) -> Path | None:
    try:
        path = folder / word
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError):  # no path at all, but a long text
        return None


def _words(value: object) -> Iterator[str]:
    """Every text in a YAML document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _words(each)
    elif isinstance(value, list):
        for each in value:
            yield from _words(each)


def _check_size(files: list[Path], file: Path) -> None:
    size_mb = sum(each.stat().st_size for each in files) / 1e6
    if size_mb > _LARGEST_MB:
        raise WorkspaceError(
            got=f"a scenario of {size_mb:.0f} MB",
            expected=f"at most {_LARGEST_MB} MB: git keeps its files with the campaign",
            where=str(file),
            next_step="Use smaller meshes, or none: visual meshes are not simulated.",
        )


def _check_alone(own: Path, folder: Path) -> None:
    """See that the copy loads, and from its own files alone."""
    from rsr.scenarios import load_scenario

    outside = [path for path in _belonging(own) if not path.is_relative_to(folder.resolve())]
    try:
        if not outside:
            load_scenario(str(own))
            return
        got = f"a scenario that needs {outside[0]}, by its absolute path"
    except RsrError as error:
        got = f"a copy that does not load ({error.got})"
    shutil.rmtree(folder)
    raise ConfigError(
        got=got,
        expected="files that the scenario reaches by relative paths, which a campaign can keep with itself",
        where=str(own.name),
        next_step="Name meshes, textures and included files relative to the XML file.",
    )
