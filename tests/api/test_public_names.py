"""What `import rsr` offers: cheap to import, documented, each name once."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

import rsr

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("mujoco", "jax", "torch", "numpy", "scipy", "matplotlib", "pyarrow", "gymnasium", "pydantic")
VERBS = [name for name in rsr.__all__ if inspect.isfunction(getattr(rsr, name)) or name == "load_scenario"]


def test_importing_rsr_loads_nothing_heavy():
    code = f"import sys, rsr; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", rsr.__all__)
def test_a_public_name_is_there_and_says_what_it_is(name):
    documentation = inspect.getdoc(getattr(rsr, name)) or ""
    assert documentation
    assert not documentation.startswith("What")
    assert name in dir(rsr)


@pytest.mark.parametrize("name", VERBS)
def test_a_public_function_shows_an_example(name):
    assert "Examples:" in (inspect.getdoc(getattr(rsr, name)) or "")


@pytest.mark.parametrize("name", rsr.__all__)
def test_the_api_reference_names_every_public_name(name):
    assert f"::: rsr.{name}\n" in (ROOT / "docs" / "api.md").read_text() + "\n"


@pytest.mark.parametrize(
    "module",
    [
        "rsr.scenarios.channels.declared_channels",
        "rsr.scenarios.parameters.declared_parameters",
        "rsr.scenarios.loading",
        "rsr.api.arrays",
        "rsr.api.fit",
    ],
)
def test_examples_in_docstrings_are_true(module):
    assert doctest.testmod(import_module(module)).failed == 0


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match="no attribute 'calibrat'; it has .*calibrate"):
        rsr.calibrat  # noqa: B018


def test_the_package_says_that_it_is_typed():
    assert (files("rsr") / "py.typed").is_file()
