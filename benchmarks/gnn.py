"""A learned simulator of contact: identified, taught, judged, and used for its gradients.

    identification_improvement        Eq. (1) on unseen trajectories: 1 - identified / defaults, mean of stand-ins
    evaluations_per_minute            parameter sets that the identification tries
    position_error_mm, rotation_error_deg   after 28 frames of unseen pushes, against the teacher
    ..._fignet                        the same of the FIGNet architecture
    training_cpu_s, ..._fignet        what their trainings took; of the run that made the folder, see --network
    varied_*                          unseen boxes and prisms of other sizes and masses; shares of a body's side
    ten_cubes_*                       one cube strikes ten, after 60 frames; such a scene was never trained on
    laws_*                            a network that is told contact laws, on pushes under laws of their own each
    stand_in_<figure>_<simulator>     against 14 test trajectories of each stand-in, as recorded, mean over stand-ins:
                                      error is Eq. (1); ..._<seed> is one stand-in
    left_out_error_<percent>          Eq. (1) on trajectories left out of fine-tuning, weights that far on their way;
                                      fine_tuning_share is what was chosen by it
    from_first_frame_*                the scenario's metrics from recorded first frames: C, MJX, network
    gradient*                         of where the struck cube is after 20 frames, against central differences
    push_*                            10 gradient steps from 10 starts to each of 2 targets, carried out by the teacher
    policy_*                          a chain of three cubes; learnt by gradients, and from rewards alone
    toss_*                            real tosses of a cube that nothing was fitted to
    speed_ratio_mujoco_over_network   64 scenes of eleven cubes, 30 frames: wall time of MuJoCo, two threads, over it
    real_time_factor_*                simulated over wall time, one scene

Reality is a stand-in, simulated with contact laws that MuJoCo's parameters cannot express; without `--quick` three of
them that no method was written with. A network is taught by a teacher with usual contacts first, then that contact laws
differ. It is told the law that was identified on a stand-in (`told`), trained shortly by that teacher (`carried_over`),
and fine-tuned on the three trajectories as far as leaving out each of them allows (`fine_tuned`). `augmented` never had
a teacher: the three trajectories, turned, are all it saw. `--network DIR` keeps networks and figures in a folder: a run
that was stopped goes on there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from _common import Figure, kept, run
from _gnn_accuracy import fignet_on_teacher, laws_on_teachers, on_teacher
from _gnn_networks import identified, reality, seeds, taught
from _gnn_reality import from_first_frame, on_realities
from _gnn_tosses import tosses
from _gnn_use import gradients, policy, pushes, speed

from rsr.scenarios.two_cubes import ContactParameters

Part = Callable[[Path, bool], dict[str, Figure]]


def measure(quick: bool, network: Path | None) -> dict[str, Figure]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if network is None else network
        figures: dict[str, Figure] = {}
        for name in PARTS:
            figures |= kept(folder / "figures", name, partial(PARTS[name], folder, quick))
        return figures


def identification(folder: Path, quick: bool) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for real in map(reality, seeds(quick)):
        contact, rate = identified(folder, real, quick)
        before, after = real.judge.mean(ContactParameters()), real.judge.mean(contact)
        figures |= {f"identification_improvement_{real.seed}": 1 - after / before, "evaluations_per_minute": rate}
    improvements = [value for name, value in figures.items() if name.startswith("identification")]
    return figures | {"identification_improvement": float(np.mean(improvements))}


def _with_network(use: Callable[..., dict[str, Figure]]) -> Part:
    return lambda folder, quick: use(taught("impulse", folder, quick)[0], quick)


PARTS: dict[str, Part] = {
    "identification": identification,
    "teacher": on_teacher,
    "laws": laws_on_teachers,
    "stand_in": on_realities,
    "gradients": _with_network(gradients),
    "pushes": _with_network(pushes),
    "policy": _with_network(policy),
    "speed": _with_network(speed),
    "tosses": lambda folder, quick: tosses(folder / "tosses", quick),
    "fignet": fignet_on_teacher,
    "mjx": from_first_frame,
}


if __name__ == "__main__":
    run(measure, __doc__, network=None)
