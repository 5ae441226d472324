"""Which keys a scenario's YAML file has, and what is said about one that is missing, misspelt or of the wrong form.

`docs/scenarios.md` explains every key; a test keeps the two in step.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rsr.common import ScenarioError, advice, new_key, short
from rsr.sessions import is_session_name


@dataclass(frozen=True)
class YamlKeys:
    """The keys of one mapping in the file."""

    required: frozenset[str]
    optional: frozenset[str] = frozenset()

    @property
    def known(self) -> frozenset[str]:
        return self.required | self.optional


YAML_KEYS: dict[str, YamlKeys] = {
    "scenario": YamlKeys(
        frozenset({"name", "title", "mjcf", "control_dt_s", "gap_channel", "channels", "parameters"}),
        frozenset(
            {
                "command",
                "adds",
                "episode_steps",
                "history_steps",
                "repeats_share",
                "window_s",
                "gap_horizon_s",
                "bias_window_s",
                "structure",
                "per_episode",
                "evaluation",
                "collision",
                "limits",
                "stand_in",
                "effects",
                "task",
            }
        ),
    ),
    "task": YamlKeys(
        frozenset(),
        frozenset(
            {"action", "start", "reach", "push", "balance", "track", "held_s", "smoothness", "limits", "training"}
        ),
    ),
    "action": YamlKeys(frozenset(), frozenset({"step"})),
    "reach": YamlKeys(frozenset({"of", "within"}), frozenset({"box_lower", "box_upper", "weight", "still"})),
    "push": YamlKeys(frozenset({"of", "by", "within"}), frozenset({"box_lower", "box_upper", "weight", "still"})),
    "track": YamlKeys(
        frozenset({"of", "within", "period_s"}),
        frozenset({"around", "amplitude", "phase", "through", "weight", "still"}),
    ),
    "balance": YamlKeys(frozenset({"of", "near", "within"}), frozenset({"weight", "still"})),
    "limits": YamlKeys(
        frozenset(),
        frozenset(
            {
                "command_lower",
                "command_upper",
                "command_rate",
                "command_acceleration",
                "safe_command",
                "sites",
                "brake_share",
            }
        ),
    ),
    "effect": YamlKeys(frozenset({"law"}), frozenset({"joints", "actuators", "arguments"})),
    "setting": YamlKeys(frozenset({"channel", "column", "otherwise"})),
    "site": YamlKeys(frozenset(), frozenset({"inside", "keep_out", "speed"})),
    "box": YamlKeys(frozenset({"box_lower", "box_upper"})),
    "stand_in": YamlKeys(
        frozenset(),
        frozenset(
            {
                "ranges",
                "friction_anisotropy",
                "sliding_pairs",
                "dry_friction",
                "gravity_compensation",
                "delay_jitter_s",
                "sensor_noise",
                "timestep_s",
            }
        ),
    ),
    "channel": YamlKeys(
        frozenset({"columns", "unit", "frame"}),
        frozenset({"clock", "stamp", "reads", "noise", "noise_axis", "bias_std", "mode"}),
    ),
    "parameter": YamlKeys(
        frozenset({"nominal", "lower", "upper", "unit", "prior_std"}),
        frozenset(
            {
                "scale",
                "unit_step",
                "description",
                "sets",
                "scales",
                "delays",
                "sensor_delay",
                "sensor_gain",
                "sensor_bias",
                "times",
            }
        ),
    ),
    "per_episode": YamlKeys(frozenset({"nominal", "unit"}), frozenset({"tag", "description", "sets", "scales"})),
    "evaluation": YamlKeys(frozenset({"starts", "metrics"}), frozenset({"horizon_s", "free_flight"})),
    "free_flight": YamlKeys(frozenset({"position", "orientation", "below_m", "frames_before"})),
    "collision": YamlKeys(
        frozenset({"striker", "struck"}),
        frozenset({"base", "nose_radius_m", "shape", "plane", "apart_s", "table"}),
    ),
    "metric": YamlKeys(frozenset({"channel", "statistic"}), frozenset({"display_unit"})),
}
"""Kind of mapping -> its keys."""


@dataclass(frozen=True)
class Form:
    """Form of a value, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _number(words: str, lower: float, upper: float) -> Form:
    hint = " (YAML reads 1e-3 as a word: write 0.001 or 1.0e-3)"
    return Form(words + hint, lambda value: _is_number(value) and lower <= value <= upper)


def _count(lower: int, upper: int) -> Form:
    words = f"a whole number from {lower} to {upper:,}"
    return Form(words, lambda value: isinstance(value, int) and _is_number(value) and lower <= value <= upper)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _texts(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= _MOST_ENTRIES and all(map(_is_text, value))


def _named(value: Any) -> bool:
    return isinstance(value, Mapping) and 0 < len(value) <= _MOST_ENTRIES and all(map(_is_text, value))


_LONGEST_TEXT, _MOST_ENTRIES = 5_000, 1_000
_TINY, _HUGE = 1e-12, 1e12
_TEXT = Form("a text (in quotes where it looks like a number)", _is_text)
_TEXTS = Form(f"a list of texts, at most {_MOST_ENTRIES}", _texts)
_NAMED = Form(f"a mapping with names as keys, at most {_MOST_ENTRIES}", _named)
_ANY_NUMBER, _POSITIVE = _number("a number", -_HUGE, _HUGE), _number("a number above 0", _TINY, _HUGE)
_NOT_NEGATIVE = _number("a number from 0", 0.0, _HUGE)
_POINT = Form(
    "three numbers", lambda value: isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))
)
_NUMBERS = Form(
    "a number, or a list of them",
    lambda value: _is_number(value) or (isinstance(value, list) and bool(value) and all(map(_is_number, value))),
)
_RANGE = Form(
    "a number, or the two between which it is drawn",
    lambda value: (
        _is_number(value)
        or (isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1])
    ),
)


