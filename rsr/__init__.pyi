from rsr import (
    calibration as calibration,
    common as common,
    config as config,
    environments as environments,
    infogap as infogap,
    learned as learned,
    pipelines as pipelines,
    planning as planning,
    policies as policies,
    reports as reports,
    scenarios as scenarios,
    sessions as sessions,
    simulators as simulators,
)
from rsr.api.arrays import session_from_arrays as session_from_arrays
from rsr.api.calls import calibrate as calibrate, train as train
from rsr.api.evaluating import HorizonErrors as HorizonErrors, evaluate as evaluate
from rsr.api.fit import Fit as Fit
from rsr.calibration.model_export import SavedModel as SavedModel
from rsr.common.errors import RsrError as RsrError
from rsr.policies import Policy as Policy
from rsr.scenarios import Scenario as Scenario, built_in_scenarios as built_in_scenarios, load_scenario as load_scenario
from rsr.scenarios.channels.declared_channels import (
    actuators as actuators,
    free_joint_position as free_joint_position,
    free_joint_quaternion as free_joint_quaternion,
    joint_velocities as joint_velocities,
    joints as joints,
    sensor as sensor,
)
from rsr.scenarios.effects.effect_laws import JointForces as JointForces
from rsr.scenarios.motion.kinematics import forward_kinematics as forward_kinematics
from rsr.scenarios.parameters.declared_parameters import (
    absolute as absolute,
    delay as delay,
    scale as scale,
    sensor_bias as sensor_bias,
    sensor_delay as sensor_delay,
    sensor_gain as sensor_gain,
)
from rsr.scenarios.tasks.task import (
    AbsoluteAction as AbsoluteAction,
    DisplacementAction as DisplacementAction,
    ObservationTerm as ObservationTerm,
    ProgressFigure as ProgressFigure,
    Starts as Starts,
    Task as Task,
)
from rsr.sessions import Session as Session, read_session as read_session, write_session as write_session
from rsr.workspace import Workspace as Workspace
