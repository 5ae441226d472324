"""Settings for Prefect and DVC that must be in the environment before either is imported."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import NAMESPACE_URL, UUID, uuid5

_DEFAULTS = {
    # No word to anybody: DO_NOT_TRACK alone does not silence Prefect's server.
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    # The embedded server: allowed whatever profile the user has, and given time on a busy machine (default 20 s).
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    # Who holds a place in a deployment's queue: in a file. A server forgets what it has in memory when it dies; it then
    # ends the runs that go on, and keeps the places of those that died with it for ever.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    # Runs that ended 90 days ago leave the server's history, which would else grow for ever; campaigns keep theirs.
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
}


def prepare(workspace_root: Path) -> None:
    """Let Prefect start its embedded server without configuration. What the user has set stays as it is."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    if not os.environ.get("PREFECT_API_URL"):
        os.environ.pop("PREFECT_API_URL", None)  # empty is worse than unset: events are lost with an error
    if not {"PREFECT_API_URL", "PREFECT_PROFILE"} & os.environ.keys():
        os.environ.setdefault("PREFECT_HOME", str(workspace_root / ".prefect"))


def person_id(name: str) -> UUID:
    """The id by which a run says that a person made it who had logged in by name, rather than an automation."""
    return uuid5(NAMESPACE_URL, f"rsr-person:{name}")
