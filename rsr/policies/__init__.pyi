from rsr.policies.export import export_policy as export_policy
from rsr.policies.policy import Normaliser as Normaliser, OnnxPolicy as OnnxPolicy, Policy as Policy
from rsr.policies.policy_contract import (
    RobotInterface as RobotInterface,
    check_contract as check_contract,
    check_task as check_task,
    command_channel as command_channel,
    scenario_body as scenario_body,
    task_contract as task_contract,
)
from rsr.policies.ppo import PPOSettings as PPOSettings
from rsr.policies.rollouts import (
    Rollouts as Rollouts,
    recorded as recorded,
    run as run,
    starts_of as starts_of,
    visited as visited,
    visits as visits,
    wilson_interval as wilson_interval,
    with_velocities as with_velocities,
)
from rsr.policies.training import (
    load_state as load_state,
    make_learner as make_learner,
    settings_from_scratch as settings_from_scratch,
    settings_to_go_on as settings_to_go_on,
    train as train,
)
