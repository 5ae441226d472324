"""An adaptation judged on strikes that it was not fitted to: the user's own evidence.

Three models of the same strikes: the surrogate, or a usual law, `before` any recording, the `law` of rigid impact with
its four fitted numbers, and the `adapted` model, with what they leave over. Other methods are compared by
`benchmarks/clash.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rsr.common import Advance, ignore, write_json
from rsr.learned.clash.adaptation import Adapted, KnownBlock, adapt
from rsr.learned.clash.frame import TOLERANCE, relative_errors
from rsr.learned.clash.law import usual_law
from rsr.learned.clash.prediction import BaseModel, surrogate_base
from rsr.learned.clash.sliding import with_velocities
from rsr.learned.clash.surrogate import Surrogate
from rsr.scenarios.built_in.strike import PARAMETERS, RecordedStrikes

FITTED = 10
"""As many as the paper adapts to."""
CURVE = (3, 5, 10, 20, 50)
_FOLDS = 5
_FEWEST_JUDGED = 5


@dataclass(frozen=True)
class JudgedStrikes:
    """One model on strikes that it was not fitted to.

    Args:
        predicted: [N, 3], for the strikes of the comparison, in order.
        errors, raw_errors: [N], relative; the second with rad/s as they stand.
        inside: share of measured components in their 90 % intervals; None for models without any.
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
    """The models on the same strikes.

    Args:
        judged_on: the strikes, and `how` they were kept apart, in words.
    """

    judged_on: RecordedStrikes
    how: str
    methods: tuple[JudgedStrikes, ...]

    def __getitem__(self, name: str) -> JudgedStrikes:
        return next(judged for judged in self.methods if judged.name == name)


Split = tuple[np.ndarray, np.ndarray]


def splits(count: int, fitted: int = FITTED) -> tuple[list[Split], str]:
    """Rows to fit and rows to judge: the first ones and the others, or in turns where there are few."""
    rows = np.arange(count)
    if count >= fitted + _FEWEST_JUDGED:
        how = f"fitted to the first {fitted} strikes, judged on the other {count - fitted}"
        return [(rows[:fitted], rows[fitted:])], how
    # Every fifth row to a fold: recordings drift, and a block of rows would be judged by models of another time.
    folds = min(_FOLDS, count)
    parts = [(np.delete(rows, rows[fold::folds]), rows[fold::folds]) for fold in range(folds)]
    return parts, f"each of {count} strikes judged by a model fitted without it, in {folds} turns"


def compare(
    base: KnownBlock,
    recorded: RecordedStrikes,
    fitted: int = FITTED,
    seed: int = 0,
    advance: Advance = ignore,
) -> Comparison:
    """Adapt to some strikes, and judge before, law and adapted model on the others."""
    parts, how = splits(len(recorded), fitted)
    models = []
    for number, (rows, _) in enumerate(parts, start=1):
        models.append(adapt(base, recorded.take(rows), seed))
        advance(number / len(parts), f"adapted to {len(rows)} strikes")
    # Where velocities are not known, those that the model's own slide takes to where the blocks came to rest.
    tests = [
        with_velocities(recorded.take(rows), model.sliding) for model, (_, rows) in zip(models, parts, strict=True)
    ]
    judged_on = replace(
        recorded.take(np.concatenate([rows for _, rows in parts])), after=np.concatenate([test.after for test in tests])
    )
    before, radius = before_any(base), base.shape.gyration_m
    return Comparison(
        judged_on,
        how,
        (
            _judge("before", radius, [before] * len(parts), tests),
            _judge("law", radius, [model.law for model in models], tests),
            _judge("adapted", radius, models, tests),
        ),
    )


def before_any(base: KnownBlock) -> BaseModel:
    """What is said before any recording: the surrogate with nominal parameters, or the law with usual ones."""
    return surrogate_base(base, PARAMETERS.nominal) if isinstance(base, Surrogate) else usual_law(base.shape)


def learning_curve(
    base: KnownBlock, recorded: RecordedStrikes, counts: Sequence[int] = CURVE, seed: int = 0
) -> dict[int, float]:
    """Accuracy after so many strikes, judged on those beyond the largest count that leaves enough of them."""
    able, curve = able_counts(len(recorded), counts), {}
    for count in able:
        # The same strikes judge every point of the curve, or it would show their differences too.
        test = recorded.take(slice(max(able), None))
        model = adapt(base, recorded.take(slice(0, count)), seed)
        measured = with_velocities(test, model.sliding).after
        errors = relative_errors(model(test.strikes), measured, base.shape.gyration_m)
        curve[count] = float((errors < TOLERANCE).mean())
    return curve


def able_counts(recorded: int, counts: Sequence[int]) -> list[int]:
    """The counts beyond which a third of the strikes, and not too few, are left to judge."""
    return [count for count in counts if recorded - count >= max(_FEWEST_JUDGED, recorded // 3)]


def write_comparison(path: Path, comparison: Comparison, curve: Mapping[int, float]) -> None:
    """Write the figures as JSON: models, best first, and the learning curve."""
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
    name: str, radius_m: float, models: Sequence[BaseModel | Adapted], tests: Sequence[RecordedStrikes]
) -> JudgedStrikes:
    """Judge a model, fitted anew for each test."""
    predicted = np.concatenate([model(test.strikes) for model, test in zip(models, tests, strict=True)])
    measured = np.concatenate([test.after for test in tests])
    errors, raw = (relative_errors(predicted, measured, radius) for radius in (radius_m, 1.0))
    pairs = zip(models, tests, strict=True)
    inside = [model.collision.inside(test) for model, test in pairs if isinstance(model, Adapted)]
    covered = float(np.concatenate(inside).mean()) if inside else None
    return JudgedStrikes(name, predicted, errors, raw, covered)
