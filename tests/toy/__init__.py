"""A loop that runs in milliseconds: the real table of steps with other functions. For tests of everything around it.

Two variables interfere with it, so that its processes can be made to die and be watched:
`TOY_FAULT=tune@2:half:kill` (before, half, after; kill, raise, linger, pause) and `TOY_AUDIT=FILE`, to which each step
that runs adds a line. A step that lingers waits for a child that will not end, in a process group of its own; one that
pauses goes on after some seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from rsr.common.files import read_arrays, read_json, write_arrays, write_json, write_text
from rsr.common.progress import Advance
from rsr.common.randomness import generator
from rsr.pipelines import TABLE as _REAL, Step
from rsr.workspace import Workspace


def start(workspace: Workspace, iteration: int, advance: Advance) -> None:
    seed = workspace.config(0).seed
    write_arrays(workspace.policy_dir(0) / "policy.npz", {"weights": generator(seed, "start").normal(size=(8, 8))})
    interfere("start", 0, "half")
    write_json(workspace.calibration_dir(0) / "calibration.json", {"status": "prior", "friction": 0.2})


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    config, session = workspace.config(iteration), workspace.session_dir(iteration)
    samples = 0.8 + 0.01 * generator(config.reality.seed, iteration).normal(size=(config.reality.episodes, 3))
    weights = read_arrays(workspace.policy_dir(iteration - 1) / "policy.npz")["weights"]
    unfinished = session.with_name(f".{session.name}.toy.part")
    write_arrays(unfinished / "episodes.npz", {"samples": samples + 1e-3 * weights.mean()})
    interfere("collect", iteration, "half")
    write_json(unfinished / "card.json", {"session": session.name})
    unfinished.rename(session)


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    samples = read_arrays(workspace.session_dir(iteration) / "episodes.npz")["samples"]
    before = read_json(workspace.calibration_dir(iteration - 1) / "calibration.json")["friction"]
    friction = before + 0.7 * (float(samples.mean()) - before)
    folder = workspace.calibration_dir(iteration)
    write_json(folder / "calibration.json", {"status": "converged", "friction": friction})
    interfere("tune", iteration, "half")
    write_arrays(folder / "trajectories.npz", {"simulated": np.full(samples.shape, friction)})


def infogap(workspace: Workspace, iteration: int, advance: Advance) -> None:
    friction = read_json(workspace.calibration_dir(iteration) / "calibration.json")["friction"]
    folder = workspace.infogap_dir(iteration)
    write_json(folder / "infogap.json", {"kl": (friction - 0.8) ** 2})
    interfere("infogap", iteration, "half")
    write_arrays(folder / "reference.npz", {"reference": np.array([friction])})


def retrain(workspace: Workspace, iteration: int, advance: Advance) -> None:
    weights = read_arrays(workspace.policy_dir(iteration - 1) / "policy.npz")["weights"]
    friction = read_json(workspace.calibration_dir(iteration) / "calibration.json")["friction"]
    noise = generator(workspace.config(iteration).seed, iteration, "retrain").normal(size=weights.shape)
    folder = workspace.policy_dir(iteration)
    write_arrays(folder / "policy.npz", {"weights": 0.9 * weights + 0.1 * friction + 0.01 * noise})
    interfere("retrain", iteration, "half")
    write_json(folder / "curve.json", [{"steps": n, "mean_return": n / 10, "success": n / 3} for n in range(3)])


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    before, after = (
        abs(read_json(workspace.calibration_dir(k) / "calibration.json")["friction"] - 0.8)
        for k in (iteration - 1, iteration)
    )
    divergence = read_json(workspace.infogap_dir(iteration) / "infogap.json")["kl"]
    write_arrays(workspace.evaluation_dir(iteration) / "rollouts.npz", {"gaps": np.array([before, after])})
    interfere("evaluate", iteration, "half")
    metrics = {"iteration": iteration, "kl_x": divergence, "kl_y": divergence, "gap_before": before, "gap_after": after}
    metrics |= {
        "success_sim": 0.9,
        "success_reality": 0.5,
        "params": {"friction": 0.8},
        "verdicts": {"friction": "weak"},
    }
    write_json(workspace.metrics_path(iteration), metrics)


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    interfere("report", iteration, "half")
    write_text(workspace.report_path(iteration), f"<html>{workspace.metrics_path(iteration).read_text()}</html>\n")


def idle(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """A step that writes nothing."""


def interfere(name: str, iteration: int, moment: str) -> None:
    """Die or fail here, if TOY_FAULT says so, or the file that TOY_FAULT_FILE names."""
    where, when, how = (os.environ.get("TOY_FAULT") or _fault_in_file() or "::").split(":")
    if (where, when) != (f"{name}@{iteration}", moment):
        return
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "pause":
        subprocess.run([sys.executable, "-c", "import time; time.sleep(6)"], check=True)
        return
    if how == "linger":
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.run([sys.executable, "-c", stubborn], start_new_session=True, check=False)
    raise RuntimeError(f"toy fault in {name} {iteration}")


def _fault_in_file() -> str:
    """For processes whose environment a test does not choose: a served lab's runs."""
    path = Path(os.environ.get("TOY_FAULT_FILE", os.devnull))
    return path.read_text() if path.exists() else ""


def _observed(step: Step) -> Step:
    return replace(step, function=f"toy:run_{step.name}")


def _watch(name: str):
    def run(workspace: Workspace, iteration: int, advance: Advance) -> None:
        if audit := os.environ.get("TOY_AUDIT"):
            with Path(audit).open("a") as file:
                file.write(f"{name}@{iteration}\n")
        interfere(name, iteration, "before")
        advance(0.5, "toy")
        globals()[name](workspace, iteration, advance)
        interfere(name, iteration, "after")

    return run


for _step in (*_REAL.stages, _REAL.collect):
    globals()[f"run_{_step.name}"] = _watch(_step.name)

TABLE = replace(_REAL, stages=tuple(map(_observed, _REAL.stages)), collect=_observed(_REAL.collect), module="toy")
TABLE_NAME = "toy:TABLE"
