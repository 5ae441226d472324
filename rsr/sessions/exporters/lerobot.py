"""LeRobotDataset v3.0: what our storage is on disk already, so exporting is storing under a name of one's own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rsr.files import cannot_write
from rsr.sessions.exporters.formats import Simulated
from rsr.sessions.model import Session
from rsr.sessions.storage import write_session


def write(session: Session, out: Path, simulated: Simulated | None) -> None:
    """Write the folder `out`; card and checksums come along, so that `read_session` reads it as well."""
    del simulated
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.", suffix=".part") as folder:
            write_session(Path(folder), session).rename(out)
    except OSError as error:
        raise cannot_write(out, error) from error
