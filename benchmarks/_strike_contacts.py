"""Contacts that no round nose makes, in scenes of a user's own: a part of `benchmarks/clash.py`.

Flat pads, corners, walls and free bodies (`strike_worlds/contacts.py`). The product and MuJoCo fitted by CMA-ES have
the same scene, with the right geometry, and the same ten impacts; sixty others judge both.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from _common import Figure, kept
from _strike_kinds import column, interval
from baselines.strikes.mujoco import cmaes_scene
from strike_worlds.contacts import KINDS, ContactStandIn, write_scene

from rsr.common import Advance
from rsr.learned.clash import ContactScene, SceneStrikes, adapt_scene, read_scene_strikes, simulate
from rsr.scenarios import load_scenario

FITTED, JUDGED_IMPACTS = 10, 60
DEVELOPMENT, JUDGED = tuple(range(6)), tuple(range(8318, 8330))
KEYS = ("contact_kinds_error_ratio",)


def contact_figures(quick: bool, stand_ins: int, keep: Path | None, advance: Advance) -> dict[str, Figure]:
    """Judge both on stand-ins of every kind: errors in m/s, spins times the radius of gyration."""
    worlds = [(kind, seed) for seed in (DEVELOPMENT[:1] if quick else JUDGED[:stand_ins]) for kind in KINDS]
    rows = []
    for place, (kind, seed) in enumerate(worlds, start=1):
        rows.append(kept(keep, f"contact-{kind}-{seed}", partial(contact_row, kind, seed)))
        advance(place / len(worlds), f"{kind} {seed}")
    figures: dict[str, Figure] = {}
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        for name in ("adapted", "mujoco_cmaes", "fitted", "nominal"):
            figures[f"contact_error_{name}_{kind}"] = float(np.mean(column(own, name)))
        figures |= interval(f"contact_error_ratio_{kind}", column(own, "adapted") / column(own, "mujoco_cmaes"))
        figures[f"contact_coverage_{kind}"] = float(np.mean(column(own, "covered")))
    figures |= interval("contact_kinds_rms_ratio", column(rows, "rms_adapted") / column(rows, "rms_mujoco_cmaes"))
    return figures | interval("contact_kinds_error_ratio", column(rows, "adapted") / column(rows, "mujoco_cmaes"))


def contact_row(kind: str, seed: int) -> dict[str, Figure]:
    """Errors of the velocity after, of one stand-in."""
    with tempfile.TemporaryDirectory() as made:
        scene = ContactScene(load_scenario(write_scene(kind, Path(made) / "scene")))
        table = Path(made) / "impacts.csv"
        pyarrow.csv.write_csv(pa.table(ContactStandIn(kind, seed).record(FITTED + JUDGED_IMPACTS)), table)
        recorded = read_scene_strikes(table, scene)
        few, judged = recorded.take(slice(0, FITTED)), recorded.take(slice(FITTED, None))
        model = adapt_scene(scene, few, seed)
        values = {"mujoco_cmaes": cmaes_scene(scene, few, seed), "fitted": model.values}
        values["nominal"] = scene.scenario.space.nominal
        predicted = {name: simulate(scene, each, judged.states).gained for name, each in values.items()}
        predicted["adapted"] = model(judged.states)
        row: dict[str, Figure] = {"kind": kind, "covered": float(model.inside(judged).mean())}
        for name, gained in predicted.items():
            row[name], row[f"rms_{name}"] = errors(scene, judged, gained)
        return row


def errors(scene: ContactScene, judged: SceneStrikes, gained: np.ndarray) -> tuple[float, float]:
    """Mean length of the error, m/s, and its root mean square, which a few impacts that strike twice decide."""
    lengths = np.linalg.norm((gained - judged.gained) * np.array([1.0, 1.0, scene.shape.gyration_m]), axis=1)
    return float(lengths.mean()), float(np.sqrt((lengths**2).mean()))
