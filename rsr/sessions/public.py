"""Real recordings that research groups publish: where they are, under which licence, and how they become a session.

Files come from GitHub at a pinned commit, by https alone and within bounds of size and time. Each is compared with the
checksum that git itself keeps of it, and with ours where one is known; what is already there and matches is not fetched
again.
"""

from __future__ import annotations

import hashlib
import itertools
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from rsr.common import Advance, SessionError, chosen, ignore, parse_json, short, write_bytes
from rsr.sessions.importers import read_contactnets, read_double_pendulum
from rsr.sessions.model import Session
from rsr.sessions.storage import write_session

GITHUB_API = "https://api.github.com"
_AT_ONCE = 8
_SILENCE_S, _TIMEOUT_S = 30, 300
"""How long an answer may say nothing, and how long it may take."""
_LARGEST_FILE = 64 << 20
_MOST_FILES, _DEEPEST = 10_000, 8


@dataclass(frozen=True)
class PublicData:
    """One published set of recordings.

    Args:
        folder: of the repository; `suffix`: its files that are recordings.
        sha256: path in the folder -> checksum, where known.
        read: makes a session of the folder.
    """

    name: str
    title: str
    repository: str
    commit: str
    folder: str
    suffix: str
    licence: str
    read: Callable[[Path], Session]
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> str:
        return f"https://github.com/{self.repository}/tree/{self.commit}/{self.folder}"


PUBLIC_DATA = {
    data.name: data
    for data in (
        PublicData(
            name="contactnets",
            title="570 tosses of a cube onto a board, tracked at 148 Hz (scenario cube_toss)",
            repository="DAIRLab/contact-nets",
            commit="c3dc21c",
            folder="data/tosses_processed",
            suffix=".pt",
            licence="BSD-3-Clause, Copyright (c) 2020, Dynamic Autonomy and Intelligent Robotics Lab",
            read=read_contactnets,
            sha256={
                "1.pt": "1655ed451bc1fce33c3963ee2f70a50526f6b8c63d4a296566721fa8ddb2c243",
                "2.pt": "c857bb27be984e61f34a8f9225083ba7a0a9d64ae5d184b17041ba41a5802bcc",
                "3.pt": "1b50cbc3c4b63e888b180b37cb380c11efb8dc19dc698035b616d23974d22672",
            },
        ),
        PublicData(
            name="double-pendulum",
            title="excitation runs of a double pendulum with measured torque, 500 Hz (scenario double_pendulum)",
            repository="dfki-ric-underactuated-lab/double_pendulum",
            commit="1e8544e",
            folder="data/experiment_records/design_C.1/sys_id/20230629",
            suffix=".csv",
            licence="BSD-3-Clause, Copyright (c) 2022, DFKI RIC Underactuated Robotics Lab",
            read=read_double_pendulum,
        ),
    )
}
"""Name -> set, as `rsr data get NAME` knows it."""


def get_data(
    name: str, root: Path, source: Path | None = None, advance: Advance = ignore, api: str = GITHUB_API
) -> Path:
    """Store a published set of recordings as a session under `root` and return its folder.

    Args:
        root: where sessions are kept (`data/`); what is fetched goes to its hidden folder `.sources`.
        source: take the authors' files (or one parquet table of them) from here instead of fetching them.

    Raises:
        ConfigError: there is no set of this name.
        SessionError: no network, or a file that does not match its checksum.
    """
    data = public_data(name)
    folder = Path(source) if source is not None else fetch(data, Path(root) / ".sources" / name, advance, api)
    return write_session(Path(root), data.read(folder))


def public_data(name: str) -> PublicData:
    """Look a set up by its name."""
    own = "Choose one of these; for a set of your own, write it with `rsr.sessions.write_session`."
    return chosen(name, PUBLIC_DATA, "published set", "published recordings", own)


