"""The image and the pools as far as they can be looked at without building: there is no Docker where the tests run."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CONTAINERS = ROOT / "deployments" / "containers"
POOLS = {"rsr-docker": "docker", "rsr-kubernetes": "kubernetes"}


def instructions() -> list[tuple[str, str]]:
    """(word, rest) of each instruction, continued lines joined, without comments."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]  # type: ignore[misc]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for instruction in instructions():
        if instruction[0] == "FROM":
            found.append([])
        found[-1].append(instruction)
    return found


def test_everything_copied_exists_and_is_let_through():
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*", "nothing gets into the image that is not named"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in shlex.split(rest)[:-1]
    ]
    assert set(copied) == allowed
    assert not [source for source in copied if not (ROOT / source).exists()]


def test_no_secret_and_no_recording_can_get_into_the_image():
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    assert not [rule for rule in rules if rule.startswith("!") and fnmatch.fnmatch(rule[1:], "*data*")]
    text = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"(?i)(password|token|secret|api_key)\s*=", text)


def test_versions_come_from_the_lock():
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert installs
    assert all("--constraint constraints.txt" in rest for rest in installs)
    (extras,) = [rest.split("=")[1].split(",") for word, rest in instructions() if rest.startswith("EXTRAS=")]
    pinned = re.search(r"extras? (.*?)\.", (ROOT / "constraints.txt").read_text().replace("\n# ", " "), re.DOTALL)
    assert pinned is not None
    assert set(extras) <= set(re.split(r",\s*|\s+and\s+", pinned[1]))
    python = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    assert python == {"python:3.11-slim-bookworm"}, "the Python for which the constraints were made"


def test_it_runs_as_an_ordinary_user_and_says_whether_it_is_well():
    last = stages()[-1]
    words = [word for word, _ in last]
    (user,) = [rest for word, rest in last if word == "USER"]
    assert int(user.split(":")[0]) > 0
    assert words.index("USER") > max(index for index, word in enumerate(words) if word == "RUN")
    assert {"HEALTHCHECK", "CMD"} <= set(words[words.index("USER") :])


