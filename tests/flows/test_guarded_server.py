"""Prefect's server as we start it: who has no password, and every foreign web page, gets nothing done."""

from __future__ import annotations

import base64
import http.client
import json
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
from browser import browsing
from intruder import intruding
from prefect_api import ask, credentials
from terminals import InTerminal
from toy import TABLE_NAME

from rsr.cli.doctor import Diagnosis, of_machine
from rsr.common.errors import ConfigError
from rsr.common.files import read_json, sha256, write_bytes, write_json
from rsr.config import LoopConfig, dump_config
from rsr.workspace import Workspace
from rsr_flows._password import PEOPLE, password, people
from rsr_flows.api_server import prepare
from rsr_tasks.environment import person_id

PROJECT = Path(__file__).resolve().parents[2]
POOL = json.loads((PROJECT / "deployments" / "process-pool.json").read_text())


@pytest.fixture
def deployment(as_client) -> str:
    """The id of a deployment on the pool as we make it."""
    return made_deployment(POOL)


def made_deployment(template: dict[str, object]) -> str:
    if not ask("/work_pools/filter", {"work_pools": {"name": {"any_": ["guarded"]}}}):
        ask("/work_pools/", {"name": "guarded", "type": "process", "base_job_template": template})
    flow = ask("/flows/", {"name": "any"})["id"]
    return ask("/deployments/", {"name": "any", "flow_id": flow, "work_pool_name": "guarded"})["id"]


def runs() -> list[str]:
    return [run["name"] for run in ask("/flow_runs/filter", {})]


def post(server: dict[str, str], path: str, body: bytes, headers: dict[str, str]) -> int:
    """The status that a POST with exactly these headers gets."""
    connection = http.client.HTTPConnection(urlsplit(server["PREFECT_API_URL"]).netloc, timeout=30)
    try:
        connection.request("POST", f"/api{path}", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


_JSON = {"Content-Type": "application/json"}
FOREIGN = {
    "no password": _JSON,
    "a wrong password": {**_JSON, **credentials({"PREFECT_API_AUTH_STRING": "rsr:guessed"})},
    "a foreign origin": {**_JSON, "Origin": "http://evil.example"},
    "an origin on another port": {**_JSON, "Origin": "http://127.0.0.1:1"},
    "an origin that hides": {**_JSON, "Origin": "null"},
    "a foreign host": {**_JSON, "Host": "evil.example"},
    "a text": {"Content-Type": "text/plain"},
    "a text that calls itself JSON": {"Content-Type": "text/plain; application/json"},
    "a form": {"Content-Type": "application/x-www-form-urlencoded"},
    "a body of no kind": {},
}


class TestForeignRequests:
    @pytest.mark.parametrize("how", FOREIGN)
    def test_nobody_without_the_password_makes_a_run(self, server, deployment, how):
        body = json.dumps({"job_variables": {"command": "touch /tmp/x"}, "state": {"type": "SCHEDULED"}}).encode()
        path = f"/deployments/{deployment}/create_flow_run"
        before = runs()
        assert post(server, path, body, FOREIGN[how]) in (401, 403)
        assert runs() == before

    @pytest.mark.parametrize("how", [how for how in FOREIGN if "password" not in how])
    def test_not_even_a_page_that_has_it(self, server, deployment, how):
        token = ask("/csrf-token?client=page", None, "GET")["token"]
        known = {**credentials(server), "Prefect-Csrf-Client": "page", "Prefect-Csrf-Token": token}
        assert post(server, "/flow_runs/count", b"{}", {**_JSON, **known}) == 200, "the rest of it is right"
        assert post(server, "/flow_runs/count", b"{}", {**known, **FOREIGN[how]}) == 403

    @pytest.mark.parametrize("headers", [{}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}])
    def test_nothing_can_be_read(self, server, headers):
        connection = http.client.HTTPConnection(urlsplit(server["PREFECT_API_URL"]).netloc, timeout=30)
        connection.request("GET", "/api/admin/settings", headers=headers)
        answer = connection.getresponse()
        assert answer.status in (401, 403)
        assert answer.headers.get("Access-Control-Allow-Origin") is None
        connection.close()

    @pytest.mark.parametrize("origin", ["http://evil.example", None])
    def test_events_are_taken_from_none_of_them(self, server, origin):
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        address = server["PREFECT_API_URL"].replace("http", "ws", 1) + "/events/in"

        def tell() -> None:
            with connect(address, origin=origin, subprotocols=["prefect"]) as socket:
                socket.send(json.dumps({"type": "auth", "token": "guessed"}))
                socket.recv(timeout=30)

        with pytest.raises(WebSocketException):
            tell()

    def test_no_page_shows_ours_in_a_frame(self, server):
        connection = http.client.HTTPConnection(urlsplit(server["PREFECT_API_URL"]).netloc, timeout=30)
        connection.request("GET", "/v2/", headers={"Accept": "text/html"})
        answer = connection.getresponse()
        assert (answer.status, answer.headers["X-Frame-Options"]) == (200, "DENY")
        connection.close()


