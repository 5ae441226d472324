"""Shapes: what geometry says of them, and prisms from mesh files."""

import mujoco
import numpy as np
import pytest

from rsr.common.errors import ScenarioError
from rsr.scenarios.built_in.strike import SHAPES, Definition, load_shape, sample_strikes, scene_xml, strikes_at


def write_obj(path, outline, height, scale=1.0):
    """A closed prism as OBJ, facets turned outward."""
    count = len(outline)
    corners = [(x, y, z) for z in (0.0, height) for x, y in outline]
    lines = ["v {:.9g} {:.9g} {:.9g}".format(*(scale * np.array(corner))) for corner in corners]
    for i in range(count):
        j = (i + 1) % count
        lines += [f"f {i + 1} {j + 1} {j + 1 + count}", f"f {i + 1} {j + 1 + count} {i + 1 + count}"]
    for i in range(1, count - 1):
        lines += [f"f 1 {i + 2} {i + 1}", f"f {count + 1} {count + i + 1} {count + i + 2}"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "fold", "gyration_m"),
    [
        ("semi_cylinder", 1, 0.04 * np.sqrt(0.5 - (4 / (3 * np.pi)) ** 2)),
        ("square", 4, 0.07 / np.sqrt(6)),
        ("triangle", 3, 0.045 * np.sqrt(3) / np.sqrt(12)),
    ],
)
def test_built_in_shapes_have_the_moments_of_geometry(name, fold, gyration_m):
    shape = load_shape(name)
    assert shape.gyration_m == pytest.approx(gyration_m, rel=2e-3)
    assert shape.fold == fold
    assert shape.axis_rad is not None


def test_the_semi_cylinder_is_struck_where_table_one_says():
    strikes = strikes_at(load_shape("semi_cylinder"), np.ones(3), np.array([-1.0, 0.0, 1.0]), np.zeros(3))
    theta = np.arctan2(-strikes.normal[:, 1], -strikes.normal[:, 0])
    assert theta == pytest.approx([np.pi / 12, np.pi / 2, 11 * np.pi / 12], abs=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_strikes_lie_on_the_outline_and_point_inward(name):
    shape = load_shape(name)
    strikes = sample_strikes(shape, 500, np.random.default_rng(0))
    assert shape.distances(strikes.point_m).max() < 1e-4
    assert ((strikes.point_m * strikes.normal).sum(axis=1) < 0).all()
    assert np.linalg.norm(strikes.normal, axis=1) == pytest.approx(1)
    assert np.abs(shape.facing(strikes.normal)).max() <= np.pi / shape.fold + 1e-9


def test_a_mesh_file_of_the_square_is_the_square(tmp_path):
    square = load_shape("square")
    path = write_obj(tmp_path / "printed.obj", square.outline + np.array([0.3, -0.1]), 0.04)
    printed = load_shape(str(path))
    assert printed.gyration_m == pytest.approx(square.gyration_m, rel=1e-6)
    assert printed.height_m == pytest.approx(0.04)
    assert printed.fold == 4
    assert len(printed.struck) == 4
    model = mujoco.MjModel.from_xml_string(scene_xml(printed, Definition()))
    assert model.body("block").mass[0] == pytest.approx(0.12)


def test_a_mesh_in_millimetres_needs_its_unit(tmp_path):
    path = write_obj(tmp_path / "printed.obj", load_shape("triangle").outline, 0.04, scale=1000)
    with pytest.raises(ScenarioError, match="--mesh-unit 0.001"):
        load_shape(str(path))
    assert load_shape(str(path), mesh_unit_m=0.001).fold == 3


def test_a_mesh_that_is_no_upright_prism_is_refused(tmp_path):
    pyramid = ["v 0 0 0", "v 0.1 0 0", "v 0.1 0.1 0", "v 0 0.1 0", "v 0.05 0.05 0.1"]
    faces = ["f 1 3 2", "f 1 4 3", "f 1 2 5", "f 2 3 5", "f 3 4 5", "f 4 1 5"]
    path = tmp_path / "pyramid.obj"
    path.write_text("\n".join(pyramid + faces))
    with pytest.raises(ScenarioError, match="fills 33%"):
        load_shape(str(path))


def test_unknown_shapes_and_broken_meshes_are_refused(tmp_path):
    with pytest.raises(ScenarioError, match="semi_cylinder"):
        load_shape("hexagon")
    with pytest.raises(ScenarioError, match="a mass of -0.1 kg"):
        load_shape("square", -0.1)
    broken = tmp_path / "broken.stl"
    broken.write_text("nothing")
    with pytest.raises(ScenarioError, match="Export it again"):
        load_shape(str(broken))
