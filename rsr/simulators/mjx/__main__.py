"""`python -m rsr.simulators.mjx DUMP.npz`: play the states of a dump again, in MJX and in C, step by step."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rsr.common import read_arrays
from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx.simulator import MjxSimulator


def replay(path: Path) -> Table:
    """Roll a dump's first state forward in both simulators and differentiate it; one row a control step."""
    dump = read_arrays(path)
    scenario = load_scenario(str(dump["scenario"]))
    start, actions, params = dump["states"][:1], dump["actions"][None], dump["params"]
    simulator = MjxSimulator(scenario)
    simulator.dumped = path  # a replay dumps nothing
    states, derivatives = simulator.sensitivities(start, actions, params)
    with MujocoSimulator(scenario) as c_simulator:
        expected = c_simulator.rollout(start, actions, params)
    table = Table(
        "control step", "largest |state| MJX", "largest |state| C", "largest |derivative|", title=escape(str(path))
    )
    for row in range(states.shape[1]):
        figures = (states[0, row], expected[0, row], derivatives[0, row])
        table.add_row(str(row), *(f"{np.abs(figure).max():.4g}" for figure in figures))
    return table


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m rsr.simulators.mjx DUMP.npz")
    Console().print(replay(Path(sys.argv[1])))
