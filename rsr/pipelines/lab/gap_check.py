"""Between the iterations: does the newest calibration still hold for what was recorded since?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rsr.calibration import Drift, find_drift, load_calibration
from rsr.common import WorkspaceError, derive_seed
from rsr.pipelines.lab.arrivals import awaited
from rsr.realities import dropped
from rsr.scenarios import load_scenario, structured
from rsr.sessions import IntakeLimits, admitted, check_session, read_session
from rsr.workspace import Workspace


def check_gap(workspace: Workspace, sessions: Sequence[Path] = ()) -> Drift:
    """Replay sessions under the calibration in force when they were recorded, and compare the gap with its own.

    Args:
        sessions: new recordings, judged by the newest calibration; by default the session that the loop has not taken
            yet, or else the newest of the chain, judged by the calibration of the iteration before it.
    """
    tuned = [k for k in workspace.chain() if (workspace.calibration_dir(k) / "calibration.json").exists()]
    sessions = sessions or (_not_tuned(workspace) if tuned else [])
    if len(tuned) < (1 if sessions else 2):
        raise WorkspaceError(
            got=f"{len(tuned)} iterations with a calibration",
            expected="a calibration, and a session that was recorded after it",
            where=str(workspace.root),
            next_step="Run the loop, or name new sessions.",
        )
    basis = tuned[-1] if sessions else tuned[-2]
    folders = sessions or [workspace.session_dir(tuned[-1])]
    config = workspace.config(basis)
    calibration = load_calibration(workspace.calibration_dir(basis))
    scenario = structured(load_scenario(config.scenario), calibration.structure)
    recorded = read_session(workspace.session_dir(basis)).episodes
    judges = [recorded[index] for index in calibration.evidence.held_out]
    with admitted(folders, IntakeLimits(workspace.settings().reality.largest_mb)) as safe:
        fresh = [read_session(folder) for folder in safe]
    for session in fresh:
        check_session(session, scenario.channels)
    episodes = [episode for session in fresh for episode in session.episodes]
    return find_drift(scenario, calibration, judges, episodes, derive_seed(config.seed, basis, "gap check"))


def _not_tuned(workspace: Workspace) -> list[Path]:
    """Newest dropped session that no calibration has used, if there is one."""
    settings = workspace.settings().reality
    if settings.kind != "inbox":
        return []
    drop = dropped(workspace.root / settings.inbox, workspace.session_dir(awaited(workspace)).name)
    return [] if drop is None else [drop]
