"""Prefect's embedded server, whose death ends the loop, and errors of other causes that may end it.

Prefect itself would go on trying for minutes when its server is gone.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rsr.common import RsrError, cannot_write
from rsr_flows._password import made_password
from rsr_flows._supervisor import give_up
from rsr_tasks.bookkeeping import CANNOT_WRITE

if TYPE_CHECKING:
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import Setting


_LOOK_EVERY_S = 0.5
_RETRIES = 3
"""14 seconds a question, of which an end has three; Prefect's own five would make it minutes."""
_PORT_TAKEN = 3
"""With this code the server ends where another was quicker; Prefect then begins it again on another port."""


@contextmanager
def with_server(root: Path) -> Iterator[None]:
    """Have an embedded server, unless the user chose another one, and give up should it end."""
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    if PREFECT_API_URL.value():
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: _RETRIES}):
            yield
        return
    from prefect.server.api.server import SubprocessASGIServer

    server, over = SubprocessASGIServer(), threading.Event()  # the one that every client of this process takes
    threading.Thread(target=_watch, args=(server, over, root), daemon=True).start()
    try:
        with temporary_settings(_secret()):
            server.start()
            yield
    finally:
        over.set()


def _secret() -> dict[Setting, str]:
    """Settings with a password that only this process and its children know, and with which no web page gets answers.

    The server has no page and nobody logs in, so its password needs no file; what has none is turned away.
    """
    from prefect import settings

    words = made_password()
    return {
        settings.PREFECT_SERVER_API_AUTH_STRING: words,
        settings.PREFECT_API_AUTH_STRING: words,
        settings.PREFECT_SERVER_CORS_ALLOWED_ORIGINS: "http://127.0.0.1",
    }


def _watch(server: SubprocessASGIServer, over: threading.Event, root: Path) -> None:
    while not over.wait(_LOOK_EVERY_S):
        process = server.server_process
        if process is not None and process.poll() not in (None, _PORT_TAKEN) and not over.is_set():
            give_up(server_ended(root))
            return


# Whatever may end a loop, as an error that says what to do: a full disk, a lost server, a bug.


_FULL_BYTES = 1_000_000
_AGAIN = "then run the same command again: it goes on from here."


class ServerLost(RsrError):
    """A server that the loop talks to is gone, or the network to it."""


class Unforeseen(RsrError):
    """An error that nobody wrote a sentence for: most likely a bug, here or in a step."""


def understood(error: BaseException, root: Path) -> Exception:
    """Find what is behind an error, in words for a person; the traceback stays with it."""
    causes = list(_causes(error))
    found = next((cause for cause in causes if isinstance(cause, RsrError)), None)
    found = found or _no_place(causes, root) or _no_server(causes) or _unforeseen(error, root)
    return found if found.__traceback__ else found.with_traceback(error.__traceback__)


def server_ended(root: Path) -> RsrError:
    """Error for the loss of Prefect's embedded server, which a full disk ends, too."""
    return _no_place([], root) or ServerLost(
        got="the end of Prefect's embedded server",
        expected="it to live as long as the loop",
        where=str(root),
        next_step=f"See to it that nobody ends it and that memory suffices, {_AGAIN}",
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _no_place(causes: list[BaseException], root: Path) -> RsrError | None:
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in CANNOT_WRITE and cause.filename:
            return cannot_write(Path(cause.filename), cause)
    # Databases, of Prefect and of DVC, report a full disk in their own words.
    if root.exists() and shutil.disk_usage(root).free < _FULL_BYTES:
        return cannot_write(root, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    return None


def _no_server(causes: list[BaseException]) -> RsrError | None:
    for cause in causes:
        if any(base.__module__.partition(".")[0] == "httpx" for base in type(cause).__mro__):  # Prefect's client
            return ServerLost(
                got=f"{type(cause).__name__}: {' '.join(str(cause).split()) or 'no word'}",
                expected="a server that answers",
                where=_address(cause),
                next_step=f"See to the server and to the network, {_AGAIN}",
            )
    return None


def _address(error: BaseException) -> str:
    try:
        return str(error.request.url)  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):  # httpx: not known
        return "network"


def _unforeseen(error: BaseException, root: Path) -> RsrError:
    return Unforeseen(
        got=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",
        expected="the work to be done",
        where=str(root),
        next_step="Nothing that was finished is lost; the same command goes on from there.",
    )
