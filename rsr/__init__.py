"""rsr: a Real-Sim-Real workbench. The library: no Prefect, no DVC, works in a notebook.

Rooms, each importing only from those before it:
`sessions, scenarios -> simulators -> realities, calibration, infogap, policies -> reports -> steps, cli`.
"""
