"""The workspace: where things lie, and the chain of iterations."""

from __future__ import annotations

import json

import pytest

from rsr.common.errors import ConfigError, WorkspaceError
from rsr.config import LoopConfig, dump_config
from rsr.workspace import Link, Workspace


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "iterations.json").write_text('{"chain": {}}')
    dump_config(LoopConfig(seed=1), tmp_path / "params.yaml")
    return Workspace(tmp_path)


def test_find_walks_upward(workspace):
    deep = workspace.root / "iterations" / "001" / "policy"
    deep.mkdir(parents=True)
    assert Workspace.find(deep) == Workspace.find(workspace.root) == workspace


def test_find_outside_of_any_workspace(tmp_path):
    with pytest.raises(WorkspaceError) as caught:
        Workspace.find(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: got no iterations.json here or in any folder above; expected a workspace. "
        "Change into a workspace, or begin a campaign: `rsr init FOLDER`."
    )


def test_the_chain_keeps_its_order_beyond_iteration_9(workspace):
    for iteration in range(12):
        workspace.plan(iteration)
    assert list(workspace.chain()) == list(range(1, 12))
    assert workspace.chain()[10] == Link("iterations/010", "iterations/009", "data/push_cube/session-010")
    assert all(isinstance(key, str) for key in json.loads(workspace.chain_path.read_text())["chain"])


def test_settings_are_frozen_when_an_iteration_is_planned(workspace):
    workspace.plan(0)
    workspace.plan(1)
    dump_config(LoopConfig(seed=2), workspace.settings_path)
    workspace.plan(1)
    workspace.plan(2)
    assert [workspace.config(k).seed for k in (0, 1, 2)] == [1, 1, 2]


def test_settings_frozen_for_an_iteration_that_the_chain_does_not_name_are_frozen_anew(workspace):
    workspace.plan(0)
    dump_config(LoopConfig(seed=9), workspace.frozen_path(1))  # killed before the chain was written
    workspace.plan(1)
    assert workspace.config(1).seed == 1


def test_a_campaign_keeps_its_scenario(workspace):
    workspace.plan(0)
    dump_config(LoopConfig(scenario="push_t"), workspace.settings_path)
    with pytest.raises(ConfigError) as caught:
        workspace.plan(1)
    assert str(caught.value) == (
        f"{workspace.settings_path}: got scenario: push_t; "
        "expected scenario: push_cube, with which this campaign began. "
        "Put it back, and give the other scenario a workspace of its own."
    )
    assert workspace.chain() == {}


@pytest.mark.parametrize(
    "text", ["", "{", '{"chain": 3}', '{"chain": {"1": {"dir": "a"}}}', "[]", '{"chain": {"x": {}}}']
)
def test_a_damaged_chain(workspace, text):
    workspace.chain_path.write_text(text)
    with pytest.raises(WorkspaceError, match="restore it with `git checkout iterations.json`"):
        workspace.chain()


def test_rows_are_the_metrics_so_far(workspace):
    for iteration in range(3):
        workspace.plan(iteration)
    workspace.evaluation_dir(1).mkdir(parents=True)
    workspace.metrics_path(1).write_text('{"iteration": 1, "kl_x": 0.5}')
    assert workspace.rows() == [{"iteration": 1, "kl_x": 0.5}]
