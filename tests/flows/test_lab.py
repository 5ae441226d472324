"""A campaign fed by a lab: the loop asks and ends, a person approves, recordings are dropped, the loop goes on."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import toy
from toy import TABLE_NAME
from toy.bare import find_faults

from rsr.common.errors import ConfigError, SessionError, Waiting
from rsr.common.files import write_json
from rsr.common.progress import Advance, ignore
from rsr.config import LoopConfig, RealityConfig
from rsr.pipelines.lab.approval import Approval, approve, require_approval
from rsr.pipelines.lab.arrivals import answer, awaited
from rsr.policies import Normaliser, Policy
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import read_session, write_session
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import opened


def collect(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Session for the toy steps, once the gate is open and something lies in the inbox."""
    require_approval(workspace, iteration - 1)
    drop = workspace.root / "inbox" / workspace.session_dir(iteration).name
    if not drop.exists():
        raise Waiting(got="nothing", expected="a drop", where=str(drop), next_step="Drop it.")
    toy.collect(workspace, iteration, advance)


WITH_LAB = replace(toy.TABLE, collect=replace(toy.TABLE.collect, function="tests.flows.test_lab:collect"))
TABLE_WITH_LAB = "tests.flows.test_lab:WITH_LAB"
LAB = LoopConfig(reality=RealityConfig(kind="inbox", episodes=2, approval=True))


def still() -> Policy:
    size = task_of(load_scenario("push_cube")).observation_size
    layers = ((np.zeros((2, size), np.float32), np.zeros(2, np.float32)),)
    return Policy(task_of(load_scenario("push_cube")), Normaliser(np.zeros(size), np.ones(size), 10.0), layers)


def visit(folder: Path, name: str = "monday") -> Path:
    """A lab's recording, under a name of its own."""
    session = StandIn(load_scenario("push_cube"), 1).collect(still(), CollectionPlan(name, 2, 5), ignore)
    return write_session(folder, session)


@pytest.fixture
def campaign(tmp_path) -> Workspace:
    """A campaign whose first policy is there."""
    with opened(tmp_path / "campaign", TABLE_WITH_LAB, LAB) as made:
        made.workspace.plan(0)
        still().save(made.workspace.policy_dir(0))
        return made.workspace


class TestApproval:
    def test_nothing_is_deployed_without_it(self, campaign):
        with pytest.raises(Waiting, match="got no approval; expected a person's approval of policy 0"):
            require_approval(campaign, 0)
        approve(campaign, 0, by="the one who read it")
        require_approval(campaign, 0)

    def test_it_is_of_one_policy_alone(self, campaign):
        approve(campaign, 0, by="a person")
        policy = still()
        replace(policy, layers=((policy.layers[0][0] + 1, policy.layers[0][1]),)).save(campaign.policy_dir(0))
        with pytest.raises(Waiting, match="got an approval of another policy, by a person"):
            require_approval(campaign, 0)

    def test_the_card_that_says_how_the_network_is_evaluated_belongs_to_it(self, campaign):
        approve(campaign, 0, by="a person")
        card = campaign.policy_dir(0) / "policy.json"
        card.write_text(card.read_text().replace('"tanh"', '"relu"'))
        with pytest.raises(Waiting, match="got an approval of another policy"):
            require_approval(campaign, 0)

    def test_it_needs_a_name_and_a_policy(self, campaign):
        from rsr.common.errors import WorkspaceError

        with pytest.raises(ConfigError, match="got no name; expected the name of the person"):
            approve(campaign, 0, by=" ")
        with pytest.raises(WorkspaceError, match="got no policy of iteration 4"):
            approve(campaign, 4, by="a person")

    def test_who_is_logged_in_at_the_page_approves_in_no_other_name(self, campaign):
        with pytest.raises(ConfigError, match="got the name 'another'; expected 'a person', who is logged in"):
            approve(campaign, 0, by="another", login="a person")
        assert not campaign.approval_path(0).exists()
        given = approve(campaign, 0, by="a person", login="a person")
        assert given.said_by() == "a person (logged in at the page)"
        assert json.loads(campaign.approval_path(0).read_text())["login"] == "a person"
        require_approval(campaign, 0)
        approve(campaign, 0, by="a person")
        assert "login" not in json.loads(campaign.approval_path(0).read_text())

    def test_a_damaged_one_counts_for_nothing(self, campaign):
        campaign.approval_path(0).write_text('{"by": ')
        with pytest.raises(Waiting, match="got an approval that cannot be read"):
            require_approval(campaign, 0)


