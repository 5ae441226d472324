import numpy as np
import pytest

from rsr.common.errors import CalibrationError, ConfigError
from rsr.common.files import read_json, write_json
from rsr.infogap import (
    ESTIMATORS,
    InfoGapReward,
    RewardSettings,
    fit_infogap,
    open_share,
    transition_noise,
    transitions,
)
from rsr.infogap.densities import kde_of_standardised
from tests.infogap.exact_transport import w_of_added_sample

STATE_NOISE = np.array([1e-3, 1e-3, 1e-3])
NOISE = transition_noise(STATE_NOISE, 2)
TRUTH, NOMINAL = 0.6, 0.1


class Pushes:
    """A toy block: the same recorded (s, a), propagated with any friction; reality adds sensor noise."""

    def __init__(self, seed=0, count=600):
        rng = np.random.default_rng(seed)
        self.states, self.actions = rng.normal(0, 0.1, (count, 3)), rng.uniform(-1, 1, (count, 2))
        self.real = self.simulated(TRUTH) + NOISE * rng.standard_normal((count, 8))

    def simulated(self, friction):
        push = 0.03 * np.concatenate([self.actions, self.actions[:, :1] * self.states[:, 2:] * 10], axis=1)
        return transitions(self.states, self.actions, self.states + push / (1 + 2 * friction))

    def fit(self, before=NOMINAL, after=TRUTH, seed=0, task_reward_std=0.5, **settings):
        first = settings.pop("simulated_first", self.simulated(NOMINAL))
        counted = settings.pop("counted", None)
        return fit_infogap(
            self.real,
            self.simulated(before),
            self.simulated(after),
            NOISE,
            task_reward_std,
            rng=np.random.default_rng(seed),
            simulated_first=first,
            counted=counted,
            settings=RewardSettings(**{"kappa": 0.4, **settings}),
        )


@pytest.fixture(scope="module")
def pushes():
    return Pushes()


@pytest.fixture(scope="module")
def reward(pushes):
    return pushes.fit()


def eq3(reward, samples):
    """Literal Eq. 3 as a reward, -L_sr = KL * W, of each sample."""
    return max(0.0, reward.kl) * reward.transport.w(reward.scaler(samples)).astype(np.float64)


def far_away(rng, count=100):
    return rng.normal(0, 100, (count, 8))


@pytest.mark.parametrize("metric", ["saturating", "clipped", "euclidean"])
def test_bonus_is_calibrated_and_centred_on_the_tuned_dataset(pushes, metric):
    reward = pushes.fit(metric=metric)
    bonus = reward.bonus(pushes.simulated(TRUTH))
    assert reward.weight == pytest.approx(0.4 * 0.5)
    assert bonus.dtype == np.float32
    assert bonus.mean() == pytest.approx(0, abs=0.005 * reward.weight)
    assert bonus.std() == pytest.approx(reward.weight, rel=0.01)


@pytest.mark.parametrize("metric", ["saturating", "clipped", "euclidean"])
def test_bonus_is_bounded_and_pays_for_novelty(pushes, rng, metric):
    reward = pushes.fit(metric=metric, bound=4.0)
    bonus = reward.bonus(far_away(rng))
    assert np.abs(bonus).max() <= 4.0 * reward.weight * (1 + 1e-6)
    assert bonus.min() > 0


def test_weight_dies_with_the_gap(pushes):
    weights = [pushes.fit(before=friction).weight for friction in (NOMINAL, 0.25, 0.35, 0.45, 0.55, TRUTH)]
    assert weights[0] == pytest.approx(0.2)
    assert (np.diff(weights) <= 0).all()
    assert weights[-1] < 0.03 * weights[0]


def test_without_weight_there_is_no_bonus(pushes, rng):
    reward = pushes.fit(kappa=0.0)
    np.testing.assert_array_equal(reward.bonus(far_away(rng, 5)), np.zeros(5))


def test_floor_is_what_noise_leaves_behind_a_perfect_simulator(pushes):
    reward = pushes.fit(before=TRUTH)
    assert reward.kl == pytest.approx(reward.kl_floor, abs=0.3 * reward.kl_floor)
    assert 0 < reward.kl_floor < 0.1 * reward.kl_first


def test_first_iteration_is_fully_open(pushes):
    reward = pushes.fit(before=0.4, simulated_first=None)
    assert reward.kl_first == reward.kl
    assert reward.open_share == 1.0


