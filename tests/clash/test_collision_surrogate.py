"""The surrogate: what it learns, its gradient, its symmetry, its bytes."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.baselines.strikes.paper import distil_as_paper
from rsr.common.errors import CalibrationError
from rsr.common.files import sha256
from rsr.common.rotations import rotated
from rsr.learned.clash import accuracy, adapt, distil, load_pairs, load_surrogate, relative_errors, save_surrogate
from rsr.learned.clash.frame import from_contact, to_contact
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.built_in.strike import load_shape, sample_strikes, strikes_at
from rsr.simulators.strikes import Collider

PARAMS = np.array([0.3, 0.3, 0.3, 1.0])


def test_it_predicts_strikes_that_it_did_not_see(distilled, square):
    assert distilled.table_one.scaled > 0.85
    strikes = sample_strikes(square, 300, np.random.default_rng(9))
    real = Collider(square)(strikes, np.tile(PARAMS, (300, 1)))
    after, moved = distilled.surrogate.predict(strikes, PARAMS)
    assert accuracy(square, after, real.after).scaled > 0.85
    far = np.linalg.norm(real.moved[:, :2], axis=1)
    assert np.median(np.linalg.norm((moved - real.moved)[:, :2], axis=1) / far) < 0.2


def test_scales_matter_more_than_anything_else(distilled, square, strikes_folder):
    pairs = load_pairs(strikes_folder)
    literal, scaled = (distil_as_paper(square, pairs, name, steps=300)[1].scaled for name in ("paper", "normalised"))
    assert literal < scaled < distilled.table_one.scaled


def test_it_is_differentiable_in_the_parameters(surrogate, square):
    strikes = sample_strikes(square, 20, np.random.default_rng(4))
    fixed = surrogate.fixed_inputs(strikes).double()
    network = surrogate.network.double()
    params = torch.tensor(np.tile(PARAMS, (20, 1)), requires_grad=True)
    network(surrogate.inputs(fixed, params))[:, :3].sum().backward()
    step = 1e-6
    with torch.no_grad():
        for column in range(4):
            shift = torch.zeros(4, dtype=torch.float64)
            shift[column] = step
            values = [network(surrogate.inputs(fixed, params + sign * shift))[:, :3].sum(1) for sign in (1, -1)]
            assert torch.allclose(params.grad[:, column], (values[0] - values[1]) / (2 * step), rtol=1e-5, atol=1e-7)
    network.float()


def test_its_mirror_symmetry_is_exact(surrogate, square):
    place, angle, speed = np.array([0.4, 0.7]), np.array([0.1, -0.2]), np.array([0.5, 0.3])
    one, other = strikes_at(square, speed, place, angle), strikes_at(square, speed, -place, -angle)
    after = [to_contact(square, s, surrogate.predict(s, PARAMS)[0]) for s in (one, other)]
    assert after[0] == pytest.approx(after[1] * [1, -1, -1], abs=1e-6)


def test_the_contact_frame_goes_both_ways(square):
    strikes = sample_strikes(square, 10, np.random.default_rng(5))
    motion = np.random.default_rng(6).normal(size=(10, 3))
    assert from_contact(square, strikes, to_contact(square, strikes, motion)) == pytest.approx(motion)


def test_equal_seeds_give_equal_bytes_and_it_survives_storage(square, strikes_folder, tmp_path):
    pairs, short = load_pairs(strikes_folder), 30
    for name in ("one", "other"):
        save_surrogate(tmp_path / name, distil(square, pairs, short, seed=5).surrogate)
    save_surrogate(tmp_path / "third", distil(square, pairs, short, seed=6).surrogate)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "other") != sha256(tmp_path / "third")
    strikes = sample_strikes(square, 5, np.random.default_rng(7))
    stored = load_surrogate(tmp_path / "one")
    again = distil(square, pairs, short, seed=5).surrogate
    assert stored.predict(strikes, PARAMS)[0] == pytest.approx(again.predict(strikes, PARAMS)[0], rel=1e-5)


def test_a_damaged_surrogate_is_refused(surrogate, tmp_path):
    save_surrogate(tmp_path, surrogate)
    (tmp_path / "surrogate.npz").write_bytes(b"cut short")
    with pytest.raises(CalibrationError, match="rsr clash train"):
        load_surrogate(tmp_path)
    with pytest.raises(CalibrationError, match="rsr clash train"):
        load_surrogate(tmp_path / "nothing")


def test_a_surrogate_of_the_papers_recipe_from_an_earlier_release_is_refused(surrogate, tmp_path):
    save_surrogate(tmp_path, surrogate)
    card = json.loads((tmp_path / "surrogate.json").read_text())
    (tmp_path / "surrogate.json").write_text(json.dumps(card | {"preset": {"name": "default"}}))
    assert load_surrogate(tmp_path).shape.name == "square"
    (tmp_path / "surrogate.json").write_text(json.dumps(card | {"preset": {"name": "paper"}}))
    with pytest.raises(CalibrationError, match="got a surrogate of the recipe 'paper'"):
        load_surrogate(tmp_path)


def test_a_flat_face_measured_a_little_off_changes_the_prediction_a_little(surrogate, square):
    """Inputs that never vary in training must not blow up errors of the recorded normal and point."""
    strikes = sample_strikes(square, 40, np.random.default_rng(10))
    exact = surrogate.predict(strikes, PARAMS)[0]
    turned = replace(strikes, normal=rotated(strikes.normal, np.full(40, np.radians(1.0))))
    lifted = replace(strikes, point_m=strikes.point_m - 0.001 * strikes.normal)
    for measured in (turned, lifted):
        assert relative_errors(surrogate.predict(measured, PARAMS)[0], exact, square.gyration_m).max() < 0.15


def test_an_input_that_never_varied_is_not_read(surrogate, square):
    strikes = sample_strikes(square, 6, np.random.default_rng(4))
    fixed = surrogate.fixed_inputs(strikes)
    constant = fixed.std(dim=0) < 1e-3
    assert constant.sum() == 3, "on a flat face: how deep the centre lies, sine and cosine of where it faces"
    params = torch.as_tensor(np.tile(PARAMS, (6, 1)), dtype=torch.float32)
    as_it_is, moved = (
        surrogate.network(surrogate.inputs(inputs, params)) for inputs in (fixed, fixed + 0.3 * constant)
    )
    assert torch.equal(as_it_is, moved)


def test_it_says_which_strikes_lie_outside_its_training_and_has_no_weight_there(surrogate, square):
    inside = sample_strikes(square, 20, np.random.default_rng(5))
    assert surrogate.knows(inside).all()
    fast, steep = replace(inside, speed_m_s=inside.speed_m_s + 1.5), replace(inside, angle_rad=inside.angle_rad + 0.7)
    turned = np.radians(20)
    other_face = replace(inside, normal=rotated(inside.normal, turned), point_m=rotated(inside.point_m, turned))
    for strikes in (fast, steep, other_face):
        assert not surrogate.knows(strikes).any()
    model = adapt(surrogate, StrikeStandIn(square, 1).record(10))
    _, law = model.collision.members
    assert model(fast) == pytest.approx(law(fast))
    assert model.collision.intervals(fast)[1] == pytest.approx(law.intervals(fast)[1])
    assert not np.allclose(model(inside), law(inside))


def test_predictions_take_one_thread_and_give_the_others_back(surrogate, square):
    strikes = sample_strikes(square, 4, np.random.default_rng(11))
    threads, seen = torch.get_num_threads(), []
    hook = surrogate.network.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    torch.set_num_threads(2)
    try:
        surrogate.predict(strikes, PARAMS)
        assert seen == [1]
        assert torch.get_num_threads() == 2
    finally:
        hook.remove()
        torch.set_num_threads(threads)


def test_what_planners_ask_says_the_same_as_the_network(surrogate, square):
    strikes = sample_strikes(square, 30, np.random.default_rng(12))
    # In numpy and in torch, single precision both: a few of its last digits differ.
    assert surrogate.at(PARAMS)(strikes) == pytest.approx(surrogate.predict(strikes, PARAMS)[0], rel=1e-4, abs=1e-5)


def test_a_shape_without_a_mirror_is_not_mirrored(tmp_path):
    from rsr.learned.clash.surrogate import new_surrogate
    from tests.clash.test_strike_shapes import write_obj

    crooked = np.array([[0, 0], [0.08, 0], [0.06, 0.05], [0.01, 0.03]])
    shape = load_shape(str(write_obj(tmp_path / "crooked.obj", crooked, 0.04)))
    assert shape.axis_rad is None
    assert shape.fold == 1
    strikes = sample_strikes(shape, 50, np.random.default_rng(8))
    untrained = new_surrogate(shape)
    wanted = np.random.default_rng(9).normal(size=(50, 3))
    assert untrained.decode(strikes, untrained.encode(strikes, wanted)) == pytest.approx(wanted)
