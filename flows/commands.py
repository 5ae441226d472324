"""Commands of `rsr` that make, keep and bring back a whole campaign. They need git and DVC, which the library does not.

pyproject.toml names them as entry points of the group `rsr.commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

from tyro.conf import Positional, arg

from rsr.cli.command import ask, hint, say
from rsr.common import ConfigError, progress
from rsr_tasks.begin import KINDS, Pipeline, Reality, begin, loop_command, next_steps, settings_for, written_before

_FIRST: dict[Pipeline, str] = {"loop": "push_cube", "clash": "strike", "gnn": "two_cubes"}
"""The scenario that is suggested."""
_REALITIES = "stand_in: simulated here; inbox: the lab records by itself; robot: this machine drives it"


def init(
    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]],
    /,
    *,
    scenario: Annotated[str | None, arg(metavar="S", help_behavior_hint="")] = None,
    reality: Annotated[Reality | None, arg(help_behavior_hint="")] = None,
    approval: Annotated[bool, arg(help_behavior_hint="")] = False,
    pipeline: Annotated[Pipeline | None, arg(help_behavior_hint="")] = None,
    seed: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None,
) -> int:
    """Begin a campaign: make its folder, a git and DVC repository with settings. In a terminal, asks what is left out.

    A params.yaml that lies in the folder already is taken as it is; options go over it.

    Args:
        folder: of the campaign; new, empty, or with nothing but params.yaml, robot.yaml, scenario/ and inbox/.
        scenario: a built-in one's name, the path of a YAML file, or menagerie:NAME; copied into the campaign with its
            meshes.
        reality: where recordings come from. stand_in: simulated here; inbox: the lab records by itself; robot: this
            machine drives it.
        approval: no policy is deployed before a person approved of it (`rsr approve`).
        pipeline: loop tunes, retrains and deploys; clash learns collisions, gnn a simulator of contact. Default: loop.
        seed: of everything random. Default: 0.
    """
    written = written_before(folder)
    given: dict[str, Any] = {} if seed is None else {"seed": seed}
    pipeline = pipeline or "loop"
    if written is None:
        scenario, reality, approval = _asked(pipeline, scenario, reality, approval)
    if scenario is not None:
        given["scenario"] = scenario
    given["reality"] = ({"kind": KINDS[reality]} if reality else {}) | ({"approval": True} if approval else {})
    workspace = begin(folder, settings_for(pipeline, given, written))
    for line in next_steps(workspace):
        hint(line)
    say(str(workspace.root))
    return 0


def backup(
    workspace: Positional[Annotated[Path, arg(metavar="WORKSPACE")]],
    file: Positional[Annotated[Path, arg(metavar="FILE")]],
    /,
) -> int:
    """Write a whole campaign into one file: history, recordings, results, approvals. No loop may run in it meanwhile.

    Not in it: Prefect's history, and secrets of `.dvc/config.local`.

    Args:
        workspace: the campaign's folder.
        file: to write, such as monday.rsr.tar.gz; there must be none of this name.
    """
    from rsr_tasks.backup import backup as write

    with progress.bar("backup") as advance:
        manifest = write(workspace, file, advance)
    for words in manifest.disagreements:
        hint(f"note: {words}")
    hint(f"{len(manifest.files)} files, {manifest.size / 1e6:.1f} MB, commit {manifest.commit[:12]}")
    say(str(file))
    return 0


def restore(
    file: Positional[Annotated[Path, arg(metavar="FILE")]],
    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]],
    /,
) -> int:
    """Bring a campaign back from a file of `rsr backup`, in a new folder. Every hash is checked; the loop then goes on.

    Args:
        file: of `rsr backup`.
        folder: new or empty.
    """
    from rsr_tasks.restore import restore as read

    with progress.bar("restore") as advance:
        workspace, manifest = read(file, folder, advance)
    hint(f"{len(manifest.files)} files, {manifest.size / 1e6:.1f} MB, all hashes as recorded")
    hint(f"Now: {loop_command(workspace)}")
    say(str(workspace.root))
    return 0


def _asked(
    pipeline: Pipeline, scenario: str | None, reality: Reality | None, approval: bool
) -> tuple[str, Reality, bool]:
    """Ask for what was left out, in a terminal.

    Raises:
        ConfigError: there is no terminal, and something that has to be known is missing.
    """
    missing = [name for name, value in (("--scenario", scenario), ("--reality", reality)) if value is None]
    if missing and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            got=f"no {' and no '.join(missing)}, and no terminal to ask in",
            expected=f"--scenario NAME_OR_PATH and --reality {'|'.join(get_args(Reality))}",
            where="command line",
            next_step=f"Name them, e.g. `rsr init FOLDER --scenario {_FIRST[pipeline]} --reality inbox --approval`.",
        )
    if not missing:
        return str(scenario), reality or "stand_in", approval
    if scenario is None:
        from rsr.scenarios import built_in_scenarios, load_scenario

        known = f"Scenario: {', '.join(built_in_scenarios())}, or the path of a YAML file"
        scenario = ask(known, _FIRST[pipeline], lambda answer: load_scenario(answer) and answer)
    if reality is None:
        reality = ask(f"Reality ({_REALITIES})", "stand_in", _one_of(get_args(Reality)))
    if not approval and reality != "stand_in" and pipeline == "loop":
        question = "Shall a person approve of each policy before it is deployed?"
        approval = ask(question, "yes", _one_of(("yes", "no"))) == "yes"
    return scenario, reality, approval


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def read(answer: str) -> str:
        meant = [word for word in words if word.startswith(answer.strip().lower())]
        if len(meant) != 1:
            raise ValueError(f"Answer one of {', '.join(words)}.")
        return meant[0]

    return read