@pytest.mark.parametrize(
    ("kl", "floor", "first", "share"),
    [(1, 0, 2, 0.5), (3, 0, 2, 1), (0.1, 0.2, 2, 0), (-0.1, 0, 2, 0), (0.6, 0.2, 1.0, 0.5), (0.1, 0.1, 0.1, 0)],
)
def test_open_share(kl, floor, first, share):
    assert open_share(kl, floor, first) == pytest.approx(share)


def test_literal_eq3_is_kl_times_w1(pushes, reward, rng):
    samples, scaler = pushes.simulated(0.3)[:50], reward.scaler
    reference = scaler(pushes.simulated(TRUTH))
    w1 = w_of_added_sample(scaler(samples), reference, reward.transport.metric)
    kl = kde_of_standardised(scaler(pushes.real), scaler(pushes.simulated(NOMINAL)))
    np.testing.assert_allclose(eq3(reward, samples), kl * w1, rtol=1e-5)
    assert reward.eq3_mean == pytest.approx(eq3(reward, pushes.simulated(TRUTH)).mean(), rel=1e-5)


def test_the_literal_form_pays_eq3_as_it_is_written(pushes, rng):
    literal = pushes.fit(form="literal", literal_weight=3.0, metric="euclidean")
    samples = np.concatenate([pushes.simulated(0.3)[:50], far_away(rng, 50)])
    np.testing.assert_allclose(literal.bonus(samples), 3.0 * eq3(literal, samples), rtol=1e-5)
    assert literal.weight == pytest.approx(3.0 * literal.kl)
    assert (literal.bonus(samples) > 0).all(), "not centred"
    assert literal.bonus(far_away(rng)).max() > 10 * literal.bonus(pushes.simulated(TRUTH)).max(), "not bounded"


def test_of_the_literal_form_only_the_floor_is_left_when_the_gap_is_closed(pushes):
    rewards = [pushes.fit(before=friction, form="literal") for friction in (NOMINAL, 0.3, 0.5, TRUTH)]
    weights = [reward.weight for reward in rewards]
    assert (np.diff(weights) < 0).all()
    assert weights[-1] == pytest.approx(rewards[-1].kl_floor, rel=0.3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("order", [1, 2])
def test_every_estimator_and_order_makes_a_calibrated_bonus(pushes, estimator, order):
    reward = pushes.fit(estimator=estimator, order=order)
    bonus = reward.bonus(pushes.simulated(TRUTH))
    assert bonus.mean() == pytest.approx(0, abs=0.005 * reward.weight)
    assert bonus.std() == pytest.approx(reward.weight, rel=0.02)
    assert pushes.fit(before=TRUTH, estimator=estimator, order=order).weight < 0.05 * reward.weight


def test_order_2_is_that_of_its_reference_samples(pushes):
    reward = pushes.fit(order=2)
    samples, transport = pushes.simulated(0.3)[:20], reward.transport
    assert len(transport.reference) == 250
    exact = w_of_added_sample(reward.scaler(samples), transport.reference.astype(float), transport.metric, order=2)
    np.testing.assert_allclose(eq3(reward, samples), reward.kl * exact, rtol=1e-4)


def test_reference_may_be_a_sample(pushes, reward):
    sampled = pushes.fit(reference_samples=200, kl_samples=300)
    assert sampled.transport.reference.shape == (200, 8)
    assert sampled.transport.dataset_size == 600
    samples = pushes.simulated(0.2)
    assert np.corrcoef(sampled.score(samples), reward.score(samples))[0, 1] > 0.98
    assert sampled.bonus(pushes.simulated(TRUTH)).mean() == pytest.approx(0, abs=0.005 * sampled.weight)


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "saturating"},
        {"metric": "euclidean"},
        {"form": "literal", "literal_weight": 2.0},
        {"order": 2, "estimator": "knn"},
        {"bonus_region": "everywhere"},
    ],
)
def test_saved_and_loaded_it_is_the_same(pushes, tmp_path, options):
    reward = pushes.fit(**options)
    reward.save(tmp_path / "first")
    loaded = InfoGapReward.load(tmp_path / "first")
    loaded.save(tmp_path / "second")
    assert files_of(tmp_path / "first") == files_of(tmp_path / "second")
    assert set(files_of(tmp_path / "first")) == {"infogap.json", "reference.npz"}
    samples = pushes.simulated(0.2)
    np.testing.assert_array_equal(loaded.bonus(samples), reward.bonus(samples))
    np.testing.assert_array_equal(eq3(loaded, samples), eq3(reward, samples))
    assert (loaded.form, loaded.bonus_region, loaded.estimator) == (reward.form, reward.bonus_region, reward.estimator)
    assert loaded.transport.order == reward.transport.order


