"""Recordings of others.

A lab's own, in the formats that `formats.py` lists: they open as streams of numbers (`recording.py`), which
`rsr.sessions.ingest.session` maps onto a scenario's channels. And sets that research groups publish, which become
sessions with nothing filtered and their quirks on the card; each function takes the authors' folder, or one parquet
table:

    session = read_contactnets(Path("tosses_processed"))
    session = read_double_pendulum(Path("sys_id/20230629"))

A format of one's own is a `Format`, whose `open` makes a `Recording` of a path; `held_recording` makes one of streams
in memory. A package that states it as an entry point of the group `rsr.formats` has it in `rsr ingest`.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
