"""`--version` of the three commands."""

from importlib import metadata

import pytest

from rsr.cli import main
from rsr_flows import _command, serve

LINE = f"rsr {metadata.version('rsr')}\n"


def test_rsr_says_its_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == LINE


@pytest.mark.parametrize("command", [_command.main, serve.main], ids=["rsr-loop", "rsr-serve"])
def test_the_commands_that_run_on_say_it_too(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        command(["--version"])
    assert capsys.readouterr().out == LINE
