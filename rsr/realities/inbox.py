"""The reality `inbox`: a lab records by itself and drops the session into a folder.

What is wanted is written there as `<session>.request.json`. The answer is a folder `<session>`, stored as
`write_session` stores it; copy it under another name and rename it, so that it appears at once. What cannot be used is
moved to `rejected/` with the reason beside it, and the wait goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rsr.errors import SessionError, Waiting
from rsr.files import write_json, write_text
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.realities.contract import Actor, CollectionPlan
from rsr.scenarios import Scenario, task_of
from rsr.sessions import Session, check_session, read_session

SETTLED_S = 30.0
"""A folder that cannot be read and was written to more recently than this may still be arriving."""
_REJECTED = "rejected"


class Inbox:
    """The reality `inbox`.

    Args:
        folder: where requests are left and sessions are dropped.
        now_s: the time of file stamps.
    """

    def __init__(self, scenario: Scenario, folder: Path, now_s: Callable[[], float] = time.time) -> None:
        self._scenario, self._folder, self._now_s = scenario, Path(folder), now_s

    def collect(self, policy: Actor, plan: CollectionPlan, advance: Advance) -> Session:
        """Return the session that the plan asks for. The drop stays where it is; storing it makes a copy.

        Raises:
            Waiting: it is not there yet, or still arriving.
            SessionError: what was dropped cannot be used; it was moved away, and the error says why.
        """
        self._request(plan)
        drop = self._folder / plan.session
        if not drop.exists():
            raise self._waiting(plan, "no such folder yet")
        try:
            session = read_session(drop)
            self._check(session, plan, drop)
        except SessionError as error:
            if self._now_s() - _last_change_s(drop) < SETTLED_S:
                raise self._waiting(plan, f"a folder that may still be arriving ({error.got})") from error
            raise self._reject(drop, error) from error
        advance(1.0, f"{len(session.episodes)} episodes")
        return session

    def _request(self, plan: CollectionPlan) -> None:
        """Tell the lab what to record; unchanged if it was told before."""
        starts = task_of(self._scenario).sample_starts(generator(plan.seed, "starts"), plan.episodes)
        request = {
            "session": plan.session,
            "scenario": self._scenario.name,
            "episodes": plan.episodes,
            "policy_sha256": plan.policy_sha256,
            "control_dt_s": self._scenario.control_dt_s,
            "rows": self._scenario.episode_steps + 1,
            "channels": {
                channel.name: {"columns": channel.columns, "unit": channel.unit, "frame": channel.frame}
                for channel in self._scenario.channels
            },
            "starts_qpos": starts.qpos.tolist(),
            "targets": starts.target.tolist(),
        }
        write_json(self._folder / f"{plan.session}.request.json", request)

    def _check(self, session: Session, plan: CollectionPlan, drop: Path) -> None:
        card = session.card
        for aspect, got, expected in (
            ("session", card.session, plan.session),
            ("scenario", card.scenario, self._scenario.name),
            ("policy_sha256", card.policy_sha256 or plan.policy_sha256, plan.policy_sha256),
        ):
            if got != expected:
                raise SessionError(
                    got=f"{aspect} {got}",
                    expected=f"{expected}, as requested",
                    where=f"{drop}, card",
                    next_step="Drop the session that was asked for, or correct its card.",
                )
        check_session(session, self._scenario.channels)

    def _waiting(self, plan: CollectionPlan, got: str) -> Waiting:
        policy = f" with policy {plan.policy_sha256[:12]}" if plan.policy_sha256 else ""
        return Waiting(
            got=got,
            expected=f"a session of {plan.episodes} episodes recorded{policy}",
            where=str(self._folder / plan.session),
            next_step=f"Record what {plan.session}.request.json asks for and put it here, then run this again.",
        )

    def _reject(self, drop: Path, error: SessionError) -> SessionError:
        """Move a drop away, whole, and leave the reason beside it."""
        rejected = self._folder / _REJECTED
        rejected.mkdir(exist_ok=True)
        number = 1 + sum(path.is_dir() for path in rejected.glob(f"{drop.name}-*"))
        moved = drop.rename(rejected / f"{drop.name}-{number}")
        write_text(moved.with_suffix(".txt"), f"{error}\n")
        return SessionError(
            got=error.got,
            expected=error.expected,
            where=error.where,
            next_step=f"It was moved to {moved}. {error.next_step} Then run this again.",
        )


def _last_change_s(drop: Path) -> float:
    return max(path.stat().st_mtime for path in (drop, *drop.rglob("*")))
