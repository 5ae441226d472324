"""Recordings of bodies in contact come from a stand-in, or from what a lab drops into the inbox."""

from __future__ import annotations

from rsr.errors import ConfigError
from rsr.progress import Advance
from rsr.realities import CollectionPlan, Inbox
from rsr.realities.cubes import CubesStandIn
from rsr.scenarios import load_scenario
from rsr.sessions import Session, check_session, write_session
from rsr.sessions.screening import Limits
from rsr.workspace import Workspace

_STAND_IN = "two_cubes"


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Store a session under data/.

    Raises:
        Waiting: the lab has not recorded it yet.
    """
    config = workspace.config(iteration)
    session = _recorded(workspace, iteration, advance)
    check_session(session, load_scenario(config.scenario).channels)
    write_session(workspace.data_dir, session)


def _recorded(workspace: Workspace, iteration: int, advance: Advance) -> Session:
    config, name = workspace.config(iteration), workspace.session_dir(iteration).name
    reality = config.reality
    if reality.kind == "inbox":
        # Nothing is commanded, so there is nothing to ask for but recordings.
        plan = CollectionPlan(name, reality.episodes, config.seed)
        folder, limits = workspace.root / reality.inbox, Limits(reality.largest_mb)
        return Inbox(load_scenario(config.scenario), folder, limits=limits, wanted=lambda _: {}).receive(plan, advance)
    if reality.kind != "twin" or config.scenario != _STAND_IN:
        raise ConfigError(
            got=f"reality '{reality.kind}' of scenario {config.scenario}",
            expected=f"inbox, or the stand-in (twin) of scenario {_STAND_IN}",
            where="params.yaml: reality.kind",
            next_step="Set reality.kind: inbox, and put recordings there.",
        )
    session = CubesStandIn(reality.seed).record(name, reality.episodes)
    advance(1.0, f"{reality.episodes} pushes")
    return session
