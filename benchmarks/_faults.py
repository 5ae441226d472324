"""Kill flow, worker, server or all of them at random moments of an iteration, and see what becomes of it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from _common import Figure
from _served import Served, await_
from small_steps import SMALL, SMALL_TABLE
from toy.bare import find_faults, fingerprint

from rsr.pipelines.verification import verify
from rsr.workspace import Workspace
from rsr_tasks import loop
from rsr_tasks.campaign import opened
from rsr_tasks.locking import live_holder
from rsr_tasks.loop import run_bare_loop

_VICTIMS: dict[str, tuple[str, ...]] = {
    "flow": ("flow",),
    "worker": ("worker",),
    "server": ("server",),
    "power": ("server", "worker", "flow"),
}
_ATTEMPTS = 3
"""Starts after the kill: the first may meet the server while it comes back."""
_NIGHTLY = "rsr-loop/nightly"


@dataclass(frozen=True)
class _Case:
    """What an iteration begins with, and what it must come to."""

    base: Path
    expected: dict[str, str]
    usual_s: float


@dataclass(frozen=True)
class _End:
    """Of a campaign: what was killed, whether there was something to kill, whether it ended as if undisturbed."""

    victim: str
    hit: bool
    survived: bool


def survive(folder: Path, lab: Served, kills: int, seed: int = 0) -> dict[str, Figure]:
    """Kill so many times, each time in a copy of one campaign; returns the shares that ended as if undisturbed."""
    lab.prefer(_NIGHTLY, limit=False, table=SMALL_TABLE, iterations=1)
    case, chance = _prepare(folder, lab), random.Random(seed)
    ends: list[_End] = []
    for number in range(kills):
        victim = list(_VICTIMS)[number % len(_VICTIMS)]
        root = Path(shutil.copytree(case.base, folder / f"campaign-{number}"))
        hit = _disturb(lab, root, _VICTIMS[victim], chance.uniform(0.0, case.usual_s))
        problems = list(_problems(root, case.expected)) if _finish(lab, root) else ["it did not finish"]
        ends.append(_End(victim, hit, not problems))
        print(f"kill {number}, {victim}: {'; '.join(problems) or 'survived'}", flush=True)
        shutil.rmtree(root)
    shares = {f"survived_{name}": _share(end for end in ends if end.victim == name) for name in _VICTIMS}
    return {
        "faults": kills,
        "faults_that_hit": sum(end.hit for end in ends),
        "kills_survived_fraction": _share(end for end in ends if end.hit),
        "faults_survived_fraction": _share(ends),
        **shares,
        "iteration_seconds": case.usual_s,
    }


def _share(ends: Iterable[_End]) -> float:
    """Share that survived; -1 of none."""
    found = [end.survived for end in ends]
    return sum(found) / len(found) if found else -1.0


def _prepare(folder: Path, lab: Served) -> _Case:
    """A campaign after its start; what an undisturbed iteration makes of it, and in what time."""
    base, reference, timed = folder / "base", folder / "reference", folder / "timed"
    with opened(base, SMALL_TABLE, SMALL) as campaign:
        loop.plan(campaign, 0)
        loop.bring_up_to_date(campaign, "start", 0)
    shutil.copytree(base, reference)
    run_bare_loop(reference, 1, SMALL_TABLE)
    shutil.copytree(base, timed)
    return _Case(base, fingerprint(reference), _seconds(lab, timed))


def _run(lab: Served, root: Path) -> None:
    """One night, to its end."""
    run = lab.due(_NIGHTLY, workspace=str(root))
    await_(lambda: lab.has_ended(run), "end of the loop")


def _seconds(lab: Served, root: Path) -> float:
    """How long the loop is at work in an iteration that nobody disturbs."""
    lab.due(_NIGHTLY, workspace=str(root))
    await_(lambda: live_holder(root), "loop")
    began_s = time.perf_counter()
    await_(lambda: live_holder(root) is None, "end of the loop")
    return time.perf_counter() - began_s


def _disturb(lab: Served, root: Path, victims: tuple[str, ...], after_s: float) -> bool:
    """Begin an iteration and kill; what lives on may end what it does. Returns whether something was there to kill."""
    lab.due(_NIGHTLY, workspace=str(root))
    await_(lambda: live_holder(root), "loop")
    time.sleep(after_s)
    hit = [_kill(lab, root, victim) for victim in victims]
    await_(lambda: lab.answers() and lab.runs_on("worker"), "server and worker again")
    await_(lambda: live_holder(root) is None, "end of what lived on")
    return all(hit)


def _kill(lab: Served, root: Path, victim: str) -> bool:
    """SIGKILL; returns whether there was anything to kill."""
    if victim != "flow":
        return lab.kill(victim)
    holder = live_holder(root)
    if holder is not None:
        os.kill(holder.pid, signal.SIGKILL)
    return holder is not None


def _finish(lab: Served, root: Path) -> bool:
    """Let the nights after it come, until the iteration is done."""
    for _ in range(_ATTEMPTS):
        _run(lab, root)
        if not find_faults(root, 1, SMALL_TABLE):
            return True
    return False


def _problems(root: Path, expected: dict[str, str]) -> Iterator[str]:
    """What differs from the undisturbed iteration; the page quotes durations, and dvc.lock its hash."""
    yield from find_faults(root, 1, SMALL_TABLE)
    yield from verify(Workspace(root))
    found = fingerprint(root)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name) and not name.endswith(("report.html", "dvc.lock")):
            yield f"differs: {name}"
