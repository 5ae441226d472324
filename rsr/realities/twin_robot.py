"""The twin behind LeRobot's `Robot` interface: everything that a robot goes through, without one.

`send_action` lets one control period pass in the hidden world.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rsr.policies import World
from rsr.randomness import generator
from rsr.realities.robot import Placement
from rsr.realities.twin import Twin
from rsr.scenarios import load_scenario

_JOINTS = tuple(f"joint{number}.pos" for number in range(1, 7))
_BLOCK = tuple(f"block.{axis}" for axis in ("x", "y", "z"))
_TURN = tuple(f"block.{part}" for part in ("qw", "qx", "qy", "qz"))
_AGE = "block.age"


class TwinRobot:
    """One twin as a robot. Angles in rad, lengths in m; `block.age` says how old the block's pose is.

    Args:
        seed: which hidden world.
    """

    name = "twin"

    def __init__(self, scenario: str = "push_cube", seed: int = 0) -> None:
        self._twin = Twin(load_scenario(scenario), seed)
        self._rng = generator(seed, "twin", "robot")
        self._world: World | None = None
        self._connected = False

    @property
    def observation_features(self) -> Mapping[str, Any]:
        return dict.fromkeys((*_JOINTS, *_BLOCK, *_TURN, _AGE), float)

    @property
    def action_features(self) -> Mapping[str, Any]:
        return dict.fromkeys(_JOINTS, float)

    @property
    def is_connected(self) -> bool:
        return self._connected

    @property
    def is_calibrated(self) -> bool:
        return True

    def calibrate(self) -> None:
        """Nothing to do: a stand-in has no encoders to zero."""

    def configure(self) -> None:
        """Nothing to do."""

    def connect(self, calibrate: bool = True) -> None:
        self._connected = True

    def disconnect(self) -> None:
        self._connected = False
        if self._world is not None:
            self._world.close()
            self._world = None

    def place(self, placement: Placement) -> None:
        """Put block and arm where an episode starts, at rest."""
        if self._world is not None:
            self._world.close()
        self._world = self._twin.world(self._rng, 1)
        self._world.place(np.arange(1), placement.start)

    def get_observation(self) -> dict[str, float]:
        measured = self._twin.measure(self._placed(), self._rng)
        numbers = np.concatenate(
            [measured[name][0] for name in ("joint_position", "block_position", "block_orientation")]
        )
        return {**dict(zip((*_JOINTS, *_BLOCK, *_TURN), numbers.tolist(), strict=True)), _AGE: 0.0}

    def send_action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        self._placed().send(np.array([[float(action[key]) for key in _JOINTS]]))
        return {key: action[key] for key in _JOINTS}

    def _placed(self) -> World:
        if self._world is None or not self._connected:
            raise ConnectionError("the twin is not connected, or nothing was placed in it yet")
        return self._world
