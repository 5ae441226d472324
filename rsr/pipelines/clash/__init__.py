"""Stages of a campaign of CLASH: simulated strikes, surrogate, recorded strikes, adaptation, evidence, plans, report.

`rsr.pipelines.clash.table` declares them; `flows/clash.py` and `dvc repro` run them.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
