"""The command `rsr`. A command is a plain function whose signature and docstring are its options and its help.

Commands import what they need when they run, so that `rsr status` and `rsr --help` do not wait for MuJoCo and torch.
This room may import every other one; nothing imports it.
"""

from rsr.cli.app import main

__all__ = ["main"]
