"""`rsr calibrate` where the lab says what is fitted, what judges, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rsr.calibration import load_calibration
from rsr.cli import main
from rsr.sessions import write_session
from tests.calibration.pendulum_stand_in import swings


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two sessions of a pendulum, of four and three episodes, tagged with a gain."""
    root, made = tmp_path_factory.mktemp("controls"), []
    for name, count, seed in (("monday", 4, 0), ("tuesday", 3, 1)):
        session = swings(episodes=count, biases=False, seed=seed)[0]
        tagged = tuple(replace(each, tags={"kp": str(100 + each.index % 2)}) for each in session.episodes)
        card = replace(session.card, session=name)
        made.append(str(write_session(root, replace(session, card=card, episodes=tagged))))
    return made


def calibrate(folder, *options: str) -> int:
    given = ["--scenario", "double_pendulum", "--method", "cmaes", "--budget", "12", "--out", str(folder)]
    return main(["calibrate", *given, *options])


@pytest.mark.slow  # a fit takes seconds even with twelve points
def test_one_session_is_fitted_and_the_other_judges(folders, tmp_path, capsys):
    assert calibrate(tmp_path / "out", "--fit", folders[0], "--judge", folders[1]) == 0
    found = load_calibration(tmp_path / "out")
    assert (found.evidence.fitted, found.evidence.held_out) == ((0, 1, 2, 3), (4, 5, 6))
    assert found.status in ("budget spent", "no improvement")
    assert "gap on 3 held-out episodes" in capsys.readouterr().out


@pytest.mark.slow
def test_a_value_of_a_tag_is_held_out_whole(folders, tmp_path):
    assert calibrate(tmp_path / "out", "--sessions", folders[0], "--hold-out", "kp") == 0
    assert load_calibration(tmp_path / "out").evidence.fitted in ((0, 2), (1, 3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "got no session; expected either --sessions, or --fit together with --judge"),
        (("--fit", "A"), "got --fit; expected either --sessions, or --fit together with --judge"),
        (("--sessions", "A", "--fit", "A", "--judge", "B"), "got --sessions and --fit and --judge"),
        (("--fit", "A", "--judge", "A"), "got monday in --fit and in --judge"),
        (("--sessions", "A", "--hold-out", "colour"), "got tag 'colour'; expected one that the episodes have: kp"),
        (("--sessions", "A", "--method", "gnn", "--stratify", "kp"), "expected one of mjx, cmaes, sysid, adam"),
    ],
)
def test_options_that_contradict_each_other_are_refused(folders, tmp_path, capsys, options, words):
    named = [{"A": folders[0], "B": folders[1]}.get(option, option) for option in options]
    assert calibrate(tmp_path / "out", *named) == 2
    assert words in " ".join(capsys.readouterr().err.split())
