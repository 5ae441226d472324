"""The section on a calibration shows what was chosen and what was checked, and nothing that was not."""

from __future__ import annotations

from dataclasses import replace

from rsr.calibration import load_calibration
from rsr.calibration.interface import Checks
from rsr.reports.calibration import calibration, parameters
from rsr.reports.data import read_report_data


def test_checks_and_choices_are_shown(workspace):
    data = read_report_data(workspace, 1)
    tuned = load_calibration(workspace.calibration_dir(1))
    checks = Checks("mjx", "gradients healthy", "MJX steps as C does", {"cube_mass": 1.4}, {"cube_mass": -0.52})
    losses = {"cone elliptic": 31.0, "cone pyramidal": 12.5}
    after = replace(tuned, checks=checks, structure={"cone": "pyramidal"}, structure_losses=losses)
    body = str(calibration(replace(data, after=after)).body)
    assert "selected by successive halving on episodes left out of its fits: cone pyramidal." in body
    assert "Gradients against differences in C: gradients healthy." in body
    assert "One step of MJX against one of C: MJX steps as C does." in body
    assert "cube mass 1.4x" in body
    assert "cube mass -0.52" in body
    assert body.index("cone pyramidal</td>") < body.index("cone elliptic</td>"), "the best first"


def test_what_was_not_checked_is_not_mentioned(workspace):
    data = read_report_data(workspace, 1)
    assert data.after is not None
    body = str(calibration(replace(data, after=replace(data.after, checks=Checks()))).body)
    for words in ("Gradients", "Refits", "halving", "Sensitivities"):
        assert words not in body


def test_a_column_of_descriptions_is_there_where_one_is_described(workspace):
    data = read_report_data(workspace, 1)
    assert "what it is</th>" in str(parameters(data).body)
    bare = tuple(replace(each, description="") for each in data.scenario.space)
    scenario = replace(data.scenario, space=replace(data.scenario.space, parameters=bare))
    assert "what it is</th>" not in str(parameters(replace(data, scenario=scenario)).body)
