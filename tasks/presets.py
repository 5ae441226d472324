"""Settings with which a campaign of an alternative tuning begins, where nobody says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rsr.config import LoopConfig, parse_config

Tuning = Literal["clash", "gnn"]

_DEFAULTS: dict[str, dict[str, Any]] = {
    "clash": {
        "scenario": "strike",
        "reality": {"episodes": 30},
        "tune": {"method": "clash", "fit_episodes": 10},
        "clash": {},
    },
    # Three recordings to learn from and fourteen to judge by, as in the paper.
    "gnn": {
        "scenario": "two_cubes",
        "reality": {"episodes": 17},
        "tune": {"method": "gnn", "fit_episodes": 3},
        "gnn": {},
    },
}
_QUICK: dict[str, dict[str, Any]] = {
    "clash": {"clash": {"pairs": 3_000, "train_steps": 500, "baselines": False, "targets": 2}},
    "gnn": {"gnn": {"teacher_budget": 240, "trajectories": 200, "steps": 300, "finetune_steps": 20}},
}


def settings_of(tuning: Tuning, given: Mapping[str, Any] | None = None, quick: bool = False) -> LoopConfig:
    """The tuning's own defaults, and over them what was given, section by section.

    Args:
        quick: a small model in a fraction of the time: to see everything run, not to use.

    Raises:
        ConfigError: a key is unknown, or a value is out of its range.
    """
    base = _merged(_DEFAULTS[tuning], _QUICK[tuning]) if quick else _DEFAULTS[tuning]
    return parse_config(_merged(base, given or {}), where=f"settings of the flow {tuning}")


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = base.keys() & over.keys()
    sections = {
        key: _merged(base[key], over[key])
        for key in both
        if isinstance(base[key], Mapping) and isinstance(over[key], Mapping)
    }
    return {**base, **over, **sections}
