"""ContactNets: a cube thrown onto a board, tracked by cameras at 148 Hz (Pfrommer, Halm and Posa, 2020).

A source file holds one toss as a torch tensor [1, T, 19]: position and linear velocity in half-widths of the cube,
quaternion (wxyz), angular velocity in the body's frame, six zeros. Some throws are in the set twice, under another yaw.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rsr.sessions import Card, Channel, Episode, Session
from rsr.sessions.importers.recording import columns, read_columns, unreadable_table

RATE_HZ = 148.0
HALF_WIDTH_M = 0.0524
CHANNELS = (
    Channel("cube_position", ("x", "y", "z"), "m", "world", clock="camera"),
    Channel("cube_orientation", ("qw", "qx", "qy", "qz"), "1", "world", clock="camera"),
    Channel("linear_velocity", ("vx", "vy", "vz"), "m/s", "world", clock="camera"),
    Channel("angular_velocity", ("wx", "wy", "wz"), "rad/s", "body", clock="camera"),
)
NOTES = (
    "Real recordings, left as published (BSD-3-Clause, Copyright (c) 2020, Dynamic Autonomy and Intelligent Robotics "
    "Lab; github.com/DAIRLab/contact-nets, data/tosses_processed). Velocities are backward differences through a "
    "median of three: half a frame late. Free fall reads 9.60 m/s2 and the rest height is 2.2 % low: lengths are about "
    "2 % short. In flight the recorded middle circles about a point 5 mm from it: the centre of mass. The origin of "
    "the world frame lies on the board. Tag physical_toss: episodes that share it are one throw under another yaw; "
    "never split them between fitting and judging."
)
_SAME_THROW_M = 1e-3
"""Heights of two tosses that differ less than this at every frame are one throw: the noise is 0.1 mm, and different
throws differ by centimetres."""
_WIDTH = 19
_MOST_NUMBERS = 10_000_000


def read_contactnets(source: Path, session: str = "contactnets") -> Session:
    """Read tosses from the authors' `.pt` files (a folder, or one file) or from one parquet table in SI units.

    Example:
        >>> session = read_contactnets(Path("data/tosses_processed"))  # doctest: +SKIP
        >>> session.episodes[0].tags["physical_toss"]  # doctest: +SKIP
        '0'
    """
    source = Path(source)
    tosses = list(_from_parquet(source) if source.suffix == ".parquet" else _from_tensors(source))
    episodes = tuple(
        Episode(index, np.arange(len(values["cube_position"])) / RATE_HZ, values, tags)
        for index, (values, tags) in enumerate(tosses)
    )
    card = Card(
        session=session,
        scenario="cube_toss",
        reality="contactnets",
        simulated=False,
        control_dt_s=1.0 / RATE_HZ,
        robot="acrylic cube, side 0.1048 m, 0.37 kg, thrown by hand",
        notes=NOTES,
    )
    return Session(card, CHANNELS, episodes)


def _from_parquet(path: Path) -> Iterator[tuple[dict[str, np.ndarray], dict[str, str]]]:
    names = [name for channel in CHANNELS for name in channel.columns]
    table = read_columns(path, ("toss_id", "physical_toss", "frame", *names))
    for toss in np.unique(table["toss_id"]):
        rows = np.flatnonzero(table["toss_id"] == toss)
        rows = rows[np.argsort(table["frame"][rows], kind="stable")]
        if np.any(np.diff(table["frame"][rows]) != 1):
            raise unreadable_table(path, f"missing frames in toss {toss:.0f}", "every frame of a toss")
        values = {channel.name: columns(table, channel.columns, rows) for channel in CHANNELS}
        yield values, {"toss": f"{toss:.0f}", "physical_toss": f"{table['physical_toss'][rows[0]]:.0f}"}


def _from_tensors(source: Path) -> Iterator[tuple[dict[str, np.ndarray], dict[str, str]]]:
    paths = [source] if source.suffix == ".pt" else [path for path in source.glob("*.pt") if path.stem.isdecimal()]
    if not paths:
        raise unreadable_table(
            source, "no files 0.pt, 1.pt, ...", "the authors' data/tosses_processed, or a parquet file"
        )
    earlier: list[tuple[str, np.ndarray]] = []
    for path in sorted(paths, key=lambda path: int(path.stem)):
        values = _toss(path)
        throw = _throw(path.stem, values["cube_position"][:, 2], earlier)
        yield values, {"toss": path.stem, "physical_toss": throw}


def _toss(path: Path) -> dict[str, np.ndarray]:
    import torch  # here: it takes seconds to load, and only these files need it

    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
        if tensor.numel() > _MOST_NUMBERS:  # a tensor of stride 0 is as large as it says, and takes no bytes
            raise ValueError(f"{tensor.numel()} numbers")
        rows = np.asarray(tensor, float).reshape(-1, _WIDTH)
    except Exception as error:  # torch raises errors of many kinds over a damaged file
        raise unreadable_table(path, f"content that cannot be read ({error})", f"a tensor [1, T, {_WIDTH}]") from error
    return {
        "cube_position": rows[:, 0:3] * HALF_WIDTH_M,
        "cube_orientation": rows[:, 3:7],
        "linear_velocity": rows[:, 7:10] * HALF_WIDTH_M,
        "angular_velocity": rows[:, 10:13],
    }


def _throw(name: str, height_m: np.ndarray, earlier: list[tuple[str, np.ndarray]]) -> str:
    """Name the throw by the first toss that shows it: turning the world about the vertical leaves the heights alone."""
    for first, heights_m in earlier:
        if len(heights_m) == len(height_m) and np.abs(heights_m - height_m).max() < _SAME_THROW_M:
            return first
    earlier.append((name, height_m))
    return name
