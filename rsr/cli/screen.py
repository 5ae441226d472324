"""What commands write: results to stdout, everything else to stderr."""

from __future__ import annotations

from rich.console import Console, RenderableType

from rsr.errors import RsrError


def show(what: RenderableType) -> None:
    """Show a table or a text with markup to a person."""
    Console().print(what, highlight=False, soft_wrap=isinstance(what, str))


def say(text: str) -> None:
    """Write text as it is, for people and machines alike: paths and JSON are neither wrapped nor coloured."""
    Console().out(text, highlight=False)


def hint(text: str) -> None:
    """Write beside the result, where it does not disturb a machine that reads the result."""
    Console(stderr=True).out(text, highlight=False)


def say_error(error: RsrError) -> None:
    console = Console(stderr=True)
    console.print(f"[bold red]{type(error).__name__}[/] ", end="")
    console.out(str(error), highlight=False)
