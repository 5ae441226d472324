"""The network `impulse`: at every contact it predicts an impulse, applied to both bodies with opposite signs.

What is known is built in: gravity, momentum, masses and inertias, and integration on the rotation group. What is
learned is how large the impulses are. Inputs and outputs of a contact are numbers along its normal and along its
sliding direction, so turning a scene turns its motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rsr.learned.gnn.contact_network import ContactNetwork, State
from rsr.learned.gnn.detection import Contacts, detect
from rsr.learned.gnn.graph import Scenes
from rsr.learned.gnn.rigid import cross, matrix, turned

# Features of a contact that no impulse of the frame changes; the others do.
_UNCHANGED = 9
_FEATURES = _UNCHANGED + 4
_OUTPUTS = 4
# Under the root of a sliding speed, m2/s2.
_TINY = 1e-8


@dataclass(frozen=True)
class ImpulseSettings:
    """Size of the network, and what it was made for.

    Args:
        dt_s: time of a frame.
        width: of the hidden states.
        rounds: how often the impulses of a frame are corrected, each round by weights of its own.
        margin_m: contacts farther apart do not exist; should exceed what a body moves in a frame.
    """

    dt_s: float = 1 / 60
    width: int = 48
    rounds: int = 4
    margin_m: float = 0.035


class ImpulseNetwork(ContactNetwork):
    """Equal and opposite impulses in a few rounds of message passing between contacts and bodies."""

    kind = "impulse"

    def __init__(self, settings: ImpulseSettings | None = None) -> None:
        super().__init__()
        self.settings: ImpulseSettings = settings or ImpulseSettings()
        self.rounds = nn.ModuleList(_Round(self.settings.width) for _ in range(self.settings.rounds))

    def forward(self, scenes: Scenes, state: State, forces_n: Tensor | None = None) -> State:
        dt_s, margin_m = self.settings.dt_s, self.settings.margin_m
        turns = matrix(state.orientations)
        contacts = detect(scenes, state.positions_m, turns, margin_m)
        frame = _Frame.of(scenes, contacts, turns, margin_m)
        # Symplectic Euler: velocities first, by gravity and given forces, then contacts, then poses.
        pull = torch.zeros_like(state.velocities_m_s)
        pull[:, 2] = -scenes.gravity_m_s2
        if forces_n is not None:
            pull = pull + forces_n / scenes.masses_kg[:, None]
        velocities, spins = state.velocities_m_s + dt_s * pull, state.spins_rad_s
        fixed = frame.fixed_features(state, dt_s)
        normal = torch.zeros_like(contacts.gaps_m)
        at_contact = fixed.new_zeros(len(normal), self.settings.width)
        at_body = fixed.new_zeros(len(turns) + 1, self.settings.width)
        for index, round_ in enumerate(self.rounds):
            sliding = frame.sliding(velocities, spins)
            features = torch.cat([fixed, frame.changing_features(sliding, normal, dt_s)], dim=1)
            outputs, at_contact = round_(features, at_contact, at_body, contacts)  # pyright: ignore
            pushed, impulses = frame.impulses(outputs, sliding, dt_s)
            normal = normal + pushed
            velocities, spins = frame.struck(velocities, spins, impulses)
            if index + 1 < len(self.rounds):
                at_body = round_.passed_on(at_contact, at_body, frame)  # pyright: ignore
        return state.moved(velocities, spins, dt_s)


class _Round(nn.Module):
    """One correction: contacts read the bodies they join, then bodies read their contacts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.contact = nn.Sequential(
            *(nn.Linear(_FEATURES + 3 * width, width), nn.SiLU()),
            *(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width + _OUTPUTS)),
        )
        self.body = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width))

    def forward(
        self, features: Tensor, at_contact: Tensor, at_body: Tensor, contacts: Contacts
    ) -> tuple[Tensor, Tensor]:
        joined = [features, at_contact, at_body[contacts.first], at_body[contacts.second]]
        outputs = self.contact(torch.cat(joined, dim=1))
        return outputs[:, :_OUTPUTS], at_contact + outputs[:, _OUTPUTS:]

    def passed_on(self, at_contact: Tensor, at_body: Tensor, frame: _Frame) -> Tensor:
        messages = at_contact * frame.shares[:, None]
        received = frame.summed(messages, messages)
        after = at_body + self.body(torch.cat([at_body, received, frame.crowds[:, None] / 8], dim=1))
        # The floor cannot move, so it carries nothing: or else far bodies would hear each other through it.
        return torch.cat([after[:-1], torch.zeros_like(after[-1:])])


