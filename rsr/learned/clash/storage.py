"""Surrogates and adapted models on disk: JSON and byte-stable arrays, nothing pickled."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rsr.common import DAMAGED, CalibrationError, read_arrays, read_json, write_arrays, write_json
from rsr.learned.clash.adaptation import Adapted, IdentifiedImpact, StruckBlock, models_of
from rsr.learned.clash.generate import definition_card, definition_from, shape_card, shape_from
from rsr.learned.clash.law import ImpactLaw
from rsr.learned.clash.prediction import Blended, Corrected
from rsr.learned.clash.residual import ObservedStrikes, Residual
from rsr.learned.clash.sliding import SlidingModel
from rsr.learned.clash.surrogate import Surrogate, new_surrogate
from rsr.scenarios.built_in.strike import PARAMETERS

VERSION = 4
_LAW = ("restitution", "restitution_fall", "friction", "ground_s", "ground_friction", "striker_mass_kg")


def save_surrogate(folder: Path, surrogate: Surrogate, evidence: dict[str, float] | None = None) -> None:
    """Write `surrogate.json` and `surrogate.npz`; equal weights give equal bytes."""
    weights = {name: value.numpy() for name, value in surrogate.network.state_dict().items()}
    write_arrays(folder / "surrogate.npz", weights)
    card = {"version": VERSION, "shape": shape_card(surrogate.shape)}
    card["definition"] = definition_card(surrogate.definition)
    write_json(folder / "surrogate.json", card | {"held_out": evidence or {}})


def load_surrogate(folder: Path) -> Surrogate:
    try:
        card = read_json(folder / "surrogate.json")
        _refuse_recipe(folder, card)
        weights = {name: torch.as_tensor(value) for name, value in read_arrays(folder / "surrogate.npz").items()}
        # Surrogates of an earlier release say nothing of what struck: they know the usual one.
        definition = definition_from(card["definition"]) if "definition" in card else None
        surrogate = new_surrogate(shape_from(card["shape"]), definition)
        # Those that do not say their ranges either are trusted everywhere, as they were.
        ranges = {name: getattr(surrogate.network, name) for name in ("input_low", "input_high")}
        surrogate.network.load_state_dict(ranges | weights)
    except (*DAMAGED, RuntimeError) as error:
        raise _damaged(folder, error, "surrogate.json and surrogate.npz", "train") from error
    surrogate.network.requires_grad_(False)
    return surrogate


def _refuse_recipe(folder: Path, card: dict[str, Any]) -> None:
    """Refuse a network of an earlier release whose inputs are not of the contact frame."""
    recipe = card.get("preset", {}).get("name", "default")
    if recipe != "default":
        raise CalibrationError(
            got=f"a surrogate of the recipe '{recipe}'",
            expected="one of the recipe that `rsr clash train` has; the paper's are in benchmarks/baselines",
            where=str(folder),
            next_step="Train it again with `rsr clash train`.",
        )


def save_adapted(folder: Path, model: Adapted) -> None:
    """Write `adapted.json`, `adapted.npz` and, where there is one, the surrogate: all that a prediction needs."""
    base, found = model.base, model.identified
    if isinstance(base, Surrogate):
        save_surrogate(folder, base)
    arrays, residuals = {"weights": model.collision.weights}, {}
    for name, member in zip(_members(found), model.collision.members, strict=True):
        arrays |= residual_arrays(name, member.residual)
        residuals[name] = residual_card(member.residual)
    # The card goes last: a folder with adapted.json is a whole one, wherever a run was killed.
    write_arrays(folder / "adapted.npz", arrays)
    card = {
        "version": VERSION,
        "shape": shape_card(base.shape),
        "definition": definition_card(base.definition),
        "parameters": None if found is None else PARAMETERS.mapping(found.values),
        "parameter_spread": None if found is None else PARAMETERS.mapping(found.spread),
        "loss": None if found is None else found.loss,
        "law": law_card(model.law),
        "residuals": residuals,
        "rejected": list(model.rejected),
        "sliding": None if model.sliding is None else asdict(model.sliding),
    }
    write_json(folder / "adapted.json", card)


def load_adapted(folder: Path) -> Adapted:
    try:
        card, arrays = read_json(folder / "adapted.json"), read_arrays(folder / "adapted.npz")
        _refuse_scene(folder, card)
        refuse_earlier(card, VERSION)
        identified = _identified(card)
        if identified is None:
            base = StruckBlock(shape_from(card["shape"]), definition_from(card["definition"]))
        else:
            base = load_surrogate(folder)
        names = _members(identified)
        residuals = [stored_residual(arrays, name, card["residuals"][name]) for name in names]
        law = ImpactLaw(base.shape, **card["law"])
        sliding = None if card["sliding"] is None else SlidingModel(**card["sliding"])
    except DAMAGED as error:
        raise _damaged(folder, error, "adapted.json and adapted.npz", "adapt") from error
    bases, trusts = models_of(base, identified, law)
    parts = zip(bases, residuals, trusts, strict=True)
    members = tuple(Corrected(base.shape, *part) for part in parts)
    return Adapted(base, identified, law, Blended(members, arrays["weights"]), sliding, tuple(card["rejected"]))


def _refuse_scene(folder: Path, card: dict[str, Any]) -> None:
    if card.get("base") == "scene":
        raise CalibrationError(
            got="the adapted scene of a scenario",
            expected="a model of a round nose that strikes a prism, which alone plans and routes know",
            where=str(folder),
            next_step="Adapt with --shape; of a scene, load_scene(folder) says how impacts end.",
        )


def refuse_earlier(card: dict[str, Any], version: int) -> None:
    """Refuse an adapted model whose residual was another one."""
    if card["version"] != version:
        raise ValueError(f"an adapted model of an earlier release (version {card['version']} of its files)")


def _members(identified: IdentifiedImpact | None) -> tuple[str, ...]:
    return ("law",) if identified is None else ("surrogate", "law")


def _identified(card: dict[str, Any]) -> IdentifiedImpact | None:
    if card["parameters"] is None:
        return None
    values, spread = (
        np.array([card[key][name] for name in PARAMETERS.names]) for key in ("parameters", "parameter_spread")
    )
    return IdentifiedImpact(values, card["loss"], spread)


def law_card(law: ImpactLaw) -> dict[str, float]:
    """Describe a law for JSON; with a shape, `ImpactLaw` is made from it again."""
    return {name: getattr(law, name) for name in _LAW}


def residual_card(residual: Residual) -> dict[str, Any]:
    return {key: getattr(residual, key) for key in ("mirrored", "evidence", "widening")}


def residual_arrays(name: str, residual: Residual) -> dict[str, np.ndarray]:
    """The arrays of one member, with its name before theirs."""
    columns = {column: getattr(residual.known, column) for column in ObservedStrikes.__annotations__}
    columns |= {"residuals": residual.residuals, "mixture": residual.mixture}
    return {f"{name}.{column}": values for column, values in columns.items()}


def stored_residual(arrays: dict[str, np.ndarray], name: str, card: dict[str, Any]) -> Residual:
    """Undo `residual_card` and `residual_arrays`."""
    own = {key.removeprefix(f"{name}."): values for key, values in arrays.items() if key.startswith(f"{name}.")}
    known = ObservedStrikes(*(own[column] for column in ObservedStrikes.__annotations__))
    return Residual(known, own["residuals"], card["mirrored"], own["mixture"], card["evidence"], card["widening"])


def _damaged(folder: Path, error: Exception, files: str, command: str) -> CalibrationError:
    return CalibrationError(
        got=str(error).splitlines()[0],
        expected=f"{files} as `rsr clash {command}` writes them",
        where=str(folder),
        next_step=f"Correct the folder, or run `rsr clash {command}` again.",
    )
