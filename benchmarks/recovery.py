"""Coverage of a calibration's intervals and verdicts: recovery of known parameters from wrong priors.

push_cube recordings with the scenario's sensor noise, made by simulators whose parameters are drawn at random. Each
recording is fitted from five starts: priors whose mean is off by a factor 3 in every parameter (a third or three times,
by chance; a delay by 60 ms), and only as sure of it as the scenario's own prior.

- identified_inside: share of the parameters called *identified* whose truth lies inside the 95 % interval.
- identified: how many were called so, of `parameters`.
- false_identified: how often a parameter that is not observable is called *identified*: in `untouched_runs`
  runs the arm moves, but never touches the cube, which gives no information on friction, mass and contact softness.

Fits are those of the default method; with --quick, shorter and fewer. `--first` and `--recordings` make parts of it, to
run side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _common import Figure, run

from rsr.calibration import Calibration, Effort, Prior, calibrator
from rsr.common import generator, ignore
from rsr.config import TuneConfig
from rsr.environments import World
from rsr.scenarios import Scenario, load_scenario, task_of
from rsr.scenarios.built_in.pushing import tool_plane
from rsr.sessions import Card, Episode, Session

STARTS = 5
RECORDINGS = 8
UNTOUCHED_SHARE = 4
"""One recording that does not touch the cube for so many that do."""
FACTOR = 3.0
OFF_S = 0.06
EPISODES, STEPS = 24, 80
OF_THE_CUBE = ("table_friction", "finger_friction", "cube_mass", "contact_softness")


def measure(quick: bool, first: int = 1000, recordings: int = RECORDINGS) -> dict[str, Figure]:
    """Fit all recordings; seeds count up from `first`, so that other runs are other recordings."""
    scenario = load_scenario("push_cube")
    recordings = min(2, recordings) if quick else recordings
    effort = Effort(budget=120, max_windows=24) if quick else Effort()
    tally = _Tally()
    for seed in range(first, first + recordings):
        truth = true_parameters(scenario, generator(seed, "truth"))
        session = recorded(scenario, truth, generator(seed, "recording"), touches=True)
        for start in range(STARTS):
            tally.count(scenario, fitted(scenario, session, truth, seed, start, effort), truth)
    for seed in range(first, first + max(1, recordings // UNTOUCHED_SHARE)):
        truth = true_parameters(scenario, generator(seed, "truth untouched"))
        session = recorded(scenario, truth, generator(seed, "recording untouched"), touches=False)
        for start in range(STARTS):
            tally.count_untouched(fitted(scenario, session, truth, seed, start, effort))
    return tally.figures()


@dataclass
class _Tally:
    runs: int = 0
    parameters: int = 0
    identified: int = 0
    inside: int = 0
    all_inside: int = 0
    untouched_runs: int = 0
    false_identified: int = 0
    missed: str = ""

    def count(self, scenario: Scenario, found: Calibration, truth: np.ndarray) -> None:
        self.runs += 1
        for name, value in zip(scenario.space.names, truth, strict=True):
            each = found.estimates[name]
            inside = each.lower <= value <= each.upper
            self.parameters += 1
            self.all_inside += inside
            self.identified += each.verdict == "identified"
            self.inside += inside and each.verdict == "identified"
            if each.verdict == "identified" and not inside:
                self.missed += f"{name} "

    def count_untouched(self, found: Calibration) -> None:
        self.untouched_runs += 1
        self.false_identified += sum(found.estimates[name].verdict == "identified" for name in OF_THE_CUBE)

    def figures(self) -> dict[str, Figure]:
        return {
            "runs": self.runs,
            "parameters": self.parameters,
            "identified": self.identified,
            "identified_inside": self.inside / max(1, self.identified),
            "all_inside": self.all_inside / max(1, self.parameters),
            "missed": self.missed.strip() or "none",
            "untouched_runs": self.untouched_runs,
            "false_identified": self.false_identified,
        }


def true_parameters(scenario: Scenario, rng: np.random.Generator) -> np.ndarray:
    """Anywhere between a tenth and nine tenths of what the bounds allow, in unconstrained coordinates."""
    lower, upper = (scenario.space.to_coordinates(bound) for bound in (scenario.space.lower, scenario.space.upper))
    return scenario.space.to_values(lower + rng.uniform(0.1, 0.9, len(lower)) * (upper - lower))


def fitted(
    scenario: Scenario, session: Session, truth: np.ndarray, seed: int, start: int, effort: Effort
) -> Calibration:
    rng = generator(seed, "start", start)
    signs = rng.choice([-1.0, 1.0], len(truth))
    wrong = [
        value * FACTOR**sign if parameter.scale == "log" else value + sign * OFF_S
        for parameter, value, sign in zip(scenario.space, truth, signs, strict=True)
    ]
    margin = 1e-6 * (scenario.space.upper - scenario.space.lower)
    inside = np.clip(wrong, scenario.space.lower + margin, scenario.space.upper - margin)
    mean = scenario.space.to_coordinates(inside)
    fitting = calibrator(TuneConfig(fit_episodes=EPISODES // 2), effort)
    return fitting.fit(scenario, (session,), Prior(mean, scenario.space.prior_std), seed * STARTS + start, ignore)


class _Prodder:
    """Pushes the cube beside its middle, backs off and pushes again; or waves about where no cube is."""

    def __init__(self, episodes: int, touches: bool, rng: np.random.Generator) -> None:
        self._beside_m = 0.012 * rng.normal(size=(episodes, 2)) * [0, 1]
        self._speed = rng.uniform(0.6, 1.0, (episodes, 1))
        self._touches = touches

    def act(self, observation: np.ndarray, step: int) -> np.ndarray:
        tip, block = observation[:, 6:8], observation[:, 12:14]
        towards = block - tip + self._beside_m
        towards = towards / np.linalg.norm(towards, axis=1, keepdims=True)
        if not self._touches:
            towards = -towards + 1.5 * np.stack([-towards[:, 1], towards[:, 0]], axis=1)
            return tool_plane.displacements(observation, towards * self._speed * (1.0 if step % 12 < 6 else -1.0))
        return tool_plane.displacements(observation, towards * self._speed * (1.0 if step % 24 < 16 else -1.0))


def recorded(scenario: Scenario, truth: np.ndarray, rng: np.random.Generator, touches: bool) -> Session:
    """Episodes in a simulator with known parameters, measured with the scenario's sensor noise."""
    starts = task_of(scenario).reset(rng, EPISODES)
    prodder, states, sent = _Prodder(EPISODES, touches, rng), [], []
    with World.simulated(scenario, truth, EPISODES) as world:
        world.place(np.arange(EPISODES), starts)
        for step in range(STEPS):
            states.append(world.states.copy())
            world.step(prodder.act(world.observation(), step))
            sent.append(world.command.copy())
        states.append(world.states.copy())
    return _session(scenario, np.stack(states, axis=1), np.stack([*sent, sent[-1]], axis=1), rng)


def _session(scenario: Scenario, states: np.ndarray, sent: np.ndarray, rng: np.random.Generator) -> Session:
    measured, rows = scenario.measure(states), states.shape[1]
    for name in ("joint_position", "block_position"):
        noise = scenario.observed_channel(name).noise
        measured[name] = measured[name] + rng.normal(0.0, noise, measured[name].shape)
    episodes = tuple(
        Episode(
            index=i,
            time_s=np.arange(rows) * scenario.control_dt_s,
            values={**{name: values[i] for name, values in measured.items()}, "joint_setpoint": sent[i]},
        )
        for i in range(len(states))
    )
    card = Card("session-001", scenario.name, "stand_in", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, episodes)


if __name__ == "__main__":
    run(measure, __doc__, first=1000, recordings=RECORDINGS)
