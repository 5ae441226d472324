"""A scenario's parameters as Python says them: each becomes one entry of a scenario's YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import mujoco

from rsr.common import ScenarioError
from rsr.scenarios.channels.declared_channels import Entry, is_servo, unit_at
from rsr.scenarios.parameters.bindings import element_id, values_of

_FACTOR, _FACTOR_STD = 5.0, 0.5
"""Default bounds of a factor, and its prior: standard deviation of a factor of exp(0.5) = 1.6."""
_MJCF_WORDS = {"kp": "position_gain", "frictionloss": "friction_loss"}
"""Attributes of MJCF that the YAML file calls otherwise."""
_UNITS = {
    ("body", "mass"): "kg",
    ("body", "inertia"): "kg m2",
    ("option", "gravity_strength"): "m/s2",
    ("option", "density"): "kg/m3",
    ("option", "viscosity"): "Pa s",
    ("option", "wind_x"): "m/s",
    ("option", "wind_y"): "m/s",
    ("option", "wind_z"): "m/s",
    ("actuator", "time_constant"): "s",
    **{(element, axis): "m" for element in ("body", "site", "camera") for axis in "xyz"},
    **{(element, f"turn_{axis}"): "rad" for element in ("body", "site", "camera") for axis in "xyz"},
    ("tendon", "rest_length"): "m",
    ("tendon", "range_lower"): "m",
    ("tendon", "range_upper"): "m",
    ("equality", "time_constant"): "s",
    ("pair", "contact_time"): "s",
    ("pair", "torsional_friction"): "m",
    ("pair", "rolling_friction"): "m",
    ("pair", "impedance_width"): "m",
}
_JOINT_UNITS = {
    "damping": ("N m s/rad", "N s/m"),
    "armature": ("kg m2", "kg"),
    "friction_loss": ("N m", "N"),
    "position_gain": ("N m/rad", "N/m"),
    "stiffness": ("N m/rad", "N/m"),
    "spring_reference": ("rad", "m"),
    "range_lower": ("rad", "m"),
    "range_upper": ("rad", "m"),
}
"""Field -> its unit at a hinge and at a slide."""


@dataclass(frozen=True)
class TunedParameter:
    """A parameter and where it acts; made by `scale`, `absolute`, `delay`, `sensor_delay` and the like.

    Args:
        action: the YAML file's key: sets, scales, delays, sensor_delay, ...
        place: "element.field" for `sets` and `scales`.
        prior: standard deviation, of the logarithm where `log`, else in the value's unit.
    """

    action: Literal["sets", "scales", "delays", "sensor_delay", "sensor_gain", "sensor_bias"]
    place: str
    names: tuple[str, ...]
    nominal: float | None
    lower: float | None
    upper: float | None
    prior: float | None
    unit: str
    log: bool

    def entry(self, model: mujoco.MjModel, where: str) -> Entry:
        """The parameter as the YAML file says it."""
        if self.action in ("sets", "scales"):
            element, field = _place(self.place)
            written = _elements(model, element, field, self.names, self.action, where)
            nominal = self.nominal if self.nominal is not None else _common(written, self.place, where)
            target = {element: list(written) if len(written) > 1 else next(iter(written)), "field": field}
            acts: Any = [target]
            unit = self.unit or _field_unit(model, element, field, next(iter(written)))
        else:
            nominal, unit = self.nominal or 0.0, self.unit
            acts = "command" if self.action == "delays" else list(self.names)
        return {**self._numbers(nominal, where), "unit": unit, self.action: acts}

    def _numbers(self, nominal: float, where: str) -> Entry:
        if self.log and nominal > 0:
            lower = nominal / _FACTOR if self.lower is None else self.lower
            upper = nominal * _FACTOR if self.upper is None else self.upper
            std = _FACTOR_STD if self.prior is None else self.prior
            _check_positive(lower, where)
            return {"nominal": nominal, "lower": float(lower), "upper": float(upper), "prior_std": float(std)}
        if self.lower is None or self.upper is None:
            raise ScenarioError(
                got=f"a nominal value of {nominal:g} without bounds",
                expected="lower and upper",
                where=where,
                next_step="Give the least and the largest value that you hold possible.",
            )
        step = self.prior if self.prior is not None else (self.upper - self.lower) / 4
        bounds = {"nominal": float(nominal), "lower": float(self.lower), "upper": float(self.upper)}
        return {**bounds, "scale": "linear", "unit_step": float(step), "prior_std": 1.0}


def scale(
    place: str,
    *names: str,
    nominal: float = 1.0,
    lower: float | None = None,
    upper: float | None = None,
    prior: float | None = None,
) -> TunedParameter:
    """Tune a factor on what the MJCF says, the same for all elements named.

    Args:
        place: element and field, such as "joint.damping", "actuator.kp", "body.mass", "pair.friction",
            "option.gravity_strength"; docs/scenarios.md lists them.
        names: of the elements; by default all whose value in the MJCF is not 0.
        nominal: the best value before any data.
        lower: hard bound; by default a fifth of the nominal factor.
        upper: hard bound; by default five times the nominal factor.
        prior: how sure you are, standard deviation of the logarithm: 0.1 is about 10 %, the default 0.5.

    Examples:
        >>> scale("joint.damping", upper=20).upper
        20
    """
    return TunedParameter("scales", place, names, nominal, lower, upper, prior, "1", log=True)


def absolute(
    place: str,
    *names: str,
    nominal: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
    prior: float | None = None,
    unit: str = "",
    linear: bool = False,
) -> TunedParameter:
    """Tune the value itself, the same for all elements named.

    Args:
        place: element and field, as `scale` takes it.
        names: of the elements; by default all whose value in the MJCF is not 0.
        nominal: the best value before any data; by default what the MJCF says.
        lower: hard bound; by default a fifth of the nominal value, without default where `linear`.
        upper: hard bound; by default five times the nominal value, without default where `linear`.
        prior: how sure you are: standard deviation of the logarithm (0.5 by default); where `linear`, in the value's
            unit (a quarter of the range by default).
        unit: of the value; by default that of the field.
        linear: for what may be negative or 0, such as offsets; otherwise the logarithm is tuned.

    Examples:
        >>> absolute("body.mass", "hand", lower=0.2, upper=0.6).names
        ('hand',)
    """
    return TunedParameter("sets", place, names, nominal, lower, upper, prior, unit, log=not linear)


def delay(upper: float, nominal: float = 0.0, lower: float = 0.0, prior: float | None = None) -> TunedParameter:
    """Tune the time from sending a command to its taking effect, s.

    Args:
        upper: the longest that you hold possible.
        nominal: the best value before any data.
        lower: the shortest.
        prior: standard deviation in s; by default a quarter of the range.

    Examples:
        >>> delay(upper=0.08).upper
        0.08
    """
    return TunedParameter("delays", "", (), nominal, lower, upper, prior, "s", log=False)


def sensor_delay(
    *channels: str, upper: float, nominal: float = 0.0, lower: float = 0.0, prior: float | None = None
) -> TunedParameter:
    """Tune the sensor delay of measured channels, in s; a negative value is a stamp too early.

    Args:
        channels: measured channels that share the clock.
        upper: the largest delay that you hold possible.
        nominal: the best value before any data.
        lower: the smallest; below 0 where the channel may be early.
        prior: standard deviation in s; by default a quarter of the range.

    Examples:
        >>> sensor_delay("camera", lower=-0.02, upper=0.05).names
        ('camera',)
    """
    return TunedParameter("sensor_delay", "", channels, nominal, lower, upper, prior, "s", log=False)


def sensor_gain(
    *channels: str, nominal: float = 1.0, lower: float = 0.5, upper: float = 2.0, prior: float = 0.1
) -> TunedParameter:
    """Tune the gain of measured channels: what they show over what is, one number for all that are named.

    Args:
        channels: measured channels, or single columns of them, as "CHANNEL.COLUMN".
        nominal: the best value before any data.
        lower: hard bound.
        upper: hard bound.
        prior: how sure you are, standard deviation of the logarithm: 0.1 is about 10 %.

    Examples:
        >>> sensor_gain("torque").nominal
        1.0
    """
    return TunedParameter("sensor_gain", "", channels, nominal, lower, upper, prior, "1", log=True)


def sensor_bias(
    *channels: str,
    upper: float,
    unit: str,
    nominal: float = 0.0,
    lower: float | None = None,
    prior: float | None = None,
) -> TunedParameter:
    """Tune the bias of measured channels that all runs share: what they show where there is nothing.

    Args:
        channels: measured channels, or single columns of them, as "CHANNEL.COLUMN".
        upper: the largest that you hold possible.
        unit: of the channels.
        nominal: the best value before any data.
        lower: the smallest; by default -`upper`.
        prior: standard deviation in that unit; by default a quarter of the range.

    Examples:
        >>> sensor_bias("imu.gyro_z", upper=0.1, unit="rad/s").lower
        -0.1
    """
    least = -upper if lower is None else lower
    return TunedParameter("sensor_bias", "", channels, nominal, least, upper, prior, unit, log=False)


def _place(place: str) -> tuple[str, str]:
    element, _, field = place.partition(".")
    return element, _MJCF_WORDS.get(field, field)


def _elements(
    model: mujoco.MjModel, element: str, field: str, names: tuple[str, ...], action: str, where: str
) -> dict[str, float]:
    """The elements that a parameter writes: name -> what the MJCF says. A factor on 0 would do nothing."""
    known = _written(model, element, field, where)
    for name in names:
        element_id(model, element, name, where)  # says which names there are
    chosen = {name: known[name] for name in names} if names else {name: v for name, v in known.items() if v != 0.0}
    if "" in chosen:
        raise ScenarioError(
            got=f"a {element} without a name",
            expected="names to write to",
            where=where,
            next_step=f"Name it in the MJCF, or say which are meant: scale('{element}.{field}', 'name', ...).",
        )
    pointless = action == "scales" or not chosen or field == "position_gain"
    if pointless and not any(chosen.values()):
        raise ScenarioError(
            got=f"{field} of 0 at {', '.join(names) if names else f'every {element}'}",
            expected="a value in the MJCF that a factor can change",
            where=where,
            next_step=f"Set it in the MJCF, or tune the value itself: absolute('{element}.{field}', ...).",
        )
    return chosen


def _written(model: mujoco.MjModel, element: str, field: str, where: str) -> dict[str, float]:
    """Nominal value of a field in the MJCF. A motor has no position gain: writing one would make a servo of it."""
    known = values_of(model, element, field, where)
    if field != "position_gain":
        return known
    servos = {model.actuator(index).name for index in range(model.nu) if is_servo(model, index)}
    return {name: value if name in servos else 0.0 for name, value in known.items()}


def _common(written: dict[str, float], place: str, where: str) -> float:
    values = list(written.values())
    if max(values) - min(values) > 1e-12 * abs(max(values)):
        raise ScenarioError(
            got=f"different values in the MJCF: {', '.join(f'{name} {value:g}' for name, value in written.items())}",
            expected="one nominal value",
            where=where,
            next_step=f"Give `nominal`, tune a factor with scale('{place}'), or make one parameter of each.",
        )
    return values[0]


def _check_positive(lower: float, where: str) -> None:
    if lower <= 0:
        raise ScenarioError(
            got=f"lower {lower:g}",
            expected="a bound above 0, as the logarithm is tuned",
            where=where,
            next_step="Raise the bound, or tune with absolute(..., linear=True).",
        )


def _field_unit(model: mujoco.MjModel, element: str, field: str, name: str) -> str:
    if field in _JOINT_UNITS and element in ("joint", "actuator"):
        index = element_id(model, element, name, "")
        joint = model.actuator_trnid[index, 0] if element == "actuator" else index
        return unit_at(model, joint, _JOINT_UNITS[field])
    if field.startswith("com_") or (element, field) in (("geom", "size"), ("geom", "corner_radius")):
        return "m"
    return _UNITS.get((element, field), "1")
