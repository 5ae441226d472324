from rsr.learned.gnn.bodies import (
    Mesh as Mesh,
    RigidBody as RigidBody,
    RigidWorld as RigidWorld,
    box_mesh as box_mesh,
    hull_mesh as hull_mesh,
)
from rsr.learned.gnn.calibration import (
    RECORD as RECORD,
    HeldOutTrajectories as HeldOutTrajectories,
    LearningProblem as LearningProblem,
    fit_gnn as fit_gnn,
    keep_better as keep_better,
    load_gnn as load_gnn,
    of_one_length as of_one_length,
)
from rsr.learned.gnn.contact_network import ContactNetwork as ContactNetwork, State as State, rollout as rollout
from rsr.learned.gnn.evaluation import TrajectoryErrors as TrajectoryErrors, errors_of as errors_of
from rsr.learned.gnn.graph import Scenes as Scenes
from rsr.learned.gnn.nearest import nearest_of_segments as nearest_of_segments, nearest_points as nearest_points
from rsr.learned.gnn.pushes import (
    FASTEST_M_S as FASTEST_M_S,
    Pushes as Pushes,
    PushTask as PushTask,
    Rollout as Rollout,
    carry_out as carry_out,
    optimise_push as optimise_push,
    pushed as pushed,
    sample_starts as sample_starts,
)
from rsr.learned.gnn.recordings import (
    freed_of_noise as freed_of_noise,
    judged_trajectories as judged_trajectories,
    recorded_trajectories as recorded_trajectories,
)
from rsr.learned.gnn.rigid import (
    conjugate as conjugate,
    cross as cross,
    exponential as exponential,
    logarithm as logarithm,
    matrix as matrix,
    normalised as normalised,
    product as product,
    turned as turned,
)
from rsr.learned.gnn.scenario_bodies import free_bodies as free_bodies
from rsr.learned.gnn.simulator import predict as predict
from rsr.learned.gnn.storage import load_network as load_network, save_network as save_network
from rsr.learned.gnn.training import TrainingSettings as TrainingSettings, train_network as train_network
from rsr.learned.gnn.trajectories import (
    START_FRAMES as START_FRAMES,
    Trajectory as Trajectory,
    load_trajectories as load_trajectories,
    save_trajectories as save_trajectories,
)
