"""Sessions: what one visit to the lab recorded, how it is stored, and what can be wrong with it.

Recordings are the one thing that cannot be computed again, so they are append-only, written whole or not at all,
and every file carries a checksum. On disk they are LeRobotDataset v3.0 (read and written with pyarrow alone).
Imports nothing of `rsr` but `common`; every other room may import it.
Recordings of others: `rsr.sessions.importers` reads their files, `rsr.sessions.public` fetches them; for others,
`rsr.sessions.exporters` writes theirs. What is wrong with a recording: `rsr.sessions.checks.inspection`; with its
clocks: `rsr.sessions.clocks.estimate`, `frames` and `alignment`.

    folder = write_session(Path("data"), session)      # data/push_cube/session-001
    session = read_session(folder)
    check_session(session, scenario.channels)
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
