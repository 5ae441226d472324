"""What a scenario asks of a lab's recording that is to become a session of it."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass, field

import numpy as np

from rsr.sessions.model import Channel


@dataclass(frozen=True)
class Target:
    """Scenario, grid and channels that a recording is to become.

    Args:
        limits: channel -> [W, 2], what its columns can be at all, in the channel's unit.
        turning: channel of angles -> [W], which of its joints may turn round.
        rates_of: channel of velocities -> channel of the positions or orientations that it is the change of.
        tags: words about each episode that the scenario needs.
        gap_channel: the one that calibrations are judged by, which cannot be left out.
    """

    scenario: str
    control_dt_s: float
    channels: tuple[Channel, ...]
    limits: Map[str, np.ndarray] = field(default_factory=dict)
    turning: Map[str, np.ndarray] = field(default_factory=dict)
    rates_of: Map[str, str] = field(default_factory=dict)
    gap_channel: str = ""
    tags: tuple[str, ...] = ()
