"""Folders that are filled over several runs, and the card in each that says what it is being filled with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rsr.errors import WorkspaceError
from rsr.files import DAMAGED, read_json, write_json

NAME = "card.json"


def claim(folder: Path, card: Mapping[str, Any], contents: str, command: str) -> None:
    """Write the card, or see that the one that is there says the same.

    Keys that end with `_sha256` sum up others and are not compared.

    Args:
        contents: what the folder holds, e.g. "strikes". command: which one fills it, e.g. "rsr clash data".
    """
    path = folder / NAME
    if not path.exists():
        write_json(path, card)
        return
    try:
        there = read_json(path)
    except DAMAGED as error:
        raise refused(folder, f"a {NAME} that cannot be read: {error}", f"that of these {contents}", command) from error
    other = [key for key in card if card[key] != there.get(key) and not key.endswith("_sha256")]
    if other:
        raise refused(
            folder, f"{contents} with another {', '.join(other)}", "those that were asked for, or none", command
        )


def refused(folder: Path, got: str, expected: str, command: str) -> WorkspaceError:
    """Say what is wrong with the folder, and that filling it anew would help."""
    next_step = f"Name another folder, or remove this one and run `{command}` again."
    return WorkspaceError(got=got, expected=expected, where=str(folder), next_step=next_step)
