"""What a planted fault is, and the bodies that faults are planted in."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.definitions import Array, Function, Output

TORCH = TorchImplementation()


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A deliberate fault, in a Function or in an implementation, that the check of a property must catch.

    ``function`` on ``implementation`` is wrong, ``twin`` on ``twin_implementation`` differs from it by the fault alone.
    ``says`` lists words that the message must contain.
    """

    property_id: str
    name: str
    fault: str
    says: tuple[str, ...]
    function: Function
    twin: Function
    implementation: Implementation = TORCH
    twin_implementation: Implementation = TORCH
    variant: str = ""
    device: str = "cpu"
    raises: type[AssertionError] = Broken

    def __str__(self) -> str:
        return "-".join(filter(None, (self.property_id, self.variant, self.name)))


def planted(
    property_id: str, twin: Function, name: str, body: Any, fault: str, *says: str, changes: Any = None, **options: Any
) -> Planted:
    """A fault in the body of a Function."""
    function = replace(twin, name=name, body=body, **(changes or {}))
    return Planted(property_id=property_id, name=name, fault=fault, says=says, function=function, twin=twin, **options)


def misbehaving(
    property_id: str,
    implementation: Implementation,
    name: str,
    function: Function,
    fault: str,
    *says: str,
    twin: Implementation = TORCH,
    **options: Any,
) -> Planted:
    """A fault in an implementation, shown by a right Function."""
    return Planted(
        property_id=property_id,
        name=name,
        fault=fault,
        says=says,
        function=function,
        twin=function,
        implementation=implementation,
        twin_implementation=twin,
        **options,
    )


def custom(**methods: Any) -> Callable[[Any, Any], Any]:
    """A body made of methods that take ``xp`` before their other parameters; what is not callable is an attribute."""

    def bound(xp: Any, method: Any) -> Any:
        return staticmethod(lambda *args: method(xp, *args)) if callable(method) else method

    return lambda xp, ag: type("Custom", (ag.Function,), {name: bound(xp, m) for name, m in methods.items()})


Output1 = Callable[..., Any]


def square_with(
    output: Output1 = lambda xp, ctx, x, y: y,
    gradient: Output1 = lambda xp, ctx, g, x, right: right,
    save: Output1 = lambda xp, ctx, x: ctx.save_for_backward(x),
    saved: Output1 = lambda ctx: ctx.saved_tensors[0],
    **more: Any,
) -> Callable[[Any, Any], Any]:
    """Square, with its output, its gradient or what it saves replaced."""

    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        save(xp, ctx, x)
        return output(xp, ctx, x, x * x)

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
        x = saved(ctx)
        return gradient(xp, ctx, g, x, 2 * g * xp.conj(x))

    return custom(forward=forward, backward=backward, **more)


def _product_jvp(xp: Any, ctx: Any, dx: Any, dy: Any) -> Any:
    x, y = ctx.saved_tensors
    return dx * y + dy * x


def product_with(
    output: Output1 = lambda xp, ctx, x, y, right: right,
    gradients: Output1 = lambda xp, ctx, g, x, y, gx, gy: (gx, gy),
    jvp: Output1 = _product_jvp,
    **more: Any,
) -> Callable[[Any, Any], Any]:
    """The elementwise product of two tensors of one shape, with its output, gradients or forward rule replaced."""

    def setup(xp: Any, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(xp: Any, ctx: Any, g: Any) -> Any:
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
    save: Output1 = lambda xp, ctx, x, y, z: None,
    gradient: Output1 = lambda xp, ctx, g, h: g - h,
    **more: Any,
) -> Callable[[Any, Any], Any]:
    """``x`` and ``-x`` as two outputs."""

    def forward(xp: Any, ctx: Any, x: Any) -> Any:
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


def signed_with(mark: Output1, gradient: Output1 = lambda xp, ctx, g, h, x: 2 * g * x) -> Callable[[Any, Any], Any]:
    """The square, and the sign as a floating output that is not differentiable."""

    def forward(xp: Any, ctx: Any, x: Any) -> Any:
        sign = xp.sign(x)
        mark(ctx, sign)
        ctx.save_for_backward(x)
        return x * x, sign

    def backward(xp: Any, ctx: Any, g: Any, h: Any) -> Any:
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
