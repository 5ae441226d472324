"""Candidate episodes: initial states and commands that a lab could record next. Seeded; kinds depend on the scenario.

A scenario with a task gets the task's own probes from the task's own starts, or, where positions are commanded, sums of
sines about the rest position within the limits of motion; and rollouts of a policy, if one is given. Others with
commands get sums of sines in the range of what was commanded; those without, their recorded starts with other
velocities. All get repeats of what was recorded, to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.common import ConfigError, generator
from rsr.environments import World
from rsr.policies import Policy
from rsr.scenarios import Probes, Scenario, command_range, has_task, position_joints, task_of
from rsr.sessions import Episode, Session

LONGEST = 1000
"""Control steps of a candidate at most."""
REPEATED_SHARE = 0.25
"""Share of the candidates that repeat what was recorded."""
SINES = 4
SLOWEST_HZ, FASTEST_HZ = 0.2, 3.0
SPEED_FACTORS = (0.5, 1.5)


@dataclass(frozen=True)
class Candidate:
    """An episode that could be recorded.

    Args:
        kind: repeat, policy, excitation, sines, throw, or the word for the task's own probes.
        description: what to do, for people.
        start: [nq + nv].
        commands: [H + T, nu]; the first H were in force before the start.
    """

    name: str
    kind: str
    description: str
    start: np.ndarray
    commands: np.ndarray


def make_candidates(
    scenario: Scenario,
    sessions: Sequence[Session],
    params: np.ndarray,
    count: int,
    seed: int,
    policy: Policy | None = None,
) -> tuple[Candidate, ...]:
    """Make `count` candidates; equal arguments make equal ones.

    Args:
        params: [P], with which closed-loop candidates (probes, policy) are driven.
        policy: also let this one act from fresh starts.
    """
    if count < 2:
        raise ConfigError(
            got=f"{count} candidates",
            expected="at least 2",
            where="plan",
            next_step="Give a larger number: --candidates 32.",
        )
    episodes = [episode for session in sessions for episode in session.episodes]
    repeats = max(1, round(REPEATED_SHARE * count))
    fresh = _fresh_makers(scenario, episodes, params, policy)
    shares = [len(part) for part in np.array_split(np.arange(count - repeats), len(fresh))]
    made = _repeats(scenario, episodes, repeats, generator(seed, "plan", "repeat"))
    for number, (make, share) in enumerate(zip(fresh, shares, strict=True)):
        made += make(share, generator(seed, "plan", "fresh", number)) if share else []
    return tuple(made)


_Maker = Callable[[int, np.random.Generator], list[Candidate]]


def _fresh_makers(
    scenario: Scenario, episodes: Sequence[Episode], params: np.ndarray, policy: Policy | None
) -> list[_Maker]:
    """List makers of candidates that were not recorded before."""
    if policy is not None:
        task_of(scenario)  # says where there is no task for a policy
    makers = [] if policy is None else [_driven(scenario, params, "policy", policy_driver(policy))]
    probes = task_of(scenario).probes if has_task(scenario) else None
    if probes is not None:
        return [_driven(scenario, params, probes.kind, probe_driver(probes)), *makers]
    if has_task(scenario) and (position_joints(scenario.base_model) >= 0).all():
        return [_driven(scenario, params, "excitation", excitation_driver), *makers]
    return [_sines(scenario, episodes) if scenario.command else _throws(scenario, episodes), *makers]


def _first_row(scenario: Scenario, episode: Episode) -> int:
    """Find the row from which all commands that still act are recorded; 0 in very short episodes."""
    return scenario.history_steps if len(episode) > scenario.history_steps + 1 else 0


def _drawn(episodes: Sequence[Episode], count: int, rng: np.random.Generator) -> list[Episode]:
    return [episodes[place] for place in rng.choice(len(episodes), count, replace=count > len(episodes))]


def _repeats(scenario: Scenario, episodes: Sequence[Episode], count: int, rng: np.random.Generator) -> list[Candidate]:
    return [
        Candidate(
            f"repeat-{number + 1}",
            "repeat",
            f"record episode {episode.index} again",
            scenario.states(episode)[(row := _first_row(scenario, episode))],
            scenario.commands_from(episode, row, min(len(episode) - 1 - row, LONGEST)),
        )
        for number, episode in enumerate(_drawn(episodes, count, rng))
    ]


def _driven(scenario: Scenario, params: np.ndarray, kind: str, driver: Driver) -> _Maker:
    def make(count: int, rng: np.random.Generator) -> list[Candidate]:
        starts, commands, words = driven(scenario, params, driver, count, rng)
        return [
            Candidate(f"{kind}-{number + 1}", kind, words[number], starts[number], commands[number])
            for number in range(count)
        ]

    return make


def _sines(scenario: Scenario, episodes: Sequence[Episode]) -> _Maker:
    """Sums of sines about the command that an episode began with, within the range of all that was commanded."""
    sent = np.concatenate([scenario.commands(episode) for episode in episodes])
    lower, upper, spread = sent.min(axis=0), sent.max(axis=0), sent.std(axis=0)
    steps = min(scenario.episode_steps, LONGEST, max(len(episode) - 1 for episode in episodes))

    def make(count: int, rng: np.random.Generator) -> list[Candidate]:
        made = []
        for number, episode in enumerate(_drawn(episodes, count, rng)):
            row = _first_row(scenario, episode)
            # The commands in force before the start belong to the recorded state; only what follows is new.
            before = scenario.commands_from(episode, row, 0)
            rest, given = np.split(scenario.commands_from(episode, row, 1)[-1], [len(spread)])
            fastest_hz, size = rng.uniform(2 * SLOWEST_HZ, FASTEST_HZ), rng.uniform(0.5, 1.5)
            wave = _wave(rng, steps, scenario.control_dt_s, fastest_hz, len(spread))
            commands = np.clip(rest + size * spread * wave, lower, upper)
            words = f"sines up to {fastest_hz:.1f} Hz, {size:.1f} times the usual size, from the start of "
            made.append(
                Candidate(
                    f"sines-{number + 1}",
                    "sines",
                    f"{words}episode {episode.index}",
                    scenario.states(episode)[row],
                    np.concatenate([before, np.column_stack([commands, np.tile(given, (steps, 1))])]),
                )
            )
        return made

    return make


def _wave(rng: np.random.Generator, steps: int, dt_s: float, fastest_hz: float, columns: int) -> np.ndarray:
    """Sums of sines [steps, columns] of standard deviation 1."""
    time_s = dt_s * np.arange(steps)[:, None, None]
    rates_hz = rng.uniform(SLOWEST_HZ, fastest_hz, (columns, SINES))
    phases = rng.uniform(0, 2 * np.pi, (columns, SINES))
    # A sine of unit amplitude has variance 1/2, and variances of independent phases add.
    return np.sqrt(2 / SINES) * np.sin(2 * np.pi * rates_hz * time_s + phases).sum(axis=-1)


def _throws(scenario: Scenario, episodes: Sequence[Episode]) -> _Maker:
    """Poses as one episode began, velocities as another did, faster or slower."""
    nq = scenario.base_model.nq

    def make(count: int, rng: np.random.Generator) -> list[Candidate]:
        made = []
        for number, (pose, throw) in enumerate(
            zip(_drawn(episodes, count, rng), _drawn(episodes, count, rng), strict=True)
        ):
            row, factor = _first_row(scenario, pose), rng.uniform(*SPEED_FACTORS)
            start = scenario.states(pose)[row].copy()
            start[nq:] = factor * scenario.states(throw)[_first_row(scenario, throw), nq:]
            words = f"start as episode {pose.index}, thrown as episode {throw.index} at {factor:.1f} times its speed"
            commands = np.zeros((scenario.history_steps + min(len(pose) - 1 - row, LONGEST), scenario.command_width))
            made.append(Candidate(f"throw-{number + 1}", "throw", words, start, commands))
        return made

    return make


# Candidates that are driven in the simulator: by a task's probes, by sines within the limits of motion, by a policy.

OneStep = Callable[[World, int], None]
"""Takes a world through one control step, of that number."""
Driver = Callable[[World, np.random.Generator], tuple[OneStep, list[str]]]
"""For the copies of a world that stand at their starts: how they are driven, and each one's description."""