def test_only_the_columns_that_count_make_a_transition_new(pushes, tmp_path):
    counted = np.arange(8) >= 5
    reward = pushes.fit(counted=counted)
    samples = pushes.simulated(TRUTH)
    paid = reward.bonus(samples)
    np.testing.assert_array_equal(reward.bonus(np.where(counted, samples, samples + 0.5)), paid)
    assert np.abs(reward.bonus(np.where(counted, samples + 0.01, samples)) - paid).max() > reward.weight
    assert paid.mean() == pytest.approx(0, abs=0.005 * reward.weight)
    assert reward.kl == pushes.fit().kl, "KL compares all columns"
    reward.save(tmp_path)
    np.testing.assert_array_equal(InfoGapReward.load(tmp_path).bonus(samples), paid)


def test_columns_that_never_change_cannot_be_the_ones_that_count(pushes):
    still = np.zeros((600, 1))
    data = [np.concatenate([each, still], axis=1) for each in (pushes.real, pushes.simulated(NOMINAL))]
    with pytest.raises(CalibrationError, match=r"columns that count.*all equal"):
        fit_infogap(data[0], data[1], data[1], 0.001, 0.5, rng=np.random.default_rng(0), counted=np.arange(9) == 8)


def test_a_model_stored_under_old_names_says_what_to_do(reward, tmp_path):
    reward.save(tmp_path)
    document = read_json(tmp_path / "infogap.json")
    document["paid"] = document.pop("bonus_region")
    write_json(tmp_path / "infogap.json", document)
    with pytest.raises(CalibrationError, match=r"'bonus_region'.*Run this iteration's infogap stage again"):
        InfoGapReward.load(tmp_path)


def test_the_literal_form_is_paid_everywhere(pushes):
    assert pushes.fit(form="literal").bonus_region == "everywhere"


def test_the_same_seed_gives_the_same_bytes(pushes, tmp_path):
    for name, seed in (("first", 1), ("second", 1), ("other", 2)):
        pushes.fit(seed=seed, kl_samples=200, reference_samples=200).save(tmp_path / name)
    assert files_of(tmp_path / "first") == files_of(tmp_path / "second")
    assert files_of(tmp_path / "first") != files_of(tmp_path / "other")


def test_damaged_files_are_explained(reward, tmp_path):
    with pytest.raises(CalibrationError, match="Run this iteration's infogap stage again"):
        InfoGapReward.load(tmp_path)
    reward.save(tmp_path)
    (tmp_path / "reference.npz").write_bytes((tmp_path / "reference.npz").read_bytes()[:100])
    with pytest.raises(CalibrationError, match=r"expected infogap\.json and reference\.npz"):
        InfoGapReward.load(tmp_path)


def test_bad_data_are_explained(pushes):
    few = Pushes(count=30)
    with pytest.raises(CalibrationError, match=r"real: got 30 samples; expected at least 50\..*longer episodes"):
        few.fit()
    with pytest.raises(CalibrationError, match=r"real and simulated_before: got shapes \[600, 8\] and \[599, 8\]"):
        fit_infogap(pushes.real, pushes.real[1:], pushes.real, NOISE, task_reward_std=1, rng=np.random.default_rng(0))
    broken = pushes.simulated(TRUTH)
    broken[3, 2] = np.inf
    with pytest.raises(CalibrationError, match="simulated_first: got 1 rows with NaN or infinity, the first at row 3"):
        pushes.fit(simulated_first=broken)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kappa": -0.1}, "kappa: got -0.1"),
        ({"skew": 1.5}, "skew: got 1.5"),
        ({"metric": "manhattan"}, "'manhattan'; expected one of euclidean, clipped, saturating"),
        ({"task_reward_std": np.nan}, "task_reward_std: got nan"),
        ({"form": "figurative"}, "form 'figurative'; expected one of calibrated, literal"),
        ({"bonus_region": "sometimes"}, "bonus_region 'sometimes'; expected one of off_target, everywhere"),
        ({"order": 3}, "order 3; expected one of 1, 2"),
        ({"estimator": "histogram"}, "estimator 'histogram'"),
        ({"literal_weight": -1.0}, "weight: got -1"),
        ({"bound": 0.0}, "bound: got 0"),
        ({"kl_samples": 3}, "kl_samples: got 3"),
        ({"reference_samples": 3}, "reference_samples: got 3"),
    ],
)
def test_bad_settings_are_explained(pushes, options, text):
    with pytest.raises(ConfigError, match=text):
        pushes.fit(**options)


def test_a_broken_transition_does_not_become_a_reward(reward):
    with pytest.raises(CalibrationError, match="InfoGap features: got 1 rows with NaN"):
        reward.bonus(np.full((1, 8), np.nan))
