"""The reality `robot`: any robot behind LeRobot's `Robot` interface, one episode after the other, at its rate.

The interface is spelt out in `rsr.realities.trial`, so that lerobot itself is not needed. A robot cannot put the block
anywhere: targets come from the plan, and a person, or a stand-in, sets up each episode and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rsr.errors import RealityError, SessionError
from rsr.policies.contract import Body, check_contract
from rsr.policies.terms import task_contract
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.realities.clocks import Clock
from rsr.realities.contract import Actor, CollectionPlan
from rsr.realities.envelope import SafetyEnvelope, safety_notes
from rsr.realities.trial import Robot, Stopped, Trial
from rsr.realities.wiring import Wiring
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import Starts
from rsr.sessions import Card, Episode, Session, check_session
from rsr.sessions.journal import Journal

ATTEMPTS = 3


@dataclass(frozen=True)
class Placement:
    """What to set up before an episode.

    Args:
        start: one start; the block's pose and the joints, as far as they can be had, and the target.
    """

    episode: int
    episodes: int
    start: Starts


Reset = Callable[[Placement], None]
"""Returns when everything is in its place and the arm may move; raises `Waiting` if nobody is there to do it."""


class RobotReality:
    """The reality `robot`.

    Args:
        root: folder of the recordings; see `rsr.sessions.journal`.
        robot: connected by `collect`, and disconnected at its end whatever happens.
        recorded_at: date and time for the card.

    Raises:
        PolicyError: the robot's file and the scenario do not mean the same by joints, rate, units, frames or channels.
    """

    def __init__(
        self,
        scenario: Scenario,
        robot: Robot,
        wiring: Wiring,
        reset: Reset,
        clock: Clock,
        root: Path,
        envelope: SafetyEnvelope | None = None,
        recorded_at: str | None = None,
    ) -> None:
        check_contract(task_contract(scenario), wiring.body)
        wiring.check_recorded(scenario)
        wiring.check_robot(robot.observation_features, robot.action_features)
        self._scenario, self._robot, self._wiring = scenario, robot, wiring
        self._reset, self._clock, self._root = reset, clock, Path(root)
        self._envelope = envelope or wiring.envelope
        self._recorded_at = recorded_at

    @property
    def body(self) -> Body:
        """What the robot offers to a policy."""
        return self._wiring.body

    def collect(self, policy: Actor, plan: CollectionPlan, advance: Advance) -> Session:
        """Record what the plan lacks yet, and store the session. After an interruption the same call goes on."""
        starts = task_of(self._scenario).sample_starts(generator(plan.seed, "starts"), plan.episodes)
        journal = Journal.open(self._root, self._card(plan), self._scenario.channels)
        self._robot.connect()
        try:
            for index in range(len(journal.episodes), plan.episodes):
                advance(index / plan.episodes, f"episode {index + 1} of {plan.episodes}")
                start = Starts(starts.qpos[[index]], starts.target[[index]])
                journal.add(self._episode(policy, Placement(index, plan.episodes, start), journal))
        finally:
            self._robot.disconnect()
        advance(1.0, f"{plan.episodes} episodes")
        return journal.close(safety_notes([episode.tags for episode in journal.episodes]))

    def _episode(self, policy: Actor, placement: Placement, journal: Journal) -> Episode:
        """Try until an episode is fit for use; the journal notes what became of the others."""
        words = ""
        for attempt in range(1, ATTEMPTS + 1):
            self._reset(placement)
            trial = Trial(
                self._scenario, self._robot, self._wiring, self._envelope, self._clock, placement.start.target
            )
            try:
                episode = trial.run(policy, placement.episode)
                check_session(Session(journal.card, journal.channels, (episode,)), self._scenario.channels)
                return episode
            except (Stopped, SessionError, RealityError) as error:
                words = str(error)
                journal.note(f"Episode {placement.episode}, attempt {attempt} was not kept; it stopped {words}.")
                if isinstance(error, RealityError):
                    raise
        raise RealityError(
            got=f"{ATTEMPTS} attempts that stopped, the last {words}",
            expected="an episode from its beginning to its end",
            where=f"{self._wiring.body.name}, episode {placement.episode}",
            next_step="Mend this, then run the same command: it goes on with this episode.",
        )

    def _card(self, plan: CollectionPlan) -> Card:
        return Card(
            session=plan.session,
            scenario=self._scenario.name,
            reality="robot",
            simulated=self._wiring.simulated,
            control_dt_s=self._scenario.control_dt_s,
            policy_sha256=plan.policy_sha256,
            recorded_at=self._recorded_at,
            robot=self._wiring.body.name.removeprefix("robot "),
            gains=self._wiring.gains,
            limits=self._envelope.stated(),
            notes=f"{plan.episodes} targets of seed {plan.seed}.",
        )
