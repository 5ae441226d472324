"""Campaigns on several stand-ins for reality side by side: what the loop achieves, and how far that depends on luck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact

from rsr_tasks.campaign import DEFAULT_TABLE
from rsr_tasks.engine_settings import Engine, EngineName
from rsr_tasks.fan_out import fan_out
from rsr_tasks.workspace import flat


@flow(name="benchmark", persist_result=False)
def benchmark(
    folder: str = "benchmark",
    stand_in_seeds: list[int] | None = None,
    iterations: int = 3,
    settings: dict[str, Any] | None = None,
    engine: EngineName = "processes",
    workers: int = 2,
    table: str = DEFAULT_TABLE,
) -> dict[str, list[dict[str, Any]]]:
    """Run the loop on each stand-in; returns one row of figures an iteration for each.

    Args:
        folder: of the campaigns, one workspace each; finished iterations are not run again.
        stand_in_seeds: which stand-ins; by default 1, 2 and 3.
        iterations: of each campaign.
        settings: as in params.yaml; the stand-in's seed is added.
        engine: who runs them: threads, processes or dask.
        workers: how many campaigns at once.
        table: "module:name" of the steps; the module is imported, which runs its code.
    """
    chosen = stand_in_seeds or [1, 2, 3]
    jobs = [
        {"workspace": str(Path(folder) / f"stand-in-{seed}"), "iterations": iterations, "table": table}
        | {"settings": _with_stand_in(settings or {}, seed)}
        for seed in chosen
    ]
    found = fan_out("rsr_tasks.loop:run_campaign", jobs, Engine(engine, workers))
    rows = {f"stand-in-{seed}": campaign for seed, campaign in zip(chosen, found, strict=True)}
    figures = [{"campaign": name} | row for name, campaign in rows.items() for row in flat(campaign)]
    create_table_artifact(key="benchmark", table=figures, description="Real-Sim-Real on several stand-ins")
    return rows


def _with_stand_in(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    return {**settings, "reality": {**settings.get("reality", {}), "seed": seed}}
