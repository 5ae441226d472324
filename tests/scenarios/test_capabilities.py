"""The table of what each method can do is what the simulators do, what the manual says, and what stops early."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mujoco import mjx
from sensing_arm import MJCF, recorded_runs, sensing_arm

import rsr
from rsr.cli import main
from rsr.common.errors import ScenarioError
from rsr.pipelines.methods import REGISTRY
from rsr.scenarios import load_scenario
from rsr.scenarios.capabilities import MJX_LACKS_LEAVES, SIMULATOR_OF, TABLE, cells, check_method, headings, lacking
from rsr.simulators.mjx import MjxSimulator

TORQUE = {"torque": rsr.sensor("wrist_torque", noise=0.05)}


def test_every_method_has_a_column():
    assert set(SIMULATOR_OF) == set(REGISTRY)


def test_the_manual_has_this_very_table():
    rows = [headings(), tuple("---" for _ in headings()), *cells()]
    table = "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in rows)
    assert table in (Path(__file__).parents[2] / "docs" / "calibration.md").read_text(), table


def test_what_the_table_says_that_mjx_lacks_it_lacks():
    assert not set(MJX_LACKS_LEAVES) & set(mjx.Model.__dataclass_fields__)


@pytest.mark.parametrize("method", ["mjx", "adam"])
def test_a_sensor_without_derivatives_stops_a_fit_before_any_work(tmp_path, method):
    scenario = sensing_arm(tmp_path, TORQUE)
    runs = [{"never": np.zeros(3)}]  # not looked at
    with pytest.raises(ScenarioError) as caught:
        rsr.calibrate(scenario, runs, method=method)
    assert str(caught.value) == (
        f"scenario sensing_arm, method {method}: got sensor 'wrist_torque' of type torque; expected what method "
        f"{method} can do (`rsr capabilities` lists it). Calibrate it with method `cmaes`, which needs no derivatives, "
        "or change the MJCF."
    )
    check_method(scenario, method, "auto")
    check_method(scenario, "sysid")
    with pytest.raises(ScenarioError, match="got sensor 'wrist_torque' of type torque; expected features that MuJoCo"):
        MjxSimulator(scenario)


def test_what_no_learnt_simulator_can_do_is_said_of_an_arm(tmp_path, capsys):
    file = sensing_arm(tmp_path).save(tmp_path / "saved")
    assert main(["capabilities", "--scenario", str(file)]) == 0
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["clash"] == "cannot: no section `collision`"
    assert lines["gnn"].startswith("cannot: joints that are not free (")
    assert lines["sysid"] == "nothing is lacking"


@pytest.mark.parametrize("method", ["clash", "gnn"])
def test_learning_methods_refuse_what_they_cannot_simulate(tmp_path, method):
    delayed = {"late": rsr.sensor_delay("q", upper=0.1), "damping": rsr.scale("joint.damping")}
    with pytest.raises(ScenarioError, match=r"got parameters of sensors \(late\); .* another method, such as sysid"):
        check_method(sensing_arm(tmp_path, tune=delayed), method)


@pytest.mark.parametrize("integrator", ["RK4", "implicit"])
def test_integrators_that_mjx_has_not(tmp_path, integrator):
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(timeconst="").replace("implicitfast", integrator))
    scenario = rsr.Scenario.from_mjcf(
        path,
        dt=0.02,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.001)},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune={"damping": rsr.scale("joint.damping")},
    )
    with pytest.raises(ScenarioError, match=f"integrator {integrator.upper()}"):
        check_method(scenario, "mjx")
    check_method(scenario, "cmaes")


@pytest.mark.parametrize("name", ["push_cube", "double_pendulum", "reach", "quadrotor"])
def test_built_in_scenarios_lack_nothing_in_mujoco_and_mjx(name):
    assert not [*lacking(load_scenario(name), "mujoco"), *lacking(load_scenario(name), "mjx")]


def test_the_commands_say_it(tmp_path, capsys):
    assert main(["capabilities"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert all(row.kind in printed for row in TABLE)
    scenario = sensing_arm(tmp_path, TORQUE)
    runs = recorded_runs(scenario, {}, 2, 1.0, seed=1)
    rsr.write_session(tmp_path, rsr.session_from_arrays(scenario, runs, name="monday"))
    yaml, session = str(scenario.save(tmp_path / "saved")), str(tmp_path / "sensing_arm" / "monday")
    assert main(["capabilities", "--scenario", yaml]) == 0
    said = capsys.readouterr().out
    assert "sysid: nothing is lacking" in said
    assert "mjx: by differences only: sensor 'wrist_torque' of type torque" in said
    assert "gnn: cannot: sensor 'wrist_torque' of type torque" in said
    main(["check", session, "--scenario", yaml, "--brief"])
    assert "got sensor 'wrist_torque' of type torque; expected what methods mjx and adam differentiate" in " ".join(
        capsys.readouterr().out.split()
    )
    out = str(tmp_path / "out")
    assert main(["calibrate", "--scenario", yaml, "--sessions", session, "--out", out]) == 2
    assert "method mjx: got sensor 'wrist_torque'" in " ".join(capsys.readouterr().err.split())
