"""Record the session of an iteration, by whichever pipeline, and store it; check beforehand that this works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rsr.calibration import mjx_simulator
from rsr.common import Advance, ConfigError, ScenarioError, derive_seed, generator, sha256
from rsr.config import LoopConfig, RealityConfig, TuneConfig
from rsr.environments import tried_task
from rsr.learned.clash import strikes_of
from rsr.pipelines.lab import require_approval
from rsr.policies import Policy, settings_from_scratch
from rsr.realities import CollectionPlan, CubesStandIn, Inbox, Reality, StandIn, StrikeReality, make_robot_reality
from rsr.scenarios import Scenario, check_method, has_task, load_scenario
from rsr.scenarios.built_in.strike import sample_strikes, struck_shape
from rsr.sessions import IntakeLimits, check_session, read_session, write_session
from rsr.workspace import Workspace, scenario_name

Wanted = Callable[[CollectionPlan], dict[str, Any]]


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Deploy the previous policy on the reality, and store the session that comes back.

    Raises:
        Waiting: the lab has not recorded it yet, or nobody has approved of the policy.
    """
    config = workspace.config(iteration)
    if config.reality.approval:
        require_approval(workspace, iteration - 1)
    scenario, deployed = load_scenario(config.scenario), workspace.policy_dir(iteration - 1)
    plan = _plan(workspace, iteration, sha256(deployed / "policy.npz"))
    reality = _reality(workspace, iteration, scenario, config.reality)
    _store(workspace, scenario, reality, plan, advance, Policy.load(deployed, scenario))


