"""How far to go from the prior's mean to a fit to few episodes."""

from __future__ import annotations

import numpy as np
import pytest

from rsr.calibration.problem.acceptance import best_share


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
