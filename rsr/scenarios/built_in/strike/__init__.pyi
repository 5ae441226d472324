from rsr.scenarios.built_in.strike.declared import (
    declared_collision as declared_collision,
    striking as striking,
    struck_shape as struck_shape,
)
from rsr.scenarios.built_in.strike.outline import Face as Face, distances as distances, faces_of as faces_of
from rsr.scenarios.built_in.strike.scene import (
    GRAVITY_M_S2 as GRAVITY_M_S2,
    PARAMETERS as PARAMETERS,
    Definition as Definition,
    scene_xml as scene_xml,
)
from rsr.scenarios.built_in.strike.shapes import SHAPES as SHAPES, Shape as Shape, load_shape as load_shape
from rsr.scenarios.built_in.strike.strikes import (
    ANGLE_RAD as ANGLE_RAD,
    SPEED_M_S as SPEED_M_S,
    RecordedStrikes as RecordedStrikes,
    Strikes as Strikes,
    sample_strikes as sample_strikes,
    strikes_at as strikes_at,
)
