"""JAX: custom Functions as functions with `jax.custom_vjp`, or `jax.custom_jvp` in forward mode."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any

# A run compiles thousands of kernels, each for a shape that is seldom met again, and computes next to nothing. XLA
# reads its flags once, when it starts; those of the user come last.
_FAST_COMPILATION = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_multi_thread_eigen=false"
)
os.environ["XLA_FLAGS"] = f"{_FAST_COMPILATION} {os.environ.get('XLA_FLAGS', '')}"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.custom_derivatives import SymbolicZero  # noqa: E402
from jax.interpreters import ad  # noqa: E402

from autograd_conformance.implementations import jax_deviations, lowering, protocol  # noqa: E402
from autograd_conformance.implementations.lowering import Context, Lowered  # noqa: E402
from autograd_conformance.implementations.protocol import Description, Environment, Pullback, Tensors  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.tree_util.register_pytree_node(Context, lambda ctx: ctx.flattened(_is_tensor), Context.rebuilt)

# Whether `apply` calls the function that has the body's jvp: in JAX no function has rules for both modes.
_forward_mode: ContextVar[bool] = ContextVar("forward_mode", default=False)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, jax.Array)


def _conjugated(value: Any) -> Any:
    """JAX's cotangents are those of the suite conjugated."""
    return jnp.conj(value) if _is_tensor(value) and jnp.iscomplexobj(value) else value


def _given(value: Any, ctx: Context) -> Any:
    """A cotangent or tangent as ctx.set_materialize_grads asks for it."""
    if not isinstance(value, SymbolicZero):
        return value
    if not ctx.materialize_grads:
        return None
    zeros = np.zeros(value.shape, value.dtype)
    return zeros if value.dtype == jax.dtypes.float0 else jnp.asarray(zeros)


def _unused(output: Any) -> Any:
    """The cotangent of an output that is not used: a symbolic zero."""
    return ad.Zero(jax.typeof(output).to_ct_aval())


def _tangent(value: Any, output: Any) -> Any:
    return SymbolicZero(jax.typeof(output).to_tangent_aval()) if value is None else value


def _apply(lowered: Lowered) -> Any:
    marked: list[bool] = []

    def run(tensors: Any, needs: Sequence[bool]) -> tuple[Tensors, Context]:
        outputs, ctx = lowered.forward(tensors, needs)
        marked[:] = map(ctx.holds, outputs)
        return outputs, ctx

    def primal(*tensors: Any) -> Tensors:
        return run(tensors, [False] * len(tensors))[0]

    def forward(*given: Any) -> tuple[Tensors, Context]:
        return run([x.value for x in given], [x.perturbed for x in given])

    def backward(ctx: Context, cotangents: Any) -> Tensors:
        return tuple(map(_conjugated, lowered.backward(ctx, [_conjugated(_given(g, ctx)) for g in cotangents])))

    def jvp(primals: Any, tangents: Any) -> tuple[Tensors, Tensors]:
        outputs, ctx = run(primals, [not isinstance(t, SymbolicZero) for t in tangents])
        # A tangent of dtype float0 is none: that of an integer.
        found = lowered.jvp(ctx, [None if t.dtype == jax.dtypes.float0 else _given(t, ctx) for t in tangents])
        return outputs, (*map(_tangent, found, outputs), *found[len(outputs) :])

    if _forward_mode.get() and hasattr(lowered.cls, "jvp"):
        function: Any = jax.custom_jvp(primal)
        function.defjvp(jvp, symbolic_zeros=True)
    else:
        function = jax.custom_vjp(primal)
        function.defvjp(forward, backward, symbolic_zeros=True)
    outputs = function(*lowered.tensors)
    return lowered.returned([jax.lax.stop_gradient(y) if m else y for y, m in zip(outputs, marked, strict=True)])


def _of_tensors(transform: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` transformed as a function of its tensors."""

    def transformed(*args: Any) -> Any:
        of_tensors, tensors = lowering.of_moving(f, args, list(map(_is_tensor, args)))
        return transform(of_tensors)(*tensors)

    return transformed


def array_namespace() -> ModuleType:
    """``jax.numpy`` under the names of the array API."""
    xp = ModuleType("jax_array_namespace")
    xp.__dict__.update(vars(jnp), conj=_conjugated)
    return xp


class JaxImplementation(protocol.Implementation):
    """Custom Functions as functions with a `jax.custom_vjp` or `jax.custom_jvp` rule."""

    name = "jax"
    capabilities = frozenset({
        "tuples", "gradient_count", "gradient_checks", "none_gradients", "needs_input_grad", "materialize",
        "nondifferentiable", "double_backward", "jvp", "vmap", "batched_cotangents", "compile", "checkpoint", "threads",
    })  # fmt: skip
    deviations = jax_deviations.DEVIATIONS
    dtypes = (
        "float64", "float32", "float16", "bfloat16", "complex128", "complex64",
        "int64", "int32", "int16", "int8", "uint8", "bool",
    )  # fmt: skip
    xp = array_namespace()
    ag = lowering.autograd_namespace(_apply, _is_tensor)
    dialect = "jax"
    supported = ">=0.10"
    zeros_for_none = True
    # Every operation is compiled for every shape and dtype that it meets, in some 15 ms.
    shapes_per_rank = 1
    share_of_examples = 0.3

    def environment(self) -> Environment:
        return Environment(jax.__version__, str(jax.__file__))

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return jnp.asarray(np.array(values, getattr(jnp, dtype)))

    def numpy(self, tensor: Any) -> Any:
        if tensor.dtype == jax.dtypes.float0:
            return np.zeros(tensor.shape)
        # bfloat16 is of no kind of NumPy's own.
        wide = {"f": np.float64, "V": np.float64, "c": np.complex128}
        array = np.asarray(tensor)
        return np.array(array, wide.get(array.dtype.kind))

    def describe(self, tensor: Any) -> Description:
        return Description(tuple(tensor.shape), str(tensor.dtype), "cpu")

    def is_tensor(self, value: Any) -> bool:
        # The cotangents of integers are NumPy arrays of JAX's own dtype float0.
        return _is_tensor(value) or getattr(value, "dtype", None) == jax.dtypes.float0

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)
        of_tracked, moving = lowering.of_moving(lambda *xs: lowering.as_tuple(f(*xs)), primals, tracked)
        outputs, pull = jax.vjp(of_tracked, *moving)

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            pairs = zip(outputs, cotangents, strict=True)
            found = pull(tuple(_unused(y) if g is None else _conjugated(g) for y, g in pairs))
            gradients = lowering.merged([None] * len(tracked), tracked, tuple(map(_conjugated, found)))
            return tuple(g if w else None for g, w in zip(gradients, wrt or tracked, strict=True))

        return outputs, pullback

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        moves = [t is not None for t in tangents]
        of_moving, moving = lowering.of_moving(lambda *xs: lowering.as_tuple(f(*xs)), primals, moves)
        mode = _forward_mode.set(True)
        try:
            found: tuple[Tensors, Tensors] = jax.jvp(of_moving, moving, tuple(t for t in tangents if t is not None))
        finally:
            _forward_mode.reset(mode)
        return found

    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        return jax.vmap(f, tuple(in_axes))

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        _, pullback = self.vjp(f, primals, track=track)
        batched: Tensors = jax.vmap(pullback)(tuple(cotangents))
        return batched

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return _of_tensors(jax.jit, f)

    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return _of_tensors(jax.checkpoint, f)
