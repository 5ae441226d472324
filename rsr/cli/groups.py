"""How functions become commands: collected first and called later, alone or in a group such as `rsr clash`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Union

import tyro


def later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """Let tyro only collect the options: it would show a ValueError raised within a command as wrong usage."""

    @functools.wraps(command)
    def collect(*positional: object, **options: object) -> Callable[[], int]:
        return functools.partial(command, *positional, **options)

    return collect


def group(name: str, title: str, commands: Sequence[Callable[..., int]]) -> Callable[..., int]:
    """Make one command of several, which are named as their functions are."""
    choices = tuple(
        Annotated[Any, tyro.conf.subcommand(command.__name__, prefix_name=False, constructor=later(command))]
        for command in commands
    )

    def run(command: Callable[[], int]) -> int:
        return command()

    run.__name__, run.__doc__ = name, title
    run.__annotations__["command"] = Annotated[Union[choices], tyro.conf.OmitArgPrefixes]  # noqa: UP007 - made at run time
    return run
