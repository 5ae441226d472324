"""PACE: a torch file with the tensors `time` [N], `dof_pos` and `des_dof_pos` [N, J], in s and rad.

The file does not name the joints: their order is that of the robot's configuration, and is asked for. Its simulator
steps once a row. Tensors are read with torch's restricted unpickler, which makes nothing but tensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rsr.sessions.importers.recording import Format, Recording, Samples, Stream, check_size, held_recording, unreadable

_EXPECTED = "a torch file of tensors time [N], dof_pos [N, J], des_dof_pos [N, J]"
_UNITS = {"dof_pos": "rad", "des_dof_pos": "rad", "dof_vel": "rad/s", "dof_torque": "N m"}
_LARGEST = 1 << 30


def open_pace(path: Path) -> Recording:
    """Open a `.pt` file of PACE."""
    tensors = _tensors(path)
    stamps_s = tensors["time"].reshape(-1)
    streams = []
    for name, unit in _UNITS.items():
        if name in tensors:
            columns = tuple(str(index) for index in range(tensors[name].shape[1]))
            rows = Samples(stamps_s, tensors[name])
            streams.append(Stream(name, columns, rows, False, dict.fromkeys(columns, unit), ("time",)))
    return held_recording("pace", path, path.stem, streams)


def _tensors(path: Path) -> dict[str, np.ndarray]:
    import torch  # here: it takes seconds to load

    if path.stat().st_size > _LARGEST:
        raise unreadable(path, f"{path.stat().st_size} bytes", f"at most {_LARGEST}")
    document: Any = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(document, dict) or not {"time", "dof_pos", "des_dof_pos"} <= set(document):
        raise unreadable(path, f"a {type(document).__name__} without these tensors", _EXPECTED)
    found = {}
    for name in ("time", *_UNITS):
        tensor = document.get(name)
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor) or tensor.is_sparse or tensor.is_complex():
            raise unreadable(path, f"{name} that is no dense tensor of numbers", _EXPECTED)
        check_size(path, tensor.shape[0] if tensor.ndim else 0, int(np.prod(tensor.shape[1:], dtype=object)))
        found[name] = tensor.double().numpy().reshape(tensor.shape[0], -1)
    if len({len(values) for values in found.values()}) != 1 or found["time"].shape[1] != 1:
        raise unreadable(path, "tensors of different lengths", _EXPECTED)
    return found


FORMAT = Format("pace", _EXPECTED, lambda path: path.suffix.lower() == ".pt", open_pace)
