"""Commands that copies of a robot were sent one by one, and what of them is in force."""

from __future__ import annotations

import numpy as np

from rsr.scenarios import Scenario
from rsr.simulators.mujoco import in_force, varying_weights, weights_of


class SentCommands:
    """The last commands of B copies, with what is beside them: values per episode, and settings of effects.

    A setting that has no one number where nothing was recorded is drawn anew for each command.

    Args:
        params: [P] for all copies, or [B, P].
        delay_s: [B] or [1], by default what the parameters say.
        substeps: by default the scenario's.
        seed: of what is drawn.
    """

    def __init__(
        self,
        scenario: Scenario,
        params: np.ndarray,
        count: int,
        delay_s: np.ndarray | None = None,
        substeps: int | None = None,
        seed: int = 0,
    ) -> None:
        self._scenario, self._substeps, self.seed = scenario, substeps, seed
        self._inputs, self._sent = scenario.base_model.nu, 0
        rows = np.atleast_2d(params)
        late = np.array([scenario.delay_s(row) for row in rows]) if delay_s is None else delay_s
        self._params, self._delay_s = np.broadcast_to(rows, (count, rows.shape[1])), np.broadcast_to(late, count)
        self._lowest = np.concatenate([scenario.nominal_per_episode, [each.lowest for each in scenario.settings]])
        self._largest = np.concatenate([scenario.nominal_per_episode, [each.largest for each in scenario.settings]])
        self._newest_first = np.zeros((count, scenario.delay_steps + 1, scenario.command_width))
        self._newest_first[..., self._inputs :] = scenario.unrecorded
        if not scenario.varies_latency:
            each = [
                weights_of(scenario, row, None, one, substeps)
                for row, one in zip(*_as_long(rows, np.atleast_1d(late)), strict=True)
            ]
            self._weights = np.broadcast_to(np.stack(each), (count, *each[0].shape))

    def hold(self, copies: np.ndarray, command: np.ndarray) -> None:
        """Let some copies have been under commands [n, nu] for ever."""
        self._newest_first = self._newest_first.copy()  # what was measured before refers to the commands as they were
        self._newest_first[copies, :, : self._inputs] = command[:, None]

    def send(self, command: np.ndarray) -> None:
        """Add the commands [B, nu] of the control step that begins."""
        newest = np.concatenate([command, self._beside(len(command))], axis=1)
        self._newest_first = np.concatenate([newest[:, None], self._newest_first[:, :-1]], axis=1)
        self._sent += 1

    @property
    def newest(self) -> np.ndarray:
        """[B, nu]."""
        return self._newest_first[:, 0, : self._inputs]

    @property
    def settings(self) -> np.ndarray:
        """Settings [B, C] of effects beside the newest command."""
        return self._newest_first[:, 0, self._inputs + len(self._scenario.per_episode) :]

    def in_force(self) -> np.ndarray:
        """Controls [B, substeps, nu + C] of the physics steps in the control step that begins."""
        if not self._scenario.varies_latency:
            return in_force(self._weights, self._newest_first)
        sent = self._newest_first
        return in_force(varying_weights(self._scenario, self._params, sent, self._delay_s, self._substeps), sent)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on, copied."""
        return {"commands": self._newest_first.copy(), "sent": np.array(self._sent)}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self._newest_first, self._sent = snapshot["commands"].copy(), int(snapshot["sent"])

    def _beside(self, count: int) -> np.ndarray:
        """Columns [B, C] beside the commands of a control step."""
        if not self._scenario.draws_settings:
            return np.broadcast_to(self._lowest, (count, len(self._lowest)))
        rng = np.random.default_rng([self.seed, self._sent])
        return rng.uniform(self._lowest, self._largest, (count, len(self._lowest)))


def _as_long(rows: np.ndarray, delays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows [n, P] and delays [n], one of which may have been given once for all."""
    most = max(len(rows), len(delays))
    return np.broadcast_to(rows, (most, rows.shape[1])), np.broadcast_to(delays, most)
