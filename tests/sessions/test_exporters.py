"""What is exported reads back equal, by the formats' own libraries; nothing is overwritten nor left half done."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from mcap import reader as mcap_reader
from sample_sessions import make_session, with_values

from rsr.common.errors import ConfigError, SessionError, WorkspaceError
from rsr.sessions import Card, Channel, Episode, Session, read_session
from rsr.sessions._lerobot_v3 import decode_card
from rsr.sessions.exporters import EXPORTERS, export_session

NAMES = st.text("abcxyz_0123456789", min_size=1, max_size=6).map(lambda name: f"c{name}")


@st.composite
def _sessions(draw):
    """Sessions with any numbers, NaN and infinities among them, and any column names."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    words = st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True).map(tuple)
    stamps = st.sampled_from(("at_sample", "held_until_next"))
    channels = tuple(Channel(name, draw(words), "m", "world", "camera", draw(stamps)) for name in names)
    episodes = []
    for index in range(draw(st.integers(1, 3))):
        rows = draw(st.integers(1, 5))
        time_s = draw(arrays.arrays(float, rows, elements=st.floats(allow_nan=True, width=64)))
        values = {each.name: draw(arrays.arrays(float, (rows, each.width), elements=st.floats())) for each in channels}
        episodes.append(Episode(index, time_s, values, {"word": draw(st.text(max_size=5))}))
    card = Card("made", "any", "stand_in", simulated=True, control_dt_s=0.05, notes=draw(st.text(max_size=10)))
    return Session(card, channels, tuple(episodes))


def _from_mcap(path: Path) -> Session:
    """Read with mcap's own reader: card, channels, and every number."""
    with path.open("rb") as stream:
        reader = mcap_reader.make_reader(stream, validate_crcs=True)
        (attachment,) = reader.iter_attachments()
        card, channels, tags = decode_card(attachment.data)
        found: dict[int, dict] = {}
        for schema, topic, message in reader.iter_messages(log_time_order=False):
            assert (schema.encoding, topic.message_encoding) == ("jsonschema", "json")
            content = json.loads(message.data)
            if schema.name == "foxglove.FrameTransform":
                continue
            rows = found.setdefault(content["episode"], {}).setdefault(topic.topic[1:], [])
            rows.append((content["time_s"], list(content["values"].values())))
    episodes = []
    for index, topics in sorted(found.items()):
        time_s = np.array([time_s for time_s, _ in next(iter(topics.values()))], float)
        values = {name: np.array([numbers for _, numbers in rows], float) for name, rows in topics.items()}
        episodes.append(Episode(index, time_s, values, tags[index] if tags else {}))
    return Session(card, channels, tuple(episodes))


def _assert_equal(found: Session, session: Session) -> None:
    assert (found.card, found.channels) == (session.card, session.channels)
    assert len(found.episodes) == len(session.episodes)
    for one, other in zip(found.episodes, session.episodes, strict=True):
        assert (one.index, dict(one.tags)) == (other.index, dict(other.tags))
        np.testing.assert_array_equal(one.time_s, other.time_s)
        for channel in session.channels:
            np.testing.assert_array_equal(one[channel.name], other[channel.name])


def test_mcap_reads_back_equal(tmp_path):
    session = make_session()
    _assert_equal(_from_mcap(export_session(session, "mcap", tmp_path / "session.mcap")), session)


def test_what_has_a_place_in_the_world_is_a_frame_of_foxglove(tmp_path):
    time_s = np.array([0.0, 0.1])
    channels = (
        Channel("block_position", ("x", "y", "z"), "m", "world"),
        Channel("block_orientation", ("qw", "qx", "qy", "qz"), "1", "world"),
        Channel("goal", ("x", "y", "z"), "m", "world"),
        Channel("arm", ("a", "b", "c"), "rad", "joint"),
    )
    values = {
        "block_position": np.array([[1.0, 2.0, 3.0], [np.nan, 2.0, 3.0]]),
        "block_orientation": np.tile([0.8, 0.0, 0.0, 0.6], (2, 1)),
        "goal": np.ones((2, 3)),
        "arm": np.zeros((2, 3)),
    }
    card = Card("made", "any", "stand_in", simulated=True, control_dt_s=0.1)
    path = export_session(Session(card, channels, (Episode(0, time_s, values),)), "mcap", tmp_path / "a.mcap")
    with path.open("rb") as stream:
        messages = list(mcap_reader.make_reader(stream).iter_messages(topics=["/tf"]))
    assert {schema.name for schema, _, _ in messages} == {"foxglove.FrameTransform"}
    found = [json.loads(message.data) for _, _, message in messages]
    assert [each["child_frame_id"] for each in found] == ["block", "goal", "goal"]  # a gap is no place
    assert found[0] == {
        "timestamp": {"sec": 0, "nsec": 0},
        "parent_frame_id": "world",
        "child_frame_id": "block",
        "translation": {"x": 1.0, "y": 2.0, "z": 3.0},
        "rotation": {"x": 0.0, "y": 0.0, "z": 0.6, "w": 0.8},
    }
    assert found[2]["timestamp"] == {"sec": 0, "nsec": 100_000_000}
    assert found[2]["rotation"]["w"] == 1.0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(session=_sessions())
def test_whatever_is_recorded_reads_back_from_mcap(session, tmp_path_factory):
    path = tmp_path_factory.mktemp("mcap") / "session.mcap"
    _assert_equal(_from_mcap(export_session(session, "mcap", path)), session)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(session=_sessions())
