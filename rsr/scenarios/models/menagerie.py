"""Robots of MuJoCo Menagerie by name: `menagerie:trs_so_arm100`; with an entry `menagerie:trs_so_arm100/scene`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rsr.common import ConfigError, library

PREFIX = "menagerie:"


def menagerie_file(name: str) -> Path:
    """The XML file of a robot, downloaded at its first use: by default the robot alone, without a scene around it.

    Raises:
        ConfigError: there is no such robot or entry, it cannot be downloaded, or the extra `robots` is not installed.
    """
    menagerie: Any = library("mujoco_menagerie", "robots", "to read robots of MuJoCo Menagerie")
    robot, _, entry = name.removeprefix(PREFIX).partition("/")
    try:
        found = menagerie.get(robot)
        return Path(found.xml(entry or found.default_model))
    except (menagerie.UnknownRobotError, menagerie.UnknownEntryPointError) as error:
        raise _refused(name, str(error), "`mujoco-menagerie names` lists them.") from error
    except (menagerie.MenagerieError, OSError) as error:
        offline = "Without network, set MENAGERIE_ROOT to a checkout of Menagerie, or copy the robot beside the YAML."
        raise _refused(name, " ".join(str(error).split())[:300], offline) from error


def _refused(name: str, words: str, next_step: str) -> ConfigError:
    return ConfigError(
        got=f"{name} ({words})", expected="a robot of MuJoCo Menagerie", where="menagerie", next_step=next_step
    )
