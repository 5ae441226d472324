"""Adaptation of a scenario's own scene to recorded impacts: its parameters are fitted, and what they leave over learnt.

Nothing is distilled: impacts are simulated one by one, some hundred in a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from cmaes import CMA

from rsr.common import (
    DAMAGED,
    Advance,
    CalibrationError,
    derive_seed,
    ignore,
    read_arrays,
    read_json,
    write_arrays,
    write_json,
)
from rsr.learned.clash.adaptation import by_fold, contradicted
from rsr.learned.clash.comparison import CURVE, FITTED, Comparison, JudgedStrikes, able_counts, splits
from rsr.learned.clash.frame import TOLERANCE, from_contact, relative_errors, to_contact
from rsr.learned.clash.law import ImpactLaw, fit_law
from rsr.learned.clash.prediction import evidence_weights, mixed
from rsr.learned.clash.residual import Z90, ObservedStrikes, Residual, fit_residual, observe
from rsr.learned.clash.scenes.impacts import SceneImpacts, simulate
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.learned.clash.scenes.tables import SceneStrikes
from rsr.learned.clash.sliding import SlidingModel, fit_sliding
from rsr.learned.clash.storage import law_card, residual_arrays, residual_card, stored_residual
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import RecordedStrikes

VERSION = 1
_MEMBERS = ("scene", "law")
_MINIMUM = 3
_POPULATION, _GENERATIONS, _SIGMA = 10, 30, 0.5
_USUAL_SHARE = 0.1
"""Errors above a tenth of the speed count less than their square: one glitch must not decide a parameter."""
_PRIOR_WEIGHT = 0.05
_GLITCH_STDS = 6.0


@dataclass(frozen=True)
class AdaptedScene:
    """A scene with fitted parameters, a law of rigid impact beside it, and what both leave over.

    Example:
        scene = ContactScene(load_scenario(folder))
        model = adapt_scene(scene, read_scene_strikes(table, scene))
        gained = model(states)

    Args:
        values: [P], of the scenario's parameters.
        law: fitted to the same impacts, at the points and normals that the scene has.
        residuals: of the scene and of the law. weights: [2], of both; they add up to one.
        sliding: None where recordings do not say where the body came to rest.
        rejected: rows of the recorded impacts that the others contradict; nothing was fitted to them.
    """

    scene: ContactScene
    values: np.ndarray
    law: ImpactLaw
    residuals: tuple[Residual, Residual]
    weights: np.ndarray
    sliding: SlidingModel | None
    rejected: tuple[int, ...] = ()

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Change of the struck body's velocity [N, 3], in its frame before, from states in which the two just touch."""
        return self.gained(simulate(self.scene, self.values, states))

    def gained(self, impacts: SceneImpacts) -> np.ndarray:
        """The same from simulated impacts; nothing happens where nothing acted."""
        shares = [
            base + residual.mean(_seen(self.scene, impacts, base))
            for base, residual in zip(_bases(self.scene, self.law, impacts), self.residuals, strict=True)
        ]
        found = from_contact(self.scene.shape, impacts.strikes, np.einsum("m,mnk->nk", self.weights, shares))
        return np.where(impacts.touched[:, None], found, impacts.gained)

    def inside(self, recorded: SceneStrikes, z: float = Z90) -> np.ndarray:
        """Find the measured components [N, 3] that lie in their intervals, 90 % wide by default."""
        impacts = simulate(self.scene, self.values, recorded.states)
        mean, std = _intervals(self.scene, self.law, self.residuals, self.weights, impacts)
        return np.abs(to_contact(self.scene.shape, impacts.strikes, recorded.gained) - mean) <= z * std


def adapt_scene(scene: ContactScene, recorded: SceneStrikes, seed: int = 0) -> AdaptedScene:
    """Fit the scene's parameters, reject glitches, and learn what is left over."""
    if len(recorded) < _MINIMUM:
        raise CalibrationError(
            got=f"{len(recorded)} impacts",
            expected=f"at least {_MINIMUM}, better 10",
            where="adaptation",
            next_step="Record more impacts, at other places and speeds.",
        )
    values = fit_parameters(scene, recorded, seed)
    rejected = _glitches(scene, recorded, simulate(scene, values, recorded.states))
    kept = recorded.take(np.delete(np.arange(len(recorded)), rejected))
    if rejected:
        values = fit_parameters(scene, kept, seed)
    law, residuals, weights = _left_over(scene, kept, simulate(scene, values, kept.states))
    return AdaptedScene(scene, values, law, residuals, weights, _sliding(scene, kept), rejected)


