"""Sentences, tables and Markdown about the chain."""

from __future__ import annotations

import pytest
from rich.console import Console

from rsr.common.files import write_json
from rsr.config import dump_config
from rsr.reports import chain_table, is_simulated, reality_name, summary_markdown, verdict_sentence
from rsr.reports._html import bullets, paragraph, table

ROW = {"iteration": 2, "gap_before": 0.020, "gap_after": 0.010, "success_sim": 0.9, "success_reality": 0.5}


def test_nothing_evaluated():
    assert verdict_sentence([]) == "Nothing has been evaluated yet."


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            0.010,
            "The tuned simulator predicts held-out episodes to 10.0 mm (20.0 mm before tuning, 2.0 times as much).",
        ),
        (0.020, "The simulator predicts held-out episodes to 20.0 mm, as well as before tuning."),
        (0.025, "Tuning did not help: 20.0 mm off before, 25.0 mm after, held out."),
    ],
)
def test_gap_in_words(after, words):
    assert verdict_sentence([{**ROW, "gap_after": after}]).startswith(words)


@pytest.mark.parametrize(
    ("real", "words"),
    [
        (0.85, "within 10 points, so what was learnt in simulation transfers."),
        (0.50, "40 points short, so the simulator it was trained in still promises too much."),
        (1.00, "within 10 points, so what was learnt in simulation transfers."),
    ],
)
def test_transfer_in_words(real, words):
    sentence = verdict_sentence([{**ROW, "success_reality": real}], simulated=False)
    assert sentence.endswith(words)
    assert "Policy 1, deployed for this recording" in sentence
    assert "on the reality" in sentence


def test_policy_that_does_better_than_foretold():
    assert "30 points better" in verdict_sentence([{**ROW, "success_sim": 0.6, "success_reality": 0.9}])


def test_what_is_not_measured_is_not_invented():
    assert verdict_sentence([{"iteration": 1}]) == "The gap on held-out episodes was not measured."


def test_stand_in_is_called_one():
    assert (reality_name(True), reality_name(False)) == ("stand-in for reality", "reality")


def test_table_for_the_terminal_fits_80_columns(finished):
    with (console := Console(width=80)).capture() as captured:
        console.print(chain_table(finished.rows()))
    lines = [line.rstrip() for line in captured.get().splitlines()]
    assert lines[0] == "Real-Sim-Real by iteration k, recorded on a simulated stand-in"
    assert lines[2].split() == ["KL", "KL", "gap", "gap", "success", "success", "success", "parameters"]
    assert " ".join(lines[6].split()) == "2 0.35 0.28 20.0 mm 9.0 mm 83 % 67 % 92 % 3 of 7"


def test_markdown_tells_figures_parameters_and_receipts(finished):
    text = summary_markdown(finished, 2)
    lines = text.splitlines()
    assert lines[0] == "# Iteration 2"
    assert "| gap after | 20.0 mm | 9.0 mm | the same episodes, simulator k |" in lines
    assert any(line.startswith("| cube_mass |") and line.endswith(" kg | not identifiable |") for line in lines)
    assert "| tune | 24.7 s | converged |" in lines
    assert lines[-1] == f"Report: `{finished.report_path(2)}`"


def test_markdown_needs_metrics_and_receipts_alone(workspace):
    (workspace.calibration_dir(1) / "calibration.json").write_text('{"friction": 0.5}')
    write_json(workspace.metrics_path(1), {"iteration": 1, "params": {"friction": 0.5}})
    text = summary_markdown(workspace, 1)
    assert "| friction | 0.5 | – | – |" in text
    assert "The gap on held-out episodes was not measured." in text


def test_markdown_before_anything_is_evaluated(workspace):
    workspace.metrics_path(1).unlink()
    assert "Nothing has been evaluated yet." in summary_markdown(workspace, 1)


def test_a_stand_in_is_called_one_whatever_the_setting_says(workspace):
    """The session's card decides: a robot may be a stand-in, too. Without a card, the settings must do."""
    settings = workspace.settings()
    robot = settings.model_copy(update={"reality": settings.reality.model_copy(update={"kind": "robot"})})
    dump_config(robot, workspace.settings_path)
    assert is_simulated(workspace) is is_simulated(workspace, 1) is True
    card = workspace.session_dir(1) / "meta" / "rsr_card.json"
    card.write_text(card.read_text().replace('"simulated": true', '"simulated": false'))
    assert is_simulated(workspace) is False
    card.unlink()
    assert is_simulated(workspace) is False
    dump_config(settings, workspace.settings_path)
    assert is_simulated(workspace) is True


def test_what_stands_between_backticks_is_code_and_nothing_else_becomes_markup():
    page = bullets(["Add `sensor_delay: ball` <b>now</b>", "a ` alone"]) + table(["`x`"], [["`y`"]]) + paragraph("`z`")
    assert "<li>Add <code>sensor_delay: ball</code> &lt;b&gt;now&lt;/b&gt;</li>" in page
    assert "<li>a ` alone</li>" in page
    assert page.count("<code>") == 4
