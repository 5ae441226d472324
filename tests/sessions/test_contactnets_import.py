"""The authors' own files and the parquet table of them give the same tosses, in SI units and the stated frames."""

import numpy as np
import pytest
import torch

from rsr.common.errors import SessionError
from rsr.scenarios import load_scenario
from rsr.sessions import check_session, read_session, write_session
from rsr.sessions.importers import read_contactnets
from rsr.sessions.importers.contactnets import CHANNELS, HALF_WIDTH_M, NOTES
from tests.shared_data import shared_data, tosses


def toss(rows: int = 12, yaw: float = 0.0, height: float = 3.0) -> torch.Tensor:
    """A tensor as the authors store it: a body in even motion, the whole world turned by `yaw`."""
    time_s = np.arange(rows) / 148
    state = np.zeros((rows, 19))
    across = np.stack([1 + 20 * time_s, 2 - 10 * time_s], axis=1)
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    state[:, :2] = across @ turn.T
    state[:, 2] = height - 5 * time_s
    state[:, 3], state[:, 6] = np.cos(yaw / 2), np.sin(yaw / 2)
    state[:, 7:9] = np.array([20.0, -10.0]) @ turn.T
    state[:, 9] = -5
    return torch.tensor(state)[None]


def save(folder, tensors: dict[str, torch.Tensor]):
    for name, tensor in tensors.items():
        torch.save(tensor, folder / f"{name}.pt")
    return folder


def test_units_clock_and_order(tmp_path):
    session = read_contactnets(save(tmp_path, {"10": toss(15, height=3.5), "2": toss()}))
    assert [e.tags["toss"] for e in session.episodes] == ["2", "10"]
    first = session.episodes[0]
    np.testing.assert_allclose(first["cube_position"][0], np.array([1, 2, 3]) * HALF_WIDTH_M)
    np.testing.assert_allclose(first["linear_velocity"][0], np.array([20, -10, -5]) * HALF_WIDTH_M)
    np.testing.assert_allclose(np.diff(first["cube_position"], axis=0) * 148, first["linear_velocity"][1:], atol=1e-12)
    np.testing.assert_allclose(first.time_s, np.arange(12) / 148)
    assert not session.card.simulated
    assert "half a frame late" in session.card.notes


def test_a_throw_under_another_yaw_is_recognised(tmp_path):
    """Heights are what turning about the vertical leaves alone."""
    tensors = {"0": toss(), "1": toss(yaw=2.0), "2": toss(height=3.2), "3": toss(20)}
    session = read_contactnets(save(tmp_path, tensors))
    assert [e.tags["physical_toss"] for e in session.episodes] == ["0", "0", "2", "3"]


def test_channels_are_those_of_the_scenario():
    assert load_scenario("cube_toss").channels == CHANNELS


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: None, "got no files 0.pt, 1.pt, ..."),
        (lambda folder: (folder / "0.pt").write_bytes(b"nonsense"), "0.pt: got content that cannot be read"),
        (lambda folder: torch.save(torch.zeros(3, 5), folder / "0.pt"), "expected a tensor [1, T, 19]"),
    ],
)
def test_what_is_no_toss_is_named(tmp_path, spoil, message):
    spoil(tmp_path)
    with pytest.raises(SessionError) as caught:
        read_contactnets(tmp_path)
    assert message in str(caught.value)


def test_source_files_equal_the_parquet_table():
    """The table is float32; beyond that rounding nothing differs."""
    from_source = read_contactnets(shared_data("cube_tosses_source"))
    table = {episode.tags["toss"]: episode for episode in tosses().episodes}
    assert len(from_source.episodes) == 3
    for episode in from_source.episodes:
        same = table[episode.tags["toss"]]
        np.testing.assert_array_equal(episode.time_s, same.time_s)
        for channel in CHANNELS:
            np.testing.assert_array_equal(episode[channel.name].astype(np.float32), same[channel.name])


def test_throws_found_by_height_are_those_of_the_table():
    from rsr.sessions.importers.contactnets import _throw

    earlier: list = []
    found = [_throw(e.tags["toss"], e["cube_position"][:, 2], earlier) for e in tosses().episodes]
    assert found == [e.tags["physical_toss"] for e in tosses().episodes]
    assert (len(found), len(set(found))) == (389, 367)


def test_recorded_tosses_pass_the_checks_and_can_be_stored(tmp_path):
    session = tosses()
    check_session(session, load_scenario("cube_toss").channels)
    read = read_session(write_session(tmp_path, session))
    assert read.card.notes == NOTES
    assert [e.tags for e in read.episodes] == [e.tags for e in session.episodes]


def test_angular_velocity_is_in_the_frame_of_the_body():
    """In flight the rotation from frame to frame agrees with it; in the world's frame it would be 2 rad/s off."""
    from rsr.scenarios import difference

    apart = []
    for episode in tosses().episodes[:100]:
        turned = difference("quaternion", episode["cube_orientation"][:7], episode["cube_orientation"][1:8])
        apart.append(np.linalg.norm(turned * 148 - episode["angular_velocity"][1:8], axis=1))
    assert np.median(apart) < 0.1
