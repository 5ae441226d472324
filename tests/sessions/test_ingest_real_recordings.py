"""Real recordings through the general door: what is found in them, and that they come out as by their own importer."""

from __future__ import annotations

import numpy as np
import pytest
from shared_data import shared_data, tosses

from rsr.common.errors import ConfigError
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.recorded import target_of
from rsr.sessions import read_session
from rsr.sessions.ingest.session import ingest

TOSSES = "contactnets_cube_tosses.parquet"
HALF_FRAME_S = 0.5 / 148
ANSWERS = {
    "cube_position": {"unit": "m"},
    "linear_velocity": {"delay_s": 0},
    "angular_velocity": {"unit": "rad/s", "delay_s": 0},
}


def test_the_velocities_of_the_tosses_are_found_half_a_frame_late(tmp_path):
    with pytest.raises(ConfigError, match="'linear_velocity' is stamped") as caught:
        ingest([shared_data(TOSSES)], target_of(load_scenario("cube_toss")), tmp_path)
    delay_s = [float(words.split()[0]) for words in caught.value.next_step.split("delay_s: ")[1:]]
    assert np.abs(np.array(delay_s) - HALF_FRAME_S).max() < 2e-4
    assert len(delay_s) == 2  # the angular velocity as well


def test_the_tosses_come_out_as_by_their_own_importer(tmp_path):
    target = target_of(load_scenario("cube_toss"))
    given = {"channels": ANSWERS, "time": {"column": "time_s"}}
    found = ingest([shared_data(TOSSES)], target, tmp_path, given=given, keep="hash")
    episodes = read_session(found.folder).episodes
    expected = {episode.tags["toss"]: episode for episode in tosses().episodes}
    assert [episode.tags["part"] for episode in episodes] == list(expected)
    for episode in episodes[::29]:
        own = expected[episode.tags["part"]]
        rows = len(episode)
        assert len(own) - rows <= 1  # float32 times may end a hair before the last frame
        for name in own.values:
            difference = np.abs(episode[name] - own[name][:rows])
            assert difference.max() < 2e-3 * np.abs(own[name]).max(), name
