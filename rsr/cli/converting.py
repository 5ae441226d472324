"""`rsr convert`: a stored session in a format of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rsr.cli.screen import say

if TYPE_CHECKING:
    from rsr.sessions import Session
    from rsr.sessions.exporters import Simulated


def convert(
    session: Positional[Annotated[Path, arg(metavar="SESSION")]],
    /,
    *,
    to: Annotated[str, arg(metavar="FORMAT")],
    out: Annotated[Path, arg(metavar="PATH")],
    calibration: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None,
) -> int:
    """Write a stored session in a format that the tools of others read.

    Args:
        session: folder of a stored session.
        to: lerobot (a LeRobotDataset v3.0), mcap (JSON channels) or rrd (Rerun, recorded against simulated).
        out: what to write; nothing that is there is overwritten.
        calibration: for rrd, whose parameters to simulate with; nominal ones without it.
    """
    from rsr.sessions import read_session
    from rsr.sessions.exporters import EXPORTERS, export_session

    recorded = read_session(session)
    wanted = to in EXPORTERS and (EXPORTERS[to].takes_simulated or calibration is not None)
    simulated = _simulated(recorded, calibration) if wanted else None
    say(str(export_session(recorded, to, out, simulated)))
    return 0


def _simulated(session: Session, folder: Path | None) -> Simulated:
    """Replay every episode open loop, restarted as the scenario says."""
    from rsr.calibration import load_calibration, replay
    from rsr.scenarios import load_scenario
    from rsr.sessions import check_session
    from rsr.simulators import MujocoSimulator

    scenario = load_scenario(session.card.scenario)
    check_session(session, scenario.channels)
    values = scenario.space.nominal if folder is None else load_calibration(folder).vector()
    with MujocoSimulator(scenario) as simulator:
        return [scenario.measure(states) for states in replay(scenario, simulator, session.episodes, values)]
