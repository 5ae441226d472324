"""The hidden world of a stand-in: parameters, and effects that no parameter of the nominal model expresses.

Only the stand-in and the test suite may read it (import-linter holds this), and only here is the section `stand_in` of
a scenario's YAML file read. Without one, each parameter is drawn within one standard deviation of its prior, and the
effects from `_DEFAULTS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

from rsr.common import ScenarioError, generator, read_yaml
from rsr.scenarios import Parameter, Scenario, check_fields

Range = float | list[float]
"""A number, or the two between which it is drawn."""
_JITTER_SHARE = 0.1
"""Of a control step: spread of the latency, where nothing else is said."""
_DRY_SHARES = (0.01, 0.03)
"""Of what the strongest actuator can exert: dry friction, where nothing else is said."""
_LAG_RAD = 0.1
"""A servo without a force limit counts as one that exerts what this error, in rad or m, asks of it."""
_DEFAULTS: dict[str, Range] = {
    "friction_anisotropy": [1.1, 1.3],
    "gravity_compensation": [0.97, 0.99],
    "sensor_noise": [0.8, 1.25],
}
_DEGREES_OF_SLIDING = 3
_ONE_COORDINATE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


@dataclass(frozen=True)
class Truth:
    """The hidden world of one seed.

    Args:
        anisotropy: friction of sliding pairs along one axis over its geometric mean.
        dry_friction: of the joint with the strongest actuator, N m or N; others' in proportion to what theirs exert.
        delay_jitter_s: spread of the latency from episode to episode.
        gravity_share: part of the weight compensated for in the model that is compensated for.
        noise_factor: of the sensors' noise, over what the scenario states.
        sliding_pairs: contact pairs whose friction depends on the direction.
    """

    parameters: dict[str, float]
    anisotropy: float
    dry_friction: float
    delay_jitter_s: float
    gravity_share: float
    noise_factor: float
    timestep_s: float
    sliding_pairs: tuple[str, ...]


def draw_truth(seed: int, scenario: Scenario) -> Truth:
    """Draw the hidden world of one stand-in seed.

    Raises:
        ScenarioError: the section `stand_in` names something unknown, or hides a parameter outside its bounds.
    """
    section = _section(scenario)
    # A changed key, or another order of draws, would change what stand-in 1 hides.
    rng = generator(seed, "twin", "truth")
    parameters = dict(_parameters(scenario, section.get("ranges", {}), rng))
    strongest = max(_capacities(scenario.base_model).values(), default=0.0)
    own_friction = any((each.element, each.field) == ("joint", "friction_loss") for each in scenario.bindings)
    dry = 0.0 if own_friction else [share * strongest for share in _DRY_SHARES]
    anisotropy = _drawn(section.get("friction_anisotropy", _DEFAULTS["friction_anisotropy"]), rng)
    dry_friction = _drawn(section.get("dry_friction", dry), rng)
    gravity_share = _drawn(section.get("gravity_compensation", _DEFAULTS["gravity_compensation"]), rng)
    return Truth(
        parameters=parameters,
        anisotropy=anisotropy,
        dry_friction=dry_friction,
        delay_jitter_s=section.get("delay_jitter_s", _JITTER_SHARE * scenario.control_dt_s),
        gravity_share=gravity_share,
        noise_factor=_drawn(section.get("sensor_noise", _DEFAULTS["sensor_noise"]), rng),
        timestep_s=section.get("timestep_s", scenario.base_model.opt.timestep / 2),
        sliding_pairs=tuple(section.get("sliding_pairs", _sliding(scenario.base_model))),
    )


def hidden_model(scenario: Scenario, truth: Truth) -> mujoco.MjModel:
    """Model of the hidden world: the parameters, and what none of them expresses."""
    model = scenario.model(scenario.space.vector(truth.parameters))
    model.opt.timestep = truth.timestep_s
    pyramidal, elliptic = mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.cone = pyramidal if model.opt.cone == elliptic else elliptic
    sliding = [model.pair(name).id for name in truth.sliding_pairs]
    model.pair_friction[sliding, 0] *= truth.anisotropy
    model.pair_friction[sliding, 1] /= truth.anisotropy
    capacities = _capacities(model)
    for joint, capacity in capacities.items():
        weaker = max(capacities.values()) / capacity
        model.dof_frictionloss[model.jnt_dofadr[joint]] += truth.dry_friction / weaker
    model.body_gravcomp[:] *= truth.gravity_share
    return model


def changed(truth: Truth, factors: Mapping[str, float]) -> Truth:
    """The world after wear or a repair: factors on its parameters."""
    values = {name: value * factors.get(name, 1.0) for name, value in truth.parameters.items()}
    return replace(truth, parameters=values)


def _section(scenario: Scenario) -> Mapping[str, Any]:
    """The section `stand_in`, checked; empty where there is none."""
    section = {} if scenario.file is None else read_yaml(scenario.file).get("stand_in", {})
    if not section:
        return {}
    where = f"{scenario.file}, stand_in"
    check_fields("stand_in", section, where)
    for name in section.get("ranges", {}):
        if name not in scenario.space.names:
            raise _wrong(f"parameter '{name}'", f"one of {', '.join(scenario.space.names)}", f"{where}, ranges")
        late = scenario.space.names.index(name) in {index for _, index in scenario.sensor_delays}
        _check_range(scenario.space[name], section["ranges"][name], late, f"{where}, ranges")
    known = [scenario.base_model.pair(index).name for index in range(scenario.base_model.npair)]
    for name in section.get("sliding_pairs", []):
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "none: the MJCF names no pair"
            raise _wrong(f"pair '{name}'", expected, f"{where}, sliding_pairs")
    _check_timestep(scenario, section, where)
    return section


def _check_range(parameter: Parameter, value: Any, late: bool, where: str) -> None:
    lower = max(parameter.lower, 0.0) if late else parameter.lower  # what is measured now cannot be early
    ends: list[Any] = value if isinstance(value, list) and len(value) == 2 else [value, value]
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in ends)
    unit = "" if parameter.unit == "1" else f" {parameter.unit}"
    if not numbers or not lower <= ends[0] <= ends[1] <= parameter.upper:
        raise _wrong(
            f"{parameter.name} hidden in {value}",
            f"a number or two in order, within its bounds {lower:g} to {parameter.upper:g}{unit}",
            where,
        )


def _check_timestep(scenario: Scenario, section: Mapping[str, Any], where: str) -> None:
    steps = scenario.control_dt_s / section.get("timestep_s", scenario.control_dt_s)
    if abs(steps - round(steps)) > 1e-6 * steps:
        raise _wrong(
            f"timestep_s {section['timestep_s']:g} with control_dt_s {scenario.control_dt_s:g}",
            "a whole number of time steps to a control step",
            where,
        )


def _parameters(
    scenario: Scenario, ranges: Mapping[str, Range], rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    sensors = {index for _, index in scenario.sensor_delays}
    for index, parameter in enumerate(scenario.space):
        if parameter.name in ranges:
            yield parameter.name, _drawn(ranges[parameter.name], rng, parameter)
        else:
            # Within one standard deviation of the prior, as far as the bounds allow.
            middle = parameter.to_coordinate(parameter.nominal)
            lower = max(parameter.lower, 0.0) if index in sensors else parameter.lower
            low, high = (
                np.clip(parameter.to_value(middle + offset), lower, parameter.upper)
                for offset in (-parameter.prior_std, parameter.prior_std)
            )
            coordinate = rng.uniform(parameter.to_coordinate(low), parameter.to_coordinate(high))
            yield parameter.name, float(np.clip(parameter.to_value(coordinate), parameter.lower, parameter.upper))


def _drawn(value: Range, rng: np.random.Generator, parameter: Parameter | None = None) -> float:
    """A number as it is, or one between two; a parameter's by its logarithm, where both are positive."""
    if not isinstance(value, list):
        return float(value)
    low, high = value
    if parameter is not None and value[0] > 0:
        return float(np.clip(np.exp(rng.uniform(*np.log(value))), low, high))
    return float(rng.uniform(low, high))


