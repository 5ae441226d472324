"""deployments/README.md, followed to the letter in a fresh folder: every command on it is run, or said not to be."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml
from checkout import PROJECT, copy_project
from fresh_venv import fresh_venv, install, surroundings
from ports import free_port

from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig
from rsr_tasks.campaign import opened

PAGE = PROJECT / "deployments" / "README.md"
_PATIENCE_S = 300.0
_SERVER = "python -m rsr_flows.api_server"

NOT_HERE = {
    "docker build": "no Docker daemon",
    "kubectl": "no cluster",
    "pip install": "no installation within a test",
    "createdb": "no PostgreSQL server",
    "useradd": "no account is made within a test",
    "python3 -m venv /opt/rsr": "no installation within a test",
    "cp deployments/systemd": "no systemd; tests/test_systemd.py verifies the unit",
    "systemctl": "no systemd",
    "prefect worker start --pool rsr-docker": "no Docker daemon",
    "prefect deployment run benchmark/side-by-side": "three campaigns of three iterations: hours",
}
"""Beginnings of commands that cannot be run where the tests run, and why."""
SMALL = LoopConfig(
    reality=RealityConfig(episodes=8),
    start=StartConfig(train_steps=1),
    tune=TuneConfig(method="sysid", fit_episodes=3),
    infogap=InfoGapConfig(transitions=100),
    retrain=RetrainConfig(train_steps=1),
)
"""Of the campaign `nightly`, made beforehand, lest the run takes an hour."""


def commands() -> dict[str, list[str]]:
    """Heading -> the commands below it, in order; blocks of YAML are none."""
    found: dict[str, list[str]] = {}
    heading, before = "", ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("    ") and not re.match(r" {4}(\s|\w[\w ]*:( |$))", line):
            found.setdefault(heading, []).append(line.strip())
        before = line
    assert before
    return found


def everything() -> list[str]:
    return [command for below in commands().values() for command in below]


def is_not_here(command: str) -> bool:
    return command.startswith(tuple(NOT_HERE))


def test_the_page_has_commands_and_every_excuse_is_for_one_of_them():
    assert len(everything()) > 20
    for beginning in NOT_HERE:
        assert [command for command in everything() if command.startswith(beginning)], beginning


def test_every_program_file_and_deployment_that_is_named_exists():
    known = {"make", "export", "prefect", "python", "rsr", "dvc", "docker", "kubectl", "pip", "createdb"}
    known |= {"useradd", "python3", "cp", "systemctl"}
    assert {shlex.split(command)[0] for command in everything()} <= known
    named = {word for command in everything() for word in shlex.split(command) if word.startswith("deployments/")}
    assert len(named) >= 4
    assert not [name for name in named if not (PROJECT / name).exists()]
    run = {shlex.split(command)[3] for command in everything() if command.startswith("prefect deployment run")}
    assert run <= deployments()


def deployments() -> set[str]:
    """flow/name of each entry of prefect.yaml."""
    from prefect.utilities.importtools import import_object

    entries = yaml.safe_load((PROJECT / "deployments" / "prefect.yaml").read_text())["deployments"]
    flows = [import_object(entry["entrypoint"]) for entry in entries]
    return {f"{flow.name}/{entry['name']}" for flow, entry in zip(flows, entries, strict=True)}


def test_the_table_of_the_page_is_what_is_deployed():
    rows = re.findall(r"^\| `([\w-]+/[\w-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == deployments()


class Folder:
    """A fresh copy of the project in which `make install` has been: its .venv leads to the packages of the tests."""

    def __init__(self, root: Path) -> None:
        self.root, self.port = root, free_port()
        copy_project(root)
        python = fresh_venv(root / ".venv")
        install(python, "--editable", root)
        for program in ("prefect", "dvc", "pip"):
            script = python.parent / program
            script.write_text(f'#!/bin/sh\nexec "{python}" -m {program} "$@"\n')
            script.chmod(0o755)
        (root / ".venv" / "installed").touch()
        self.environment = {
            **surroundings(python),
            "PREFECT_HOME": str(root / ".prefect"),
            "PREFECT_SERVER_API_PORT": str(self.port),
        }

    def read(self, command: str) -> str:
        """A command of the page, on a port that is free here."""
        command = {"make serve": "make serve PORT=4200", _SERVER: f"{_SERVER} --port 4200"}.get(command, command)
        return command.replace("4200", str(self.port))

    def follow(self, command: str, where: str = ".") -> str:
        """Do what the page says and return what it prints; what it exports holds from then on."""
        if command.startswith("export "):
            for name in re.findall(r" (\w+)=", command):
                self.environment[name] = self._shell(f'{self.read(command)}; printf %s "${name}"', where)
            return ""
        return self._shell(self.read(command), where)

    def _shell(self, command: str, where: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.root / where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def staying(self, command: str, ready: Callable[[str], bool]) -> Iterator[None]:
        """Have a command run until the block ends; Ctrl-C then ends it and whatever it began."""
        log = self.root / "log.txt"
        with log.open("w") as sink:
            child = subprocess.Popen(
                ["sh", "-c", f"exec {self.read(command)}"],
                cwd=self.root,
                env=self.environment,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._await(lambda: ready(log.read_text()) or child.poll() is not None, command)
            assert child.poll() is None, log.read_text()
            yield
        finally:
            if child.poll() is None:
                children = psutil.Process(child.pid).children(recursive=True)
                os.killpg(child.pid, signal.SIGINT)
                child.wait(timeout=60)
                psutil.wait_procs(children, timeout=30)

    def listens(self) -> bool:
        """Whether there is a server at the port by now; it says so before it is true."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @staticmethod
    def _await(condition: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + _PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s, f"{what}: not within {_PATIENCE_S:.0f} s"
            time.sleep(0.5)


@pytest.mark.slow
def test_one_machine_one_command(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    folder = Folder(tmp_path)
    with opened(tmp_path / "nightly", config=SMALL):
        pass
    first, *others = commands()["One machine, one command"]
    assert first == "make serve"
    with folder.staying(first, lambda printed: "Ready:" in printed):
        for command in others:
            printed = folder.follow(command, "nightly" if command.startswith("dvc") else ".")
            if command.startswith("prefect deployment run"):
                assert "Completed" in printed
        assert (tmp_path / "nightly" / "iterations/001/report.html").exists()
        for command in commands()["Many at once, on one machine or a cluster"]:
            if not is_not_here(command):
                folder.follow(command)


@pytest.mark.slow
def test_step_by_step(tmp_path):
    folder = Folder(tmp_path)
    *others, worker = commands()["Step by step"]
    while (command := others.pop(0)) != _SERVER:
        folder.follow(command)
    with folder.staying(_SERVER, lambda printed: folder.listens()):
        for command in others:
            folder.follow(command)
        with folder.staying(worker, lambda printed: "started" in printed):
            assert "rsr-loop/nightly" in folder.follow("prefect deployment ls")
        for command in commands()["Containers"]:
            if not is_not_here(command):
                folder.follow(command)
        for pool in ("rsr-docker", "rsr-kubernetes"):
            assert pool in folder.follow(f"prefect work-pool inspect {pool}")
