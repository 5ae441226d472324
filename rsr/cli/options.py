"""What several commands take, and what it names: sessions, a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from rsr.cli.command import at_least_one
from rsr.errors import ConfigError

if TYPE_CHECKING:
    from rsr.calibration import Calibration
    from rsr.scenarios import Scenario
    from rsr.sessions import Session

Name = Annotated[str, arg(metavar="S")]
Folders = Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]")]
Folder = Annotated[Path, arg(metavar="DIR")]
OptionalFolder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
OptionalFile = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]
Count = Annotated[int, arg(metavar="N")]
OptionalCount = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
OptionalName = Annotated[str | None, arg(metavar="S", help_behavior_hint="")]
Switch = Annotated[bool, arg(help_behavior_hint="")]


def read_sessions(scenario: Scenario, folders: Sequence[Path]) -> tuple[Session, ...]:
    """Read sessions and make sure that the scenario can use them."""
    from rsr.sessions import check_session, read_session

    at_least_one(folders)
    sessions = tuple(read_session(folder) for folder in folders)
    for session in sessions:
        check_session(session, scenario.channels)
    return sessions


def calibration_of(scenario: Scenario, folder: Path | None) -> Calibration | None:
    from rsr.calibration import load_calibration

    if folder is None:
        return None
    calibration = load_calibration(folder)
    if calibration.scenario != scenario.name:
        raise ConfigError(
            got=f"a calibration of scenario {calibration.scenario}",
            expected=f"one of scenario {scenario.name}",
            where=str(folder),
            next_step="Name the scenario that it was made for.",
        )
    return calibration
