"""Which episodes are fitted and which judge, where the lab says so: by sessions, by a tag, in strata."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Division
from rsr.calibration.problem.held_out import split
from rsr.common.errors import CalibrationError
from tests.calibration.recordings import recording
from tests.push_samples import push_cube

GAINS = ("100",) * 6 + ("400",) * 4 + ("800",) * 2
EPISODES = [replace(each, tags={"kp": kp}) for each, kp in zip(recording().episodes, GAINS, strict=True)]


def divided(division: Division, most: int = 32, seed: int = 0):
    return split(push_cube(), EPISODES, most, np.random.default_rng(seed), division)


def test_episodes_that_share_a_value_stay_together():
    for seed in range(8):
        fitted, held_out = divided(Division(hold_out="kp"), seed=seed)
        assert not {GAINS[i] for i in fitted} & {GAINS[i] for i in held_out}
        assert sorted(fitted + held_out) == list(range(12))


def test_every_value_is_fitted_and_judges_in_proportion():
    for seed in range(8):
        fitted, held_out = divided(Division(stratify="kp"), seed=seed)
        for chosen in (fitted, held_out):
            assert [sum(GAINS[i] == kp for i in chosen) for kp in ("100", "400", "800")] == [3, 2, 1]
    assert divided(Division(stratify="kp"), seed=0) != divided(Division(stratify="kp"), seed=1)


def test_a_plain_draw_leaves_a_value_out_now_and_then():
    """The trap: by default no run with kp 800 was fitted at all."""
    assert any("800" not in {GAINS[i] for i in divided(Division(), seed=seed, most=6)[0]} for seed in range(30))


def test_named_judges_are_never_fitted_and_nobody_else_judges():
    fitted, held_out = divided(Division(judging=3))
    assert (fitted, held_out) == (tuple(range(9)), (9, 10, 11))
    fitted, held_out = divided(Division(judging=3, stratify="kp"), most=4)
    assert (len(fitted), held_out) == (4, (9, 10, 11))


def test_a_tag_that_nobody_has_is_refused_with_those_there_are():
    with pytest.raises(CalibrationError, match="got tag 'gain'; expected one that the episodes have: kp"):
        divided(Division(hold_out="gain"))
    with pytest.raises(CalibrationError, match="got tag 'gain'"):
        divided(Division(stratify="gain"))
