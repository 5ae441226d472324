"""The LeRobotDataset v3.0 layout as bytes: what each file of a stored session holds. Needs pyarrow, not lerobot.

Everything is in one data file, one row group an episode. Channels are float64: v3.0 allows any dtype that
`info.json` declares, and lerobot hands out float32 tensors in either case.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rsr.common import parse_json, short
from rsr.sessions.model import Card, Channel, Episode, Session, stretches

CARD_FILE = "meta/rsr_card.json"
CHECKSUM_FILE = "meta/rsr_checksums.json"
DATA_FILE = "data/chunk-000/file-000.parquet"
_EPISODES_FILE = "meta/episodes/chunk-000/file-000.parquet"
INFO_FILE = "meta/info.json"
_STATS_FILE = "meta/stats.json"
_TASKS_FILE = "meta/tasks.parquet"

_CARD_FORMAT = "rsr-session-1"
_MAPPINGS = ("gains", "limits")
_TAGS = "episode_tags"
_TIME = "time_s"
"""Our exact time: v3.0 fixes its own `timestamp` to float32."""
_INDEX_DTYPES = {"timestamp": "float32"} | dict.fromkeys(
    ("frame_index", "episode_index", "index", "task_index"), "int64"
)
_QUANTILES = (0.01, 0.10, 0.50, 0.90, 0.99)
_LARGEST_UNFOLDED = 480 << 20
_STATS = ("min", "max", "mean", "std", "count", *(f"q{100 * quantile:02.0f}" for quantile in _QUANTILES))


def feature_name(channel: Channel) -> str:
    """Name a channel as LeRobot does.

    LeRobot feeds every `observation.*` of a row to a policy that is to predict the row's `action`. Other commands
    in force from that row on would give the answer away, so they are `command.*`, which LeRobot leaves alone.
    """
    if channel.name == "action":
        return "action"
    return f"{'observation' if channel.stamp == 'at_sample' else 'command'}.{channel.name}"


def encode(session: Session) -> dict[str, bytes]:
    """Make every file of a session, recording first. Equal sessions give equal bytes."""
    columns = _columns(session)
    lengths = [len(episode) for episode in session.episodes]
    return {
        DATA_FILE: _parquet(pa.table({name: _to_arrow(values) for name, values in columns.items()}), lengths),
        CARD_FILE: encode_card(session),
        INFO_FILE: to_json(_info(session, lengths)),
        _STATS_FILE: to_json({name: _statistics(values) for name, values in columns.items()}),
        _TASKS_FILE: _parquet(_tasks(session.card.scenario), [1]),
        _EPISODES_FILE: _parquet(_episodes(session, columns, lengths), [len(lengths)]),
    }


def encode_card(session: Session) -> bytes:
    """Make the card alone: everything about a session that is not a time series."""
    return to_json(_card_document(session))


def decode_card(content: bytes) -> tuple[Card, tuple[Channel, ...], tuple[dict[str, str], ...]]:
    """Read the card, the channels and each episode's tags (none at all where no episode has any).

    Raises ValueError, KeyError or TypeError where they are damaged.
    """
    document = parse_json(content)
    if document["format"] != _CARD_FORMAT:
        raise ValueError(f"format {short(document['format'])} instead of {_CARD_FORMAT!r}")
    channels = []
    for described in document["channels"]:
        described.pop("feature")
        channels.append(Channel(**described | {"columns": tuple(described["columns"])}))
    card = Card(**document["card"])
    _check_types(card, channels)
    return card, tuple(channels), tuple(dict(tags) for tags in document.get(_TAGS, ()))


def _check_types(card: Card, channels: list[Channel]) -> None:
    """Raise TypeError where the card has other things than words and numbers in their places."""
    words = [value for each in channels for value in (*each.columns, *vars(each).values()) if value is not each.columns]
    words += [value for value in (card.reality, card.notes, card.robot, card.operator, card.recorded_at) if value]
    numbers = [card.control_dt_s, *card.gains.values(), *card.limits.values()]
    for kind, values in ((str, words), (int | float, numbers)):
        wrong = next((value for value in values if not isinstance(value, kind)), None)
        if wrong is not None:
            raise TypeError(f"{short(wrong)} in the card")
    if not card.control_dt_s > 0:
        raise ValueError(f"control_dt_s {card.control_dt_s:g}")


def decode_data(
    content: bytes, channels: tuple[Channel, ...], tags: tuple[dict[str, str], ...] = ()
) -> tuple[Episode, ...]:
    """Read the episodes; raises pyarrow's errors, ValueError or KeyError where the file is damaged."""
    file = pq.ParquetFile(pa.BufferReader(content))
    _check_claims(file.metadata, len(content))
    columns_read = [_TIME, "episode_index", *(feature_name(channel) for channel in channels)]
    # Without pyarrow's threads: one that lets go of Python's bytes while Python ends aborts the process.
    table = file.read(columns=columns_read, use_threads=False)
    columns = {channel.name: _to_numpy(table[feature_name(channel)], channel.width) for channel in channels}
    time_s = _to_numpy(table[_TIME], 1)[:, 0]
    index = table["episode_index"].to_numpy()
    if not len(index):
        raise ValueError("no rows")
    places = stretches(np.diff(index) != 0)
    return tuple(
        Episode(int(index[rows.start]), time_s[rows], {name: values[rows] for name, values in columns.items()}, words)
        for rows, words in zip(places, tags or [{} for _ in places], strict=True)
    )


