"""A planted secret is nowhere afterwards: not in settings, receipts, commits, logs, nor in Prefect's database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toy import TABLE_NAME

from rsr.common.errors import ConfigError
from rsr.config import LoopConfig
from rsr_tasks import versions
from rsr_tasks.campaign import opened

PLANTED = "planted-3f9c1e"
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> tuple[Path, Path, str]:
    """A loop run with secrets in the environment and in DVC's local file, whose remote is away; what it printed."""
    folder = tmp_path_factory.mktemp("lab")
    root, home = folder / "campaign", folder / "prefect"
    with opened(root, TABLE_NAME, LoopConfig()):
        pass
    config = (root / ".dvc/config").read_text().replace("[core]\n", "[core]\n    remote = shared\n")
    (root / ".dvc/config").write_text(f"{config}['remote \"shared\"']\n    url = http://127.0.0.1:9/store\n")
    (root / ".dvc/config.local").write_text(
        f"['remote \"shared\"']\n    auth = basic\n    user = lab\n    password = {PLANTED}\n"
    )
    versions.git(root, "commit", "--quiet", "-m", "remote", "--", ".dvc/config")
    secrets = dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "PREFECT_API_KEY", "LAB_TOKEN"), PLANTED)
    environment = {**os.environ, **secrets, "PREFECT_HOME": str(home), "PREFECT_LOGGING_LEVEL": "DEBUG"}
    command = [sys.executable, "-m", "loop_of", TABLE_NAME, "--workspace", str(root), "--iterations", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (root / "iterations/001/report.html").exists(), done.stderr
    return root, home, done.stdout + done.stderr


@pytest.mark.slow
def test_it_is_in_no_file_of_the_campaign_but_the_one_that_git_ignores(campaign):
    root, _, _ = campaign
    holders = [path for path in root.rglob("*") if path.is_file() and PLANTED.encode() in path.read_bytes()]
    assert holders == [root / ".dvc" / "config.local"]
    assert PLANTED not in versions.git(root, "log", "--patch", "--all")
    assert versions.git(root, "check-ignore", ".dvc/config.local").strip() == ".dvc/config.local"


@pytest.mark.slow
def test_it_is_neither_printed_nor_logged_nor_in_the_database(campaign):
    _, home, printed = campaign
    assert PLANTED not in printed
    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name.startswith("prefect.db") for path in files)
    assert not [path for path in files if PLANTED.encode() in path.read_bytes()]


def test_settings_have_no_place_for_one_and_do_not_repeat_it():
    from rsr.config import parse_config

    with pytest.raises(ConfigError, match="unknown key 'password'") as caught:
        parse_config({"reality": {"password": PLANTED}}, "params.yaml")
    assert PLANTED not in str(caught.value)


def test_jobs_of_a_fan_out_are_not_kept_by_the_server(prefect_server):
    from prefect.client.orchestration import get_client

    from rsr_tasks.engine_settings import Engine
    from rsr_tasks.fan_out import fan_out

    assert fan_out("tests.flows.test_secrets:used", [{"token": PLANTED}], Engine()) == [len(PLANTED)]
    with get_client(sync_client=True) as client:
        runs = [run.model_dump_json() for run in (*client.read_flow_runs(), *client.read_task_runs())]
    assert len(runs) >= 2
    assert not [run for run in runs if PLANTED in run]


def used(token: str) -> int:
    return len(token)


def test_a_block_reaches_the_run_and_only_its_name_is_stored(prefect_server):
    """As deployments/README.md has it: a worker puts the secret into the environment of the run that it starts."""
    import asyncio

    from prefect.blocks.system import Secret
    from prefect.workers.process import ProcessWorker

    variable = "{{ prefect.blocks.secret.lab-store }}"
    Secret(value=PLANTED).save("lab-store", overwrite=True)  # type: ignore[arg-type]
    template = ProcessWorker.get_default_base_job_template()
    values = {"env": {"AWS_SECRET_ACCESS_KEY": variable}}
    made = asyncio.run(ProcessWorker.job_configuration.from_template_and_values(template, values))
    assert made.env["AWS_SECRET_ACCESS_KEY"] == PLANTED
    readme = " ".join((PROJECT / "deployments" / "README.md").read_text().split())
    assert variable in readme
