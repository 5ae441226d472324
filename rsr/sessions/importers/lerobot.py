"""LeRobotDataset v3.0 and v2.1, read with pyarrow alone: features of numbers are streams, episodes are parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rsr.common import hash_bounded, inside, read_bounded, read_object, short
from rsr.sessions import stretches
from rsr.sessions._lerobot_v3 import CARD_FILE, CHECKSUM_FILE, decode_card, feature_name
from rsr.sessions.importers.recording import (
    Format,
    Recording,
    Samples,
    Stream,
    Wanted,
    check_size,
    listed,
    printable,
    unreadable,
)

_INFO = "meta/info.json"
_VERSIONS = ("v2.0", "v2.1", "v3.0")
_OWN = {"timestamp", "frame_index", "episode_index", "index", "task_index", "time_s", "next.done"}
_LARGEST_DATA = 1 << 40
_ON_TIME = 0.1
"""Share of a frame that float32 stamps may miss the frame's number by; within it the number is the better stamp."""


@dataclass(frozen=True)
class _Feature:
    name: str
    columns: tuple[str, ...]
    named: bool


def open_lerobot(path: Path) -> Recording:
    """Open a dataset's folder. Files that are damaged are left out, with the episodes in them."""
    _check_sums(path)
    info = _info(path)
    features = _features(path, info)
    damage: list[str] = []
    places = _episodes(path, damage)
    if not places:
        raise unreadable(path, f"no episode that can be read {'; '.join(damage[:3])}", "data/chunk-000/*.parquet")
    expected = info.get("total_episodes")
    if isinstance(expected, int) and expected != len(places):
        damage.append(f"{len(places)} episodes can be read of {expected} that info.json promises")
    fps = _fps(path, info)
    units = _units(path)
    first = next(iter(places))
    head = _load(path, places[first], {feature.name: feature.columns for feature in features}, features, fps)
    streams = tuple(
        Stream(
            feature.name,
            feature.columns,
            head[feature.name].head(),
            feature.named,
            dict.fromkeys(feature.columns, units[feature.name]) if feature.name in units else {},
            ("timestamp",),
        )
        for feature in features
    )

    def load(part: str, wanted: Wanted, clock: str) -> dict[str, Samples]:
        return _load(path, places[part], wanted, features, fps)

    return Recording("lerobot", path, tuple(places), streams, load, quaternion=None, damage=tuple(damage))


def _check_sums(path: Path) -> None:
    """Sets that are our own sessions have checksums."""
    if not (path / CHECKSUM_FILE).is_file():
        return
    for name, expected in read_object(inside(path, CHECKSUM_FILE))["files"].items():
        if name.startswith("data/") and hash_bounded(inside(path, name), _LARGEST_DATA) != expected:
            raise unreadable(path / name, "bytes that do not match their checksum", "the file as it was written")


def _info(path: Path) -> dict[str, Any]:
    file = inside(path, _INFO)
    info = read_object(file)
    version = info.get("codebase_version")
    if version not in _VERSIONS:
        raise unreadable(
            file,
            f"LeRobotDataset {short(version)}",
            f"one of {', '.join(_VERSIONS)}",
            "Convert it with LeRobot's own script (lerobot.datasets.v30.convert_dataset_v21_to_v30).",
        )
    return info


def _fps(path: Path, info: dict[str, Any]) -> float:
    fps = float(info["fps"])
    if not (np.isfinite(fps) and fps > 0):
        raise unreadable(path / _INFO, f"fps {fps}", "a positive number")
    return fps


def _features(path: Path, info: dict[str, Any]) -> tuple[_Feature, ...]:
    """Features of numbers [C]; images and words are no streams."""
    found = []
    for name, described in info["features"].items():
        shape = described.get("shape") or []
        if name in _OWN or not str(described.get("dtype")).startswith(("float", "int")) or len(shape) != 1:
            continue
        check_size(path, 0, int(shape[0]))
        names = described.get("names")
        if isinstance(names, dict):
            names = next((value for value in names.values() if isinstance(value, list)), None)
        if isinstance(names, list) and len(names) == 1 and isinstance(names[0], list):
            names = names[0]  # some recorders write the list in a list
        given = tuple(map(str, names)) if isinstance(names, list) else ()
        named = len(set(given)) == len(given) == int(shape[0])
        columns = given if named else tuple(str(index) for index in range(int(shape[0])))
        found.append(_Feature(name, columns, named))
    if not found:
        raise unreadable(path / _INFO, "no feature of numbers", "observation.state, action, ...")
    return tuple(found)