def test_whatever_is_recorded_reads_back_from_lerobot(session, tmp_path_factory):
    folder = export_session(session, "lerobot", tmp_path_factory.mktemp("lerobot") / "dataset")
    _assert_equal(read_session(folder), session)
    table = pq.read_table(folder / "data/chunk-000/file-000.parquet")
    assert table.num_rows == sum(len(episode) for episode in session.episodes)


def test_schemas_describe_the_messages(tmp_path):
    with export_session(make_session(), "mcap", tmp_path / "session.mcap").open("rb") as stream:
        summary = mcap_reader.make_reader(stream).get_summary()
    schemas = {each.name: json.loads(each.data) for each in summary.schemas.values()}
    described = schemas["rsr.block_position"]
    assert list(described["properties"]["values"]["properties"]) == ["x", "y", "z"]
    assert "m, frame world, clock camera, at_sample" in described["description"]
    topics = {each.topic: each.metadata for each in summary.channels.values()}
    assert json.loads(topics["/joint_position"]["columns"]) == [f"joint{number}" for number in range(1, 7)]
    assert summary.statistics.message_count == 3 * 21 * (6 + 1)  # and the block as a frame


def test_episodes_follow_each_other_on_the_time_axis(tmp_path):
    with export_session(make_session(), "mcap", tmp_path / "session.mcap").open("rb") as stream:
        messages = mcap_reader.make_reader(stream).iter_messages(["/clipped"])
        times_ns = [message.log_time for _, _, message in messages]
    assert times_ns[:3] == [0, 50_000_000, 100_000_000]
    assert times_ns[21] == 2_000_000_000
    assert times_ns == sorted(times_ns)


def test_equal_sessions_give_equal_bytes(tmp_path):
    first, second = (export_session(make_session(), "mcap", tmp_path / name) for name in ("one.mcap", "two.mcap"))
    assert first.read_bytes() == second.read_bytes()


def test_our_importer_reads_our_mcap(tmp_path):
    from rsr.sessions.importers.formats import open_recording

    session = make_session()
    recording = open_recording(export_session(session, "mcap", tmp_path / "session.mcap"))
    streams = {stream.name.strip("/"): stream for stream in recording.streams}
    assert set(streams) == {channel.name for channel in session.channels}
    columns = streams["block_position"].columns
    head = streams["block_position"].head.values
    expected = np.concatenate([episode["block_position"] for episode in session.episodes])
    for index, name in enumerate("xyz"):
        place = next(place for place, column in enumerate(columns) if column.split(".")[-1].split("/")[-1] == name)
        np.testing.assert_array_equal(head[: len(expected), place], expected[: len(head), index])


def test_rerun_reads_back_equal(tmp_path):
    from rerun.chunk import RrdReader

    session = make_session()
    simulated = [{"block_position": episode["block_position"] + 0.01} for episode in session.episodes]
    path = export_session(session, "rrd", tmp_path / "session.rrd", simulated)
    found: dict[str, list] = {}
    for chunk in RrdReader(path).stream():
        batch = chunk.to_record_batch()
        for name in batch.schema.names:
            if name.endswith("scalars"):
                column = [value[0] for value in batch.column(name).to_pylist()]
                found.setdefault(str(chunk.entity_path).strip("/"), []).extend(column)
    expected = np.concatenate([episode["block_position"][:, 0] for episode in session.episodes])
    np.testing.assert_array_equal(np.sort(found["real/block_position/x"]), np.sort(expected))
    np.testing.assert_array_equal(np.sort(found["simulated/block_position/x"]), np.sort(expected + 0.01))
    assert "simulated/joint_position/joint1" not in found


@pytest.mark.parametrize("form", ["lerobot", "mcap"])
def test_nothing_is_overwritten_and_nothing_left_behind(tmp_path, form):
    out = tmp_path / "there"
    out.write_text("precious")
    with pytest.raises(WorkspaceError, match="something there already"):
        export_session(make_session(), form, out)
    assert out.read_text() == "precious"
    broken = with_values(make_session(), 0, action=np.zeros((3, 6)))
    with pytest.raises(SessionError, match="got values of shape"):
        export_session(broken, form, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_unwritable_places_are_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("no folder")
    for form in ("lerobot", "mcap"):
        with pytest.raises(WorkspaceError):
            export_session(make_session(), form, blocker / "below")


def test_unknown_formats_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="got format 'csv'; expected one of lerobot, mcap, rrd"):
        export_session(make_session(), "csv", tmp_path / "x")
    with pytest.raises(ConfigError, match="expected format 'rrd'"):
        export_session(make_session(), "mcap", tmp_path / "x", simulated=[{}])


@pytest.mark.parametrize(("form", "library", "extra"), [("mcap", "mcap", "ros"), ("rrd", "rerun", "rerun")])
def test_a_missing_library_names_its_extra(tmp_path, monkeypatch, form, library, extra):
    monkeypatch.setitem(sys.modules, library, None)  # what an import then meets is what it meets where it is missing
    with pytest.raises(ConfigError) as raised:
        export_session(make_session(), form, tmp_path / "x")
    assert f"got no library '{library}'" in str(raised.value)
    assert f'pip install "rsr[{extra}]"' in str(raised.value)


def test_every_exporter_is_listed():
    assert list(EXPORTERS) == ["lerobot", "mcap", "rrd"]


def test_long_stamps_do_not_break_the_axis(tmp_path):
    session = make_session()
    odd = replace(session.episodes[0], time_s=np.concatenate([[np.nan, -1e300, 1e300], np.arange(18.0)]))
    _assert_equal(
        _from_mcap(export_session(replace(session, episodes=(odd,)), "mcap", tmp_path / "x.mcap")),
        replace(session, episodes=(odd,)),
    )
