"""Deploy the previous policy on the reality and store the session that comes back."""

from __future__ import annotations

from collections.abc import Callable

from rsr.config import RealityConfig
from rsr.errors import ConfigError
from rsr.files import sha256
from rsr.policies import Policy
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.realities import CollectionPlan, Inbox, Reality, Twin
from rsr.realities.making import make_robot_reality
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import check_session, read_session, write_session
from rsr.sessions.screening import Limits
from rsr.steps.approval import require_approval
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
    session = _reality(workspace, iteration, scenario, config.reality).collect(Policy.load(deployed), plan, advance)
    check_session(session, scenario.channels)
    write_session(workspace.data_dir, session)


def _robot_before(workspace: Workspace, iteration: int) -> str | None:
    """The robot of the campaign's latest session that names one."""
    for earlier in range(iteration - 1, 0, -1):
        robot = read_session(workspace.session_dir(earlier)).card.robot
        if robot is not None:
            return robot
    return None


def _reality(workspace: Workspace, iteration: int, scenario: Scenario, config: RealityConfig) -> Reality:
    makers: dict[str, Callable[[], Reality]] = {
        "twin": lambda: Twin(scenario, config.seed),
        "inbox": lambda: Inbox(
            scenario, workspace.root / config.inbox, _robot_before(workspace, iteration), Limits(config.largest_mb)
        ),
        "robot": lambda: make_robot_reality(
            scenario, workspace.root / config.robot, workspace.data_dir, real_time=config.real_time
        ),
    }
    if config.kind not in makers:
        raise ConfigError(
            got=f"reality '{config.kind}'",
            expected=f"one of {', '.join(makers)}",
            where="params.yaml: reality.kind",
            next_step="Correct the name.",
        )
    return makers[config.kind]()
