"""Numbers as a lab writes them, in a channel's unit, sign, zero and order."""

from __future__ import annotations

import numpy as np

from rsr.errors import SessionError
from rsr.sessions.importers.contract import listed
from rsr.sessions.mapping import ChannelMap
from rsr.sessions.model import Channel
from rsr.sessions.naming import is_quaternion
from rsr.sessions.units import factor

_NORM_SLACK = 0.05
"""A quaternion's norm may be off by rounding and filters; further off it is none, and its row is left out."""


def convert(channel: Channel, entry: ChannelMap, values: np.ndarray) -> np.ndarray:
    """Numbers [N, W] of the recording in the channel's unit, sign, zero and order."""
    where = f"channel '{channel.name}'"
    if values.shape[1] != channel.width:
        raise SessionError(
            got=f"{values.shape[1]} columns ({listed(entry.columns)})",
            expected=f"{channel.width} ({', '.join(channel.columns)})",
            where=where,
            next_step="Correct `columns:` in the mapping; give them in the scenario's order.",
        )
    if entry.frame is not None and entry.frame != channel.frame:
        raise SessionError(
            got=f"frame '{entry.frame}'",
            expected=f"'{channel.frame}', as in the scenario",
            where=where,
            next_step="Convert the recording first: a rotation between frames is not known here.",
        )
    for name, given in (("sign", entry.sign), ("offset", entry.offset)):
        if given is not None and len(given) != channel.width:
            raise SessionError(
                got=f"{len(given)} numbers in `{name}:`",
                expected=f"{channel.width}, one a column",
                where=where,
                next_step="Correct the mapping.",
            )
    scaled = values * factor(entry.unit or channel.unit, channel.unit, where)
    scaled = scaled * np.array(entry.sign or 1.0) + np.array(entry.offset or 0.0)
    return _unit_quaternions(channel, entry, scaled) if is_quaternion(channel) else scaled


def _unit_quaternions(channel: Channel, entry: ChannelMap, values: np.ndarray) -> np.ndarray:
    """Order as wxyz, norm 1; rows that are far from it become NaN."""
    ordered = values[:, [3, 0, 1, 2]] if entry.quaternion == "xyzw" else values
    norm = np.linalg.norm(ordered, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        good = np.abs(norm - 1.0) < _NORM_SLACK
        return np.where(good[:, None], ordered / norm[:, None], np.nan)


def constant_row(channel: Channel, constant: tuple[float, ...]) -> np.ndarray:
    if len(constant) != channel.width:
        raise SessionError(
            got=f"{len(constant)} numbers in `constant:`",
            expected=f"{channel.width} ({', '.join(channel.columns)})",
            where=f"channel '{channel.name}'",
            next_step="Correct the mapping.",
        )
    return np.array(constant)
