"""`python -m tests.push_kills NEW_FOLDER`: the real steps, smaller, killed in the middle of each in turn.

One iteration runs undisturbed; another workspace's loop is killed in each of its steps and started again after each.
Both must come to the same bytes, and DVC and git must find nothing amiss. Each loop runs in a fork of this process,
which has imported everything and started no thread.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from forks import in_fork, say
from small_steps import STEPS as _REAL
from toy.bare import find_faults, fingerprint, run_bare_loop

import rsr.policies.training  # noqa: F401  # imported once, for all forks
from rsr.common.progress import Advance
from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig
from rsr.pipelines import Step
from rsr.pipelines.core import StepFunction
from rsr.workspace import Workspace

_ROLLOUT = 64 * 128
SMALL = LoopConfig(
    reality=RealityConfig(episodes=8),
    start=StartConfig(train_steps=6 * _ROLLOUT),
    tune=TuneConfig(method="cmaes", fit_episodes=4),
    infogap=InfoGapConfig(transitions=200),
    retrain=RetrainConfig(train_steps=2 * _ROLLOUT),
)
_SHARES = {"start": 0.8, "collect": 0.5, "tune": 0.5, "infogap": 0.4, "retrain": 0.4, "evaluate": 0.5, "report": 0.3}
"""How far a step has come when it is killed. `start` has left a checkpoint by then."""
_doomed = ""


def _mortal(step: Step) -> StepFunction:
    def run(workspace: Workspace, iteration: int, advance: Advance) -> None:
        def report(share: float, words: str = "") -> None:
            if _doomed == step.name and share >= _SHARES[step.name]:
                os.kill(os.getpid(), signal.SIGKILL)
            advance(share, words)

        step.load()(workspace, iteration, report)

    return run


def _table() -> None:
    """Define TABLE and the functions that it names."""
    for step in (*_REAL.stages, _REAL.collect):
        globals()[f"run_{step.name}"] = _mortal(step)
    names = {step.name: replace(step, function=f"tests.push_kills:run_{step.name}") for step in _REAL.stages}
    collect = replace(_REAL.collect, function="tests.push_kills:run_collect")
    globals()["TABLE"] = replace(_REAL, stages=tuple(names.values()), collect=collect)


_table()
TABLE_NAME = "tests.push_kills:TABLE"


def _run(root: Path, doomed: str = "") -> None:
    sys.modules["tests.push_kills"]._doomed = doomed
    run_bare_loop(root, 1, TABLE_NAME, SMALL)


def _check(root: Path, reference: Path) -> None:
    problems = find_faults(root, 1, TABLE_NAME)
    expected, found = fingerprint(reference), fingerprint(root)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name) and not name.endswith("report.html") and name != "dvc.lock":
            problems.append(f"differs: {name}")
    if problems:
        raise AssertionError("; ".join(problems))


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    reference, root = folder / "reference", folder / "killed"
    if code := in_fork(lambda: _run(reference)):
        return code
    for name in _SHARES:
        killed = in_fork(lambda: _run(root, name))  # noqa: B023
        say(f"{name}: {'killed' if killed == -signal.SIGKILL else f'ended with {killed}'}")
    return in_fork(lambda: _run(root)) or in_fork(lambda: _check(root, reference))


if __name__ == "__main__":
    import tests.push_kills

    raise SystemExit(tests.push_kills.main())
