"""Section: where the data lie from which this page was made."""

from __future__ import annotations

import os
from pathlib import Path

from rsr.reports._html import Section, join, link, paragraph, table
from rsr.reports.data import ReportData


def links(data: ReportData) -> Section:
    workspace, k = data.workspace, data.iteration
    places: list[tuple[str, Path]] = [
        ("recorded session", workspace.session_dir(k)),
        ("settings frozen for the iteration", workspace.frozen_path(k)),
        ("calibration, with replayed trajectories", workspace.calibration_dir(k)),
        ("InfoGap model", workspace.infogap_dir(k)),
        ("policy trained in this iteration", workspace.policy_dir(k)),
        ("policy that was deployed", workspace.policy_dir(k - 1)),
        ("metrics", workspace.metrics_path(k)),
        ("closed-loop rollouts", workspace.evaluation_dir(k) / "rollouts.npz"),
        ("receipts", workspace.receipts_dir(k)),
    ]
    if k > 1:
        places.append((f"report of iteration {k - 1}", workspace.report_path(k - 1)))
    page = workspace.report_path(k).parent
    rows = [
        [what, link(Path(os.path.relpath(path, page)).as_posix(), workspace.relative(path))] for what, path in places
    ]
    note = paragraph("Files that are not on this machine come back with `dvc pull` or `dvc checkout` in the workspace.")
    return Section("links", "Data", join([table(["what", "where, in the workspace"], rows, text=(0, 1)), note]))
