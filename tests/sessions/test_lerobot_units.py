"""LeRobot's -100 to 100 of a motor's range becomes rad by the file that its calibration wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rsr.common.errors import ConfigError
from rsr.sessions import Channel, read_session
from rsr.sessions.ingest.lerobot_units import in_radians
from rsr.sessions.ingest.mapping import Target
from rsr.sessions.ingest.session import ingest

CALIBRATION = {
    "elbow_flex": {"id": 3, "drive_mode": 0, "homing_offset": 12, "range_min": 1024, "range_max": 3072},
    "wrist_roll": {"id": 5, "drive_mode": 1, "homing_offset": -5, "range_min": 0, "range_max": 4096},
    "gripper": {"id": 6, "drive_mode": 0, "homing_offset": 0, "range_min": 2000, "range_max": 3024},
}
COLUMNS = tuple(f"{name}.pos" for name in CALIBRATION)
ANGLES = np.stack([np.sin(np.arange(60) / 9), 2 * np.cos(np.arange(60) / 7), 0.3 * np.sin(np.arange(60) / 5)], axis=1)


def written(folder: Path, **changes: object) -> str:
    file = folder / "so101.json"
    file.write_text(json.dumps({name: {**entry, **changes} for name, entry in CALIBRATION.items()}))
    return str(file)


def shares() -> np.ndarray:
    """The angles as LeRobot says them: ticks are 4096 a turn."""
    found = []
    for angle, (name, entry) in zip(ANGLES.T, CALIBRATION.items(), strict=True):
        middle, reach = (entry["range_max"] + entry["range_min"]) / 2, entry["range_max"] - entry["range_min"]
        share = (angle * 4096 / (2 * np.pi) + middle - entry["range_min"]) / reach
        own = 100 * share if name == "gripper" else 200 * share - 100
        found.append(-own if entry["drive_mode"] else own)
    return np.stack(found, axis=1)


def test_numbers_of_each_motor_become_its_angle(tmp_path: Path) -> None:
    np.testing.assert_allclose(in_radians(written(tmp_path), COLUMNS, shares(), "q"), ANGLES, atol=1e-12)


def test_a_lerobot_set_is_ingested_by_its_calibration(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    feature = {"dtype": "float32", "shape": [3], "names": list(COLUMNS)}
    features = {"observation.state": feature, "action": feature}
    info = {"codebase_version": "v3.0", "fps": 30, "total_episodes": 1, "features": features}
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    rows = list(shares())
    table = {"observation.state": rows, "action": rows, "timestamp": (np.arange(60) / 30).astype(np.float32)}
    table |= {"frame_index": np.arange(60), "episode_index": np.zeros(60, int)}
    pq.write_table(pa.table(table), folder / "data" / "chunk-000" / "file-000.parquet")
    joints = tuple(CALIBRATION)
    channels = (
        Channel("joint_position", joints, "rad", "joint"),
        Channel("setpoint", joints, "rad", "joint", stamp="held_until_next"),
    )
    target = Target("arm", 1 / 30, channels, gap_channel="joint_position")
    own = {"calibration": written(tmp_path)}
    shifted = {**own, "offset": [0.5, 0.0, 0.0]}
    given = {"channels": {"joint_position": shifted, "setpoint": own}}
    found = read_session(ingest([folder], target, tmp_path / "out", given=given).folder)
    np.testing.assert_allclose(found.episodes[0]["joint_position"], ANGLES + np.array([0.5, 0, 0]), atol=1e-9)
    np.testing.assert_allclose(found.episodes[0]["setpoint"][:-1], ANGLES[:-1], atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "columns", "words"),
    [
        ({}, ("jaw.pos",), "no motor 'jaw'"),
        ({"range_min": 5000}, COLUMNS, "range_min below range_max"),
        ({"drive_mode": None}, COLUMNS, "without range_min, range_max, drive_mode"),
    ],
)
def test_another_robots_file_is_refused(tmp_path: Path, changes: dict, columns: tuple, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        in_radians(written(tmp_path, **changes), columns, shares()[:, : len(columns)], "q")
    with pytest.raises(ConfigError, match="no file"):
        in_radians(str(tmp_path / "absent.json"), COLUMNS, shares(), "q")
