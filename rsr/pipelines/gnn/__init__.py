"""Stages of a campaign that learns a simulator of contact: identification, data, training, fine-tuning, evidence.

`rsr.pipelines.gnn.table` declares them; `flows/gnn.py` and `dvc repro` run them.
"""
