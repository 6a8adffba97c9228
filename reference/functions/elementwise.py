"""Documented Functions that act on each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import REAL, Array, Function, Output


def exp_body(xp: Any, ag: Any) -> Any:
    class Exp(ag.Function):
        @staticmethod
        def forward(ctx, x):
            y = xp.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * xp.conj(y)

    return Exp


EXP = Function(
    name="Exp",
    body=exp_body,
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (np.exp(x),),
    vjp=lambda cotangents, x: (cotangents[0] * np.conj(np.exp(x)),),
    document="torch.autograd.Function, class docstring",
    exercises="saves its output",
)


def square_body(xp: Any, ag: Any) -> Any:
    class Square(ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_out):
            (x,) = ctx.saved_tensors
            return grad_out * 2 * xp.conj(x)

    return Square


SQUARE = Function(
    name="Square",
    body=square_body,
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (x**2,),
    vjp=lambda cotangents, x: (2 * cotangents[0] * np.conj(x),),
    document="Double Backward with Custom Functions (tutorial)",
    exercises="saves its input, so that double backward needs nothing more",
)


def cube_body(xp: Any, ag: Any) -> Any:
    class Cube(ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad_out):
            (x,) = ctx.saved_tensors
            return CubeBackward.apply(grad_out, x)

    class CubeBackward(ag.Function):
        @staticmethod
        def forward(ctx, grad_out, x):
            ctx.save_for_backward(x, grad_out)
            return grad_out * 3 * xp.conj(x**2)

        @staticmethod
        def backward(ctx, v):
            x, grad_out = ctx.saved_tensors
            # The forward is antiholomorphic in x, so that here the cotangent is conjugated instead of the factor.
            return v * 3 * x**2, xp.conj(v) * grad_out * 6 * xp.conj(x)

    return Cube


CUBE = Function(
    name="Cube",
    body=cube_body,
    arguments=(Array(name="x", dims="*s"),),
    forward=lambda x: (x**3,),
    vjp=lambda cotangents, x: (3 * cotangents[0] * np.conj(x**2),),
    document="Double Backward with Custom Functions (tutorial)",
    exercises="its backward is itself a custom Function",
)


def my_cube_body(xp: Any, ag: Any) -> Any:
    class MyCube(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3, 3 * x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            _, dx = output
            ctx.save_for_backward(x, dx)
            ctx.save_for_forward(x, dx)

        @staticmethod
        def backward(ctx, grad_output, grad_dx):
            x, dx = ctx.saved_tensors
            return grad_output * xp.conj(dx) + grad_dx * 6 * xp.conj(x)

        @staticmethod
        def jvp(ctx, x_tangent):
            x, dx = ctx.saved_tensors
            return x_tangent * dx, 6 * x_tangent * x

    return MyCube


MY_CUBE = Function(
    name="MyCube",
    body=my_cube_body,
    arguments=(Array(name="x", dims="*s"),),
    outputs=(Output(), Output(name="dx")),
    forward=lambda x: (x**3, 3 * x**2),
    vjp=lambda cotangents, x: (3 * cotangents[0] * np.conj(x**2) + 6 * cotangents[1] * np.conj(x),),
    jvp=lambda tangents, x: (3 * x**2 * tangents[0], 6 * x * tangents[0]),
    batching=True,
    document="Extending torch.func with autograd.Function, example 2",
    exercises="returns an intermediate as an output so that it may be saved; forward mode and a generated vmap rule",
)


def sinh_body(xp: Any, ag: Any) -> Any:
    class Sinh(ag.Function):
        @staticmethod
        def forward(ctx, x):
            exp_x = xp.exp(x)
            exp_minus_x = xp.exp(-x)
            ctx.save_for_backward(exp_x, exp_minus_x)
            return (exp_x - exp_minus_x) / 2, exp_x, exp_minus_x

        @staticmethod
        def backward(ctx, grad_out, grad_exp_x, grad_exp_minus_x):
            exp_x, exp_minus_x = ctx.saved_tensors
            grad_input = grad_out * (xp.conj(exp_x + exp_minus_x) / 2)
            # The saved tensors are outputs: what a double backward sends to them comes back here.
            return grad_input + grad_exp_x * xp.conj(exp_x) - grad_exp_minus_x * xp.conj(exp_minus_x)

    return Sinh


def _sinh_vjp(cotangents: Any, x: Any) -> tuple[Any]:
    # Not np.cosh, which has no cancellation on the imaginary axis, where this formula has.
    exp_x, exp_minus_x = np.conj(np.exp(x)), np.conj(np.exp(-x))
    return (cotangents[0] * ((exp_x + exp_minus_x) / 2) + cotangents[1] * exp_x - cotangents[2] * exp_minus_x,)


SINH = Function(
    name="Sinh",
    body=sinh_body,
    arguments=(Array(name="x", dims="*s"),),
    outputs=(Output(name="sinh_x"), Output(name="exp_x"), Output(name="exp_minus_x")),
    # Not np.sinh, which has no cancellation near 0, where this formula has.
    forward=lambda x: ((np.exp(x) - np.exp(-x)) / 2, np.exp(x), np.exp(-x)),
    vjp=_sinh_vjp,
    document="Double Backward with Custom Functions (tutorial)",
    exercises="several intermediates returned as outputs, in the combined form",
)


def legendre_polynomial_3_body(xp: Any, ag: Any) -> Any:
    class LegendrePolynomial3(ag.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return 0.5 * (5 * input**3 - 3 * input)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * xp.conj(input) ** 2 - 1)

    return LegendrePolynomial3


LEGENDRE_POLYNOMIAL_3 = Function(
    name="LegendrePolynomial3",
    body=legendre_polynomial_3_body,
    arguments=(Array(name="input", dims="*s"),),
    forward=lambda x: (0.5 * (5 * x**3 - 3 * x),),
    vjp=lambda cotangents, x: (1.5 * cotangents[0] * (5 * np.conj(x) ** 2 - 1),),
    document="PyTorch: Defining New autograd Functions (tutorial)",
    exercises="arithmetic with Python numbers, which must not change the dtype",
)


def relu_body(xp: Any, ag: Any) -> Any:
    class ReLU(ag.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return xp.where(input < 0, xp.zeros_like(input), input)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            # Not a product with a mask: 0 * nan is nan.
            return xp.where(input > 0, grad_output, xp.zeros_like(grad_output))

    return ReLU


RELU = Function(
    name="ReLU",
    body=relu_body,
    arguments=(Array(name="input", dims="*s", smooth="nonzero"),),
    forward=lambda x: (np.maximum(x, 0),),
    vjp=lambda cotangents, x: (np.where(x > 0, cotangents[0], 0.0),),
    dtypes=REAL,
    document="PyTorch: Tensors and autograd (tutorial two_layer_net_custom_function)",
    exercises="a kink at 0, where the documented convention is the subgradient of minimum norm",
)
