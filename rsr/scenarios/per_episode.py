"""Values that differ from episode to episode and come with the recordings: a gain, a payload, a supply voltage.

Each is a tag of an episode, kept by `ingest`, and declared under `per_episode` of a scenario's YAML file: it acts on
elements of the model by itself, or a parameter is multiplied by it. Simulators get it as further columns of the
commands, [..., nu + C]; without these columns the nominal values hold, as in training and planning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rsr.common import ScenarioError, SessionError, short
from rsr.scenarios.yaml_keys import check_fields
from rsr.sessions import Episode


@dataclass(frozen=True)
class EpisodeValue:
    """One number of the simulator that each recording says of itself.

    Args:
        nominal: where nothing was recorded.
        tag: of the episodes that have it.
    """

    name: str
    nominal: float
    unit: str
    tag: str
    description: str = ""

    def of(self, episode: Episode) -> float:
        """Read the value of an episode.

        Raises:
            SessionError: the episode has no such tag, or it is no finite number.
        """
        said = episode.tags.get(self.tag)
        try:
            value = float("nan" if said is None else said)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            raise SessionError(
                got=f"no tag '{self.tag}'" if said is None else f"tag {self.tag}: {short(said)}",
                expected=f"a number, the {self.name} of this episode in {self.unit}",
                where=f"episode {episode.index}",
                next_step="Ingest the recordings with it: `episodes: {tags: [" + self.tag + "]}` in the mapping, a "
                "column with one value an episode. What only a file's name says must become such a column.",
            )
        return value


def parse_per_episode(entries: Mapping[str, Any], where: str) -> tuple[EpisodeValue, ...]:
    """Read `per_episode:` of a scenario's YAML file; where the values act is read with the parameters."""
    found = []
    for name, entry in entries.items():
        fields = check_fields("per_episode", entry, f"{where}, per_episode {name}")
        tag, words = fields.get("tag", name), fields.get("description", "")
        found.append(EpisodeValue(name, float(fields["nominal"]), fields["unit"], tag, words))
    return tuple(found)


def multiplier(entry: Mapping[str, Any], names: Sequence[str], where: str) -> int | None:
    """Position of the value that a parameter is multiplied by, if there is one."""
    if "times" not in entry:
        return None
    if entry["times"] not in names or not ("sets" in entry or "scales" in entry):
        raise ScenarioError(
            got=f"times: {short(entry['times'])}",
            expected=f"one of {', '.join(names) or 'none: no `per_episode`'}, at a parameter that sets or scales",
            where=where,
            next_step="Name a value that is declared under `per_episode`.",
        )
    return list(names).index(entry["times"])


def check_written_once(
    places: Sequence[tuple[str, int, str]], alone: Sequence[tuple[str, int, str]], where: str
) -> None:
    """Refuse a field of an element that a parameter and a value per episode write: one of them would have no effect.

    Args:
        places: (kind of element, index, field) that parameters write.
        alone: those that values per episode write by themselves.
    """
    twice = sorted({f"{field} of a {element}" for element, index, field in set(places) & set(alone)})
    if twice:
        raise ScenarioError(
            got=f"a parameter and a value per episode that both write {', '.join(twice)}",
            expected="one of them",
            where=where,
            next_step="Let the parameter alone write it, with `times` and the name of the value per episode.",
        )
