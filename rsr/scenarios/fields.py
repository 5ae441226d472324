"""Which keys a scenario's YAML file has, and what is said about one that is missing, misspelt or of the wrong form.

`docs/scenarios.md` explains every key; a test keeps the two in step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rsr.errors import ScenarioError


@dataclass(frozen=True)
class Fields:
    """The keys of one mapping in the file."""

    required: frozenset[str]
    optional: frozenset[str] = frozenset()

    @property
    def known(self) -> frozenset[str]:
        return self.required | self.optional


FIELDS: dict[str, Fields] = {
    "scenario": Fields(
        frozenset({"name", "title", "mjcf", "control_dt_s", "episode_steps", "gap_channel", "channels", "parameters"}),
        frozenset(
            {
                "command",
                "history_steps",
                "repeats_share",
                "window_s",
                "gap_horizon_s",
                "zero_s",
                "structure",
                "evaluation",
                "collision",
            }
        ),
    ),
    "channel": Fields(
        frozenset({"columns", "unit", "frame"}), frozenset({"clock", "stamp", "reads", "noise", "zero_std", "mode"})
    ),
    "parameter": Fields(
        frozenset({"nominal", "lower", "upper", "unit", "prior_std"}),
        frozenset({"scale", "unit_step", "description", "sets", "scales", "delays", "shifts"}),
    ),
    "evaluation": Fields(frozenset({"starts", "metrics"}), frozenset({"horizon_s", "free_flight"})),
    "free_flight": Fields(frozenset({"position", "orientation", "below_m", "frames_before"})),
    "collision": Fields(frozenset({"striker", "struck"}), frozenset({"nose_radius_m", "shape"})),
    "metric": Fields(frozenset({"channel", "statistic"}), frozenset({"one_is"})),
}
"""Kind of mapping -> its keys."""


def check_fields(kind: str, entry: Any, where: str) -> Mapping[str, Any]:
    """Return the mapping if its keys are those of its kind."""
    fields = FIELDS[kind]
    if not isinstance(entry, Mapping):
        raise _wrong(f"{type(entry).__name__} instead of a mapping", _listed(fields.known), where)
    for key in entry:
        if key not in fields.known:
            close = difflib.get_close_matches(str(key), fields.known, 1)
            raise _wrong(f"'{key}'", f"'{close[0]}'" if close else f"one of {_listed(fields.known)}", where)
    missing = fields.required - set(entry)
    if missing:
        raise _wrong(f"no {_listed(missing)}", f"all of {_listed(fields.required)}", where)
    return entry


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _wrong(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=where,
        next_step="Correct the scenario's YAML file; docs/scenarios.md explains every key.",
    )
