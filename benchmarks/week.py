"""A week in a lab, played by a script: nights, approvals, a dropped session, a server that dies, a robot that changes.

Server, worker, schedules, automations, DVC and git are the real ones, and what happens between the visits happens by
itself. The script is the people: it approves, records on a stand-in for the robot, drops what it recorded, and on
Thursday the stand-in is no longer the robot it was. It is the clock, too: where a schedule says three in the morning,
it has the deployment run at once.

    iterations                  done in the week
    nights                      runs of the nightly deployment
    automation_runs             runs that an event started
    runs_failed                 of the loop; none should
    drift_noticed               the gap watch raised rsr.robot-changed after the change, and not before
    recalibrated                and the loop went round once more because of it
    lost                        drops and approvals that nothing came of, though the server was killed in between
    week_seconds                all of it

With --quick training is a token and sessions are short.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from _common import Figure, run
from _served import Served, await_, served
from small_steps import SMALL, SMALL_TABLE

from rsr.cli import main as rsr
from rsr.common import ignore, read_json
from rsr.config import LoopConfig, RealityConfig
from rsr.pipelines import QUIET_S
from rsr.realities import CollectionPlan, StandIn, last_change_s
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.pushing import tool_plane
from rsr.sessions import write_session
from rsr.workspace import Workspace
from rsr_tasks import versions
from rsr_tasks.campaign import opened

_ROBOT = 1
_REPAIR = {"actuator_gain": 0.5, "table_friction": 4.0}
_LAB = RealityConfig(kind="inbox", approval=True, episodes=32)
_SMALL = SMALL.model_copy(update={"reality": _LAB.model_copy(update={"episodes": SMALL.reality.episodes})})


def measure(quick: bool) -> dict[str, Figure]:
    """Play the week."""
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "campaign"
        with opened(root, config=LoopConfig(reality=_LAB) if not quick else _SMALL) as campaign:
            workspace = campaign.workspace
        with served(Path(folder)) as lab:
            if quick:
                for deployment in ("rsr-loop/nightly", "rsr-loop/on-arrival", "gap-watch/every-morning"):
                    lab.prefer(deployment, table=SMALL_TABLE)
            figures = _Week(lab, workspace).play()
    return {**figures, "week_seconds": time.perf_counter() - began_s}


class Operator:
    """Pushes the cube by hand: what a lab records that does not wait for a good policy."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        tip, block = observation[:, 6:8], observation[:, 12:14]
        return tool_plane.displacements(observation, 10.0 * (block - tip + np.array([0.0, 0.01])))


class _Week:
    """Its days, in order."""

    def __init__(self, lab: Served, workspace: Workspace) -> None:
        self._lab, self._workspace, self._root = lab, workspace, str(workspace.root)

    def play(self) -> dict[str, Figure]:
        """Live through it; returns what came of it."""
        self._monday()
        self._tuesday()
        self._wednesday()
        quiet = not self._lab.events("rsr.robot-changed")
        self._thursday()
        done, loops = self._done(), self._lab.runs("rsr-loop")
        return {
            "iterations": done,
            "nights": len(self._lab.runs("rsr-loop", "nightly")),
            "automation_runs": len(self._lab.runs("rsr-loop", "on-arrival")),
            "runs_failed": sum(state not in {"Completed", "Running"} for state in loops),
            "drift_noticed": quiet and len(self._lab.events("rsr.robot-changed")) == 1,
            "recalibrated": done == 2,
            "lost": 2 - done,
        }

    def _monday(self) -> None:
        """The first night: a policy, and the question whether it may be deployed."""
        self._lab.due("rsr-loop/nightly", workspace=self._root, iterations=2)
        self._await_question("a person's approval of policy 0")

    def _tuesday(self) -> None:
        """Somebody reads the report; the lab is asked for a session."""
        self._approve(0)
        self._lab.due("watch-inbox/every-five-minutes", folder=self._root)
        self._await_question("session of")

    def _wednesday(self) -> None:
        """A visit. The server dies just then, and comes back by itself; the iteration is done."""
        self._lab.kill("server")
        self._drop(1, {})
        await_(self._lab.answers, "server again")
        self._lab.due("watch-inbox/every-five-minutes", folder=self._root)
        await_(lambda: self._done() == 1, "first iteration")
        self._await_question("a person's approval of policy 1")

    def _thursday(self) -> None:
        """The second night asks for a session; in what is dropped the gap watch sees that the robot was repaired."""
        self._approve(1)
        self._lab.due("rsr-loop/nightly", workspace=self._root, iterations=2)
        self._await_question("session of")
        self._drop(2, _REPAIR)
        self._lab.due("gap-watch/every-morning", workspace=self._root, recalibrate=True)
        await_(lambda: self._lab.events("rsr.robot-changed"), "alarm")
        await_(lambda: self._done() == 2, "second iteration")

    def _await_question(self, words: str) -> None:
        note = self._workspace.waiting_path
        await_(lambda: note.exists() and words in note.read_text(), f"question for {words}")

    def _approve(self, iteration: int) -> None:
        rsr(["approve", "--iteration", str(iteration), "--by", "the script", "--workspace", self._root])

    def _drop(self, iteration: int, changed: Mapping[str, float]) -> None:
        """Record what was asked for on the stand-in, under another name, and rename it when it is whole."""
        inbox = self._workspace.root / "inbox"
        request = read_json(inbox / f"session-{iteration:03d}.request.json")
        plan = CollectionPlan(request["session"], request["episodes"], seed=iteration)
        session = StandIn(load_scenario(request["scenario"]), _ROBOT, changed=changed).collect(Operator(), plan, ignore)
        drop = write_session(inbox / ".copying", session).rename(inbox / request["session"])
        await_(lambda: time.time() - last_change_s(drop) > QUIET_S, "quiet")

    def _done(self) -> int:
        return len(versions.git(self._workspace.root, "tag", "--list", "iter/*").split())


if __name__ == "__main__":
    run(measure, __doc__ or "")
