"""Units that labs write, and what they are in ours (SI, rad)."""

from __future__ import annotations

import math
import re

from rsr.common import ConfigError

_DEG = math.pi / 180
_SPELLINGS = {
    "rad": 1.0, "deg": _DEG, "rev": 2 * math.pi, "m": 1.0, "mm": 1e-3, "cm": 1e-2, "inch": 0.0254, "rad/s": 1.0,
    "deg/s": _DEG, "rpm": 2 * math.pi / 60, "m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2, "m/s2": 1.0, "g": 9.80665,
    "rad/s2": 1.0, "deg/s2": _DEG, "N": 1.0, "mN": 1e-3, "N m": 1.0, "mN m": 1e-3, "N cm": 1e-2, "s": 1.0, "ms": 1e-3,
    "us": 1e-6, "ns": 1e-9, "1": 1.0, "%": 1e-2, "mA": 1e-3, "mV": 1e-3,
}  # fmt: skip
_OURS = {
    "deg": "rad", "rev": "rad", "mm": "m", "cm": "m", "inch": "m", "deg/s": "rad/s", "rpm": "rad/s", "mm/s": "m/s",
    "cm/s": "m/s", "g": "m/s2", "deg/s2": "rad/s2", "mN": "N", "mN m": "N m", "N cm": "N m", "ms": "s", "us": "s",
    "ns": "s", "%": "1", "mA": "A", "mV": "V",
}  # fmt: skip
_WORDS = {
    "degree": "deg", "degrees": "deg", "°": "deg", "radian": "rad", "radians": "rad", "dps": "deg/s",
    "deg_s": "deg/s", "degps": "deg/s", "rad_s": "rad/s", "radps": "rad/s", "nm": "N m", "n_m": "N m", "mnm": "mN m",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "millis": "ms", "usec": "us", "micros": "us",
    "nsec": "ns", "nanos": "ns", "nanoseconds": "ns", "meter": "m", "meters": "m", "metre": "m", "metres": "m",
    "µs": "us", "m_s": "m/s", "mps": "m/s", "mm_s": "mm/s",
}  # fmt: skip
KNOWN = tuple(_SPELLINGS)


def factor(unit: str, ours: str, where: str) -> float:
    """Factor by which a number in `unit` becomes one in `ours`.

    Example:
        >>> round(factor("deg", "rad", "example"), 4)
        0.0175
    """
    if unit == ours:
        return 1.0
    if convertible(unit, ours):
        return _SPELLINGS[unit]
    fitting = [known for known in KNOWN if _OURS.get(known, known) == ours]
    raise ConfigError(
        got=f"unit '{unit}'",
        expected=f"one that can become '{ours}': {', '.join(fitting) or ours}",
        where=where,
        next_step="Correct `unit:` in the mapping, or map other columns.",
    )


def convertible(unit: str, ours: str) -> bool:
    return unit == ours or (unit in _SPELLINGS and _OURS.get(unit, unit) == ours)


def unit_in_name(name: str) -> str | None:
    """Find the unit that a column's name ends with or has in brackets: `elbow_deg`, `t [ms]`, `speed(deg/s)`.

    Example:
        >>> unit_in_name("elbow [deg/s]"), unit_in_name("t_ms"), unit_in_name("shoulder")
        ('deg/s', 'ms', None)
    """
    bracket = re.search(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$", name)
    if bracket:
        return _spelt(bracket.group(1))
    words = re.split(r"[_.\s]+", name)
    if len(words) > 1 and words[-2].lower() == "per":  # `speed_deg_per_s`; but `duty_per_rad` is no angle
        return _spelt(f"{words[-3]}/{words[-1]}") if len(words) > 3 else None
    for count in (2, 1):
        if len(words) > count:
            unit = _spelt("_".join(words[-count:]))
            if unit is not None and (count == 2 or unit not in ("1", "%")):
                return unit
    return None


def _spelt(text: str) -> str | None:
    if text in _SPELLINGS:
        return text
    lower = text.lower().replace("^2", "2").replace("²", "2")
    return lower if lower in _SPELLINGS else _WORDS.get(lower)
