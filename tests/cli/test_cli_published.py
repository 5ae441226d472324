"""`rsr data get`: published recordings, and clear words where they cannot be had."""

from __future__ import annotations

from rsr.cli import main


def test_an_unknown_set_is_answered_with_the_known_ones(tmp_path, capsys):
    assert main(["data", "get", "cubes", "--root", str(tmp_path)]) == 2
    assert "got published set 'cubes'; expected one of contactnets, double-pendulum" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_network_it_says_where_the_recordings_are(tmp_path, capsys):
    assert main(["data", "get", "double-pendulum", "--root", str(tmp_path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "no connection to api.github.com" in error
    assert "https://github.com/dfki-ric-underactuated-lab/double_pendulum" in error
