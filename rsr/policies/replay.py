"""The transitions that SAC learns from, kept from one training to the next.

What a transition was paid consists of two parts that age differently. The task's reward stays true for ever. The bonus
is InfoGap's, which each iteration defines anew; so the buffer also keeps the task's part alone, and a training that
goes on pays the old transitions by its own bonus before it learns from them. A bonus looks at the true state, which
sensor noise hides from the learner: that is kept, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.buffers import NStepReplayBuffer

from rsr.errors import PolicyError
from rsr.policies.snapshots import Snapshot
from rsr.policies.vec_env import ToolPlaneVecEnv

_ARRAYS = (
    "observations", "next_observations", "true_observations", "true_next_observations", "actions", "rewards",
    "task_rewards", "dones", "timeouts",
)  # fmt: skip


class Replay(NStepReplayBuffer):
    """SB3's ring of transitions [rows, copies, ...], which also knows what the task alone has paid, and for what.

    Args:
        plane: the environment that the transitions come from.
    """

    def __init__(self, *args: Any, plane: ToolPlaneVecEnv, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plane = plane
        self.task_rewards = np.zeros_like(self.rewards)
        self.true_observations = np.zeros_like(self.observations)
        self.true_next_observations = np.zeros_like(self.observations)

    def add(self, *args: Any, **kwargs: Any) -> None:
        self.task_rewards[self.pos] = self._plane.task_reward
        self.true_observations[self.pos], self.true_next_observations[self.pos] = self._plane.passed
        super().add(*args, **kwargs)

    def pay_anew(self) -> None:
        """Set every reward to the task's part and what the environment's present bonus pays for the transition."""
        for row in range(self.size()):
            true = self.true_observations[row], self.true_next_observations[row]
            bonus = self._plane.bonus(self.observations[row], self.actions[row], *true)
            self.rewards[row] = self.task_rewards[row] + bonus

    def end_episodes(self) -> None:
        """Let no return reach from the last stored transitions into those that another training adds."""
        self.dones[self.pos - 1] = self.timeouts[self.pos - 1] = 1.0

    def snapshot(self) -> Snapshot:
        """What is stored, copied; the empty rest of the ring is left out."""
        arrays = {name: getattr(self, name)[: self.size()].copy() for name in _ARRAYS}
        return {**arrays, "position": np.array(self.pos)}

    def restore(self, snapshot: Snapshot) -> None:
        """Undo `snapshot`. Nothing at all is an empty buffer."""
        self.reset()
        if not snapshot:
            return
        rows = self._checked_rows(snapshot)
        for name in _ARRAYS:
            # Trainings stored before the true state was kept hold what the sensors saw of it.
            getattr(self, name)[:rows] = snapshot[name] if name in snapshot else snapshot[name.removeprefix("true_")]
        self.pos = int(snapshot["position"])
        self.full = rows == self.buffer_size

    def _checked_rows(self, snapshot: Snapshot) -> int:
        rows, *shape = snapshot["observations"].shape
        capacity, *wanted = self.observations.shape
        if shape == wanted and rows <= capacity:
            return rows
        raise PolicyError(
            got=f"a replay buffer of {rows} x {' x '.join(map(str, shape))} numbers",
            expected=f"at most {capacity} x {' x '.join(map(str, wanted))} (rows, copies, width of an observation)",
            where="the training to go on from",
            next_step="Use the scenario, `copies` and `buffer` of the earlier training, or begin from scratch.",
        )
