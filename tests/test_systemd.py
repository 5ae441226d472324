"""The unit of `rsr-serve`: what systemd says of it, without a systemd that runs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UNIT = ROOT / "deployments" / "systemd" / "rsr-serve.service"
MOST_EXPOSED = "25"
"""In tenths, of systemd's scale from 0 to 10; an unhardened service has 9.6."""


def settings() -> dict[str, str]:
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def systemd_analyze(*words: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not installed")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def test_it_starts_a_command_that_we_install_with_options_that_it_has():
    from rsr_flows.serve import _parser

    program, *options = shlex.split(settings()["ExecStart"])
    assert Path(program).name in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert _parser().parse_args(options).host == "127.0.0.1"


def test_what_it_writes_is_readable_by_its_user_alone():
    found = settings()
    assert found["UMask"] == "0077"
    assert {found["StateDirectoryMode"], found["CacheDirectoryMode"]} == {"0700"}
    assert found["User"] not in {"", "root"}
    assert found["WorkingDirectory"] == f"/var/lib/{found['StateDirectory']}"


def test_systemd_understands_every_line(tmp_path):
    program = tmp_path / "rsr-serve"
    program.touch(mode=0o755)
    text = UNIT.read_text().replace("/opt/rsr/venv/bin/rsr-serve", str(program))
    (tmp_path / UNIT.name).write_text(text)
    done = systemd_analyze("verify", "--man=no", "--recursive-errors=no", str(tmp_path / UNIT.name))
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_finds_it_little_exposed():
    done = systemd_analyze("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", str(UNIT))
    assert done.returncode == 0, done.stdout[-500:]
