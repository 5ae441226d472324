"""The gate before a robot moves: a person has read the report and lets this very policy be deployed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rsr.errors import ConfigError, Waiting, WorkspaceError
from rsr.files import DAMAGED, read_json, sha256, write_json
from rsr.workspace import Workspace


@dataclass(frozen=True)
class Approval:
    """Who let which policy be deployed, and when."""

    policy_sha256: str
    by: str
    at: str
    note: str = ""


def approve(workspace: Workspace, iteration: int, by: str, note: str = "") -> Approval:
    """Let the policy of an iteration be deployed: written beside it, for git to keep.

    Raises:
        WorkspaceError: there is no policy yet.
        ConfigError: nobody put a name to it.
    """
    if not by.strip():
        raise ConfigError(
            got="no name",
            expected="the name of the person who answers for it",
            where=f"approval of iteration {iteration}",
            next_step="Give it: --by NAME.",
        )
    at = datetime.now(UTC).isoformat(timespec="seconds")
    approval = Approval(_policy_hash(workspace, iteration), by.strip(), at, note)
    write_json(workspace.approval_path(iteration), asdict(approval))
    return approval


def require_approval(workspace: Workspace, iteration: int) -> None:
    """Do nothing if this iteration's policy, as it is now, was approved.

    Raises:
        Waiting: it was not.
    """
    try:
        approved = Approval(**read_json(workspace.approval_path(iteration)))
        got = f"an approval of another policy, by {approved.by}"
    except FileNotFoundError:
        approved, got = None, "no approval"
    except (*DAMAGED, TypeError) as error:
        approved, got = None, f"an approval that cannot be read ({type(error).__name__})"
    if approved is not None and approved.policy_sha256 == _policy_hash(workspace, iteration):
        return
    report = workspace.relative(workspace.report_path(iteration)) if iteration else "no report: it knows no reality yet"
    raise Waiting(
        got=got,
        expected=f"a person's approval of policy {iteration} ({report})",
        where=str(workspace.root),
        next_step=f"Approve it: `rsr approve --iteration {iteration} --by NAME`, then run the loop again.",
    )


def _policy_hash(workspace: Workspace, iteration: int) -> str:
    path = workspace.policy_dir(iteration) / "policy.npz"
    if not path.exists():
        raise WorkspaceError(
            got=f"no policy of iteration {iteration}",
            expected="the policy to approve",
            where=str(path),
            next_step="Run the loop first; `rsr status` says what is missing.",
        )
    return sha256(path)
