"""Strikes come from a stand-in, or from what a lab drops into the inbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rsr.clash.recordings import strikes_of
from rsr.errors import ConfigError
from rsr.progress import Advance
from rsr.randomness import derive_seed, generator
from rsr.realities import CollectionPlan, Inbox
from rsr.realities.strike_sessions import StrikeReality
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.strike import sample_strikes, struck_shape
from rsr.sessions import Session, check_session, write_session
from rsr.sessions.screening import Limits
from rsr.workspace import Workspace


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Store a session of strikes under data/; one in which there is no strike is refused.

    Raises:
        Waiting: the lab has not recorded it yet.
    """
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    plan = CollectionPlan(
        session=workspace.session_dir(iteration).name,
        episodes=config.reality.episodes,
        seed=derive_seed(config.seed, iteration, "collect", config.reality.seed),
    )
    session = _recorded(workspace, iteration, plan, advance)
    check_session(session, scenario.channels)
    strikes_of(scenario, [session])
    write_session(workspace.data_dir, session)


def _recorded(workspace: Workspace, iteration: int, plan: CollectionPlan, advance: Advance) -> Session:
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    if config.reality.kind == "twin":
        return StrikeReality(scenario, config.reality.seed).collect(plan, advance)
    if config.reality.kind == "inbox":
        folder, limits = workspace.root / config.reality.inbox, Limits(config.reality.largest_mb)
        inbox = Inbox(scenario, folder, limits=limits, wanted=_wanted(scenario))
        return inbox.receive(plan, advance)
    raise ConfigError(
        got=f"reality '{config.reality.kind}'",
        expected="twin or inbox",
        where="params.yaml: reality.kind",
        next_step="Let an arm strike by its own controller, and put what was recorded into the inbox.",
    )


def _wanted(scenario: Scenario) -> Callable[[CollectionPlan], dict[str, Any]]:
    """Which strikes a lab shall do: speeds, places and angles over the ranges of Table I."""

    def wanted(plan: CollectionPlan) -> dict[str, Any]:
        strikes = sample_strikes(struck_shape(scenario), plan.episodes, generator(plan.seed, "wanted"))
        return {
            "speed_m_s": strikes.speed_m_s.tolist(),
            "angle_rad": strikes.angle_rad.tolist(),
            "point_m": strikes.point_m.tolist(),
            "normal": strikes.normal.tolist(),
        }

    return wanted
