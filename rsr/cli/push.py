"""`rsr push`: use a learned simulator for what no other one gives, gradients through collisions.

Such a simulator is learnt by `rsr calibrate --method gnn` or a campaign of the pipeline gnn, and judged by
`rsr evaluate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

import rsr
from rsr.cli.command import Count, Folder, Name, OptionalFile, say, show
from rsr.common import progress, titled_table

if TYPE_CHECKING:
    from rich.table import Table


_STARTS = 10
# Cubes that were pushed at 2 m/s have come to rest by then.
_HORIZON_S = 0.75


def push(
    scenario: Name,
    calibration: Folder,
    target: Annotated[tuple[float, float], arg(metavar="X Y")],
    steps: Count = 10,
    seed: Count = 0,
    json: OptionalFile = None,
) -> int:
    """Find how to push one body into another so that this one stops at a target, by gradients through the network.

    The first free body of the scenario is pushed into the second, from where its MJCF puts them. MuJoCo with the
    identified parameters then carries the best push out.

    Args:
        scenario: two_cubes, or any scenario of at least two free bodies.
        calibration: folder that `rsr calibrate --method gnn` or a campaign of the pipeline gnn wrote.
        target: where the struck body shall stop, in m in the world's frame.
        steps: gradient steps from each of ten starts.
        seed: of the starts.
        json: also write the pushes and their course to this file.
    """
    loaded = rsr.scenarios.load_scenario(scenario)
    learnt, params = (
        rsr.learned.gnn.load_gnn(loaded, calibration).network,
        rsr.calibration.load_calibration(calibration).vector(),
    )
    task, world = rsr.learned.gnn.PushTask.of(loaded, params, target), rsr.learned.gnn.free_bodies(loaded, params).world
    frames = round(_HORIZON_S / task.dt_s)
    starts = rsr.learned.gnn.sample_starts(task, _STARTS, seed)
    with progress.bar("push") as advance:
        found = rsr.learned.gnn.optimise_push(
            lambda start: rsr.learned.gnn.rollout(learnt, world, start, frames), task, starts, steps, advance
        )
    show(_table(found))
    best = int(found.distance_m.argmin())
    carried_out_m = rsr.learned.gnn.carry_out(loaded, params, task, found.velocity_m_s[best : best + 1], frames).item()
    x, y = found.velocity_m_s[best].tolist()
    say(f"push with {x:.3f} m/s along x and {y:.3f} m/s along y: {1e3 * found.distance_m[best]:.1f} mm from the target")
    say(f"carried out by MuJoCo: {1e3 * carried_out_m:.1f} mm from the target")
    if json is not None:
        figures = {name: getattr(found, name).tolist() for name in ("velocity_m_s", "distance_m", "trace_m")}
        rsr.common.write_json(json, figures | {"carried_out_m": carried_out_m})
    return 0


def _table(found: rsr.learned.gnn.Pushes) -> Table:
    rows = []
    for tried, velocity, trace, distance in zip(
        found.tried_m_s, found.velocity_m_s, found.trace_m, found.distance_m, strict=True
    ):
        words = [f"{x:.3f} {y:.3f}" for x, y in (tried[0].tolist(), velocity.tolist())]
        rows.append((words[0], f"{1e3 * trace[0]:.1f}", words[1], f"{1e3 * distance:.1f}"))
    header = ("start (m/s)", "at first (mm)", "found (m/s)", "at last (mm)")
    return titled_table("pushes", header, rows, text=())
