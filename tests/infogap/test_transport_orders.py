"""Orders 1 and 2, single samples and batches, against POT's linear program on whatever hypothesis comes up with."""

import time

import numpy as np
import ot
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from rsr.common.errors import CalibrationError, ConfigError
from rsr.infogap import GroundMetric, Transport, saturating, w_of_added_batch
from tests.infogap.exact_transport import w_of_added_sample
from tests.infogap.test_transport import METRIC_CASES, naive_rho

ORDERS = (1, 2)
# A grid of 1/8 makes duplicates, ties and collinear points; nothing is so near that squares underflow.
coordinates = st.integers(-40, 40).map(lambda eighths: eighths / 8)


@st.composite
def clouds(draw, largest=12):
    """A reference [n, d] and further samples [m, d]."""
    n, m, d = draw(st.integers(1, largest)), draw(st.integers(1, largest)), draw(st.integers(1, 6))
    return draw(arrays(float, (n, d), elements=coordinates)), draw(arrays(float, (m, d), elements=coordinates))


def solved(reference, added, metric, order):
    """W_order of the reference against itself and the added samples, by POT's linear program."""
    n, everything = len(reference), np.concatenate([reference, added])
    cost = np.array([[naive_rho(y, z, metric) ** order for z in everything] for y in reference])
    scale = cost.max() or 1.0
    weights = np.full(n, 1 / n), np.full(len(everything), 1 / len(everything))
    return (scale * ot.emd2(*weights, cost / scale, numItermax=1_000_000)) ** (1 / order)


@pytest.mark.parametrize("metric", METRIC_CASES.values(), ids=METRIC_CASES)
@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(clouds())
def test_one_added_sample(metric, order, case):
    reference, samples = case
    found = w_of_added_sample(samples, reference, metric, order)
    expected = [solved(reference, sample[None], metric, order) for sample in samples]
    np.testing.assert_allclose(np.power(found, order), np.power(expected, order), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", METRIC_CASES.values(), ids=METRIC_CASES)
@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(clouds())
def test_an_added_batch(metric, order, case):
    reference, batch = case
    found, expected = w_of_added_batch(batch, reference, metric, order), solved(reference, batch, metric, order)
    assert found**order == pytest.approx(expected**order, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("n", "m", "d"), [(150, 40, 11), (97, 31, 2), (40, 90, 1), (60, 60, 20)])
def test_batches_of_the_size_of_a_trajectory(rng, order, n, m, d):
    reference, batch = rng.normal(size=(n, d)), 0.7 * rng.normal(size=(m, d)) + 0.8
    found = w_of_added_batch(batch, reference, order=order)
    assert found == pytest.approx(solved(reference, batch, GroundMetric(), order), rel=1e-9)


def test_a_block_at_rest_makes_no_endless_round_trips(rng):
    """Samples that differ by rounding alone make round trips that seem to pay, were costs compared as they are."""
    places = rng.normal(size=(6, 5))
    reference, batch = (places[rng.integers(0, 6, count)] + rng.normal(0, 1e-15, (count, 5)) for count in (200, 40))
    for metric in (GroundMetric(), saturating(reference)):
        found = w_of_added_batch(batch, reference, metric)
        assert found == pytest.approx(solved(reference, batch, metric, 1), rel=1e-9)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["heavy tails", "badly scaled"])
def test_order_holds_on_wild_data(rng, order, kind):
    scale = np.logspace(-2, 2, 8) if kind == "badly scaled" else np.ones(8)
    reference, samples = rng.standard_t(2, (80, 8)) * scale, rng.standard_t(2, (4, 8)) * scale
    found = w_of_added_sample(samples, reference, order=order)
    expected = [solved(reference, sample[None], GroundMetric(), order) for sample in samples]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_a_batch_of_one_is_an_added_sample(rng, order):
    reference, sample = rng.normal(size=(50, 4)), rng.normal(size=(1, 4))
    single = w_of_added_sample(sample, reference, order=order)[0]
    assert w_of_added_batch(sample, reference, order=order) == pytest.approx(single, rel=1e-12)


def test_a_batch_is_no_farther_than_its_samples_on_average(rng):
    """W1 is convex, so the cheap mean over single samples is an upper bound of the batch's value."""
    reference, batch = rng.normal(size=(80, 6)), rng.normal(size=(25, 6)) + 0.5
    together = w_of_added_batch(batch, reference)
    one_by_one = 25 / 105 * (81 * w_of_added_sample(batch, reference)).mean()
    assert 0.5 * one_by_one < together < one_by_one


def test_order_2_lies_between_its_bounds(rng):
    """t E rho <= W2 <= sqrt(t E rho^2): going through other samples is cheaper than going straight."""
    reference, samples = rng.normal(size=(60, 2)), 3 * rng.normal(size=(20, 2))
    second = w_of_added_sample(samples, reference, order=2)
    straight = np.sqrt(((samples[:, None] - reference) ** 2).sum(axis=2).mean(axis=1) / 61)
    assert (second >= w_of_added_sample(samples, reference)).all()
    assert (second < straight).all()


@pytest.mark.parametrize("metric", ["euclidean", "saturating"])
def test_fast_form_of_order_2_equals_the_exact_one(rng, metric):
    dataset, samples = rng.normal(size=(120, 7)), 2 * rng.normal(size=(50, 7))
    make = saturating if metric == "saturating" else lambda _: GroundMetric()
    transport = Transport.fit(dataset, rng=rng, metric=make, order=2)
    exact = w_of_added_sample(samples, dataset, transport.metric, order=2)
    np.testing.assert_allclose(transport.w(samples), exact, rtol=2e-5)
    assert transport.w(samples).dtype == np.float32


def test_order_2_follows_the_density_of_its_own_samples(rng):
    dataset, samples = rng.normal(size=(600, 3)), rng.normal(size=(5, 3))
    transport = Transport.fit(dataset, rng=rng, samples=100, order=2)
    assert transport.dataset_size == 100
    exact = w_of_added_sample(samples, transport.reference.astype(float), transport.metric, order=2)
    np.testing.assert_allclose(transport.w(samples), exact, rtol=2e-5)


def test_a_trajectory_of_a_hundred_takes_a_fraction_of_a_second(rng):
    reference, batch = rng.normal(size=(1000, 11)), rng.normal(size=(100, 11))
    start = time.process_time()
    w_of_added_batch(batch, reference)
    assert time.process_time() - start < 5.0


def test_bad_orders_and_data_are_explained(rng):
    data = rng.normal(size=(10, 3))
    for call in (w_of_added_sample, w_of_added_batch):
        with pytest.raises(ConfigError, match=r"order 3; expected one of 1, 2.*infogap\.order"):
            call(data, data, order=3)
        with pytest.raises(
            CalibrationError, match=r"samples: got an array of shape \[10, 2\]; expected \[samples, 3\]"
        ):
            call(data[:, :2], data)
    with pytest.raises(ConfigError, match="order 0"):
        Transport.fit(data, rng=rng, order=0)
