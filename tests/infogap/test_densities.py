import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

from rsr.common.errors import CalibrationError, ConfigError
from rsr.infogap import Scaler, divergence, kl_axis, kl_conditional_gaussian, transition_noise, transitions
from rsr.infogap.densities import kde_of_standardised

NOISE = np.array([1e-3, 1e-3])


def push(rng, count=400, noisy=True):
    """One-step pushes of a point: states, actions, and the true simulator's transitions by friction."""
    states, actions = rng.normal(0, 0.1, (count, 2)), rng.uniform(-1, 1, (count, 2))
    noise = transition_noise(NOISE, 2) * rng.standard_normal((count, 6)) * noisy

    def simulate(friction):
        return transitions(states, actions, states + 0.02 * actions / (1 + friction) + 0.05 * friction * states)

    return simulate, simulate(0.5) + noise


def kl_kde(real, simulated, *, scaler, **options):
    return kde_of_standardised(scaler(real), scaler(simulated), **options)


def kl_along(gaps, rng, **options):
    simulate, real = push(rng)
    estimates = []
    for gap in gaps:
        simulated = simulate(0.5 - gap)
        scaler = Scaler.fit(real, simulated, noise=transition_noise(NOISE, 2))
        estimates.append(kl_kde(real, simulated, scaler=scaler, **options))
    return np.array(estimates)


def naive_kl(p, q, skew):
    """The definition, one kernel at a time, for standardised paired samples."""
    bandwidth = len(p) ** (-1 / (p.shape[1] + 4))
    total = 0.0
    for x in p:
        density_p = np.mean([np.exp(-((x - y) ** 2).sum() / (2 * bandwidth**2)) for y in p])
        density_q = np.mean([np.exp(-((x - y) ** 2).sum() / (2 * bandwidth**2)) for y in q])
        total += np.log(density_p / ((1 - skew) * density_q + skew * density_p))
    return total / len(p)


@pytest.mark.parametrize("skew", [0.0, 0.05, 0.5])
def test_kl_is_its_definition(rng, skew):
    real = rng.normal(size=(60, 3))
    simulated = real + rng.normal(0, 0.4, real.shape)
    scaler = Scaler.fit(real, simulated)
    estimate = kl_kde(real, simulated, scaler=scaler, skew=skew)
    assert estimate == pytest.approx(naive_kl(scaler(real), scaler(simulated), skew), rel=1e-10)


def test_kl_agrees_with_the_densities_of_scikit_learn(rng):
    real = rng.normal(size=(200, 4))
    simulated = real + rng.normal(0.1, 0.4, real.shape)
    scaler = Scaler.fit(real, simulated)
    bandwidth = len(real) ** (-1 / (real.shape[1] + 4))
    log_p, log_q = (
        KernelDensity(bandwidth=bandwidth).fit(scaler(data)).score_samples(scaler(real)) for data in (real, simulated)
    )
    assert kl_kde(real, simulated, scaler=scaler, skew=0.0) == pytest.approx(np.mean(log_p - log_q), rel=1e-9)


@pytest.mark.parametrize("skew", [0.0, 0.05])
@pytest.mark.parametrize("count", [2, 256, 700])
def test_no_gap_and_no_noise_is_exactly_zero(rng, skew, count):
    data = rng.normal(size=(count, 6)) * np.logspace(-3, 2, 6)
    assert kl_kde(data, data.copy(), scaler=Scaler.fit(data), skew=skew) == 0.0
    assert kl_kde(data, data, scaler=Scaler.fit(data), skew=skew) == 0.0


def test_kl_falls_along_a_path_that_closes_the_gap(rng):
    estimates = kl_along([0.5, 0.4, 0.3, 0.2, 0.1, 0.0], rng)
    assert (np.diff(estimates) < 0).all()
    assert estimates[0] > 0.1
    assert estimates[-1] < 0.05 * estimates[0]


def test_leave_one_out_fails_on_paired_data(rng):
    """Why paired data keep both self-kernels."""
    assert (kl_along([0.3, 0.1, 0.0], rng, paired=False) < 0).all()


@pytest.mark.parametrize("skew", [0.01, 0.05, 0.3])
def test_skew_caps_kl(rng, skew):
    real = rng.normal(size=(200, 4))
    scaler = Scaler.fit(real)
    far = kl_kde(real, real + 1e4, scaler=scaler, skew=skew)
    assert far == pytest.approx(np.log(1 / skew))
    assert kl_kde(real, real + 1e4, scaler=scaler, skew=0.0) > 1e6
    assert kl_kde(real, real + 1e4, scaler=scaler, skew=skew, paired=False) <= np.log(1 / skew) + 1e-9


