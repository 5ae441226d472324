"""Messages to people, by mail, Slack or webhook: `python -m rsr_flows.notifications FILE`, at a running server.

They are sent when a campaign waits for a person, when the robot has changed, and when a run failed. FILE names who gets
them; it may hold secrets, so others must not be able to read it:

    mail: {host: smtp.lab.example, user: rsr, password: ..., sender: rsr@lab.example, to: [operator@lab.example]}
    slack: https://hooks.slack.com/services/...
    webhook: https://lab.example/hooks/rsr

A channel that is not in FILE, or no longer, gets none.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import yaml
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.events import EventTrigger, Posture
from prefect.events.actions import SendNotification
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound
from prefect.types import SecretDict
from pydantic import ValidationError

from rsr.common import ConfigError
from rsr_flows._command import exit_code
from rsr_flows._mail import LabMail
from rsr_flows._password import check_private
from rsr_flows.automations import ensure, forget

_TEXTS: dict[str, dict[str, Any]] = {
    "slack": {"text": "*{{subject}}*\n{{body}}"},  # Mattermost and Rocket.Chat read it too
    "webhook": {"subject": "{{subject}}", "body": "{{body}}"},
}
CHANNELS = ("mail", *_TEXTS)
_CAMPAIGN = EventTrigger(
    expect={"rsr.waiting", "rsr.robot-changed"},
    match={"prefect.resource.id": "rsr.workspace.*"},
    for_each={"prefect.resource.id"},
    posture=Posture.Reactive,
    threshold=1,
    within=timedelta(0),
)
_FAILURE = EventTrigger(
    expect={"prefect.flow-run.Failed", "prefect.flow-run.Crashed", "prefect.flow-run.TimedOut"},
    match={"prefect.resource.id": "prefect.flow-run.*"},
    for_each={"prefect.resource.id"},
    posture=Posture.Reactive,
    threshold=1,
    within=timedelta(0),
)
_EVENT_TEXT = "{% for name, value in event.payload.items() %}{{ name }}: {{ value }}\n{% endfor %}"
_RUN_TEXT = "{{ flow_run.state.message }}\n{{ flow_run | ui_url }}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Have the running server send what the file says; returns the exit code."""
    parser = argparse.ArgumentParser("python -m rsr_flows.notifications", description="Messages to people.")
    parser.add_argument("file", type=Path, help="YAML: mail, slack, webhook (deployments/README.md)")
    chosen = parser.parse_args(arguments)
    return exit_code(lambda: apply(read(chosen.file)), Path.cwd())


def read(path: Path) -> dict[str, NotificationBlock]:
    """Read who gets messages: channel -> the block that sends there.

    Raises:
        ConfigError: the file cannot be read, can be read by others, or says what no channel understands.
    """
    try:
        check_private(path, next_step=f"Run `chmod 600 {path.name}`; if others use this machine, renew what is in it.")
        document = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise _wrong(path, f"a file that cannot be read ({type(error).__name__})") from error  # not what it holds
    if not isinstance(document, dict) or not set(document) <= set(CHANNELS):
        raise _wrong(path, "other words")
    return {channel: _block(path, channel, said) for channel, said in document.items()}


def _block(path: Path, channel: str, said: object) -> NotificationBlock:
    if channel == "mail":
        return _mail(path, said)
    if not isinstance(said, str) or urlsplit(said).scheme not in ("http", "https"):
        raise _wrong(path, f"no address for {channel}")
    # The address lets whoever has it write there: a secret, kept apart from what the pages show.
    secrets = SecretDict({"url": said})
    return CustomWebhookNotificationBlock(name=channel, url="{{url}}", json_data=_TEXTS[channel], secrets=secrets)


def _mail(path: Path, said: object) -> LabMail:
    known = {"host", "port", "security", "user", "password", "sender", "to"}
    if not isinstance(said, Mapping) or not set(said) <= known:
        raise _wrong(path, "mail with other words")
    try:
        return LabMail(**said)
    except ValidationError as error:
        names = ", ".join(sorted({str(each["loc"][0]) for each in error.errors()}))
        raise _wrong(path, f"mail with a wrong or missing {names}") from error


def apply(blocks: Mapping[str, NotificationBlock]) -> None:
    """Have the server send to these channels and to no other.

    Raises:
        ConfigError: no server is named.
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigError(
            got="no PREFECT_API_URL",
            expected="the running server that is to send messages",
            where="environment",
            next_step="Export it and the password as deployments/README.md has it.",
        )
    for channel in CHANNELS:
        block = blocks.get(channel)
        if block is None:
            _silence(channel)
        else:
            for automation in automations(channel, block.save(_block_name(channel), overwrite=True)):
                ensure(automation)


def automations(channel: str, block: UUID) -> list[AutomationCore]:
    """Automation by which the server sends messages to a channel."""
    campaign = SendNotification(
        block_document_id=block, subject="{{ event.event }}: {{ event.resource.name }}", body=_EVENT_TEXT
    )
    failure = SendNotification(
        block_document_id=block, subject="{{ flow.name }}: {{ flow_run.state.name }}", body=_RUN_TEXT
    )
    waiting, failed = _names(channel)
    return [
        AutomationCore(name=waiting, trigger=_CAMPAIGN, actions=[campaign]),
        AutomationCore(name=failed, trigger=_FAILURE, actions=[failure]),
    ]


def _silence(channel: str) -> None:
    for name in _names(channel):
        forget(name)
    kind = LabMail if channel == "mail" else CustomWebhookNotificationBlock
    with get_client(sync_client=True) as client:
        try:
            document = client.read_block_document_by_name(_block_name(channel), kind.get_block_type_slug())
        except ObjectNotFound:
            return
        if document.id is not None:
            client.delete_block_document(document.id)


def _names(channel: str) -> tuple[str, str]:
    return f"{channel}: what waits, what has changed", f"{channel}: what failed"


def _block_name(channel: str) -> str:
    return f"rsr-{channel}"


def _wrong(path: Path, got: str) -> ConfigError:
    return ConfigError(
        got=got,
        expected="mail (host, port, security, user, password, sender, to), slack or webhook (an address)",
        where=str(path),
        next_step="See deployments/README.md.",
    )


if __name__ == "__main__":
    raise SystemExit(main())
