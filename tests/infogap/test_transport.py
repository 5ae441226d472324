import numpy as np
import ot
import pytest

from rsr.common.errors import CalibrationError, ConfigError
from rsr.infogap import METRICS, GroundMetric, Transport, saturating
from tests.infogap.exact_transport import w_of_added_sample

METRIC_CASES = {
    "euclidean": GroundMetric(),
    "clipped": GroundMetric(clip=1.5),
    "saturating": GroundMetric(tau=0.7),
    "clipped and saturating": GroundMetric(clip=3.0, tau=1.3),
}


def naive_rho(x, y, metric):
    difference = np.clip(x, -metric.clip, metric.clip) - np.clip(y, -metric.clip, metric.clip)
    distance = np.sqrt((difference**2).sum())
    return distance if metric.tau == np.inf else metric.tau * (1 - np.exp(-distance / metric.tau))


def solved_w1(x, reference, metric):
    """W1 of reference and x against reference alone, by POT's linear program."""
    n = len(reference)
    cost = np.array([[naive_rho(y, z, metric) for z in [*reference, x]] for y in reference])
    scale = cost.max() or 1.0
    return scale * ot.emd2(np.full(n, 1 / n), np.full(n + 1, 1 / (n + 1)), cost / scale, numItermax=1_000_000)


def reference_of(kind, rng, n, d):
    if kind == "duplicates":
        return rng.integers(0, 3, (n, d)).astype(float)
    if kind == "heavy tails":
        return rng.standard_t(2, (n, d))
    if kind == "badly scaled":
        return rng.normal(size=(n, d)) * np.logspace(-2, 2, d)
    return rng.normal(size=(n, d)) + 5 * rng.integers(0, 2, (n, 1))


@pytest.mark.parametrize("metric", METRIC_CASES.values(), ids=METRIC_CASES)
@pytest.mark.parametrize("kind", ["clusters", "duplicates", "heavy tails", "badly scaled"])
def test_closed_form_equals_the_linear_program(rng, metric, kind):
    for n in (1, 2, 7, 40):
        for d in (1, 3, 12):
            reference = reference_of(kind, rng, n, d)
            samples = np.stack([reference[0], reference.mean(axis=0), 3 * reference_of(kind, rng, 1, d)[0]])
            closed = w_of_added_sample(samples, reference, metric)
            solved = [solved_w1(x, reference, metric) for x in samples]
            np.testing.assert_allclose(closed, solved, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_fast_form_equals_the_exact_one(rng, name):
    dataset, samples = rng.normal(size=(700, 11)), 2 * rng.normal(size=(333, 11))
    transport = Transport.fit(dataset, rng=rng, metric=METRICS[name])
    exact = w_of_added_sample(samples, dataset, transport.metric)
    np.testing.assert_allclose(transport.w(samples), exact, rtol=1e-5)
    np.testing.assert_allclose(transport.mean_distance(samples), exact * 701, rtol=1e-5)


def test_a_sample_of_the_reference_stands_for_it(rng):
    dataset, samples = rng.normal(size=(8000, 11)), 2 * rng.normal(size=(200, 11))
    transport = Transport.fit(dataset, rng=rng, samples=1000)
    assert transport.reference.shape == (1000, 11)
    assert transport.reference.dtype == np.float32
    assert transport.dataset_size == 8000
    np.testing.assert_allclose(transport.w(samples), w_of_added_sample(samples, dataset, transport.metric), rtol=0.02)


def test_the_same_generator_gives_the_same_sample(rng):
    dataset = rng.normal(size=(500, 3))
    first, second, other = (Transport.fit(dataset, rng=np.random.default_rng(s), samples=100) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.reference, second.reference)
    assert first.metric == second.metric
    assert not np.array_equal(first.reference, other.reference)


def test_saturating_metric_saturates_at_half_the_median_distance(rng):
    dataset = rng.normal(size=(300, 2))
    metric = saturating(dataset)
    distances = [np.linalg.norm(np.clip(x, -3, 3) - np.clip(y, -3, 3)) for x in dataset[:100] for y in dataset[:100]]
    assert metric.tau == pytest.approx(0.5 * np.median(distances), rel=0.1)
    assert w_of_added_sample(np.full((1, 2), 1e6), dataset, metric)[0] * 301 <= metric.tau


def test_saturating_metric_pays_for_holes_and_the_euclidean_one_does_not(rng):
    """Two clusters: the empty middle is what the saturating metric finds newest, and the Euclidean one oldest."""
    dataset = np.concatenate([rng.normal(-2, 0.2, (100, 1)), rng.normal(2, 0.2, (100, 1))])
    middle_and_cluster = np.array([[0.0], [2.0]])
    middle, cluster = w_of_added_sample(middle_and_cluster, dataset, saturating(dataset))
    assert middle > 1.2 * cluster
    middle, cluster = w_of_added_sample(middle_and_cluster, dataset)
    assert middle < 1.05 * cluster


def test_bad_settings_and_data_are_explained(rng):
    with pytest.raises(ConfigError, match="tau: got -1"):
        GroundMetric(tau=-1.0)
    with pytest.raises(ConfigError, match="clip: got nan"):
        GroundMetric(clip=np.nan)
    with pytest.raises(CalibrationError, match=r"samples: got an array of shape \[4, 2\]; expected \[samples, 3\]"):
        w_of_added_sample(np.zeros((4, 2)), np.zeros((5, 3)))
    with pytest.raises(CalibrationError, match="NaN"):
        Transport.fit(np.full((5, 3), np.nan), rng=rng)