def _sliding(model: mujoco.MjModel) -> list[str]:
    """Named contact pairs with friction."""
    pairs = [model.pair(index) for index in range(model.npair) if model.pair_dim[index] >= _DEGREES_OF_SLIDING]
    return [pair.name for pair in pairs if pair.name]


def _capacities(model: mujoco.MjModel) -> dict[int, float]:
    """What the actuator of each joint can exert at most, N m or N: joint -> number, as far as the model says."""
    found: dict[int, float] = {}
    for actuator in np.flatnonzero(model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT):
        joint = int(model.actuator_trnid[actuator, 0])
        if int(model.jnt_type[joint]) in _ONE_COORDINATE:
            exerted = _exerted(model, int(actuator), joint)
            if exerted > 0:
                found[joint] = exerted
    return found


def _exerted(model: mujoco.MjModel, actuator: int, joint: int) -> float:
    gear, gain = abs(model.actuator_gear[actuator, 0]), abs(model.actuator_gainprm[actuator, 0])
    if model.jnt_actfrclimited[joint]:
        return float(np.abs(model.jnt_actfrcrange[joint]).max())
    if model.actuator_forcelimited[actuator]:
        return float(gear * np.abs(model.actuator_forcerange[actuator]).max())
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE:
        return float(gear * gain * _LAG_RAD)
    limited = model.actuator_ctrllimited[actuator]
    return float(gear * gain * (np.abs(model.actuator_ctrlrange[actuator]).max() if limited else 1.0))


def _wrong(got: str, expected: str, where: str) -> ScenarioError:
    next_step = "Correct the section `stand_in` of the scenario's YAML file."
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
