"""Logs of BAM: rows and numbers of the run are read; what is damaged is refused in one sentence."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest

from rsr.common.errors import RsrError
from rsr.sessions.importers.formats import open_recording

LOG = {
    "motor": "xl330",
    "kp": 400,
    "vin": 7.4,
    "arm-mass": 0.01,
    "entries": [
        {
            "timestamp": 0.005 * i,
            "position": 0.1 * i,
            "goal_position": 0.2 * i,
            "torque_enable": i < 3,
            "input_volts": 7.5,
        }
        for i in range(5)
    ],
}


def test_a_log_is_read_with_the_numbers_of_its_run(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(LOG))
    recording = open_recording(tmp_path / "run.json")
    assert recording.format == "bam"
    (stream,) = recording.streams
    assert set(stream.columns) == {
        *("position", "goal_position", "torque_enable", "input_volts", "kp", "vin", "arm_mass"),
    }
    assert stream.units["position"] == "rad"
    read = recording.load("run", {"log": ("kp", "position", "torque_enable")}, "timestamp")["log"]
    np.testing.assert_allclose(read.values[:, 0], 400)
    np.testing.assert_allclose(read.values[:, 1], 0.1 * np.arange(5))
    np.testing.assert_array_equal(read.values[:, 2], [1, 1, 1, 0, 0])


@pytest.mark.parametrize(
    "text",
    [
        '{"entries": []}',
        '{"entries": [1, 2]}',
        '{"entries": [{"timestamp": 0, "position": 1}, {"timestamp": 1}]}',
        '{"entries": [{"timestamp": 0, "position": 1}, {"timestamp": "x", "position": 1}]}',
        '["entries"',
    ],
)
def test_a_damaged_log_is_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RsrError, match="run.json"):
        open_recording(tmp_path / "run.json")


def test_five_hundred_mangled_logs_are_read_or_refused(tmp_path):
    whole, rng = json.dumps(LOG).encode(), np.random.default_rng(0)
    path = tmp_path / "run.json"
    for _ in range(500):
        mangled = bytearray(whole)
        for place in rng.integers(len(mangled), size=rng.integers(1, 8)):
            mangled[place] = rng.integers(256)
        path.write_bytes(bytes(mangled[: rng.integers(1, len(mangled) + 1)]))
        # Whatever else it raises fails the test.
        with suppress(RsrError):
            assert open_recording(path).streams