def fit_parameters(scene: ContactScene, recorded: SceneStrikes, seed: int = 0) -> np.ndarray:
    """Fit the scenario's parameters [P] by CMA-ES in their coordinates, within their bounds, from nominal ones."""
    space = scene.scenario.space
    bounds = np.column_stack([space.to_coordinates(bound) for bound in (space.lower, space.upper)])
    bounds.sort(axis=1)
    middle, std = space.to_coordinates(space.nominal), np.minimum(space.prior_std, np.ptp(bounds, axis=1) / 2)
    speeds = simulate(scene, space.nominal, recorded.states).strikes.speed_m_s
    weights = np.array([1.0, 1.0, scene.shape.gyration_m]) / speeds[:, None]

    def values_at(point: np.ndarray) -> np.ndarray:
        return np.clip(space.to_values(middle + std * point), space.lower, space.upper)

    def loss(point: np.ndarray) -> float:
        missed = (simulate(scene, values_at(point), recorded.states).gained - recorded.gained) * weights
        # Pseudo-Huber: square below a tenth of the speed, straight above.
        robust = np.sqrt(1 + (missed**2).sum(axis=1) / _USUAL_SHARE**2) - 1
        return float(robust.sum() + _PRIOR_WEIGHT * (point**2).sum())

    search = CMA(
        mean=np.zeros(len(space)),
        sigma=_SIGMA,
        bounds=(bounds - middle[:, None]) / std[:, None],
        population_size=_POPULATION,
        seed=derive_seed(seed, "scene"),
    )
    best, least = np.zeros(len(space)), loss(np.zeros(len(space)))
    for _ in range(_GENERATIONS):
        points = [search.ask() for _ in range(_POPULATION)]
        losses = [loss(point) for point in points]
        search.tell(list(zip(points, losses, strict=True)))
        if min(losses) < least:
            best, least = points[int(np.argmin(losses))], min(losses)
        if search.should_stop():
            break
    return values_at(best)


def _bases(scene: ContactScene, law: ImpactLaw, impacts: SceneImpacts) -> tuple[np.ndarray, np.ndarray]:
    """What the scene and the law say, [N, 3] each, in the contact frame."""
    by_law = law(impacts.strikes, impacts.mobility)
    gained = (to_contact(scene.shape, impacts.strikes, each) for each in (impacts.gained, by_law))
    return next(gained), next(gained)


def _seen(scene: ContactScene, impacts: SceneImpacts, base: np.ndarray) -> ObservedStrikes:
    """Impacts in the terms of the residual."""
    return observe(scene.shape, impacts.strikes, base, impacts.patch)


def _left_over(
    scene: ContactScene, recorded: SceneStrikes, impacts: SceneImpacts
) -> tuple[ImpactLaw, tuple[Residual, Residual], np.ndarray]:
    """Fit the law, and the residuals of scene and law; weigh both by how they predict impacts that were left out."""
    shape, strikes = scene.shape, impacts.strikes
    # Ground friction is in the scene, which knows whether there is a ground at all.
    law = fit_law(shape, RecordedStrikes(strikes, recorded.gained), 0.0, mobility=impacts.mobility)
    wanted = to_contact(shape, strikes, recorded.gained)
    fits = [fit_residual(shape, strikes, base, wanted, patch=impacts.patch) for base in _bases(scene, law, impacts)]
    return law, (fits[0], fits[1]), evidence_weights(np.array([fit.evidence for fit in fits]))


