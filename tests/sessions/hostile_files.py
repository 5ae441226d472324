"""Recordings as nobody should send them, made by their names; each runs code, fills the disk, leads out, or lies."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MB = 1 << 20
CARD, INFO, SUMS = "meta/rsr_card.json", "meta/info.json", "meta/rsr_checksums.json"


class Trap:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self):
        return (Path.touch, (self.sprung,))


def pickled(folder: Path, sprung: Path) -> Path:
    (folder / "notes.pkl").write_bytes(pickle.dumps(Trap(sprung)))
    return folder


def pickled_under_another_name(folder: Path, sprung: Path) -> Path:
    (folder / "camera.raw").write_bytes(pickle.dumps(Trap(sprung)))
    return folder


def objects_in_arrays(folder: Path, sprung: Path) -> Path:
    np.savez(folder / "extra.npz", time=np.arange(3.0), notes=np.array([Trap(sprung)], dtype=object), allow_pickle=True)
    return folder


def torch_with_code(folder: Path, sprung: Path) -> Path:
    import torch

    torch.save({"time": torch.zeros(3), "notes": Trap(sprung)}, folder / "extra.pt")
    return folder


def sparse(folder: Path, sprung: Path) -> Path:
    with (folder / "camera.raw").open("wb") as file:
        file.truncate(2 << 30)
    return folder


def huge_header(folder: Path, sprung: Path) -> Path:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 36, 4)})
    with zipfile.ZipFile(folder / "extra.npz", "w") as archive:
        archive.writestr("joint.npy", header.getvalue())
    return folder


def packed_array(folder: Path, sprung: Path) -> Path:
    np.savez_compressed(folder / "extra.npz", zeros=np.zeros(30 * MB // 8))
    return folder


def packed_table(folder: Path, sprung: Path) -> Path:
    column = pa.chunked_array([pa.array(np.zeros(MB))] * 4)
    pq.write_table(pa.table({"zeros": column}), folder / "extra.parquet")
    return folder


def link_outside(folder: Path, sprung: Path) -> Path:
    (folder / "passwords").symlink_to("/etc/passwd")
    return folder


def pipe(folder: Path, sprung: Path) -> Path:
    os.mkfifo(folder / "endless")
    return folder


UNSAFE: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "pickle": (pickled, "'notes.pkl': a pickle, which may run code when it is read"),
    "pickle under another name": (pickled_under_another_name, "'camera.raw': a pickle"),
    "objects in an npz": (objects_in_arrays, "'extra.npz': array 'notes' of Python objects, which is a pickle"),
    "torch file with code": (torch_with_code, "'extra.pt': a torch file that holds more than tensors"),
    "sparse 2 GB": (sparse, "2,048 MB or more when read, up to 'camera.raw'"),
    "huge npz header": (huge_header, "2,097,152 MB or more when read, up to 'extra.npz'"),
    "packed array": (packed_array, "30 MB or more when read, up to 'extra.npz'"),
    "packed table": (packed_table, "32 MB or more when read, up to 'extra.parquet'"),
    "link outside": (link_outside, "a link 'passwords' that leads out, to /etc/passwd"),
    "pipe": (pipe, "'endless', which is no file"),
}
"""Name -> what to add to a folder, and the words by which it is refused where 16 MB are allowed."""
ALLOWED_MB = 16


def flipped(session: Path) -> None:
    """One bit of the data, as a bad disk would."""
    file = next((session / "data").rglob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _retold(session: Path, name: str, change: Callable[[dict], None]) -> None:
    """Change a document and its checksum with it: a lie, not damage."""
    document = json.loads((session / name).read_text())
    change(document)
    (session / name).write_text(json.dumps(document))
    sums = json.loads((session / SUMS).read_text())
    sums["files"][name] = hashlib.sha256((session / name).read_bytes()).hexdigest()
    (session / SUMS).write_text(json.dumps(sums))


def _narrowed(document: dict) -> None:
    document["channels"][0]["columns"].pop()


LIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "flipped bit": (flipped, "bytes that do not match their checksum"),
    "hashes": (
        lambda s: _write(s / SUMS, {"files": {CARD: "0" * 64}}),
        "bytes that do not match their checksum",
    ),
    "widths": (lambda s: _retold(s, CARD, _narrowed), "columns where the card says"),
    "robot": (lambda s: _retold(s, CARD, lambda d: d["card"].update(robot="another arm")), "robot_type"),
    "time step": (lambda s: _retold(s, CARD, lambda d: d["card"].update(control_dt_s=0.04)), "fps"),
    "episodes": (lambda s: _retold(s, INFO, lambda d: d.update(total_episodes=96)), "total_episodes 96"),
    "no episodes told": (lambda s: _retold(s, INFO, lambda d: d.pop("total_episodes")), "total_episodes None"),
}
"""Name -> what to do to a stored session, and the words by which it is refused."""


def _write(path: Path, document: dict) -> None:
    path.write_text(json.dumps(document))


def zip_with(path: Path, name: str, content: bytes = b"time_s,x\n0,1\n", mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, content)
    return path


def tar_with(path: Path, name: str, **changes: object) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        content = b"time_s,x\n0,1\n"
        info.size = len(content)
        for key, value in changes.items():
            setattr(info, key, value)
        archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return path


def lying_tar(path: Path) -> Path:
    """A member whose long name is said to have 2 GB: tarfile would read all of it at once."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2 << 30
    with tarfile.open(path, "w:gz") as archive:
        archive.fileobj.write(info.tobuf(tarfile.GNU_FORMAT))  # type: ignore[union-attr]
        for _ in range(8):
            archive.fileobj.write(bytes(MB))  # type: ignore[union-attr]
    return path


ARCHIVES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "zip upwards": (lambda f: zip_with(f / "a.zip", "../evil.csv"), "member '../evil.csv', which leads out"),
    "zip upwards, Windows": (lambda f: zip_with(f / "a.zip", "..\\evil.csv"), "which leads out"),
    "zip absolute": (lambda f: zip_with(f / "a.zip", "/tmp/evil.csv"), "member '/tmp/evil.csv', which leads out"),
    "zip link": (lambda f: zip_with(f / "a.zip", "x", b"/etc/passwd", 0o120777), "member 'x', a link or a device"),
    "zip bomb": (lambda f: zip_with(f / "a.zip", "x.csv", bytes(20 * MB)), "20 MB or more when read, up to 'x.csv'"),
    "tar upwards": (lambda f: tar_with(f / "a.tar.gz", "a/../../evil.csv"), "which leads out"),
    "tar absolute": (lambda f: tar_with(f / "a.tgz", "/tmp/evil.csv"), "which leads out"),
    "tar link": (
        lambda f: tar_with(f / "a.tar.gz", "x", type=tarfile.SYMTYPE, linkname="/etc"),
        "member 'x', a link or a device",
    ),
    "tar hard link": (
        lambda f: tar_with(f / "a.tar.gz", "x", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        "member 'x', a link or a device",
    ),
    "tar header of 2 GB": (lambda f: lying_tar(f / "a.tar.gz"), "a header of 2147483648 bytes"),
    "pickle in a zip": (lambda f: zip_with(f / "a.zip", "x.pkl", pickle.dumps([1])), "'x.pkl': a pickle"),
}
"""Name -> an archive in a folder, and the words by which it is refused where 16 MB are allowed."""


def packed(session: Path, target: Path) -> Path:
    """An honest archive of a folder."""
    formats = {".zip": "zip", ".gz": "gztar", ".tar": "tar"}
    made = shutil.make_archive(str(target.parent / "made"), formats[target.suffix], session.parent, session.name)
    return Path(made).rename(target)
