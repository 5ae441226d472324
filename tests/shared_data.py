"""Where the real recordings are that tests are judged by; the repository does not carry them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from rsr.sessions import Session
from rsr.sessions.importers import read_contactnets, read_double_pendulum

VARIABLE = "RSR_SHARED_DATA"
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """A file or folder of the shared recordings; skips the test where there is none."""
    folder = Path(os.environ.get(VARIABLE, _BESIDE))
    if not (folder / name).exists():
        pytest.skip(f"no {name} in {folder}: set {VARIABLE} to the folder that holds it")
    return folder / name


@cache
def tosses() -> Session:
    return read_contactnets(shared_data("contactnets_cube_tosses.parquet"))


@cache
def pendulum_runs() -> Session:
    return read_double_pendulum(shared_data("double_pendulum.parquet"))
