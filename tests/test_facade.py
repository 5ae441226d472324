"""Rooms import their public names when these are first used."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import rsr

HEAVY = ("mujoco", "jax", "torch", "scipy", "matplotlib", "pyarrow", "gymnasium")


def _rooms(package: ModuleType) -> list[str]:
    """Packages below this one whose `__init__` is a facade."""
    found = [each.name for each in pkgutil.walk_packages(package.__path__, "rsr.") if each.ispkg]
    return [name for name in found if "lazy" in vars(importlib.import_module(name))]


@pytest.mark.parametrize("name", _rooms(rsr))
def test_what_a_room_lists_is_there_and_is_no_module(name: str) -> None:
    room = importlib.import_module(name)
    assert [each for each in room.__all__ if isinstance(getattr(room, each), ModuleType)] == []


def test_a_name_that_a_room_does_not_list_is_refused_with_those_that_it_does() -> None:
    with pytest.raises(AttributeError, match="module 'rsr' has no attribute 'load_scenrio'; it has .*load_scenario"):
        rsr.load_scenrio  # noqa: B018


def test_rooms_are_reached_from_rsr_alone() -> None:
    assert rsr.scenarios.load_scenario is rsr.load_scenario
    assert {"scenarios", "load_scenario"} <= set(dir(rsr))


@pytest.mark.parametrize("statement", ["import rsr", "import rsr.cli", "import rsr.sessions", "import rsr.calibration"])
def test_rooms_load_nothing_heavy_before_a_name_is_used(statement: str) -> None:
    code = f"import sys; {statement}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
