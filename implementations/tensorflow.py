"""TensorFlow: custom Functions as functions decorated with `tf.custom_gradient`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from tensorflow.experimental import numpy as tnp

from autograd_conformance.implementations import protocol
from autograd_conformance.implementations.lowering import Lowered, as_tuple, autograd_namespace
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors
from autograd_conformance.implementations.tensorflow_deviations import DEVIATIONS

# The optimizer's fusion of a product and a sum aborts the process where the inner dimension is empty: see the finding
# compiled_empty_product.py.
tf.config.optimizer.set_experimental_options({"remapping": False})


def _apply(lowered: Lowered) -> Any:
    marked: list[bool] = []

    @tf.custom_gradient
    def function(*tensors: Any) -> Any:
        # What needs a gradient is not known to a function with a custom gradient.
        outputs, ctx = lowered.forward(tensors, [True] * len(tensors))
        marked.extend(ctx.holds(y) for y in outputs)
        return outputs, lambda *cotangents: lowered.backward(ctx, cotangents)

    outputs = function(*lowered.tensors)
    return lowered.returned([tf.stop_gradient(y) if m else y for y, m in zip(outputs, marked, strict=True)])


def array_namespace() -> ModuleType:
    """``tf`` under the names of the array API."""
    xp = ModuleType("tensorflow_array_namespace", "tensorflow under the names of the array API")
    xp.__dict__.update({name: getattr(tnp, name) for name in ("take", "take_along_axis")})
    xp.__dict__.update({name: getattr(tf, name) for name in dir(tf) if not name.startswith("_")})
    xp.__dict__.update(
        {name: getattr(tf.math, name) for name in ("conj", "imag", "real")},
        arange=lambda n, device=None: tf.range(n, dtype=tf.int64),
        argsort=tnp.argsort,
        copy=tf.identity,
        flip=lambda x, axis: tf.reverse(x, [axis] if isinstance(axis, int) else axis),
        from_numpy=lambda a, like: tf.constant(np.array(a)),
        matrix_transpose=tf.linalg.matrix_transpose,
        max=tf.reduce_max,
        mean=tf.reduce_mean,
        permute_dims=tf.transpose,
        sparse_matmul=_sparse_matmul,
        sum=tf.reduce_sum,
        to_numpy=np.asarray,
        zeros=lambda shape, dtype, device: tf.zeros(shape, dtype),
    )
    return xp


def _sparse_matmul(indices: Any, values: Any, shape: tuple[int, int], b: Any) -> Any:
    return tf.sparse.sparse_dense_matmul(tf.SparseTensor(tf.transpose(indices), values, shape), b)


def _dense(gradient: Any) -> Any:
    """The gradient as one tensor where it came as `tf.IndexedSlices`, another form of the same."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


class TensorFlowImplementation(protocol.Implementation):
    """Custom Functions as functions decorated with `tf.custom_gradient`, differentiated by `tf.GradientTape`."""

    name = "tensorflow"
    capabilities = frozenset({
        "tuples", "none_gradients", "nondifferentiable", "double_backward", "compile", "checkpoint", "sparse", "numpy",
        "threads",
    })  # fmt: skip
    deviations = DEVIATIONS
    dtypes = (
        "float64", "float32", "float16", "bfloat16", "complex128", "complex64",
        "int64", "int32", "int16", "int8", "uint8", "bool",
    )  # fmt: skip
    xp = array_namespace()
    ag = autograd_namespace(_apply, tf.is_tensor)
    dialect = "tensorflow"
    supported = ">=2.16"

    def environment(self) -> Environment:
        return Environment(tf.__version__, str(tf.__file__))

    def limit_threads(self) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return tf.constant(np.array(values, tf.as_dtype(dtype).as_numpy_dtype, order="C"))

    def numpy(self, tensor: Any) -> Any:
        wide = {"f": np.float64, "c": np.complex128, "V": np.float64}
        array = tensor.numpy()
        return np.array(array, wide.get(array.dtype.kind))

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), tensor.dtype.name, "cpu")

    def is_tensor(self, value: Any) -> bool:
        return bool(tf.is_tensor(value))

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x for x, t in zip(primals, tracked, strict=True) if t])
            outputs = as_tuple(f(*primals))

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            wanted = tracked if wrt is None else wrt
            pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
            inputs = [x for x, w in zip(primals, wanted, strict=True) if w]
            found = iter(tape.gradient([y for y, _ in pairs], inputs, [g for _, g in pairs]))
            return tuple(_dense(next(found)) if w else None for w in wanted)

        return outputs, pullback

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = tf.function(f)
        return compiled

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        recomputed: Callable[..., Any] = tf.recompute_grad(f)
        return recomputed
