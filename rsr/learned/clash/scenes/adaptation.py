"""Adaptation of a scenario's own scene to recorded impacts: its parameters are fitted, and what they leave over learnt.

Nothing is distilled: impacts are simulated one by one, some hundred in a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cmaes import CMA

from rsr.common import Advance, derive_seed, ignore
from rsr.learned.clash.adaptation import refuse_few
from rsr.learned.clash.comparison import CURVE, FITTED, Comparison, JudgedStrikes, able_counts, splits
from rsr.learned.clash.frame import TOLERANCE, relative_errors, to_contact
from rsr.learned.clash.law import ImpactLaw, fit_law, missed_shares
from rsr.learned.clash.prediction import evidence_weights
from rsr.learned.clash.rejection import contradicted
from rsr.learned.clash.residual import Residual, fit_residual
from rsr.learned.clash.scenes.impacts import SceneImpacts, simulate
from rsr.learned.clash.scenes.model import PUSH_APART_S, AdaptedScene, bases, intervals
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.learned.clash.scenes.tables import SceneStrikes
from rsr.learned.clash.sliding import SlidingModel, fit_sliding
from rsr.scenarios.built_in.strike import RecordedStrikes

_POPULATION, _GENERATIONS, _SIGMA = 10, 30, 0.5
_USUAL_SHARE = 0.1
"""Errors above a tenth of the speed count less than their square: one glitch must not decide a parameter."""
_PRIOR_WEIGHT = 0.05
_SAME_SHARE, _FEWEST_SINGLE = 0.02, 4
"""An impact is a single push if what follows it changes the velocity by less than this share of the speed."""


def adapt_scene(scene: ContactScene, recorded: SceneStrikes, seed: int = 0) -> AdaptedScene:
    """Fit the scene's parameters, reject glitches, and learn what is left over."""
    refuse_few(len(recorded), "impacts")
    values = fit_parameters(scene, recorded, seed)
    pushes, single = _single_pushes(scene, values, recorded)
    rejected = tuple(int(single[row]) for row in _glitches(scene, recorded.take(single), pushes.take(single)))
    kept = recorded.take(np.delete(np.arange(len(recorded)), rejected))
    if rejected:
        values = fit_parameters(scene, kept, seed)
        pushes, single = _single_pushes(scene, values, kept)
    law, residuals, weights = _left_over(scene, kept.take(single), pushes.take(single))
    return AdaptedScene(scene, values, law, residuals, weights, _sliding(scene, kept), rejected)


def _single_pushes(scene: ContactScene, values: np.ndarray, recorded: SceneStrikes) -> tuple[SceneImpacts, np.ndarray]:
    """First pushes of all impacts, and the rows that are over with it: law and residuals are learnt from these."""
    first, whole = (simulate(scene, values, recorded.states, apart_s) for apart_s in (PUSH_APART_S, None))
    weights = np.array([1.0, 1.0, scene.shape.gyration_m])
    further = np.linalg.norm((whole.gained - first.gained) * weights, axis=1) / first.strikes.speed_m_s
    # Where hardly any is, those that come nearest: a law needs some rows.
    return first, np.union1d(np.flatnonzero(further < _SAME_SHARE), np.argsort(further)[:_FEWEST_SINGLE])


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


def _left_over(
    scene: ContactScene, recorded: SceneStrikes, impacts: SceneImpacts
) -> tuple[ImpactLaw, tuple[Residual, Residual], np.ndarray]:
    """Fit the law, and the residuals of scene and law; weigh both by how they predict impacts that were left out."""
    shape, strikes = scene.shape, impacts.strikes
    # Ground friction is in the scene, which knows whether there is a ground at all.
    law = fit_law(shape, RecordedStrikes(strikes, recorded.gained), 0.0, mobility=impacts.mobility)
    wanted = to_contact(shape, strikes, recorded.gained)
    fits = [fit_residual(shape, strikes, base, wanted, patch=impacts.patch) for base in bases(scene, law, impacts)]
    return law, (fits[0], fits[1]), evidence_weights(np.array([fit.evidence for fit in fits]))


def _glitches(scene: ContactScene, recorded: SceneStrikes, pushes: SceneImpacts) -> tuple[int, ...]:
    """Find impacts that scene, law and residuals, fitted to the others, contradict."""

    def judged(fitted: np.ndarray, left_out: np.ndarray) -> np.ndarray:
        others = pushes.take(left_out)
        mean, std = intervals(scene, *_left_over(scene, recorded.take(fitted), pushes.take(fitted)), others)
        return np.abs((to_contact(scene.shape, others.strikes, recorded.gained[left_out]) - mean) / std).max(axis=1)

    strikes = RecordedStrikes(pushes.strikes, recorded.gained)
    law = fit_law(scene.shape, strikes, 0.0, mobility=pushes.mobility, bounded=True)
    return contradicted(missed_shares(law, strikes, pushes.mobility), judged)


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
        predicted["adapted"].append(model(states))
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