def made_key(folder: Path, name: str) -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@lab", "-f", str(folder / name)]
    subprocess.run(command, check=True)
    return folder / name


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen")
class TestApprovers:
    """A campaign whose approvers are known by their keys."""

    @pytest.fixture
    def keys(self, campaign, tmp_path) -> dict[str, Path]:
        keys = {name: made_key(tmp_path, name) for name in ("first", "second", "stranger")}
        lines = [f"{name}: {keys[name].with_suffix('.pub').read_text()}" for name in ("first", "second")]
        campaign.approvers_path.write_text("".join(lines))
        return keys

    def test_a_signature_of_one_of_them_opens_the_gate(self, campaign, keys):
        given = approve(campaign, 0, by="second", note="read it", key=keys["second"])
        assert given.said_by() == "second (signed)"
        require_approval(campaign, 0)

    @pytest.mark.parametrize("key", ["stranger", "second"])
    def test_a_name_needs_its_own_key(self, campaign, keys, key):
        with pytest.raises(ConfigError, match="expected one with the key of that name in approvers.yaml"):
            approve(campaign, 0, by="first", key=keys[key])
        assert not campaign.approval_path(0).exists()

    def test_without_a_key_or_a_known_name_nothing_is_written(self, campaign, keys):
        with pytest.raises(ConfigError, match="got no signature"):
            approve(campaign, 0, by="first")
        with pytest.raises(ConfigError, match="got 'stranger'; expected one of first, second"):
            approve(campaign, 0, by="stranger", key=keys["stranger"])
        keys["first"].chmod(0o644)
        with pytest.raises(ConfigError, match="readable by its owner alone"):
            approve(campaign, 0, by="first", key=keys["first"])
        assert not campaign.approval_path(0).exists()

    def test_a_claim_from_before_does_not_count(self, campaign, keys):
        approvers = campaign.approvers_path.read_bytes()
        campaign.approvers_path.unlink()
        assert "only a claim" in approve(campaign, 0, by="first").said_by()
        require_approval(campaign, 0)
        campaign.approvers_path.write_bytes(approvers)
        with pytest.raises(Waiting, match="got an approval in the name of first that nobody in approvers.yaml signed"):
            require_approval(campaign, 0)

    @pytest.mark.parametrize("name", ["by", "at", "note", "policy_sha256", "card_sha256", "signature"])
    def test_nothing_of_it_can_be_changed_afterwards(self, campaign, keys, name):
        approve(campaign, 0, by="first", key=keys["first"])
        path = campaign.approval_path(0)
        said = json.loads(path.read_text())
        path.write_text(json.dumps({**said, name: "second" if name == "by" else "another"}))
        with pytest.raises(Waiting):
            require_approval(campaign, 0)

    def test_a_policy_that_changed_is_not_deployed(self, campaign, keys):
        approve(campaign, 0, by="first", key=keys["first"])
        replace(still(), squashed=True).save(campaign.policy_dir(0))
        with pytest.raises(Waiting, match="got an approval of another policy, by first"):
            require_approval(campaign, 0)

    def test_who_is_struck_from_the_list_approves_no_more(self, campaign, keys):
        approve(campaign, 0, by="first", key=keys["first"])
        lines = campaign.approvers_path.read_text().splitlines(keepends=True)
        campaign.approvers_path.write_text(lines[1])
        with pytest.raises(Waiting, match="nobody in approvers.yaml signed"):
            require_approval(campaign, 0)

    def test_a_signature_for_another_purpose_is_none(self, campaign, keys):
        given = approve(campaign, 0, by="first", key=keys["first"])
        command = ["ssh-keygen", "-Y", "sign", "-f", str(keys["first"]), "-n", "git"]
        other = subprocess.run(command, input=given.statement(), capture_output=True, check=True).stdout.decode()
        write_json(campaign.approval_path(0), asdict(replace(given, signature=other)))
        with pytest.raises(Waiting, match="nobody in approvers.yaml signed"):
            require_approval(campaign, 0)

    def test_the_page_signs_for_a_listed_name_that_is_logged_in_and_for_nobody_else(self, campaign, keys, monkeypatch):
        from prefect.settings import PREFECT_HOME, temporary_settings

        from rsr_tasks import lab

        monkeypatch.setattr(lab, "get_run_logger", lambda: logging.getLogger(__name__))
        home = campaign.root / "home"
        home.mkdir()
        page = made_key(home, lab.PAGE_KEY).with_suffix(".pub").read_text()
        campaign.approvers_path.write_text(f"first: {keys['first'].with_suffix('.pub').read_text()}second: {page}")
        with temporary_settings({PREFECT_HOME: home}):
            for by, login in (("second", ""), ("first", "first"), ("second", "first")):
                with pytest.raises(ConfigError):
                    lab.allow.fn(str(campaign.root), 0, by, "", login)
            assert not campaign.approval_path(0).exists()
            lab.allow.fn(str(campaign.root), 0, "second", "", "second")
        require_approval(campaign, 0)
        said = json.loads(campaign.approval_path(0).read_text())
        assert Approval(**said).said_by() == "second (logged in at the page, signed)"
        campaign.approval_path(0).write_text(json.dumps({**said, "login": "first"}))
        with pytest.raises(Waiting):
            require_approval(campaign, 0)

    @pytest.mark.parametrize(
        "words", ["", "first", "first: a key", 'first: "ssh-ed25519 AAAA\\n* ssh-ed25519 BBBB"', "{"]
    )
    def test_a_list_that_is_none_opens_nothing(self, campaign, keys, words):
        approve(campaign, 0, by="first", key=keys["first"])
        campaign.approvers_path.write_text(words)
        with pytest.raises(ConfigError, match="expected a line `NAME: ssh-ed25519 AAAA"):
            require_approval(campaign, 0)


