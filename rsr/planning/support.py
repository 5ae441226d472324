"""Bodies that fall in the scene and did not in reality: recorded too high, or without the contact that bears them.

A body at rest in the air is found among the poses; one that drives or balances never rests. A fit of it would make the
parameters answer for gravity.
"""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from rsr.calibration import Loss, start_prior
from rsr.planning.wrong_way import LEAST_WINDOWS, looked_at, short_windows
from rsr.scenarios import Observed, Scenario
from rsr.sessions import Finding, Session
from rsr.simulators import MujocoSimulator

_FALLS = 0.5
"""Share of a free fall by which the simulation must drop below the recording ..."""
_MOSTLY = 0.9
"""... in this share of the windows."""


def judge_support(scenario: Scenario, session: Session) -> Iterator[Finding]:
    """Find free bodies that nothing bears in the scene, with nominal parameters, though they did not fall."""
    tracked = [each for each in scenario.observed if _of_free_body(scenario, each)]
    gravity = scenario.base_model.opt.gravity
    pull = float(np.linalg.norm(gravity))
    if not tracked or pull == 0.0:
        return
    windows = short_windows(scenario, looked_at(session))
    if len(windows) < LEAST_WINDOWS:
        return
    with MujocoSimulator(scenario) as simulator:
        apart = Loss(scenario, simulator, windows, start_prior(scenario)).differences(np.zeros(len(scenario.space)))
    whole = windows.lengths == windows.steps
    fallen_m = pull * (windows.steps * scenario.control_dt_s) ** 2 / 2
    for observed in tracked:
        below_m = apart[observed.channel.name][whole, -1] @ gravity / pull
        if fallen_m > 3 * observed.noise and np.mean(below_m > _FALLS * fallen_m) > _MOSTLY:
            yield _finding(scenario, session, observed, float(np.median(below_m)), windows.steps)


def _finding(scenario: Scenario, session: Session, observed: Observed, below_m: float, steps: int) -> Finding:
    return Finding(
        "care", "physics", f"session '{session.card.session}', channel '{observed.channel.name}'",
        got=f"a body that did not fall, and that the scene lets fall, by {1e3 * below_m:.0f} mm in "
        f"{steps * scenario.control_dt_s:.2g} s",
        expected="something in the scene that bears it, as in reality",
        next_step="Check which point the recording shows (a marker, or the origin of the body?), the floor's height, "
        "and whether the geoms that touch have a `<pair>` or collide; correct the scene, or `offset` in the mapping.",
    )  # fmt: skip


def _of_free_body(scenario: Scenario, observed: Observed) -> bool:
    model = scenario.base_model
    if observed.kind != "linear" or len(observed.dofs) != 3:
        return False
    joint = model.dof_jntid[observed.dofs[0]]
    return bool(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE)
