"""Prefect's server behind a password and a guard: `python -m rsr_flows.api_server`. Part of `rsr-serve`.

`prefect server start` answers every web page and every user of the machine, and whoever it answers can have the worker
run code. This starts the same server, except that it asks for the password and turns foreign pages away.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rsr.common import ConfigError
from rsr_flows._password import client_settings, password, people, server_settings
from rsr_tasks import environment

_EVERYWHERE = {"", "0.0.0.0", "::", "*"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(
        "python -m rsr_flows.api_server", description="Prefect's server, behind a password."
    )
    add_address(parser)
    chosen = parser.parse_args(arguments)
    try:
        address = prepare(chosen.host, chosen.port)
        people(home())
    except ConfigError as error:
        raise SystemExit(str(error)) from error
    os.environ.update(server_settings(password(home()), address))
    _serve(chosen.host, chosen.port, address)


def add_address(parser: argparse.ArgumentParser) -> None:
    """Let a command line say where the server listens."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=4200, help="default: 4200")


def prepare(host: str, port: int) -> str:
    """Have this process and its children talk to the server there, with its password; returns its address.

    Raises:
        ConfigError: that is no address by which anybody could call it, or the password is not secret.
    """
    if host in _EVERYWHERE:
        raise ConfigError(
            got=f"--host '{host}'",
            expected="the one name or address by which the server is called",
            where="command line",
            next_step="Name it, or leave the option out and come by `ssh -L` (deployments/README.md).",
        )
    address = f"http://{host}:{port}"
    os.environ["PREFECT_API_URL"] = f"{address}/api"  # before PREFECT_HOME gets a default for an embedded server
    folder = Path.cwd()  # history and password lie where the campaigns are, never among installed packages
    environment.prepare(folder)
    os.environ.setdefault("PREFECT_HOME", str(folder / ".prefect"))
    os.environ.update(client_settings(password(home()), address))
    return address


def home() -> Path:
    """Where Prefect keeps its history, and this installation its password."""
    return Path(os.environ["PREFECT_HOME"]).expanduser()


def _serve(host: str, port: int, address: str) -> None:
    import uvicorn  # here and below: Prefect reads its settings when it is imported
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    from rsr_flows import _mail  # noqa: F401  (a block of ours: the server sends with it)
    from rsr_flows._guard import Guard

    settings = get_current_settings().server
    config = uvicorn.Config(
        Guard(create_app(final=True), address, password(home()), lambda: people(home())),
        host,
        port,
        timeout_keep_alive=settings.api.keepalive_timeout,
        ws_ping_interval=settings.api.websocket_ping_interval,
        ws_ping_timeout=settings.api.websocket_ping_timeout,
        log_level=settings.logging_level.lower(),
    )
    # The socket first: a server whose port is taken must not begin to work on the database.
    uvicorn.Server(config).run(sockets=[config.bind_socket()])


if __name__ == "__main__":
    main()
