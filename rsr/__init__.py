"""rsr: a Real-Sim-Real workbench. The library: no Prefect, no DVC, works in a notebook.

Rooms, each importing only from those before it:
`sessions -> scenarios -> simulators, infogap -> policies -> realities, calibration, clash, gnn -> planning -> reports
-> steps -> cli`.
"""
