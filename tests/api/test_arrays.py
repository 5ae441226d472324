"""Runs as arrays: what is accepted, and the words for what is not."""

from __future__ import annotations

import numpy as np
import pytest

import rsr
from rsr.common.errors import SessionError
from tests.api.two_joints import ARM, record

ONE_JOINT = """
<mujoco model="swing">
  <option timestep="0.005"/>
  <worldbody><body><joint name="hinge" axis="0 1 0" damping="0.1"/><geom size="0.05" pos="0.2 0 0"/></body></worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("arrays") / "arm.xml"
    path.write_text(ARM)
    return rsr.Scenario.from_mjcf(
        path,
        dt=0.01,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.002)},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune={"damping": rsr.scale("joint.damping")},
    )


def runs(count=3):
    return [{"q": q, "u": u} for q, u in record(count, seed=0, seconds=0.3)]


def test_runs_of_unequal_length_become_episodes_in_their_order(arm):
    given = runs()
    session = rsr.session_from_arrays(arm, given)
    assert [len(episode) for episode in session.episodes] == [30, 40, 50]
    assert np.array_equal(session.episodes[2]["q"], given[2]["q"])
    assert session.episodes[1].time_s[-1] == pytest.approx(0.39)


def test_a_session_of_arrays_is_stored_and_read_back(arm, tmp_path):
    session = rsr.session_from_arrays(arm, runs(), name="monday")
    again = rsr.read_session(rsr.write_session(tmp_path, session))
    assert again.card == session.card
    assert np.array_equal(again.episodes[0]["u"], session.episodes[0]["u"])


def test_lists_and_float32_are_arrays_too(arm):
    given = [{"q": run["q"].tolist(), "u": run["u"].astype(np.float32)} for run in runs()]
    session = rsr.session_from_arrays(arm, given)
    assert session.episodes[0]["u"].dtype == np.float64


def test_one_column_may_be_given_without_a_second_axis(tmp_path):
    (tmp_path / "swing.xml").write_text(ONE_JOINT)
    swing = rsr.Scenario.from_mjcf(
        tmp_path / "swing.xml",
        dt=0.01,
        measured={"angle": rsr.joints("hinge", noise=0.001)},
        tune={"damping": rsr.scale("joint.damping")},
    )
    assert rsr.session_from_arrays(swing, [{"angle": np.zeros(20)}]).episodes[0]["angle"].shape == (20, 1)


def test_the_callers_arrays_stay_theirs(arm):
    given = runs()
    session = rsr.session_from_arrays(arm, given)
    given[0]["q"][0, 0] = 7.0
    assert session.episodes[0]["q"][0, 0] != 7.0


def without(run, name):
    return {key: value for key, value in run.items() if key != name}


def with_nan(run):
    q = run["q"].copy()
    q[4, 1] = np.nan
    return {**run, "q": q}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda run: {**without(run, "q"), "qq": run["q"]}, "run 0: got channel 'qq'; expected 'q'"),
        (lambda run: {**run, "torque": run["q"]}, "run 0: got channel 'torque'; expected one of q, u"),
        (lambda run: without(run, "u"), "run 0: got no u; expected all of q, u"),
        (lambda run: {**run, "q": run["q"][:, :1]}, r"channel 'q': got an array of shape \(30, 1\); expected \[T, 2\]"),
        (lambda run: {**run, "q": run["q"].T}, r"got an array of shape \(2, 30\).*Transpose it"),
        (lambda run: {**run, "q": run["q"][:, 0]}, r"got an array of shape \(30,\); .*shoulder, elbow"),
        (with_nan, r"got nan in row 4, column elbow \(1 such values\); expected finite numbers"),
        (lambda run: {**run, "u": run["u"][:-1]}, "got q with 30 rows, u with 29 rows; expected channels of equal"),
        (
            lambda run: {**run, "q": [["a", "b"]] * 30},
            "could not convert string to float.*expected an array of numbers",
        ),
        (lambda run: {key: value[:1] for key, value in run.items()}, "run 0: got 1 rows; expected at least 2"),
        (lambda run: (run["q"], run["u"]), "run 0: got tuple; expected a mapping from channels to arrays"),
    ],
)
def test_a_bad_run_is_refused_in_words(arm, damage, words):
    first, *others = runs()
    with pytest.raises(SessionError, match=words):
        rsr.session_from_arrays(arm, [damage(first), *others])


def test_one_run_without_its_list_is_refused(arm):
    with pytest.raises(SessionError, match="got one mapping; expected a list of runs"):
        rsr.calibrate(arm, runs()[0], progress=False)


def test_no_runs_are_refused(arm):
    with pytest.raises(SessionError, match="got no runs; expected a list of runs"):
        rsr.calibrate(arm, [], progress=False)
