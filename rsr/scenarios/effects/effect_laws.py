"""Laws of the built-in effects: what servos and gearboxes do that MuJoCo's joints and actuators do not say.

A law is a pure function `law(xp, joint, *, arguments)` of arrays [..., J], J the joints of its effect. `xp` is numpy
over a batch in C and `jax.numpy` in MJX, so that one text serves simulation and exact derivatives: use nothing but `xp`
and arithmetic. What a law adds to its joints it returns as `JointForces`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Array = Any
"""A numpy array, or one of JAX under a transformation."""

_LEAST_SPEED_RATIO = 1e-9
"""Of a speed over Stribeck's: the derivative of |v|^alpha by alpha at rest is 0 times log 0 otherwise."""


@dataclass(frozen=True)
class JointMotion:
    """Motion of a law's joints, and what acts on them; arrays [..., J].

    Args:
        position, velocity: rad and rad/s, or m and m/s.
        command: of the effect's actuators; 0 for an effect on joints.
        drive: what the effects on actuators before this one exert on the joint, N m or N.
        load: gravity, centrifugal and Coriolis forces on the joint, and forces of effects on joints before this one.
            Refreshed every `LOAD_HELD_S`; forces of contacts are not in it.
        step_s: the time step of the physics.
    """

    position: Array
    velocity: Array
    command: Array
    drive: Array
    load: Array
    step_s: float


@dataclass(frozen=True)
class JointForces:
    """Forces that a law adds to its joints, each [..., J] or a number.

    Args:
        torque: generalised force, N m or N. That of an effect on actuators is what they exert.
        damping: N m s/rad or N s/m; MuJoCo integrates it implicitly, so it may be stiff.
        dry_friction: the largest force that resists sliding, N m or N; MuJoCo's solver finds the force, so the joint
            really sticks.

    Examples:
        >>> JointForces(torque=-0.5).damping
        0.0
    """

    torque: Array = 0.0
    damping: Array = 0.0
    dry_friction: Array = 0.0


Law = Callable[..., JointForces]


# Motors: from a command to the torque at the joint.


def servo(
    xp: Any,
    joint: JointMotion,
    *,
    gain: Array,
    supply_v: Array,
    torque_constant: Array,
    resistance: Array,
    duty_per_gain: Array = 1.0,
    damping_gain: Array = 0.0,
    largest_duty: Array = 1.0,
    dead_band: Array = 0.0,
    enabled: Array = 1.0,
) -> JointForces:
    """Position servo: its firmware turns the error into a duty cycle, its DC motor the voltage into torque.

    Args:
        gain: of the firmware, in its own unit.
        supply_v: voltage, V.
        torque_constant: N m/A at the joint, gearbox included; the back-EMF has the same number in V s/rad.
        resistance: Ohm.
        duty_per_gain: duty cycle that one unit of gain makes of an error of 1 rad.
        damping_gain: duty cycle by gain that a speed of 1 rad/s takes off.
        largest_duty: where the duty cycle is clipped.
        dead_band: error that the firmware ignores, rad.
        enabled: 1, or 0 where the torque is switched off.
    """
    error = joint.command - joint.position
    error = error - _between(xp, error, dead_band)
    duty = duty_per_gain * gain * (error - damping_gain * joint.velocity)
    voltage = supply_v * _between(xp, duty, largest_duty)
    return JointForces(enabled * _motor(joint, voltage, torque_constant, resistance, 1.0))


def dc_motor(
    xp: Any,
    joint: JointMotion,
    *,
    torque_constant: Array,
    resistance: Array,
    largest_voltage: Array,
    gear: Array = 1.0,
    enabled: Array = 1.0,
) -> JointForces:
    """DC motor, commanded by voltage: clipped to the supply, with back-EMF.

    Args:
        torque_constant: N m/A of the motor itself.
        resistance: Ohm.
        largest_voltage: of the supply, V.
        gear: turns of the motor to one of the joint.
        enabled: 1, or 0 where the motor is switched off.
    """
    voltage = _between(xp, joint.command, largest_voltage)
    return JointForces(enabled * _motor(joint, voltage, torque_constant, resistance, gear))


def backlash(
    xp: Any, joint: JointMotion, *, gap: Array, stiffness: Array, damping: Array = 0.0, offset: Array = 0.0
) -> JointForces:
    """Play between a position-controlled motor, which is where its command says, and the joint that it drives.

    Within the gap nothing drives the joint: gravity carries it to one side, or its friction holds it.

    Args:
        gap: from one flank of the teeth to the other, rad or m.
        stiffness: of motor and teeth in contact, N m/rad or N/m.
        damping: the same, N m s/rad or N s/m.
        offset: of the gap's middle from the command, rad or m.
    """
    apart = joint.command + offset - joint.position
    pressed = apart - _between(xp, apart, 0.5 * gap)
    return JointForces(stiffness * pressed, damping=xp.where(pressed == 0.0, 0.0, damping))


def _between(xp: Any, value: Array, largest: Array) -> Array:
    """Clip to a range about 0; `clip` itself takes numpy four times as long."""
    return xp.minimum(xp.maximum(value, -largest), largest)


