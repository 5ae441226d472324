"""Libraries that only some work needs: imported when asked for, and named with the extra that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from rsr.errors import ConfigError


def library(name: str, extra: str, purpose: str) -> Any:
    """Import a library, or say what to install.

    Args:
        purpose: what it is needed for, such as "to read HDF5 files".
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            got=f"no library '{name.partition('.')[0]}'",
            expected=f"it, {purpose}",
            where="installation",
            next_step=f'Install the extra: pip install "rsr[{extra}]"',
        ) from error