EXCURSION = (0.05, 0.25)
"""Standard deviation of a position command's sines, as a share of its range ..."""
UNBOUNDED = 2.0
"""... and the range of one without bounds, rad or m."""


def driven(
    scenario: Scenario, params: np.ndarray, driver: Driver, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Drive episodes in the simulator: starts [B, nq + nv], the commands sent [B, H + T, nu], and descriptions."""
    starts = task_of(scenario).reset(rng, count)
    with World.simulated(scenario, params, count) as world:
        world.place(np.arange(count), starts)
        advance, words = driver(world, rng)
        begun = world.states.copy()
        sent = [world.command.copy()] * scenario.history_steps
        for step in range(min(scenario.episode_steps, LONGEST)):
            advance(world, step)
            sent.append(world.command.copy())
    return begun, np.stack(sent, axis=1), words


def probe_driver(probes: Probes) -> Driver:
    """The task's scripted motions."""

    def driver(world: World, rng: np.random.Generator) -> tuple[OneStep, list[str]]:
        drive, words = probes.draw(rng, world.count)
        return (lambda world, step: world.step(drive(world.channels, step))), words

    return driver


def excitation_driver(world: World, rng: np.random.Generator) -> tuple[OneStep, list[str]]:
    """Sums of sines about the positions at the start, cut to the limits of motion."""
    count, dt_s = world.count, world.scenario.control_dt_s
    lower, upper = command_range(world.scenario.base_model)
    width = np.where(np.isfinite(upper - lower), upper - lower, UNBOUNDED)
    share, fastest_hz = rng.uniform(*EXCURSION, count), rng.uniform(2 * SLOWEST_HZ, FASTEST_HZ, count)
    steps = min(world.scenario.episode_steps, LONGEST)
    waves = np.stack([_wave(rng, steps, dt_s, hertz, len(width)) for hertz in fastest_hz], axis=1)
    rest = world.command.copy()

    def advance(world: World, step: int) -> None:
        wanted = rest + share[:, None] * width * waves[step]
        world.send(world.limits.allowed(wanted, world.command, world.channels, dt_s))

    words = [
        f"sines up to {hertz:.1f} Hz about the start, {each:.0%} of the range"
        for hertz, each in zip(fastest_hz, share, strict=True)
    ]
    return advance, words


def policy_driver(policy: Policy) -> Driver:
    """The policy from fresh starts towards fresh goals."""

    def driver(world: World, rng: np.random.Generator) -> tuple[OneStep, list[str]]:
        words = ["let the policy act from a fresh start"] * world.count
        return (lambda world, step: world.step(policy.act(world.observation()))), words

    return driver
