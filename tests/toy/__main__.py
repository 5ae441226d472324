"""`python -m toy step NAME --iteration K`, which dvc.yaml calls. The whole loop: `python -m loop_of toy:TABLE`."""

import argparse
from pathlib import Path

from rsr.common.progress import ignore
from rsr.pipelines import run_step
from rsr.workspace import Workspace
from toy import TABLE

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["step"])
parser.add_argument("name")
parser.add_argument("--iteration", type=int, required=True)
chosen = parser.parse_args()
run_step(Workspace.find(Path.cwd()), chosen.name, chosen.iteration, ignore, TABLE)