PERSON = "Operator One"
WORDS = f"{PERSON}:{'s' * 24}"


class TestPeople:
    """Persons who log in at the page by words of their own."""

    @pytest.fixture
    def listed(self, deployment, server_home) -> str:
        """The deployment, once the file names a person."""
        file = server_home / PEOPLE
        file.touch(mode=0o600)
        file.write_text(f"{WORDS}\n")
        return deployment

    def test_a_run_says_who_made_it(self, listed, monkeypatch):
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", WORDS)
        made = ask(f"/deployments/{listed}/create_flow_run", {})["created_by"]
        assert (made["display_value"], made["id"]) == (PERSON, str(person_id(PERSON)))
        assert ask("/flow_runs/count", {}) > 0, "whoever is listed may do what the password allows"

    def test_nobody_else_says_to_be_that_person(self, listed, server):
        token = ask("/csrf-token?client=page", None, "GET")["token"]
        known = {**_JSON, **credentials(server), "Prefect-Csrf-Client": "page", "Prefect-Csrf-Token": token}
        name = base64.b64encode(PERSON.encode()).decode()
        forged = {**known, "Prefect-Automation-Id": str(person_id(PERSON)), "Prefect-Automation-Name": name}
        body = json.dumps({"name": "forged"}).encode()
        assert post(server, f"/deployments/{listed}/create_flow_run", body, forged) == 201
        (run,) = ask("/flow_runs/filter", {"flow_runs": {"name": {"any_": ["forged"]}}})
        assert run["created_by"] is None

    @pytest.mark.parametrize("words", [WORDS[:-1], PERSON, f"{PERSON}:", f"{WORDS}\n"])
    def test_words_that_are_not_quite_those_are_none(self, listed, monkeypatch, words):
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", words)
        with pytest.raises(HTTPError) as refused:
            ask("/flow_runs/count", None, "GET")
        assert refused.value.code == 401

    def test_their_pages_see_events(self, listed, server):
        from websockets.sync.client import connect

        address = server["PREFECT_API_URL"].replace("http", "ws", 1) + "/events/out"
        with connect(address, subprotocols=["prefect"]) as socket:
            socket.send(json.dumps({"type": "auth", "token": WORDS}))
            assert json.loads(socket.recv(timeout=30))["type"] == "auth_success"

    @pytest.mark.parametrize("line", ["Operator One", "Operator One:short", ":" + "s" * 24, "", f" {WORDS}"])
    def test_a_line_that_names_nobody_is_refused(self, tmp_path, line):
        (tmp_path / PEOPLE).touch(mode=0o600)
        (tmp_path / PEOPLE).write_text(f"{WORDS}\n{line}\n")
        with pytest.raises(ConfigError, match=r"people, line 2: got no NAME:SECRET") as caught:
            people(tmp_path)
        assert "ssss" not in str(caught.value)

    def test_a_file_that_others_may_have_read_is_refused(self, tmp_path):
        assert people(tmp_path) == {}
        (tmp_path / PEOPLE).write_text(f"{WORDS}\n")
        (tmp_path / PEOPLE).chmod(0o640)
        with pytest.raises(ConfigError, match="got mode 640, so that others may have read it"):
            people(tmp_path)

    @pytest.mark.slow  # two processes with Prefect in them
    def test_the_form_takes_no_other_name_and_keeps_it(self, listed, server, tmp_path, monkeypatch):
        campaign = Workspace(tmp_path)
        write_json(campaign.chain_path, {"chain": {}})
        dump_config(LoopConfig(), campaign.settings_path)
        write_bytes(campaign.policy_dir(0) / "policy.npz", b"weights")
        form = {"name": "form", "flow_id": ask("/flows/", {"name": "approve"})["id"]}
        form |= {"entrypoint": "rsr_flows.lab.approve", "enforce_parameter_schema": False}
        path = f"/deployments/{ask('/deployments/', form)['id']}/create_flow_run"

        def decided(by: str) -> str:
            decision = {"workspace": str(tmp_path), "iteration": 0, "by": by}
            monkeypatch.setenv("PREFECT_API_AUTH_STRING", WORDS)
            run = ask(path, {"parameters": {"decision": decision}})["id"]
            command = [sys.executable, "-m", "prefect", "flow-run", "execute", run]
            subprocess.run(command, cwd=PROJECT, env={**os.environ, **server}, capture_output=True, check=False)
            return ask(f"/flow_runs/{run}", None, "GET")["state"]["type"]

        assert decided("Operator Two") == "FAILED"
        assert not campaign.approval_path(0).exists()
        assert decided(PERSON) == "COMPLETED"
        approval = read_json(campaign.approval_path(0))
        assert (approval["by"], approval["login"]) == (PERSON, PERSON)
        assert approval["policy_sha256"] == sha256(campaign.policy_dir(0) / "policy.npz")

    @pytest.mark.parametrize(("made_by", "login"), [(PERSON, PERSON), ("Operator Two", ""), (None, "")])
    def test_an_approval_knows_who_made_its_run(self, monkeypatch, made_by, login):
        """An automation may bear a person's name, but not the id that the guard gives."""
        from prefect.client.schemas.objects import CreatedBy
        from prefect.context import FlowRunContext

        from rsr_tasks.lab import login_of_run

        maker = None if made_by is None else CreatedBy(id=person_id(PERSON), type="AUTOMATION", display_value=made_by)
        context = SimpleNamespace(flow_run=SimpleNamespace(created_by=maker))
        monkeypatch.setattr(FlowRunContext, "get", classmethod(lambda cls: context))
        assert login_of_run() == login


