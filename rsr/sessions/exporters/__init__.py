"""Sessions for the tools of others: nothing here needs `rsr` to be read again.

    export_session(session, "lerobot", Path("my_dataset"))   # LeRobotDataset v3.0, to train with lerobot
    export_session(session, "mcap", Path("session.mcap"))    # JSON channels with schemas, for Foxglove and friends
    export_session(session, "rrd", Path("session.rrd"))      # Rerun; with a simulation beside it if there is one

Libraries of a format are loaded when it is asked for; where one is missing, the error names the extra that brings it.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