def _units(path: Path) -> dict[str, str]:
    """Feature -> unit, where the set is one of our own sessions."""
    try:
        _, channels, _ = decode_card(read_bounded(inside(path, CARD_FILE)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {feature_name(channel): channel.unit for channel in channels}


def _episodes(path: Path, damage: list[str]) -> dict[str, list[tuple[Path, int, int]]]:
    """Episode -> its rows [start, stop) in files, in the order of episodes."""
    places: dict[int, list[tuple[Path, int, int]]] = {}
    for file in sorted((path / "data").rglob("*.parquet")):
        try:
            check_size(file, pq.ParquetFile(file).metadata.num_rows, 1)
            index = (
                pq.ParquetFile(file, page_checksum_verification=True)
                .read(columns=["episode_index"])["episode_index"]
                .to_numpy()
            )
        except (OSError, ValueError, KeyError, MemoryError, pa.ArrowException) as error:
            damage.append(f"{file.relative_to(path)} cannot be read: {printable(' '.join(str(error).split()), 150)}")
            continue
        for rows in stretches(np.diff(index) != 0) if len(index) else ():
            places.setdefault(int(index[rows.start]), []).append((file, rows.start, rows.stop))
    return {str(index): places[index] for index in sorted(places)}


def _load(
    path: Path, rows: list[tuple[Path, int, int]], wanted: Wanted, features: tuple[_Feature, ...], fps: float
) -> dict[str, Samples]:
    known = {feature.name: feature for feature in features}
    blocks: list[pa.Table] = []
    for file, start, stop in rows:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        there = set(parquet.schema_arrow.names)
        missing = [name for name in wanted if name not in there]
        if missing:
            raise unreadable(file, f"no column {listed(missing)}", "the features of info.json")
        stamps = [name for name in ("time_s", "timestamp", "frame_index") if name in there]
        blocks.append(parquet.read(columns=[*wanted, *stamps], use_threads=False).slice(start, stop - start))
    table = pa.concat_tables(blocks)
    time_s = _times_s(table, fps)
    return {
        name: Samples(time_s, _values(path, table[name], known[name])).taken(known[name].columns, columns)
        for name, columns in wanted.items()
    }


def _values(path: Path, column: pa.ChunkedArray, feature: _Feature) -> np.ndarray:
    width = len(feature.columns)
    flat = column.combine_chunks()
    if pa.types.is_list(flat.type) or pa.types.is_large_list(flat.type) or pa.types.is_fixed_size_list(flat.type):
        flat = flat.flatten()
    if len(flat) != width * len(column):
        raise unreadable(path, f"{len(flat)} numbers in {len(column)} rows of {feature.name}", f"{width} a row")
    return np.asarray(flat.to_numpy(zero_copy_only=False), float).reshape(len(column), width)


def _times_s(table: pa.Table, fps: float) -> np.ndarray:
    """Stamps [N] in s. LeRobot's own are float32: where they say no more than frame / fps, that is exact."""
    if "time_s" in table.column_names:
        return table["time_s"].to_numpy().astype(float)
    stamps_s = table["timestamp"].to_numpy().astype(float)
    if "frame_index" not in table.column_names:
        return stamps_s
    even_s = table["frame_index"].to_numpy() / fps
    return even_s if np.abs(stamps_s - even_s).max(initial=0.0) < _ON_TIME / fps else stamps_s


FORMAT = Format(
    "lerobot",
    "the folder of a LeRobotDataset (v2.1, v3.0)",
    lambda path: (path / _INFO).is_file() and (path / "data").is_dir(),
    open_lerobot,
)
