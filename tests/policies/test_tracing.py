"""Numpy code and the ONNX graph it leaves compute the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from onnx import TensorProto, helper

from rsr.common.errors import PolicyError
from rsr.policies.tracing import OnnxGraph, Traced
from rsr.scenarios.built_in.pushing import kinematics

WIDTH = 6


def compiled(function: Callable, dtype: type = np.float64) -> Callable[[np.ndarray], np.ndarray]:
    graph = OnnxGraph()
    result = function(Traced(graph, "x", np.ones((3, WIDTH), dtype)))
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE}
    inputs = [helper.make_tensor_value_info("x", kinds[np.dtype(dtype)], ["batch", WIDTH])]
    outputs = [helper.make_tensor_value_info(result.name, kinds[result.dtype], None)]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "test", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def assigned(x):
    y = x.copy()
    y[..., :2] = x[..., 2:4] * 3
    y[..., 4] *= 0.5
    y[..., 5] = 7.0
    return y


FUNCTIONS = {
    "arithmetic": lambda x: (2.0 - x) / (x**2 + 1.0) - -x * 3,
    "clip": lambda x: np.clip(x, -0.5, 0.5),
    "columns": lambda x: np.stack([x[..., 0], x[:, 3], x[..., -1]], axis=-1),
    "slices": lambda x: np.concatenate([x[..., 4:], x[:, ::2], x[..., None, 0]], axis=-1),
    "moveaxis": lambda x: np.stack(list(reversed(np.moveaxis(x, -1, 0))), axis=-1),
    "assigned": assigned,
    "where": lambda x: np.where(x[..., :1] < 0, -x, x),
    "norm": lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
    "matmul": lambda x: np.tanh(x @ np.arange(12.0).reshape(WIDTH, 2) + np.ones(2)),
    "arctan2": lambda x: np.arctan2(x[..., :3], x[..., 3:]),
    "arccos": lambda x: np.arccos(np.clip(x, -1.0, 1.0)),
    "hypot": lambda x: np.hypot(x[..., 0], x[..., 1]),
    "fingertip": kinematics.fingertip,
    "joints_for": lambda x: kinematics.joints_for(x[..., :3] / 3, x[..., 3]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("batch", [1, 50])
def test_the_graph_computes_what_numpy_does(name, batch):
    x = np.random.default_rng(0).normal(size=(batch, WIDTH))
    np.testing.assert_allclose(compiled(FUNCTIONS[name])(x), FUNCTIONS[name](x), rtol=1e-12, atol=1e-12)


def test_float32_stays_float32():
    x = np.random.default_rng(0).normal(size=(5, WIDTH)).astype(np.float32)
    network = lambda x: np.maximum(x @ np.ones((WIDTH, 2), np.float32) + 0.5, 0.0)  # noqa: E731
    result = compiled(network, np.float32)(x)
    assert result.dtype == network(x).dtype == np.float32
    np.testing.assert_allclose(result, network(x), rtol=1e-6)


ARCTAN2 = compiled(FUNCTIONS["arctan2"])


@settings(max_examples=100, deadline=None)
@given(arrays(float, (4, WIDTH), elements=st.floats(-1e3, 1e3, allow_subnormal=False)))
def test_angles_are_right_in_every_quadrant_and_on_the_axes(x):
    x[np.abs(x) < 1e-6] = 0.0
    x = x + 0.0  # -0.0 would choose the other side of the cut
    np.testing.assert_allclose(ARCTAN2(x), np.arctan2(x[:, :3], x[:, 3:]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (np.cumsum, "cumsum"),
        (np.cbrt, "cbrt"),
        (np.add.reduce, "add.reduce"),
        (np.asarray, "numpy.asarray"),
        (lambda x: x[[0, 1]], "indexing with [[0, 1]]"),
    ],
)
def test_what_has_no_counterpart_is_named(function, got):
    with pytest.raises(PolicyError) as caught:
        function(Traced(OnnxGraph(), "x", np.ones((3, WIDTH))))
    assert str(caught.value) == (
        f"a policy's computation: got {got}; expected numpy that rsr.policies.tracing turns into ONNX. "
        "Write it with what is in OPERATIONS or FUNCTIONS there, or add this one to them."
    )
