"""Numpy code becomes an ONNX graph: call it with a `Traced` array, and every operation leaves a node.

So the exported policy is the stored one, line by line, whatever its head computes; nothing is written twice. Each
traced array also carries the numbers of a small example, from which shapes and types follow by numpy's own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from onnx import NodeProto, TensorProto, helper, numpy_helper

from rsr.common import PolicyError

_TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.int64): TensorProto.INT64,
}


class OnnxGraph:
    """The nodes and constants recorded so far."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Append a node; returns the name of its one output."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: np.ndarray) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name


class Traced(NDArrayOperatorsMixin):
    """An array that numpy code computes with, while the graph records how. The first axis is the batch.

    Args:
        name: of the tensor in the graph.
        value: the same tensor for the example.
    """

    def __init__(self, graph: OnnxGraph, name: str, value: np.ndarray) -> None:
        self.graph, self.name, self.value = graph, name, value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    def __len__(self) -> int:
        return len(self.value)

    def astype(self, dtype: Any, copy: bool = True) -> Traced:
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self.copy()
        return Traced(self.graph, self.graph.node("Cast", self.name, to=_TYPES[wanted]), self.value.astype(wanted))

    def copy(self) -> Traced:
        return Traced(self.graph, self.name, self.value)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise _untraceable("numpy.asarray")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        into = options.pop("out", (None,))[0]
        if method != "__call__" or options or ufunc.__name__ not in OPERATIONS:
            raise _untraceable(f"{ufunc.__name__}.{method}" if method != "__call__" else ufunc.__name__)
        result = OPERATIONS[ufunc.__name__](*inputs)
        if into is None:
            return result
        into.name, into.value = result.name, result.value
        return into

    def __array_function__(self, function: Callable, _: Any, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        if function.__name__ not in FUNCTIONS:
            raise _untraceable(function.__name__)
        return FUNCTIONS[function.__name__](*arguments, **options)

    def __getitem__(self, key: Any) -> Traced:
        taken, axis = self, 0
        for part in _expanded(key, self.ndim):
            if part is None:
                taken = expand(taken, axis)
                axis += 1
            elif isinstance(part, slice):
                taken = taken if part == slice(None) else _cut(taken, part, axis)
                axis += 1
            else:
                taken = _pick(taken, int(part), axis)
        return taken

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace columns of the last axis: `x[..., 2] = v`, `x[..., :2] = v`."""
        *others, last = _expanded(key, self.ndim)
        if any(other != slice(None) for other in others) or last is None:
            raise _untraceable(f"assignment to [{key}]")
        width = self.shape[-1]
        columns = last if isinstance(last, slice) else slice(last, last + 1 or None)
        first, beyond, step = columns.indices(width)
        if step != 1:
            raise _untraceable(f"assignment to [{key}]")
        value = value if isinstance(last, slice) or np.ndim(_example(value)) < self.ndim - 1 else value[..., None]
        filled = (zeros_like(self[..., first:beyond]) + value).astype(self.dtype)
        parts = [self[..., :first]] * (first > 0) + [filled] + [self[..., beyond:]] * (beyond < width)
        result = concatenate(parts, axis=-1)
        self.name, self.value = result.name, result.value


def _untraceable(what: str) -> PolicyError:
    return PolicyError(
        got=what,
        expected="numpy that rsr.policies.tracing turns into ONNX",
        where="a policy's computation",
        next_step="Write it with what is in OPERATIONS or FUNCTIONS there, or add this one to them.",
    )


def _example(value: Any) -> Any:
    return value.value if isinstance(value, Traced) else value


def _graph(*values: Any) -> OnnxGraph:
    return next(value.graph for value in values if isinstance(value, Traced))


def _input(graph: OnnxGraph, value: Any, dtype: np.dtype) -> str:
    """The tensor's name of what may be traced, an array or a plain number."""
    if isinstance(value, Traced):
        return value.astype(dtype).name
    return graph.constant(np.asarray(value, dtype))


def _expanded(key: Any, ndim: int) -> list[Any]:
    """One entry an axis (and None for each new one), without `...`."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(not (part is None or part is Ellipsis or isinstance(part, int | np.integer | slice)) for part in parts):
        raise _untraceable(f"indexing with [{key}]")
    missing = [slice(None)] * (ndim - sum(part is not None and part is not Ellipsis for part in parts))
    if Ellipsis not in parts:
        return parts + missing
    at = parts.index(Ellipsis)
    return parts[:at] + missing + parts[at + 1 :]


def _cut(array: Traced, part: slice, axis: int) -> Traced:
    graph, index = array.graph, (slice(None),) * axis + (part,)
    first, beyond, step = part.indices(array.shape[axis])
    bounds = [graph.constant(np.array([number], np.int64)) for number in (first, beyond, axis, step)]
    return Traced(graph, graph.node("Slice", array.name, *bounds), array.value[index])


def _pick(array: Traced, index: int, axis: int) -> Traced:
    graph, position = array.graph, array.graph.constant(np.array(index % array.shape[axis], np.int64))
    return Traced(graph, graph.node("Gather", array.name, position, axis=axis), array.value.take(index, axis))


def expand(array: Traced, axis: int) -> Traced:
    """Insert an axis of length 1."""
    value = np.expand_dims(array.value, axis)
    place = array.graph.constant(np.array([axis % value.ndim], np.int64))
    return Traced(array.graph, array.graph.node("Unsqueeze", array.name, place), value)


def elementwise(operator: str, function: Callable[..., Any]) -> Callable[..., Traced]:
    """An operation that ONNX has under another name."""

    def trace(*inputs: Any) -> Traced:
        graph, dtype = _graph(*inputs), np.result_type(*map(_example, inputs))
        names = [_input(graph, value, dtype) for value in inputs]
        return Traced(graph, graph.node(operator, *names), function(*map(_example, inputs)))

    return trace


def arctan2(y: Any, x: Any) -> Traced:
    """The angle in float64, though onnxruntime computes Atan in float32 alone: a Newton step adds the other digits."""
    graph = _graph(y, x)
    steep = np.abs(y) > np.abs(x)
    divisor = where(steep, y, x)
    ratio = where(steep, x, y) / where(np.equal(divisor, 0.0), 1.0, divisor)
    rough = Traced(graph, graph.node("Atan", ratio.astype(np.float32).name), np.arctan(ratio.value).astype(np.float32))
    part = rough.astype(ratio.dtype)
    shallow = part + where(np.less(x, 0.0), where(np.less(y, 0.0), -np.pi, np.pi), 0.0)
    angle = where(steep, where(np.less(y, 0.0), -np.pi / 2, np.pi / 2) - part, shallow)
    return angle + (y * np.cos(angle) - x * np.sin(angle)) / np.maximum(hypot(x, y), 1e-30)


def hypot(x: Any, y: Any) -> Any:
    return np.sqrt(x * x + y * y)


def arccos(cosine: Any) -> Traced:
    return arctan2(np.sqrt(np.maximum((1.0 - cosine) * (1.0 + cosine), 0.0)), cosine)


def clip(array: Any, lower: Any, upper: Any) -> Any:
    return np.minimum(np.maximum(array, lower), upper)


def where(condition: Any, yes: Any, no: Any) -> Traced:
    graph, dtype = condition.graph, np.result_type(_example(yes), _example(no))
    value = np.where(condition.value, _example(yes), _example(no))
    names = [_input(graph, each, dtype) for each in (yes, no)]
    return Traced(graph, graph.node("Where", condition.name, *names), value.astype(dtype))


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Traced:
    graph, value = _graph(*arrays), np.concatenate([_example(array) for array in arrays], axis)
    names = [_input(graph, array, value.dtype) for array in arrays]
    return Traced(graph, graph.node("Concat", *names, axis=axis % value.ndim), value)


def stack(arrays: Sequence[Traced], axis: int = 0) -> Traced:
    return concatenate([expand(array, axis) for array in arrays], axis)


def moveaxis(array: Traced, source: int, destination: int) -> tuple[Traced, ...]:
    """Columns one by one: all that `x, y, z = np.moveaxis(tip, -1, 0)` needs."""
    if (source, destination) != (-1, 0):
        raise _untraceable(f"moveaxis from {source} to {destination}")
    return tuple(array[..., column] for column in range(array.shape[-1]))


def zeros_like(array: Traced) -> Traced:
    shape = array.graph.node("Shape", array.name)
    zero = numpy_helper.from_array(np.zeros(1, array.dtype))
    return Traced(array.graph, array.graph.node("ConstantOfShape", shape, value=zero), np.zeros_like(array.value))


def norm(array: Traced, axis: int = -1, keepdims: bool = False) -> Any:
    squares = array * array
    axes = squares.graph.constant(np.array([axis % array.ndim], np.int64))
    name = squares.graph.node("ReduceSum", squares.name, axes, keepdims=int(keepdims))
    return np.sqrt(Traced(squares.graph, name, squares.value.sum(axis, keepdims=keepdims)))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": elementwise("Add", np.add),
    "subtract": elementwise("Sub", np.subtract),
    "multiply": elementwise("Mul", np.multiply),
    "divide": elementwise("Div", np.divide),
    "power": elementwise("Pow", np.power),
    "matmul": elementwise("MatMul", np.matmul),
    "negative": elementwise("Neg", np.negative),
    "absolute": elementwise("Abs", np.absolute),
    "sqrt": elementwise("Sqrt", np.sqrt),
    "exp": elementwise("Exp", np.exp),
    "sin": elementwise("Sin", np.sin),
    "cos": elementwise("Cos", np.cos),
    "tanh": elementwise("Tanh", np.tanh),
    "maximum": elementwise("Max", np.maximum),
    "minimum": elementwise("Min", np.minimum),
    "less": elementwise("Less", np.less),
    "greater": elementwise("Greater", np.greater),
    "equal": elementwise("Equal", np.equal),
    "square": lambda array: array * array,
    "arctan2": arctan2,
    "arccos": arccos,
    "hypot": hypot,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "clip": clip,
    "where": where,
    "concatenate": concatenate,
    "stack": stack,
    "moveaxis": moveaxis,
    "zeros_like": zeros_like,
    "norm": norm,
}
