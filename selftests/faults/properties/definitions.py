"""How a fault of a property is planted, and the bodies that faults are planted in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.definitions import Array, Function, Output
from autograd_conformance.selftests.faults.planting import Case, Fault, fault, name_in

TORCH = TorchImplementation()
# What the message of a fault says where nothing else is said.
GRADIENT = ("gradient of argument 0 (x)",)


def planted(
    title: str, twin: Function, body: Any, *says: str, device: str = "cpu", raises: Any = Broken, **changes: Any
) -> Fault:
    """A fault in the body of a Function; ``changes`` are those of its description."""
    function = replace(twin, name=name_in(title), body=body, **changes)
    wrong, right = Case(function, TORCH, device), Case(twin, TORCH, device)
    return fault(title, lambda: nullcontext(wrong), *says, twin=right, raises=raises)


def misbehaving(
    title: str,
    implementation: Implementation,
    *says: str,
    of: Function | None = None,
    twin: Implementation = TORCH,
    device: str = "cpu",
) -> Fault:
    """A fault in an implementation, shown by a right Function, by default Square."""
    wrong, right = Case(of or SQUARE, implementation, device), Case(of or SQUARE, twin, device)
    return fault(title, lambda: nullcontext(wrong), *(says or GRADIENT), twin=right)


def in_square(title: str, body: Any, *says: str, **options: Any) -> Fault:
    """A fault in the body of Square."""
    return planted(title, SQUARE, body, *(says or GRADIENT), **options)


def in_output(title: str, output: Callable[[Any, Any], Any], *says: str, **options: Any) -> Fault:
    """Square gives ``output(x, its square)``."""
    body = square_with(lambda xp, ctx, x, y: output(x, y))
    return in_square(title, body, *(says or ("output 0",)), **options)


def in_gradient(title: str, gradient: Callable[[Any, Any, Any], Any], *says: str, **options: Any) -> Fault:
    """The gradient of Square is ``gradient(cotangent, x, the right gradient)``."""
    return in_square(title, square_with(gradient=lambda xp, ctx, g, x, right: gradient(g, x, right)), *says, **options)


def custom(**methods: Any) -> Callable[[Any, Any], Any]:
    """A body made of methods that take ``xp`` before their other parameters; what is not callable is an attribute."""

    def bound(xp, method):
        return staticmethod(lambda *args: method(xp, *args)) if callable(method) else method

    return lambda xp, ag: type("Custom", (ag.Function,), {name: bound(xp, m) for name, m in methods.items()})


def derived(base: Function, **methods: Any) -> Callable[[Any, Any], Any]:
    """The body of a Function with some methods replaced; they take ``xp`` and the class before their parameters."""

    def body(xp, ag):
        cls = type(base.name, (base.body(xp, ag),), {})
        for name, method in methods.items():
            setattr(cls, name, staticmethod(lambda *args, method=method: method(xp, cls, *args)))
        return cls

    return body


def unary(output: Callable[[Any], Any], gradient: Callable[[Any, Any], Any], **more: Any) -> Callable[[Any, Any], Any]:
    """``output(x)`` with the gradient ``gradient(cotangent, x)``."""

    def forward(xp, ctx, x):
        ctx.save_for_backward(x)
        return output(x)

    return custom(forward=forward, backward=lambda xp, ctx, g: gradient(g, *ctx.saved_tensors), **more)


Hook = Callable[..., Any]


def square_with(
    output: Hook = lambda xp, ctx, x, y: y,
    gradient: Hook = lambda xp, ctx, g, x, right: right,
    save: Hook = lambda xp, ctx, x: ctx.save_for_backward(x),
    saved: Hook = lambda ctx: ctx.saved_tensors[0],
    **more: Any,
) -> Callable[[Any, Any], Any]:
    """Square, with its output, its gradient or what it saves replaced."""

    def forward(xp, ctx, x):
        save(xp, ctx, x)
        return output(xp, ctx, x, x * x)

    def backward(xp, ctx, g):
        x = saved(ctx)
        return gradient(xp, ctx, g, x, 2 * g * xp.conj(x))

    return custom(forward=forward, backward=backward, **more)


def _product_jvp(xp, ctx, dx, dy):
    x, y = ctx.saved_tensors
    return dx * y + dy * x


def product_with(
    output: Hook = lambda xp, ctx, x, y, right: right,
    gradients: Hook = lambda xp, ctx, g, x, y, gx, gy: (gx, gy),
    jvp: Hook = _product_jvp,
    **more: Any,
) -> Callable[[Any, Any], Any]:
    """The elementwise product of two tensors of one shape, with its output, gradients or forward rule replaced."""

    def setup(xp, ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(xp, ctx, g):
        x, y = ctx.saved_tensors
        return gradients(xp, ctx, g, x, y, g * xp.conj(y), g * xp.conj(x))

    methods = {"setup_context": setup, "backward": backward, "jvp": jvp, "generate_vmap_rule": True, **more}
    return custom(forward=lambda xp, x, y: output(xp, None, x, y, x * y), **methods)


SQUARE = Function(
    name="Square",
    body=square_with(),
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (x * x,),
    vjp=lambda cotangents, x: (2 * cotangents[0] * np.conj(x),),
    document="none",
    exercises="one argument of any shape",
)

PRODUCT = Function(
    name="Product",
    body=product_with(),
    arguments=(Array(name="x", dims="*s"), Array(name="y", dims="*s")),
    forward=lambda x, y: (x * y,),
    vjp=lambda cotangents, x, y: (cotangents[0] * np.conj(y), cotangents[0] * np.conj(x)),
    jvp=lambda tangents, x, y: (tangents[0] * y + tangents[1] * x,),
    batching=True,
    document="none",
    exercises="two arguments of one shape",
)


def pair_with(
    save: Hook = lambda xp, ctx, x, y, z: None, gradient: Hook = lambda xp, ctx, g, h: g - h, **more: Any
) -> Callable[[Any, Any], Any]:
    """``x`` and ``-x`` as two outputs."""

    def forward(xp, ctx, x):
        y, z = xp.copy(x), -x
        save(xp, ctx, x, y, z)
        return y, z

    return custom(forward=forward, backward=lambda xp, ctx, g, h: gradient(xp, ctx, g, h), **more)


PAIR = Function(
    name="Pair",
    body=pair_with(),
    arguments=(Array(name="x", dims="*s"),),
    outputs=(Output(name="first"), Output(name="second")),
    forward=lambda x: (x, -x),
    vjp=lambda cotangents, _: (cotangents[0] - cotangents[1],),
    document="none",
    exercises="two outputs",
)


def signed_with(mark: Hook, gradient: Hook = lambda xp, ctx, g, h, x: 2 * g * x) -> Callable[[Any, Any], Any]:
    """The square, and the sign as a floating output that is not differentiable."""

    def forward(xp, ctx, x):
        sign = xp.sign(x)
        mark(ctx, sign)
        ctx.save_for_backward(x)
        return x * x, sign

    def backward(xp, ctx, g, h):
        return gradient(xp, ctx, g, h, *ctx.saved_tensors)

    return custom(forward=forward, backward=backward)


SIGNED = Function(
    name="Signed",
    body=signed_with(lambda ctx, sign: ctx.mark_non_differentiable(sign)),
    arguments=(Array(name="x", dims="*s"),),
    outputs=(Output(name="square"), Output(name="sign", differentiable=False)),
    forward=lambda x: (x * x, np.sign(x.value if hasattr(x, "value") else x)),
    vjp=lambda cotangents, x: (2 * cotangents[0] * x,),
    dtypes=("float64", "float32", "float16", "bfloat16"),
    document="none",
    exercises="a floating output that is not differentiable",
)
