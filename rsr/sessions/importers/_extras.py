"""Libraries that only some formats need: imported when asked for, and named with the extra that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from rsr.errors import ConfigError


def library(name: str, extra: str, title: str) -> Any:
    """Import a library, or say what to install.

    Args:
        title: what it is needed for.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            got=f"no library '{name.partition('.')[0]}'",
            expected=f"it, to read {title}",
            where="installation",
            next_step=f'Install the extra: pip install "rsr[{extra}]"',
        ) from error
