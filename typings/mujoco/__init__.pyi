# MuJoCo's names live in compiled modules without type information; this tells pyright that they exist.
from typing import Any

def __getattr__(name: str) -> Any: ...
