"""Where a scenario's files are: built in, at a path, or kept by a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rsr.common import ConfigError, inside, read_yaml
from rsr.scenarios.models.guarded_mjcf import files_of
from rsr.scenarios.models.menagerie import PREFIX
from rsr.scenarios.models.model_source import is_python

TASK_FILE = "task.py"
_BUILT_IN = Path(__file__).resolve().parent / "built_in"


def built_in_scenarios() -> tuple[str, ...]:
    """Names that `load_scenario` knows without a path.

    Examples:
        >>> "double_pendulum" in built_in_scenarios()
        True
    """
    return tuple(sorted(path.parent.name for path in _BUILT_IN.glob("*/scenario.yaml")))


def built_in_tasks() -> tuple[str, ...]:
    """Names of the built-in scenarios that have a task for a policy."""
    return tuple(name for name in built_in_scenarios() if (_BUILT_IN / name / TASK_FILE).is_file())


def scenario_file(name: str | Path) -> Path:
    """The YAML file of a scenario that is given by name or by path.

    Raises:
        ConfigError: there is none, or a name is both a built-in one and a folder's.
    """
    path = Path(name) / "scenario.yaml" if Path(name).is_dir() else Path(name)
    if str(name) in built_in_scenarios():
        if not (Path(name) / "scenario.yaml").is_file():
            return _BUILT_IN / name / "scenario.yaml"
        if isinstance(name, str):
            raise ConfigError(
                got=f"scenario '{name}', which is built in and also a folder here",
                expected="one of the two",
                where="scenario",
                next_step=f"Write ./{name} for the folder; for the built-in one, rename the folder or go elsewhere.",
            )
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        raise ConfigError(
            got=f"scenario '{name}'",
            expected=f"one of {', '.join(built_in_scenarios())}, or the path of a scenario's YAML file",
            where="scenario",
            next_step="Correct the name in params.yaml or on the command line.",
        )
    return path


def is_built_in(path: Path) -> bool:
    """Whether a scenario's file is one that is installed with the project."""
    return path.resolve().is_relative_to(_BUILT_IN)


def file_of(artifact: Path, name: str) -> Path:
    """The YAML file of a stored policy's or calibration's scenario; see `rsr.scenarios.scenario_of`."""
    artifact = Path(artifact).resolve()
    for folder in (artifact, *artifact.parents):
        for path in sorted((folder / "scenario").rglob("*.yaml")):
            if _names(path, name):
                return path
        if (folder / "iterations.json").exists():  # the campaign's root: what lies above is another's
            break
    if name in built_in_scenarios():
        return _BUILT_IN / name / "scenario.yaml"
    raise ConfigError(
        got=f"scenario '{name}'",
        expected="a copy of it in the folder or its campaign (scenario/), or a built-in one",
        where=str(artifact),
        next_step="Take the folder from its campaign, or give the scenario: `--scenario PATH`, in Python "
        "rsr.load_scenario(...).",
    )


def _names(path: Path, name: str) -> bool:
    """Whether a YAML file is of the scenario of this name."""
    try:
        document = read_yaml(path)
    except (OSError, ValueError):
        return False
    return isinstance(document, Mapping) and document.get("name") == name and "mjcf" in document


def scenario_files(path: Path) -> list[Path]:
    """Files that a scenario is made of: its YAML file, Python beside it, and what its MJCF reads.

    A function that makes the model may read anything, so then it is all of the folder. What cannot be found is left
    out: loading says so.
    """
    folder = path.parent
    files = {path, *folder.glob("*.py")}
    try:
        document = read_yaml(path)
        files |= {stated_task_file(path, document) or path}
        mjcf = document["mjcf"]
        if is_python(mjcf):
            files |= {each for each in folder.rglob("*") if not _is_hidden(each.relative_to(folder))}
        elif not mjcf.startswith(PREFIX):
            files |= set(files_of(folder, inside(folder, mjcf)))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return sorted(each for each in files if each.is_file())


def stated_task_file(path: Path, document: Any) -> Path | None:
    """The file beside a scenario's YAML file that says its task, where `task:` names one."""
    said = document.get("task") if isinstance(document, Mapping) else None
    return path.parent / said if isinstance(said, str) and said.endswith((".yaml", ".yml")) else None


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)