def _motor(joint: JointMotion, voltage: Array, torque_constant: Array, resistance: Array, gear: Array) -> Array:
    # Current = (voltage - back-EMF) / resistance; inductance acts within microseconds.
    constant = gear * torque_constant
    return constant * (voltage - constant * joint.velocity) / resistance


# Friction of servo gearboxes, models M1 to M6 of Duclusaud et al., "Extended Friction Models for the Physics
# Simulation of Servo Actuators" (2024): each adds a term to the one before.


def friction_m1(xp: Any, joint: JointMotion, *, coulomb: Array, viscous: Array) -> JointForces:
    """Coulomb and viscous friction."""
    return JointForces(damping=viscous, dry_friction=coulomb)


def friction_m2(
    xp: Any,
    joint: JointMotion,
    *,
    coulomb: Array,
    viscous: Array,
    stribeck: Array,
    stribeck_speed: Array,
    stribeck_power: Array,
) -> JointForces:
    """M1, and `stribeck` more at rest, which vanishes beyond `stribeck_speed`."""
    slow = _slowness(xp, joint, stribeck_speed, stribeck_power)
    return JointForces(damping=viscous, dry_friction=coulomb + slow * stribeck)


def friction_m3(xp: Any, joint: JointMotion, *, coulomb: Array, viscous: Array, load: Array) -> JointForces:
    """M1, and a share `load` of the torque that the gearbox transmits."""
    return JointForces(damping=viscous, dry_friction=coulomb + load * xp.abs(joint.load - joint.drive))


def friction_m4(
    xp: Any,
    joint: JointMotion,
    *,
    coulomb: Array,
    viscous: Array,
    stribeck: Array,
    stribeck_speed: Array,
    stribeck_power: Array,
    load: Array,
    load_stribeck: Array,
) -> JointForces:
    """M2 and M3; the share of the load is larger at rest, too."""
    slow = _slowness(xp, joint, stribeck_speed, stribeck_power)
    transmitted = xp.abs(joint.load - joint.drive)
    dry = coulomb + slow * stribeck + (load + slow * load_stribeck) * transmitted
    return JointForces(damping=viscous, dry_friction=dry)


def friction_m5(
    xp: Any,
    joint: JointMotion,
    *,
    coulomb: Array,
    viscous: Array,
    stribeck: Array,
    stribeck_speed: Array,
    stribeck_power: Array,
    motor_load: Array,
    external_load: Array,
    motor_load_stribeck: Array,
    external_load_stribeck: Array,
) -> JointForces:
    """M4 with a share of its own for what the motor exerts and for what pulls at the joint: gears drive back badly."""
    slow = _slowness(xp, joint, stribeck_speed, stribeck_power)
    transmitted = _transmitted(xp, joint, motor_load, external_load)
    at_rest = stribeck + _transmitted(xp, joint, motor_load_stribeck, external_load_stribeck)
    return JointForces(damping=viscous, dry_friction=coulomb + transmitted + slow * at_rest)


def friction_m6(
    xp: Any,
    joint: JointMotion,
    *,
    coulomb: Array,
    viscous: Array,
    stribeck: Array,
    stribeck_speed: Array,
    stribeck_power: Array,
    motor_load: Array,
    external_load: Array,
    motor_load_stribeck: Array,
    external_load_stribeck: Array,
    motor_quadratic: Array,
    external_quadratic: Array,
) -> JointForces:
    """M5, and a quadratic term near rest where motor and load pull against each other."""
    slow = _slowness(xp, joint, stribeck_speed, stribeck_power)
    transmitted = _transmitted(xp, joint, motor_load, external_load)
    at_rest = stribeck + _transmitted(xp, joint, motor_load_stribeck, external_load_stribeck)
    against = joint.load * joint.drive < 0
    motor_wins = xp.abs(joint.drive) > xp.abs(joint.load)
    # Each side's coefficient counts where the *other* one drives the gears.
    quadratic = xp.where(motor_wins, external_quadratic * joint.load**2, motor_quadratic * joint.drive**2)
    dry = coulomb + transmitted + slow * at_rest + slow * xp.where(against, quadratic, 0.0)
    return JointForces(damping=viscous, dry_friction=dry)


def _transmitted(xp: Any, joint: JointMotion, motor: Array, external: Array) -> Array:
    """What the gearbox transmits, by a share of its own for the motor and for what pulls at the joint."""
    return xp.abs(external * joint.load - motor * joint.drive)


def _slowness(xp: Any, joint: JointMotion, speed: Array, power: Array) -> Array:
    """1 at rest, 0 far beyond Stribeck's speed."""
    ratio = xp.maximum(xp.abs(joint.velocity) / speed, _LEAST_SPEED_RATIO)
    return xp.exp(-(ratio**power))


def drag(xp: Any, joint: JointMotion, *, quadratic: Array, wind: Array = 0.0) -> JointForces:
    """Resistance of the air to a joint's motion, with the square of its speed.

    Args:
        quadratic: N m s^2/rad^2 or N s^2/m^2.
        wind: speed of the air along the joint's coordinate.
    """
    relative = joint.velocity - wind
    return JointForces(-quadratic * xp.abs(relative) * relative)


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        *(servo, dc_motor, backlash, drag),
        *(friction_m1, friction_m2, friction_m3, friction_m4, friction_m5, friction_m6),
    )
}
"""Name in YAML -> law."""
