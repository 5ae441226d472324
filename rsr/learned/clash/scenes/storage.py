"""Adapted scenes on disk: the scenario itself, JSON and byte-stable arrays, nothing pickled."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rsr.common import DAMAGED, CalibrationError, read_arrays, read_json, write_arrays, write_json
from rsr.learned.clash.law import ImpactLaw
from rsr.learned.clash.scenes.model import AdaptedScene
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.learned.clash.sliding import SlidingModel
from rsr.learned.clash.storage import law_card, refuse_earlier, residual_arrays, residual_card, stored_residual
from rsr.scenarios import load_scenario

VERSION = 2
_MEMBERS = ("scene", "law")


def save_scene(folder: Path, model: AdaptedScene) -> None:
    """Write the scenario, `adapted.json` and `adapted.npz`: all that a prediction needs."""
    model.scene.scenario.save(folder / "scenario")
    arrays = {"weights": model.weights}
    for name, residual in zip(_MEMBERS, model.residuals, strict=True):
        arrays |= residual_arrays(name, residual)
    card = {
        "version": VERSION,
        "base": "scene",
        "parameters": model.scene.scenario.space.mapping(model.values),
        "law": law_card(model.law),
        "residuals": {name: residual_card(residual) for name, residual in zip(_MEMBERS, model.residuals, strict=True)},
        "rejected": list(model.rejected),
        "sliding": None if model.sliding is None else asdict(model.sliding),
    }
    write_arrays(folder / "adapted.npz", arrays)
    # The card goes last: a folder with adapted.json is a whole one, wherever a run was killed.
    write_json(folder / "adapted.json", card)


def load_scene(folder: Path) -> AdaptedScene:
    try:
        card, arrays = read_json(folder / "adapted.json"), read_arrays(folder / "adapted.npz")
        if card.get("base") != "scene":
            raise ValueError("a model of strikes on a prism, which load_adapted reads")
        refuse_earlier(card, VERSION)
        first, second = (stored_residual(arrays, name, card["residuals"][name]) for name in _MEMBERS)
        sliding = None if card["sliding"] is None else SlidingModel(**card["sliding"])
        scene = ContactScene(load_scenario(folder / "scenario"))
        values, law = scene.scenario.space.vector(card["parameters"]), ImpactLaw(scene.shape, **card["law"])
        rejected = tuple(card["rejected"])
        return AdaptedScene(scene, values, law, (first, second), arrays["weights"], sliding, rejected)
    except DAMAGED as error:
        raise CalibrationError(
            got=str(error).splitlines()[0],
            expected="adapted.json, adapted.npz and scenario/ as `rsr clash adapt --scenario` writes them",
            where=str(folder),
            next_step="Correct the folder, or run `rsr clash adapt --scenario` again.",
        ) from error