def test_unpaired_kl_knows_the_truth(rng):
    """N(0, 1) against N(1, 1) in two dimensions of five: 0.5 nats each."""
    shift = np.array([1.0, 1.0, 0, 0, 0])
    real, same, other = rng.normal(size=(800, 5)), rng.normal(size=(900, 5)), rng.normal(size=(900, 5)) + shift
    scaler = Scaler(mean=np.zeros(5), std=np.ones(5), kept=np.ones(5, bool))
    assert kl_kde(real, same, scaler=scaler, paired=False, skew=0) == pytest.approx(0, abs=0.12)
    assert kl_kde(real, other, scaler=scaler, paired=False, skew=0) == pytest.approx(1.0, abs=0.35)


def test_conditional_gaussian_is_the_squared_error_in_nats(rng):
    real = rng.normal(size=(50, 3))
    scaler = Scaler.fit(real)
    simulated = real + scaler.std * np.array([0.3, 0.0, 0.6])
    assert kl_conditional_gaussian(real, simulated, scaler=scaler) == pytest.approx(0.5 * (1 + 4))
    assert kl_conditional_gaussian(real, real, scaler=scaler) == 0


def test_bad_data_are_explained(rng):
    data = rng.normal(size=(20, 3))
    with pytest.raises(CalibrationError, match=r"shapes \[20, 3\] and \[19, 3\].*row i of both"):
        divergence(data, data[1:])
    with pytest.raises(CalibrationError, match="1 samples; expected at least 2"):
        divergence(data[:1], data[:1])
    with pytest.raises(ConfigError, match="skew: got 1"):
        divergence(data, data, skew=1.0)
    data[4, 1] = np.nan
    with pytest.raises(CalibrationError, match="simulated: got 1 rows with NaN or infinity, the first at row 4"):
        divergence(np.zeros((20, 3)), data)


def episodes(rng, count=64, times=5):
    """Block coordinates relative to the target, m."""
    return rng.normal(0, 0.01, (count, times))


def test_axis_is_zero_when_equal(rng):
    simulated = episodes(rng)
    assert kl_axis(simulated, simulated.copy(), noise=1e-3) == 0.0
    assert kl_axis(np.ones((10, 3)), np.ones((10, 3)), noise=1e-3) == 0.0


def test_axis_falls_as_the_gap_closes(rng):
    simulated = episodes(rng)
    noise = rng.normal(0, 1e-3, simulated.shape)
    gaps = [8, 4, 2, 1, 0.5, 0.25]
    stretched = [kl_axis(simulated * (1 + gap) + noise, simulated, noise=1e-3) for gap in gaps]
    shifted = [kl_axis(simulated + 0.01 * gap + noise, simulated, noise=1e-3) for gap in gaps]
    no_gap = kl_axis(simulated + noise, simulated, noise=1e-3)
    for estimates in (stretched, shifted):
        assert (np.diff(estimates) < 0).all()
        assert estimates[0] > 20 * no_gap
        assert estimates[-1] > no_gap
    assert 0 <= no_gap < 0.01


def test_axis_is_large_where_reality_spreads_six_times_as_far(rng):
    for _ in range(5):
        assert kl_axis(6 * episodes(rng), episodes(rng), noise=1e-3) >= 2.0


def test_axis_floor_of_independent_episodes(rng):
    """Late in an episode contact unpairs reality and simulation; what is left is small beside any gap."""
    floors = [kl_axis(episodes(rng), episodes(rng), noise=1e-3) for _ in range(20)]
    assert np.mean(floors) == pytest.approx(0.07, abs=0.03)
    assert max(floors) < 0.15


def test_axis_levels_off_instead_of_exploding(rng):
    simulated = episodes(rng)
    assert kl_axis(simulated + 100.0, simulated, noise=1e-3) == pytest.approx(2 * 64**0.4, rel=0.01)


def test_axis_does_not_see_below_the_sensor(rng):
    simulated = rng.normal(0, 1e-7, (64, 4))
    assert kl_axis(6 * simulated, simulated, noise=1e-3) < 1e-6


def test_axis_errors(rng):
    with pytest.raises(ConfigError, match="noise: got 0"):
        kl_axis(episodes(rng), episodes(rng), noise=0.0)
    with pytest.raises(CalibrationError, match="equal shapes"):
        kl_axis(episodes(rng), episodes(rng, times=4), noise=1e-3)
    with pytest.raises(CalibrationError, match="at least 2"):
        kl_axis(np.zeros((1, 3)), np.zeros((1, 3)), noise=1e-3)
