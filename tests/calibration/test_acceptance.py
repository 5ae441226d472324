"""How far to go from the prior's mean to a fit to few episodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration.interface import Evidence
from rsr.calibration.problem.acceptance import best_share, gap_warning


@pytest.mark.parametrize(
    ("losses", "share", "ratio"),
    [
        ([[10, 9, 8, 7, 6], [10, 8, 7, 6, 4]], 1.0, 0.5),
        ([[10, 7, 6, 9, 14], [10, 7, 6, 9, 14.5]], 0.5, 0.6),
        ([[10, 11, 12, 13, 14], [10, 11.1, 12, 13, 14.2]], 0.0, 1.41),
    ],
    ids=["the fit", "half of the way", "rejected, with how much worse the fit is"],
)
def test_the_share_with_the_least_loss_is_chosen_where_episodes_agree(losses, share, ratio):
    assert best_share(np.array(losses, dtype=float)) == (share, pytest.approx(ratio))


def test_one_unlucky_episode_does_not_reject_a_fit():
    """Five of six are predicted better by the fit, one much worse: no evidence against it."""
    losses = np.tile([10.0, 9.5, 9.0, 8.5, 8.0], (6, 1))
    losses[2] = [10.0, 13.0, 16.0, 19.0, 22.0]
    assert losses[:, -1].sum() > losses[:, 0].sum()
    share, ratio = best_share(losses)
    assert share == 1.0
    assert ratio == pytest.approx(62.0 / 60.0)


def test_what_all_episodes_say_is_followed():
    losses = np.tile([10.0, 10.5, 11.0, 11.5, 12.0], (6, 1)) + np.linspace(-1, 1, 6)[:, None]
    assert best_share(losses)[0] == 0.0


def test_a_fit_that_is_taken_though_held_out_replays_grew_says_so():
    channels = {"wheels": (2.0, 0.5), "position": (0.038, 0.095)}
    grew = Evidence(0.038, 0.095, "m", channels, (0, 2), (1, 3), cross_validated=0.23)
    assert "replayed worse than before, 0.038 to 0.095 m (of all channels worse: position)" in gap_warning(grew)
    assert gap_warning(replace(grew, gap_after=0.039)) == ""
    assert gap_warning(replace(grew, cross_validated=None)) == "", "the gap itself has decided"
