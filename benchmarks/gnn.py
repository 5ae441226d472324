"""A learned simulator of contact: identified, taught, judged, and used for its gradients.

    identification_improvement        Eq. (1) on unseen trajectories: 1 - identified / defaults, mean of stand-ins
    evaluations_per_minute            parameter sets that the identification tries
    position_error_mm, rotation_error_deg   after 28 frames of unseen pushes, against the teacher
    ..._fignet                        the same of the FIGNet architecture, trained for about as long
    training_cpu_s_<network>          what the training took; of the run that made the folder, see --network
    varied_*                          unseen boxes and prisms of other sizes and masses; shares of a body's side
    ten_cubes_*                       one cube strikes ten, after 60 frames; such a scene was never trained on
    stand_in_<figure>_<simulator>     against the stand-in's 14 test trajectories, as recorded: error is Eq. (1)
    gradient*                         of where the struck cube is after 20 frames, against central differences
    push_*                            10 gradient steps from 10 starts to each of 5 targets, carried out by the teacher
    policy_*                          a chain of three cubes; learnt by gradients, and from rewards alone
    toss_*                            real tosses of a cube that nothing was fitted to
    speed_ratio_mujoco_over_network   64 scenes of eleven cubes, 60 frames: wall time of MuJoCo, two threads, over it
    real_time_factor_*                simulated over wall time, one scene

Reality is a stand-in, simulated with contact laws that MuJoCo's parameters cannot express. Without `--quick` it is one
that no method was written with. `--network DIR` keeps the networks in a folder; later runs of the same kind read them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from _common import Figure, run
from _gnn_accuracy import on_reality, on_teacher
from _gnn_networks import identified, reality, seeds, taught
from _gnn_tosses import tosses
from _gnn_use import gradients, policy, pushes, speed

from rsr.scenarios.two_cubes import ContactParameters


def measure(quick: bool, network: Path | None) -> dict[str, Figure]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        return _measured(Path(scratch) if network is None else network, quick)


def _measured(folder: Path, quick: bool) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    realities = [reality(seed) for seed in seeds(quick)]
    contacts = []
    for real in realities:
        found, rate = identified(real, quick)
        contacts.append(found.contact)
        before, after = real.judge.mean(ContactParameters()), real.judge.mean(found.contact)
        figures |= {f"identification_improvement_{real.seed}": 1 - after / before, "evaluations_per_minute": rate}
    improvements = [figures[f"identification_improvement_{real.seed}"] for real in realities]
    figures["identification_improvement"] = float(np.mean(improvements))
    networks = taught(folder, contacts[0], realities[0], quick)
    figures |= on_teacher(networks, folder, quick) | on_reality(networks, realities[0])
    figures |= gradients(networks.impulse, quick) | pushes(networks, quick) | policy(networks, quick)
    return figures | tosses(folder / "tosses", quick) | speed(networks, quick)


if __name__ == "__main__":
    run(measure, __doc__, network=None)
