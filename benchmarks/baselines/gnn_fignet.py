"""The network `fignet`: face interaction graphs (Allen et al. 2023), as the few-shot paper uses them.

Every body is its mesh: nodes at the vertices and one for the whole, which pass messages along the mesh, between
vertices and whole, and between faces that come near. The network says how each vertex accelerates; Verlet moves the
vertices, and shape matching makes a rigid body of them again. Nothing of mechanics is built in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rsr.common import derive_seed
from rsr.learned.gnn import ContactNetwork, Scenes, State, logarithm, matrix

from .gnn_faces import FaceDetector, face_pairs
from .gnn_fignet_graph import FEATURES, FaceGraph, graph_of
from .gnn_shape_matching import matched, quaternion


@dataclass(frozen=True)
class FigSettings:
    """Size of the network, and what it was made for.

    Args:
        dt_s: time of a frame.
        width: of the hidden states.
        layers: rounds of message passing.
        margin_m: faces farther apart pass no messages; should exceed what a body moves in a frame.
        acceleration_m: vertices accelerate by this much a frame squared where the network says one.
    """

    dt_s: float = 1 / 60
    width: int = 64
    layers: int = 4
    margin_m: float = 0.03
    acceleration_m: float = 0.004


class FigNetwork(ContactNetwork):
    """Accelerations of mesh nodes by message passing; eqs. (2) to (4) of the few-shot paper."""

    kind = "fignet"
    equivariant = False

    def __init__(self, settings: FigSettings | None = None, detector: FaceDetector = face_pairs) -> None:
        super().__init__()
        self.settings: FigSettings = settings or FigSettings()
        self.detector = detector
        width = self.settings.width
        self.encoders = nn.ModuleDict({name: _layers(size, width, width) for name, size in FEATURES.items()})
        self.encoders["face_face"] = _layers(FEATURES["face_face"], width, 3 * width)
        self.passes = nn.ModuleList(_Pass(width) for _ in range(self.settings.layers))
        self.decoder = _layers(width, width, 3, normalised=False)

    def forward(self, scenes: Scenes, state: State, forces_n: Tensor | None = None) -> State:
        dt_s = self.settings.dt_s
        turns = matrix(state.orientations)
        pairs = self.detector(scenes, state.positions_m, turns, self.settings.margin_m)
        graph = graph_of(scenes, state, turns, pairs, self.settings.margin_m, dt_s)
        # Encode, pass messages, decode; every part has the width H, faces 3 H for their three corners.
        values = {name: self.encoders[name](features) for name, features in graph.features.items()}
        for layer in self.passes:
            values = layer(values, graph)
        accelerations = self.decoder(values["mesh"])[: len(graph.now_m)] * self.settings.acceleration_m
        # Verlet: p(t+1) = a + 2 p(t) - p(t-1); the paper's line above eq. (5) has lost the minus.
        after = accelerations + 2 * graph.now_m - graph.before_m
        if forces_n is not None:
            # A force moves every vertex of its body by F dt^2 / m.
            after = after + (dt_s**2 * forces_n / scenes.masses_kg[:, None])[graph.body_of_node]
        return self._matched(scenes, state, turns, graph.padded(scenes, after))

    def _matched(self, scenes: Scenes, state: State, turns: Tensor, points: Tensor) -> State:
        """The state in which every body lies as its predicted vertices [N, V, 3] do."""
        dt_s = self.settings.dt_s
        rotation, places = matched(scenes.vertices_m, points, scenes.real.to(points.dtype))
        # Velocities, not poses, are the state: the rotation of this frame over its time.
        turn = logarithm(quaternion(rotation @ turns.mT))
        return state.moved((places - state.positions_m) / dt_s, turn / dt_s, dt_s)


class _Pass(nn.Module):
    """One round: edges read their nodes, eq. (2), and nodes their edges, eq. (3)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edges = nn.ModuleDict(
            {
                "mesh_mesh": _Edge(width, 1),
                "mesh_object": _Edge(width, 1),
                "object_mesh": _Edge(width, 1),
                "face_face": _Edge(width, 3),
            }
        )
        self.mesh = _layers(4 * width, width, width)
        self.object = _layers(2 * width, width, width)

    def forward(self, values: dict[str, Tensor], graph: FaceGraph) -> dict[str, Tensor]:
        nodes = {"mesh": values["mesh"], "object": values["object"]}
        messages = {}
        for name, edge in self.edges.items():
            sender, receiver = _ENDS[name]
            messages[name] = edge(values[name], nodes[sender], nodes[receiver], *graph.edges[name])
        mesh, whole = nodes["mesh"], nodes["object"]
        to_mesh = [
            _summed(messages[name], graph.edges[name][1], len(mesh))
            for name in ("mesh_mesh", "object_mesh", "face_face")
        ]
        to_object = _summed(messages["mesh_object"], graph.edges["mesh_object"][1], len(whole))
        return {name: values[name] + message for name, message in messages.items()} | {
            "mesh": mesh + self.mesh(torch.cat([mesh, *to_mesh], dim=1)),
            "object": whole + self.object(torch.cat([whole, to_object], dim=1)),
        }


_ENDS = {
    "mesh_mesh": ("mesh", "mesh"),
    "mesh_object": ("mesh", "object"),
    "object_mesh": ("object", "mesh"),
    "face_face": ("mesh", "mesh"),
}


class _Edge(nn.Module):
    """Update of edges between `corners` nodes on either side. Nodes are projected before they are gathered."""

    def __init__(self, width: int, corners: int) -> None:
        super().__init__()
        self.own = nn.Linear(corners * width, width)
        self.senders = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(corners))
        self.receivers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(corners))
        self.rest = nn.Sequential(
            *(nn.ReLU(), nn.Linear(width, width), nn.ReLU()),
            *(nn.Linear(width, corners * width), nn.LayerNorm(corners * width)),
        )

    def forward(self, values: Tensor, sent: Tensor, received: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
        mixed = self.own(values)
        for index, layer in enumerate(self.senders):
            # A linear layer of a concatenation is a sum of layers, and nodes are fewer than edges.
            mixed = mixed + layer(sent)[senders[:, index]]
        for index, layer in enumerate(self.receivers):
            mixed = mixed + layer(received)[receivers[:, index]]
        return self.rest(mixed)


def new_fignet(seed: int = 0, **settings: float) -> FigNetwork:
    """Make an untrained network; equal seeds give equal weights. Settings are those of `FigSettings`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "gnn", FigNetwork.kind))
        return FigNetwork(FigSettings(**settings))


def _summed(messages: Tensor, receivers: Tensor, count: int) -> Tensor:
    """Messages [E, k * H] added up at their receivers [E, k]: [count, H]."""
    width = messages.shape[1] // receivers.shape[1]
    return messages.new_zeros(count, width).index_add(0, receivers.reshape(-1), messages.reshape(-1, width))


def _layers(inputs: int, width: int, outputs: int, normalised: bool = True) -> nn.Sequential:
    layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)]
    return nn.Sequential(*layers, *([nn.LayerNorm(outputs)] if normalised else []))
