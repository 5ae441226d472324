"""A stand-in for a struck block as a reality: what a lab with motion capture would hand in, as ordinary sessions."""

from __future__ import annotations

import numpy as np

from rsr.errors import ConfigError
from rsr.progress import Advance
from rsr.realities.contract import CollectionPlan
from rsr.realities.strikes import Film, StrikeStandIn
from rsr.scenarios import Scenario
from rsr.scenarios.strike import Definition, striking, struck_shape
from rsr.sessions import Card, Episode, Session

_CHANNELS = {"block_position", "block_orientation", "nose_position", "rail_force"}


class StrikeReality:
    """Records strikes on the block of a scenario such as `strike`, one an episode. Simulated.

    Args:
        seed: which stand-in.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        names = {channel.name for channel in scenario.channels}
        if names != _CHANNELS:
            raise ConfigError(
                got=f"channels {', '.join(sorted(names))}",
                expected=f"those of the scenario strike: {', '.join(sorted(_CHANNELS))}",
                where=f"stand-in for reality, scenario {scenario.name}",
                next_step="Record the scenario yourself and set reality.kind: inbox.",
            )
        _check_striker(striking(scenario), scenario.name)
        self._scenario, self._seed = scenario, seed
        self._shape = struck_shape(scenario)

    def collect(self, plan: CollectionPlan, advance: Advance) -> Session:
        """Strike at random, `plan.episodes` times."""
        film = StrikeStandIn(self._shape, self._seed).film(plan.episodes, plan.seed)
        advance(1.0, f"{plan.episodes} strikes")
        card = Card(
            session=plan.session,
            scenario=self._scenario.name,
            reality="twin",
            simulated=True,
            control_dt_s=self._scenario.control_dt_s,
            robot=f"stand-in for a struck {self._shape.name}, with another law of impact than MuJoCo's",
        )
        episodes = tuple(self._episode(film, index) for index in range(plan.episodes))
        return Session(card, self._scenario.channels, episodes)

    def _episode(self, film: Film, index: int) -> Episode:
        block, nose = film.block[index], film.nose_x_m[index]
        half = block[:, 2] / 2
        still = np.zeros(len(nose))
        # Held until the next row: the last row repeats the command before it.
        force = -Definition.striker_mass_kg * Definition.braking_m_s2 * film.braking[index]
        force[-1] = force[-2]
        height = np.full(len(nose), self._shape.height_m / 2)
        values = {
            "block_position": np.column_stack([block[:, :2], height]),
            "block_orientation": np.column_stack([np.cos(half), still, still, np.sin(half)]),
            "nose_position": nose[:, None],
            "rail_force": force[:, None],
        }
        return Episode(index, film.time_s, values)


def _check_striker(declared: Definition, scenario: str) -> None:
    """Refuse a striker that the stand-ins do not have: what hides in them was frozen with this one."""
    has = Definition()
    if declared != has:
        raise ConfigError(
            got=f"a striker of {declared.striker_mass_kg:g} kg with a nose of {1e3 * declared.nose_radius_m:g} mm",
            expected=f"the one that stand-ins strike with: {has.striker_mass_kg:g} kg, {1e3 * has.nose_radius_m:g} mm",
            where=f"stand-in for reality, scenario {scenario}",
            next_step="Record the scenario yourself and set reality.kind: inbox.",
        )
