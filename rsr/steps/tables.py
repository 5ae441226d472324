"""Which pipeline a campaign runs: its settings say."""

from __future__ import annotations

from rsr.config import LoopConfig
from rsr.steps.clash_table import CLASH
from rsr.steps.gnn_table import GNN
from rsr.steps.table import TABLE, StepTable


def table_of(config: LoopConfig) -> StepTable:
    """The loop's own table, or that of the method whose section the settings have."""
    if config.clash is not None:
        return CLASH
    return GNN if config.gnn is not None else TABLE
