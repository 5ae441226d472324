"""A calibration on disk: complete, readable, byte-stable; damage is named."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import load_calibration, load_replays, save_calibration, start_calibration
from rsr.common.errors import CalibrationError
from rsr.common.files import read_json, sha256
from tests.calibration.contract import quick_fit
from tests.push_samples import push_cube


def test_round_trip(tmp_path):
    saved = quick_fit("cmaes")
    save_calibration(saved, tmp_path)
    loaded = load_calibration(tmp_path)
    for name in ("scenario", "method", "estimates", "status", "evidence", "warnings", "checks", "misfits", "rejected"):
        assert getattr(loaded, name) == getattr(saved, name)
    assert tuple(loaded.estimates) == push_cube().space.names
    np.testing.assert_array_equal(loaded.covariance, saved.covariance)
    np.testing.assert_array_equal(loaded.trace, saved.trace)
    replays = load_replays(tmp_path)
    for name, values in vars(saved.replays).items():
        np.testing.assert_array_equal(getattr(replays, name), values)


@pytest.mark.slow
def test_equal_calibrations_have_equal_bytes(tmp_path):
    save_calibration(quick_fit("cmaes"), tmp_path / "a")
    save_calibration(quick_fit("cmaes", threads=1), tmp_path / "b")
    save_calibration(replace(load_calibration(tmp_path / "a"), replays=load_replays(tmp_path / "a")), tmp_path / "c")
    assert sha256(tmp_path / "a") == sha256(tmp_path / "b") == sha256(tmp_path / "c")


def test_document_is_readable(tmp_path):
    save_calibration(start_calibration(push_cube()), tmp_path)
    document = read_json(tmp_path / "calibration.json")
    assert document["parameters"][0] == {
        "name": "table_friction", "value": 0.5, "lower": pytest.approx(0.0704, abs=1e-4), "upper": 1.5, "unit": "1",
        "verdict": "not identifiable",
    }  # fmt: skip
    assert not (tmp_path / "trajectories.npz").exists()


def test_folder_without_calibration(tmp_path):
    with pytest.raises(CalibrationError) as error:
        load_calibration(tmp_path)
    assert str(error.value) == (
        f"{tmp_path / 'calibration.json'}: got no such file; expected a calibration as it was written. "
        "Tune first (the step `tune`, or `rsr calibrate`)."
    )


@pytest.mark.parametrize("content", ["{", "{}", '{"scenario": 1}', "[]"])
def test_damaged_document(tmp_path, content):
    (tmp_path / "calibration.json").write_text(content)
    with pytest.raises(CalibrationError, match=r"got a damaged file .* Restore it with `dvc checkout`\."):
        load_calibration(tmp_path)


def test_damaged_replays_leave_the_calibration(tmp_path):
    save_calibration(quick_fit("cmaes"), tmp_path)
    path = tmp_path / "trajectories.npz"
    path.write_bytes(path.read_bytes()[:-20])
    assert load_calibration(tmp_path).method == "cmaes"
    with pytest.raises(CalibrationError, match="got a damaged file"):
        load_replays(tmp_path)
