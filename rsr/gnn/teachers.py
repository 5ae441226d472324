"""An identified teacher on disk: its contact parameters, what they are worth, and the recordings they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rsr.errors import WorkspaceError
from rsr.files import DAMAGED, read_json, write_json
from rsr.gnn.identification import Identified
from rsr.gnn.trajectories import Trajectory, save_trajectories
from rsr.scenarios.two_cubes import ContactParameters

CARD, RECORDED = "teacher.json", "recorded.npz"
_VERSION = 1


def save_teacher(folder: Path, found: Identified, recorded: Sequence[Trajectory], scenario: str, seed: int) -> None:
    """Write a teacher, and the recorded trajectories with steady starts that a network may be fine-tuned on."""
    folder = Path(folder)
    save_trajectories(recorded, folder / RECORDED)
    card = {"version": _VERSION, "scenario": scenario, "seed": seed, "warnings": list(found.warnings)}
    figures = {name: getattr(found, name) for name in ("default_error", "error", "evaluations", "jumps")}
    write_json(folder / CARD, card | figures | {"contact": asdict(found.contact)})


def load_teacher(folder: Path) -> ContactParameters:
    """Read the contact parameters that `save_teacher` wrote."""
    path = Path(folder) / CARD
    try:
        card = read_json(path)
        contact = card["contact"]
        if card["version"] != _VERSION:
            raise ValueError(f"version {card['version']}")
        d_0, d_width, width, midpoint, power = map(float, contact["solimp"])
        time_constant, damping_ratio = map(float, contact["solref"])
        return ContactParameters(
            float(contact["mu"]), (d_0, d_width, width, midpoint, power), (time_constant, damping_ratio)
        )
    except DAMAGED as error:
        raise WorkspaceError(
            got=str(error) or type(error).__name__,
            expected="a teacher that `rsr gnn identify` wrote",
            where=str(path),
            next_step="Name its folder, or run `rsr gnn identify` again.",
        ) from error
