"""A workspace of an older version (toy loop, one iteration, before keys were renamed): refused by name, then read."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.common.errors import ConfigError
from rsr.workspace import Workspace
from rsr_tasks.campaign import opened

_STORED = Path(__file__).resolve().parents[1] / "fixtures" / "workspace_before_renaming.tar.gz"


@pytest.fixture
def older(tmp_path) -> Path:
    with tarfile.open(_STORED) as archive:
        archive.extractall(tmp_path / "older", filter="data")
    return tmp_path / "older"


def test_old_keys_are_refused_with_the_new_ones_and_nothing_is_touched(older):
    before = fingerprint(older)
    with pytest.raises(ConfigError, match="paid.*It is called 'bonus_region' now"), opened(older, TABLE_NAME):
        pass
    assert fingerprint(older) == before


def test_with_the_keys_renamed_the_campaign_goes_on(older):
    recorded = {name: value for name, value in fingerprint(older).items() if name.startswith("data/")}
    for path in (older / "params.yaml", *older.glob("iterations/*/params.yaml")):
        renamed = re.sub(r"paid: away", "bonus_region: off_target", path.read_text())
        path.write_text(re.sub(r"  coverage_(half|cell)_m: .*\n", "", renamed))  # what a task's plane says now
    run_bare_loop(older, 2)
    found = fingerprint(older)
    assert recorded.items() <= found.items()
    assert sorted(Workspace(older).chain()) == [1, 2]
    assert [fault for fault in find_faults(older, 2) if "params.yaml" not in fault] == []
