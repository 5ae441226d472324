"""Stages after a recording: adapt the surrogate to all strikes so far, and plan single strikes to target poses."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rsr.calibration import Calibration, Prior, load_calibration, next_prior
from rsr.config import ClashConfig, LoopConfig
from rsr.files import write_json
from rsr.learned.clash import Surrogate, load_adapted, load_surrogate, reproducible, strikes_of
from rsr.learned.clash.planning import HybridStrikes, StrikePlan, plan
from rsr.learned.clash.simulator import HybridSimulator, check_same_block
from rsr.pipelines.clash.base import clash_settings, learn, simulate, surrogate_dir
from rsr.pipelines.clash.calibration import adapt_to
from rsr.pipelines.methods import MethodFolders
from rsr.progress import Advance, part_of
from rsr.randomness import derive_seed, generator
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.built_in.strike import sample_strikes, struck_shape
from rsr.sessions import Session, read_session
from rsr.simulators import Simulator
from rsr.workspace import Workspace


def adapt(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: identified parameters, the residual, how the block slides, and the evidence for them."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    previous = workspace.calibration_dir(iteration - 1)
    adapt_to(
        scenario,
        (read_session(workspace.session_dir(iteration)),),
        load_surrogate(surrogate_dir(workspace)),
        next_prior(scenario, load_calibration(previous)),
        config.tune.fit_episodes,
        derive_seed(config.seed, iteration, "adapt"),
        workspace.calibration_dir(iteration),
        previous,
    )
    advance(1.0, "adapted")


def aim(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write plan.json: for poses that the model says can be reached, the strike that reaches them best."""
    config = workspace.config(iteration)
    model = load_adapted(workspace.calibration_dir(iteration))
    rollouts, count = HybridStrikes(model), clash_settings(config).targets
    seed = derive_seed(config.seed, iteration, "aim")
    planned = []
    # Targets are rests of random strikes in the model itself, so each of them can be reached.
    with reproducible(seed):  # thousands of small evaluations: threads would only wait for one another
        for index, target in enumerate(rollouts(sample_strikes(model.shape, count, generator(seed, "targets")))):
            found = plan(model.shape, rollouts, target, seed=derive_seed(seed, index))
            planned.append(_described(found, target.tolist()))
            advance((index + 1) / count, f"target {index + 1} of {count}")
    write_json(workspace.iteration_dir(iteration) / "plan.json", {"shape": model.shape.name, "plans": planned})


def _described(found: StrikePlan, target: list[float]) -> dict[str, object]:
    strike = found.strike
    return {
        "target": target,
        "expected": found.expected.tolist(),
        "cost": found.cost,
        "speed_m_s": float(strike.speed_m_s[0]),
        "angle_rad": float(strike.angle_rad[0]),
        "point_m": strike.point_m[0].tolist(),
        "normal": strike.normal[0].tolist(),
    }


# `clash` as a method of calibration: the surrogate is made where there is none, then adapted to the sessions.

_SIMULATED, _LEARNT = 0.5, 0.95


def clash_simulator(scenario: Scenario, folder: Path) -> AbstractContextManager[Simulator]:
    """Make MuJoCo with the adapted surrogate of a calibration's folder."""
    return HybridSimulator(scenario, load_adapted(folder), threads=2)


@dataclass(frozen=True)
class ClashCalibrator:
    """The `Calibrator` that adapts a surrogate of collisions to strikes, and writes the model into its folder.

    Args:
        config: its `tune.fit_episodes` are the strikes to adapt to, the first ones; the others are held out.
        folders: `base` holds the surrogate, `previous` a calibration of this kind, whose strikes are kept.
    """

    config: LoopConfig
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
        return adapt_to(scenario, sessions, surrogate, prior, self.config.tune.fit_episodes, seed, out, previous)

    def _surrogate(self, folder: Path, scenario: Scenario, seed: int, advance: Advance) -> Surrogate:
        if (folder / "surrogate.json").is_file():
            return load_surrogate(folder)
        strikes, settings = folder / "strikes", self.config.clash or ClashConfig()
        simulate(scenario, strikes, settings, derive_seed(seed, "strikes"), part_of(advance, 0.0, _SIMULATED))
        return learn(strikes, folder, settings, derive_seed(seed, "surrogate"), part_of(advance, _SIMULATED, _LEARNT))
