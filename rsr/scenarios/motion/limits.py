"""Limits of motion that everything sent to something that moves obeys: in training, on the stand-in, on the robot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rsr.common import ConfigError, lengths, short
from rsr.scenarios.motion.braking import Braking
from rsr.scenarios.motion.kinematics import Reach, site_positions

Cut = tuple[str, Callable[[np.ndarray], np.ndarray]]
"""A word for the reason, and what shortens commands [B, nu]."""
_ROUNDS = 4
"""Scalings of a command that leads a site too far. One leaves an error of some per cent: a site's paths are curved."""
_FIXED = {"fixed": True}
"""Marks a field that no robot's file may change."""


class MotionLimits(Protocol):
    """Interface of limits on commands [B, nu]. `channels` are measurements [B, width] by name."""

    @property
    def words(self) -> Mapping[str, str]:
        """Reason -> sentence, for every reason that `cuts` and `holds` may give."""
        ...

    def allowed(
        self, wanted: np.ndarray, previous: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float
    ) -> np.ndarray:
        """Cut commands to what may be sent after the previous ones: what holds in training."""
        ...

    def cuts(
        self, previous: np.ndarray, before: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float
    ) -> Iterator[Cut]:
        """What shortens a command on something that moves, in this order; none undoes an earlier one."""
        ...

    def holds(self, sent: np.ndarray, channels: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Reasons to send the safe command instead, and where they apply [B]."""
        ...

    def lost(self, channels: Mapping[str, np.ndarray]) -> np.ndarray:
        """True [B] where nothing can be gained any more."""
        ...

    def safe(self, previous: np.ndarray, channels: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """Commands [B, nu] that hold the robot; with measurements that say how it moves, they brake what has mass."""
        ...

    @property
    def rates(self) -> tuple[str, ...]:
        """Channels whose unfiltered velocity the limits look at."""
        ...

    def stated(self) -> dict[str, float]:
        """The limits for a session's card."""
        ...


@dataclass(frozen=True)
class Box:
    """A box in the world, m."""

    lower: tuple[float, float, float]
    upper: tuple[float, float, float]

    def depth(self, places: np.ndarray) -> np.ndarray:
        """How deep places [..., 3] lie in it, m: to the nearest side; negative outside."""
        return np.minimum(places - self.lower, np.subtract(self.upper, places)).min(axis=-1)


@dataclass(frozen=True)
class SiteLimit:
    """Limits of a named site of the model.

    Args:
        site: its number in the model.
        inside: the box that it stays in.
        keep_out: boxes that it stays out of.
        speed: fastest movement that a command may ask of it, m/s.
    """

    name: str
    site: int
    inside: Box | None = None
    keep_out: tuple[Box, ...] = ()
    speed: float = np.inf

    def trespass(self, places: np.ndarray) -> np.ndarray:
        """How far places [B, 3] are from where they are allowed, m; 0 where they are."""
        return np.maximum(self.beyond(places), 0.0)

    def beyond(self, places: np.ndarray) -> np.ndarray:
        """The same, negative where places [B, 3] are allowed: how far the nearest side of a box is."""
        depths = [box.depth(places) for box in self.keep_out]
        if self.inside is not None:
            depths.append(-self.inside.depth(places))
        return np.max(depths, axis=0) if depths else np.full(len(places), -np.inf)


_WORDS = {
    "command_rate": "a command would have changed too fast",
    "command_acceleration": "the rate of a command would have grown too fast",
    "command_limit": "a command lay beyond its limit",
    "joint_limit": "a joint would have been driven beyond its range",
    "site_speed": "a site of the robot would have moved too fast",
    "site_place": "a site of the robot would have left its box, or entered one that it keeps out of",
    "stopping_distance": "the robot could not have been braked any more before a limit of its joints or sites",
}


@dataclass(frozen=True)
class CommandLimits:
    """Limits that the model and the scenario's YAML file state, for commands of any kind.

    Args:
        command_lower, command_upper: of each command.
        command_rate: largest change a second, in the command's unit.
        command_acceleration: fastest growth of that rate; slowing down is never held back.
        safe_command: what holds the robot, one a command; NaN: the command in force, which is right for positions.
        reach: where commands lead the joints.
        step_s: a control step.
        sites: limits of named sites.
        brakes: of joints that are commanded by force; None where there are none.
    """

    command_lower: tuple[float, ...]
    command_upper: tuple[float, ...]
    command_rate: tuple[float, ...]
    command_acceleration: tuple[float, ...]
    safe_command: tuple[float, ...] = field(metadata=_FIXED)
    reach: Reach
    step_s: float = field(metadata=_FIXED)
    sites: tuple[SiteLimit, ...] = ()
    words: Mapping[str, str] = field(default_factory=lambda: _WORDS)
    brakes: Braking | None = field(default=None, metadata=_FIXED)

    def allowed(
        self, wanted: np.ndarray, previous: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float
    ) -> np.ndarray:
        sent = wanted
        for _, cut in self._cuts(previous, channels, dt_s):
            sent = cut(sent)
        held = np.any([np.zeros(len(sent), bool), *self.holds(sent, channels).values()], axis=0)
        return np.where(held[:, None], self.safe(previous, channels), sent) if held.any() else sent

    def cuts(
        self, previous: np.ndarray, before: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float
    ) -> Iterator[Cut]:
        bounds = growth_bounds(previous, before, np.array(self.command_acceleration) * dt_s**2)
        yield "command_acceleration", lambda sent: np.clip(sent, *bounds)
        yield from self._cuts(previous, channels, dt_s)

    def _cuts(self, previous: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float) -> Iterator[Cut]:
        reach = np.array(self.command_rate) * dt_s
        yield "command_rate", lambda sent: np.clip(sent, previous - reach, previous + reach)
        yield "command_limit", lambda sent: np.clip(sent, self.command_lower, self.command_upper)
        if not self.reach.all_positions:
            least, most = self.reach.outward(channels, len(previous), dt_s)
            yield "joint_limit", lambda sent: np.clip(sent, least, most)
        if any(np.isfinite(each.speed) for each in self.sites):
            yield "site_speed", lambda sent: self._slowed(sent, previous, channels, dt_s)

    def holds(self, sent: np.ndarray, channels: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        brakes, held = self._brakes_in_use(channels), {}
        stopped = [each for each in self.sites if brakes is not None and brakes.sees(each.site)]
        led = [each for each in self.sites if each not in stopped]
        if led:
            held["site_place"] = self._misplaced(led, sent, channels)
        if brakes is not None and (stopped or len(brakes.limited)):
            held["stopping_distance"] = brakes.overruns(sent, channels, stopped)
        return held

    def lost(self, channels: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.zeros(len(next(iter(channels.values()))), bool)

    def safe(self, previous: np.ndarray, channels: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        stated = np.where(np.isnan(self.safe_command), previous, self.safe_command)
        brakes = self._brakes_in_use(channels or {})
        return stated if brakes is None or channels is None else brakes.brake(previous, channels)

    @property
    def rates(self) -> tuple[str, ...]:
        return () if self._set_brakes is None else tuple(name for name, _, _ in self._set_brakes.channels)

    def stated(self) -> dict[str, float]:
        largest = {name: max(getattr(self, name)) for name in ("command_upper", "command_rate", "command_acceleration")}
        largest["command_lower"] = min(self.command_lower)
        speeds = {f"{each.name}_speed": each.speed for each in self.sites}
        return {name: value for name, value in {**largest, **speeds}.items() if np.isfinite(value)}

    @cached_property
    def _set_brakes(self) -> Braking | None:
        """Brakes within the limits of the commands; None where they have nothing to stop for."""
        brakes = self.brakes
        if brakes is None or not (len(brakes.limited) or any(brakes.sees(each.site) for each in self.sites)):
            return None
        names = ("command_lower", "command_upper", "command_rate", "safe_command")
        lower, upper, rate, safe = (np.array(getattr(self, name)) for name in names)
        return replace(brakes, lower=lower, upper=upper, rate=rate, safe=safe)

    def _brakes_in_use(self, channels: Mapping[str, np.ndarray]) -> Braking | None:
        brakes = self._set_brakes
        return brakes if brakes is not None and brakes.knows(channels) else None

    def _misplaced(
        self, sites: Sequence[SiteLimit], sent: np.ndarray, channels: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """True [B] where a command leads one of the sites to where it may not be."""
        led, here = self._places(sent, channels), self._places(self.reach.still(sent), channels)
        held = np.zeros(len(sent), bool)
        for index, each in enumerate(self.sites):
            # A speed that leads back to where the site may be is not held.
            off, before = each.trespass(led[:, index]), each.trespass(here[:, index])
            held |= (off > 0) & (off >= before) & (each in sites)
        return held

    def _places(self, command: np.ndarray, channels: Mapping[str, np.ndarray]) -> np.ndarray:
        """Where the sites are led to [B, sites, 3]."""
        qpos = self.reach.led_to(command, channels, self.step_s)
        return site_positions(self.reach.model, qpos, [each.site for each in self.sites])

    def _slowed(
        self, wanted: np.ndarray, previous: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float
    ) -> np.ndarray:
        """Shorten commands [B, nu] until no site is led faster than it may move."""
        reach_m = np.array([each.speed for each in self.sites]) * dt_s
        return shortened(wanted, self.reach.still(previous), lambda sent: self._places(sent, channels), reach_m)


def growth_bounds(
    previous: np.ndarray, before: np.ndarray, growth: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds [B, nu] of commands whose change grows by no more than `growth`; slowing down is never held back."""
    change = previous - before
    return previous + (np.minimum(change, 0.0) - growth), previous + (np.maximum(change, 0.0) + growth)


def shortened(
    wanted: np.ndarray, still: np.ndarray, places: Callable[[np.ndarray], np.ndarray], reach_m: np.ndarray
) -> np.ndarray:
    """Shorten commands [B, nu] towards those that move nothing, until no site is led farther than it may move.

    Args:
        places: commands -> where the sites are led to [B, sites, 3].
        reach_m: of each site, [sites] or [B, sites].
    """
    start, sent = places(still), wanted
    for _ in range(_ROUNDS):
        moved_m = lengths(places(sent) - start)
        if (moved_m <= reach_m).all():
            return sent
        share = np.where(moved_m > reach_m, 0.999 * reach_m / np.maximum(moved_m, 1e-12), 1.0).min(axis=1)
        sent = np.where(share[:, None] < 1.0, still + share[:, None] * (sent - still), sent)
    moved_m = lengths(places(sent) - start)
    return np.where(np.all(moved_m <= reach_m, axis=1)[:, None], sent, still)


def narrowed(limits: MotionLimits, changes: Mapping[str, Any], where: str) -> MotionLimits:
    """Make limits narrower by the names of their numbers; one number stands for all commands.

    Raises:
        ConfigError: there is no such number, or it would be wider than it is.
    """
    known = {
        each.name: getattr(limits, each.name)
        for each in fields(limits)  # type: ignore[arg-type]
        if not each.metadata.get("fixed") and _is_numeric(getattr(limits, each.name))
    }
    values = {name: _narrower(name, known.get(name), value, tuple(known), where) for name, value in changes.items()}
    return replace(limits, **values)  # type: ignore[type-var]


def _is_numeric(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, tuple) and all(isinstance(each, float) for each in value))


def _narrower(name: str, now: Any, value: Any, known: tuple[str, ...], where: str) -> Any:
    place = f"{where}.{name}"
    if now is None:
        raise _refused("an unknown limit", f"one of {', '.join(known)}", place)
    try:
        new = np.broadcast_to(np.array(value, float), np.shape(now))
    except ValueError as error:
        raise _refused(short(value), f"a number, or {np.size(now)} of them", place) from error
    wider = np.less(new, now) if "lower" in name else np.greater(new, now) | (new <= 0) & ("upper" not in name)
    if not np.isfinite(new).all() or wider.any():
        raise _refused(short(value), f"nothing wider than {short(now)}", place)
    return tuple(new.tolist()) if isinstance(now, tuple) else float(new)


def _refused(got: str, expected: str, where: str) -> ConfigError:
    return ConfigError(
        got=got, expected=expected, where=where, next_step="Correct the file; docs/robot.md explains it."
    )
