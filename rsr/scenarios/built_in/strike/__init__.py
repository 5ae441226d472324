"""Strike: a block lies on a table and another one hits it. Shapes, the scene, and what a strike is.

What a strike and its outcome mean is part of this scenario (`Definition`): simulated and recorded ones are compared.
"""

from rsr.scenarios.built_in.strike.declared import declared_collision, striking, struck_shape
from rsr.scenarios.built_in.strike.outline import Face
from rsr.scenarios.built_in.strike.scene import PARAMETERS, Definition, scene_xml
from rsr.scenarios.built_in.strike.shapes import SHAPES, Shape, load_shape
from rsr.scenarios.built_in.strike.strikes import (
    ANGLE_RAD,
    SPEED_M_S,
    RecordedStrikes,
    Strikes,
    sample_strikes,
    strikes_at,
)

__all__ = [
    "ANGLE_RAD",
    "PARAMETERS",
    "SHAPES",
    "SPEED_M_S",
    "Definition",
    "Face",
    "RecordedStrikes",
    "Shape",
    "Strikes",
    "declared_collision",
    "load_shape",
    "sample_strikes",
    "scene_xml",
    "strikes_at",
    "striking",
    "struck_shape",
]
