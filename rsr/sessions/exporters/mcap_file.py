"""MCAP: one topic a channel, JSON messages with a JSON Schema, the card as an attachment.

A message is `{"episode": 0, "time_s": 0.05, "values": {"x": 0.1, ...}}`: numbers are written so that reading gives the
same float64. JSON knows neither NaN nor infinity: null stands for the one and 1e999 for the other, as readers overflow.

Whatever has a place in the world is a frame as well, on the topic `/tf` in Foxglove's own form for its 3D panel
(`foxglove.FrameTransform`): `block_position`, with `block_orientation` where that is recorded, is the frame `block`.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from mcap.writer import Writer

from rsr.common import write_bytes
from rsr.sessions import Channel, Session
from rsr.sessions._lerobot_v3 import CARD_FILE, encode_card
from rsr.sessions.exporters.formats import Simulated, laid_out

_LIBRARY = "rsr"
_UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


def _numbers(names: str) -> dict[str, object]:
    return {"type": "object", "properties": {key: {"type": "number"} for key in names}}


_FRAME_TRANSFORM = {
    "type": "object",
    "title": "foxglove.FrameTransform",
    "properties": {
        "timestamp": {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}},
        "parent_frame_id": {"type": "string"},
        "child_frame_id": {"type": "string"},
        "translation": _numbers("xyz"),
        "rotation": _numbers("xyzw"),
    },
}


def write(session: Session, out: Path, simulated: Simulated | None) -> None:
    """Write the file `out`; equal sessions give equal bytes."""
    del simulated
    buffer = io.BytesIO()
    writer = Writer(buffer)
    writer.start(profile="", library=_LIBRARY)
    writer.add_attachment(0, 0, Path(CARD_FILE).name, "application/json", encode_card(session))
    writer.add_metadata("rsr", {"session": session.card.session, "scenario": session.card.scenario})
    topics = {channel.name: _register(writer, channel) for channel in session.channels}
    frames = _frames(session.channels)
    places = _register_frames(writer) if frames else 0
    for episode, times_ns in laid_out(session):
        rows = {
            channel.name: (np.asarray(episode[channel.name], float), [json.dumps(name) for name in channel.columns])
            for channel in session.channels
        }
        for row, (time_ns, time_s) in enumerate(zip(times_ns.tolist(), np.asarray(episode.time_s, float), strict=True)):
            for name, (values, keys) in rows.items():
                numbers = ",".join(f"{key}:{number(value)}" for key, value in zip(keys, values[row], strict=True))
                message = f'{{"episode":{episode.index},"time_s":{number(time_s)},"values":{{{numbers}}}}}'
                writer.add_message(topics[name], time_ns, message.encode(), time_ns, sequence=row)
            for child, position, turn in frames:
                message = _transform(child, episode[position][row], episode[turn][row] if turn else _UPRIGHT, time_ns)
                if message is not None:
                    writer.add_message(places, time_ns, message.encode(), time_ns, sequence=row)
    writer.finish()
    write_bytes(out, buffer.getvalue())


def schema(channel: Channel) -> dict[str, object]:
    """Describe a channel's messages."""
    value = {"type": ["number", "null"], "description": f"{channel.unit}, frame {channel.frame}"}
    return {
        "type": "object",
        "title": channel.name,
        "description": f"{channel.unit}, frame {channel.frame}, clock {channel.clock}, {channel.stamp}",
        "properties": {
            "episode": {"type": "integer"},
            "time_s": {"type": ["number", "null"], "description": "seconds from the start of the episode"},
            "values": {"type": "object", "properties": dict.fromkeys(channel.columns, value)},
        },
        "required": ["episode", "time_s", "values"],
    }


def _frames(channels: tuple[Channel, ...]) -> list[tuple[str, str, str | None]]:
    """Name of a frame, the channel of its position, and that of its orientation where there is one."""
    turns = {each.name for each in channels if each.is_quaternion and each.frame == "world"}
    places = (each.name for each in channels if each.unit == "m" and each.frame == "world" and each.width == 3)
    found = []
    for name in places:
        turn = name.replace("position", "orientation")
        found.append((name.removesuffix("_position"), name, turn if turn in turns else None))
    return found


def _transform(child: str, position: np.ndarray, turn: np.ndarray, time_ns: int) -> str | None:
    """A message of a frame's place in the world; None where it was not measured."""
    if not (np.isfinite(position).all() and np.isfinite(turn).all() and np.any(turn)):
        return None
    w, x, y, z = map(float, turn)
    return json.dumps(
        {
            "timestamp": {"sec": time_ns // 10**9, "nsec": time_ns % 10**9},
            "parent_frame_id": "world",
            "child_frame_id": child,
            "translation": dict(zip("xyz", map(float, position), strict=True)),
            "rotation": {"x": x, "y": y, "z": z, "w": w},
        }
    )


def number(value: float) -> str:
    """Write a float64 as JSON that reads back the same; null for NaN."""
    if np.isfinite(value):
        return repr(float(value))
    return "null" if np.isnan(value) else f"{'-' if value < 0 else ''}1e999"


def _register(writer: Writer, channel: Channel) -> int:
    described = json.dumps(schema(channel), sort_keys=True).encode()
    identity = writer.register_schema(f"rsr.{channel.name}", "jsonschema", described)
    words = {name: str(getattr(channel, name)) for name in ("unit", "frame", "clock", "stamp")}
    return writer.register_channel(
        f"/{channel.name}", "json", identity, words | {"columns": json.dumps(channel.columns)}
    )


def _register_frames(writer: Writer) -> int:
    described = json.dumps(_FRAME_TRANSFORM, sort_keys=True).encode()
    return writer.register_channel(
        "/tf", "json", writer.register_schema("foxglove.FrameTransform", "jsonschema", described)
    )
