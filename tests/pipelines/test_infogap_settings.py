"""The stage `infogap` does what `params.yaml` asks for."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import save_calibration, start_calibration
from rsr.common.files import write_json
from rsr.common.progress import ignore
from rsr.config import InfoGapConfig, LoopConfig, dump_config
from rsr.infogap import InfoGapReward
from rsr.pipelines import run_step
from rsr.sessions import write_session
from rsr.workspace import Workspace
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube


def with_values(values):
    """A calibration of these values."""
    start = start_calibration(push_cube())
    estimates = {name: replace(each, value=values.get(name, each.value)) for name, each in start.estimates.items()}
    return replace(start, estimates=estimates)


@pytest.fixture
def made(tmp_path):
    def make(settings: InfoGapConfig) -> InfoGapReward:
        workspace = Workspace(tmp_path)
        write_json(workspace.chain_path, {"chain": {}})
        dump_config(LoopConfig(infogap=settings), workspace.settings_path)
        workspace.plan(0)
        workspace.plan(1)
        write_session(workspace.data_dir, recording(6, 60))
        save_calibration(with_values({}), workspace.calibration_dir(0))
        save_calibration(with_values(TRUTH), workspace.calibration_dir(1))
        run_step(workspace, "infogap", 1, ignore)
        return InfoGapReward.load(workspace.infogap_dir(1))

    return make


@pytest.mark.parametrize(
    "settings",
    [
        InfoGapConfig(transitions=200),
        InfoGapConfig(transitions=200, form="literal", weight=7.0, metric="euclidean"),
        InfoGapConfig(transitions=200, order=2, estimator="conditional", metric="clipped"),
        InfoGapConfig(transitions=200, estimator="gaussian"),
        InfoGapConfig(transitions=200, estimator="knn", novelty="transition"),
        InfoGapConfig(transitions=200, bonus_region="everywhere"),
    ],
    ids=lambda settings: f"{settings.form}-{settings.order}-{settings.estimator}-{settings.bonus_region}",
)
def test_the_stage_takes_its_settings(made, settings):
    reward = made(settings)
    assert (reward.form, reward.estimator, reward.transport.order) == (
        settings.form,
        settings.estimator,
        settings.order,
    )
    assert reward.kl > reward.kl_floor
    assert reward.bonus_region == ("everywhere" if settings.form == "literal" else settings.bonus_region)
    # The recording holds no actions: four columns of place, and the four of the step.
    assert reward.scaler.kept_columns == (8 if settings.novelty == "transition" else 4)
    if settings.form == "literal":
        assert reward.weight == pytest.approx(7.0 * reward.kl)
    assert np.isinf(reward.transport.metric.tau) == (settings.metric != "saturating")
    assert np.isinf(reward.transport.metric.clip) == (settings.metric == "euclidean")
