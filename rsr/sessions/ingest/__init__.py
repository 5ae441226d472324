"""From a lab's recording, in whatever format, to a session on the scenario's channels."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
