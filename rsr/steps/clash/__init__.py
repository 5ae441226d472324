"""Stages of a campaign of CLASH: simulated strikes, surrogate, recorded strikes, adaptation, evidence, plans, report.

`rsr.steps.clash_table` declares them; `flows/clash.py` and `dvc repro` run them.
"""
