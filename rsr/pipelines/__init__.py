"""Steps: the loop's stages as plain functions, files in, files out, and the one table that declares them.

A scenario without a task has the loop's table without a policy's steps (`WITHOUT_POLICY`), the two alternative tunings
have tables of their own (`CLASH`, `GNN`); `table_of` says which one a campaign has.

`dvc.yaml` is rendered from the table, the Prefect tasks look their work up in it, and both run a step through
`run_step`, which leaves a receipt. This room may import every other room of `rsr`; only `rsr.cli` imports it.
The table names its functions by text, so that reading it does not load MuJoCo or torch.

    run_step(Workspace.find(Path.cwd()), "tune", iteration=2, advance=ignore)
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
