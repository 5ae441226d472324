"""Deploy the previous policy on the reality and store the session that comes back; check beforehand that this works."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from rsr.calibration.problem.sensitivity import mjx_simulator
from rsr.config import LoopConfig, RealityConfig, TuneConfig
from rsr.environments.task_trial import tried_task
from rsr.errors import ConfigError, ScenarioError
from rsr.files import sha256
from rsr.pipelines.clash.collect import check_reality as check_strikes
from rsr.pipelines.gnn.collect import check_reality as check_contacts
from rsr.pipelines.lab.approval import require_approval
from rsr.policies import Policy
from rsr.policies.training import settings_from_scratch
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.realities import CollectionPlan, Inbox, Reality, StandIn
from rsr.realities.robot import make_robot_reality
from rsr.realities.strikes import StrikeReality
from rsr.scenarios import Scenario, has_task, load_scenario
from rsr.scenarios.built_in.strike import struck_shape
from rsr.sessions import check_session, read_session, write_session
from rsr.sessions.intake.screening import IntakeLimits
from rsr.workspace import Workspace


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Record a session, check it against the scenario, and store it under data/, whole or not at all.

    Raises:
        Waiting: the lab has not recorded it yet, or nobody has approved of the policy.
    """
    config = workspace.config(iteration)
    if config.reality.approval:
        require_approval(workspace, iteration - 1)
    scenario = load_scenario(config.scenario)
    deployed = workspace.policy_dir(iteration - 1)
    target = workspace.session_dir(iteration)
    plan = CollectionPlan(
        session=target.name,
        episodes=config.reality.episodes,
        seed=derive_seed(config.seed, iteration, "collect", config.reality.seed),
        policy_sha256=sha256(deployed / "policy.npz"),
    )
    session = _reality(workspace, iteration, scenario, config.reality).collect(
        Policy.load(deployed, scenario), plan, advance
    )
    check_session(session, scenario.channels)
    write_session(workspace.data_dir, session)


def collect_without_policy(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Take what the lab recorded of a scenario that has no task: nothing of ours moves anything.

    Raises:
        Waiting: the lab has not recorded it yet.
        ConfigError: another reality is set.
    """
    config = workspace.config(iteration)
    check_moved_by_lab(config)
    scenario, target = load_scenario(config.scenario), workspace.session_dir(iteration)
    plan = CollectionPlan(
        target.name, config.reality.episodes, derive_seed(config.seed, iteration, "collect", config.reality.seed)
    )
    session = _reality(workspace, iteration, scenario, config.reality).collect(None, plan, advance)
    check_session(session, scenario.channels)
    write_session(workspace.data_dir, session)


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
        "inbox": lambda: Inbox(
            scenario,
            workspace.root / config.inbox,
            _robot_before(workspace, iteration),
            IntakeLimits(config.largest_mb),
        ),
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
    """Refuse a scenario that MJX cannot simulate where the calibration asks for its derivatives."""
    if config.method not in ("mjx", "adam") or config.sensitivity != "mjx":
        return
    try:
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
