"""rsr: a Real-Sim-Real workbench. The library: no Prefect, no DVC, works in a notebook.

    import rsr

    arm = rsr.Scenario.from_mjcf("arm.xml", dt=0.01, measured=..., command=..., tune=...)
    fit = rsr.calibrate(arm, [{"q": q, "u": u} for q, u in runs])
    fit.save_model("tuned.xml")

Each public name is imported when it is first used, so that `import rsr` itself loads neither MuJoCo nor JAX nor torch.

Rooms, each importing only from those before it:
`sessions -> scenarios -> simulators, infogap -> environments -> policies -> realities, calibration, learned -> planning
-> reports -> pipelines -> cli, api`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rsr.api.arrays import session_from_arrays
    from rsr.api.calls import calibrate, train
    from rsr.api.evaluating import HorizonErrors, evaluate
    from rsr.api.fit import Fit
    from rsr.calibration.hand_over import SavedModel
    from rsr.errors import RsrError
    from rsr.policies import Policy
    from rsr.scenarios import Scenario, built_in_scenarios, load_scenario
    from rsr.scenarios.declared_channels import (
        actuators,
        free_joint_position,
        free_joint_quaternion,
        joint_velocities,
        joints,
        sensor,
    )
    from rsr.scenarios.declared_parameters import absolute, delay, scale, sensor_bias, sensor_delay, sensor_gain
    from rsr.scenarios.effect_laws import JointForces
    from rsr.scenarios.kinematics import forward_kinematics
    from rsr.scenarios.task import (
        AbsoluteAction,
        DisplacementAction,
        ObservationTerm,
        ProgressFigure,
        Starts,
        Task,
    )
    from rsr.sessions import Session, read_session, write_session
    from rsr.workspace import Workspace

__all__ = [
    "AbsoluteAction",
    "DisplacementAction",
    "Fit",
    "HorizonErrors",
    "JointForces",
    "ObservationTerm",
    "Policy",
    "ProgressFigure",
    "RsrError",
    "SavedModel",
    "Scenario",
    "Session",
    "Starts",
    "Task",
    "Workspace",
    "absolute",
    "actuators",
    "built_in_scenarios",
    "calibrate",
    "delay",
    "evaluate",
    "forward_kinematics",
    "free_joint_position",
    "free_joint_quaternion",
    "joint_velocities",
    "joints",
    "load_scenario",
    "read_session",
    "scale",
    "sensor",
    "sensor_bias",
    "sensor_delay",
    "sensor_gain",
    "session_from_arrays",
    "train",
    "write_session",
]

_HOMES = {
    "rsr.api.arrays": ("session_from_arrays",),
    "rsr.api.calls": ("calibrate", "train"),
    "rsr.api.evaluating": ("HorizonErrors", "evaluate"),
    "rsr.api.fit": ("Fit",),
    "rsr.calibration.hand_over": ("SavedModel",),
    "rsr.errors": ("RsrError",),
    "rsr.policies": ("Policy",),
    "rsr.scenarios": ("Scenario", "built_in_scenarios", "load_scenario"),
    "rsr.scenarios.declared_channels": (
        "actuators",
        "free_joint_position",
        "free_joint_quaternion",
        "joint_velocities",
        "joints",
        "sensor",
    ),
    "rsr.scenarios.declared_parameters": ("absolute", "delay", "scale", "sensor_bias", "sensor_delay", "sensor_gain"),
    "rsr.scenarios.effect_laws": ("JointForces",),
    "rsr.scenarios.kinematics": ("forward_kinematics",),
    "rsr.scenarios.task": (
        "AbsoluteAction",
        "DisplacementAction",
        "ObservationTerm",
        "ProgressFigure",
        "Starts",
        "Task",
    ),
    "rsr.sessions": ("Session", "read_session", "write_session"),
    "rsr.workspace": ("Workspace",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'rsr' has no attribute '{name}'; it has {', '.join(__all__)}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
