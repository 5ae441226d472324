"""MuJoCo's own warnings, counted: it would write each to the terminal and to MUJOCO_LOG.TXT in the current folder.

A search tries parameters with which a simulation blows up, thousands of times; what is of use is how often.
"""

from __future__ import annotations

from collections import Counter

import mujoco

_counts: Counter[str] = Counter()


def count_warnings() -> None:
    """Count MuJoCo's warnings in this process instead of writing them; a handler that is there already stays."""
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_count)


def warning_counts() -> Counter[str]:
    """Count of each warning so far, without the place and time that differ: "Nan, Inf or huge value in QACC" -> 12."""
    return Counter(_counts)


def warnings_since(since: Counter[str]) -> str:
    """Say what MuJoCo has warned of since an earlier count; "" if nothing.

    Example:
        >>> warnings_since(warning_counts())
        ''
    """
    return ", ".join(f"{text} ({count} times)" for text, count in (warning_counts() - since).items())


def _count(text: str) -> None:
    _counts[text.partition(" at ")[0].partition(". ")[0]] += 1
