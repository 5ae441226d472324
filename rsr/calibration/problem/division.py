"""Which episodes are fitted and which judge: by sessions, by a tag whose values stay together, stratified by a tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.common import CalibrationError
from rsr.scenarios import Scenario
from rsr.sessions import Episode


@dataclass(frozen=True)
class Division:
    """How episodes are divided, to fit and to judge or into folds. By default at random.

    Args:
        judging: so many episodes at the end only judge, and none of the others does.
        hold_out: a tag; episodes that share a value of it are fitted together or judge together.
        stratify: a tag; every value of it is fitted and judges in proportion.
    """

    judging: int = 0
    hold_out: str | None = None
    stratify: str | None = None

    def trials(self, scenario: Scenario, episodes: Sequence[Episode]) -> list[list[int]]:
        """Group positions of episodes that are not to be divided: those of one trial, or of one value of `hold_out`.

        Without the tag, each episode is a trial of its own.
        """
        key = self.hold_out or scenario.repeats_share
        _check_tag(self.hold_out, episodes)
        trials: dict[str, list[int]] = {}
        for position, episode in enumerate(episodes):
            value = episode.tags.get(key) if key else None
            shared = f"position {position}" if value is None else f"tag {value}"
            trials.setdefault(shared, []).append(position)
        return list(trials.values())

    def order(self, trials: list[list[int]], episodes: Sequence[Episode], rng: np.random.Generator) -> list[int]:
        """The order in which trials are taken to be fitted: at random, and evenly from each stratum."""
        drawn = rng.permutation(len(trials)).tolist()
        if self.stratify is None:
            return drawn
        _check_tag(self.stratify, episodes)
        strata: dict[str, list[int]] = {}
        for trial in drawn:
            strata.setdefault(episodes[trials[trial][0]].tags.get(self.stratify, ""), []).append(trial)
        # A stratum's n-th of m trials comes at (n + 1/2) / m of the way: any first part has each in proportion.
        places = {trial: (n + 0.5) / len(each) for each in strata.values() for n, trial in enumerate(each)}
        return sorted(drawn, key=lambda trial: places[trial])


def _check_tag(tag: str | None, episodes: Sequence[Episode]) -> None:
    if tag is None or any(tag in episode.tags for episode in episodes):
        return
    known = sorted({name for episode in episodes for name in episode.tags})
    raise CalibrationError(
        got=f"tag '{tag}'",
        expected=f"one that the episodes have: {', '.join(known) or 'none has any'}",
        where="sessions to calibrate on",
        next_step="Correct its name, or ingest the recordings with it: `episodes: {tags: [...]}` in the mapping.",
    )
