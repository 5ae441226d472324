"""Small recordings for the tests of this room, and how to compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rsr.common.errors import SessionError
from rsr.sessions import Card, Channel, Episode, Session, read_session

JOINTS = tuple(f"joint{number}" for number in range(1, 7))
CHANNELS = (
    Channel("joint_position", JOINTS, "rad", "joint"),
    Channel("joint_setpoint", JOINTS, "rad", "joint", stamp="held_until_next"),
    Channel("action", JOINTS, "1", "joint", stamp="held_until_next"),
    Channel("block_position", ("x", "y", "z"), "m", "world", clock="camera"),
    Channel("block_orientation", ("qw", "qx", "qy", "qz"), "1", "world", clock="camera"),
    Channel("clipped", ("share",), "1", "joint", stamp="held_until_next"),
)
DT_S = 0.05


def make_session(name: str = "session-001", episodes: int = 3, rows: int = 21, seed: int = 0) -> Session:
    generator = np.random.default_rng(seed)
    card = Card(
        session=name,
        scenario="push_cube",
        reality="stand_in",
        simulated=True,
        control_dt_s=DT_S,
        policy_sha256="ab" * 32,
        gains={"kp": 120.0, "kd": 4.5},
        limits={"speed_rad_s": 1.5},
        notes="made for a test: µ, 摩擦",
    )
    return Session(card, CHANNELS, tuple(make_episode(index, rows, generator) for index in range(episodes)))


def make_episode(index: int, rows: int, generator: np.random.Generator) -> Episode:
    values = {channel.name: generator.normal(size=(rows, channel.width)) for channel in CHANNELS}
    values["block_orientation"] /= np.linalg.norm(values["block_orientation"], axis=1, keepdims=True)
    return Episode(index, np.arange(rows) * DT_S, values)


def with_values(session: Session, episode: int, **values: np.ndarray) -> Session:
    """Replace channels (or `time_s`) of one episode."""
    found = session.episodes[episode]
    time_s = values.pop("time_s", found.time_s)
    changed = Episode(found.index, time_s, {**found.values, **values})
    episodes = [*session.episodes[:episode], changed, *session.episodes[episode + 1 :]]
    return replace(session, episodes=tuple(episodes))


def assert_same(one: Session, other: Session) -> None:
    """Equal to the last bit, NaN and minus zero included."""
    assert one.card == other.card
    assert one.channels == other.channels
    assert [episode.index for episode in one.episodes] == [episode.index for episode in other.episodes]
    for a, b in zip(one.episodes, other.episodes, strict=True):
        assert a.time_s.tobytes() == b.time_s.tobytes()
        assert set(a.values) == set(b.values)
        for name, values in a.values.items():
            assert values.shape == b[name].shape
            assert values.tobytes() == b[name].tobytes(), name


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class SessionList:
    """Sessions of a data folder: those that can be read, and the error that reading each of the others raises."""

    readable: tuple[Path, ...]
    damaged: Mapping[Path, SessionError]


def list_sessions(root: Path, scenario: str | None = None) -> SessionList:
    """Find the sessions under `root`, reading and verifying each; of one scenario, or of all."""
    readable, damaged = [], {}
    for folder in sorted(Path(root).glob(f"{scenario or '*'}/*")):
        hidden = folder.name.startswith(".") and folder.suffix != ".part"
        if hidden or folder.parent.name.startswith(".") or not folder.is_dir():
            continue
        try:
            read_session(folder)
            readable.append(folder)
        except SessionError as error:
            damaged[folder] = error
    return SessionList(tuple(readable), damaged)
