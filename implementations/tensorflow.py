"""TensorFlow: custom Functions as functions decorated with `tf.custom_gradient`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from tensorflow.experimental import numpy as tnp

from autograd_conformance.implementations import adapting
from autograd_conformance.implementations.adapting.lowering import Lowered, autograd_namespace
from autograd_conformance.implementations.deviations.tensorflow import DEVIATIONS
from autograd_conformance.implementations.protocol import DTYPES, BackwardPass, Description, Mask, Tensors

# The optimizer's fusion of a product and a sum aborts the process if the inner dimension is empty: see the finding
# compiled_empty_product.py.
tf.config.optimizer.set_experimental_options({"remapping": False})


def _apply(lowered: Lowered) -> Any:
    @tf.custom_gradient
    def function(*tensors: Any) -> Any:
        # A function with a custom gradient does not know which inputs need a gradient.
        outputs, ctx = lowered.forward(tensors, [True] * len(tensors))
        return outputs, lambda *cotangents: lowered.backward(ctx, cotangents)

    return lowered.returned(lowered.leaving(function(*lowered.tensors), tf.stop_gradient))


def _sparse_matmul(indices: Any, values: Any, shape: tuple[int, int], b: Any) -> Any:
    return tf.sparse.sparse_dense_matmul(tf.SparseTensor(tf.transpose(indices), values, shape), b)


def _dense(gradient: Any) -> Any:
    """The gradient as a tensor; `tf.IndexedSlices` are converted."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


class TensorFlowImplementation(adapting.NumPyImplementation):
    """Custom Functions as functions decorated with `tf.custom_gradient`, differentiated by `tf.GradientTape`."""

    name = "tensorflow"
    capabilities = frozenset({
        "tuples", "none_gradients", "nondifferentiable", "double_backward", "compile", "checkpoint", "sparse", "numpy",
        "threads",
    })  # fmt: skip
    deviations = DEVIATIONS
    dtypes = DTYPES
    package = tf
    xp = adapting.namespace(
        tf,
        arange=lambda n, device=None: tf.range(n, dtype=tf.int64),
        argsort=tnp.argsort,
        conj=tf.math.conj,
        copy=tf.identity,
        flip=lambda x, axis: tf.reverse(x, [axis] if isinstance(axis, int) else axis),
        from_numpy=lambda a, like: tf.constant(np.array(a)),
        imag=tf.math.imag,
        matrix_transpose=tf.linalg.matrix_transpose,
        max=tf.reduce_max,
        mean=tf.reduce_mean,
        permute_dims=tf.transpose,
        real=tf.math.real,
        sparse_matmul=_sparse_matmul,
        sum=tf.reduce_sum,
        take=tnp.take,
        take_along_axis=tnp.take_along_axis,
        to_numpy=np.asarray,
        zeros=lambda shape, dtype, device: tf.zeros(shape, dtype),
    )
    ag = autograd_namespace(_apply, tf.is_tensor)
    dialect = "tensorflow"
    supported = ">=2.16"

    def limit_threads(self) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return tf.constant(np.array(values, tf.as_dtype(dtype).as_numpy_dtype, order="C"))

    def as_numpy(self, tensor: Any) -> Any:
        return tensor.numpy()

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), tensor.dtype.name, "cpu")

    def is_tensor(self, value: Any) -> bool:
        return bool(tf.is_tensor(value))

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(adapting.chosen(primals, tracked))
            outputs = f(*primals)

        def grad(ends: Any, inputs: Any, cotangents: Any, differentiable: bool) -> Any:
            return map(_dense, tape.gradient(ends, inputs, cotangents))

        return outputs, adapting.by_outputs(grad, outputs, primals)

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return tf.function(f)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return tf.recompute_grad(f)
