"""A new implementation of custom autograd Functions, joined in one file: a tape over NumPy, and its adapter.

Try it: autograd-conformance run docs/toy.py
"""

from types import SimpleNamespace

import numpy as np

from autograd_conformance.implementations.adapting import NumPyImplementation
from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade
from autograd_conformance.implementations.protocol import Environment

# --- The implementation. Its arrays are NumPy arrays that remember the call that made them. ---


class Array(np.ndarray):
    call, tracked = None, False
    __add__ = __radd__ = lambda self, other: Add.apply(self, other)
    __mul__ = __rmul__ = lambda self, other: Multiply.apply(self, other)
    __neg__ = lambda self: Multiply.apply(self, -1)


class Context:
    saved_tensors = ()

    def save_for_backward(self, *arrays):
        self.saved_tensors = arrays

    # A body may call these: there is no forward mode, unused outputs get zeros, and nothing is marked.
    save_for_forward = mark_non_differentiable = set_materialize_grads = lambda self, *_: None


class Function:
    @classmethod
    def apply(cls, *args):
        ctx, plain = Context(), [array(x) if isinstance(x, Array) else x for x in args]
        ctx.needs_input_grad = tuple(isinstance(x, Array) and x.tracked for x in args)
        if hasattr(cls, "setup_context"):
            outputs = cls.forward(*plain)
            cls.setup_context(ctx, tuple(plain), outputs)
        else:
            outputs = cls.forward(ctx, *plain)
        call = SimpleNamespace(cls=cls, ctx=ctx, args=args, outputs=tuple(map(array, several(outputs))))
        for output in call.outputs:
            output.call, output.tracked = call, any(ctx.needs_input_grad)
        return call.outputs if isinstance(outputs, tuple) else call.outputs[0]


def operation(forward, backward):
    """A plain operation as a Function; ``backward(g, *args)`` gives one gradient for each argument."""

    def run(ctx, *args):
        ctx.args = args
        return array(forward(*args))

    return type("Operation", (Function,), {"forward": run, "backward": lambda ctx, g: backward(g, *ctx.args)})


def like(g, x):
    """The gradient ``g`` summed over what ``x`` was broadcast along; None for a number."""
    if not isinstance(x, Array):
        return None
    axes = range(g.ndim - x.ndim) if g.ndim > x.ndim else ()
    kept = np.sum(np.asarray(g), axis=tuple(axes))
    stretched = tuple(n for n, side in enumerate(x.shape) if side == 1 and kept.shape[n] != 1)
    return array(np.sum(kept, axis=stretched, keepdims=True))


def plain(x):
    """An array without a record; a number stays one, so that it does not widen the dtype of what it meets."""
    return np.asarray(x) if isinstance(x, Array) else x


def times(a, b):
    """The product without a record."""
    return np.multiply(plain(a), plain(b))


def array(values):
    return np.array(values).view(Array)


def several(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


Add = operation(lambda x, y: np.add(plain(x), plain(y)), lambda g, x, y: (like(g, x), like(g, y)))
Multiply = operation(times, lambda g, x, y: (like(times(g, np.conj(y)), x), like(times(g, np.conj(x)), y)))
Reshape = operation(np.reshape, lambda g, x, shape: (np.reshape(g, x.shape), None))
Permute = operation(np.transpose, lambda g, x, axes: (np.transpose(g, np.argsort(axes).astype(int)), None))
Broadcast = operation(np.broadcast_to, lambda g, x, shape: (like(g, x), None))
Copy = operation(np.copy, lambda g, x: (g,))
Total = operation(lambda x: np.sum(np.asarray(x)), lambda g, x: (array(np.broadcast_to(g, x.shape)),))


def visit(x, order):
    """Append the calls that ``x`` comes from, each after those that it depends on."""
    if isinstance(x, Array) and x.call is not None and x.call not in order:
        for argument in x.call.args:
            visit(argument, order)
        order.append(x.call)


def gradients(outputs, cotangents, inputs):
    """The gradient of each input, None for one that no output depends on."""
    found, order = {}, []

    def add(x, g):
        if isinstance(x, Array) and g is not None:
            found[id(x)] = array(plain(g) + plain(found[id(x)]) if id(x) in found else g)

    for output, cotangent in zip(outputs, cotangents, strict=True):
        add(output, cotangent)
        visit(output, order)
    for call in reversed(order):
        if any(id(y) in found for y in call.outputs):
            given = [found.get(id(y), np.zeros_like(y)) for y in call.outputs]
            for x, g in zip(call.args, several(call.cls.backward(call.ctx, *given)), strict=False):
                add(x, g)
    return tuple(found.get(id(x)) for x in inputs)


# --- The adapter: what autograd-conformance asks for. ---

NAMES = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
NAMES.update(
    zeros=lambda shape, dtype=float, device=None: array(np.zeros(shape, dtype)),
    arange=lambda *ends, dtype=None, device=None: array(np.arange(*ends, dtype=dtype)),
    reshape=lambda x, shape: Reshape.apply(x, shape),
    permute_dims=lambda x, axes: Permute.apply(x, axes),
    broadcast_to=lambda x, shape: Broadcast.apply(x, shape),
    copy=lambda x: Copy.apply(x),
    sum=lambda x, axis=None, **options: Total.apply(x) if axis is None else array(np.sum(x, axis=axis, **options)),
)


class ToyImplementation(NumPyImplementation):
    """Custom Functions as classes derived from `toy.Function`, called through ``apply``."""

    name = "toy"
    # What its documentation promises in addition to gradients.
    capabilities = frozenset({"tuples", "needs_input_grad"})
    dtypes = ("float64", "float32", "complex128", "int64", "bool")
    deviations = (
        Deviation(
            ids=("ENG-10",),
            shows=(Found("steps that ran, sorted"),),
            cause=Cause(
                grade=Grade.DIFFERENCE,
                reason="a backward pass visits the whole tape, whatever gradients are requested",
                link="docs/toy.py, gradients",
                seen=("1.0",),
            ),
        ),
        Deviation(
            ids=("FN-30",),
            shows=(Found("a backward pass through the chain"),),
            cause=Cause(
                grade=Grade.DIFFERENCE,
                reason="the tape is ordered by recursion",
                link="docs/toy.py, visit",
                seen=("1.0",),
            ),
        ),
        Deviation(
            ids=("LAYOUT-02",),
            shows=(Found("shape, dtype and device of the cotangents"),),
            cause=Cause(
                grade=Grade.DIFFERENCE,
                reason="a gradient keeps the dtype in which a backward returns it",
                link="docs/toy.py, gradients",
                seen=("1.0",),
            ),
        ),
    )
    xp = SimpleNamespace(**NAMES)
    ag = SimpleNamespace(Function=Function, once_differentiable=lambda backward: backward)

    def environment(self):
        return Environment("1.0", __file__)

    def array(self, values, dtype, device):
        return array(np.array(values, dtype))

    def as_numpy(self, tensor):
        return np.asarray(tensor)

    def is_tensor(self, value):
        return isinstance(value, Array)

    def differentiate(self, f, primals, tracked):
        leaves = [array(x) for x in primals]
        for leaf, flag in zip(leaves, tracked, strict=True):
            leaf.tracked = flag
        outputs = f(*leaves)
        return outputs, lambda cotangents, wanted, differentiable: gradients(outputs, cotangents, leaves)
