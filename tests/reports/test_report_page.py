"""The page of an iteration: complete, self-contained, escaped, the same each time, and standing without its pieces."""

from __future__ import annotations

import base64
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import pytest

from rsr.common.errors import ConfigError
from rsr.common.files import read_arrays, read_json, write_arrays, write_json
from rsr.common.progress import ignore
from rsr.pipelines.loop.stages import report
from rsr.reports._drawing import AFTER, BEFORE
from rsr.reports.calibration import parameters
from rsr.reports.data import read_report_data
from rsr.reports.divergence import infogap
from rsr.reports.page import SECTIONS, receipts, render_report, summary
from rsr.reports.success import learning
from rsr.reports.trajectories import coverage, trajectories
from rsr.workspace import Workspace

VOID = {"meta", "img", "br", "link"}


class Page(HTMLParser):
    """Collects what a page consists of, and checks that its elements close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def values(self, tag: str, name: str) -> list[str]:
        return [value for each, key, value in self.attributes if (each, key) == (tag, name)]


@pytest.fixture(scope="module")
def page(finished) -> Page:
    return Page(render_report(finished, 2))


def test_all_sections_are_rendered_with_their_pictures(page):
    assert page.values("section", "id") == [
        "summary", "trajectories", "parameters", "divergence", "success", "learning", "coverage", "infogap",
        "calibration", "receipts", "links",
    ]  # fmt: skip
    assert len(page.values("section", "id")) == len(SECTIONS)
    assert len(page.values("img", "src")) == 12
    assert "Not shown" not in page.text


def test_page_loads_nothing_from_elsewhere(page):
    sources = [value for _, name, value in page.attributes if name in ("src", "srcset", "poster", "data")]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not page.values("link", "href")
    assert not [tag for tag, _, _ in page.attributes if tag in ("script", "iframe", "object", "embed")]
    assert "url(" not in page.text
    assert "@import" not in page.text
    assert [href for href in page.values("a", "href") if urlparse(href).scheme] == []


def test_pictures_are_described_and_refer_to_nothing_outside(page):
    assert all(page.values("img", "alt"))
    for source in page.values("img", "src"):
        svg = base64.b64decode(source.split(",", 1)[1]).decode()
        links = re.findall(r'xlink:href="([^"]*)"', svg)
        assert all(link.startswith(("#", "data:")) for link in links)
        assert "url(http" not in svg


def test_simulated_paths_are_broken_where_the_simulation_was_put_back(page):
    (source,) = [
        source
        for alt, source in zip(page.values("img", "alt"), page.values("img", "src"), strict=True)
        if alt.startswith("block_position of held-out episodes")
    ]
    svg = base64.b64decode(source.split(",", 1)[1]).decode()
    paths = re.findall(r'<path d="([^"]*)"[^>]*stroke: (#\w+); stroke-width: 1.3', svg)
    assert {colour for _, colour in paths} == {BEFORE, AFTER}
    assert {path.count("M") for path, _ in paths if path.count("L") > 5} == {3}  # others are in the legend


def test_links_lead_to_files_of_the_workspace(finished, page):
    folder = finished.report_path(2).parent
    targets = [href for href in page.values("a", "href") if not href.startswith("#")]
    absent = [target for target in targets if not (folder / target).exists()]
    assert len(targets) == 10
    assert absent == ["../001/report.html"]  # the fixture leaves reports out


def test_headings_of_the_contents_are_there(page):
    assert {href for href in page.values("a", "href") if href.startswith("#")} == {
        f"#{anchor}" for anchor in page.values("section", "id")
    }


def test_verdict_and_figures_are_those_of_metrics(page):
    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    assert "predicts held-out episodes to 9.0 mm (20.0 mm before tuning, 2.2 times as much)." in text
    assert "67 % of the episodes on the stand-in for reality and in 83 % in its own simulator: 16 points short" in text


def test_what_was_simulated_is_called_simulated(page):
    assert "Nothing on this page comes from a physical robot." in " ".join(page.text.split())
    assert page.text.count("recorded on the stand-in for reality") >= 5
    assert "on the reality" not in page.text


@pytest.mark.slow
def test_equal_files_give_an_equal_page(finished):
    assert render_report(finished, 2) == render_report(finished, 2)


def test_only_durations_tell_two_runs_apart(workspace):
    first = render_report(workspace, 1)
    path = workspace.receipts_dir(1) / "tune.json"
    write_json(path, {**read_json(path), "duration_s": 54.321, "started_at": "2026-01-02T03:01:59+00:00"})
    changed = [
        (a, b) for a, b in zip(first.splitlines(), render_report(workspace, 1).splitlines(), strict=True) if a != b
    ]
    assert len(changed) == 2
    assert "03:01:59" in changed[0][1]
    assert "54.3 s" in changed[1][1]


def test_text_from_files_is_escaped(workspace):
    path = workspace.receipts_dir(1) / "tune.json"
    receipt = read_json(path)
    hostile = '"><script>alert(1)</script>'
    write_json(path, {**receipt, "verdict": hostile, "code": hostile, "inputs": {hostile: "0" * 64}})
    text = render_report(workspace, 1)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)") == 3
    Page(text)


PIECES = {
    "calibration/trajectories.npz": (trajectories, "held-out episodes replayed open loop"),
    "calibration/calibration.json": (parameters, "parameters"),
    "evaluation/rollouts.npz": (coverage, "coverage"),
    "evaluation/metrics.json": (summary, "key figures"),
    "infogap/infogap.json": (infogap, "figures of the InfoGap term"),
    "policy/curve.json": (learning, "learning curve"),
}


@pytest.mark.parametrize("name", PIECES)
def test_missing_piece_is_said_to_be_missing(workspace, name):
    section, what = PIECES[name]
    (workspace.iteration_dir(1) / name).unlink()
    text = Page(section(read_report_data(workspace, 1)).body).text
    assert f"Not shown: {what}. iterations/001/{name.split('/')[0]}" in text
    assert "no such file" in text.lower()


@pytest.mark.parametrize("name", PIECES)
def test_damaged_piece_is_said_to_be_damaged(workspace, name):
    section, what = PIECES[name]
    (workspace.iteration_dir(1) / name).write_bytes(b"\x00 half of it")
    text = Page(section(read_report_data(workspace, 1)).body).text
    assert f"Not shown: {what}. iterations/001/{name.split('/')[0]}" in text
    assert "no such file" not in text.lower()


@pytest.mark.parametrize("name", [name for name in PIECES if name.endswith(".json")])
def test_json_of_another_form_is_damage_too(workspace, name):
    section, what = PIECES[name]
    (workspace.iteration_dir(1) / name).write_text('["something else"]')
    assert f"Not shown: {what}." in section(read_report_data(workspace, 1)).body


def test_missing_receipts_are_said_to_be_missing(workspace):
    shutil.rmtree(workspace.receipts_dir(1))
    assert "Not shown: receipts." in receipts(read_report_data(workspace, 1)).body


def test_lacking_array_is_named(workspace):
    path = workspace.evaluation_dir(1) / "rollouts.npz"
    arrays = read_arrays(path)
    del arrays["tuned.figure.distance"]
    write_arrays(path, arrays)
    assert "ValueError: no array tuned.figure.distance" in coverage(read_report_data(workspace, 1)).body


def test_session_that_is_gone_leaves_the_rest(workspace):
    shutil.rmtree(workspace.session_dir(1))
    page = Page(render_report(workspace, 1))
    assert "Not shown" not in page.text
    assert "stand-in for reality" in page.text


def test_everything_missing_is_still_a_page(workspace):
    for name in ("calibration", "evaluation", "infogap", "policy", "receipts"):
        shutil.rmtree(workspace.iteration_dir(1) / name)
    page = Page(render_report(workspace, 1))
    assert "Nothing has been evaluated yet." in page.text
    assert page.text.count("Not shown") >= len(SECTIONS) - 2


def test_unplanned_iteration_is_refused(workspace):
    with pytest.raises(ConfigError) as caught:
        render_report(workspace, 7)
    assert str(caught.value) == (
        f"{workspace.chain_path}: got iteration 7; expected one of 1. Choose one of the chain; `rsr status` shows it."
    )


def test_step_writes_the_page(finished: Workspace, tmp_path: Path):
    copy = Workspace(Path(shutil.copytree(finished.root, tmp_path / "copy")))
    seen: list[float] = []
    report(copy, 2, lambda fraction, words: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    text = copy.report_path(2).read_text()
    assert text == render_report(finished, 2)
    report(copy, 2, ignore)
    assert copy.report_path(2).read_text() == text
