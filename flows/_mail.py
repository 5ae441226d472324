"""A block for Prefect: mail through a lab's own server. Prefect's own blocks know paid services alone."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from typing import Literal

import anyio.to_thread
from prefect.blocks.abstract import NotificationBlock, NotificationError
from pydantic import Field, SecretStr

_PATIENCE_S = 30.0


class LabMail(NotificationBlock):
    """Sends what an automation has to say as plain text, by SMTP."""

    _block_type_name = "Lab Mail"
    _block_type_slug = "lab-mail"

    host: str = Field(description="the mail server")
    port: int = Field(default=587, description="587 with starttls, 465 with tls, 25 with none")
    security: Literal["starttls", "tls", "none"] = Field(default="starttls", description="none: within the lab alone")
    user: str | None = Field(default=None, description="who logs in, if anybody has to")
    password: SecretStr | None = Field(default=None, description="of that user")
    sender: str = Field(description="From")
    to: list[str] = Field(min_length=1, description="whom it is for")

    async def notify(self, body: str, subject: str | None = None) -> None:  # type: ignore[override]
        """Send it, beside the server's other work.

        Raises:
            NotificationError: the mail server is away or does not take it.
        """
        await anyio.to_thread.run_sync(self._send, body, subject or "")

    def _send(self, body: str, subject: str) -> None:
        message = EmailMessage()
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Subject"] = " ".join(subject.split())  # a header has one line
        message.set_content(body)
        try:
            with self._connection() as server:
                if self.user is not None:
                    server.login(self.user, self.password.get_secret_value() if self.password else "")
                server.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            raise NotificationError(f"{self.host}:{self.port}: {error}") from error

    def _connection(self) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=_PATIENCE_S, context=ssl.create_default_context())
        server = smtplib.SMTP(self.host, self.port, timeout=_PATIENCE_S)
        if self.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        return server
