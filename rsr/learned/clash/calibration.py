"""CLASH as a calibration: sessions and a surrogate in, an adapted model out, judged on strikes it did not see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.common import CalibrationError, wrapped
from rsr.learned.clash.adaptation import Adapted, KnownBlock, adapt
from rsr.learned.clash.comparison import before_any, splits
from rsr.learned.clash.frame import TOLERANCE, relative_errors
from rsr.learned.clash.sliding import SlidingModel
from rsr.learned.clash.strike_recordings import Recordings
from rsr.scenarios.built_in.strike import PARAMETERS, RecordedStrikes, Shape, Strikes


@dataclass(frozen=True)
class Predictor:
    """A model of a struck block from impact to rest, adapted or not."""

    velocity: Callable[[Strikes], np.ndarray]
    sliding: SlidingModel

    def __call__(self, strikes: Strikes) -> tuple[np.ndarray, np.ndarray]:
        """Velocity after, and displacement and turn at rest, [N, 3] each."""
        after = self.velocity(strikes)
        return after, self.sliding(after)


def nominal(base: KnownBlock) -> Predictor:
    """The model before any recording: nominal parameters, nothing corrected."""
    friction = PARAMETERS["ground_friction"].nominal
    return Predictor(before_any(base), SlidingModel(base.shape.gyration_m, friction))


def adapted(model: Adapted) -> Predictor:
    if model.sliding is None:
        raise _restless("adapted model")
    return Predictor(model, model.sliding)


def rest_of(recorded: RecordedStrikes) -> np.ndarray:
    """Places of rest [N, 3]; an error where none were recorded."""
    if recorded.rest is None:
        raise _restless("recorded strikes")
    return recorded.rest


@dataclass(frozen=True)
class Figures:
    """Errors of predicted strikes.

    Args:
        accuracy: share of velocities within 10 %. median_error: of velocities, relative.
        velocity_m_s: RMS error of the velocity after, angular parts times the radius of gyration.
        gap_m, turn_rad: RMS error of where the block came to rest.
    """

    accuracy: float
    median_error: float
    velocity_m_s: float
    gap_m: float
    turn_rad: float
    strikes: int


@dataclass(frozen=True)
class Predicted:
    """Velocities after and places of rest, [N, 3] each, of recorded strikes."""

    recorded: RecordedStrikes
    after: np.ndarray
    rest: np.ndarray

    def figures(self, shape: Shape) -> Figures:
        errors = relative_errors(self.after, self.recorded.after, shape.gyration_m)
        missed = (self.after - self.recorded.after) * np.array([1.0, 1.0, shape.gyration_m])
        rest = rest_of(self.recorded)
        return Figures(
            accuracy=float((errors < TOLERANCE).mean()),
            median_error=float(np.median(errors)),
            velocity_m_s=_rms(missed),  # rad/s times the radius of gyration, so that one number may hold all three
            gap_m=_rms((self.rest - rest)[:, :2]),
            turn_rad=float(np.sqrt(np.mean(wrapped(self.rest[:, 2] - rest[:, 2]) ** 2))),
            strikes=len(errors),
        )


@dataclass(frozen=True)
class Tuned:
    """An adapted model and its evidence.

    Args:
        known: the strikes that the model was adapted to, earlier ones first.
        before, after: the model before, and the adapted one, on strikes that it was not adapted to.
        fitted, held_out: episodes, counted over all sessions. Where there were few, each is both, in turns (`how`).
    """

    model: Adapted
    known: RecordedStrikes
    before: Predicted
    after: Predicted
    fitted: tuple[int, ...]
    held_out: tuple[int, ...]
    how: str


def tune(
    base: KnownBlock,
    recordings: Recordings,
    fit: int,
    before: Predictor,
    earlier: RecordedStrikes | None = None,
    seed: int = 0,
) -> Tuned:
    """Adapt to the first `fit` strikes and all earlier ones; judge by the others, or in turns where there are few."""
    recorded = recordings.strikes
    parts, how = splits(len(recorded), fit)
    turns = []
    for fitted, held_out in parts:
        known = joined(earlier, recorded.take(fitted))
        turns.append((adapt(base, known, seed), known, held_out))
    rows = np.concatenate([held_out for _, _, held_out in turns])
    test = recorded.take(rows)  # in the order of the turns, as the predictions below are
    found = [adapted(model)(recorded.take(held_out).strikes) for model, _, held_out in turns]
    after, rest = (np.concatenate(part) for part in zip(*found, strict=True))
    if len(parts) == 1:
        model, known, fitted = turns[0][0], turns[0][1], parts[0][0]
    else:
        # Judged in turns, the model that is handed over is fitted to all: evidence of the recipe, not of this very fit.
        known, fitted = joined(earlier, recorded), np.arange(len(recorded))
        model = adapt(base, known, seed)
    return Tuned(
        model,
        known,
        Predicted(test, *before(test.strikes)),
        Predicted(test, after, rest),
        _places(recordings, fitted),
        _places(recordings, np.sort(rows)),
        how,
    )


def joined(earlier: RecordedStrikes | None, later: RecordedStrikes) -> RecordedStrikes:
    """Put strikes one after the other; where the earlier ones lack rests, none are kept."""
    if earlier is None:
        return later
    strikes = Strikes(
        *(
            np.concatenate([getattr(earlier.strikes, name), getattr(later.strikes, name)])
            for name in Strikes.__annotations__
        )
    )
    rest = None if earlier.rest is None or later.rest is None else np.concatenate([earlier.rest, later.rest])
    return RecordedStrikes(strikes, np.concatenate([earlier.after, later.after]), rest)


def _places(recordings: Recordings, rows: Sequence[int] | np.ndarray) -> tuple[int, ...]:
    return tuple(recordings.episodes[row] for row in rows)


def _restless(where: str) -> CalibrationError:
    return CalibrationError(
        got="strikes without rest_x, rest_y, rest_yaw",
        expected="where the blocks came to rest",
        where=where,
        next_step="Adapt to sessions, or to a table with these columns.",
    )


def _rms(errors: np.ndarray) -> float:
    """Root of the mean squared length of vectors [N, ...]."""
    return float(np.sqrt((errors**2).sum(axis=1).mean()))
