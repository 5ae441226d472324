"""Robot problems: MJCF scenes, channels, tunable parameters, residuals, metrics. May import `rsr.sessions` only.

A scenario is a YAML file and an MJCF; `docs/scenarios.md` explains every key.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
