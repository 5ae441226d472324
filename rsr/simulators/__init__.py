"""Simulators behind one contract: states and commands in, states out, batched. May import sessions and scenarios."""

from rsr.simulators.mujoco import MujocoSimulator, Simulator, delay_weights, delayed, in_force, weights_of
from rsr.simulators.recordings import evaluate_recording, unseen_episodes
from rsr.simulators.sensor_correction import correct_sensors, estimate_biases
from rsr.simulators.sent_commands import SentCommands
from rsr.simulators.unstable import listen

listen()  # before anything is simulated

__all__ = [
    "MujocoSimulator",
    "SentCommands",
    "Simulator",
    "correct_sensors",
    "delay_weights",
    "delayed",
    "estimate_biases",
    "evaluate_recording",
    "in_force",
    "unseen_episodes",
    "weights_of",
]