def _intervals(
    scene: ContactScene,
    law: ImpactLaw,
    residuals: tuple[Residual, Residual],
    weights: np.ndarray,
    impacts: SceneImpacts,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a measurement, [N, 3], contact frame, shares of the striking speed."""
    means, stds = [], []
    for base, residual in zip(_bases(scene, law, impacts), residuals, strict=True):
        mean, std = residual.predict(_seen(scene, impacts, base))
        means.append(base + mean)
        stds.append(std)
    return mixed(np.broadcast_to(weights[:, None], (2, len(means[0]))), np.array(means), np.array(stds))


def _glitches(scene: ContactScene, recorded: SceneStrikes, impacts: SceneImpacts) -> tuple[int, ...]:
    """Find impacts that the others contradict."""

    def surprises(rows: np.ndarray) -> np.ndarray:
        return _surprises(scene, recorded.take(rows), impacts.take(rows))

    return contradicted(len(recorded), surprises, _GLITCH_STDS)


def _surprises(scene: ContactScene, recorded: SceneStrikes, impacts: SceneImpacts) -> np.ndarray:
    """Largest error [N] of each impact in standard deviations, by what was fitted without its fold."""

    def largest(fitted: np.ndarray, left_out: np.ndarray) -> np.ndarray:
        judged = impacts.take(left_out)
        mean, std = _intervals(scene, *_left_over(scene, recorded.take(fitted), impacts.take(fitted)), judged)
        return np.abs((to_contact(scene.shape, judged.strikes, recorded.gained[left_out]) - mean) / std).max(axis=1)

    return by_fold(len(recorded), largest)


def _sliding(scene: ContactScene, recorded: SceneStrikes) -> SlidingModel | None:
    """How the struck body slides to rest, where it lies on a table and was at rest before."""
    upright = np.abs(scene.axes[2] @ scene.model.opt.gravity) > 0.99 * np.linalg.norm(scene.model.opt.gravity)
    if recorded.rest is None or not upright:
        return None
    strikes = simulate(scene, scene.scenario.space.nominal, recorded.states).strikes
    return fit_sliding(scene.shape, RecordedStrikes(strikes, recorded.gained, recorded.rest))


# Evidence: impacts that a model was not fitted to.


def compare_scene(
    scene: ContactScene, recorded: SceneStrikes, fitted: int = FITTED, seed: int = 0, advance: Advance = ignore
) -> Comparison:
    """Adapt to some impacts; judge nominal scene, fitted scene and adapted model on the others."""
    parts, how = splits(len(recorded), fitted)
    models = []
    for number, (rows, _) in enumerate(parts, start=1):
        models.append(adapt_scene(scene, recorded.take(rows), seed))
        advance(number / len(parts), f"adapted to {len(rows)} impacts")
    test = recorded.take(np.concatenate([rows for _, rows in parts]))
    predicted: dict[str, list[np.ndarray]] = {"before": [], "scene": [], "adapted": []}
    inside = []
    for model, (_, rows) in zip(models, parts, strict=True):
        states = recorded.states[rows]
        impacts = simulate(scene, model.values, states)
        predicted["before"].append(simulate(scene, scene.scenario.space.nominal, states).gained)
        predicted["scene"].append(impacts.gained)
        predicted["adapted"].append(model.gained(impacts))
        inside.append(model.inside(recorded.take(rows)))
    covered = {"adapted": float(np.concatenate(inside).mean())}
    judged = (_judge(scene, name, np.concatenate(each), test, covered.get(name)) for name, each in predicted.items())
    strikes = simulate(scene, scene.scenario.space.nominal, test.states).strikes
    return Comparison(RecordedStrikes(strikes, test.gained), how, tuple(judged))


def _judge(
    scene: ContactScene, name: str, predicted: np.ndarray, test: SceneStrikes, inside: float | None
) -> JudgedStrikes:
    errors, raw = (relative_errors(predicted, test.gained, radius) for radius in (scene.shape.gyration_m, 1.0))
    return JudgedStrikes(name, predicted, errors, raw, inside)


def scene_curve(
    scene: ContactScene, recorded: SceneStrikes, counts: Sequence[int] = CURVE, seed: int = 0
) -> dict[int, float]:
    """Accuracy after so many impacts; see `learning_curve`."""
    able, curve = able_counts(len(recorded), counts), {}
    for count in able:
        test = recorded.take(slice(max(able), None))
        predicted = adapt_scene(scene, recorded.take(slice(0, count)), seed)(test.states)
        curve[count] = float((relative_errors(predicted, test.gained, scene.shape.gyration_m) < TOLERANCE).mean())
    return curve


# On disk.


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
