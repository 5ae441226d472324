"""End the loop and `rsr_flows.serve` by Ctrl-C, SIGTERM and SIGHUP at random moments: how soon, and what remains."""

from __future__ import annotations

import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from _common import Figure
from _served import PROJECT  # first: it lets us find what is in tests/
from ports import free_port
from small_steps import SMALL, SMALL_TABLE
from terminals import SIGNALS, InTerminal
from toy.bare import find_faults, fingerprint

from rsr_tasks.campaign import opened
from rsr_tasks.loop import bring_up_to_date, plan, run_bare_loop

_READY = "Ready:"


@dataclass
class _Outcomes:
    """How it went."""

    seconds: list[float] = field(default_factory=list)
    clean: list[bool] = field(default_factory=list)

    def add(self, what: str, seconds: float, problems: list[str]) -> None:
        print(f"{what}: {seconds:.1f} s; {'; '.join(problems) or 'clean'}", flush=True)
        self.seconds.append(seconds)
        self.clean.append(not problems)


def end_by_signals(folder: Path, moments: int, seed: int = 0) -> dict[str, Figure]:
    """Send each signal at so many moments to the loop and to serve; returns how long their ends took."""
    loop, resumed = _end_loops(folder, moments, random.Random(seed))
    serve = _end_serves(folder, moments, random.Random(seed))
    return {
        "signals": len(loop.seconds) + len(serve.seconds),
        "signals_worst_s": max(loop.seconds + serve.seconds),
        "signals_worst_loop_s": max(loop.seconds),
        "signals_worst_serve_s": max(serve.seconds),
        "signals_clean_fraction": sum(loop.clean + serve.clean) / len(loop.clean + serve.clean),
        "signals_resumed_fraction": resumed,
    }


def _end_loops(folder: Path, moments: int, chance: random.Random) -> tuple[_Outcomes, float]:
    """Interrupt campaigns again and again, until they are done; returns also the share of them with the same bytes."""
    base, reference = folder / "signals-base", folder / "signals-reference"
    with opened(base, SMALL_TABLE, SMALL) as campaign:
        plan(campaign, 0)
        bring_up_to_date(campaign, "start", 0)
    shutil.copytree(base, reference)
    run_bare_loop(reference, 1, SMALL_TABLE)
    expected, same, outcomes = _comparable(reference), [], _Outcomes()
    usual_s = _seconds(_loop(Path(shutil.copytree(base, folder / "signals-timed"))))
    root = Path(shutil.copytree(base, folder / "signals-0"))
    for number in range(moments * len(SIGNALS)):
        begun = _loop(root)
        hit = _disturb(begun, SIGNALS[number % len(SIGNALS)], chance.uniform(0.5, usual_s), outcomes, "loop")
        if not hit or number == moments * len(SIGNALS) - 1:
            _loop(root).end(600.0)
            same.append(not find_faults(root, 1, SMALL_TABLE) and _comparable(root) == expected)
            root = Path(shutil.copytree(base, folder / f"signals-{number + 1}"))
    return outcomes, sum(same) / len(same)


def _end_serves(folder: Path, moments: int, chance: random.Random) -> _Outcomes:
    """End serve while it comes up, and some seconds after it did."""
    outcomes, port = _Outcomes(), free_port()
    first = _serve(folder, port)  # makes the database
    began_s = time.perf_counter()
    first.await_(lambda: _READY in first.text, "ready")
    usual_s = 1.3 * (time.perf_counter() - began_s)
    _disturb(first, SIGNALS[1], 0.0, outcomes, "serve")
    for number in range(moments * len(SIGNALS)):
        begun = _serve(folder, port)
        _disturb(begun, SIGNALS[number % len(SIGNALS)], chance.uniform(0.5, usual_s), outcomes, "serve")
    return outcomes


def _disturb(begun: InTerminal, number: signal.Signals, after_s: float, outcomes: _Outcomes, what: str) -> bool:
    """Send a signal after so many seconds; returns whether there was still something to end."""
    deadline_s = time.monotonic() + after_s
    begun.await_(lambda: time.monotonic() > deadline_s, "moment")
    if not begun.runs():
        begun.end()
        return False
    said_before = len(begun.text)
    began_s = time.monotonic()
    begun.send(number)
    code = begun.end()
    taken_s = time.monotonic() - began_s
    outcomes.add(
        f"{what}, {number.name} after {after_s:.1f} s", taken_s, list(_problems(begun.text[said_before:], code, number))
    )
    return True


def _problems(said: str, code: int, number: signal.Signals) -> Iterator[str]:
    if code != 128 + number:
        yield f"code {code}"
    if "Traceback" in said or said.count(" goes on ") + said.count(" go on ") != 1:
        yield f"said {said!r}"


def _loop(root: Path) -> InTerminal:
    return InTerminal([sys.executable, "-m", "loop_of", SMALL_TABLE, "--workspace", str(root), "--iterations", "1"])


def _serve(folder: Path, port: int) -> InTerminal:
    command = [sys.executable, "-m", "rsr_flows.serve", "--port", str(port)]
    return InTerminal(command, cwd=PROJECT, PREFECT_HOME=str(folder / "signals-prefect"))


def _seconds(begun: InTerminal) -> float:
    began_s = time.perf_counter()
    begun.end(600.0)
    return time.perf_counter() - began_s


def _comparable(root: Path) -> dict[str, str]:
    """Hashes of all but the page, which quotes durations, and dvc.lock, which has its hash."""
    found = fingerprint(root)
    return {name: value for name, value in found.items() if not name.endswith(("report.html", "dvc.lock"))}
