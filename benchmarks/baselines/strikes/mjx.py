"""MuJoCo's sibling for accelerators as a baseline: parameters by Gauss-Newton, all impacts of a step in one program.

Compiling takes minutes the first time, and blocks with few corners are needed. Steps of the search are differences:
derivatives through such an impact would take a second program, and the search needs few of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np
from scipy.optimize import least_squares

from rsr.common import CalibrationError, rotated, yaw_of
from rsr.learned.clash import GROUND, BaseModel
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes, distances, scene_xml
from rsr.simulators import SettledHeights

MOST_CORNERS = 20
"""MJX warns of larger faces: clipping them is slow and not exact."""
_NOSE_FACETS = 16
"""So that the nose has no larger face either; its radius is off by a twentieth of a millimetre at most."""
_LONGEST_S = 0.03
_EVALUATIONS = 8
_STEP = 0.02
"""Relative, in logarithms: an impact of few time steps is not smooth at smaller ones."""
_ROOM = 1e-6


def mjx_base(
    shape: Shape,
    recorded: RecordedStrikes,
    ground_friction: float | None = None,
    definition: Definition | None = None,
) -> BaseModel:
    """Fit MJX to recorded strikes; the fitted MJX then predicts others.

    Raises:
        CalibrationError: the block has a face that MJX does not simulate well.
    """
    collide = MjxCollider(shape, definition)
    free = np.array([name != "ground_friction" or ground_friction is None for name in PARAMETERS.names])
    nominal = PARAMETERS.nominal.copy()
    if ground_friction is not None:
        ground = PARAMETERS["ground_friction"]
        nominal[GROUND] = np.clip(ground_friction, ground.lower, ground.upper)
    start, low, high = (PARAMETERS.to_coordinates(each) for each in (nominal, PARAMETERS.lower, PARAMETERS.upper))
    weights = np.array([1.0, 1.0, shape.gyration_m]) / recorded.strikes.speed_m_s[:, None]

    def missed(coordinates: np.ndarray) -> np.ndarray:
        full = start.copy()
        full[free] = coordinates
        after = collide(recorded.strikes, PARAMETERS.to_values(np.clip(full, low, high)))
        return ((after - recorded.after) * weights).ravel()

    found = least_squares(
        missed,
        start[free],
        bounds=(low[free] - _ROOM, high[free] + _ROOM),
        diff_step=_STEP,
        loss="soft_l1",
        f_scale=0.05,
        max_nfev=_EVALUATIONS,
    )
    best = start.copy()
    best[free] = found.x
    values = PARAMETERS.to_values(np.clip(best, low, high))
    return lambda strikes: collide(strikes, values)


class MjxCollider:
    """Strikes in MJX, from just before contact to the first step at which the two are apart."""

    def __init__(self, shape: Shape, definition: Definition | None = None) -> None:
        check_corners(shape)
        self.shape, self.definition = shape, Definition() if definition is None else definition
        # The sensor of contact and the second pass of collisions are what MJX lacks.
        xml = scene_xml(shape, self.definition, nose_facets=_NOSE_FACETS)
        for first, last in (("<sensor>", "</sensor>"), ("<flag multiccd", "/>")):
            before, rest = xml.split(first)
            xml = before + rest.split(last, 1)[1]
        scenario = replace(
            load_scenario("strike"),
            name=f"strike of {shape.name}",
            base_model=mujoco.MjModel.from_xml_string(xml),
            control_dt_s=self.definition.timestep_s,
        )
        from rsr.simulators.mjx import MjxSimulator

        self._simulator = MjxSimulator(scenario)
        self._heights = SettledHeights(shape, self.definition)

    def __call__(self, strikes: Strikes, params: np.ndarray) -> np.ndarray:
        """Velocity after, [N, 3], in the frame of the block at the impact, with parameters [4]."""
        states, actions = self._begun(strikes, params)
        path = self._simulator.rollout(states, actions, params)
        return self._after(strikes, path, self._parted(path))

    def _begun(self, strikes: Strikes, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        definition, count = self.definition, len(strikes)
        gap_m = strikes.speed_m_s * np.cos(strikes.angle_rad) * definition.timestep_s * 1.5
        states = np.zeros((count, 15))
        reach = strikes.normal * (definition.nose_radius_m + gap_m)[:, None]
        states[:, :2] = rotated(reach - strikes.point_m, strikes.yaw_rad)
        states[:, 2] = self._heights(params[3])
        states[:, 3], states[:, 6] = np.cos(strikes.yaw_rad / 2), np.sin(strikes.yaw_rad / 2)
        states[:, 14] = strikes.speed_m_s
        force_n = -definition.striker_mass_kg * definition.braking_m_s2
        return states, np.full((count, round(_LONGEST_S / definition.timestep_s), 1), force_n)

    def _parted(self, path: np.ndarray) -> np.ndarray:
        """The step [N] at which the two are apart again; the last one where they are not."""
        found = np.full(len(path), path.shape[1] - 1)
        for row, states in enumerate(path):
            nose = np.column_stack([states[:, 7], np.zeros(len(states))]) - states[:, :2]
            nose_in_block = rotated(nose, -yaw_of(states[:, 3:7]))
            overlaps = distances(nose_in_block, self.shape.outline) < self.definition.nose_radius_m
            ends = [step + 1 for step, (now, then) in enumerate(pairwise(overlaps)) if now and not then]
            if ends:
                found[row] = ends[0]
        return found

    def _after(self, strikes: Strikes, path: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Velocity at those steps, [N, 3], in the block's frame."""
        qvel = path[np.arange(len(path)), steps, 8:]
        return np.column_stack([rotated(qvel[:, :2], -strikes.yaw_rad), qvel[:, 5]])


def check_corners(shape: Shape) -> None:
    """Refuse a block that MJX does not simulate well."""
    corners = len(shape.outline)
    if corners > MOST_CORNERS:
        raise CalibrationError(
            got=f"'{shape.name}', whose upper face has {corners} corners",
            expected=f"a block with faces of at most {MOST_CORNERS} corners",
            where="strikes in MJX",
            next_step="Compare on a block with fewer corners, such as square or triangle, or without MJX.",
        )
