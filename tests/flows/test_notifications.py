"""A campaign that waits, a robot that changed, a run that failed: people are told, by mail, Slack and webhook."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty
from uuid import uuid4

import pytest
import yaml
from prefect_api import ask
from receivers import mail_receiver, web_receiver

from rsr.common.errors import ConfigError

SECRET = "planted-7a41"


def noted(folder: Path, **channels: object) -> Path:
    path = folder / "notifications.yaml"
    path.write_text(yaml.safe_dump(channels))
    path.chmod(0o600)
    return path


def told(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rsr_flows.notifications", *arguments]
    everything = {**os.environ, **environment}
    return subprocess.run(command, env=everything, capture_output=True, text=True, check=False, timeout=200)


def happened(event: str, payload: dict[str, object], resource: str) -> None:
    """Let the server know of an event, as a flow does."""
    about = {"prefect.resource.id": resource, "prefect.resource.name": "/campaigns/arm"}
    at, identity = datetime.now(UTC).isoformat(), str(uuid4())
    ask("/events", [{"occurred": at, "event": event, "resource": about, "payload": payload, "id": identity}])


@pytest.mark.slow
def test_all_three_channels_tell_of_it_and_a_removed_one_does_not(as_client, tmp_path):
    with web_receiver() as (address, posted), mail_receiver() as (port, mailed):
        mail = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "rsr@lab.example"}
        mail["to"] = ["operator@lab.example", "second@lab.example"]
        channels = {"slack": f"{address}/slack/{SECRET}", "webhook": f"{address}/hook"}
        done = told(as_client, str(noted(tmp_path, mail=mail, **channels)))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr

        wanted = "expected a person's approval of policy 0"
        happened("rsr.waiting", {"iteration": 1, "wanted": wanted}, "rsr.workspace.arm")
        found = dict(posted.get(timeout=120) for _ in range(2))
        subject, body = "rsr.waiting: /campaigns/arm", f"iteration: 1\nwanted: {wanted}\n"
        assert found[f"/slack/{SECRET}"]["text"].strip() == f"*{subject}*\n{body}".strip()
        assert found["/hook"]["subject"] == subject
        assert found["/hook"]["body"].strip() == body.strip()
        message = mailed.get(timeout=120)
        assert (message["Subject"], message["To"]) == (subject, "operator@lab.example, second@lab.example")
        assert message.get_content().split() == body.split()

        happened("rsr.robot-changed", {"gap_now": 3.2, "unit": "mm"}, "rsr.workspace.arm")
        found = dict(posted.get(timeout=120) for _ in range(2))
        assert found["/hook"]["subject"] == "rsr.robot-changed: /campaigns/arm"
        assert "gap_now: 3.2" in found["/hook"]["body"]
        assert mailed.get(timeout=120)["Subject"] == "rsr.robot-changed: /campaigns/arm"

        failed_run()
        found = dict(posted.get(timeout=120) for _ in range(2))
        assert found["/hook"]["subject"] == "failing: Failed"
        assert "the disk is full" in found["/hook"]["body"]
        assert mailed.get(timeout=120)["Subject"] == "failing: Failed"

        assert SECRET not in str(ask("/block_documents/filter", {})), "the pages do not show it"
        assert told(as_client, str(noted(tmp_path, webhook=channels["webhook"]))).returncode == 0
        happened("rsr.waiting", {"iteration": 2}, "rsr.workspace.arm")
        assert posted.get(timeout=120)[0] == "/hook"
        with pytest.raises(Empty):
            posted.get(timeout=5)
        assert mailed.empty()
        assert [each["name"] for each in ask("/block_documents/filter", {})] == ["rsr-webhook"]


def failed_run() -> None:
    flow = ask("/flows/", {"name": "failing"})["id"]
    run = ask("/flow_runs/", {"flow_id": flow, "state": {"type": "PENDING"}})["id"]
    for state in ({"type": "RUNNING"}, {"type": "FAILED", "message": "the disk is full"}):
        ask(f"/flow_runs/{run}/set_state", {"state": state, "force": True})


@pytest.mark.parametrize(
    ("channels", "complaint"),
    [
        ({"telegram": "x"}, "got other words; expected mail"),
        ({"slack": 5}, "got no address for slack"),
        ({"webhook": "file:///etc/passwd"}, "got no address for webhook"),
        ({"mail": {"host": "h", "to": ["a"]}}, "got mail with a wrong or missing sender"),
        ({"mail": {"host": "h", "sender": "b", "to": []}}, "got mail with a wrong or missing to"),
        ({"mail": {"host": "h", "sender": "b", "to": ["a"], "pasword": SECRET}}, "got mail with other words"),
        ({"mail": SECRET}, "got mail with other words"),
    ],
)
def test_what_no_channel_understands_is_refused_and_no_secret_repeated(tmp_path, channels, complaint):
    from rsr_flows.notifications import read

    with pytest.raises(ConfigError, match=complaint) as caught:
        read(noted(tmp_path, **channels))
    assert SECRET not in str(caught.value)


def test_a_file_that_others_may_read_is_refused(tmp_path):
    from rsr_flows.notifications import read

    path = noted(tmp_path, slack="https://hooks.slack.com/services/x")
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="got mode 640, so that others may have read it"):
        read(path)


def test_without_a_server_it_says_so(tmp_path):
    done = told({"PREFECT_API_URL": "", "PREFECT_HOME": str(tmp_path)}, str(noted(tmp_path, slack="https://x.example")))
    assert done.returncode == 1
    assert "got no PREFECT_API_URL" in done.stderr
