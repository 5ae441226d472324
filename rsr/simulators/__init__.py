"""Simulators behind one contract: states and commands in, states out, batched. May import sessions and scenarios."""

from rsr.simulators.contract import Simulator
from rsr.simulators.delay import delay_weights, delayed
from rsr.simulators.mujoco import MujocoSimulator
from rsr.simulators.putting_right import estimate_zeros, put_right
from rsr.simulators.recordings import evaluate_recording, unseen_episodes

__all__ = [
    "MujocoSimulator",
    "Simulator",
    "delay_weights",
    "delayed",
    "estimate_zeros",
    "evaluate_recording",
    "put_right",
    "unseen_episodes",
]