def test_a_linter_for_dockerfiles_has_nothing_to_say():
    linter = shutil.which("hadolint") or pytest.skip("hadolint is not installed")
    done = subprocess.run([linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.stdout == ""


class TestHealth:
    @staticmethod
    def health(first: Path, **environment: str) -> int:
        command = [
            sys.executable,
            "-c",
            "import sys, runpy, pathlib; found = runpy.run_path(sys.argv[1]); "
            "sys.exit(found['main'](pathlib.Path(sys.argv[2])))",
        ]
        return subprocess.run([*command, str(CONTAINERS / "health.py"), str(first)], env=environment).returncode

    @pytest.fixture
    def worker(self, tmp_path) -> Path:
        path = tmp_path / "cmdline"
        path.write_bytes(b"python\0prefect\0worker\0start\0")
        return path

    @pytest.fixture
    def port(self) -> Iterator[str]:
        class Well(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/health" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        with HTTPServer(("127.0.0.1", 0), Well) as server:
            thread = Thread(target=server.serve_forever)
            thread.start()
            yield str(server.server_address[1])
            server.shutdown()
            thread.join()

    def test_a_worker_that_answers_is_well(self, worker, port):
        assert self.health(worker, PREFECT_WORKER_WEBSERVER_PORT=port) == 0

    def test_a_worker_that_does_not_is_not(self, worker):
        assert self.health(worker, PREFECT_WORKER_WEBSERVER_PORT="9") == 1

    def test_a_run_is_well_as_long_as_it_is_there(self, tmp_path):
        (tmp_path / "cmdline").write_bytes(b"prefect\0flow-run\0execute\0")
        assert self.health(tmp_path / "cmdline") == 0


@pytest.mark.parametrize("kind", POOLS.values())
def test_a_pool_fills_every_gap_of_its_template(kind):
    template = json.loads((CONTAINERS / f"{kind}-pool.json").read_text())
    gaps = set(re.findall(r"{{ (\w+) }}", json.dumps(template["job_configuration"])))
    assert gaps == set(template["variables"]["properties"])


@pytest.mark.parametrize("path", sorted(ROOT.glob("deployments/**/*-pool.json")), ids=lambda path: path.stem)
def test_a_run_chooses_nothing_by_which_it_would_run_other_code(path):
    variables = json.loads(path.read_text())["variables"]
    assert variables["additionalProperties"] is False
    harmless = {"env", "name", "mem_limit", "cpu_request", "cpu_limit", "memory_request", "memory_limit"}
    assert set(variables["properties"]) <= harmless
    allowed = variables["properties"]["env"]["propertyNames"]["enum"]
    assert not [name for name in allowed if not name.startswith(("AWS_", "AZURE_STORAGE_", "RSR_"))]
    assert "RSR_CLUSTER" not in allowed, "whoever is the cluster gets our code and its secrets"


def test_jobs_run_as_an_ordinary_user_without_privileges():
    created = json.loads((CONTAINERS / "docker-pool.json").read_text())["job_configuration"]["container_create_kwargs"]
    assert created["user"] == "10001:10001"
    assert created["cap_drop"] == ["ALL"]
    pod = json.loads((CONTAINERS / "kubernetes-pool.json").read_text())["job_configuration"]["job_manifest"]["spec"]
    pod = pod["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert all(not each["securityContext"]["allowPrivilegeEscalation"] for each in pod["containers"])


def test_the_claim_that_jobs_mount_and_the_pool_that_the_worker_serves_are_those_of_the_manifest():
    documents = list(yaml.safe_load_all((CONTAINERS / "kubernetes.yaml").read_text()))
    claims = [each["metadata"]["name"] for each in documents if each["kind"] == "PersistentVolumeClaim"]
    template = (CONTAINERS / "kubernetes-pool.json").read_text()
    assert [f'"claimName": "{claim}"' in template for claim in claims] == [True]
    (worker,) = [each for each in documents if each["kind"] == "Deployment"]
    container = worker["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][container["args"].index("--pool") + 1] in POOLS
    version = re.search(r"^prefect==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert version is not None
    assert f":{version[1]}-" in container["image"]
    assert "secretKeyRef" not in template
    assert not [each for each in documents if each["kind"] == "Secret"]


@pytest.mark.slow
def test_the_server_takes_the_pools_and_their_deployments(prefect_server, monkeypatch):
    """As `prefect work-pool create` and `prefect deploy` send them; the server checks variables against the pool."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    with get_client(sync_client=True) as client:
        for pool, kind in POOLS.items():
            template = json.loads((CONTAINERS / f"{kind}-pool.json").read_text())
            client.create_work_pool(WorkPoolCreate(name=pool, type=kind, base_job_template=template))
    file = CONTAINERS / "prefect.yaml"
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--prefect-file", str(file), "--all"]
    environment = {"PREFECT_API_URL": prefect_server, "PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    named = {each["name"]: each for each in yaml.safe_load(file.read_text())["deployments"]}
    with get_client(sync_client=True) as client:
        found = {each.name: each for each in client.read_deployments() if each.name in named}
    assert set(found) == set(named)
    for name, each in found.items():
        assert each.work_pool_name == named[name]["work_pool"]["name"]
        assert each.pull_steps == [{"prefect.deployments.steps.set_working_directory": {"directory": "/campaigns"}}]


@pytest.mark.skipif("not __import__('importlib').util.find_spec('prefect_kubernetes')", reason="no prefect-kubernetes")
def test_the_workers_of_prefect_make_jobs_of_it(prefect_server):
    import asyncio

    from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration

    template = json.loads((CONTAINERS / "kubernetes-pool.json").read_text())
    made = asyncio.run(KubernetesWorkerJobConfiguration.from_template_and_values(template, {"command": "x"}))
    container = made.job_manifest["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], made.command, "args" in container) == ("rsr:latest", None, False)
