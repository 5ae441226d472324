"""Debian's chromium without a screen, spoken to by its own protocol: no driver to install."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from websockets.sync.client import ClientConnection, connect

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
]
_PATIENCE_S = 120.0


class Page:
    """One tab."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._asked = 0

    def open(self, address: str) -> None:
        self._say("Page.navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, a promise's when it is kept."""
        answer = self._say("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return answer.get("result", {}).get("value")

    def await_(self, expression: str) -> Any:
        """Wait until an expression is true."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not (value := self.evaluate(expression)):
            shown = self.evaluate("document.body ? location.href + ' ' + document.body.innerText : ''")
            assert time.monotonic() < deadline_s, f"never true: {expression}\n{shown}"
            time.sleep(0.3)
        return value

    def type(self, text: str) -> None:
        """Type into what has the focus, and press Enter."""
        self._say("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self._say("Input.dispatchKeyEvent", type=kind, key="Enter", text="\r", windowsVirtualKeyCode=13)

    def _say(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        self._connection.send(json.dumps({"id": self._asked, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._connection.recv(timeout=_PATIENCE_S))
            if answer.get("id") == self._asked:
                return answer.get("result", {})


@contextmanager
def browsing(folder: Path, *flags: str) -> Iterator[Page]:
    """An empty tab of a browser that knows nothing yet; skips the test where there is no chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    command = [program, *_FLAGS, *flags, f"--user-data-dir={folder}", "about:blank"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(_tab(folder / "DevToolsActivePort", browser), max_size=None) as connection:
            yield Page(connection)
    finally:
        browser.terminate()
        browser.wait(timeout=60)


def _tab(note: Path, browser: subprocess.Popen[bytes]) -> str:
    """The address at which a tab of its own listens."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not (note.exists() and note.read_text().count("\n")):
        assert browser.poll() is None, f"chromium ended with code {browser.poll()}"
        assert time.monotonic() < deadline_s, "chromium does not answer"
        time.sleep(0.2)
    port = note.read_text().split()[0]
    with urlopen(Request(f"http://127.0.0.1:{port}/json/new", method="PUT"), timeout=30) as answer:
        return json.loads(answer.read())["webSocketDebuggerUrl"]
