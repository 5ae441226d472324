"""`clash` as a method of calibration, for whoever has sessions: the base model is made where there is none."""

from __future__ import annotations

from pathlib import Path

from rsr.calibration import Calibration, Prior
from rsr.clash import Surrogate, load_surrogate
from rsr.clash.recordings import strikes_of
from rsr.clash.simulator import check_same_block
from rsr.config import ClashConfig
from rsr.progress import Advance, part_of
from rsr.randomness import derive_seed
from rsr.scenarios import Scenario
from rsr.scenarios.strike import struck_shape
from rsr.sessions import Session
from rsr.steps.clash.adapt import adapt_to
from rsr.steps.clash.base import learn, simulate

_SIMULATED, _LEARNT = 0.5, 0.95


def calibrate(
    folder: Path,
    scenario: Scenario,
    sessions: tuple[Session, ...],
    prior: Prior,
    fit: int,
    seed: int,
    advance: Advance,
    settings: ClashConfig,
    base: Path | None = None,
    previous: Path | None = None,
) -> Calibration:
    """Adapt a surrogate to sessions and write calibration and model into `folder`.

    Args:
        fit: strikes to adapt to, the first ones; the others judge.
        base: folder of a surrogate, which is made there if there is none yet; by default `folder`/base.
        previous: a calibration of this kind, whose strikes are kept.
    """
    # Whoever names the wrong recordings shall not wait for a surrogate first.
    strikes_of(scenario, sessions)
    surrogate = _base(base or folder / "base", scenario, settings, seed, advance)
    check_same_block(scenario, struck_shape(scenario), surrogate.shape)
    advance(_LEARNT, "adapting")
    return adapt_to(
        scenario, sessions, surrogate, prior, fit, derive_seed(seed, "adapt"), folder, previous or folder / "none"
    )


def _base(folder: Path, scenario: Scenario, settings: ClashConfig, seed: int, advance: Advance) -> Surrogate:
    if (folder / "surrogate.json").is_file():
        return load_surrogate(folder)
    strikes = folder / "strikes"
    simulate(scenario, strikes, settings, derive_seed(seed, "strikes"), part_of(advance, 0.0, _SIMULATED))
    return learn(strikes, folder, settings, derive_seed(seed, "surrogate"), part_of(advance, _SIMULATED, _LEARNT))
