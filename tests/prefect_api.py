"""Talk to a Prefect server without Prefect, which would choose its server when it is imported."""

from __future__ import annotations

import base64
import json
import os
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

_CLIENT = "tests"


def ask(path: str, body: Any = None, method: str = "POST") -> Any:
    """What the server of the environment answers to one that has its password, if the environment names one."""
    headers = {"Content-Type": "application/json", **credentials(os.environ)}
    if "Authorization" in headers and method != "GET":
        token = ask(f"/csrf-token?client={quote(_CLIENT)}", None, "GET")["token"]
        headers |= {"Prefect-Csrf-Client": _CLIENT, "Prefect-Csrf-Token": token}
    content = None if body is None else json.dumps(body).encode()
    address = os.environ["PREFECT_API_URL"] + path
    with urlopen(Request(address, content, headers, method=method), timeout=60) as answer:
        return json.loads(answer.read() or "null")


def credentials(environment: Any) -> dict[str, str]:
    """The header that says the password, where there is one."""
    words = environment.get("PREFECT_API_AUTH_STRING")
    return {"Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"} if words else {}
