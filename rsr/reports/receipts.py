"""Section: from what each result was made, by which code, with which seed, in what time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from rsr.reports._html import Section, absent, folded, join, paragraph, table
from rsr.reports._text import ABSENT, seconds
from rsr.reports.data import ReportData

Receipt = Mapping[str, Any]


def receipts(data: ReportData) -> Section:
    title = "Receipts"
    if not data.receipts:
        return Section("receipts", title, absent("receipts", "None lie in receipts/ of this iteration."))
    header = ["step", "verdict", "code", "seed", "started", "duration", "inputs"]
    overview = table(header, [_row(receipt) for receipt in data.receipts], text=(0, 1, 2, 3, 4))
    note = paragraph("The receipt of the report itself is written after it and lies beside the others.")
    versions, hashes = (folded(name, body) for name, body in (("Versions", _versions(data)), ("Hashes", _hashes(data))))
    return Section("receipts", title, join([overview, versions, hashes, note]))


def _row(receipt: Receipt) -> list[str | Markup]:
    return [
        str(receipt.get("step", ABSENT)),
        str(receipt.get("verdict", ABSENT)),
        Markup("<code>{}</code>").format(receipt.get("code", ABSENT)),
        str(receipt.get("seed", ABSENT)),
        str(receipt.get("started_at") or ABSENT).replace("T", " ").removesuffix("+00:00"),
        seconds(receipt.get("duration_s")),
        str(len(receipt.get("inputs", {}))),
    ]


def _versions(data: ReportData) -> Markup:
    """One column for each different set of versions, headed by the steps that ran with it."""
    sets: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for receipt in data.receipts:
        sets.setdefault(tuple(sorted(receipt.get("versions", {}).items())), []).append(str(receipt.get("step")))
    names = sorted({name for versions in sets for name, _ in versions})
    rows = [[name, *(dict(versions).get(name, ABSENT) for versions in sets)] for name in names]
    return table(["package", *(", ".join(steps) for steps in sets.values())], rows)


def _hashes(data: ReportData) -> Markup:
    rows = [
        [str(receipt.get("step")), kind, path, Markup("<code>{}</code>").format(sha256)]
        for receipt in data.receipts
        for kind, key in (("read", "inputs"), ("wrote", "outputs"))
        for path, sha256 in receipt.get(key, {}).items()
    ]
    return table(["step", "", "path", "SHA-256 (of a folder: of its files' names and hashes)"], rows, text=(0, 1, 2, 3))