class TestAnswer:
    def test_a_stored_session_is_taken_under_the_name_that_was_asked_for(self, campaign, tmp_path):
        assert awaited(campaign) == 1
        assert answer(campaign, [visit(tmp_path)]) == 1
        card = read_session(campaign.root / "inbox" / "session-001").card
        assert (card.session, card.scenario) == ("session-001", "push_cube")

    def test_two_for_one_iteration_are_refused_and_the_first_is_kept(self, campaign, tmp_path):
        answer(campaign, [visit(tmp_path)])
        with pytest.raises(SessionError, match="got a session that waits there already"):
            answer(campaign, [visit(tmp_path, "tuesday")])
        assert read_session(campaign.root / "inbox" / "session-001").card.session == "session-001"

    def test_what_cannot_be_read_leaves_nothing_behind(self, campaign, tmp_path):
        (tmp_path / "run.csv").write_text("nothing here\n")
        with pytest.raises((SessionError, ConfigError)):
            answer(campaign, [tmp_path / "run.csv"])
        assert not (campaign.root / "inbox" / ".incoming").exists()

    def test_a_campaign_on_the_stand_in_takes_none(self, tmp_path):
        with (
            opened(tmp_path / "stand_in", TABLE_NAME, LoopConfig()) as made,
            pytest.raises(ConfigError, match="got reality.kind: stand_in"),
        ):
            answer(made.workspace, [visit(tmp_path)])


def test_the_loop_waits_for_approval_then_for_the_lab_and_goes_on(tmp_path, prefect_server):
    from rsr_flows.lab import Decision, LabVisit, after_lab_session, approve
    from rsr_flows.rsr_loop import rsr_loop

    root = str(tmp_path / "campaign")
    with opened(tmp_path / "campaign", TABLE_WITH_LAB, LAB) as made:
        workspace = made.workspace
    asked = rsr_loop(root, 1, TABLE_WITH_LAB)
    assert asked == []
    assert "expected a person's approval of policy 0" in workspace.waiting_path.read_text()

    approve(Decision(workspace=root, iteration=0, by="a person"))
    rsr_loop(root, 1, TABLE_WITH_LAB)
    assert "expected a drop" in workspace.waiting_path.read_text()

    rows = after_lab_session(LabVisit(workspace=root, sources=[visit(tmp_path)], method="sysid"), table=TABLE_WITH_LAB)
    assert [row["iteration"] for row in rows] == [1]
    assert "expected a person's approval of policy 1" in workspace.waiting_path.read_text(), "the question after it"
    assert workspace.metrics_path(1).exists()
    planned = [" M dvc.yaml", " M iterations.json", " M params.yaml", "?? iterations/002/"]
    status, others = (
        versions.git(workspace.root, "status", "--porcelain"),
        find_faults(workspace.root, 1, TABLE_WITH_LAB),
    )
    assert sorted(status.split("\n")) == planned
    assert [fault for fault in others if not fault.startswith(("not finished: stale", "git status"))] == []
    assert all(address.endswith("@2") for address in bookkeeping.stale(workspace.root))
    assert workspace.settings().tune.method == "sysid"
    assert workspace.config(1).tune.method == "sysid", "the session of this very visit is what it was chosen for"


def test_an_empty_form_changes_no_setting(campaign):
    from rsr_tasks.lab import choose

    before = campaign.settings_path.read_bytes()
    choose.fn(str(campaign.root), None, None, None)
    assert campaign.settings_path.read_bytes() == before
    choose.fn(str(campaign.root), None, 5, None)
    assert campaign.settings().tune.fit_episodes == 5


def test_the_form_reaches_the_iteration_that_waits_and_none_before(campaign):
    from rsr_tasks.lab import choose

    campaign.plan(0)
    campaign.plan(1)
    began = campaign.frozen_path(0).read_bytes()
    choose.fn(str(campaign.root), "cmaes", None, 5000)
    assert (campaign.config(1).tune.method, campaign.config(1).retrain.train_steps) == ("cmaes", 5000)
    assert campaign.frozen_path(0).read_bytes() == began
