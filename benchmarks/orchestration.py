"""What Prefect and DVC cost: the same steps called bare, against the loop as a flow.

Both run in processes of their own, from nothing to the same results. `orchestration_overhead` is the share of the
flow's time that it did not spend in steps; `overhead_between_runs` compares the two runs, which on a busy machine
mostly compares two moments of that machine. `orchestration_cpu_seconds`, the processors' time that the flow took more
than the bare steps, holds on a busy machine too.

With --quick the steps are those of tests/toy, which take no time: what is left is the cost itself, set against the time
that the demo's steps took by their receipts (or 300 s, where there is no finished demo).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import Figure, run

from rsr.common import read_json

_PROJECT = Path(__file__).resolve().parents[1]
_ITERATIONS = 3
_ASSUMED_LOOP_S = 300.0

# The steps and nothing else: no lock, no versions, no server. The same receipts, which belong to the step.
_BARE = """
import sys
from pathlib import Path
from rsr.config import LoopConfig, dump_config
from rsr.common.files import write_json
from rsr.common.progress import ignore
from rsr.pipelines import run_step
from rsr.workspace import Workspace
from rsr_tasks.campaign import load_table
root, table, iterations = Path(sys.argv[1]), load_table(sys.argv[2]), int(sys.argv[3])
dump_config(LoopConfig(), root / "params.yaml")
write_json(root / "iterations.json", {"chain": {}})
workspace = Workspace(root)
for iteration in range(iterations + 1):
    workspace.plan(iteration)
    steps = [step.name for step in table.stages if step.foreach == (iteration > 0)]
    for name in (["collect"] if iteration else []) + steps:
        run_step(workspace, name, iteration, ignore, table)
"""

_FLOW = "import sys; from rsr_flows._command import main; sys.exit(main(sys.argv[3:], table=sys.argv[2]))"


def measure(quick: bool) -> dict[str, Figure]:
    """Run both, and once more the flow that finds nothing to do."""
    table = "toy:TABLE" if quick else "rsr.pipelines:TABLE"
    with tempfile.TemporaryDirectory() as folder:
        bare, flow = Path(folder) / "bare", Path(folder) / "flow"
        bare.mkdir()
        options = ("--workspace", str(flow), "--scenario", "push_cube", "--iterations", str(_ITERATIONS))
        bare_s, bare_cpu_s = _timed(_BARE, bare, table, str(_ITERATIONS))
        flow_s, flow_cpu_s = _timed(_FLOW, flow, table, *options)
        again_s, _ = _timed(_FLOW, flow, table, *options)
        steps_s = _seconds_in_steps(flow)
    cost_s = flow_s - steps_s
    loop_s = (_seconds_in_steps(_PROJECT / "demo") or _ASSUMED_LOOP_S) if quick else steps_s
    return {
        "orchestration_overhead": cost_s / (cost_s + loop_s),
        "orchestration_seconds": cost_s,
        "orchestration_cpu_seconds": flow_cpu_s - bare_cpu_s,
        "loop_seconds": loop_s,
        "overhead_between_runs": (flow_s - bare_s) / loop_s,
        "bare_seconds": bare_s,
        "flow_seconds": flow_s,
        "nothing_to_do_seconds": again_s,
        "iterations": _ITERATIONS,
    }


def _timed(code: str, root: Path, table: str, *arguments: str) -> tuple[float, float]:
    """Run in a process of its own; returns the time it took, and that of the processors, its children included."""
    paths = os.pathsep.join([str(_PROJECT), str(_PROJECT / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "PREFECT_API_URL": ""}
    environment.pop("PREFECT_HOME", None)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, str(root), table, *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu_s


def _seconds_in_steps(workspace: Path) -> float:
    """The time that the steps of a finished loop took, by their receipts; 0 if it is not finished."""
    receipts = [read_json(path) for path in (workspace / "iterations").glob("*/receipts/*.json")]
    if sum(receipt["step"] == "report" for receipt in receipts) < _ITERATIONS:
        return 0.0
    return sum(receipt["duration_s"] or 0.0 for receipt in receipts)


if __name__ == "__main__":
    run(measure, __doc__ or "")
