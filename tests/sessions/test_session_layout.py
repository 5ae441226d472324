"""The files follow LeRobotDataset v3.0, and lerobot itself reads them where it is installed."""

import importlib.util
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_sessions import CHANNELS, DT_S, make_session

from rsr.sessions import write_session

ROWS = 21
FEATURES = {
    "joint_position": "observation.joint_position",
    "joint_setpoint": "command.joint_setpoint",
    "action": "action",
    "block_position": "observation.block_position",
    "block_orientation": "observation.block_orientation",
    "clipped": "command.clipped",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_session(tmp_path_factory.mktemp("layout"), make_session(rows=ROWS))


@pytest.fixture(scope="module")
def info(folder):
    return json.loads((folder / "meta/info.json").read_text())


def test_info_describes_the_dataset(folder, info):
    assert info["codebase_version"] == "v3.0"
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"], info["fps"]) == (3, 3 * ROWS, 1, 20)
    assert isinstance(info["fps"], int)
    assert info["splits"] == {"train": "0:3"}
    assert (folder / info["data_path"].format(chunk_index=0, file_index=0)).is_file()
    for channel in CHANNELS:
        feature = info["features"][FEATURES[channel.name]]
        assert feature == {"dtype": "float64", "shape": [channel.width], "names": list(channel.columns)}


def test_data_has_the_declared_types_and_the_standard_columns(folder, info):
    data = pq.read_table(folder / "data/chunk-000/file-000.parquet")
    assert data.column_names == list(info["features"])
    for name, feature in info["features"].items():
        dtype = pa.type_for_alias(feature["dtype"].replace("float64", "double").replace("float32", "float"))
        width = feature["shape"][0]
        assert data.schema.field(name).type == (dtype if width == 1 else pa.list_(dtype, width))
    assert data["index"].to_pylist() == list(range(3 * ROWS))
    assert data["frame_index"].to_pylist() == [*range(ROWS)] * 3
    assert data["episode_index"].to_pylist() == [0] * ROWS + [1] * ROWS + [2] * ROWS
    assert set(data["task_index"].to_pylist()) == {0}
    np.testing.assert_array_equal(data["timestamp"], np.tile(np.arange(ROWS) * DT_S, 3).astype(np.float32))
    session = make_session(rows=ROWS)
    recorded = np.concatenate([episode["action"] for episode in session.episodes])
    np.testing.assert_array_equal(np.array(data["action"].to_pylist()), recorded)


def test_each_episode_is_one_row_group(folder):
    file = pq.ParquetFile(folder / "data/chunk-000/file-000.parquet")
    assert file.num_row_groups == 3
    assert set(file.read_row_group(1)["episode_index"].to_pylist()) == {1}


def test_episodes_say_where_their_frames_are(folder):
    episodes = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [row["episode_index"] for row in episodes] == [0, 1, 2]
    assert [row["length"] for row in episodes] == [ROWS] * 3
    assert [row["dataset_from_index"] for row in episodes] == [0, ROWS, 2 * ROWS]
    assert [row["dataset_to_index"] for row in episodes] == [ROWS, 2 * ROWS, 3 * ROWS]
    assert all(row["tasks"] == ["push_cube"] for row in episodes)
    places = ("data/chunk_index", "data/file_index", "meta/episodes/chunk_index", "meta/episodes/file_index")
    assert all(row[place] == 0 for row in episodes for place in places)
    action = make_session(rows=ROWS).episodes[2]["action"]
    np.testing.assert_allclose(episodes[2]["stats/action/mean"], action.mean(axis=0), rtol=1e-12)


def test_statistics_are_those_of_the_recording(folder):
    statistics = json.loads((folder / "meta/stats.json").read_text())
    values = np.concatenate([episode["block_position"] for episode in make_session(rows=ROWS).episodes])
    found = statistics["observation.block_position"]
    assert found["count"] == [3 * ROWS]
    for name, expected in {"min": values.min(0), "max": values.max(0), "std": values.std(0)}.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12)
    np.testing.assert_allclose(found["q90"], np.quantile(values, 0.9, axis=0), rtol=1e-12)


def test_the_task_is_the_index_that_pandas_looks_for(folder):
    tasks = pq.read_table(folder / "meta/tasks.parquet")
    assert tasks.to_pydict() == {"task_index": [0], "__index_level_0__": ["push_cube"]}
    assert json.loads(tasks.schema.metadata[b"pandas"])["index_columns"] == ["__index_level_0__"]


@pytest.mark.filterwarnings("default")
def test_lerobot_reads_it(folder):
    """Runs where the extra [robot] is installed (an environment of its own: it needs an older torch)."""
    if importlib.util.find_spec("lerobot") is None:
        pytest.skip("needs lerobot 0.4 (pip install rsr[robot])")
    from lerobot.datasets import lerobot_dataset as lerobot

    history = {"action": [-DT_S, 0.0, DT_S]}
    dataset = lerobot.LeRobotDataset("local/session", root=folder, video_backend="pyav", delta_timestamps=history)
    assert (len(dataset), dataset.num_episodes, dataset.fps) == (3 * ROWS, 3, 20)
    session, frame = make_session(rows=ROWS), dataset[ROWS + 5]
    assert frame["task"] == "push_cube"
    for channel, feature in FEATURES.items():
        recorded = session.episodes[1][channel][5]
        expected = session.episodes[1][channel][4:7] if channel == "action" else recorded
        np.testing.assert_array_equal(np.squeeze(frame[feature].numpy()), np.squeeze(expected.astype(np.float32)))