def fetch(data: PublicData, folder: Path, advance: Advance = ignore, api: str = GITHUB_API) -> Path:
    """Download a set's files to a folder; called again, it continues where it was interrupted."""
    try:
        commit = str(_get_json(data, api, f"{api}/repos/{data.repository}/commits/{data.commit}")["sha"])
        listed = list(itertools.islice(_list(data, api, commit, data.folder), _MOST_FILES))
    except (KeyError, TypeError, AttributeError) as error:
        raise _problem(
            data, f"an answer that cannot be understood ({type(error).__name__})", "GitHub's list"
        ) from error
    if not listed:
        raise _problem(data, f"no {data.suffix} files in {data.folder}", "the recordings")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        jobs = [pool.submit(_fetch_file, data, api, folder, entry) for entry in listed]
        for done, job in enumerate(jobs, 1):
            job.result()
            advance(done / len(jobs), f"{done} of {len(jobs)} files")
    return folder


def _list(data: PublicData, api: str, commit: str, path: str, depth: int = 0) -> Iterator[dict[str, str]]:
    """Find the recordings in a folder of the repository, and in the folders in it."""
    for entry in _get_json(data, api, f"{api}/repos/{data.repository}/contents/{path}?ref={commit}"):
        if entry["type"] == "dir" and depth < _DEEPEST:
            yield from _list(data, api, commit, entry["path"], depth + 1)
        elif entry["type"] == "file" and entry["name"].endswith(data.suffix):
            yield {key: str(entry[key]) for key in ("path", "sha", "download_url")}


def _fetch_file(data: PublicData, api: str, folder: Path, entry: Mapping[str, str]) -> None:
    place = PurePosixPath(entry["path"])
    if not place.is_relative_to(data.folder) or ".." in place.parts:
        raise _problem(data, f"a file outside its folder: {entry['path']}", f"files in {data.folder}")
    relative = place.relative_to(data.folder)
    path = folder / relative
    if path.is_file() and _git_sum(path.read_bytes()) == entry["sha"]:
        return
    content = _get(data, api, entry["download_url"])
    known = data.sha256.get(str(relative))
    if _git_sum(content) != entry["sha"] or (known and hashlib.sha256(content).hexdigest() != known):
        raise _problem(data, f"{entry['path']}, with bytes that do not match their checksum", "the published file")
    write_bytes(path, content)


def _git_sum(content: bytes) -> str:
    """The name git gives a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _get_json(data: PublicData, api: str, url: str) -> Any:
    content = _get(data, api, url)
    try:
        return parse_json(content)
    except ValueError as error:
        raise _problem(data, f"an answer from {url} that is no JSON", "GitHub's list of files") from error


def _get(data: PublicData, api: str, url: str) -> bytes:
    _check_url(data, api, url)
    request = urllib.request.Request(url, headers={"User-Agent": "rsr"})
    try:
        with urllib.request.build_opener(_Redirects(data, api)).open(request, timeout=_SILENCE_S) as answer:
            return _read(data, url, answer)
    except urllib.error.HTTPError as error:
        with error:
            raise _problem(data, f"answer {error.code} ({error.reason}) from {url}", "the published files") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise _problem(data, f"no connection to {url.split('/')[2]} ({reason})", "a network") from error


def _read(data: PublicData, url: str, answer: Any) -> bytes:
    """Read an answer piece by piece: neither its size nor its pace is ours."""
    content, until_s = bytearray(), time.monotonic() + _TIMEOUT_S
    while piece := answer.read1(1 << 16):
        content += piece
        if len(content) > _LARGEST_FILE or time.monotonic() > until_s:
            got = f"an answer from {url} of more than {_LARGEST_FILE >> 20} MB or {_TIMEOUT_S} s"
            raise _problem(data, got, "the published file")
    return bytes(content)


def _check_url(data: PublicData, api: str, url: str) -> None:
    """Refuse what is not fetched by https, or from the very server that the caller named."""
    wanted, named = urlsplit(url), urlsplit(api)
    if wanted.scheme != "https" and (wanted.scheme, wanted.netloc) != (named.scheme, named.netloc):
        raise _problem(data, f"the address {short(url)}", "an https address")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow an answer that leads elsewhere only by https."""

    def __init__(self, data: PublicData, api: str) -> None:
        self._data, self._api = data, api

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_url(self._data, self._api, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _problem(data: PublicData, got: str, expected: str) -> SessionError:
    return SessionError(
        got=got,
        expected=expected,
        where=f"published recordings '{data.name}'",
        next_step=f"Try again later (what is here already is kept), or get {data.page} by other means and name the "
        "folder as the source.",
    )
