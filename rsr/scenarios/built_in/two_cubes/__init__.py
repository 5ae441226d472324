"""Two cubes on a table, one pushed towards the other; the scene for any number of convex blocks."""

from rsr.scenarios.built_in.two_cubes.scene import (
    FRAME_S,
    MASS_KG,
    SIDE_M,
    BlockGeometry,
    ContactParameters,
    cube,
    scene_xml,
)

__all__ = ["FRAME_S", "MASS_KG", "SIDE_M", "BlockGeometry", "ContactParameters", "cube", "scene_xml"]
