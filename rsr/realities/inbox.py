"""The reality `inbox`: a lab records by itself and drops the session into a folder.

What is wanted is written there as `<session>.request.json`. The answer is a folder `<session>`, stored as
`write_session` stores it, or an archive of it (`<session>.zip`, `.tar.gz`, ...); copy it under another name and rename
it, so that it appears at once. What cannot be used is moved to `rejected/` with the reason beside it, and the wait goes
on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rsr.common import Advance, Refused, SessionError, Waiting, generator, write_json
from rsr.realities.reality import CollectionPlan, Controller
from rsr.scenarios import Scenario, has_task, task_of
from rsr.sessions import (
    SUFFIXES,
    IntakeLimits,
    Session,
    admitted,
    check_session,
    check_stated,
    quarantine,
    read_session,
)

SETTLED_S = 30.0
"""A folder that cannot be read and was written to more recently than this may still be arriving."""
_REJECTED = "rejected"


class Inbox:
    """The reality `inbox`.

    Args:
        folder: where requests are left and sessions are dropped.
        robot: that of the campaign so far; a session of another one is refused. None: any.
        limits: how large a drop may be.
        now_s: the time of file stamps.
        wanted: what to record, for the request; by default starts and goals of the scenario's task.
    """

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        robot: str | None = None,
        limits: IntakeLimits | None = None,
        now_s: Callable[[], float] = time.time,
        wanted: Callable[[CollectionPlan], Mapping[str, Any]] | None = None,
    ) -> None:
        self._scenario, self._folder, self._robot = scenario, Path(folder), robot
        self._limits, self._now_s = limits or IntakeLimits(), now_s
        self._wanted = wanted or self._starts

    def collect(self, policy: Controller | None, plan: CollectionPlan, advance: Advance) -> Session:
        """Return the session that the plan asks for; the lab runs the policy itself.

        The drop stays where it is; storing it makes a copy.

        Raises:
            Waiting: it is not there yet, or still arriving; or what was dropped cannot be used: then it was moved
                away, and the words say why.
        """
        self._request(plan)
        drop = dropped(self._folder, plan.session)
        if drop is None:
            raise self._waiting(plan, "no such folder yet")
        try:
            session = self._read(drop, plan)
        except Refused as error:
            raise self._rejected(drop, plan, error) from error
        except SessionError as error:
            if self._now_s() - last_change_s(drop) < SETTLED_S:
                raise self._waiting(plan, f"a folder that may still be arriving ({error.got})") from error
            raise self._rejected(drop, plan, error) from error
        advance(1.0, f"{len(session.episodes)} episodes")
        return session

    def _read(self, drop: Path, plan: CollectionPlan) -> Session:
        with admitted([drop], self._limits) as (folder,):
            session = read_session(folder)
            self._check(session, plan, drop)
            check_stated(folder, session)
        return session

    def _request(self, plan: CollectionPlan) -> None:
        """Write the request for the lab; unchanged if it is there already."""
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
            **self._wanted(plan),
        }
        write_json(self._folder / f"{plan.session}.request.json", request)

    def _starts(self, plan: CollectionPlan) -> dict[str, Any]:
        """Where episodes shall begin and what they shall reach; nothing where the scenario has no task."""
        if not has_task(self._scenario):
            return {}
        starts = task_of(self._scenario).reset(generator(plan.seed, "starts"), plan.episodes)
        goal = {name: values.tolist() for name, values in starts.goal.items()}
        return {"starts_qpos": starts.qpos.tolist(), "goal": goal}

    def _check(self, session: Session, plan: CollectionPlan, drop: Path) -> None:
        card = session.card
        for aspect, got, expected in (
            ("session", card.session, plan.session),
            ("scenario", card.scenario, self._scenario.name),
            ("policy_sha256", card.policy_sha256 or plan.policy_sha256, plan.policy_sha256),
            ("control_dt_s", card.control_dt_s, self._scenario.control_dt_s),
            ("robot", card.robot or self._robot, self._robot or card.robot),
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
        policy = f" recorded with policy {plan.policy_sha256[:12]}" if plan.policy_sha256 else ""
        return Waiting(
            got=got,
            expected=f"a session of {plan.episodes} episodes{policy}",
            where=str(self._folder / plan.session),
            next_step=f"Record what {plan.session}.request.json asks for and put it here, by `rsr answer RECORDINGS` "
            "where it has another format; then run this again.",
        )

    def _rejected(self, drop: Path, plan: CollectionPlan, error: SessionError) -> Waiting:
        """Move a drop away, whole, with the reason beside it; another one is waited for."""
        moved = quarantine(drop, error, self._folder / _REJECTED, dropped=True)
        return Waiting(
            got=f"a drop that cannot be used ({error.where}: {error.got})",
            expected=error.expected,
            where=str(self._folder / plan.session),
            next_step=f"It was moved to {moved}. {error.next_step} Then run this again.",
        )


def dropped(folder: Path, session: str) -> Path | None:
    """Find the drop of a session in the inbox: its folder, or an archive of it; None if there is nothing yet."""
    candidates = [folder / f"{session}{suffix}" for suffix in ("", *SUFFIXES)]
    return next((path for path in candidates if path.exists() or path.is_symlink()), None)


def last_change_s(drop: Path) -> float:
    """The newest file stamp of a drop."""
    return max(path.lstat().st_mtime for path in (drop, *drop.rglob("*")))
