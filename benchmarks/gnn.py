"""A learned simulator of contact, as a campaign of the pipeline gnn makes it: judged, and used for its gradients.

    <metric>_nominal, _teacher, _network, _fine_tuned   the scenario's metrics on 14 unseen pushes, mean of stand-ins;
                                      ..._<seed> is one stand-in
    chosen_<seed>, cpu_s              which network was kept, and what data, training and fine-tuning took
    <metric>_network_fignet ...       the same of the FIGNet architecture, on the same trajectories
    <metric>_augmented                a network without a teacher: three recordings under many headings, as many steps
    <metric>_mjx                      MJX with the teacher's numbers
    <metric>_start_as_recorded, _start_fitted   the teacher, from starts of either kind
    gradient*                         of where the struck cube is after 20 frames, against central differences
    push_*                            10 gradient steps from 10 starts to each of 2 targets, carried out by MuJoCo
    policy_*                          a chain of three cubes; learnt by gradients, and from rewards alone
    toss_*                            real tosses of a cube that nothing was fitted to
    speed_ratio_mujoco_over_network   64 scenes of two cubes, 30 frames: wall time of MuJoCo, two threads, over it
    real_time_factor                  simulated over wall time, one scene

Reality is a stand-in, simulated with contact laws that MuJoCo's parameters cannot express; without `--quick` three of
them that no method was written with. `--network DIR` keeps networks and figures in a folder: a run that was stopped
goes on there. `--quick` trains nothing that is worth judging; its figures show that everything runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from _common import Figure, kept, run
from _gnn_stand_ins import by_augmentation, by_fignet, by_mjx, on_stand_ins, starts
from _gnn_tosses import tosses
from _gnn_use import gradients, policy, pushes, speed

PARTS: dict[str, Callable[[Path, bool], dict[str, Figure]]] = {
    "stand_ins": on_stand_ins,
    "starts": starts,
    "gradients": gradients,
    "pushes": pushes,
    "policy": policy,
    "speed": speed,
    "tosses": lambda folder, quick: tosses(folder / "tosses", quick),
    "augmentation": by_augmentation,
    "fignet": by_fignet,
    "mjx": by_mjx,
}


def measure(quick: bool, network: Path | None) -> dict[str, Figure]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if network is None else network
        figures: dict[str, Figure] = {}
        for name, part in PARTS.items():
            figures |= kept(folder / "figures", name, partial(part, folder, quick))
        return figures


if __name__ == "__main__":
    run(measure, __doc__, network=None)
