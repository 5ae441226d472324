"""The four estimators of KL: on independent samples whose divergence is known, and on pairs along a path to no gap."""

import numpy as np
import pytest

from rsr.common.errors import CalibrationError, ConfigError
from rsr.infogap import ESTIMATORS, Scaler, divergence, transition_noise, transitions

REPEATS = 8


def mixed(d):
    """A matrix that scales columns from 0.03 to 30 and then mixes them."""
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]
    return turned * np.logspace(-1.5, 1.5, d)


def drawn(case, rng, d, n):
    """Two independent datasets [n, d] and their true divergence."""
    p, q, axis = rng.normal(size=(n, d)), rng.normal(size=(n, d)), np.eye(d)[0]
    if case == "same":
        return p, q, 0.0
    if case == "shift":
        return p, q + axis, 0.5
    if case == "wide":
        return p, 2 * q, d * (np.log(2) - 0.375)
    if case == "badly scaled and correlated":
        return p @ mixed(d).T, (q + 2 / np.sqrt(d)) @ mixed(d).T, 2.0
    return p, q + 4 * axis, 8.0


def biases(estimator, case, d, n):
    """Estimate less truth, over independent draws."""
    errors = []
    for seed in range(REPEATS):
        p, q, truth = drawn(case, np.random.default_rng(seed), d, n)
        errors.append(divergence(p, q, estimator, paired=False, skew=0.0).value - truth)
    return np.array(errors)


# Bias and standard deviation that each estimator is known to have: columns, samples, case -> (bias, sd).
KNOWN = {
    "kde": {
        (12, 200, "same"): (-0.06, 0.18),
        (12, 200, "shift"): (-0.14, 0.23),
        (12, 200, "wide"): (0.27, 0.35),
        (12, 200, "badly scaled and correlated"): (-0.85, 0.2),
        (12, 200, "far"): (-5.6, 0.2),
        (1, 50, "same"): (-0.01, 0.1),
        (1, 50, "shift"): (-0.06, 0.2),
        (1, 50, "far"): (-4.0, 0.5),
        (2, 50, "far"): (-4.5, 0.5),
        (6, 50, "shift"): (-0.15, 0.25),
        (12, 50, "same"): (0.02, 0.38),
    },
    "knn": {
        (12, 200, "same"): (-0.02, 0.08),
        (12, 200, "shift"): (-0.20, 0.11),
        (12, 200, "wide"): (1.0, 0.3),
        (12, 200, "badly scaled and correlated"): (-1.1, 0.15),
        (12, 200, "far"): (-6.4, 0.1),
        (1, 50, "shift"): (-0.12, 0.2),
        (2, 50, "shift"): (-0.18, 0.2),
        (6, 50, "shift"): (-0.27, 0.2),
    },
    "gaussian": {
        (12, 200, "same"): (0.02, 0.07),
        (12, 200, "shift"): (0.01, 0.09),
        (12, 200, "wide"): (-0.02, 0.1),
        (12, 200, "badly scaled and correlated"): (-0.06, 0.3),
        (12, 200, "far"): (-0.4, 0.7),
        (1, 50, "shift"): (-0.01, 0.2),
        (1, 50, "far"): (-0.3, 1.6),
        (6, 50, "shift"): (-0.10, 0.25),
        (12, 50, "shift"): (0.02, 0.45),
    },
}


@pytest.mark.parametrize(
    ("estimator", "d", "n", "case", "bias", "sd"),
    [(name, *place, *figures) for name, table in KNOWN.items() for place, figures in table.items()],
)
def test_independent_samples_of_known_divergence(estimator, d, n, case, bias, sd):
    """The mean over draws lies where the estimator's known bias puts it, within 3.5 standard errors (and 0.05)."""
    errors = biases(estimator, case, d, n)
    assert errors.mean() == pytest.approx(bias, abs=0.05 + 3.5 * sd / np.sqrt(REPEATS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "d", "case", "bias", "sd"),
    [
        ("kde", 12, "same", -0.03, 0.04),
        ("kde", 12, "shift", -0.10, 0.05),
        ("kde", 12, "far", -5.2, 0.1),
        ("kde", 6, "far", -4.1, 0.1),
        ("kde", 1, "far", -0.8, 0.7),
        ("knn", 12, "shift", -0.21, 0.05),
        ("knn", 12, "far", -6.0, 0.1),
        ("knn", 6, "shift", -0.16, 0.05),
        ("gaussian", 12, "shift", -0.02, 0.05),
        ("gaussian", 12, "far", -0.2, 0.6),
        ("gaussian", 6, "far", 0.06, 0.3),
    ],
)
def test_a_thousand_samples_of_known_divergence(estimator, d, case, bias, sd):
    errors = biases(estimator, case, d, 1000)
    assert errors.mean() == pytest.approx(bias, abs=0.05 + 3.5 * sd / np.sqrt(REPEATS))


