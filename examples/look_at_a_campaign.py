"""Look at a campaign's workspace: its iterations, the parameters over them, the report's figures.

    python examples/look_at_a_campaign.py demo     # after `make demo`

Pictures go to the folder that it is run in.
"""

# %% Open the workspace
import sys
from pathlib import Path

import rsr
from rsr.reports import chain_table, render_report, save_loop_figure

workspace = rsr.Workspace.at(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
scenario = rsr.load_scenario(workspace.settings().scenario)
iterations = [row["iteration"] for row in workspace.rows()]

# %% One line an iteration: divergence, gap, success
from rich.console import Console  # noqa: E402

Console().print(chain_table(workspace.rows()))

# %% Parameters over the iterations, each with its 95 % interval
fits = {number: rsr.Fit.load(workspace.calibration_dir(number), scenario) for number in iterations}
for name in scenario.space.names:
    values = [f"{fit.values[name]:.3g} ({fit.verdicts[name]})" for fit in fits.values()]
    print(f"{name:>24}: {', '.join(values)} {scenario.space[name].unit}")

# %% The last iteration as a table, and its warnings
last = iterations[-1]
print(fits[last])

# %% All iterations in one picture; the last one's parameters; its report, one page
save_loop_figure(workspace, Path("loop.png"))
fits[last].plot().savefig("parameters.png")
Path("report.html").write_text(render_report(workspace, last))

# %% A recording, as arrays
session = rsr.read_session(workspace.session_dir(last))
for channel in session.channels:
    print(f"{channel.name}: {session.episodes[0][channel.name].shape}, {channel.unit}")
