"""A learned simulator of rigid contact, taught by an identified MuJoCo and a few recordings, differentiable throughout.

    found = identify(from_sessions(scenario, sessions))                  # contacts of MuJoCo, the teacher
    folder = generate_trajectories(found.contact, folder, 3000)          # data scaling
    network = train_network(load_scaled(folder), TrainingSettings())
    network = fine_tune_as_helps(network, recorded).network              # on the few recorded ones
    poses = rollout(network, world, first_two_poses, frames)             # differentiable
    errors = judge(lambda given: predict(network, given), trajectories)

May import simulators, scenarios and sessions; what hides in a stand-in for reality is closed to it.
"""

from rsr.gnn.augmentation import augment
from rsr.gnn.bodies import Body, Mesh, MeshError, World, box_mesh, hull_mesh, uniform_body
from rsr.gnn.bodies_files import read_mesh
from rsr.gnn.contract import ContactNetwork, rollout
from rsr.gnn.evaluation import TrajectoryErrors, errors_of, judge, standing_still
from rsr.gnn.fine_tuning import FineTuned, fine_tune_as_helps
from rsr.gnn.identification import Identified, Judge, identify
from rsr.gnn.laws import Laws
from rsr.gnn.optimisation import PushTask, optimise_push, sample_starts
from rsr.gnn.recorded import from_sessions
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.gnn.simulator import GnnSimulator, predict, predict_in_mujoco
from rsr.gnn.storage import load_network, new_network, save_network
from rsr.gnn.teacher import teacher_rollout
from rsr.gnn.training import TrainingSettings, fine_tune, train_network
from rsr.gnn.trajectories import Trajectory, load_trajectories, save_trajectories
from rsr.gnn.tuning import GnnFit, GnnSettings, Lesson, fit_gnn, load_gnn

__all__ = [
    "Body",
    "ContactNetwork",
    "FineTuned",
    "GnnFit",
    "GnnSettings",
    "GnnSimulator",
    "Identified",
    "Judge",
    "Laws",
    "Lesson",
    "Mesh",
    "MeshError",
    "PushTask",
    "Scaling",
    "TrainingSettings",
    "Trajectory",
    "TrajectoryErrors",
    "World",
    "augment",
    "box_mesh",
    "errors_of",
    "fine_tune",
    "fine_tune_as_helps",
    "fit_gnn",
    "from_sessions",
    "generate_trajectories",
    "hull_mesh",
    "identify",
    "judge",
    "load_gnn",
    "load_network",
    "load_scaled",
    "load_trajectories",
    "new_network",
    "optimise_push",
    "predict",
    "predict_in_mujoco",
    "read_mesh",
    "rollout",
    "sample_starts",
    "save_network",
    "save_trajectories",
    "standing_still",
    "teacher_rollout",
    "train_network",
    "uniform_body",
]
