"""Methods compared on strikes that they were not fitted to: the user's own evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rsr.clash.adaptation import adapt
from rsr.clash.methods import METHODS, NEEDS, SLOW, Bench
from rsr.clash.metric import TOLERANCE, relative_errors
from rsr.clash.prediction import Blended, Corrected
from rsr.clash.sliding import fit_sliding
from rsr.clash.surrogate import Surrogate
from rsr.files import write_json
from rsr.progress import Advance, ignore
from rsr.scenarios.strike import RecordedStrikes

FITTED = 10
_FOLDS = 5
_FEWEST_JUDGED = 5
CURVE = (3, 5, 10, 20, 50)


@dataclass(frozen=True)
class Judged:
    """One method on strikes it did not see.

    Args:
        predicted: [N, 3], for the strikes of the comparison, in order.
        errors, raw_errors: [N], relative; the second with rad/s as they stand.
        inside: share of measured components in their 90 % intervals; None for methods without any.
    """

    name: str
    predicted: np.ndarray
    errors: np.ndarray
    raw_errors: np.ndarray
    inside: float | None

    @property
    def accuracy(self) -> float:
        return float((self.errors < TOLERANCE).mean())

    @property
    def raw_accuracy(self) -> float:
        return float((self.raw_errors < TOLERANCE).mean())


@dataclass(frozen=True)
class Comparison:
    """All methods on the same strikes.

    Args:
        judged_on: the strikes, and `how` they were kept apart, in words.
    """

    judged_on: RecordedStrikes
    how: str
    methods: tuple[Judged, ...]

    def __getitem__(self, name: str) -> Judged:
        return next(judged for judged in self.methods if judged.name == name)


Split = tuple[np.ndarray, np.ndarray]


def splits(count: int, fitted: int = FITTED) -> tuple[list[Split], str]:
    """Rows to fit and rows to judge: the first ones and the others, or in turns where there are few."""
    rows = np.arange(count)
    if count >= fitted + _FEWEST_JUDGED:
        return [
            (rows[:fitted], rows[fitted:])
        ], f"fitted to the first {fitted} strikes, judged on the other {count - fitted}"
    folds = min(_FOLDS, count)
    parts = [(np.delete(rows, rows[fold::folds]), rows[fold::folds]) for fold in range(folds)]
    return parts, f"each of {count} strikes judged by a model fitted without it, in {folds} turns"


def compare(
    surrogates: dict[str, Surrogate],
    recorded: RecordedStrikes,
    names: Sequence[str] = tuple(METHODS),
    fitted: int = FITTED,
    seed: int = 0,
    advance: Advance = ignore,
) -> Comparison:
    """Fit each method whose surrogate is at hand, and judge it on strikes it did not see."""
    parts, how = splits(len(recorded), fitted)
    able = [name for name in names if NEEDS.get(name, "default") in surrogates]
    judged = []
    for index, name in enumerate(able):
        judged.append(_judge(name, surrogates, recorded, parts, seed))
        advance((index + 1) / len(able), f"{name}: {judged[-1].accuracy:.2f}")
    return Comparison(recorded.take(np.concatenate([unseen for _, unseen in parts])), how, tuple(judged))


def learning_curve(
    surrogate: Surrogate, recorded: RecordedStrikes, counts: Sequence[int] = CURVE, seed: int = 0
) -> dict[int, float]:
    """Accuracy after so many strikes, judged on those beyond the largest count that leaves enough of them."""
    kept = max(_FEWEST_JUDGED, len(recorded) // 3)
    able = [count for count in counts if len(recorded) - count >= kept]
    curve = {}
    for count in able:
        unseen = recorded.take(slice(max(able), None))
        predicted = adapt(surrogate, recorded.take(slice(0, count)), seed)(unseen.strikes)
        errors = relative_errors(predicted, unseen.after, surrogate.shape.gyration_m)
        curve[count] = float((errors < TOLERANCE).mean())
    return curve


def write_comparison(path: Path, comparison: Comparison, curve: Mapping[int, float]) -> None:
    """Write the figures as JSON: methods, best first, and the learning curve."""
    ranked = sorted(comparison.methods, key=lambda judged: -judged.accuracy)
    methods = [
        {
            "method": judged.name,
            "accuracy": judged.accuracy,
            "accuracy_raw": judged.raw_accuracy,
            "median_error": float(np.median(judged.errors)),
            "inside_90": judged.inside,
        }
        for judged in ranked
    ]
    points = [{"strikes": count, "accuracy": share} for count, share in curve.items()]
    write_json(path, {"how": comparison.how, "methods": methods, "learning_curve": points})


def _judge(
    name: str, surrogates: dict[str, Surrogate], recorded: RecordedStrikes, parts: list[Split], seed: int
) -> Judged:
    shape = next(iter(surrogates.values())).shape
    predicted, inside, measured = [], [], []
    for fit, unseen in parts:
        sliding = fit_sliding(shape, recorded.take(fit))
        friction = None if sliding is None else sliding.friction
        model = (METHODS | SLOW)[name](Bench(surrogates, recorded.take(fit), friction, seed))
        test = recorded.take(unseen)
        predicted.append(model(test.strikes))
        measured.append(test.after)
        if isinstance(model, Blended | Corrected):
            inside.append(model.inside(test))
    found, real = np.concatenate(predicted), np.concatenate(measured)
    covered = float(np.concatenate(inside).mean()) if inside else None
    errors, raw = (relative_errors(found, real, radius) for radius in (shape.gyration_m, 1.0))
    return Judged(name, found, errors, raw, covered)
