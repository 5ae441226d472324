"""The commands `rsr-loop` and `rsr-serve`: each in a process that ends all of it within seconds at a signal."""

from __future__ import annotations

from rsr_flows._supervisor import supervised

GOES_ON = "Runs that were under way go on when their deployment runs again."


def loop() -> int:
    """Run the Real-Sim-Real loop; returns the exit code."""
    return supervised("rsr_flows._command:main")


def serve() -> int:
    """Serve Prefect's server, a worker and the deployments; returns the exit code."""
    return supervised("rsr_flows.serve:main", afterwards=GOES_ON)
