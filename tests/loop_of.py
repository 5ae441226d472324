"""`python -m loop_of TABLE ...`: the command of the loop with other steps, which heeds a signal as soon.

A new campaign begins with push_cube, unless another scenario is named.
"""

import sys

from rsr_flows._supervisor import supervised

table, *options = sys.argv[1:]
if "--scenario" not in options:
    options += ["--scenario", "push_cube"]
raise SystemExit(supervised("rsr_flows._command:main", options, table))
