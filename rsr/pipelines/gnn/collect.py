"""Recordings of bodies in contact: from the stand-in, or from what a lab drops into the inbox."""

from __future__ import annotations

from rsr.config import LoopConfig, RealityConfig
from rsr.errors import ConfigError
from rsr.progress import Advance
from rsr.realities import CollectionPlan, Inbox, Reality
from rsr.realities.cubes import CubesStandIn
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import check_session, write_session
from rsr.sessions.intake.screening import IntakeLimits
from rsr.workspace import Workspace, scenario_name

_STAND_IN = "two_cubes"


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Store a session under data/.

    Raises:
        Waiting: the lab has not recorded it yet.
    """
    config = workspace.config(iteration)
    check_reality(config)
    scenario = load_scenario(config.scenario)
    plan = CollectionPlan(workspace.session_dir(iteration).name, config.reality.episodes, config.seed)
    session = _reality(workspace, scenario, config.reality).collect(None, plan, advance)
    check_session(session, scenario.channels)
    write_session(workspace.data_dir, session)


def _reality(workspace: Workspace, scenario: Scenario, config: RealityConfig) -> Reality:
    if config.kind == "stand_in":
        return CubesStandIn(config.seed)
    # Nothing is commanded, so there is nothing to ask for but recordings.
    limits = IntakeLimits(config.largest_mb)
    return Inbox(scenario, workspace.root / config.inbox, limits=limits, wanted=lambda _: {})


def check_reality(config: LoopConfig) -> None:
    """Refuse a reality from which no recordings of this scenario come."""
    kind = config.reality.kind
    if kind != "inbox" and (kind, scenario_name(config.scenario)) != ("stand_in", _STAND_IN):
        raise ConfigError(
            got=f"reality '{kind}' of scenario {scenario_name(config.scenario)}",
            expected=f"inbox, or the stand-in of scenario {_STAND_IN}",
            where="params.yaml: reality.kind",
            next_step="Set reality.kind: inbox, and put recordings there.",
        )
