"""The script that a lab engineer writes, as DESIGN and docs/python.md show it: from arrays to a tuned model."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from matplotlib.figure import Figure

import rsr
from rsr.calibration import save_calibration
from rsr.common.errors import CalibrationError, ConfigError
from rsr.scenarios.models.mjcf import rollout_difference
from tests.api.two_joints import ARM, HIDDEN, hidden_arm, record


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("front_door")
    (folder / "arm.xml").write_text(ARM)
    return folder


@pytest.fixture(scope="module")
def arm(work):
    return rsr.Scenario.from_mjcf(
        work / "arm.xml",
        dt=0.01,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.002)},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune={"damping": rsr.scale("joint.damping"), "gain": rsr.scale("actuator.kp")},
    )


@pytest.fixture(scope="module")
def fit(arm):
    return rsr.calibrate(arm, [{"q": q, "u": u} for q, u in record(8, seed=0)], progress=False)


@pytest.mark.parametrize("name", ["damping", "gain"])
def test_hidden_parameters_lie_in_their_intervals_and_are_found_to_three_percent(fit, name):
    low, high = fit.interval(name)
    assert low <= HIDDEN[name] <= high
    assert fit.values[name] == pytest.approx(HIDDEN[name], rel=0.03)
    assert fit.verdicts[name] == "identified"


def test_a_fit_shows_itself_as_a_table_and_as_html(fit):
    text = repr(fit)
    assert "parameter" in text
    assert "identified" in text
    assert "8 runs fitted, and judged in turn by fits to the others. q: RMS error" in text
    html = fit._repr_html_()
    assert html.count("<tr>") == 3
    assert "95 % interval" in html


def test_a_fit_draws_itself(fit):
    figure = fit.plot()
    assert isinstance(figure, Figure)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["damping", "gain"]
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_parameter_that_is_not_there_is_named(fit):
    with pytest.raises(CalibrationError, match="got parameter 'kp'; expected one of damping, gain"):
        fit.interval("kp")


def test_the_saved_model_simulates_as_the_robot_does(fit, arm, tmp_path):
    saved = fit.save_model(tmp_path / "tuned.xml")
    tuned = mujoco.MjModel.from_xml_path(str(saved.path))
    assert rollout_difference(tuned, arm.model(fit.calibration.vector())) <= 1e-9
    assert rollout_difference(tuned, hidden_arm()) < 0.1 * rollout_difference(arm.base_model, hidden_arm())
    assert saved.left_out == {}
    assert str(saved) == str(tmp_path / "tuned.xml")


def test_a_fit_is_kept_with_its_scenario_and_read_back(fit, arm, tmp_path):
    again = rsr.Fit.load(fit.save(tmp_path / "fit"))
    assert again.values == fit.values
    assert again.fitted_runs == fit.fitted_runs
    assert again.scenario.space == arm.space
    assert repr(again) == repr(fit)


def test_a_kept_fit_of_another_scenario_is_refused(fit, tmp_path):
    fit.save(tmp_path / "fit")
    with pytest.raises(
        CalibrationError, match=r"got a calibration of arm \(damping, gain\); expected one of push_cube"
    ):
        rsr.Fit.load(tmp_path / "fit", rsr.load_scenario("push_cube"))


def test_a_kept_fit_without_its_scenario_asks_for_it(fit, arm, tmp_path):
    save_calibration(fit.calibration, tmp_path)  # as `rsr calibrate --out` does
    with pytest.raises(ConfigError, match=r"got scenario 'arm'; expected a copy of it .* the scenario: .*rsr\.load_"):
        rsr.Fit.load(tmp_path)
    assert rsr.Fit.load(tmp_path, arm).values == fit.values


def test_predictions_of_other_runs_are_better_at_every_horizon(fit, arm):
    errors = rsr.evaluate(arm, [{"q": q, "u": u} for q, u in record(6, seed=1)], fit)
    assert (errors.fitted["q"] < 0.5 * errors.nominal["q"]).all()
    assert (errors.ratio["q"][:, 1] < 0.7).all()
    assert not errors.warnings


def test_runs_that_were_fitted_are_known_again(fit, arm):
    errors = rsr.evaluate(arm, [{"q": q, "u": u} for q, u in record(8, seed=0)], fit)
    assert errors.warnings == ("8 of 8 runs were fitted: on them the error says nothing of what the model is worth",)


def test_a_later_fit_goes_on_from_an_earlier_one(fit, arm):
    runs = [{"q": q, "u": u} for q, u in record(2, seed=2)]
    later = rsr.calibrate(arm, runs, method="cmaes", budget=60, prior=fit, progress=False)
    assert later.values["damping"] == pytest.approx(HIDDEN["damping"], rel=0.05)
    assert set(fit.fitted_runs) < set(later.fitted_runs)


def test_runs_do_not_count_twice(fit, arm):
    runs = [{"q": q, "u": u} for q, u in record(8, seed=0)]
    with pytest.raises(CalibrationError) as error:
        rsr.calibrate(arm, runs, method="cmaes", budget=60, prior=fit, progress=False)
    assert str(error.value) == (
        "rsr.calibrate: got 8 of 8 runs that `prior` was fitted to; expected runs that it has not seen: they would "
        "count twice. Leave them out, or calibrate all runs together without `prior`."
    )


def test_equal_arguments_give_an_equal_fit(arm):
    runs = [{"q": q, "u": u} for q, u in record(2, seed=3)]
    one, other = (rsr.calibrate(arm, runs, method="cmaes", budget=30, progress=False) for _ in range(2))
    assert one.values == other.values
    assert np.array_equal(one.calibration.covariance, other.calibration.covariance)


def test_one_run_is_too_few(arm):
    q, u = record(1, seed=0)[0]
    with pytest.raises(CalibrationError, match="at least 2 episodes"):
        rsr.calibrate(arm, [{"q": q, "u": u}], method="cmaes", progress=False)


def test_progress_without_a_terminal_is_a_few_plain_lines(arm, capfd):
    runs = [{"q": q, "u": u} for q, u in record(2, seed=4)]
    rsr.calibrate(arm, runs, method="cmaes", budget=20)
    lines = capfd.readouterr().err.splitlines()
    said = [line for line in lines if line.startswith("calibrate: ")]
    assert said[0] == "calibrate: 0% begun"
    assert said[-1].startswith("calibrate: 100% ")
    assert len(said) <= 7
    assert "\x1b" not in "".join(lines)
