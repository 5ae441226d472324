"""`rsr capabilities`: what each method can calibrate."""

from __future__ import annotations

from typing import Annotated

from rich.table import Table
from tyro.conf import arg

import rsr
from rsr.cli.command import say, show


def capabilities(scenario: Annotated[str | None, arg(metavar="S", help_behavior_hint="")] = None) -> int:
    """Print which field, effect, sensor and integrator each method of calibration can do, or what one scenario lacks.

    Args:
        scenario: say of this one which methods can calibrate it, and of the others what they lack.
    """
    if scenario is not None:
        for method in rsr.scenarios.SIMULATOR_OF:
            say(f"{method}: {_words(scenario, method)}")
        return 0
    _, *headings = rsr.scenarios.headings()
    table = Table(*headings)
    for kind, feature, *can in rsr.scenarios.cells():
        table.add_row(f"{kind}: {feature}", *can)  # a column of its own would leave the long names too little room
    show(table)
    say("by differences: with --sensitivity auto or differences; without it such a scenario is refused.")
    return 0


def _words(name: str, method: str) -> str:
    found = [
        used for _, used in rsr.scenarios.lacking(rsr.scenarios.load_scenario(name), rsr.scenarios.SIMULATOR_OF[method])
    ]
    if not found:
        return "nothing is lacking"
    without = "by differences only" if rsr.scenarios.SIMULATOR_OF[method] == "mjx" else "cannot"
    return f"{without}: {'; '.join(found)}"
