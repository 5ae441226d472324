import numpy as np
import pytest

from rsr.common.errors import CalibrationError
from rsr.infogap import diagnose, divergence
from tests.infogap.test_estimators import Path


def test_pairs_of_few_columns_take_kernels():
    path = Path()
    found = diagnose(path.simulated(1.0), path.simulated(0.5), noise=path.noise)
    assert found.advised == "kde"
    assert (found.samples, found.columns, found.paired) == (300, 12, True)
    assert found.estimate.value == divergence(path.simulated(1.0), path.simulated(0.5), noise=path.noise).value
    assert [each.estimator for each in found.estimates] == ["kde", "gaussian", "knn", "conditional"]


def test_few_pairs_take_their_differences():
    path = Path(count=40)
    found = diagnose(path.simulated(1.0), path.simulated(0.5))
    assert found.advised == "conditional"
    assert "40 pairs make no density of 12 columns" in found.reasons[0]


def test_kernels_that_hold_only_themselves_are_said_to_be_no_density(rng):
    real = rng.normal(size=(300, 40))
    found = diagnose(real, real + 0.1 * rng.normal(size=real.shape))
    assert found.crowd < 1.1
    assert found.advised == "kde"
    assert "the squared difference of the pairs with a cap on it" in found.reasons[1]
    beyond = diagnose(real, real + rng.normal(size=real.shape))
    assert beyond.advised == "conditional"
    assert "beyond what kernels can say (capped at 3.0 nats)" in beyond.reasons[0]


def test_in_many_columns_the_paired_kernel_estimate_is_a_squared_error(rng):
    """What the words above rest on: without a cap, KL by kernels is then half the squared distance over h^2."""
    real = rng.normal(size=(300, 40))
    simulated = real + 0.1 * rng.normal(size=real.shape)
    by_kernels = divergence(real, simulated, "kde", skew=0.0).value
    by_differences = divergence(real, simulated, "conditional").value
    bandwidth = 300 ** (-1 / 44)
    assert by_kernels == pytest.approx(by_differences * 0.3**2 / bandwidth**2, rel=0.02)


def test_a_gap_beyond_the_kernels_takes_the_gaussian(rng):
    real = rng.normal(size=(200, 3))
    found = diagnose(real, real + 50)
    assert found.advised == "gaussian"
    assert found.estimate.value > 100 * found.estimates[0].value


def test_independent_normal_samples_take_the_gaussian(rng):
    found = diagnose(rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3)) + 0.3, paired=False)
    assert found.advised == "gaussian"
    assert [each.estimator for each in found.estimates] == ["kde", "gaussian", "knn"]


def test_independent_samples_of_another_shape_take_kernels(rng):
    clusters = [rng.normal(size=(500, 2)) + 4 * (rng.random((500, 1)) < share) for share in (0.8, 0.3)]
    found = diagnose(*clusters, paired=False)
    assert found.advised == "kde"
    truth = 0.8 * np.log(0.8 / 0.3) + 0.2 * np.log(0.2 / 0.7)  # of clusters that hardly overlap
    assert found.estimate.value == pytest.approx(truth, abs=0.15)


def test_heavy_tails_take_neighbours_which_scatter_far_less_there():
    scatter = {"kde": [], "knn": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        real, other = rng.standard_t(1.5, (300, 4)), rng.standard_t(1.5, (300, 4))
        found = diagnose(real, other, paired=False, skew=0.0)
        assert found.advised == "knn"
        for name, values in scatter.items():
            values.append(next(each.value for each in found.estimates if each.estimator == name))
    assert np.std(scatter["knn"]) < 0.3 * np.std(scatter["kde"])


def test_duplicates_rule_neighbours_out(rng):
    real = np.repeat(rng.standard_t(1.5, (150, 2)), 2, axis=0)
    found = diagnose(real, rng.standard_t(1.5, (300, 2)), paired=False)
    assert found.duplicates == 1.0
    assert found.advised != "knn"
    assert "100% of the samples repeat another" in found.reasons[0]


def test_too_few_samples_are_said_to_be_too_few(rng):
    found = diagnose(rng.normal(size=(8, 6)), rng.normal(size=(8, 6)), paired=False)
    assert "distrust every figure here" in found.reasons[-1]
    with pytest.raises(CalibrationError, match="estimator doctor: real: got 5 samples; expected at least 7"):
        diagnose(np.eye(5), np.eye(5))
