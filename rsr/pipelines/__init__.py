"""Steps: the loop's stages as plain functions, files in, files out, and the one table that declares them.

A scenario without a task has the loop's table without a policy's steps (`WITHOUT_POLICY`), the two alternative tunings
have tables of their own (`CLASH`, `GNN`); `table_of` says which one a campaign has.

`dvc.yaml` is rendered from the table, the Prefect tasks look their work up in it, and both run a step through
`run_step`, which leaves a receipt. This room may import every other room of `rsr`; only `rsr.cli` imports it.
The table names its functions by text, so that reading it does not load MuJoCo or torch.

    run_step(Workspace.find(Path.cwd()), "tune", iteration=2, advance=ignore)
"""

from rsr.pipelines.clash.table import CLASH
from rsr.pipelines.core import Step, StepTable
from rsr.pipelines.gnn.table import GNN
from rsr.pipelines.receipt import leave_receipt, reason_to_stop, run_step
from rsr.pipelines.rendering import LAUNCHER_FILE, PYTHON_FILE, render_launcher, render_pipeline
from rsr.pipelines.tables import TABLE, WITHOUT_POLICY, check_same_task, own_table, table_of, with_curves

__all__ = [
    "CLASH",
    "GNN",
    "LAUNCHER_FILE",
    "PYTHON_FILE",
    "TABLE",
    "WITHOUT_POLICY",
    "Step",
    "StepTable",
    "check_same_task",
    "leave_receipt",
    "own_table",
    "reason_to_stop",
    "render_launcher",
    "render_pipeline",
    "run_step",
    "table_of",
    "with_curves",
]
