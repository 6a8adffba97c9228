"""Printed Functions that compute a formula, and are wrong as printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from autograd_conformance.reference.definitions import COMPLEX, REAL, Array, Function, Output, Static
from autograd_conformance.reference.functions.elementwise import CUBE, EXP, MY_CUBE, RELU, SINH, SQUARE
from autograd_conformance.reference.functions.exhibit import Exhibit
from autograd_conformance.reference.functions.linear import LINEAR, LLTM
from autograd_conformance.reference.functions.scalars import (
    MUL_CONSTANT,
    MUL_CONSTANT_UNMATERIALIZED,
    NUMPY_MUL,
    SAVE_FOR_BACKWARD,
    SIMPLE_FUNC,
    SIMPLE_FUNC_UNMATERIALIZED,
)


def exp_unconjugated_body(xp: Any, ag: Any) -> Any:
    class Exp(ag.Function):
        @staticmethod
        def forward(ctx, i):
            result = xp.exp(i)
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result

    return Exp


EXP_UNCONJUGATED = Exhibit(
    function=replace(EXP, name="ExpUnconjugated", body=exp_unconjugated_body, dtypes=COMPLEX),
    caught_by=("VJP-REF", "VJP-FD"),
    fault="the factor exp(x) is not conjugated, which complex inputs need",
)


def square_unconjugated_body(xp: Any, ag: Any) -> Any:  # noqa: ARG001 - every body takes both
    class Square(ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_out):
            (x,) = ctx.saved_tensors
            return grad_out * 2 * x

    return Square


SQUARE_UNCONJUGATED = Exhibit(
    function=replace(SQUARE, name="SquareUnconjugated", body=square_unconjugated_body, dtypes=COMPLEX),
    caught_by=("VJP-REF", "VJP-FD"),
    fault="the factor 2x is not conjugated, which complex inputs need",
)


MUL_CONSTANT_UNCONJUGATED = Exhibit(
    function=replace(
        MUL_CONSTANT,
        name="MulConstantUnconjugated",
        arguments=(Array(name="tensor", dims="*s"), Static(name="constant", choices=lambda _: (1j, 1 + 0.5j))),
        vjp=lambda cotangents, _, constant: (cotangents[0] * np.conj(constant), None),
        dtypes=COMPLEX,
    ),
    caught_by=("VJP-REF", "VJP-FD"),
    fault="the constant is not conjugated, so the gradient is wrong where it is complex",
)


def relu_one_at_zero_body(xp: Any, ag: Any) -> Any:
    class MyReLU(ag.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return xp.where(input < 0, xp.zeros_like(input), input)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return xp.where(input < 0, xp.zeros_like(grad_output), grad_output)

    return MyReLU


RELU_ONE_AT_ZERO = Exhibit(
    function=replace(RELU, name="ReLUOneAtZero", body=relu_one_at_zero_body),
    caught_by=("VJP-REF",),
    fault="passes the gradient at 0, where the subgradient of minimum norm is 0",
)


def cube_second_cotangent_body(xp: Any, ag: Any) -> Any:
    class CubeGenVmap(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3, 3 * x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output[1])
            ctx.save_for_forward(inputs[0], output[1])

        @staticmethod
        def backward(ctx, grad_output, grad_saved):  # noqa: ARG004 - the fault
            _, dinput = ctx.saved_tensors
            return grad_output * xp.conj(dinput) + 6 * xp.conj(dinput)

        @staticmethod
        def jvp(ctx, input_tangent):
            input, dinput = ctx.saved_tensors
            return input_tangent * dinput, 6 * input_tangent * input

    return CubeGenVmap


CUBE_SECOND_COTANGENT = Exhibit(
    function=replace(
        MY_CUBE,
        name="CubeSecondCotangent",
        body=cube_second_cotangent_body,
        document="torch.testing._internal.autograd_function_db, CubeGenVmap",
    ),
    caught_by=("VJP-REF", "VJP-LINEAR", "JVP-ADJOINT"),
    fault="adds 6 * dinput where 6 * grad_saved * input belongs, so the gradient is not even zero for zero cotangents",
)


def cube_unscaled_body(xp: Any, ag: Any) -> Any:
    class NumpyCubeNotComposable(ag.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input**3

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, grad_output):  # noqa: ARG004 - the fault
            (input,) = ctx.saved_tensors
            return 3 * xp.conj(input) ** 2

    return NumpyCubeNotComposable


CUBE_UNSCALED = Exhibit(
    function=replace(
        CUBE,
        name="CubeUnscaled",
        body=cube_unscaled_body,
        double="once",
        document="torch.testing._internal.autograd_function_db, NumpyCubeNotComposable",
    ),
    caught_by=("VJP-REF", "VJP-LINEAR", "VJP-CHAIN"),
    fault="returns the derivative instead of its product with the cotangent",
)


def cube_through_numpy_body(xp: Any, ag: Any) -> Any:
    class NumpyCube(ag.Function):
        @staticmethod
        def forward(ctx, input):
            # Copied first: NumPy cannot see a lazily conjugated tensor.
            values = xp.to_numpy(xp.copy(input))
            ctx.values = values
            return xp.from_numpy(values**3, input)

        @staticmethod
        def backward(ctx, grad_output):
            return xp.from_numpy(3 * xp.to_numpy(xp.copy(grad_output)) * np.conj(ctx.values) ** 2, grad_output)

    return NumpyCube


CUBE_THROUGH_NUMPY = Exhibit(
    function=replace(
        CUBE,
        name="CubeThroughNumpy",
        body=cube_through_numpy_body,
        dtypes=("float64", "float32", "float16", *COMPLEX),
        needs=frozenset({"numpy"}),
        document="Creating Extensions Using NumPy and SciPy (tutorial)",
    ),
    caught_by=("DBL-CORRECT",),
    fault="computes the gradient in NumPy, where nothing is recorded, without declaring it once-differentiable",
)


def sinh_bad_body(xp: Any, ag: Any) -> Any:
    class SinhBad(ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.exp_x = xp.exp(x)
            ctx.exp_minus_x = xp.exp(-x)
            return (ctx.exp_x - ctx.exp_minus_x) / 2

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out * (xp.conj(ctx.exp_x + ctx.exp_minus_x) / 2)

    return SinhBad


SINH_BAD = Exhibit(
    function=replace(
        SINH,
        name="SinhBad",
        body=sinh_bad_body,
        outputs=(Output(),),
        forward=lambda x: ((np.exp(x) - np.exp(-x)) / 2,),
        vjp=lambda cotangents, x: (cotangents[0] * ((np.conj(np.exp(x)) + np.conj(np.exp(-x))) / 2),),
    ),
    caught_by=("DBL-CORRECT",),
    fault="keeps intermediates on ctx, through which no second derivative flows back to x",
)


def linear_squeezed_bias_body(xp: Any, ag: Any) -> Any:
    class LinearFunction(ag.Function):
        @staticmethod
        def forward(ctx, input, weight, bias=None):
            ctx.save_for_backward(input, weight, bias)
            output = input @ xp.matrix_transpose(weight)
            if bias is not None:
                output = output + bias
            return output

        @staticmethod
        def backward(ctx, grad_output):
            input, weight, bias = ctx.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_input = grad_output @ xp.conj(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = xp.matrix_transpose(grad_output) @ xp.conj(input)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = xp.sum(grad_output, axis=0)
                if grad_bias.shape[0] == 1:
                    grad_bias = xp.reshape(grad_bias, ())
            return grad_input, grad_weight, grad_bias

    return LinearFunction


LINEAR_SQUEEZED_BIAS = Exhibit(
    function=replace(
        LINEAR,
        name="LinearSqueezedBias",
        body=linear_squeezed_bias_body,
        document="Extending PyTorch, example, in early versions",
    ),
    caught_by=("VJP-REF", "VJP-FIT"),
    fault="squeezes the gradient of the bias, which then is 0-d where there is one output feature",
)


def two_matmuls_body(xp: Any, ag: Any) -> Any:
    class TwoMatmuls(ag.Function):
        @staticmethod
        def forward(ctx, x, w1, w2):
            h = x @ w1
            ctx.save_for_backward(x, h, w1, w2)
            return h @ w2

        @staticmethod
        def backward(ctx, grad_output):
            x, h, w1, w2 = ctx.saved_tensors
            grad_h = grad_output @ xp.matrix_transpose(xp.conj(w2))
            grad_w2 = xp.matrix_transpose(xp.conj(h)) @ grad_output
            grad_w1 = xp.matrix_transpose(xp.conj(x)) @ grad_h
            return grad_h @ xp.matrix_transpose(xp.conj(w1)), grad_w1, grad_w2

    return TwoMatmuls


def _two_matmuls_vjp(cotangents: Any, x: Any, w1: Any, w2: Any) -> tuple[Any, ...]:
    grad_h = cotangents[0] @ np.conj(w2).T
    return grad_h @ np.conj(w1).T, np.conj(x).T @ grad_h, np.conj(x @ w1).T @ cotangents[0]


TWO_MATMULS = Exhibit(
    function=Function(
        name="TwoMatmuls",
        body=two_matmuls_body,
        arguments=(Array(name="x", dims="n a"), Array(name="w1", dims="a b"), Array(name="w2", dims="b c")),
        forward=lambda x, w1, w2: (x @ w1 @ w2,),
        vjp=_two_matmuls_vjp,
        sizes={"n": (1, 2, 0, 3), "a": (1, 2, 3, 0), "b": (1, 2, 3, 0), "c": (1, 2, 3, 0)},
        document="Extending PyTorch, clear_saved_tensors_on_access",
        exercises="a product of matrices whose intermediate is saved",
    ),
    caught_by=("DBL-CORRECT",),
    fault="saves the intermediate x @ w1, which double backward takes for a constant, without declaring it",
)


def _lltm(xp: Any, ag: Any, *, declared: bool = True, slope_at_zero: int = 1, bias_fits: bool = True) -> Any:
    """The LLTM cell. Each fault of the printed one can be switched on alone."""
    declare = ag.once_differentiable if declared else lambda backward: backward

    def sigmoid(z):
        return (xp.tanh(z / 2) + 1) / 2

    def elu(z):
        return xp.where(z > 0, z, xp.exp(xp.where(z > 0, xp.zeros_like(z), z)) - 1)

    def d_elu(z):
        slope = xp.exp(xp.where(z > 0, xp.zeros_like(z), z))
        return xp.where(z == 0, xp.ones_like(z) * slope_at_zero, slope)

    class LLTM(ag.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            s = old_cell.shape[1]
            x = xp.concat([old_h, input], axis=1)
            gates = x @ xp.matrix_transpose(weights) + bias
            input_gate = sigmoid(gates[:, :s])
            output_gate = sigmoid(gates[:, s : 2 * s])
            candidate = elu(gates[:, 2 * s :])
            new_cell = old_cell + candidate * input_gate
            new_h = xp.tanh(new_cell) * output_gate
            ctx.save_for_backward(new_cell, input_gate, output_gate, candidate, x, gates, weights)
            return new_h, new_cell

        @staticmethod
        @declare
        def backward(ctx, grad_h, grad_cell):
            new_cell, input_gate, output_gate, candidate, x, gates, weights = ctx.saved_tensors
            s = new_cell.shape[1]
            tanh_cell = xp.tanh(new_cell)
            d_cell = grad_cell + (1 - tanh_cell**2) * output_gate * grad_h
            d_gates = xp.concat(
                [
                    candidate * d_cell * input_gate * (1 - input_gate),
                    tanh_cell * grad_h * output_gate * (1 - output_gate),
                    input_gate * d_cell * d_elu(gates[:, 2 * s :]),
                ],
                axis=1,
            )
            d_weights = xp.matrix_transpose(d_gates) @ x
            d_bias = xp.sum(d_gates, axis=0)
            if not bias_fits:
                d_bias = xp.expand_dims(d_bias, axis=0)
            return d_gates @ weights[:, s:], d_weights, d_bias, d_gates @ weights[:, :s], d_cell

    return LLTM


def lltm_undeclared_body(xp: Any, ag: Any) -> Any:
    return _lltm(xp, ag, declared=False)


LLTM_UNDECLARED = Exhibit(
    function=replace(LLTM, name="LLTMUndeclared", body=lltm_undeclared_body, double="supported"),
    caught_by=("DBL-CORRECT",),
    fault="saves intermediates, which double backward takes for constants, without declaring it once-differentiable",
)


def lltm_elu_slope_body(xp: Any, ag: Any) -> Any:
    return _lltm(xp, ag, slope_at_zero=0)


LLTM_ELU_SLOPE = Exhibit(
    function=replace(LLTM, name="LLTMEluSlope", body=lltm_elu_slope_body),
    caught_by=("VJP-REF",),
    fault="takes 0 for the derivative of elu at 0, where it is 1",
)


def lltm_bias_row_body(xp: Any, ag: Any) -> Any:
    return _lltm(xp, ag, bias_fits=False)


LLTM_BIAS_ROW = Exhibit(
    function=replace(LLTM, name="LLTMBiasRow", body=lltm_bias_row_body),
    caught_by=("VJP-FIT",),
    fault="gives the bias a gradient of one row, which only the engine's reduction brings to the bias's shape",
)


def mul_constant_forgets_none_body(xp: Any, ag: Any) -> Any:  # noqa: ARG001 - every body takes both
    class MulConstant(ag.Function):
        @staticmethod
        def forward(tensor, constant):
            return tensor * constant

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            _, constant = inputs
            ctx.set_materialize_grads(False)
            ctx.constant = constant

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.constant, None

    return MulConstant


MUL_CONSTANT_FORGETS_NONE = Exhibit(
    function=replace(MUL_CONSTANT_UNMATERIALIZED, name="MulConstantForgetsNone", body=mul_constant_forgets_none_body),
    caught_by=("VJP-UNUSED",),
    fault="switches materialization off and multiplies the cotangent None",
)


def simple_func_forgets_none_body(xp: Any, ag: Any) -> Any:
    class SimpleFunc(ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return xp.copy(x), xp.copy(x)

        @staticmethod
        @ag.once_differentiable
        def backward(ctx, g1, g2):  # noqa: ARG004 - the documented signature
            return g1 + g2

    return SimpleFunc


SIMPLE_FUNC_FORGETS_NONE = Exhibit(
    function=replace(SIMPLE_FUNC_UNMATERIALIZED, name="SimpleFuncForgetsNone", body=simple_func_forgets_none_body),
    caught_by=("VJP-UNUSED",),
    fault="switches materialization off and adds the cotangent None of the output that is not used",
)


def mul_constant_tensor_body(xp: Any, ag: Any) -> Any:  # noqa: ARG001 - every body takes both
    class MulConstant(ag.Function):
        @staticmethod
        def forward(tensor, constant):
            return tensor * constant

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            _, constant = inputs
            ctx.constant = constant

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.constant, None

    return MulConstant


MUL_CONSTANT_TENSOR = Exhibit(
    function=replace(
        MUL_CONSTANT,
        name="MulConstantTensor",
        body=mul_constant_tensor_body,
        arguments=(Array(name="tensor", dims="*s"), Array(name="constant", dims="")),
        vjp=lambda cotangents, tensor, constant: (
            cotangents[0] * np.conj(constant),
            np.sum(cotangents[0] * np.conj(tensor)),
        ),
        dtypes=REAL,
        exercises="a constant that is itself a tensor",
    ),
    caught_by=("VJP-REF", "VJP-NONE"),
    fault="returns None for the constant, which gets no gradient where it is a tensor that requires grad",
)


def save_for_backward_undeclared_body(xp: Any, ag: Any) -> Any:
    class SaveForBackward(ag.Function):
        @staticmethod
        def forward(ctx, x, y, z: int):
            w = x * z
            out = x * y + y * z + w * y
            ctx.save_for_backward(x, y, w, out)
            ctx.z = z
            return out

        @staticmethod
        def backward(ctx, grad_out):
            x, y, w, _ = ctx.saved_tensors
            z = ctx.z
            gx = grad_out * xp.conj(y + y * z)
            gy = grad_out * xp.conj(x + z + w)
            return gx, gy, None

    return SaveForBackward


SAVE_FOR_BACKWARD_UNDECLARED = Exhibit(
    function=replace(
        SAVE_FOR_BACKWARD,
        name="SaveForBackwardUndeclared",
        body=save_for_backward_undeclared_body,
        double="supported",
    ),
    caught_by=("DBL-CORRECT",),
    fault="saves the intermediate w, which double backward takes for a constant, without declaring it",
)


def mul_unreduced_body(xp: Any, ag: Any) -> Any:
    class NumpyMul(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):  # noqa: ARG004 - the documented signature
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            gx = gy = None
            if ctx.needs_input_grad[0]:
                gx = NumpyMul.apply(grad_output, xp.conj(y))
            if ctx.needs_input_grad[1]:
                gy = NumpyMul.apply(grad_output, xp.conj(x))
            return gx, gy

        @staticmethod
        def jvp(ctx, x_tangent, y_tangent):
            x, y = ctx.saved_tensors
            return x_tangent * y + y_tangent * x

    return NumpyMul


MUL_UNREDUCED = Exhibit(
    function=replace(NUMPY_MUL, name="MulUnreduced", body=mul_unreduced_body),
    caught_by=("VJP-FIT",),
    fault="returns gradients of the broadcast shape and relies on the engine to sum them to the arguments' shapes",
)


def zero_gradients_body(xp: Any, ag: Any) -> Any:
    class ZeroGradients(ag.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return xp.copy(x), xp.copy(y)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gx, gy):  # noqa: ARG004 - the documented signature
            return xp.zeros((3, 4, *gx.shape), dtype=gx.dtype, device=gx.device), xp.zeros_like(gy)

    return ZeroGradients


ZERO_GRADIENTS = Exhibit(
    function=replace(
        SIMPLE_FUNC,
        name="ZeroGradients",
        body=zero_gradients_body,
        arguments=(Array(name="x", dims="*s"), Array(name="y", dims="*s")),
        forward=lambda x, y: (x, y),
        vjp=lambda cotangents, *_: (0 * cotangents[0], 0 * cotangents[1]),
        double="supported",
        surrogate=True,
        batching=True,
        document="torch.testing._internal.autograd_function_db, ZeroGradientsGenVmap",
        exercises="gradients that are zero on purpose",
    ),
    caught_by=("VJP-FIT",),
    fault="returns for x a gradient with two more dimensions than x has",
)
