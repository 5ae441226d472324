"""What a scenario leaves unsaid that its results hang on: good to know before anything is recorded or fitted."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco

from rsr.scenarios.channels.rolling import unseen_spins
from rsr.scenarios.scenario import Scenario


def notes_of(scenario: Scenario) -> Iterator[str]:
    """Say of each joint that no channel shows, in full or in part, how simulations of a recording begin."""
    model, rolling = scenario.base_model, unseen_spins(scenario)
    seen = {dof for observed in scenario.observed for dof in observed.dofs}
    widths = {mujoco.mjtJoint.mjJNT_FREE: 6, mujoco.mjtJoint.mjJNT_BALL: 3}
    for joint in range(model.njnt):
        first = int(model.jnt_dofadr[joint])
        dofs = set(range(first, first + widths.get(mujoco.mjtJoint(model.jnt_type[joint]), 1)))
        name = model.joint(joint).name or model.body(model.jnt_bodyid[joint]).name or str(joint)
        if joint in rolling:
            yield (
                f"no channel shows how '{name}' is turned: simulations of a recording begin with it as in the MJCF, "
                "rolling where it touches. That is right for a ball; of any other body record the orientation."
            )
        elif not dofs <= seen:
            yield (
                f"no channel shows joint '{name}': simulations of a recording begin with it as in the MJCF, at rest. "
                "If it moves, a fit takes that for other parameters: record it, or weld it."
            )
