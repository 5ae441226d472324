"""An adapted scene: impacts are pushes, one after another; each ends as simulation, law and residuals say together.

Where two bodies meet flat, or a corner grazes, they often touch twice or more before they part. The law and the
residual are of a single push at one place, and between two of them bodies move freely: so each push is corrected by
itself, and whether there is another one follows from where the corrected velocities lead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.learned.clash.frame import from_contact, to_contact
from rsr.learned.clash.law import ImpactLaw
from rsr.learned.clash.prediction import mixed
from rsr.learned.clash.residual import Z90, ObservedStrikes, Residual, observe
from rsr.learned.clash.scenes.impacts import SceneImpacts, simulate
from rsr.learned.clash.scenes.meeting import met_again, touching
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.learned.clash.scenes.tables import SceneStrikes
from rsr.learned.clash.sliding import SlidingModel

PUSH_APART_S = 0.00075
"""A push is over when the two have been apart for three steps."""
_PUSHES_MOST = 6


@dataclass(frozen=True)
class Collided:
    """N impacts from the first touch until the two have parted.

    Args:
        gained: [N, 3], by how much the struck body's velocity changed, in its frame before (m/s, m/s, rad/s).
        std: [N, 3], standard deviation of a measurement, in the contact frame of the first push, shares of its speed.
        first: the first push as the scene simulates it.
        ended: [N, n], states when they have parted. lasted_s, pushes: [N], since the first touch.
    """

    gained: np.ndarray
    std: np.ndarray
    first: SceneImpacts
    ended: np.ndarray
    lasted_s: np.ndarray
    pushes: np.ndarray


@dataclass(frozen=True)
class AdaptedScene:
    """A scene with fitted parameters, a law of rigid impact beside it, and what both leave over.

    Example:
        scene = ContactScene(load_scenario(folder))
        model = adapt_scene(scene, read_scene_strikes(table, scene))
        gained = model(states)

    Args:
        values: [P], of the scenario's parameters.
        law: fitted to the same impacts, at the points and normals that the scene has.
        residuals: of the scene and of the law. weights: [2], of both; they add up to one.
        sliding: None where recordings do not say where the body came to rest.
        rejected: rows of the recorded impacts that the others contradict; nothing was fitted to them.
    """

    scene: ContactScene
    values: np.ndarray
    law: ImpactLaw
    residuals: tuple[Residual, Residual]
    weights: np.ndarray
    sliding: SlidingModel | None
    rejected: tuple[int, ...] = ()

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Change of the struck body's velocity [N, 3], in its frame before, from states in which the two just touch."""
        return self.collide(states).gained

    def collide(self, states: np.ndarray) -> Collided:
        """Follow impacts from states [N, n] in which the two just touch, push by push."""
        first = simulate(self.scene, self.values, states, PUSH_APART_S)
        ended, lasted_s, variance = first.ended.copy(), first.lasted_s.copy(), np.zeros((len(states), 3))
        pushes, going, impacts = np.zeros(len(states), int), np.arange(len(states)), first
        while len(going):
            ended[going], std = self._pushed(impacts)
            pushes[going] += impacts.touched
            # Flat on flat, the normals of all pushes are nearly one: variances simply add up.
            variance[going] += (std * (impacts.strikes.speed_m_s / first.strikes.speed_m_s[going])[:, None]) ** 2
            able = going[impacts.touched & (pushes[going] < _PUSHES_MOST)]
            again = [(row, met_again(self.scene, ended[row], self.scene.declared.apart_s)) for row in able]
            going = np.array([row for row, met in again if met is not None], int)
            if len(going) == 0:
                break
            begun = np.array([met[0] for _, met in again if met is not None])
            impacts = simulate(self.scene, self.values, begun, PUSH_APART_S, settled=True)
            lasted_s[going] += np.array([met[1] for _, met in again if met is not None]) + impacts.lasted_s
        yaw = self.scene.poses(states)[:, 2]
        change = self.scene.velocities(ended) - self.scene.velocities(states)
        gained = np.column_stack([rotated(change[:, :2], -yaw), change[:, 2]])
        return Collided(gained, np.sqrt(variance), first, ended, lasted_s, pushes)

    def _pushed(self, impacts: SceneImpacts) -> tuple[np.ndarray, np.ndarray]:
        """States [N, n] after single pushes, with what was learnt, and the deviation [N, 3] of a measurement."""
        mean, std = intervals(self.scene, self.law, self.residuals, self.weights, impacts)
        missing = from_contact(self.scene.shape, impacts.strikes, mean) - impacts.gained
        after = impacts.ended.copy()
        for row in np.flatnonzero(impacts.touched):
            yaw = impacts.yaw_rad[row]
            change = np.append(rotated(missing[row, :2], yaw), missing[row, 2])
            after[row] = self.scene.corrected(after[row], change, rotated(impacts.strikes.point_m[row], yaw))
        return after, std

    def inside(self, recorded: SceneStrikes, z: float = Z90) -> np.ndarray:
        """Find the measured components [N, 3] that lie in their intervals, 90 % wide by default."""
        found = self.collide(recorded.states)
        missed = to_contact(self.scene.shape, found.first.strikes, found.gained - recorded.gained)
        return np.abs(missed) <= z * np.hypot(found.std, self.pose_spread(recorded.states, found))

    def pose_spread(self, states: np.ndarray, found: Collided | None = None) -> np.ndarray:
        """Deviation [N, 3] that comes of recorded turns that err, as `Collided.std`: changes from one off either way.

        Flat on flat, which end touches first, and whether the other one follows, hangs on a tenth of a degree.

        Args:
            found: `collide(states)`, where it is known already.
        """
        scene, found = self.scene, self.collide(states) if found is None else found
        poses, velocities, squares = scene.poses(states), scene.velocities(states), []
        for off in (-scene.turn_std_rad, scene.turn_std_rad):
            turned = states.copy()
            for state, pose, velocity in zip(turned, poses + np.array([0, 0, off]), velocities, strict=True):
                scene.place(state[: scene.model.nq], state[scene.model.nq :], scene.struck, pose, velocity)
            gained = self(touching(scene, turned)[0])
            squares.append(to_contact(scene.shape, found.first.strikes, gained - found.gained) ** 2)
        return np.sqrt(np.mean(squares, axis=0))


def bases(scene: ContactScene, law: ImpactLaw, impacts: SceneImpacts) -> tuple[np.ndarray, np.ndarray]:
    """What the scene and the law say of single pushes, [N, 3] each, in the contact frame."""
    by_law = law(impacts.strikes, impacts.mobility)
    gained = (to_contact(scene.shape, impacts.strikes, each) for each in (impacts.gained, by_law))
    return next(gained), next(gained)


def intervals(
    scene: ContactScene,
    law: ImpactLaw,
    residuals: tuple[Residual, Residual],
    weights: np.ndarray,
    impacts: SceneImpacts,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a measurement, [N, 3], contact frame, shares of the striking speed."""
    means, stds = [], []
    for base, residual in zip(bases(scene, law, impacts), residuals, strict=True):
        mean, std = residual.predict(_seen(scene, impacts, base))
        means.append(base + mean)
        stds.append(std)
    return mixed(np.broadcast_to(weights[:, None], (2, len(means[0]))), np.array(means), np.array(stds))


def _seen(scene: ContactScene, impacts: SceneImpacts, base: np.ndarray) -> ObservedStrikes:
    """Pushes in the terms of the residual."""
    return observe(scene.shape, impacts.strikes, base, impacts.patch)
