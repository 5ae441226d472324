"""Nothing that comes from outside reads elsewhere, hangs, eats memory or harms what lies beside it.

All cases run in one child process (`tests/hostile_trials.py`), each within 2 GB and 20 s.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.hostile_trials import assert_harmless, tried
from tests.sessions.hostile_zoo import CASES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> dict[str, dict[str, Any]]:
    return tried("tests.sessions.hostile_zoo", tmp_path_factory.mktemp("hostile"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_a_sentence_and_harms_nothing(records, name):
    assert_harmless(records, name)


def test_they_are_a_hundred():
    assert len(CASES) >= 100
