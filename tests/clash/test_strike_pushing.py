"""Pushing along routes: the environment, training, the stored policy. The world is a block that obeys."""

import tempfile
from dataclasses import replace

import numpy as np
import pytest

from rsr.common.errors import PolicyError
from rsr.common.files import sha256
from rsr.learned.clash.push_training import SB3_DEFAULTS, PushSettings, SegmentVecEnv, success_in, train_push
from rsr.learned.clash.pushing import StrikePolicy, push, push_routes, route_starts
from rsr.learned.clash.segment import ROUTES, SegmentTask
from rsr.reports.strikes import push_picture, push_table
from rsr.scenarios.built_in.strike import load_shape

SETTINGS = PushSettings(
    train_steps=3072, copies=16, gradient_steps=24, batch_size=128, warm_up_steps=512, judged_every=1024, judged_on=64
)


def obedient(strikes):
    """A block that goes where it is struck to, a quarter of a second of the striking speed, and turns a little."""
    turn = 0.3 * strikes.angle_rad
    return np.column_stack([0.25 * strikes.speed_m_s[:, None] * strikes.direction, turn])


@pytest.fixture(scope="module")
def task():
    return SegmentTask(load_shape("semi_cylinder"))


@pytest.fixture(scope="module")
def trained(task):
    return train_push(task, obedient, SETTINGS, seed=1)


def test_blocks_that_ended_begin_anew_and_say_how_they_ended(task):
    many = SegmentVecEnv(task, obedient, 3, seed=0)
    first = many.reset()
    assert all(many.observation_space.contains(row) for row in first)
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(30):
        actions = rng.uniform(-1, 1, (3, 3)).astype(np.float32)
        after, reward, done, infos = many.step(actions)
        assert after.shape == (3, 9)
        assert np.isfinite(reward).all()
        for copy in np.flatnonzero(done):
            ended += 1
            assert infos[copy]["episode"]["l"] <= task.most_strikes
            assert after[copy, -1] == 1  # begun anew
            assert infos[copy]["terminal_observation"][-1] < 1
            assert isinstance(infos[copy]["is_success"], bool)
            assert "TimeLimit.truncated" not in infos[copy]  # spent strikes are observed: the state is terminal
    assert ended > 5


@pytest.mark.slow
def test_training_learns_and_keeps_the_best_checkpoint(task, trained):
    assert [checked.steps for checked in trained.checkpoints] == sorted(
        checked.steps for checked in trained.checkpoints
    )
    assert trained.best.success == max(checked.success for checked in trained.checkpoints)
    assert trained.best.success > 0.6
    assert trained.seconds > 0
    idle = StrikePolicy(task, tuple((0 * weight, 0 * bias) for weight, bias in trained.policy.layers))
    assert success_in(trained.policy, obedient, 200, 7)[0] > success_in(idle, obedient, 200, 7)[0] + 0.2


@pytest.mark.slow
def test_equal_seeds_train_equal_policies(task, tmp_path):
    short = replace(SETTINGS, train_steps=1024, judged_every=512)
    for name, seed in (("one", 1), ("other", 1), ("third", 2)):
        train_push(task, obedient, short, seed).policy.save(tmp_path / name)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "other") != sha256(tmp_path / "third")


def test_the_defaults_of_stable_baselines_run_too_and_leave_nothing_behind(task, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = replace(SB3_DEFAULTS, train_steps=150, judged_on=8)
    trained = train_push(task, obedient, settings, seed=0)
    assert [layer[0].shape for layer in trained.policy.layers] == [(256, 9), (256, 256), (3, 256)]
    assert len(trained.checkpoints) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_stored_policy_acts_alike_and_a_damaged_one_is_refused(task, trained, tmp_path):
    trained.policy.save(tmp_path)
    stored = StrikePolicy.load(tmp_path)
    seen = task.observe(task.starts(10, np.random.default_rng(0)))
    assert np.array_equal(stored.act(seen), trained.policy.act(seen))
    assert stored.task.most_strikes == task.most_strikes
    (tmp_path / "strike_policy.npz").unlink()
    with pytest.raises(PolicyError, match="rsr clash push"):
        StrikePolicy.load(tmp_path)


def test_routes_are_pushed_segment_by_segment(trained):
    runs = push_routes(trained.policy, tuple(ROUTES.values()), obedient, 40, seed=0)
    for run in runs:
        assert run.completed.max() <= len(run.route)
        assert run.success <= run.segments_completed <= 1
        for path, done in zip(run.paths, run.completed, strict=True):
            reached = np.linalg.norm(path[:, None, :2] - run.route.corners_m[None, 1:], axis=2).min(axis=0) <= 0.04
            assert reached[:done].all()
            assert done == len(run.route) or not reached[done:].all()
    assert runs[0].success > 0.5
    straight = ROUTES["straight"]
    starts = route_starts(straight, 40, np.random.default_rng(1))
    wide = push(trained.policy, straight, obedient, starts)
    strict = replace(trained.policy, task=replace(trained.policy.task, half_width_m=0.002))
    narrow = push(strict, straight, obedient, starts)
    assert narrow.success < wide.success


def test_the_picture_and_the_table_show_all_routes(task, trained):
    runs = push_routes(trained.policy, tuple(ROUTES.values()), obedient, 5, seed=0)
    drawn = push_picture(task, runs, {"hybrid": trained.checkpoints})
    assert drawn.startswith(b"\x89PNG")
    assert drawn == push_picture(task, runs, {"hybrid": trained.checkpoints})
    assert push_table(runs, "here").row_count == 3
