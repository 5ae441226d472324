"""Crash-safe training: one file from which a killed training goes on to the very numbers it would have reached.

Written at the start of a rollout, the one moment at which PPO's buffer is empty and everything that the rest of the
training depends on is in plain sight: networks, optimisers, normalisers, SAC's replay buffer, the world and four
random generators (the environment's, torch's, the action space's, and numpy's global one, with which SB3 shuffles and
samples). An .npz of arrays and JSON texts, renamed into place whole; never a pickle.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rsr.common import DAMAGED, read_arrays, sha256, write_arrays
from rsr.environments import Bonus, at_rest, bonus_features
from rsr.policies.learner import Learner
from rsr.policies.snapshots import Snapshot
from rsr.scenarios import Scenario, limits_of, python_files, task_of

_ROOM = Path(__file__).parents[1]
_CODE = ("policies", "environments", "scenarios", "simulators", "infogap")
_PACKAGES = ("numpy", "mujoco", "torch", "stable_baselines3")
_PROBES = 64

_logger = logging.getLogger(__name__)


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
        "episode": [scenario.control_dt_s, scenario.history_steps, scenario.episode_steps],
        "noise": scenario.channel_noise,
        "versions": {name: metadata.version(name) for name in _PACKAGES},
        "code": [sha256(file) for room in _CODE for file in sorted((_ROOM / room).rglob("*.py"))],
        "limits": repr(scenario.limits),
        "task": [*(sha256(file) for file in python_files(scenario.folder)), repr(scenario.task)],
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for row in np.atleast_2d(params):
        digest.update(np.float64(scenario.delay_s(row)).tobytes() + _model_bytes(scenario.model(row)))
    for name, array in sorted((state or {}).items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    if bonus is not None:
        digest.update(np.ascontiguousarray(bonus(*_probes(scenario))).tobytes())
    return digest.hexdigest()


def _model_bytes(model: mujoco.MjModel) -> bytes:
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def _probes(scenario: Scenario) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions on which two different bonuses differ: a bonus is a function, so what it pays is its identity."""
    rng, task = np.random.default_rng(0), task_of(scenario)
    starts = [at_rest(scenario, task, task.reset(rng, _PROBES)) for _ in range(2)]
    before, after = (bonus_features(task, limits_of(scenario, task), channels) for channels in starts)
    return before, rng.uniform(-1, 1, (_PROBES, task.action.size)), after
