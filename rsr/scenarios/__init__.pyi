from rsr.scenarios.capabilities import (
    SIMULATOR_OF as SIMULATOR_OF,
    cells as cells,
    check_method as check_method,
    check_simulated as check_simulated,
    headings as headings,
    lacking as lacking,
)
from rsr.scenarios.channels.differences import difference as difference, residuals as residuals, rms as rms
from rsr.scenarios.channels.observed import Observed as Observed, RecordedVelocity as RecordedVelocity
from rsr.scenarios.channels.recorded import joint_ranges as joint_ranges, target_of as target_of
from rsr.scenarios.channels.rolling import start_spread as start_spread
from rsr.scenarios.channels.sensor_errors import SensorScale as SensorScale
from rsr.scenarios.channels.sensors import (
    bias_free as bias_free,
    bias_std as bias_std,
    biased_coordinates as biased_coordinates,
    on_time as on_time,
    readings as readings,
    rows_of as rows_of,
    scales as scales,
    start_states as start_states,
    unscaled as unscaled,
    without_biases as without_biases,
)
from rsr.scenarios.channels.smoothing import one_sided_rows as one_sided_rows
from rsr.scenarios.channels.starts import Start as Start, starts_of as starts_of
from rsr.scenarios.collision import CollisionPair as CollisionPair, SceneCollision as SceneCollision
from rsr.scenarios.drafting import draft_scenario as draft_scenario
from rsr.scenarios.effects.applied import Applied as Applied, Effects as Effects
from rsr.scenarios.effects.command_laws import command_weights as command_weights
from rsr.scenarios.finding import (
    built_in_scenarios as built_in_scenarios,
    built_in_tasks as built_in_tasks,
    is_built_in as is_built_in,
    scenario_file as scenario_file,
    scenario_files as scenario_files,
)
from rsr.scenarios.loading import load_scenario as load_scenario, scenario_of as scenario_of
from rsr.scenarios.metrics import ErrorMetric as ErrorMetric, Evaluation as Evaluation, StartName as StartName
from rsr.scenarios.models.activations import (
    settled as settled,
    shares_kept as shares_kept,
    steady_activations as steady_activations,
    time_constants_s as time_constants_s,
)
from rsr.scenarios.models.guarded_mjcf import files_of as files_of
from rsr.scenarios.models.menagerie import PREFIX as PREFIX, menagerie_file as menagerie_file
from rsr.scenarios.models.mjcf import write_mjcf as write_mjcf
from rsr.scenarios.models.urdf_writing import write_urdf as write_urdf
from rsr.scenarios.motion.braking import PAST as PAST, RATE as RATE
from rsr.scenarios.motion.commands import (
    command_kinds as command_kinds,
    command_range as command_range,
    limits_of as limits_of,
    position_joints as position_joints,
    reach_of as reach_of,
    readings_at_rest as readings_at_rest,
    rest_command as rest_command,
    rest_commands as rest_commands,
)
from rsr.scenarios.motion.kinematics import forward_kinematics as forward_kinematics
from rsr.scenarios.motion.limits import (
    Cut as Cut,
    MotionLimits as MotionLimits,
    SiteLimit as SiteLimit,
    growth_bounds as growth_bounds,
    narrowed as narrowed,
    shortened as shortened,
)
from rsr.scenarios.notes import notes_of as notes_of
from rsr.scenarios.parameters.bindings import Binding as Binding, element_name as element_name
from rsr.scenarios.parameters.fields import Changes as Changes
from rsr.scenarios.parameters.space import Parameter as Parameter, ParameterSpace as ParameterSpace
from rsr.scenarios.python_beside import python_files as python_files
from rsr.scenarios.scenario import Scenario as Scenario
from rsr.scenarios.structure import Word as Word, candidates as candidates, structured as structured
from rsr.scenarios.tasks.of_scenario import has_task as has_task, task_of as task_of
from rsr.scenarios.tasks.probes import Drive as Drive, Probes as Probes
from rsr.scenarios.tasks.task import (
    HELD as HELD,
    OBSERVATION_LIMIT as OBSERVATION_LIMIT,
    TIME as TIME,
    VELOCITY as VELOCITY,
    AbsoluteAction as AbsoluteAction,
    ActionHead as ActionHead,
    Channels as Channels,
    DisplacementAction as DisplacementAction,
    ObservationTerm as ObservationTerm,
    Plane as Plane,
    ProgressFigure as ProgressFigure,
    Starts as Starts,
    StateColumns as StateColumns,
    Task as Task,
    Value as Value,
)
from rsr.scenarios.yaml_keys import check_fields as check_fields