def _check_claims(metadata: Any, size: int) -> None:
    """Refuse what is small on disk and would fill the memory; numbers of a real recording hardly get smaller."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    columns = [group.column(index) for group in groups for index in range(group.num_columns)]
    claimed = max(sum(column.num_values * 8 for column in columns), sum(c.total_uncompressed_size for c in columns))
    if claimed > max(_LARGEST_UNFOLDED, 8 * size):
        raise ValueError(f"{claimed} bytes in a file of {size}")


def summary(session: Session) -> dict[str, Any]:
    """Facts of the content in the dataset's description: whoever changes one of the two forgets the other."""
    info = _info(session, [len(episode) for episode in session.episodes])
    return {aspect: info[aspect] for aspect in ("robot_type", "total_episodes", "total_frames", "fps", "features")}


def to_json(document: Any) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _columns(session: Session) -> dict[str, np.ndarray]:
    """Stack the episodes: feature name -> [N, width]."""
    episodes = session.episodes
    lengths = [len(episode) for episode in episodes]
    time_s = np.concatenate([episode.time_s for episode in episodes]).astype(float)
    columns = {
        feature_name(channel): np.concatenate([episode[channel.name] for episode in episodes]).astype(float)
        for channel in session.channels
    }
    with np.errstate(over="ignore"):
        rounded_s = time_s.astype(np.float32)
    columns |= {
        _TIME: time_s,
        "timestamp": rounded_s,
        "frame_index": np.concatenate([np.arange(length) for length in lengths]),
        "episode_index": np.repeat([episode.index for episode in episodes], lengths),
        "index": np.arange(len(time_s)),
        "task_index": np.zeros(len(time_s), int),
    }
    return {name: values.reshape(len(time_s), -1) for name, values in columns.items()}


def _to_arrow(values: np.ndarray) -> pa.Array:
    """[N, width] -> a fixed-size list a row, or a plain number where there is one column (v3.0's rule)."""
    flat = pa.array(np.ascontiguousarray(values).ravel())
    return flat if values.shape[1] == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _to_numpy(column: pa.ChunkedArray, width: int) -> np.ndarray:
    flat = column.combine_chunks() if width == 1 else column.combine_chunks().flatten()
    if len(flat) != len(column) * width:
        raise ValueError(f"{len(flat) / max(len(column), 1):g} columns where the card says {width}")
    return np.array(flat.to_numpy(zero_copy_only=False), float).reshape(len(column), width)


