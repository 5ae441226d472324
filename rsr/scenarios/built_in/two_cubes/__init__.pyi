from rsr.scenarios.built_in.two_cubes.scene import (
    FRAME_S as FRAME_S,
    MASS_KG as MASS_KG,
    SIDE_M as SIDE_M,
    BlockGeometry as BlockGeometry,
    ContactParameters as ContactParameters,
    cube as cube,
    scene_xml as scene_xml,
)