def test_the_gaussian_correction_removes_what_finite_numbers_add(rng):
    """Uncorrected, 200 samples of 12 columns read 0.46 nats where there are none."""
    assert abs(biases("gaussian", "same", 12, 200).mean()) < 0.1


class Path:
    """Recorded (s, a), propagated with any friction: 12 columns, steps that partly depend on products."""

    noise = transition_noise(np.full(4, 1e-3), 4)

    def __init__(self, count=300, seed=0):
        rng = np.random.default_rng(seed)
        self.states, self.actions = rng.normal(0, 0.1, (count, 4)), rng.uniform(-1, 1, (count, 4))
        self.draw = rng.standard_normal((count, 12))

    def simulated(self, closed):
        gain = 0.3 + 0.4 * closed
        push = 0.06 * gain * self.actions * (1 + 5 * self.states * self.actions)
        return transitions(self.states, self.actions, self.states + push)

    def along(self, estimator, noisy):
        real = self.simulated(1.0) + noisy * self.noise * self.draw
        scaler = Scaler.fit(real, self.simulated(0.0), noise=self.noise)
        options = {"scaler": scaler, "noise": self.noise}
        return [
            divergence(real, self.simulated(closed), estimator, **options) for closed in (0, 0.25, 0.5, 0.75, 0.9, 1)
        ]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("noisy", [False, True])
def test_pairs_along_a_path_that_closes_the_gap(estimator, noisy):
    found = Path().along(estimator, noisy)
    values = [each.value for each in found]
    assert (np.diff(values) < 0).all()
    assert values[0] > 20 * abs(values[-1])
    assert found[0].above_floor > 0.9 * values[0]
    assert found[-1].above_floor < 0.05 * values[0]
    if not noisy:
        assert values[-1] == 0.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_equal_pairs_give_exactly_zero(rng, estimator, noise):
    data = rng.normal(size=(130, 6)) * np.logspace(-3, 2, 6)
    assert divergence(data, data.copy(), estimator, noise=noise).value == 0.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_duplicates_and_dependent_columns_stay_finite(rng, estimator):
    data = rng.integers(0, 2, (80, 3)).astype(float)
    real = np.concatenate([data, data[:, :1] - data[:, 1:2]], axis=1)
    other = real + np.array([0.0, 0.0, 0.3, 0.0])
    assert np.isfinite(divergence(real, other, estimator).value)
    assert divergence(real, other, estimator, noise=0.1).value > 0
    if estimator != "conditional":
        assert np.isfinite(divergence(real, other[:60], estimator, paired=False).value)


def test_floor_is_what_noise_leaves_behind_a_perfect_simulator():
    found = Path().along("conditional", noisy=True)[-1]
    assert found.value == pytest.approx(found.floor, rel=0.1)
    assert "hardly above what sensor noise alone gives" in found.warnings


def test_warnings_say_when_not_to_trust_a_figure(rng):
    data = rng.normal(size=(40, 10))
    (near_cap, few) = divergence(data, data + 50, "kde").warnings
    assert near_cap.startswith("near its cap of 3 nats")
    assert few == "40 samples are few for a density of 10 columns"
    assert divergence(data, data + 0.5, "gaussian").warnings == ()


def test_bad_input_is_explained(rng):
    data = rng.normal(size=(40, 3))
    with pytest.raises(ConfigError, match=r"estimator 'histogram' for paired data; expected one of kde, gaussian"):
        divergence(data, data, "histogram")
    with pytest.raises(ConfigError, match="'conditional' for unpaired data; expected one of kde, gaussian, knn"):
        divergence(data, data, "conditional", paired=False)
    with pytest.raises(CalibrationError, match=r"row i of both"):
        divergence(data, data[1:])
    with pytest.raises(CalibrationError, match=r"Gaussian KL: real: got 5 samples; expected at least 6"):
        divergence(data[:5], data[:5], "gaussian")
    with pytest.raises(CalibrationError, match="k-NN KL: real: got 4 samples; expected at least 6"):
        divergence(data[:4], data[:4], "knn")
    with pytest.raises(CalibrationError, match="simulated: got 1 rows with NaN"):
        divergence(data, np.where(data == data[0, 0], np.nan, data))
    with pytest.raises(ConfigError, match="skew: got 1"):
        divergence(data, data, skew=1.0)
