"""Turn away, before Prefect sees it, what neither its page nor its clients send: the tricks of foreign web pages.

A page of another site can post here from a person's browser. It cannot choose `Host` or `Origin`, and without the
browser asking first it cannot send JSON. Prefect's password is checked after this.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_JSON = "application/json"


class Guard:
    """An ASGI application around Prefect's.

    Args:
        address: how the page is reached, "http://HOST:PORT"; anything else is foreign.
    """

    def __init__(self, app: ASGIApp, address: str) -> None:
        self._app = app
        self._origin = address.lower()
        self._host = urlsplit(self._origin).netloc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):  # the server's own start and end
            await self._app(scope, receive, send)
            return
        reason = self._objection(Headers(scope=scope), scope.get("method", ""))
        if reason is None:
            await self._app(scope, receive, self._confined(send))
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


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