def collect_without_policy(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Take what the lab recorded of a scenario that has no task: nothing of ours moves anything.

    Raises:
        Waiting: the lab has not recorded it yet.
        ConfigError: another reality is set.
    """
    config = workspace.config(iteration)
    check_moved_by_lab(config)
    scenario = load_scenario(config.scenario)
    reality = _reality(workspace, iteration, scenario, config.reality)
    _store(workspace, scenario, reality, _plan(workspace, iteration), advance)


def collect_strikes(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Store a session of strikes; one in which there is no strike is refused.

    Raises:
        Waiting: the lab has not recorded it yet.
    """
    config = workspace.config(iteration)
    check_strikes(config)
    scenario = load_scenario(config.scenario)
    stand_in = config.reality.kind == "stand_in"
    reality = (
        StrikeReality(scenario, config.reality.seed)
        if stand_in
        else _inbox(workspace, scenario, config.reality, wanted=_wanted_strikes(scenario))
    )
    _store(workspace, scenario, reality, _plan(workspace, iteration), advance, has_strikes=True)


def collect_contacts(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Store a session of bodies in contact.

    Raises:
        Waiting: the lab has not recorded it yet.
    """
    config = workspace.config(iteration)
    check_contacts(config)
    scenario = load_scenario(config.scenario)
    plan = CollectionPlan(workspace.session_dir(iteration).name, config.reality.episodes, config.seed)
    stand_in = config.reality.kind == "stand_in"
    # Nothing is commanded, so there is nothing to ask a lab for but recordings.
    inbox = _inbox(workspace, scenario, config.reality, wanted=lambda _: {})
    _store(workspace, scenario, CubesStandIn(config.reality.seed) if stand_in else inbox, plan, advance)


def _plan(workspace: Workspace, iteration: int, policy_sha256: str | None = None) -> CollectionPlan:
    config = workspace.config(iteration)
    seed = derive_seed(config.seed, iteration, "collect", config.reality.seed)
    return CollectionPlan(workspace.session_dir(iteration).name, config.reality.episodes, seed, policy_sha256)


def _store(
    workspace: Workspace,
    scenario: Scenario,
    reality: Reality,
    plan: CollectionPlan,
    advance: Advance,
    policy: Policy | None = None,
    has_strikes: bool = False,
) -> None:
    """Record the session, check it against the scenario, and store it under data/, whole or not at all."""
    session = reality.collect(policy, plan, advance)
    check_session(session, scenario.channels)
    if has_strikes:  # refused before it is stored: every later stage would fail, and data/ is never rewritten
        strikes_of(scenario, [session])
    write_session(workspace.data_dir, session)


def _inbox(
    workspace: Workspace,
    scenario: Scenario,
    config: RealityConfig,
    robot: str | None = None,
    wanted: Wanted | None = None,
) -> Inbox:
    limits = IntakeLimits(config.largest_mb)
    return Inbox(scenario, workspace.root / config.inbox, robot, limits, wanted=wanted)


def _wanted_strikes(scenario: Scenario) -> Wanted:
    """Make the list of strikes that a lab is asked for: speeds, places and angles over the ranges of Table I."""

    def wanted(plan: CollectionPlan) -> dict[str, Any]:
        strikes = sample_strikes(struck_shape(scenario), plan.episodes, generator(plan.seed, "wanted"))
        return {name: getattr(strikes, name).tolist() for name in ("speed_m_s", "angle_rad", "point_m", "normal")}

    return wanted


def check_moved_by_lab(config: LoopConfig) -> None:
    """Refuse, where there is no task, a reality that only a policy moves, and a gate for policies.

    Raises:
        ConfigError: it is one.
    """
    where = f"scenario {config.scenario}, which has no task"
    if config.reality.kind != "inbox":
        raise ConfigError(
            got=f"reality.kind: {config.reality.kind}, which only a policy moves",
            expected="reality.kind: inbox, or a task to train a policy for",
            where=where,
            next_step="Take the lab's own recordings (`--reality inbox`), or write a task (docs/scenarios.md).",
        )
    if config.reality.approval:
        raise ConfigError(
            got="reality.approval: true",
            expected="false, as there is no policy to approve of",
            where=where,
            next_step="Leave `--approval` away (in params.yaml: `approval: false`).",
        )


def check_strikes(config: LoopConfig) -> None:
    """Refuse a reality from which no strikes come."""
    if config.reality.kind not in ("stand_in", "inbox"):
        raise ConfigError(
            got=f"reality '{config.reality.kind}'",
            expected="stand_in or inbox",
            where="params.yaml: reality.kind",
            next_step="Let an arm strike by its own controller, and put what was recorded into the inbox.",
        )


def check_contacts(config: LoopConfig) -> None:
    """Refuse a reality from which no recordings of this scenario come."""
    kind, named = config.reality.kind, scenario_name(config.scenario)
    if kind != "inbox" and (kind, named) != ("stand_in", CubesStandIn.of_scenario):
        raise ConfigError(
            got=f"reality '{kind}' of scenario {named}",
            expected=f"inbox, or the stand-in of scenario {CubesStandIn.of_scenario}",
            where="params.yaml: reality.kind",
            next_step="Set reality.kind: inbox, and put recordings there.",
        )


def _robot_before(workspace: Workspace, iteration: int) -> str | None:
    """The robot of the campaign's latest session that names one."""
    for earlier in range(iteration - 1, 0, -1):
        robot = read_session(workspace.session_dir(earlier)).card.robot
        if robot is not None:
            return robot
    return None


def _reality(workspace: Workspace, iteration: int, scenario: Scenario, config: RealityConfig) -> Reality:
    makers: dict[str, Callable[[], Reality]] = {
        "stand_in": lambda: StandIn(scenario, config.seed),
        "inbox": lambda: _inbox(workspace, scenario, config, _robot_before(workspace, iteration)),
        "robot": lambda: make_robot_reality(
            scenario, workspace.root / config.robot, workspace.data_dir, real_time=config.real_time
        ),
    }
    return makers[config.kind]()


# See, before a campaign is made, that its scenario loads and that its steps and its reality can use it.


def check_beginning(config: LoopConfig) -> Scenario:
    """Load the scenario of a campaign to be; what its first iteration would stumble over is said now.

    Raises:
        ConfigError, ScenarioError: there is no such scenario, it is wrong, or no campaign of this kind can use it.
    """
    scenario = load_scenario(config.scenario)
    on_stand_in = config.reality.kind == RealityConfig().kind
    if config.clash is not None:
        struck_shape(scenario)
        check_strikes(config)
        if on_stand_in:
            StrikeReality(scenario, config.reality.seed)
    elif config.gnn is not None:
        check_method(scenario, "gnn")
        check_contacts(config)
    else:
        if not has_task(scenario):
            check_moved_by_lab(config)
        else:
            tried_task(scenario)
            settings_from_scratch(config.start.algorithm, scenario)
            if on_stand_in:
                StandIn(scenario, config.reality.seed)
        _check_tuning(scenario, config.tune)
    return scenario


def _check_tuning(scenario: Scenario, config: TuneConfig) -> None:
    """Refuse a scenario that the method of calibration cannot simulate, or that MJX cannot differentiate."""
    if config.method not in ("mjx", "adam") or config.sensitivity != "mjx":
        return check_method(scenario, config.method, config.sensitivity)
    try:
        check_method(scenario, config.method, config.sensitivity)
        with warnings.catch_warnings(action="ignore"):  # MJX's own, of meshes with large faces
            mjx_simulator(scenario)
    except ScenarioError as error:
        raise ScenarioError(
            got=error.got,
            expected=error.expected,
            where=f"{error.where}, with which `tune` would calibrate",
            next_step="Write `tune: {method: cmaes}`, which needs no derivatives, into a params.yaml in the "
            "campaign's folder and run `rsr init` there; or change the MJCF.",
        ) from error
