"""What every VecEnv of ours has in common: its copies live in one simulation and have no methods of their own."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.vec_env import VecEnv


class JointVecEnv(VecEnv):
    """Copies that advance together: what is read or set of one is read or set of all."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("the copies share one simulation: there is no method of a single copy")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
