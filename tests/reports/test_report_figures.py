"""The numbers behind the pictures, and the picture of the whole loop."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rsr.common.errors import ConfigError, WorkspaceError
from rsr.policies.rollouts import visited, wilson_interval
from rsr.reports.calibration import in_prior_units, prior_interval
from rsr.reports.loop_picture import loop_figure, save_loop_figure
from rsr.reports.trajectories import rms_errors, spread
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.built_in.pushing.arm import CENTRE_M


def test_shown_episodes_reach_from_best_to_worst():
    assert spread(np.array([3.0, 1.0, 5.0, 4.0, 2.0]), 3) == [1, 0, 2]
    assert spread(np.array([2.0, 1.0]), 6) == [1, 0]


def test_error_of_an_episode_is_its_rms_distance():
    real = np.zeros((2, 4, 3))
    block = load_scenario("push_cube").observed_channel("block_position")
    assert rms_errors(block, real, real + np.array([0.03, 0.04, 0.0])) == pytest.approx([0.05, 0.05])


def test_error_of_an_orientation_is_an_angle():
    upright, turned = np.array([1.0, 0.0, 0.0, 0.0]), np.array([np.cos(0.1), 0.0, 0.0, np.sin(0.1)])
    orientation = load_scenario("push_cube").observed_channel("block_orientation")
    assert rms_errors(orientation, np.tile(upright, (2, 4, 1)), np.tile(-turned, (2, 4, 1))) == pytest.approx(
        [0.2, 0.2]
    )


def test_interval_of_a_share_is_wilsons():
    # Brown, Cai and DasGupta (2001), table of n = 20
    assert wilson_interval(0.5, 20) == pytest.approx((0.2993, 0.7007), abs=1e-4)
    low, high = wilson_interval(1.0, 20)
    assert (low, high) == pytest.approx((0.8389, 1.0), abs=1e-4)


def test_every_recorded_row_is_counted_where_it_lies():
    block = np.array([[[*CENTRE_M, 0.0], [*CENTRE_M, 0.0], [*(CENTRE_M + 0.051), 0.0], [9.0, 9.0, 0.0]]])
    plane = task_of(load_scenario("push_cube")).plane
    counts, (x_edges, y_edges) = visited(plane, plane.compute({"block_position": block}))
    assert counts.shape == (15, 15)
    assert counts.sum() == 3
    assert counts[7, 7] == 2
    assert x_edges[7] < CENTRE_M[0] < x_edges[8]
    assert y_edges[7] < CENTRE_M[1] < y_edges[8]


def test_prior_is_cut_at_the_bounds():
    space = load_scenario("push_cube").space
    low, high = prior_interval(space["control_delay"])
    assert low == 0.0
    assert high == pytest.approx(0.1176)
    assert prior_interval(space["table_friction"])[1] == 1.5


def test_distance_from_nominal_is_in_prior_units():
    friction = load_scenario("push_cube").space["table_friction"]
    assert in_prior_units(friction, friction.nominal) == 0.0
    assert in_prior_units(friction, friction.nominal * np.e) == pytest.approx(1 / friction.prior_std)


@pytest.mark.slow
def test_picture_of_the_loop_is_the_same_each_time(finished):
    for form in ("png", "svg"):
        assert loop_figure(finished, form) == loop_figure(finished, form)


def test_picture_of_the_loop_names_what_it_shows(finished, tmp_path: Path):
    save_loop_figure(finished, tmp_path / "loop.svg")
    svg = (tmp_path / "loop.svg").read_text()
    ElementTree.fromstring(svg)
    for words in ("2 Real-Sim-Real iterations on push_cube", "stand-in for reality", "before tuning", "damping"):
        assert words in svg  # matplotlib notes each text as a comment beside its outlines
    save_loop_figure(finished, tmp_path / "loop.png")
    assert (tmp_path / "loop.png").read_bytes().startswith(b"\x89PNG")


def test_picture_of_the_loop_without_calibrations(workspace):
    shutil.rmtree(workspace.calibration_dir(1))
    assert loop_figure(workspace).startswith(b"\x89PNG")


def test_unknown_kind_of_picture(finished, tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        save_loop_figure(finished, tmp_path / "loop.gif")
    assert str(caught.value) == (
        "picture of the loop: got a picture of format 'gif'; expected one of png, svg. "
        "Give the file a name that ends in one of these."
    )


def test_picture_of_nothing(workspace):
    workspace.metrics_path(1).unlink()
    with pytest.raises(
        WorkspaceError, match="got no iteration with metrics; expected at least one evaluated iteration"
    ):
        loop_figure(workspace)
