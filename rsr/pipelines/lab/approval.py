"""The gate before a robot moves: a person has read the report and lets this very policy be deployed.

Who that is, is what they say, unless the campaign has a file `approvers.yaml` with names and public keys: then an
approval counts only with a signature of one of them.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from rsr.common import DAMAGED, ConfigError, Waiting, WorkspaceError, read_json, sha256, write_json
from rsr.workspace import Workspace


@dataclass(frozen=True)
class Approval:
    """Who let which policy be deployed, and when.

    Args:
        policy_sha256: of the policy's arrays.
        card_sha256: of the file beside them, which says how the network is evaluated; "" where there is none.
        login: who had logged in at Prefect's page, and made it there; "" where nobody had by name.
        signature: by `by`, of all the rest; "" where nobody asked for one.
    """

    policy_sha256: str
    by: str
    at: str
    note: str = ""
    card_sha256: str = ""
    login: str = ""
    signature: str = ""

    def document(self) -> dict[str, str]:
        """What is written; an approval that was not made at the page says nothing of a login."""
        return {name: value for name, value in asdict(self).items() if name != "login" or value}

    def statement(self) -> bytes:
        """The signed bytes."""
        said = {name: value for name, value in self.document().items() if name != "signature"}
        return json.dumps(said, sort_keys=True).encode()

    def said_by(self) -> str:
        """The name, and what it is worth."""
        reasons = ["logged in at the page"] * bool(self.login) + ["signed"] * bool(self.signature)
        return f"{self.by} ({', '.join(reasons) or 'only a claim: nobody checked the name'})"


def approve(
    workspace: Workspace, iteration: int, by: str, note: str = "", key: Path | None = None, login: str = ""
) -> Approval:
    """Let the policy of an iteration be deployed: written beside it, for git to keep.

    Args:
        by: who answers for it; where the campaign has approvers, one of them.
        key: to sign with, where the campaign has approvers.
        login: who logged in by name at the page where it is made; nobody approves there in another's name.

    Raises:
        WorkspaceError: there is no policy yet.
        ConfigError: nobody put a name to it, or another's, or it is not signed by one of the campaign's approvers.
    """
    if not by.strip():
        raise ConfigError(
            got="no name",
            expected="the name of the person who answers for it",
            where=f"approval of iteration {iteration}",
            next_step="Give it: --by NAME.",
        )
    if login and by.strip() != login:
        raise ConfigError(
            got=f"the name '{by.strip()}'",
            expected=f"'{login}', who is logged in",
            where=f"approval of iteration {iteration}",
            next_step="Approve in your own name, or have the other person log in and do so.",
        )
    policy, card = _policy_hashes(workspace, iteration)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    approval = Approval(policy, by.strip(), at, note, card, login)
    if (approvers := read_approvers(workspace.approvers_path)) is not None:
        approval = _signed(approval, iteration, approvers, key)
    write_json(workspace.approval_path(iteration), approval.document())
    return approval


def _signed(approval: Approval, iteration: int, approvers: dict[str, str], key: Path | None) -> Approval:
    where = f"approval of iteration {iteration}, by {approval.by}"
    if approval.by not in approvers:
        raise ConfigError(
            got=f"'{approval.by}'",
            expected=f"one of {', '.join(approvers)}, as in approvers.yaml",
            where=where,
            next_step="Have one of them approve it, or add a name and its public key to that file.",
        )
    if key is None:
        raise ConfigError(
            got="no signature",
            expected="one with the key of that name in approvers.yaml",
            where=where,
            next_step=f"On a command line: `rsr approve --iteration {iteration} --by '{approval.by}' --key FILE`. "
            "On the page: log in by that name, where the page has a key (deployments/README.md).",
        )
    signed = replace(approval, signature=sign(approval.statement(), key))
    if not _is_signed(signed, approvers):
        raise ConfigError(
            got=f"a signature with the key {key}",
            expected="one with the key of that name in approvers.yaml",
            where=where,
            next_step="Name the key that belongs to it: --key FILE.",
        )
    return signed


def require_approval(workspace: Workspace, iteration: int) -> None:
    """Do nothing if this iteration's policy, as it is now, was approved.

    Raises:
        Waiting: it was not.
        ConfigError: the campaign's approvers cannot be read.
    """
    got = _objection(workspace, iteration)
    if got is None:
        return
    report = workspace.relative(workspace.report_path(iteration)) if iteration else "no report: it knows no reality yet"
    key = " --key FILE" if workspace.approvers_path.exists() else ""
    command = f"rsr approve --iteration {iteration} --by NAME{key} --workspace {workspace.root}"
    raise Waiting(
        got=got,
        expected=f"a person's approval of policy {iteration} ({report})",
        where=str(workspace.root),
        next_step=f"Approve it: `{command}`, then run the loop again.",
    )


def _objection(workspace: Workspace, iteration: int) -> str | None:
    """Say what is wrong with the approval of a policy, or None."""
    try:
        approved = Approval(**read_json(workspace.approval_path(iteration)))
    except FileNotFoundError:
        return "no approval"
    except (*DAMAGED, TypeError) as error:
        return f"an approval that cannot be read ({type(error).__name__})"
    if (approved.policy_sha256, approved.card_sha256) != _policy_hashes(workspace, iteration):
        return f"an approval of another policy, by {approved.by}"
    approvers = read_approvers(workspace.approvers_path)
    if approvers is not None and not _is_signed(approved, approvers):
        return f"an approval in the name of {approved.by} that nobody in approvers.yaml signed"
    return None


def _is_signed(approval: Approval, approvers: dict[str, str]) -> bool:
    key = approvers.get(approval.by)
    return key is not None and is_signed(approval.statement(), approval.signature, key)


def _policy_hashes(workspace: Workspace, iteration: int) -> tuple[str, str]:
    """Of the arrays, and of the card that says how they are evaluated."""
    path = workspace.policy_dir(iteration) / "policy.npz"
    if not path.exists():
        raise WorkspaceError(
            got=f"no policy of iteration {iteration}",
            expected="the policy to approve",
            where=str(path),
            next_step="Run the loop first; `rsr status` says what is missing.",
        )
    card = path.with_name("policy.json")
    return sha256(path), sha256(card) if card.exists() else ""


# Who may let a policy be deployed, and signatures with their keys: `ssh-keygen -Y`, no key of our own making.


_PURPOSE = "rsr-approval"
"""Namespace of the signatures: one that the same key gave a commit, say, does not count."""
_PUBLIC_KEY = re.compile(r"((?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*)(?: [^\n]*)?")


def read_approvers(path: Path) -> dict[str, str] | None:
    """Name -> public key of everybody who may approve; None where the campaign has no such file.

    Raises:
        ConfigError: it is not a list of names with their public keys.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise _not_approvers(path, f"a file that cannot be read ({type(error).__name__})") from error
    if not isinstance(document, dict) or not document:
        raise _not_approvers(path, "no name")
    return {_name(path, name): _key(path, name, words) for name, words in document.items()}


