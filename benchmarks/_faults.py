"""Kill flow, worker, server or all of them at random moments of an iteration, and see what becomes of it."""

from __future__ import annotations

import fcntl
import math
import os
import random
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, cycle, islice, repeat
from pathlib import Path

import psutil
from _common import Figure, kept
from _served import Served, await_
from small_steps import SMALL, SMALL_TABLE
from toy.bare import find_faults, fingerprint

from rsr.pipelines import verify
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
_FURTHER_NIGHTS = 2
"""Starts after the last kill's: that one may meet the server while it comes back."""
_NIGHTLY = "rsr-loop/nightly"
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class _Case:
    """What an iteration begins with, what it must come to, and what the loop computes for it."""

    base: Path
    expected: dict[str, str]
    usual_cpu_s: float


@dataclass(frozen=True)
class _End:
    """Of a campaign: which parts were killed while its loop was at work, and whether it ended as if undisturbed."""

    victims: tuple[str, ...]
    survived: bool


def survive(folder: Path, lab: Served, kills: int, keep: Path | None, seed: int = 0) -> dict[str, Figure]:
    """Kill so many times, in copies of one campaign, night after night until each is done; returns the shares.

    A campaign that did not end as if undisturbed counts against all that was killed in it.

    Args:
        keep: folder in which an interrupted run left what became of its campaigns, and finds it again.
    """
    lab.prefer(_NIGHTLY, limit=False, table=SMALL_TABLE, iterations=1)
    case = _prepare(folder, lab)
    ends: list[_End] = []
    while (left := kills - sum(len(end.victims) for end in ends)) > 0:
        number = len(ends)
        turns = islice(cycle(_VICTIMS), (kills - left) % len(_VICTIMS), None)
        moments = islice(_moments(case.usual_cpu_s, random.Random(f"{seed}, {number}")), left)
        root = folder / f"campaign-{number}"
        found = kept(keep, root.name, lambda: _campaign(lab, case, root, turns, moments))  # noqa: B023  (called at once)
        ends.append(_End(tuple(str(found["victims"]).split()), found["problems"] == ""))
        print(f"killed {kills - left + len(ends[-1].victims)}: {found}", flush=True)
    of_kills = [(victim, end.survived) for end in ends for victim in end.victims]
    shares = {f"survived_{name}": _share(lives for victim, lives in of_kills if victim == name) for name in _VICTIMS}
    return {
        "kills": len(of_kills),
        "kills_survived_fraction": _share(lives for _, lives in of_kills),
        "faults": len(ends),
        "faults_survived_fraction": _share(end.survived for end in ends),
        **shares,
        "iteration_cpu_seconds": case.usual_cpu_s,
    }


def _moments(usual_cpu_s: float, chance: random.Random) -> Iterator[float]:
    """When to kill: anywhere in the first night, sooner in later ones, in which less is left to do.

    In CPU time of the loop: by the clock, a moment of a busy machine comes after the end on a quiet one.
    """
    for most_s in chain([usual_cpu_s], repeat(usual_cpu_s / 2)):
        yield chance.uniform(0.0, most_s)


def _campaign(
    lab: Served, case: _Case, root: Path, turns: Iterator[str], moments: Iterable[float]
) -> dict[str, Figure]:
    """What was killed in a copy of the campaign, and what was wrong with it in the end."""
    shutil.copytree(case.base, root)
    victims = list(_disturb(lab, root, turns, moments))
    problems = list(_problems(root, case.expected)) if _finish(lab, root) else ["it did not finish"]
    shutil.rmtree(root)
    return {"victims": " ".join(victims), "problems": "; ".join(problems)}


def _share(survived: Iterable[bool]) -> float:
    """Share that survived; -1 of none."""
    found = list(survived)
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
    return _Case(base, fingerprint(reference), _cpu_seconds(lab, timed))


def _run(lab: Served, root: Path) -> None:
    """One night, to its end."""
    run = lab.due(_NIGHTLY, workspace=str(root))
    await_(lambda: lab.has_ended(run), "end of the loop")
    await_(lambda: _is_free(root), "lock")


def _is_free(root: Path) -> bool:
    """Whether the workspace can be had: a loop that ends strikes its name out a moment before it lets go."""
    with (root / ".rsr" / "lock").open("r+") as file, suppress(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not `held`, which strikes out the name of a dead one, too
        return True
    return False


def _cpu_seconds(lab: Served, root: Path) -> float:
    """What the loop computes in an iteration that nobody disturbs."""
    lab.due(_NIGHTLY, workspace=str(root))
    await_(lambda: live_holder(root), "loop")
    return list(_watched(root))[-1][1]


def _watched(root: Path) -> Iterator[tuple[int, float]]:
    """While a loop holds the workspace: its process, and the CPU time since we look, that of its children included."""
    began_s = None
    while holder := live_holder(root):
        with suppress(psutil.NoSuchProcess):
            spent_s = sum(psutil.Process(holder.pid).cpu_times()[:4])
            began_s = spent_s if began_s is None else began_s
            yield holder.pid, spent_s - began_s
        time.sleep(_LOOK_EVERY_S)


def _disturb(lab: Served, root: Path, turns: Iterator[str], moments: Iterable[float]) -> Iterator[str]:
    """Begin the iteration again and again and kill at a moment of each, until one ends before its moment.

    What lives on after a kill may end what it does. Yields the names of `_VICTIMS` that were killed.
    """
    for after_s in chain(moments, [math.inf]):
        run = lab.due(_NIGHTLY, workspace=str(root))
        await_(lambda run=run: live_holder(root) or lab.has_ended(run), "loop")
        flow = next((pid for pid, spent_s in _watched(root) if spent_s >= after_s), None)
        if flow is None:
            return
        victim = next(turns)
        for part in _VICTIMS[victim]:
            _kill(lab, part, flow)
        yield victim
        await_(lambda: lab.answers() and lab.runs_on("worker"), "server and worker again")
        await_(lambda: live_holder(root) is None, "end of what lived on")


def _kill(lab: Served, part: str, flow: int) -> None:
    if part != "flow":
        lab.kill(part)
        return
    with suppress(ProcessLookupError):  # it ended in this very moment
        os.kill(flow, signal.SIGKILL)


def _finish(lab: Served, root: Path) -> bool:
    """Let further nights come, if the iteration is not done; returns whether it is."""
    await_(lambda: _is_free(root), "lock")
    for _ in range(_FURTHER_NIGHTS):
        if not find_faults(root, 1, SMALL_TABLE):
            return True
        _run(lab, root)
    return not find_faults(root, 1, SMALL_TABLE)


def _problems(root: Path, expected: dict[str, str]) -> Iterator[str]:
    """What differs from the undisturbed iteration; the page quotes durations, and dvc.lock its hash."""
    yield from find_faults(root, 1, SMALL_TABLE)
    yield from verify(Workspace(root))
    found = fingerprint(root)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name) and not name.endswith(("report.html", "dvc.lock")):
            yield f"differs: {name}"
