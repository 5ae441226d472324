"""Strikes come from a stand-in, or from what a lab drops into the inbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rsr.config import LoopConfig, RealityConfig
from rsr.errors import ConfigError
from rsr.learned.clash import strikes_of
from rsr.progress import Advance
from rsr.randomness import derive_seed, generator
from rsr.realities import CollectionPlan, Inbox, Reality
from rsr.realities.strikes import StrikeReality
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.built_in.strike import sample_strikes, struck_shape
from rsr.sessions import check_session, write_session
from rsr.sessions.intake.screening import IntakeLimits
from rsr.workspace import Workspace


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Store a session of strikes under data/; one in which there is no strike is refused.

    Raises:
        Waiting: the lab has not recorded it yet.
    """
    config = workspace.config(iteration)
    check_reality(config)
    scenario = load_scenario(config.scenario)
    plan = CollectionPlan(
        session=workspace.session_dir(iteration).name,
        episodes=config.reality.episodes,
        seed=derive_seed(config.seed, iteration, "collect", config.reality.seed),
    )
    session = _reality(workspace, scenario, config.reality).collect(None, plan, advance)
    check_session(session, scenario.channels)
    # Refused before it is stored: without a strike every later stage would fail, and data/ is never rewritten.
    strikes_of(scenario, [session])
    write_session(workspace.data_dir, session)


def _reality(workspace: Workspace, scenario: Scenario, config: RealityConfig) -> Reality:
    if config.kind == "stand_in":
        return StrikeReality(scenario, config.seed)
    limits = IntakeLimits(config.largest_mb)
    return Inbox(scenario, workspace.root / config.inbox, limits=limits, wanted=_wanted(scenario))


def check_reality(config: LoopConfig) -> None:
    """Refuse a reality from which no strikes come."""
    if config.reality.kind not in ("stand_in", "inbox"):
        raise ConfigError(
            got=f"reality '{config.reality.kind}'",
            expected="stand_in or inbox",
            where="params.yaml: reality.kind",
            next_step="Let an arm strike by its own controller, and put what was recorded into the inbox.",
        )


def _wanted(scenario: Scenario) -> Callable[[CollectionPlan], dict[str, Any]]:
    """Make the list of strikes that a lab is asked for: speeds, places and angles over the ranges of Table I."""

    def wanted(plan: CollectionPlan) -> dict[str, Any]:
        strikes = sample_strikes(struck_shape(scenario), plan.episodes, generator(plan.seed, "wanted"))
        return {
            "speed_m_s": strikes.speed_m_s.tolist(),
            "angle_rad": strikes.angle_rad.tolist(),
            "point_m": strikes.point_m.tolist(),
            "normal": strikes.normal.tolist(),
        }

    return wanted
