"""Correlated parameters: the combination that recordings determine, how sharply, and what to record instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rsr.calibration import Estimate
from rsr.calibration.uncertainty.identifiability import Posterior, half_widths
from rsr.scenarios import Scenario

CORRELATED = 0.9
"""Parameters whose errors correlate by more than this are reported."""
_COMPONENT_SHARE = 0.2
"""Components of a direction smaller than this share of its largest are not reported, ..."""
_NAMED = 3
"""... and so many at most: nobody reads seventeen names."""
_SHARP = 0.5
"""A combination whose interval is wider than this share is not called determined."""
_REMEDIES: tuple[tuple[frozenset[str], frozenset[str], str], ...] = tuple(
    (frozenset(first.split()), frozenset(second.split()), text)
    for first, second, text in (
        ("friction", "mass", "Record a free slide, which depends on friction but not on mass, or weigh the body."),
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
            "Record steps of the unloaded arm: frequency gives stiffness, decay gives damping.",
        ),
        ("position_gain", "armature", "Hang a known weight on the arm: its sag gives the stiffness."),
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
        (
            "sensor_delay",
            "delay",
            "Give one of the clocks a time stamp of its own, or record a knock that both sensors see.",
        ),
    )
)
"""Fields of one parameter, fields of another, a recording that separates them."""
_OTHER_REMEDY = "Measure one of them, or record motions in which they act separately."


def correlation_warnings(scenario: Scenario, found: Posterior, judged: Mapping[str, Estimate]) -> list[str]:
    """Warn of each group of parameters of which the recordings determine a combination only, and say which."""
    std = np.sqrt(np.diag(found.covariance))
    correlation = found.covariance / np.outer(std, std)
    # A high correlation between two well identified parameters is harmless, so one of a pair must be uncertain.
    uncertain = np.array([judged[name].verdict in ("weak", "not identifiable") for name in scenario.space.names])
    linked = (np.abs(correlation) > CORRELATED) & (uncertain[:, None] | uncertain)
    return [_correlation_warning(scenario, found, judged, correlation, group) for group in _groups(linked)]


def _groups(linked: np.ndarray) -> list[list[int]]:
    """Find the connected components of more than one index."""
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


def _correlation_warning(
    scenario: Scenario, found: Posterior, judged: Mapping[str, Estimate], correlation: np.ndarray, group: list[int]
) -> str:
    """Name the two or three parameters that matter most in a group, and what would separate them."""
    inner = correlation[np.ix_(group, group)]
    # The last eigenvector, of the largest eigenvalue, is the direction that the recordings determine least; its sign is
    # arbitrary, so the largest component becomes +.
    direction = np.linalg.eigh(inner)[1][:, -1]
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    leading = np.argsort(-np.abs(direction), kind="stable")[:_NAMED]
    named = sorted(each for each in leading if abs(direction[each]) > _COMPONENT_SHARE * np.abs(direction).max())
    named = named if len(named) > 1 else sorted(leading[:2])
    names = [scenario.space.names[group[each]] for each in named]
    signs = " ".join(f"{'+' if direction[each] > 0 else '-'}{name}" for each, name in zip(named, names, strict=True))
    strongest = float(np.abs(inner - np.eye(len(group)))[named].max())
    more = f", with {len(group) - len(named)} more" if len(group) > len(named) else ""
    # Of a larger group the named ones are only a part of what is determined.
    known = "" if more else _combination(scenario, found, judged, group)
    return (
        f"{', '.join(names[:-1])} and {names[-1]} are correlated ({strongest:.2f}, along {signs}{more}): these "
        f"recordings determine a combination, not each{known}. {_remedy(scenario, [group[each] for each in named])}"
    )


def _combination(scenario: Scenario, found: Posterior, judged: Mapping[str, Estimate], named: Sequence[int]) -> str:
    """Write the combination of parameters that is known best, with its 95 % interval; logarithmic ones alone have one.

    Of logarithms it is a sum, so of values a product of powers: torque_constant / resistance = 0.21 within 3 %.
    """
    if any(parameter.scale != "log" for index, parameter in enumerate(scenario.space) if index in named):
        return ""
    sizes, axes = np.linalg.eigh(found.covariance[np.ix_(named, named)])
    largest = axes[np.abs(axes[:, 0]).argmax(), 0]
    powers = axes[:, 0] / largest
    (width,) = half_widths(found.degrees, np.sqrt(sizes[:1]) / abs(largest))
    if np.expm1(width) > _SHARP:
        return ""
    value, words = 1.0, ""
    for power, index in sorted(zip(powers.round(2).tolist(), named, strict=True), key=lambda each: -each[0]):
        if power:
            name = scenario.space.names[index]
            value *= judged[name].value ** power
            words += f"{(' x ' if power > 0 else ' / ') if words else ''}{name}{_power(abs(power))}"
    return f": {words} = {value:.3g} within {100 * np.expm1(width):.2g} %"


def _power(power: float) -> str:
    return "" if power == 1.0 else f"^{power:g}"


def _remedy(scenario: Scenario, group: list[int]) -> str:
    fields = [_fields(scenario, index) for index in group]
    for first, second, text in _REMEDIES:
        if any(a & first and b & second for i, a in enumerate(fields) for j, b in enumerate(fields) if i != j):
            return text
    return _OTHER_REMEDY


def _fields(scenario: Scenario, index: int) -> set[str]:
    """List what a parameter acts on: names of fields, `delay`, `sensor_delay`, `sensor_gain`, `sensor_bias`."""
    fields = {binding.field for binding in scenario.bindings if binding.parameter == index}
    fields |= {"delay"} if index == scenario.delay_parameter else set()
    fields |= {"sensor_delay"} if index in dict(scenario.sensor_delays).values() else set()
    return fields | {f"sensor_{scale.kind}" for scale in scenario.sensor_scales if scale.parameter == index}
