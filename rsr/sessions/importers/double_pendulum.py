"""The double pendulum of DFKI's Underactuated Robotics Lab: excitation runs with measured torque, 500 Hz.

A source folder holds one run as `trajectory.csv`; its clock stumbles in the first rows and now and then later, so runs
are resampled to an even grid (linearly; commands keep their value until the next one).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rsr.sessions import Card, Channel, Episode, Session
from rsr.sessions.importers.recording import columns, read_columns, unreadable_table

DT_S = 0.002
JOINTS = ("shoulder", "elbow")
CHANNELS = (
    Channel("joint_position", JOINTS, "rad", "joint"),
    Channel("joint_velocity", JOINTS, "rad/s", "joint"),
    Channel("measured_torque", JOINTS, "N m", "joint"),
    Channel("commanded_torque", JOINTS, "N m", "joint", stamp="held_until_next"),
)
NOTES = (
    "Real recordings (BSD-3-Clause, Copyright (c) 2022, DFKI RIC Underactuated Robotics Lab; "
    "github.com/dfki-ric-underactuated-lab/double_pendulum, data/experiment_records/design_C.1/sys_id/20230629), "
    "resampled from their own clock, which stumbles by up to 1.7 ms, to 500 Hz; otherwise left as published. "
    "Angles are 0 when hanging, the elbow's is relative to the upper link. Positions come in steps of 0.00038 rad, "
    "velocities are their differences over one row (steps of 0.19 rad/s)."
)
_PREFIX = {
    "joint_position": "pos_meas",
    "joint_velocity": "vel_meas",
    "measured_torque": "tau_meas",
    "commanded_torque": "tau_con",
}


def read_double_pendulum(source: Path, session: str = "double-pendulum") -> Session:
    """Read runs from the authors' folders with `trajectory.csv` (sorted by name), one such file, or a parquet table."""
    source = Path(source)
    runs = list(_from_parquet(source) if source.suffix == ".parquet" else _from_csv(source))
    episodes = tuple(_episode(index, time_s, values, name) for index, (name, time_s, values) in enumerate(runs))
    card = Card(
        session=session,
        scenario="double_pendulum",
        reality="dfki",
        simulated=False,
        control_dt_s=DT_S,
        robot="quasi-direct-drive double pendulum, design C.1, gear ratio 6",
        notes=NOTES,
    )
    return Session(card, CHANNELS, episodes)


def _names(channel: str) -> tuple[str, str]:
    return f"{_PREFIX[channel]}1", f"{_PREFIX[channel]}2"


def _from_parquet(path: Path) -> Iterator[tuple[str, np.ndarray, dict[str, np.ndarray]]]:
    table = read_columns(path, ("run_id", "time_s", *(name for channel in _PREFIX for name in _names(channel))))
    for run in np.unique(table["run_id"]):
        rows = np.flatnonzero(table["run_id"] == run)
        yield f"{run:.0f}", table["time_s"][rows], {name: columns(table, _names(name), rows) for name in _PREFIX}


def _from_csv(source: Path) -> Iterator[tuple[str, np.ndarray, dict[str, np.ndarray]]]:
    paths = [source] if source.suffix == ".csv" else sorted(source.rglob("trajectory.csv"))
    if not paths:
        raise unreadable_table(source, "no trajectory.csv", "folders of runs with trajectory.csv, or a parquet file")
    for path in paths:
        table = read_columns(path, ("time", *(name for channel in _PREFIX for name in _names(channel))))
        values = {name: columns(table, _names(name), slice(None)) for name in _PREFIX}
        yield path.parent.name, table["time"], values


def _episode(index: int, time_s: np.ndarray, values: dict[str, np.ndarray], run: str) -> Episode:
    """Resample one run."""
    elapsed_s = time_s - time_s[0]
    grid_s = np.arange(int(elapsed_s[-1] / DT_S + 1e-6) + 1) * DT_S
    latest = np.searchsorted(elapsed_s, grid_s + 1e-9, side="right") - 1
    resampled = {
        channel.name: values[channel.name][latest]
        if channel.stamp == "held_until_next"
        else np.stack([np.interp(grid_s, elapsed_s, column) for column in values[channel.name].T], axis=1)
        for channel in CHANNELS
    }
    return Episode(index, grid_s, resampled, {"run": run})
