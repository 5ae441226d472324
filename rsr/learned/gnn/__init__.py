"""A learned simulator of rigid contact, taught by an identified MuJoCo and a few recordings, differentiable throughout.

    teacher = calibrator(TuneConfig(method="cmaes")).fit(scenario, sessions, prior, seed, advance)
    problem = LearningProblem(scenario, sessions, teacher.vector(), teacher.evidence.fitted, GnnSettings(), seed)
    fit = fit_gnn(problem, folder, advance)                       # data scaling, training, fine-tuning where it helps
    network = load_gnn(scenario, folder).network
    poses = rollout(network, world, first_two_poses, frames)      # differentiable

`rsr calibrate --method gnn` and a campaign of the pipeline gnn do the first three. May import simulators, scenarios
and sessions; what hides in a stand-in for reality is closed to it.
"""

from rsr.learned.gnn.bodies import Mesh, MeshError, RigidBody, RigidWorld, box_mesh, hull_mesh
from rsr.learned.gnn.calibration import GnnFit, GnnSettings, LearningProblem, fit_gnn, load_gnn
from rsr.learned.gnn.contact_network import ContactNetwork, rollout
from rsr.learned.gnn.evaluation import TrajectoryErrors, errors_of, judge
from rsr.learned.gnn.free_bodies import FreeBodies, free_bodies
from rsr.learned.gnn.pushes import PushTask, optimise_push, sample_starts
from rsr.learned.gnn.recordings import freed_of_noise, from_sessions
from rsr.learned.gnn.scaling import varied_trajectories
from rsr.learned.gnn.simulator import GnnSimulator, predict
from rsr.learned.gnn.storage import load_network, new_network, save_network
from rsr.learned.gnn.training import TrainingSettings, fine_tune, train_network
from rsr.learned.gnn.trajectories import Trajectory, load_trajectories, save_trajectories

__all__ = [
    "ContactNetwork",
    "FreeBodies",
    "GnnFit",
    "GnnSettings",
    "GnnSimulator",
    "LearningProblem",
    "Mesh",
    "MeshError",
    "PushTask",
    "RigidBody",
    "RigidWorld",
    "TrainingSettings",
    "Trajectory",
    "TrajectoryErrors",
    "box_mesh",
    "errors_of",
    "fine_tune",
    "fit_gnn",
    "free_bodies",
    "freed_of_noise",
    "from_sessions",
    "hull_mesh",
    "judge",
    "load_gnn",
    "load_network",
    "load_trajectories",
    "new_network",
    "optimise_push",
    "predict",
    "rollout",
    "sample_starts",
    "save_network",
    "save_trajectories",
    "train_network",
    "varied_trajectories",
]
