"""JAX: custom Functions as functions with `jax.custom_vjp`, or `jax.custom_jvp` in forward mode."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

# A run compiles thousands of kernels, each for a shape that rarely comes again, and computes very little. XLA reads its
# flags once, when it starts; the user's flags come last.
_FAST_COMPILATION = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_multi_thread_eigen=false"
)
os.environ["XLA_FLAGS"] = f"{_FAST_COMPILATION} {os.environ.get('XLA_FLAGS', '')}"

import jax  # noqa: E402
import jaxlib  # noqa: E402
import numpy as np  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.custom_derivatives import SymbolicZero  # noqa: E402
from jax.interpreters import ad  # noqa: E402

from autograd_conformance.implementations import adapting  # noqa: E402
from autograd_conformance.implementations.adapting.lowering import Context, Lowered, autograd_namespace  # noqa: E402
from autograd_conformance.implementations.deviations.jax import DEVIATIONS  # noqa: E402
from autograd_conformance.implementations.protocol import DTYPES, Tensors  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.tree_util.register_pytree_node(Context, lambda ctx: ctx.flattened(_is_tensor), Context.rebuilt)

# Whether `apply` calls the function with the body's jvp: in JAX no function has rules for both modes.
_forward_mode: ContextVar[bool] = ContextVar("forward_mode", default=False)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, jax.Array)


def _conjugated(value: Any) -> Any:
    """A cotangent converted between JAX's convention and the suite's: one is the conjugate of the other."""
    return jnp.conj(value) if _is_tensor(value) and jnp.iscomplexobj(value) else value


def _given(value: Any, ctx: Context) -> Any:
    """A cotangent or tangent; a symbolic zero becomes zeros or None, as ctx.set_materialize_grads says."""
    if not isinstance(value, SymbolicZero):
        return value
    if not ctx.materialize_grads:
        return None
    zeros = np.zeros(value.shape, value.dtype)
    return zeros if value.dtype == jax.dtypes.float0 else jnp.asarray(zeros)


def _cotangent(value: Any, output: Any) -> Any:
    """The cotangent for JAX, in which an unused output has a symbolic zero."""
    return ad.Zero(jax.typeof(output).to_ct_aval()) if value is None else _conjugated(value)


def _tangent(value: Any, output: Any) -> Any:
    return SymbolicZero(jax.typeof(output).to_tangent_aval()) if value is None else value


def _apply(lowered: Lowered) -> Any:
    def primal(*tensors: Any) -> Tensors:
        return lowered.forward(tensors, [False] * len(tensors))[0]

    def forward(*given: Any) -> tuple[Tensors, Context]:
        return lowered.forward([x.value for x in given], [x.perturbed for x in given])

    def backward(ctx: Context, cotangents: Any) -> Tensors:
        return tuple(map(_conjugated, lowered.backward(ctx, [_conjugated(_given(g, ctx)) for g in cotangents])))

    def jvp(primals: Any, tangents: Any) -> tuple[Tensors, Tensors]:
        outputs, ctx = lowered.forward(primals, [not isinstance(t, SymbolicZero) for t in tangents])
        # Integers have tangents of dtype float0, which the body gets as None.
        found = lowered.jvp(ctx, [None if t.dtype == jax.dtypes.float0 else _given(t, ctx) for t in tangents])
        return outputs, (*map(_tangent, found, outputs), *found[len(outputs) :])

    if _forward_mode.get() and hasattr(lowered.cls, "jvp"):
        function: Any = jax.custom_jvp(primal)
        function.defjvp(jvp, symbolic_zeros=True)
    else:
        function = jax.custom_vjp(primal)
        function.defvjp(forward, backward, symbolic_zeros=True)
    outputs = function(*lowered.tensors)
    return lowered.returned(lowered.leaving(outputs, jax.lax.stop_gradient))


def _of_tensors(transform: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` transformed as a function of its tensors."""

    def transformed(*args: Any) -> Any:
        of_tensors, tensors = adapting.of_moving(f, args, list(map(_is_tensor, args)))
        return transform(of_tensors)(*tensors)

    return transformed


class JaxImplementation(adapting.TransformingImplementation, adapting.NumPyImplementation):
    """Custom Functions as functions with a `jax.custom_vjp` or `jax.custom_jvp` rule."""

    name = "jax"
    capabilities = frozenset({
        "tuples", "gradient_count", "gradient_checks", "none_gradients", "needs_input_grad", "materialize",
        "nondifferentiable", "double_backward", "jvp", "vmap", "batched_cotangents", "compile", "checkpoint", "threads",
    })  # fmt: skip
    deviations = DEVIATIONS
    dtypes = DTYPES
    package = jax
    parts = (jaxlib,)
    xp = adapting.namespace(jnp, conj=_conjugated)
    ag = autograd_namespace(_apply, _is_tensor)
    dialect = "jax"
    supported = ">=0.10"
    zeros_for_none = True
    # Every operation is compiled for every new shape and dtype, in about 15 ms.
    shapes_per_rank = 1
    share_of_examples = 0.3

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return jnp.asarray(np.array(values, getattr(jnp, dtype)))

    def as_numpy(self, tensor: Any) -> Any:
        return np.zeros(tensor.shape) if tensor.dtype == jax.dtypes.float0 else np.asarray(tensor)

    def is_tensor(self, value: Any) -> bool:
        # The cotangents of integers are NumPy arrays of JAX's own dtype float0.
        return _is_tensor(value) or getattr(value, "dtype", None) == jax.dtypes.float0

    def pulled(self, f: Callable[..., Tensors], primals: Tensors) -> tuple[Tensors, Callable[..., Any]]:
        outputs, pull = jax.vjp(f, *primals)
        return outputs, lambda cotangents: map(_conjugated, pull(tuple(map(_cotangent, cotangents, outputs))))

    def pushed(self, f: Callable[..., Tensors], primals: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        mode = _forward_mode.set(True)
        try:
            return jax.jvp(f, primals, tangents)
        finally:
            _forward_mode.reset(mode)

    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        return jax.vmap(f, tuple(in_axes))

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return _of_tensors(jax.jit, f)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return _of_tensors(jax.checkpoint, f)
