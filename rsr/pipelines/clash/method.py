"""`clash` as a method of calibration: the surrogate is made where there is none, then adapted to the sessions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rsr.calibration import Calibration, Calibrator, Prior
from rsr.config import ClashConfig, LoopConfig
from rsr.learned.clash import Surrogate, load_adapted, load_surrogate, strikes_of
from rsr.learned.clash.scene_adaptation import load_scene
from rsr.learned.clash.scene_simulator import HybridScene
from rsr.learned.clash.simulator import HybridSimulator, check_same_block
from rsr.pipelines.clash.base import learn, simulate
from rsr.pipelines.clash.calibration import adapt_to
from rsr.pipelines.methods import MethodFolders
from rsr.progress import Advance, part_of
from rsr.randomness import derive_seed
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import struck_shape
from rsr.scenarios.collision import SceneCollision
from rsr.sessions import Session
from rsr.simulators import Simulator

_SIMULATED, _LEARNT = 0.5, 0.95


def clash_calibrator(config: LoopConfig, folders: MethodFolders) -> Calibrator:
    """Make the calibrator; see `rsr.pipelines.methods.CalibratorMaker`."""
    return ClashCalibrator(config.clash or ClashConfig(), config.tune.fit_episodes, folders)


def clash_simulator(scenario: Scenario, folder: Path) -> AbstractContextManager[Simulator]:
    """Make MuJoCo with the adapted surrogate, or the adapted scene, of a calibration's folder."""
    if isinstance(scenario.collision, SceneCollision):
        return HybridScene(scenario, load_scene(folder))
    return HybridSimulator(scenario, load_adapted(folder), threads=2)


@dataclass(frozen=True)
class ClashCalibrator:
    """The `Calibrator` that adapts a surrogate of collisions to strikes, and writes the model into its folder.

    Args:
        fit_episodes: strikes to adapt to, the first ones; the others are held out.
        folders: `base` holds the surrogate, `previous` a calibration of this kind, whose strikes are kept.
    """

    settings: ClashConfig
    fit_episodes: int
    folders: MethodFolders

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        # Wrong recordings are refused before a surrogate is made, which takes minutes to hours.
        strikes_of(scenario, sessions)
        out = self.folders.out
        surrogate = self._surrogate(self.folders.base or out / "base", scenario, seed, advance)
        check_same_block(scenario, struck_shape(scenario), surrogate.shape)
        advance(_LEARNT, "adapting")
        previous = self.folders.previous or out / "none"
        seed = derive_seed(seed, "adapt")
        return adapt_to(scenario, sessions, surrogate, prior, self.fit_episodes, seed, out, previous)

    def _surrogate(self, folder: Path, scenario: Scenario, seed: int, advance: Advance) -> Surrogate:
        if (folder / "surrogate.json").is_file():
            return load_surrogate(folder)
        strikes, settings = folder / "strikes", self.settings
        simulate(scenario, strikes, settings, derive_seed(seed, "strikes"), part_of(advance, 0.0, _SIMULATED))
        return learn(strikes, folder, settings, derive_seed(seed, "surrogate"), part_of(advance, _SIMULATED, _LEARNT))
