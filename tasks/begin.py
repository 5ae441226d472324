"""Begin a campaign: from a few answers to a workspace in which the loop can run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from rsr.common import WorkspaceError
from rsr.config import LoopConfig, RealityConfig, load_config, parse_config
from rsr.workspace import SCENARIO_DIR, Workspace
from rsr_tasks.campaign import TABLES, Pipeline, merged, opened, pipeline_of, settings_of
from rsr_tasks.own_scenario import MENAGERIE, draft_into, is_path, yaml_of
from rsr_tasks.workspace import is_new, may_begin

Reality = Literal["stand_in", "inbox", "robot"]
KINDS: dict[Reality, str] = {"stand_in": RealityConfig().kind, "inbox": "inbox", "robot": "robot"}
"""Name on forms and command lines -> `reality.kind` in params.yaml."""


def written_before(folder: Path) -> LoopConfig | None:
    """The settings that lie in a folder before a campaign begins in it, if somebody wrote some.

    Raises:
        WorkspaceError: no campaign can begin there.
        ConfigError: they are wrong.
    """
    check_free(folder)
    path = folder / "params.yaml"
    return load_config(path) if path.exists() else None


def check_free(folder: Path) -> None:
    """Refuse a folder in which there is a campaign already, or something else.

    Raises:
        WorkspaceError: there is.
    """
    if may_begin(folder):
        return
    if not folder.is_dir():
        got, next_step = "a file", "Name a folder."
    elif (folder / "iterations.json").exists():
        got, next_step = "a campaign, which began already", f"Go on with it: `{loop_command(Workspace(folder))}`."
    else:
        others = sorted(path.name for path in folder.iterdir())
        got = f"a folder with {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}"
        next_step = "Name a new folder, or one with nothing but params.yaml, robot.yaml, scenario/ and inbox/."
    raise WorkspaceError(got=got, expected="room for a new campaign", where=str(folder), next_step=next_step)


def settings_for(
    pipeline: Pipeline, given: dict[str, Any], written: LoopConfig | None = None, where: str = "command line"
) -> LoopConfig:
    """Make the settings of a campaign of what was given, over what the folder's params.yaml says, over the defaults."""
    if written is not None:
        known = {name: value for name, value in written.model_dump(mode="json").items() if value is not None}
        return parse_config(merged(known, given), where=where)
    return settings_of(pipeline, given, where)


def begin(folder: Path, config: LoopConfig) -> Workspace:
    """Make the workspace, once its scenario and its reality were found to be of use. Nothing is made otherwise.

    Raises:
        WorkspaceError: there is something in the folder already, or it cannot be written.
        ConfigError, ScenarioError: the scenario cannot be used.
    """
    folder = folder.resolve()
    check_free(folder)
    check_usable(config, folder)
    file = _own_file(config, folder)
    if (folder / SCENARIO_DIR).exists() and not is_new(folder) and not (file and file.is_relative_to(folder)):
        raise no_room_for(file or Path(config.scenario), folder)
    with opened(folder, TABLES[pipeline_of(config)], config, adopt=True) as campaign:
        return campaign.workspace


def check_usable(config: LoopConfig, folder: Path) -> None:
    """Refuse, before anything is made, a scenario or a reality that a campaign in this folder would stumble over.

    Raises:
        ConfigError, ScenarioError: it would.
    """
    from rsr.pipelines import check_beginning

    with TemporaryDirectory() as apart:
        drafted = draft_into(Path(apart), config.scenario) if config.scenario.startswith(MENAGERIE) else None
        found = drafted or _own_file(config, folder) or config.scenario
        check_beginning(config.model_copy(update={"scenario": str(found)}))


def _own_file(config: LoopConfig, folder: Path) -> Path | None:
    """The YAML file of a scenario that is given by its path."""
    return yaml_of(config.scenario, folder) if is_path(config.scenario) else None


def no_room_for(file: Path, folder: Path) -> WorkspaceError:
    return WorkspaceError(
        got=f"a folder {SCENARIO_DIR}/ and the scenario {file}, which would be copied there",
        expected="one of the two",
        where=str(folder),
        next_step=f"Name {SCENARIO_DIR}/{file.name}, or move the folder away.",
    )


def loop_command(workspace: Workspace) -> str:
    """The command that brings a campaign to the end of its next iteration."""
    done = sum(workspace.metrics_path(k).exists() for k in workspace.chain())
    return f"rsr-loop --workspace {workspace.root} --iterations {done + 1}"


def next_steps(workspace: Workspace) -> list[str]:
    """Say what a person does next in a campaign that has just begun, one line each."""
    config, root = workspace.settings(), workspace.root
    lines = [f"Settings: {workspace.settings_path}; those of an iteration are frozen when it begins."]
    if config.reality.kind == "robot":
        file = root / config.reality.robot
        there = "is there" if file.exists() else "is to be written (docs/robot.md, `examples/robots`)"
        lines.append(f"Robot: {file} {there}.")
    if config.reality.kind == "inbox":
        lines.append(
            f"Recordings: the loop says what to record in {root / config.reality.inbox}; `rsr answer` brings it."
        )
    if config.reality.approval:
        lines.append("Approval: the loop waits before it deploys a policy; `rsr approve` lets it go on.")
    return [*lines, f"Now: {loop_command(workspace)}"]
