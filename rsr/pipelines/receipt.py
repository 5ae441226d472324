"""Run a step and leave its receipt: the inputs, code, versions and seed its results came from, and how long it took."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rsr.common import Advance, WorkspaceError, one_thread, read_json, sha256, write_json
from rsr.config import load_config
from rsr.pipelines.core import Step, StepTable
from rsr.pipelines.tables import TABLE
from rsr.workspace import Workspace

_PACKAGES = (
    "rsr", "numpy", "scipy", "mujoco", "torch", "stable_baselines3", "cmaes", "jax", "pyarrow", "dvc", "prefect",
)  # fmt: skip


def run_step(workspace: Workspace, name: str, iteration: int, advance: Advance, table: StepTable = TABLE) -> None:
    """Run one step of an iteration and leave its receipt in `receipts/<name>.json`.

    Both callers come through here: `rsr step` (for `dvc repro`) and the Prefect tasks.

    Raises:
        WorkspaceError: an input is missing, or the step did not write what the table says.
    """
    step = table.step(name)
    _check_planned(workspace, step, iteration)
    inputs, outputs = step.inputs(workspace, iteration), step.outputs(workspace, iteration)
    _check_present(workspace, name, inputs, "Run the steps before it first: `dvc repro` does, in their order.")
    started_at, started_s = datetime.now(UTC), time.perf_counter()
    function = step.load()
    with one_thread() if "torch" in sys.modules else nullcontext():  # the same bytes on any number of cores
        function(workspace, iteration, advance)
    duration_s = time.perf_counter() - started_s
    _check_present(workspace, name, outputs, "The step ended without writing it: this is a bug of the step.")
    leave_receipt(workspace, step, iteration, started_at, duration_s)


def leave_receipt(
    workspace: Workspace,
    step: Step,
    iteration: int,
    started_at: datetime | None = None,
    duration_s: float | None = None,
) -> None:
    """Write a step's receipt. Without times: its results were there already, from an interrupted run."""
    receipt = {
        "step": step.name,
        "iteration": iteration,
        "inputs": _hashes(workspace, step.inputs(workspace, iteration)),
        "outputs": _hashes(workspace, step.outputs(workspace, iteration)),
        "settings": _settings(workspace, step, iteration),
        "seed": workspace.config(iteration).seed,
        "code": code_version(),
        "versions": package_versions(),
        "started_at": started_at.isoformat(timespec="seconds") if started_at else None,
        "duration_s": None if duration_s is None else round(duration_s, 3),
        "verdict": _verdict(workspace, step, iteration),
    }
    write_json(workspace.receipts_dir(iteration) / f"{step.name}.json", receipt)


@cache
def code_version() -> str:
    """The commit of rsr's source where it is under git, "-dirty" if edited since; else the installed version."""
    source = Path(__file__).resolve().parents[1]
    # An installed rsr may lie inside somebody else's repository: ask whether git tracks this very file.
    if _git(source, "ls-files", "--error-unmatch", "__init__.py") is None:
        return installed_version("rsr") or "unknown"
    commit = _git(source, "describe", "--always", "--match", "v*") or "uncommitted"
    return f"{commit}-dirty" if _git(source, "status", "--porcelain", "--", ".") else commit


@cache
def package_versions() -> dict[str, str]:
    found = {name: version for name in _PACKAGES if (version := installed_version(name))}
    return {"python": platform.python_version(), **found}


def _check_planned(workspace: Workspace, step: Step, iteration: int) -> None:
    planned = [0] if not step.foreach else list(workspace.chain())
    if iteration not in planned:
        raise WorkspaceError(
            got=f"iteration {iteration} for step '{step.name}'",
            expected=f"one of {', '.join(map(str, planned))}" if planned else "an iteration that was planned",
            where=str(workspace.chain_path),
            next_step=f"Let the loop plan it: `rsr-loop --iterations {iteration}`.",
        )


def _check_present(workspace: Workspace, name: str, paths: list[Path], next_step: str) -> None:
    for path in paths:
        if not path.exists():
            raise WorkspaceError(
                got=f"no {workspace.relative(path)}",
                expected="a file or folder that the table of steps names",
                where=f"step '{name}' in {workspace.root}",
                next_step=next_step,
            )


def _hashes(workspace: Workspace, paths: list[Path]) -> dict[str, str]:
    return {workspace.relative(path): sha256(path) for path in paths}


def _settings(workspace: Workspace, step: Step, iteration: int) -> dict[str, Any]:
    settings = load_config(workspace.frozen_path(iteration)).model_dump(mode="json")
    return {key: settings[key] for key in step.settings}


def _verdict(workspace: Workspace, step: Step, iteration: int) -> str:
    if step.verdict is None:
        return "finished"
    path, key = step.verdict.split("#")
    return str(read_json(workspace.root / path.format(dir=workspace.relative(workspace.iteration_dir(iteration))))[key])


def installed_version(package: str) -> str | None:
    """Version of an installed package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# The stop rule at the end of an iteration.


def reason_to_stop(workspace: Workspace, iteration: int) -> str | None:
    """Say why the loop may end after this iteration, or None.

    Follows the settings frozen for the iteration, so that a loop started again decides as the first one did.
    """
    gap_m = read_json(workspace.metrics_path(iteration))["gap_after"]
    floor_m = workspace.config(iteration).stop.gap_m
    if gap_m <= floor_m:
        return f"the gap, {gap_m:.4f} m, is at its floor of {floor_m:.4f} m"
    return None
