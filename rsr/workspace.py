"""The folder of one campaign: where everything lies, and the chain of its iterations. No git and no DVC in here."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from rsr.common import ConfigError, WorkspaceError, read_json, write_json
from rsr.config import LoopConfig, dump_config, load_config

CHAIN_FILE = "iterations.json"
SCENARIO_DIR = "scenario"
"""Where a campaign keeps a scenario of its own: the YAML file and what belongs to it."""
CURVES_FILE = "curves.json"
"""JSON, not YAML: as YAML, an iteration named 009 would come back as the number 9."""


@dataclass(frozen=True)
class Link:
    """One iteration in the chain: its folder, its predecessor's, its session's. Paths relative to the workspace."""

    dir: str
    prev: str
    session: str


@dataclass(frozen=True)
class Workspace:
    """Names every path of a campaign. Iteration 0 is the start; session k was recorded with policy k-1.

    Examples:
        >>> workspace = Workspace.find(Path.cwd())  # doctest: +SKIP
        >>> policy = Policy.load(workspace.policy_dir(2))  # doctest: +SKIP
    """

    root: Path

    @classmethod
    def find(cls, start: Path) -> Workspace:
        """Walk upward from `start` to the folder that holds iterations.json."""
        start = Path(start).resolve()
        for folder in (start, *start.parents):
            if (folder / CHAIN_FILE).is_file():
                return cls(folder)
        raise WorkspaceError(
            got=f"no {CHAIN_FILE} here or in any folder above",
            expected="a workspace",
            where=str(start),
            next_step="Change into a workspace, or begin a campaign: `rsr init FOLDER`.",
        )

    @classmethod
    def at(cls, folder: Path) -> Workspace:
        """Take a folder that somebody named: it must be a workspace itself, rather than lie inside one."""
        if (folder / CHAIN_FILE).is_file():
            return cls(folder.resolve())
        raise WorkspaceError(
            got=f"no {CHAIN_FILE} in it" if folder.is_dir() else "no such folder",
            expected="a workspace",
            where=str(folder),
            next_step=f"Correct the name, or begin a campaign: `rsr init {folder}`.",
        )

    @property
    def settings_path(self) -> Path:
        return self.root / "params.yaml"

    @property
    def chain_path(self) -> Path:
        return self.root / CHAIN_FILE

    @property
    def data_dir(self) -> Path:
        return self.root / "data"

    @property
    def scenario_dir(self) -> Path:
        """The campaign's scenario, copied when it began; campaigns of earlier versions have none of built-in ones."""
        return self.root / SCENARIO_DIR

    @property
    def model_files(self) -> list[Path]:
        """Files and folders of the campaign's scenario that its model is made of: neither its Python nor a task's YAML.

        A function that makes the model, or a law of an effect, may read anything, so then it is the whole folder.
        """
        folder = self.scenario_dir
        if not folder.is_dir() or _PYTHON_MODEL.search(_text(folder / "scenario.yaml")):
            return [folder] if folder.is_dir() else []
        aside = {"__pycache__", *_TASK_BESIDE.findall(_text(folder / "scenario.yaml"))}
        beside = sorted(path for path in folder.iterdir() if path.suffix != ".py" and path.name not in aside)
        plain = all(_PLAIN_NAME.fullmatch(path.name) for path in beside)  # others would have to be quoted in dvc.yaml
        return beside if beside and plain else [folder]

    @property
    def has_task(self) -> bool:
        """Whether its scenario has a task, and so the campaign a policy. Asked of the files, which are not run."""
        file = Path(self.settings().scenario)
        return not file.is_file() or (file.parent / "task.py").is_file() or bool(_TASK.search(_text(file)))

    def iteration_dir(self, iteration: int) -> Path:
        return self.root / "iterations" / f"{iteration:03d}"

    def calibration_dir(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "calibration"

    def infogap_dir(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "infogap"

    def policy_dir(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "policy"

    def evaluation_dir(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "evaluation"

    def receipts_dir(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "receipts"

    def metrics_path(self, iteration: int) -> Path:
        return self.evaluation_dir(iteration) / "metrics.json"

    def report_path(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "report.html"

    def approval_path(self, iteration: int) -> Path:
        """Who let the policy of this iteration be deployed; only where `reality.approval` asks for it."""
        return self.iteration_dir(iteration) / "approval.json"

    @property
    def approvers_path(self) -> Path:
        """Who may approve, with their public keys; without this file an approval is anybody's word."""
        return self.root / "approvers.yaml"

    def checkpoint_path(self, iteration: int) -> Path:
        """Checkpoint of an interrupted training; of this machine, so neither git nor DVC keeps it."""
        return self.iteration_dir(iteration) / ".training.npz"

    @property
    def curves_path(self) -> Path:
        """The figures of all iterations as one list of rows, which DVC plots over the iterations."""
        return self.root / CURVES_FILE

    @property
    def waiting_path(self) -> Path:
        """Note for the person for whom the loop waits; there only while it does."""
        return self.root / ".rsr" / "waiting"

    @property
    def alert_path(self) -> Path:
        """Warning of the gap watch; there only while the robot differs from the one that was calibrated."""
        return self.root / ".rsr" / "alert"

    def frozen_path(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "params.yaml"

    def session_dir(self, iteration: int) -> Path:
        """Where the session of this iteration is, or will be once it is recorded."""
        link = self.chain().get(iteration)
        return self.root / link.session if link else self._sessions_dir(self.settings()) / _session_name(iteration)

    def settings(self) -> LoopConfig:
        """The settings that the next planned iteration will get."""
        return self._placed(load_config(self.settings_path))

    def config(self, iteration: int) -> LoopConfig:
        """The settings frozen for this iteration, whatever params.yaml says by now."""
        return self._placed(load_config(self.frozen_path(iteration)))

    def _placed(self, config: LoopConfig) -> LoopConfig:
        """Name the campaign's own scenario, by a path that holds wherever a command is run.

        `scenario` in params.yaml is where it was copied from, a built-in one's name, or the path of its YAML file here.
        """
        for own in (self.root / config.scenario, self.scenario_dir / "scenario.yaml"):
            if own.is_file():
                return config.model_copy(update={"scenario": str(own)})
        return config

    def _sessions_dir(self, config: LoopConfig) -> Path:
        """Sessions are stored under the scenario's name, which for one by path stands in its file."""
        return self.data_dir / scenario_name(config.scenario)

    def chain(self) -> dict[int, Link]:
        """The planned iterations in their order, without the start."""
        try:
            entries = read_json(self.chain_path)["chain"]
            links = {int(key): Link(**entry) for key, entry in entries.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise WorkspaceError(
                got=f"{type(error).__name__}: {error}",
                expected='{"chain": {"1": {"dir": ..., "prev": ..., "session": ...}}}',
                where=str(self.chain_path),
                next_step="The loop writes this file; restore it with `git checkout iterations.json`.",
            ) from error
        return dict(sorted(links.items()))

    def plan(self, iteration: int) -> None:
        """Freeze the settings for an iteration and append it to the chain; what was planned before stays as it is.

        The chain is written last: an iteration that it does not name never ran, and may still be planned anew.
        """
        chain = self.chain()
        planned = self.frozen_path(0).exists() if iteration == 0 else iteration in chain
        if planned:
            return
        self.check_scenario()
        # As written, not as placed: what is frozen must hold wherever the campaign is moved.
        dump_config(load_config(self.settings_path), self.frozen_path(iteration))
        if iteration > 0:
            chain[iteration] = self._link(iteration)
            write_json(self.chain_path, {"chain": {str(key): asdict(link) for key, link in chain.items()}})

    def rows(self) -> list[dict[str, Any]]:
        """The metrics of every iteration evaluated so far, in order."""
        paths = [self.metrics_path(iteration) for iteration in self.chain()]
        return [read_json(path) for path in paths if path.exists()]

    def check_scenario(self) -> None:
        """Refuse settings that name another scenario than the one with which the campaign began.

        Raises:
            ConfigError: they do.
        """
        if not self.frozen_path(0).exists():
            return
        began, named = load_config(self.frozen_path(0)).scenario, load_config(self.settings_path).scenario
        if named != began:
            raise ConfigError(
                got=f"scenario: {named}",
                expected=f"scenario: {began}, with which this campaign began",
                where=str(self.settings_path),
                next_step="Put it back, and give the other scenario a workspace of its own.",
            )

    def _link(self, iteration: int) -> Link:
        return Link(
            dir=self.relative(self.iteration_dir(iteration)),
            prev=self.relative(self.iteration_dir(iteration - 1)),
            session=self.relative(self._sessions_dir(self.settings()) / _session_name(iteration)),
        )

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


_PLAIN_NAME = re.compile(r"[\w.-]+")
_TASK = re.compile(r"^task:", re.MULTILINE)
_TASK_BESIDE = re.compile(r"^task:[ \t]*[\"']?([\w.-]+\.ya?ml)\b", re.MULTILINE)
_PYTHON_MODEL = re.compile(r"^[^#\n]*\b(?:mjcf|law)[\"']?:\s*[\"']?[^\s\"':]+\.py:", re.MULTILINE)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def scenario_name(scenario: str) -> str:
    """The name under which sessions of a scenario are stored; `scenario` is a built-in one's, or a YAML file's path.

    Raises:
        ConfigError: there is no such file, or it gives no name.
    """
    path = Path(scenario) / "scenario.yaml" if Path(scenario).is_dir() else Path(scenario)
    if path.suffix not in (".yaml", ".yml"):
        return scenario
    try:
        return str(yaml.safe_load(path.read_text())["name"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError) as error:
        raise ConfigError(
            got=f"{type(error).__name__}: {' '.join(str(error).split())}",
            expected="a scenario's YAML file, with its `name`",
            where=str(path),
            next_step="Correct the path in params.yaml, or the file.",
        ) from error


def _session_name(iteration: int) -> str:
    return f"session-{iteration:03d}"