class TestPool:
    @pytest.mark.parametrize(
        "variables",
        [
            {"command": "touch /tmp/x"},
            {"working_dir": "/tmp"},
            {"env": {"PYTHONPATH": "/tmp"}},
            {"env": {"LD_PRELOAD": "/tmp/x.so"}},
            {"env": {"RSR_CLUSTER": "tcp://evil.example:8786"}},
            {"env.PYTHONPATH": "/tmp"},
            {"env": "PYTHONPATH=/tmp"},
        ],
    )
    def test_a_run_chooses_no_command_and_nothing_that_leads_to_one(self, deployment, variables):
        before = runs()
        for path in (f"/deployments/{deployment}/create_flow_run", "/deployments/"):
            body = {"job_variables": variables, "state": {"type": "SCHEDULED"}}
            if path == "/deployments/":
                found = ask(f"/deployments/{deployment}", None, "GET")
                body = {**body, "name": "other", "flow_id": found["flow_id"], "work_pool_name": "guarded"}
            with pytest.raises(HTTPError) as refused:
                ask(path, body)
            assert refused.value.code == 422
        assert runs() == before

    def test_it_chooses_who_does_the_work_and_what_opens_the_store(self, deployment):
        chosen = {"RSR_ENGINE": "dask", "AWS_SECRET_ACCESS_KEY": "{{ prefect.blocks.secret.lab-store }}"}
        made = ask(f"/deployments/{deployment}/create_flow_run", {"job_variables": {"env": chosen}})
        assert made["job_variables"] == {"env": chosen}

    def test_what_is_not_checked_is_not_listened_to(self, prefect_server):
        """A run that belongs to no deployment passes the server unseen; the worker takes nothing of it."""
        import asyncio

        from prefect.workers.process import ProcessWorker

        values = {"command": "touch /tmp/x", "working_dir": "/tmp", "entrypoint": "x.py:f"}
        made = asyncio.run(ProcessWorker.job_configuration.from_template_and_values(POOL, values))
        assert (made.command, made.working_dir, made.env) == (None, None, {})


class TestBrowser:
    """A real one, with a page of another site in it, and with our own."""

    @pytest.mark.timeout(600)
    def test_a_page_of_another_site_achieves_nothing(self, server, deployment, tmp_path):
        before = runs()
        told = visited(server["PREFECT_API_URL"], deployment, tmp_path)
        assert told["read"] == "stopped by the browser"
        assert told["by json"] == "stopped by the browser"
        assert runs() == before

    @pytest.mark.timeout(600)
    def test_the_same_page_has_its_way_with_a_server_that_is_not_guarded(self, prefect_server, monkeypatch, tmp_path):
        monkeypatch.setenv("PREFECT_API_URL", prefect_server)
        monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
        told = visited(prefect_server, made_deployment({}), tmp_path)
        assert told["read"] == 200
        assert {"by json", "by blob"} <= set(runs())

    @pytest.mark.timeout(600)
    def test_under_another_name_it_is_not_ours(self, server, tmp_path):
        """DNS rebinding: the name of another site comes to mean this machine."""
        port = urlsplit(server["PREFECT_API_URL"]).port
        with browsing(tmp_path / "profile", "--host-resolver-rules=MAP evil.example 127.0.0.1") as page:
            page.open(f"http://evil.example:{port}/api/health")
            page.await_(f"document.body.innerText.includes('reached as http://127.0.0.1:{port} alone')")

    @pytest.mark.timeout(600)
    def test_our_own_asks_once_for_the_password_and_works(self, server, deployment, tmp_path):
        address = server["PREFECT_API_URL"].removesuffix("/api")
        with browsing(tmp_path / "profile") as page:
            page.open(address)
            page.await_("document.querySelector('input[type=password]') !== null")
            page.evaluate("document.querySelector('input[type=password]').focus()")
            page.type(server["PREFECT_API_AUTH_STRING"])
            page.await_("location.pathname.endsWith('/dashboard')")
            page.open(f"{address}/v2/deployments")
            page.await_(r"/[1-9]\d* Deployment/.test(document.body.innerText)")
            assert not page.evaluate("document.querySelector('input[type=password]') !== null")


