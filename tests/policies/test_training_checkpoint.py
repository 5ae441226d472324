"""A training that is killed goes on to the same bytes."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_training import ROLLOUTS, SETTINGS, still_pays, train_tiny

from rsr.common.files import sha256
from rsr.pipelines import TABLE
from rsr.policies.checkpoint import Checkpoint, fingerprint
from rsr.workspace import Workspace
from rsr_tasks.workspace import _GITIGNORE
from tests.push_samples import push_cube

ROOT = Path(__file__).parents[2]
ROLLOUTS_BETWEEN = SETTINGS["ppo"].checkpoint_rollouts


def killed(algorithm: str, checkpoint: Path, in_rollout: int) -> None:
    """Train in a process that is gone, by SIGKILL, in the middle."""
    command = [sys.executable, "tests/policies/tiny_training.py", algorithm, str(checkpoint), str(in_rollout)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture(scope="module", params=["ppo", "sac"])
def algorithm(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def left_over(algorithm, tmp_path_factory) -> Path:
    """What a training leaves that was killed in its eighth rollout of twelve."""
    path = tmp_path_factory.mktemp("killed") / ".training.npz"
    killed(algorithm, path, in_rollout=8)
    return path


@pytest.fixture
def checkpoint(left_over, tmp_path) -> Path:
    path = tmp_path / ".training.npz"
    path.write_bytes(left_over.read_bytes())
    return path


@pytest.fixture
def settings(algorithm):
    return SETTINGS[algorithm]


@pytest.fixture(scope="module")
def uninterrupted(algorithm, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("whole")
    train_tiny(SETTINGS[algorithm], bonus=still_pays).save(folder)
    return sha256(folder)


def test_killed_and_resumed_is_never_interrupted(checkpoint, settings, uninterrupted, tmp_path):
    np.random.seed(1)  # noqa: NPY002 (whatever the resuming process drew before must not matter)
    rollouts = []
    train_tiny(settings, bonus=still_pays, checkpoint=checkpoint, rollouts=rollouts).save(tmp_path / "policy")
    assert rollouts == list(range(ROLLOUTS_BETWEEN + 1, ROLLOUTS + 1)), "went on, did not begin anew"
    assert sha256(tmp_path / "policy") == uninterrupted
    assert not checkpoint.exists()


def test_keeping_checkpoints_changes_nothing(settings, uninterrupted, tmp_path):
    train_tiny(settings, bonus=still_pays, checkpoint=tmp_path / ".training.npz").save(tmp_path / "policy")
    assert sha256(tmp_path / "policy") == uninterrupted
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


def test_a_training_that_goes_on_is_resumed_too(settings, tmp_path):
    """Optimisers and replay buffer come from the checkpoint then, and from nowhere else."""
    first = train_tiny(settings, bonus=still_pays).state
    path, kept = tmp_path / ".training.npz", tmp_path / "kept.npz"

    def copy(steps: int) -> None:
        if path.exists() and not kept.exists():
            kept.write_bytes(path.read_bytes())

    whole = train_tiny(settings, state=first, checkpoint=path, on_rollout=copy)
    kept.rename(path)
    rollouts = []
    resumed = train_tiny(settings, state=first, checkpoint=path, rollouts=rollouts)
    assert rollouts[0] == ROLLOUTS_BETWEEN + 1
    assert resumed.state.keys() == whole.state.keys()
    for name, array in whole.state.items():
        np.testing.assert_array_equal(resumed.state[name], array, err_msg=name)


@pytest.mark.parametrize(
    "changed",
    [{"seed": 4}, {"bonus": None}, {"gamma": 0.97}],
    ids=["seed", "bonus", "settings"],
)
def test_the_checkpoint_of_another_training_is_left_aside(checkpoint, settings, changed):
    rollouts = []
    if "gamma" in changed:
        changed = {"settings": replace(settings, **changed)}
    train_tiny(**{"settings": settings, "bonus": still_pays, "checkpoint": checkpoint, "rollouts": rollouts, **changed})
    assert rollouts[0] <= ROLLOUTS_BETWEEN, "began anew"
    assert not checkpoint.exists()


@pytest.mark.parametrize("size", [0, 100, 10_000])
def test_a_damaged_checkpoint_is_no_checkpoint(checkpoint, settings, uninterrupted, size, tmp_path, caplog):
    checkpoint.write_bytes(checkpoint.read_bytes()[:size])
    train_tiny(settings, bonus=still_pays, checkpoint=checkpoint).save(tmp_path / "policy")
    assert sha256(tmp_path / "policy") == uninterrupted
    assert "training begins anew" in caplog.text


def test_no_pickle_in_it(checkpoint, algorithm):
    experience = {"ppo": set(), "sac": {"experience.rewards", "experience.task_rewards"}}[algorithm]
    first = {"ppo": "optimiser.policy.0.exp_avg", "sac": "optimiser.temperature.0.exp_avg"}[algorithm]
    with np.load(checkpoint, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
        generators = {"generator.torch", "generator.numpy", "generator.actions", "environment.generator"}
        assert {first, *generators, *experience} <= set(archive.files)


def test_fingerprint_tells_trainings_apart():
    scenario = push_cube()
    ppo = SETTINGS["ppo"]
    nominal, state = scenario.space.nominal, {"net.weight": np.zeros(3)}
    base = (scenario, nominal, ppo, 1, state, still_pays)
    others = [
        (scenario, scenario.space.vector({"cube_mass": 0.21}), ppo, 1, state, still_pays),
        (scenario, scenario.space.vector({"control_delay": 0.01}), ppo, 1, state, still_pays),
        (scenario, nominal, replace(ppo, train_steps=1), 1, state, still_pays),
        (scenario, nominal, SETTINGS["sac"], 1, state, still_pays),
        (scenario, nominal, ppo, 2, state, still_pays),
        (scenario, nominal, ppo, 1, {"net.weight": np.ones(3)}, still_pays),
        (scenario, nominal, ppo, 1, None, still_pays),
        (scenario, nominal, ppo, 1, state, lambda *transition: 1.001 * still_pays(*transition)),
        (scenario, nominal, ppo, 1, state, None),
        (replace(scenario, episode_steps=90), nominal, ppo, 1, state, still_pays),
    ]
    prints = [fingerprint(*arguments) for arguments in (base, *others)]
    assert len(set(prints)) == len(prints)
    assert fingerprint(*base) == prints[0]


def test_git_and_dvc_keep_no_checkpoint(tmp_path):
    """Nor do the steps' declared outputs lie where it does, so that DVC never deletes it before a step."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(_GITIGNORE)
    checkpoint = Workspace(tmp_path).checkpoint_path(7)
    ignored = ["git", "-C", str(tmp_path), "check-ignore", "--quiet", str(checkpoint)]
    assert subprocess.run(ignored, check=False).returncode == 0
    for name in ("start", "retrain"):
        outputs = [Path(out.format(dir="iterations/007")) for out in TABLE.step(name).outs]
        assert not any(checkpoint.relative_to(tmp_path).is_relative_to(out) for out in outputs)


def test_where_there_is_no_file_there_is_nothing_to_resume(tmp_path):
    missing = Checkpoint(tmp_path / ".training.npz", "")
    assert missing.resume(None) is False  # type: ignore[arg-type]
    missing.remove()