def _parquet(table: pa.Table, lengths: list[int]) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="snappy", use_dictionary=False) as writer:
        start = 0
        for length in lengths:
            writer.write_table(table.slice(start, length))
            start += length
    return sink.getvalue().to_pybytes()


def _card_document(session: Session) -> dict[str, Any]:
    card = session.card
    numbers = {name: {key: float(value) for key, value in sorted(getattr(card, name).items())} for name in _MAPPINGS}
    channels = [vars(channel) | {"feature": feature_name(channel)} for channel in session.channels]
    document = {
        "format": _CARD_FORMAT,
        "card": vars(card) | numbers | {"control_dt_s": float(card.control_dt_s)},
        "channels": channels,
    }
    tags = [dict(sorted(episode.tags.items())) for episode in session.episodes]
    return document | ({_TAGS: tags} if any(tags) else {})


def _info(session: Session, lengths: list[int]) -> dict[str, Any]:
    features = {
        feature_name(channel): {"dtype": "float64", "shape": [channel.width], "names": list(channel.columns)}
        for channel in session.channels
    }
    for name, dtype in ({_TIME: "float64"} | _INDEX_DTYPES).items():
        features[name] = {"dtype": dtype, "shape": [1], "names": None}
    rate_hz = 1.0 / session.card.control_dt_s
    return {
        "codebase_version": "v3.0",
        "robot_type": session.card.robot,
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": round(rate_hz) if abs(rate_hz - round(rate_hz)) < 1e-9 * rate_hz else rate_hz,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "features": features,
    }


def _tasks(task: str) -> pa.Table:
    """One task, the scenario's name. LeRobot reads it with pandas and looks for it in the frame's index."""
    index = {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object"}
    column = {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"}
    described = {
        "index_columns": ["__index_level_0__"],
        "column_indexes": [],
        "columns": [{**column, "metadata": None}, {**index, "metadata": None}],
    }
    table = pa.table({"task_index": pa.array([0], pa.int64()), "__index_level_0__": pa.array([task])})
    return table.replace_schema_metadata({"pandas": json.dumps(described)})


def _episodes(session: Session, columns: dict[str, np.ndarray], lengths: list[int]) -> pa.Table:
    """One row an episode: where its frames are, and their statistics."""
    ends = np.cumsum(lengths)
    zeros = np.zeros(len(lengths), int)
    table = {
        "episode_index": pa.array([episode.index for episode in session.episodes]),
        "tasks": pa.array([[session.card.scenario]] * len(lengths)),
        "length": pa.array(lengths),
        "data/chunk_index": pa.array(zeros),
        "data/file_index": pa.array(zeros),
        "dataset_from_index": pa.array(ends - lengths),
        "dataset_to_index": pa.array(ends),
        "meta/episodes/chunk_index": pa.array(zeros),
        "meta/episodes/file_index": pa.array(zeros),
    }
    for name, values in columns.items():
        each = [_statistics(rows) for rows in np.split(values, ends[:-1])]
        for statistic in _STATS:
            table[f"stats/{name}/{statistic}"] = pa.array([episode[statistic] for episode in each])
    return pa.table(table)


def _statistics(values: np.ndarray) -> dict[str, list[float] | list[int]]:
    """Summarise the rows of [N, width] that are finite throughout (all zero where none is)."""
    finite = values[np.isfinite(values).all(axis=1)].astype(float)
    rows = finite if len(finite) else np.zeros((1, values.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        computed = [rows.min(axis=0), rows.max(axis=0), rows.mean(axis=0), rows.std(axis=0)]
        quantiles = np.quantile(rows, _QUANTILES, axis=0)
    numbers = [np.nan_to_num(number).tolist() for number in (*computed, *quantiles)]
    return dict(zip(_STATS, [*numbers[:4], [len(finite)], *numbers[4:]], strict=True))