def _name(path: Path, name: object) -> str:
    if not isinstance(name, str) or name != name.strip() or not name:
        raise _not_approvers(path, f"the name {str(name)[:40]!r}")
    return name


def _key(path: Path, name: str, words: object) -> str:
    """The type and the key itself, without the comment behind them."""
    found = _PUBLIC_KEY.fullmatch(words.strip()) if isinstance(words, str) else None
    if found is None:
        raise _not_approvers(path, f"no public key of {name}")
    return found[1]


def sign(statement: bytes, key: Path) -> str:
    """Sign with a private key, or where `key` is a public one with the agent that holds its other half.

    Raises:
        ConfigError: ssh-keygen cannot sign with it.
    """
    done = _ssh_keygen("sign", ["-f", str(key), "-n", _PURPOSE], statement)
    if done.returncode != 0:
        raise ConfigError(
            got=" ".join(done.stderr.decode(errors="replace").split()) or f"code {done.returncode} of ssh-keygen",
            expected="a key that ssh-keygen can sign with, readable by its owner alone",
            where=str(key),
            next_step="Name another by --key; `ssh-keygen -t ed25519` makes one.",
        )
    return done.stdout.decode()


def is_signed(statement: bytes, signature: str, public_key: str) -> bool:
    """Whether the owner of the public key signed these very bytes, for this purpose."""
    with tempfile.TemporaryDirectory() as folder:
        allowed, signed = Path(folder) / "allowed", Path(folder) / "signature"
        allowed.write_text(f"approver {public_key}\n")
        signed.write_text(signature)
        options = ["-f", str(allowed), "-I", "approver", "-n", _PURPOSE, "-s", str(signed)]
        return _ssh_keygen("verify", options, statement).returncode == 0


def _ssh_keygen(what: str, options: Sequence[str], statement: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", "-Y", what, *options], input=statement, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise ConfigError(
            got="no program ssh-keygen",
            expected="OpenSSH 8.2 or newer, which signs approvals and checks them",
            where="this machine",
            next_step="Install it (Debian: apt-get install openssh-client).",
        ) from error


def _not_approvers(path: Path, got: str) -> ConfigError:
    return ConfigError(
        got=got,
        expected="a line `NAME: ssh-ed25519 AAAA...` for everybody who may approve",
        where=str(path),
        next_step="Correct it, or restore it with `git checkout`.",
    )
