"""Recordings of others, in the files their authors publish, as sessions. Nothing is filtered; quirks stand on the card.

Each function takes the folder of the authors' files, or one parquet table of them:

    session = read_contactnets(Path("tosses_processed"))
    session = read_double_pendulum(Path("sys_id/20230629"))
"""

from rsr.sessions.importers.contactnets import read_contactnets
from rsr.sessions.importers.double_pendulum import read_double_pendulum

__all__ = ["read_contactnets", "read_double_pendulum"]
