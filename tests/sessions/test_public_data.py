"""Published recordings are fetched, compared with checksums and stored; without network the error says what to do.

The server is a real one, on this machine, that answers as GitHub does.
"""

import hashlib
import io
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from test_contactnets_import import toss

from rsr.common.errors import ConfigError, SessionError
from rsr.sessions import public, read_session
from rsr.sessions.public import PUBLIC_DATA, fetch, get_data

COMMIT = "c3dc21c" + "0" * 33
FOLDER = "data/tosses_processed"


def tensor(number: int) -> bytes:
    buffer = io.BytesIO()
    torch.save(toss(height=3 + 0.1 * number), buffer)
    return buffer.getvalue()


class GitHub(ThreadingHTTPServer):
    """Serves a repository with three tosses, one of them in a folder of its own, and counts what is asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files = {f"{FOLDER}/{name}.pt": tensor(i) for i, name in enumerate(("7", "8", "more/9"))}
        self.served = dict(self.files)
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self._content()
        self.send_response(200 if content is not None else 404)
        self.end_headers()
        self.wfile.write(content or b"")

    def _content(self) -> bytes | None:
        repository = "/repos/DAIRLab/contact-nets"
        if self.path == f"{repository}/commits/c3dc21c":
            return json.dumps({"sha": COMMIT}).encode()
        if self.path.startswith(f"{repository}/contents/") and self.path.endswith(f"?ref={COMMIT}"):
            return json.dumps(self._listed(self.path.split("/contents/")[1].split("?")[0])).encode()
        return self.server.served.get(self.path.removeprefix("/raw/"))

    def _listed(self, folder: str) -> list[dict]:
        inside = [path for path in self.server.files if path.startswith(f"{folder}/")]
        names = {path.removeprefix(f"{folder}/").split("/")[0] for path in inside}
        return [self._entry(f"{folder}/{name}") for name in sorted(names)]

    def _entry(self, path: str) -> dict:
        content = self.server.files.get(path)
        if content is None:
            return {"type": "dir", "name": path.split("/")[-1], "path": path}
        sha = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        url = f"{self.server.address}/raw/{path}"
        return {"type": "file", "name": path.split("/")[-1], "path": path, "sha": sha, "download_url": url}

    def log_message(self, *_: object) -> None:
        """Tests are silent."""


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_data_are_fetched_checked_and_stored(tmp_path, github):
    github.files.pop(f"{FOLDER}/more/9.pt")
    folder = get_data("contactnets", tmp_path, api=github.address)
    session = read_session(folder)
    assert folder == tmp_path / "cube_toss" / "contactnets"
    assert [e.tags["toss"] for e in session.episodes] == ["7", "8"]


def test_fetching_again_asks_only_for_the_list(tmp_path, github):
    fetch(PUBLIC_DATA["contactnets"], tmp_path, api=github.address)
    assert sorted(path.name for path in tmp_path.rglob("*.pt")) == ["7.pt", "8.pt", "9.pt"]
    (tmp_path / "8.pt").write_bytes(b"cut")
    github.asked.clear()
    fetch(PUBLIC_DATA["contactnets"], tmp_path, api=github.address)
    assert [path for path in github.asked if path.startswith("/raw/")] == [f"/raw/{FOLDER}/8.pt"]
    assert (tmp_path / "8.pt").read_bytes() == github.files[f"{FOLDER}/8.pt"]


def test_altered_bytes_are_refused(tmp_path, github):
    github.served[f"{FOLDER}/7.pt"] = b"something else"
    with pytest.raises(SessionError, match=f"got {FOLDER}/7.pt, with bytes that do not match their checksum"):
        get_data("contactnets", tmp_path, api=github.address)
    assert not (tmp_path / "cube_toss").exists()


def test_our_own_checksums_are_compared_too(tmp_path, github):
    ours = replace(PUBLIC_DATA["contactnets"], sha256={"8.pt": "0" * 64})
    with pytest.raises(SessionError, match="8.pt, with bytes that do not match"):
        fetch(ours, tmp_path, api=github.address)


def test_a_missing_file_is_named(tmp_path, github):
    github.served.pop(f"{FOLDER}/7.pt")
    with pytest.raises(SessionError, match="got answer 404"):
        get_data("contactnets", tmp_path, api=github.address)


@pytest.mark.parametrize("address", ["http://example.org/7.pt", "ftp://example.org/7.pt", "file:///etc/passwd", "x"])
def test_a_list_that_names_anything_but_https_is_refused_unasked(tmp_path, github, address):
    api, github.address = github.address, address
    with pytest.raises(SessionError, match=r"got the address .*; expected an https address"):
        fetch(PUBLIC_DATA["contactnets"], tmp_path, api=api)
    assert list(tmp_path.rglob("*.pt")) == []


def test_an_answer_that_leads_elsewhere_is_not_followed(tmp_path, github, monkeypatch):
    monkeypatch.setattr(_Answer, "do_GET", _elsewhere)
    with pytest.raises(SessionError, match="got the address 'ftp://example.org/x'; expected an https address"):
        fetch(PUBLIC_DATA["contactnets"], tmp_path, api=github.address)


def _elsewhere(answer: _Answer) -> None:
    answer.send_response(302)
    answer.send_header("Location", "ftp://example.org/x")
    answer.end_headers()


def test_an_answer_without_end_is_cut_off(tmp_path, github, monkeypatch):
    monkeypatch.setattr(public, "_LARGEST_FILE", 100_000)
    github.served[f"{FOLDER}/7.pt"] = bytes(1 << 20)
    with pytest.raises(SessionError, match="7.pt of more than 0 MB or 300 s"):
        fetch(PUBLIC_DATA["contactnets"], tmp_path, api=github.address)


def test_without_network_the_error_says_what_to_do(tmp_path):
    """Tests have no network: this is the real thing."""
    with pytest.raises(SessionError) as caught:
        get_data("double-pendulum", tmp_path)
    assert "published recordings 'double-pendulum': got no connection to api.github.com" in str(caught.value)
    assert PUBLIC_DATA["double-pendulum"].page in caught.value.next_step
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_already_there(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "0.pt").write_bytes(tensor(0))
    folder = get_data("contactnets", tmp_path / "data", source)
    assert len(read_session(folder).episodes) == 1


def test_an_unknown_name():
    with pytest.raises(
        ConfigError, match="got published set 'contactnet'; expected one of contactnets, double-pendulum"
    ):
        public.public_data("contactnet")