def visited(api: str, deployment: str, folder: Path) -> dict[str, object]:
    """Results of a foreign page's attempts, in a browser on the machine of the server."""
    with (
        intruding(api, deployment, f"touch {folder / 'ran'}") as (address, told),
        browsing(folder / "profile") as page,
    ):
        page.open(address)
        found = told.get(timeout=120)
    assert not (folder / "ran").exists()
    return found


class TestDoctor:
    @staticmethod
    def found() -> Diagnosis:
        (finding,) = [each for each in of_machine(PROJECT) if each.what == "Prefect's server"]
        return finding

    def test_who_has_the_password_is_well(self, as_client):
        assert self.found().state == "good"

    def test_who_has_it_not_is_told_where_it_is(self, as_client, monkeypatch):
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", "rsr:planted-1")
        assert "refuses that password (401)" in self.found().found
        monkeypatch.delenv("PREFECT_API_AUTH_STRING")
        finding = self.found()
        assert (finding.state, "without a password (401)" in finding.found) == ("bad", True)
        assert "$(cat .prefect/password)" in finding.remedy
        assert "planted" not in str(finding)

    def test_a_server_that_asks_for_none_is_worth_a_word(self, prefect_server, monkeypatch):
        monkeypatch.setenv("PREFECT_API_URL", prefect_server)
        monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)  # of servers that other tests prepared
        assert (self.found().state, "start it by `make serve`" in self.found().remedy) == ("note", True)


class TestPassword:
    def test_it_is_made_once_for_its_owner_alone(self, tmp_path):
        home = tmp_path / "home"
        words = password(home)
        assert len(words) > 30
        assert password(home) == words
        assert password(tmp_path / "other") != words
        assert stat.S_IMODE((home / "password").stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert [path.name for path in home.iterdir()] == ["password"]

    def test_one_that_others_may_have_read_is_refused(self, tmp_path):
        words = password(tmp_path)
        (tmp_path / "password").chmod(0o644)
        with pytest.raises(ConfigError, match="got mode 644, so that others may have read it") as caught:
            password(tmp_path)
        assert words not in str(caught.value)

    @pytest.mark.parametrize("words", ["", "short", "two words that are long enough"])
    def test_what_is_none_is_refused(self, tmp_path, words):
        password(tmp_path)
        (tmp_path / "password").write_text(words)
        with pytest.raises(ConfigError, match="got what is no password"):
            password(tmp_path)

    def test_a_server_that_listens_everywhere_has_to_say_its_name(self):
        with pytest.raises(ConfigError, match="expected the one name or address by which the server is called"):
            prepare("0.0.0.0", 4200)


@pytest.mark.slow
def test_the_embedded_server_of_a_loop_knows_nobody_but_the_loop(tmp_path):
    root = tmp_path / "workspace"
    command = [sys.executable, "-m", "loop_of", TABLE_NAME, "--workspace", str(root), "--iterations", "1"]
    begun = InTerminal(command, TOY_FAULT="tune@1:half:linger")
    begun.await_(lambda: begun.find("SIG_IGN"), "tuning")
    words = begun.find("uvicorn").cmdline()
    embedded = {"PREFECT_API_URL": f"http://127.0.0.1:{words[words.index('--port') + 1]}/api"}
    assert post(embedded, "/flow_runs/filter", b"{}", _JSON) == 401
    assert post(embedded, "/flow_runs/filter", b"{}", FOREIGN["a wrong password"]) == 401
    assert not [word for word in words if "rsr:" in word]
    connection = http.client.HTTPConnection(urlsplit(embedded["PREFECT_API_URL"]).netloc, timeout=30)
    connection.request("GET", "/api/health", headers={"Origin": "http://evil.example"})
    assert connection.getresponse().headers.get("Access-Control-Allow-Origin") is None
    connection.close()
    begun.find("SIG_IGN").kill()  # the step fails, and the loop, its events and its log tell the server
    assert begun.end() == 1
    with sqlite3.connect(root / ".prefect" / "prefect.db") as database:
        assert database.execute("select state_type from flow_run").fetchall() == [("FAILED",)]
        assert database.execute("select count(*) from events where event = 'prefect.flow-run.Failed'").fetchone() == (
            1,
        )
        assert database.execute("select name from log").fetchall() != []
    database.close()
