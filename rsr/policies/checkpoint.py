"""Crash-safe training: one file from which a killed training goes on to the very numbers it would have reached.

Written at the start of a rollout, the one moment at which PPO's buffer is empty and everything that the rest of the
training depends on is in plain sight: networks, optimiser, normalisers, the world and three random generators (the
environment's, torch's, and numpy's global one, with which SB3 shuffles). An .npz of arrays and one JSON text, renamed
into place whole; never a pickle.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import deque
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import mujoco
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from rsr.files import DAMAGED, read_arrays, sha256, write_arrays
from rsr.policies.vec_env import Bonus, ToolPlaneVecEnv
from rsr.scenarios import Scenario
from rsr.scenarios.push_cube import task

ROLLOUTS_BETWEEN = 5
"""Rollouts from one checkpoint to the next: some seconds of work that a kill can cost."""

_ROOM = Path(__file__).parents[1]
_CODE = ("policies", "scenarios", "simulators", "infogap")
_PACKAGES = ("numpy", "mujoco", "torch", "stable_baselines3")
_PROBES = 64

Snapshot = dict[str, np.ndarray]
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Learner:
    """What a training consists of: SB3's PPO, the two wrappers around the environment, and the curve so far."""

    model: PPO
    normaliser: VecNormalize
    plane: ToolPlaneVecEnv
    curve: list[dict[str, float]]

    @property
    def observation_statistics(self) -> RunningMeanStd:
        return cast(RunningMeanStd, self.normaliser.obs_rms)  # a dictionary of them only for dictionary observations

    def knowledge(self) -> Snapshot:
        """What was learnt: every weight, and the statistics of both normalisers."""
        weights = {name: tensor.numpy().copy() for name, tensor in self.model.policy.state_dict().items()}
        return {
            **_prefixed("net", weights),
            **_prefixed("observation", _statistics(self.observation_statistics)),
            **_prefixed("return", _statistics(self.normaliser.ret_rms)),
        }

    def take_over(self, knowledge: Snapshot) -> None:
        """Undo `knowledge`; the optimiser, the world and the generators stay as they are."""
        weights = {name: torch.from_numpy(array) for name, array in _under("net", knowledge).items()}
        self.model.policy.load_state_dict(weights)
        _set_statistics(self.observation_statistics, _under("observation", knowledge))
        _set_statistics(self.normaliser.ret_rms, _under("return", knowledge))

    def snapshot(self) -> Snapshot:
        """Gather everything that the rest of the training depends on."""
        return {
            **self.knowledge(),
            **_prefixed("adam", _optimiser(self.model)),
            **_prefixed("environment", self.plane.snapshot()),
            "running_returns": self.normaliser.returns,
            "last_observation": np.asarray(self.model._last_obs),
            "last_episode_starts": np.asarray(self.model._last_episode_starts),
            "torch_generator": torch.get_rng_state().numpy(),
            "numpy_generator": np.random.get_state(legacy=True)[1],  # type: ignore[index] # noqa: NPY002
            "progress": np.array(json.dumps(self._progress())),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Undo `snapshot`: the next `model.learn(..., reset_num_timesteps=False)` goes on from there."""
        self.take_over(snapshot)
        _restore_optimiser(self.model, _under("adam", snapshot))
        self.plane.restore(_under("environment", snapshot))
        self.normaliser.returns = snapshot["running_returns"]
        self.model._last_obs = snapshot["last_observation"]
        self.model._last_episode_starts = snapshot["last_episode_starts"]
        torch.set_rng_state(torch.from_numpy(snapshot["torch_generator"]))
        self._take_up(json.loads(str(snapshot["progress"])), snapshot["numpy_generator"])

    def _progress(self) -> dict[str, Any]:
        _, _, *position = np.random.get_state(legacy=True)  # noqa: NPY002
        return {
            "steps": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "episodes": list(self.model.ep_info_buffer or []),
            "successes": list(self.model.ep_success_buffer or []),
            "curve": self.curve,
            "numpy_position": position,
        }

    def _take_up(self, progress: dict[str, Any], numpy_key: np.ndarray) -> None:
        model, window = self.model, self.model._stats_window_size
        model.num_timesteps, model._n_updates = progress["steps"], progress["updates"]
        model.ep_info_buffer = deque(progress["episodes"], maxlen=window)
        model.ep_success_buffer = deque(progress["successes"], maxlen=window)
        self.curve[:] = progress["curve"]
        np.random.set_state(("MT19937", numpy_key, *progress["numpy_position"]))  # noqa: NPY002


@dataclass(frozen=True)
class Checkpoint:
    """The file, and what it must be a checkpoint of.

    Args:
        fingerprint: of the training; a file with another one is of another training and is left aside.
    """

    path: Path
    fingerprint: str

    def save(self, learner: Learner) -> None:
        write_arrays(self.path, {**learner.snapshot(), "fingerprint": np.array(self.fingerprint)})

    def resume(self, learner: Learner) -> bool:
        """Bring the learner to where the file stands; False where there is none of this training."""
        if not self.path.exists():
            return False
        try:
            snapshot = read_arrays(self.path)
        except DAMAGED as error:
            _logger.warning("%s cannot be read (%s): training begins anew", self.path, error)
            return False
        if str(snapshot.get("fingerprint")) != self.fingerprint:
            _logger.info("%s is of another training: this one begins anew", self.path)
            return False
        learner.restore(snapshot)
        return True

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def fingerprint(
    scenario: Scenario,
    params: np.ndarray,
    settings: Any,
    seed: int,
    state: Snapshot | None,
    bonus: Bonus | None,
) -> str:
    """Hash everything that decides how a training goes: equal fingerprints, equal numbers."""
    facts = {
        "settings": asdict(settings),
        "seed": seed,
        "episode": [scenario.control_dt_s, scenario.delay_s(params), scenario.history_steps, scenario.episode_steps],
        "noise": {observed.channel.name: observed.noise for observed in scenario.observed},
        "versions": {name: metadata.version(name) for name in _PACKAGES},
        "code": [sha256(file) for room in _CODE for file in sorted((_ROOM / room).rglob("*.py"))],
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    digest.update(_model_bytes(scenario.model(params)))
    for name, array in sorted((state or {}).items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    if bonus is not None:
        digest.update(np.ascontiguousarray(bonus(*_probes())).tobytes())
    return digest.hexdigest()


def _statistics(running: RunningMeanStd) -> Snapshot:
    return {"mean": np.array(running.mean), "variance": np.array(running.var), "count": np.array(running.count)}


def _set_statistics(running: RunningMeanStd, values: Snapshot) -> None:
    running.mean, running.var, running.count = values["mean"], values["variance"], float(values["count"])


def _optimiser(model: PPO) -> Snapshot:
    """Adam's moments and step count of every parameter, as "<parameter>.<name>"."""
    state = model.policy.optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor.numpy() for index, row in state.items() for name, tensor in row.items()}


def _restore_optimiser(model: PPO, arrays: Snapshot) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, array in arrays.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = torch.from_numpy(array)
    optimiser = model.policy.optimizer
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def _model_bytes(model: mujoco.MjModel) -> bytes:
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def _probes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions on which two different bonuses differ: a bonus is a function, so what it pays is its identity."""
    rng = np.random.default_rng(0)
    seen = [_seen(task.sample_starts(rng, _PROBES)) for _ in range(2)]
    return seen[0], rng.uniform(-1, 1, (_PROBES, task.ACTION_SIZE)), seen[1]


def _seen(starts: task.Starts) -> np.ndarray:
    return task.observation(starts.qpos[:, 7:], starts.qpos[:, :3], starts.target)


def _prefixed(prefix: str, arrays: Snapshot) -> Snapshot:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _under(prefix: str, arrays: Snapshot) -> Snapshot:
    return {name.removeprefix(f"{prefix}."): array for name, array in arrays.items() if name.startswith(f"{prefix}.")}
