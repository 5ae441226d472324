"""Parameters that move together: which combination recordings leave open, and what to record instead."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rsr.calibration.contract import Estimate
from rsr.scenarios import Scenario

TOGETHER = 0.9
"""Parameters whose errors correlate more than this are reported as moving together."""
_SHARE = 0.2
"""Parts of a direction smaller than this share of its largest are left unsaid."""
_REMEDIES: tuple[tuple[frozenset[str], frozenset[str], str], ...] = tuple(
    (frozenset(first.split()), frozenset(second.split()), text)
    for first, second, text in (
        ("friction", "mass", "Record a free slide, which tells friction without the mass, or weigh the body."),
        ("mass", "inertia com_distance com_x com_y com_z", "Weigh the body, and find its balance on an edge."),
        ("inertia", "com_distance com_x com_y com_z", "Let the body swing about two different axes."),
        (
            "inertia mass com_distance",
            "armature",
            "Record the drive without its load, or take armature from a data sheet.",
        ),
        (
            "position_gain",
            "damping",
            "Record steps of the unloaded arm: frequency tells stiffness, decay tells damping.",
        ),
        ("position_gain", "armature", "Hang a known weight on the arm: how far it sags tells the stiffness."),
        (
            "position_gain damping",
            "delay",
            "Record fast reversals, and how long after each command the joint first moves.",
        ),
        ("damping", "friction_loss", "Record slow and fast motions: dry friction does not grow with speed."),
        (
            "contact_time",
            "damping_ratio impedance_start impedance_end impedance_width",
            "Record drops from several heights.",
        ),
        ("gravity_strength", "mass com_distance inertia", "Take gravity from a free fall, and fix it."),
        ("shift", "delay", "Give one of the clocks a time stamp of its own, or record a knock that both sensors see."),
    )
)
"""Fields of one parameter, fields of another, what tells them apart."""
_OTHERWISE = "Measure one of them, or record motions in which they act apart."


def warnings(scenario: Scenario, covariance: np.ndarray, judged: Mapping[str, Estimate]) -> list[str]:
    """One warning for each group of parameters that recordings tell in combination only.

    Args:
        covariance: [P, P], unconstrained coordinates.
    """
    std = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(std, std)
    vague = np.array([judged[name].verdict in ("weak", "not identifiable") for name in scenario.space.names])
    linked = (np.abs(correlation) > TOGETHER) & (vague[:, None] | vague)
    return [_said(scenario, correlation, group) for group in _groups(linked)]


def _groups(linked: np.ndarray) -> list[list[int]]:
    """Sets of more than one index that are linked, directly or through others."""
    groups: list[list[int]] = []
    left = set(range(len(linked)))
    while left:
        group, new = set(), {min(left)}
        while new:
            group |= new
            new = {int(other) for index in new for other in np.flatnonzero(linked[index])} - group
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def _said(scenario: Scenario, correlation: np.ndarray, group: list[int]) -> str:
    names = [scenario.space.names[index] for index in group]
    inner = correlation[np.ix_(group, group)]
    strongest = float(np.abs(inner - np.eye(len(group))).max())
    return (
        f"{', '.join(names[:-1])} and {names[-1]} move together (correlation {strongest:.2f}, along "
        f"{_direction(names, inner)}): these recordings fix their combination, not each. {_remedy(scenario, group)}"
    )


def _direction(names: list[str], inner: np.ndarray) -> str:
    """The direction in which a group is least known, as signs."""
    direction = np.linalg.eigh(inner)[1][:, -1]
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    kept = [(name, part) for name, part in zip(names, direction, strict=True) if abs(part) > _SHARE]
    return " ".join(f"{'+' if part > 0 else '-'}{name}" for name, part in kept)


def _remedy(scenario: Scenario, group: list[int]) -> str:
    fields = [_fields(scenario, index) for index in group]
    for first, second, text in _REMEDIES:
        if any(a & first and b & second for i, a in enumerate(fields) for j, b in enumerate(fields) if i != j):
            return text
    return _OTHERWISE


def _fields(scenario: Scenario, index: int) -> set[str]:
    """What a parameter acts on: names of fields, `delay`, `shift`."""
    fields = {binding.field for binding in scenario.bindings if binding.parameter == index}
    fields |= {"delay"} if index == scenario.delay_parameter else set()
    return fields | ({"shift"} if index in dict(scenario.shifts).values() else set())
