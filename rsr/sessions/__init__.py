"""Sessions: what one visit to the lab recorded, how it is stored, and what can be wrong with it.

Recordings are the one thing that cannot be computed again, so they are append-only, written whole or not at all,
and every file carries a checksum. On disk they are LeRobotDataset v3.0 (read and written with pyarrow alone).
Imports nothing of `rsr` but `errors`, `files`, `outside`, `progress` and `rotations`; every other room may import it.
Recordings of others: `rsr.sessions.importers` reads their files, `rsr.sessions.public` fetches them; for others,
`rsr.sessions.exporters` writes theirs. What is wrong with a recording: `rsr.sessions.checks.inspection`; with its
clocks: `rsr.sessions.clocks.estimate`, `frames` and `alignment`.

    folder = write_session(Path("data"), session)      # data/push_cube/session-001
    session = read_session(folder)
    check_session(session, scenario.channels)
"""

from rsr.sessions.checks.problems import check_session, find_problems
from rsr.sessions.model import Card, Channel, Episode, Session, join_sessions
from rsr.sessions.storage import (
    is_session,
    is_session_name,
    read_session,
    recover_session,
    write_session,
)

__all__ = [
    "Card",
    "Channel",
    "Episode",
    "Session",
    "check_session",
    "find_problems",
    "is_session",
    "is_session_name",
    "join_sessions",
    "read_session",
    "recover_session",
    "write_session",
]
