"""Rooms that import their public names when these are first used, so that light commands load neither MuJoCo nor torch.

A room lists its public names once, in its `__init__.pyi`, which editors and type checkers read as well.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` of a room (PEP 562).

    Args:
        room: its `__name__`.
        file: its `__file__`. The list of names lies beside it; what it imports from the room itself are inner rooms.
    """
    listed = ast.parse(Path(file).with_suffix(".pyi").read_text()).body
    homes = {name.name: each.module for each in listed if isinstance(each, ast.ImportFrom) for name in each.names}
    public = sorted(name for name, home in homes.items() if home != room)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{room}' has no attribute '{name}'; it has {', '.join(public)}")
        home = homes[name]
        return import_module(f"{room}.{name}") if home == room else getattr(import_module(str(home)), name)

    return get, lambda: sorted(homes), public