def _is_path(value: Any) -> bool:
    points = value if isinstance(value, list) and 2 <= len(value) <= _MOST_ENTRIES else []
    widths = {len(point) if isinstance(point, list) and all(map(_is_number, point)) else 0 for point in points}
    return len(widths) == 1 and 0 not in widths


_PLACES = Form("a list of mappings", lambda value: isinstance(value, list) and all(map(_named, value)))
_FORMS: dict[str, Form] = {
    **dict.fromkeys(("title", "mjcf", "gap_channel", "unit", "frame", "clock", "mode", "description", "delays"), _TEXT),
    **dict.fromkeys(("tag", "times"), _TEXT),
    **dict.fromkeys(("channel", "column", "law", "statistic", "struck", "position", "orientation"), _TEXT),
    **dict.fromkeys(("nominal", "lower", "upper", "below_m"), _ANY_NUMBER),
    "otherwise": _RANGE,
    **dict.fromkeys(("control_dt_s", "window_s", "gap_horizon_s", "horizon_s", "prior_std", "display_unit"), _POSITIVE),
    "noise": _POSITIVE,  # errors are counted in its units
    **dict.fromkeys(("bias_std", "bias_window_s"), _NOT_NEGATIVE),
    **dict.fromkeys(
        (
            "channels",
            "parameters",
            "per_episode",
            "effects",
            "metrics",
            "reads",
            "sites",
            "ranges",
            "limits",
            "stand_in",
            "adds",
            "task",
        ),
        _NAMED,
    ),
    **dict.fromkeys(("box_lower", "box_upper"), _POINT),
    **dict.fromkeys(("friction_anisotropy", "dry_friction", "gravity_compensation", "sensor_noise"), _RANGE),
    **dict.fromkeys(("speed", "timestep_s"), _POSITIVE),
    **dict.fromkeys(("start", "smoothness"), _NAMED),
    **dict.fromkeys(("of", "by"), _TEXT),
    **dict.fromkeys(("within", "weight", "still", "held_s", "period_s"), _POSITIVE),
    **dict.fromkeys(("near", "step", "around", "amplitude", "phase"), _NUMBERS),
    "through": Form("two or more points, each a list of numbers", _is_path),
    "training": Form("a mapping", lambda value: isinstance(value, Mapping)),
    "delay_jitter_s": _NOT_NEGATIVE,
    "brake_share": _number("a number above 0, at most 1", _TINY, 1.0),
    "keep_out": _PLACES,
    **dict.fromkeys(("columns", "starts", "sliding_pairs"), _TEXTS),
    **dict.fromkeys(("sets", "scales"), _PLACES),
    **dict.fromkeys(("command", "repeats_share", "shape"), Form(_TEXT.words, lambda v: v is None or _is_text(v))),
    "name": Form("letters, digits, '_' and '-'", is_session_name),
    "unit_step": Form("a number that is not 0", lambda value: _is_number(value) and abs(value) >= _TINY),
    "scale": Form("log or linear", lambda value: value in ("log", "linear")),
    "stamp": Form("at_sample or held_until_next", lambda value: value in ("at_sample", "held_until_next")),
    "base": Form("prism or scene", lambda value: value in ("prism", "scene")),
    "plane": Form("xy, xz or yz", lambda value: value in ("xy", "xz", "yz")),
    "apart_s": _POSITIVE,
    "table": Form(
        "a mapping from our names of columns to yours", lambda v: _named(v) and all(map(_is_text, v.values()))
    ),
    **dict.fromkeys(
        ("joints", "actuators", "striker"), Form("a name, or a list of them", lambda v: _is_text(v) or _texts(v))
    ),
    "arguments": Form(
        "a mapping with names as keys", lambda value: isinstance(value, Mapping) and all(map(_is_text, value))
    ),
    "sensor_delay": Form("a channel, or a list of them", lambda value: _is_text(value) or _texts(value)),
    **dict.fromkeys(
        ("sensor_gain", "sensor_bias"),
        Form("a channel or CHANNEL.COLUMN, or a list of them", lambda value: _is_text(value) or _texts(value)),
    ),
    "episode_steps": _count(1, 1_000_000),
    "history_steps": _count(0, 10_000),
    "frames_before": _count(0, 1_000_000),
}
"""Key -> what its value looks like; keys of mappings that are checked elsewhere have none."""


def check_fields(kind: str, entry: Any, where: str) -> Mapping[str, Any]:
    """Return the mapping if its keys are those of its kind."""
    fields = YAML_KEYS[kind]
    if not isinstance(entry, Mapping):
        raise _wrong(f"{type(entry).__name__} instead of a mapping", _listed(fields.known), where)
    for key in entry:
        if key not in fields.known:
            if (new := new_key(key)) in fields.known:
                raise _wrong(f"'{key}'", f"'{new}'", where, advice(str(new)))
            close = difflib.get_close_matches(str(key), fields.known, 1)
            raise _wrong(short(key), f"'{close[0]}'" if close else f"one of {_listed(fields.known)}", where)
    missing = fields.required - set(entry)
    if missing:
        raise _wrong(f"no {_listed(missing)}", f"all of {_listed(fields.required)}", where)
    for key, value in entry.items():
        form = _FORMS.get(key)
        if form is not None and not form.fits(value):
            raise _wrong(f"{key} {short(value)}", form.words, where)
    return entry


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _wrong(got: str, expected: str, where: str, next_step: str | None = None) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=where,
        next_step=next_step or "Correct the scenario's YAML file; docs/scenarios.md explains every key.",
    )