@dataclass(frozen=True)
class _Frame:
    """Contacts of one frame with all that the rounds share. Tables over bodies have a last row for the floor."""

    contacts: Contacts
    inverse_masses: Tensor
    """[N + 1], zero for the floor."""
    inverse_inertias: Tensor
    """[N + 1, 3, 3], in the world's frame."""
    mask: Tensor
    """[C], 1 near, falling to 0 at the margin, so that contacts come and go smoothly."""
    crowds: Tensor
    """[N + 1], how many contacts a body has."""
    shares: Tensor
    """[C], the mask over the crowd of the less crowded body."""
    mobility: Tensor
    """[C], 1/kg: change of the relative normal velocity by a unit of impulse."""
    margin_m: float

    @classmethod
    def of(cls, scenes: Scenes, contacts: Contacts, turns: Tensor, margin_m: float) -> _Frame:
        inverse_masses = torch.cat([1 / scenes.masses_kg, scenes.masses_kg.new_zeros(1)])
        # Inverse inertia in the world's frame: R I^-1 R^T.
        world = turns @ scenes.inverse_inertias @ turns.mT
        inverse_inertias = torch.cat([world, world.new_zeros(1, 3, 3)])
        # 1 up to three quarters of the margin, then linearly to 0.
        mask = ((margin_m - contacts.gaps_m) / (0.25 * margin_m)).clamp(0, 1)
        rows = len(inverse_masses)
        # Redundant contacts share a load: without their number impulses would grow with the mesh's vertices.
        crowds = mask.new_zeros(rows).index_add(0, contacts.first, mask).index_add(0, contacts.second, mask)
        alone = 1 / crowds.clamp_min(1.0)
        on_body = (contacts.second < rows - 1).to(mask)
        shares = mask * torch.maximum(alone[contacts.first], alone[contacts.second] * on_body)
        # 1 / effective mass along the normal: n^T (1/m_1 + 1/m_2) n + sum (r x n)^T I^-1 (r x n).
        mobility = inverse_masses[contacts.first] + inverse_masses[contacts.second]
        for body, arm in ((contacts.first, contacts.arms_first_m), (contacts.second, contacts.arms_second_m)):
            lever = cross(arm, contacts.normals)
            mobility = mobility + (lever * turned(inverse_inertias[body], lever)).sum(1)
        return cls(contacts, inverse_masses, inverse_inertias, mask, crowds, shares, mobility, margin_m)

    def summed(self, for_first: Tensor, for_second: Tensor) -> Tensor:
        """Add values [C, H] up over the bodies of their contacts, [N + 1, H]."""
        total = for_first.new_zeros(len(self.inverse_masses), for_first.shape[1])
        return total.index_add(0, self.contacts.first, for_first).index_add(0, self.contacts.second, for_second)

    def sliding(self, velocities: Tensor, spins: Tensor) -> _Sliding:
        """Relative velocities of the contacts' points."""
        still = velocities.new_zeros(1, 3)
        velocities, spins = torch.cat([velocities, still]), torch.cat([spins, still])
        point_velocities = [
            # v + w x r, at the contact's point of either body.
            velocities[body] + cross(spins[body], arm)
            for body, arm in (
                (self.contacts.first, self.contacts.arms_first_m),
                (self.contacts.second, self.contacts.arms_second_m),
            )
        ]
        relative = point_velocities[0] - point_velocities[1]
        along = (relative * self.contacts.normals).sum(1)
        return _Sliding.of(relative, along, self.contacts.normals)

    def fixed_features(self, state: State, dt_s: float) -> Tensor:
        """Features [C, 9] that no impulse of this frame changes."""
        contacts, rows = self.contacts, len(self.inverse_masses)
        now = self.sliding(state.velocities_m_s, state.spins_rad_s)
        before = self.sliding(state.previous_velocities_m_s, state.previous_spins_rad_s)
        change = _Sliding.of(now.relative - before.relative, now.along - before.along, contacts.normals)
        bare = self.inverse_masses[contacts.first] + self.inverse_masses[contacts.second]
        columns = [
            *(_squashed(contacts.gaps_m / dt_s), self.mask, (contacts.second == rows - 1).to(self.mask)),
            *(1 / self.crowds.clamp_min(1.0)[contacts.first], self.mobility / bare / 5),
            *(_squashed(before.along), _squashed(before.speed), _squashed(change.along), _squashed(change.speed)),
        ]
        return torch.stack(columns, dim=1)

    def changing_features(self, sliding: _Sliding, normal: Tensor, dt_s: float) -> Tensor:
        """Features [C, 4] of where the impulses have brought the bodies so far."""
        closing = sliding.along + self.contacts.gaps_m / dt_s
        columns = [sliding.along, sliding.speed, closing, normal * self.mobility]
        return torch.stack([_squashed(column) for column in columns], dim=1)

    def impulses(self, outputs: Tensor, sliding: _Sliding, dt_s: float) -> tuple[Tensor, Tensor]:
        """Normal impulses [C] and whole impulses [C, 3], N s, from what a round says [C, 4].

        The first two outputs are free corrections along the normal and along the sliding. The other two are shares of
        what would stop the approach, and of a friction that never exceeds what would stop the sliding.
        """
        free, drag, grip, stop = outputs.unbind(1)
        # A gap g may close at g / dt without touching in this frame; what is faster has to be stopped.
        approach = torch.relu(-(sliding.along + self.contacts.gaps_m / dt_s))
        normal = self.mask * (0.1 * free + approach * torch.sigmoid(stop + 1)) / self.mobility
        # Coulomb's cone with a learned coefficient up to 0.6; the fraction below stops sliding and never turns it back.
        bound = 0.6 * torch.sigmoid(grip) * torch.relu(normal)
        friction = bound * sliding.speed / (sliding.speed + bound * self.mobility + 0.002)
        friction = friction + self.mask * drag * 0.02 / self.mobility * sliding.speed / (sliding.speed + 0.02)
        across = sliding.across / sliding.speed[:, None]
        return normal, normal[:, None] * self.contacts.normals - friction[:, None] * across

    def struck(self, velocities: Tensor, spins: Tensor, impulses: Tensor) -> tuple[Tensor, Tensor]:
        """Velocities and spins [N, 3] after impulses [C, 3] on the first bodies, and their opposites on the second."""
        contacts = self.contacts
        # Newton's third law: momentum is kept whatever the network says.
        kicks = self.summed(impulses, -impulses)
        twists = self.summed(cross(contacts.arms_first_m, impulses), -cross(contacts.arms_second_m, impulses))
        return (
            velocities + (kicks * self.inverse_masses[:, None])[:-1],
            spins + turned(self.inverse_inertias, twists)[:-1],
        )


@dataclass(frozen=True)
class _Sliding:
    """Relative velocities at contacts, along the normal and across it."""

    relative: Tensor
    along: Tensor
    across: Tensor
    speed: Tensor

    @classmethod
    def of(cls, relative: Tensor, along: Tensor, normals: Tensor) -> _Sliding:
        across = relative - along[:, None] * normals
        return cls(relative, along, across, (across.square().sum(1) + _TINY).sqrt())


def _squashed(values: Tensor) -> Tensor:
    """Bring velocities to the order of one: linear below 0.2 m/s, logarithmic above."""
    return torch.asinh(values * 5)
