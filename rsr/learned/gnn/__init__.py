"""A learned simulator of rigid contact, taught by an identified MuJoCo and a few recordings, differentiable throughout.

    teacher = calibrator(TuneConfig(method="cmaes")).fit(scenario, sessions, prior, seed, advance)
    problem = LearningProblem(scenario, sessions, teacher.vector(), teacher.evidence.fitted, GnnSettings(), seed)
    fit = fit_gnn(problem, folder, advance)                       # data scaling, training, fine-tuning where it helps
    network = load_gnn(scenario, folder).network
    poses = rollout(network, world, first_two_poses, frames)      # differentiable

`rsr calibrate --method gnn` and a campaign of the pipeline gnn do the first three. May import simulators, scenarios
and sessions; what hides in a stand-in for reality is closed to it.
"""

from rsr.learned.gnn.calibration import GnnSettings, LearningProblem, fit_gnn, load_gnn
from rsr.learned.gnn.contact_network import rollout
from rsr.learned.gnn.free_bodies import free_bodies
from rsr.learned.gnn.recordings import freed_of_noise
from rsr.learned.gnn.simulator import predict
from rsr.learned.gnn.storage import load_network, save_network
from rsr.learned.gnn.training import train_network
from rsr.learned.gnn.trajectories import Trajectory, load_trajectories, save_trajectories

__all__ = [
    "GnnSettings",
    "LearningProblem",
    "Trajectory",
    "fit_gnn",
    "free_bodies",
    "freed_of_noise",
    "load_gnn",
    "load_network",
    "load_trajectories",
    "predict",
    "rollout",
    "save_network",
    "save_trajectories",
    "train_network",
]
