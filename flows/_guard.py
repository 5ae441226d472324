"""Turn away, before Prefect sees it, what neither its page nor its clients send: the tricks of foreign web pages.

A page of another site can post here from a person's browser. It cannot choose `Host` or `Origin`, and without the
browser asking first it cannot send JSON. Prefect's password is checked after this.

Prefect knows one password and no persons. Who logs in by words of their own (`_password.people`) is handed on with the
password instead, and the name beside it, so that Prefect notes with every run who made it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rsr.common import ConfigError
from rsr_tasks.environment import person_id

_JSON = "application/json"
# By these Prefect's automations say of a run that they made it. They work within the server and do not come by here.
_MADE_BY_ID, _MADE_BY_NAME = "prefect-automation-id", "prefect-automation-name"


class Guard:
    """An ASGI application around Prefect's.

    Args:
        address: how the page is reached, "http://HOST:PORT"; anything else is foreign.
        words: the password of the installation.
        people: who else may log in: words -> name.
    """

    def __init__(
        self, app: ASGIApp, address: str, words: str = "", people: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._app, self._words, self._people = app, words, people
        self._origin = address.lower()
        self._host = urlsplit(self._origin).netloc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):  # the server's own start and end
            await self._app(scope, receive, send)
            return
        reason = self._objection(Headers(scope=scope), scope.get("method", ""))
        if reason is None:
            await self._app(self._named(scope), self._admitted(receive), self._confined(send))
        elif scope["type"] == "http":
            await JSONResponse({"detail": reason}, status_code=403)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: answered with 403

    def _objection(self, headers: Headers, method: str) -> str | None:
        """Say what is foreign about a request, or None."""
        if [host.lower() for host in headers.getlist("host")] != [self._host]:
            return f"This server is reached as {self._origin} alone."  # another name may be a rebound one
        if any(origin.lower() != self._origin for origin in headers.getlist("origin")):
            return "Sent by a page of another site."
        if method in ("POST", "PUT", "PATCH", "DELETE") and _has_body(headers):
            kinds = [kind.split(";")[0].strip().lower() for kind in headers.getlist("content-type")]
            if kinds != [_JSON]:
                return f"A body must be {_JSON}."
        return None

    def _named(self, scope: Scope) -> Scope:
        """Hand a person on with the password and the name; nobody else brings a name."""
        headers = MutableHeaders(raw=list(scope["headers"]))
        for name in (_MADE_BY_ID, _MADE_BY_NAME):
            if name in headers:
                del headers[name]
        person = self._person(_decoded(headers.get("authorization", "")))
        if person is not None:
            headers["authorization"] = f"Basic {_encoded(self._words)}"
            headers[_MADE_BY_ID], headers[_MADE_BY_NAME] = str(person_id(person)), _encoded(person)
        return {**scope, "headers": headers.raw}

    def _admitted(self, receive: Receive) -> Receive:
        """Let a person's page listen to events, for which it says its words in a message."""

        async def received() -> Message:
            message = await receive()
            said = _object(message.get("text")) if message["type"] == "websocket.receive" else {}
            if said.get("type") == "auth" and self._person(str(said.get("token"))) is not None:
                return {**message, "text": json.dumps({**said, "token": self._words})}
            return message

        return received

    def _person(self, words: str) -> str | None:
        try:
            return self._people().get(words) if words and words != self._words else None
        except (ConfigError, OSError):  # said when the server began; until it is mended, nobody logs in by name
            return None

    def _confined(self, send: Send) -> Send:
        """Have browsers show the page in no frame of another, and let it call nobody but this server."""
        policy = f"frame-ancestors 'none'; connect-src 'self' ws://{self._host}"

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = policy
                headers["X-Frame-Options"] = "DENY"
            await send(message)

        return sent


def _encoded(words: str) -> str:
    return base64.b64encode(words.encode()).decode()


def _decoded(authorization: str) -> str:
    """The words of a header, "" where there are none."""
    scheme, _, content = authorization.partition(" ")
    try:
        return base64.b64decode(content, validate=True).decode() if scheme == "Basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
