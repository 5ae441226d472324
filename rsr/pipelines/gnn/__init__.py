"""Stages of a campaign that learns a simulator of contact: identification, data, training, fine-tuning, evidence.

`rsr.pipelines.gnn.table` declares them; `flows/gnn.py` and `dvc repro` run them.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
