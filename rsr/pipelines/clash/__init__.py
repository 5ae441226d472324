"""Stages of a campaign of CLASH: simulated strikes, surrogate, recorded strikes, adaptation, evidence, plans, report.

`rsr.pipelines.clash.table` declares them; `flows/clash.py` and `dvc repro` run them.
"""
