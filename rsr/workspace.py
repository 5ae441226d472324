"""The folder of one campaign: where everything lies, and the chain of its iterations. No git and no DVC in here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rsr.config import LoopConfig, dump_config, load_config
from rsr.errors import ConfigError, WorkspaceError
from rsr.files import read_json, write_json

CHAIN_FILE = "iterations.json"
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

    Example:
        workspace = Workspace.find(Path.cwd())
        policy = Policy.load(workspace.policy_dir(2))
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
            next_step="Change into a workspace, or make one: `python -m flows.rsr_loop --workspace demo`.",
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
            next_step=f"Correct the name, or make a workspace: `python -m flows.rsr_loop --workspace {folder}`.",
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

    def checkpoint_path(self, iteration: int) -> Path:
        """What an interrupted training goes on from; of this machine, so neither git nor DVC keeps it."""
        return self.iteration_dir(iteration) / ".training.npz"

    @property
    def curves_path(self) -> Path:
        """The figures of all iterations as one list of rows, which DVC plots over the iterations."""
        return self.root / CURVES_FILE

    @property
    def waiting_path(self) -> Path:
        """What a person has to do before the loop can go on, in words; there only while that is so."""
        return self.root / ".rsr" / "waiting"

    @property
    def alert_path(self) -> Path:
        """What the gap watch found last, in words; there only while the robot is not the one that was calibrated."""
        return self.root / ".rsr" / "alert"

    def frozen_path(self, iteration: int) -> Path:
        return self.iteration_dir(iteration) / "params.yaml"

    def session_dir(self, iteration: int) -> Path:
        """Where the session of this iteration is, or will be once it is recorded."""
        link = self.chain().get(iteration)
        return self.root / link.session if link else self.data_dir / self.settings().scenario / _session_name(iteration)

    def settings(self) -> LoopConfig:
        """The settings that the next planned iteration will get."""
        return load_config(self.settings_path)

    def config(self, iteration: int) -> LoopConfig:
        """The settings frozen for this iteration, whatever params.yaml says by now."""
        return load_config(self.frozen_path(iteration))

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
        settings = self.settings()
        if iteration > 0:
            self._check_scenario(settings)
        dump_config(settings, self.frozen_path(iteration))
        if iteration > 0:
            chain[iteration] = self._link(iteration)
            write_json(self.chain_path, {"chain": {str(key): asdict(link) for key, link in chain.items()}})

    def rows(self) -> list[dict[str, Any]]:
        """The metrics of every iteration evaluated so far, in order."""
        paths = [self.metrics_path(iteration) for iteration in self.chain()]
        return [read_json(path) for path in paths if path.exists()]

    def _check_scenario(self, settings: LoopConfig) -> None:
        began = self.config(0).scenario
        if settings.scenario != began:
            raise ConfigError(
                got=f"scenario: {settings.scenario}",
                expected=f"scenario: {began}, with which this campaign began",
                where=str(self.settings_path),
                next_step="Put it back, and give the other scenario a workspace of its own.",
            )

    def _link(self, iteration: int) -> Link:
        return Link(
            dir=self.relative(self.iteration_dir(iteration)),
            prev=self.relative(self.iteration_dir(iteration - 1)),
            session=self.relative(self.data_dir / self.settings().scenario / _session_name(iteration)),
        )

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _session_name(iteration: int) -> str:
    return f"session-{iteration:03d}"
