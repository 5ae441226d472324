"""Readings of what was ingested that a lab should look at: beyond what the robot can do, or unlike their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rsr.sessions.checks.rules import find_spikes
from rsr.sessions.ingest.evidence import beyond
from rsr.sessions.ingest.target import Target
from rsr.sessions.model import Episode


def doubtful(episodes: Sequence[Episode], target: Target) -> Iterator[str]:
    """Say in words what stands out."""
    yield from _beyond_limits(episodes, target)
    yield from _spikes(episodes, target)


def _beyond_limits(episodes: Sequence[Episode], target: Target) -> list[str]:
    """Channels that read what the robot cannot do: another unit, sign, order or zero, or damage."""
    found = []
    for name, limits in target.limits.items():
        for episode in episodes:
            words = beyond(episode.values[name], limits) if name in episode.values else None
            if words is not None:
                found.append(f"{name}, episode {episode.index}: {words}; check its unit, sign, order and zero")
                break
    return found


def _spikes(episodes: Sequence[Episode], target: Target) -> list[str]:
    """Channels with readings that stand out from their neighbours, or commands from all others."""
    found = []
    for channel in target.channels:
        kept = [episode for episode in episodes if channel.name in episode.values]
        places = find_spikes(kept, channel).places if kept else ()
        if places:
            index, row = places[0]
            time_s = next(episode for episode in kept if episode.index == index).time_s[row]
            place = f"first in episode {index} at {time_s:.3f} s"
            found.append(f"{len(places)} rows of {channel.name} stand out from the others, {place}")
    return found
