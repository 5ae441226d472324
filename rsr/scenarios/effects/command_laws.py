"""What happens to a command before it acts: latency and first-order lag, as weights of the commands sent before.

Both are linear, so the command in force in a physics step is a weighted mean of those sent up to then: of the last
`ages`, of which the oldest is taken to have been sent for ever. One formula serves C, MJX with exact derivatives,
training and stand-in, and begins a window with what the commands before it left. A latency may differ from command to
command: one that arrives after a newer one never acts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rsr.common import SessionError

Array = Any
"""A numpy array, or one of JAX under a transformation."""

COMMAND_LAWS: dict[str, tuple[str, float]] = {"latency": ("seconds", 0.0), "lag": ("time_constant", 1e-4)}
"""Name in YAML -> its argument, and the least value of it in s."""
REMEMBERED = 5.0
"""Time constants that a lag reaches back: what is older acts with less than exp(-5) = 0.7 %, and as one command."""


@dataclass(frozen=True)
class CommandLaw:
    """Latency or lag of some actuators' commands.

    Args:
        law: a key of `COMMAND_LAWS`.
        constant, parameter, column: where its number comes from: itself, a parameter [P], or a column [C] beside the
            commands, that is a value per episode or a recorded one.
        longest_s: the largest that its number can be.
        varies: whether it may change within an episode.
    """

    name: str
    law: str
    actuators: tuple[int, ...]
    constant: float
    parameter: int | None
    column: int | None
    longest_s: float
    varies: bool = False

    def value(self, params: Array, given: Array) -> Array:
        """Seconds [..., A or 1] of A commands, from parameters [..., P] and the columns [..., A, C] beside them."""
        if self.parameter is not None:
            return params[..., self.parameter, None]
        return self.constant if self.column is None else given[..., self.column]

    def check(self, given: np.ndarray, episode: int) -> None:
        """Refuse values [T, C] of an episode, one of which is longer than what windows look back on.

        Raises:
            SessionError: it is below 0 or above `longest_s`.
        """
        if self.column is None:
            return
        own = given[:, self.column]
        wrong = own[~((own >= 0.0) & (own <= self.longest_s))]
        if len(wrong):
            raise SessionError(
                got=f"{COMMAND_LAWS[self.law][0]} of {wrong[0]:g} s in effect {self.name}",
                expected=f"0 to {self.longest_s:g} s, its `longest`",
                where=f"episode {episode}",
                next_step="Raise `longest` in the scenario's YAML file, or correct the recording.",
            )

    @property
    def reach_s(self) -> float:
        """How far back commands act."""
        return self.longest_s if self.law == "latency" else REMEMBERED * self.longest_s


def reach_steps(laws: Sequence[CommandLaw], control_dt_s: float) -> int:
    """Control steps that commands act longer than without the laws."""
    reaches = {name: max((law.reach_s for law in laws if law.law == name), default=0.0) for name in COMMAND_LAWS}
    return int(np.ceil(sum(reaches.values()) / control_dt_s - 1e-9))


def command_weights(
    xp: Any,
    laws: Sequence[CommandLaw],
    params: Array,
    given: Array,
    delay_s: Array,
    edges_s: np.ndarray,
    control_dt_s: float,
    width: int,
) -> Array:
    """Weights [..., S, A, width] of the last A commands, newest first, in the S physics steps of a control step.

    Args:
        params: [..., P].
        given: [..., A, C], values per episode and recorded columns beside each command.
        delay_s: [...], of all columns.
        edges_s: [S + 1], beginnings and end of the physics steps in the control step.
        width: columns of commands; laws change those of actuators, and what is beside them is only late.
    """
    ages, delay_s = given.shape[-2], xp.asarray(delay_s)[..., None]
    late, lag, lags = [delay_s] * width, [np.ones(1)] * width, np.zeros(width, bool)
    for law in laws:
        for actuator in law.actuators:
            if law.law == "latency":
                late[actuator] = delay_s + law.value(params, given)
            else:
                # Within an episode a lag is constant: that of the newest command is that of all.
                lag[actuator], lags[actuator] = xp.asarray(law.value(params, given))[..., :1], True
    seconds, constants = _side_by_side(xp, late), _side_by_side(xp, lag)[..., None, :, :]
    seconds = xp.broadcast_to(seconds, (*seconds.shape[:-2], ages, width))
    # The first is that of the command that will be sent next: whenever it is, that has not arrived.
    seconds = xp.concatenate([seconds[..., :1, :], seconds], axis=-2)[..., None, :, :]
    # A command sent `age` control steps ago began at -age dt and ended dt later. A step of the command at time 0 has
    # arrived by share S(t - latency), with S = 1 - exp(-t / lag); what acts on average in a physics step is the
    # difference of the integral of S between its edges.
    sent_s = control_dt_s * np.arange(ages + 1)[:, None] - control_dt_s
    passed = edges_s[:, None, None] + sent_s - seconds
    if any(law.varies for law in laws):
        passed = xp.maximum.accumulate(passed, axis=-2)  # since this command or a newer one arrived
    arrived = passed > 0
    inside = xp.where(arrived, passed, 0.0)  # no overflow of exp where nothing has arrived
    integral = inside - xp.where(lags, constants * (1.0 - xp.exp(-inside / constants)), 0.0)
    began = (integral[..., 1:, :, :] - integral[..., :-1, :, :]) / (edges_s[1:] - edges_s[:-1])[:, None, None]
    weights = began[..., 1:, :] - began[..., :-1, :]
    # The oldest command known held for ever: what has not arrived of it by now acts all the same.
    oldest = weights[..., -1:, :] + 1.0 - weights.sum(axis=-2, keepdims=True)
    return xp.concatenate([weights[..., :-1, :], oldest], axis=-2)


def _side_by_side(xp: Any, columns: Sequence[Array]) -> Array:
    """Columns, each [..., A or 1], as one array [..., A or 1, width]."""
    return xp.stack(xp.broadcast_arrays(*(xp.asarray(each, dtype=float) for each in columns)), axis=-1)
