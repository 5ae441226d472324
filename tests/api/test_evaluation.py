"""Error against horizon: paired, in the channel's unit, with sensors corrected."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import rsr
from rsr.calibration import start_calibration
from rsr.common.errors import SessionError
from tests.api.two_joints import ARM, HIDDEN, NOISE, record


def arm(**tune) -> rsr.Scenario:
    return rsr.Scenario.from_mjcf(
        mujoco.MjSpec.from_string(ARM),
        dt=0.01,
        measured={"q": rsr.joints("shoulder", "elbow", noise=NOISE)},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune={"damping": rsr.scale("joint.damping"), "gain": rsr.scale("actuator.kp"), **tune},
    )


def fit_at(scenario, values):
    start = start_calibration(scenario)
    estimates = {name: replace(each, value=values.get(name, each.value)) for name, each in start.estimates.items()}
    return rsr.Fit(scenario, replace(start, estimates=estimates))


def runs(count=5, seconds=1.2):
    return [{"q": q, "u": u} for q, u in record(count, seed=5, seconds=seconds)]


def test_the_truth_predicts_to_the_noise_and_the_nominal_model_does_not():
    errors = rsr.evaluate(arm(), runs(), fit_at(arm(), HIDDEN))
    assert errors.horizons_s.tolist() == [0.05, 0.1, 0.2, 0.5, 1.0]
    assert errors.units == {"q": "rad"}
    assert (errors.fitted["q"] < 5 * NOISE).all()
    assert (errors.nominal["q"][2:] > 20 * NOISE).all()
    assert (errors.ratio["q"][:, 0] <= errors.fitted["q"] / errors.nominal["q"]).all()
    assert (errors.fitted["q"] / errors.nominal["q"] <= errors.ratio["q"][:, 1]).all()


def test_both_models_begin_in_the_same_states():
    errors = rsr.evaluate(arm(), runs(), fit_at(arm(), {}))
    assert np.array_equal(errors.fitted["q"], errors.nominal["q"])
    assert (errors.ratio["q"] == 1.0).all()


def test_starts_lie_half_the_longest_horizon_apart():
    errors = rsr.evaluate(arm(), runs(2, 1.2), fit_at(arm(), {}), horizons_s=(0.2, 0.4))
    assert errors.starts == len(range(2, 120 - 40, 20)) + len(range(2, 130 - 40, 20))
    assert errors.runs == 2
    assert np.isnan(errors.ratio["q"]).all()  # two runs say nothing of how runs differ


def test_sensors_are_corrected_with_the_parameters_that_are_judged():
    late_s, scenario = 0.03, arm(late=rsr.sensor_delay("q", lower=0.0, upper=0.05))
    late = [{"q": np.concatenate([run["q"][:1].repeat(3, axis=0), run["q"][:-3]]), "u": run["u"]} for run in runs()]
    right = rsr.evaluate(scenario, late, fit_at(scenario, {**HIDDEN, "late": late_s}), horizons_s=(0.2, 0.5))
    wrong = rsr.evaluate(scenario, late, fit_at(scenario, {**HIDDEN, "late": 0.0}), horizons_s=(0.2, 0.5))
    assert (right.fitted["q"] < 0.4 * wrong.fitted["q"]).all()


def test_the_table_has_a_line_for_each_channel_and_horizon():
    errors = rsr.evaluate(arm(), runs(), fit_at(arm(), HIDDEN), horizons_s=(0.1, 0.5))
    lines = repr(errors).splitlines()
    assert lines[0].startswith("RMS error against horizon")
    assert [line.split()[:3] for line in lines[3:]] == [["q", "0.1", "s"], ["q", "0.5", "s"]]
    assert errors._repr_html_().count("<tr>") == 3
    assert [axes.get_ylabel() for axes in errors.plot().axes] == ["RMS error (rad)"]


def test_a_horizon_beyond_the_shortest_run_is_refused():
    with pytest.raises(SessionError, match=r"horizons of 0\.2 to 3 s; expected 0\.01 s to 1\.17 s"):
        rsr.evaluate(arm(), runs(), fit_at(arm(), {}), horizons_s=(0.2, 3.0))


def test_sessions_and_folders_are_judged_like_arrays(tmp_path):
    scenario, given = arm(), runs()
    session = rsr.session_from_arrays(scenario, given)
    folder = rsr.write_session(tmp_path, session)
    fit = fit_at(scenario, HIDDEN)
    tables = [repr(rsr.evaluate(scenario, each, fit)) for each in (given, session, [session], folder, [str(folder)])]
    assert len(set(tables)) == 1
