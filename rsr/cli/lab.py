"""Commands of a day in the lab: has the robot changed; recordings and approvals for the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

import rsr
from rsr.cli.command import NOT_IN_ORDER, OptionalFile, OptionalFolder, located, say
from rsr.common import write_json


def drift(
    sessions: Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]", help_behavior_hint="")] = (),
    workspace: OptionalFolder = None,
    json: OptionalFile = None,
) -> int:
    """Say whether the robot has changed since it was calibrated. Exit code 1 if it has.

    Recordings are replayed under the calibration; where their gap leaves the band of the episodes by which the
    calibration was judged, something has changed.

    Args:
        sessions: new recordings, judged by the newest calibration; by default what lies in the inbox and was not
            tuned to yet, or else the newest session of the chain, judged by the calibration before it.
        workspace: the campaign's folder; by default the current one or the nearest above it.
        json: also write the figures to this file.
    """
    found = rsr.pipelines.check_gap(located(workspace), sessions)
    say(str(found))
    if json is not None:
        figures = {"gap_then": found.gap_then, "gap_now": found.gap_now, "limit": found.limit, "unit": found.gap_unit}
        write_json(json, {"changed": found.changed, "episodes": found.episodes, **figures})
    return NOT_IN_ORDER if found.changed else 0


def answer(
    sources: Positional[Annotated[tuple[Path, ...], arg(metavar="SOURCE [SOURCE ...]", help_behavior_hint="")]],
    /,
    *,
    map: OptionalFile = None,
    workspace: OptionalFolder = None,
) -> int:
    """Put recordings into a campaign's inbox as the session that it waits for; where a lab is served, it then goes on.

    Args:
        sources: a stored session, an archive of one, or raw recordings in any format that `rsr ingest` reads.
        map: for raw recordings: YAML file that says which columns are which channels; what it lacks is guessed.
        workspace: the campaign's folder; by default the current one or the nearest above it.
    """
    from rsr.pipelines.lab import arrivals as steps

    iteration = steps.answer(located(workspace), sources, map)
    say(f"in the inbox, for iteration {iteration}; `rsr status` says what comes next")
    return 0


def approve(
    iteration: Annotated[int, arg(metavar="K")],
    by: Annotated[str, arg(metavar="NAME")],
    key: OptionalFile = None,
    note: Annotated[str, arg(metavar="TEXT", help_behavior_hint="")] = "",
    workspace: OptionalFolder = None,
) -> int:
    """Let the policy of an iteration be deployed, where `reality.approval` in params.yaml asks for it.

    Args:
        iteration: whose policy; read its report first.
        by: who answers for it; where the campaign has an approvers.yaml, one of its names.
        key: SSH key of that name, to sign with; or its public half, where an agent holds the other. Needed there.
        note: what else there is to say.
        workspace: the campaign's folder; by default the current one or the nearest above it.
    """
    from rsr.pipelines.lab import approval

    given = approval.approve(located(workspace), iteration, by, note, key)
    say(f"policy {given.policy_sha256[:12]} of iteration {iteration} may be deployed, says {given.said_by()}")
    return 0
