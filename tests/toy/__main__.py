"""`python -m toy step NAME --iteration K`, which dvc.yaml calls, and `python -m toy loop ...`, which runs the flow."""

import argparse
import sys
from pathlib import Path

from rsr.progress import ignore
from rsr.steps import run_step
from rsr.workspace import Workspace
from toy import TABLE, TABLE_NAME

if sys.argv[1] == "loop":
    from flows._command import main

    raise SystemExit(main(sys.argv[2:], TABLE_NAME))

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["step"])
parser.add_argument("name")
parser.add_argument("--iteration", type=int, required=True)
chosen = parser.parse_args()
run_step(Workspace.find(Path.cwd()), chosen.name, chosen.iteration, ignore, TABLE)
