from rsr.realities.cubes import TEST as TEST, TRAINING as TRAINING, CubesStandIn as CubesStandIn
from rsr.realities.envelope import SafetyEnvelope as SafetyEnvelope
from rsr.realities.inbox import Inbox as Inbox, dropped as dropped, last_change_s as last_change_s
from rsr.realities.reality import CollectionPlan as CollectionPlan, Reality as Reality, SimulatedClock as SimulatedClock
from rsr.realities.robot import RobotReality as RobotReality, make_robot_reality as make_robot_reality
from rsr.realities.robot_file import load_robot_file as load_robot_file
from rsr.realities.stand_in import StandIn as StandIn, StandInRobot as StandInRobot
from rsr.realities.strikes import (
    StrikeReality as StrikeReality,
    StrikeStandIn as StrikeStandIn,
    curvature_of as curvature_of,
)
from rsr.realities.wiring import Wiring as Wiring
