"""Complex numbers in PyLayers."""

import numpy as np
import paddle
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.paddle._layers import constant, layer, leaf

COMPLEX = st.builds(complex, st.integers(-3, 3), st.integers(-3, 3))


@keeps("PADDLE-TYPE-01")
def test_gradients_are_conjugated(subject, data):
    """Complex gradients are conjugated in a layer and in built-in operations alike."""
    dtype = subject.draw(data, ("complex128", "complex64"), "dtype")
    z, w, cotangent = (subject.draw(data, COMPLEX, name) for name in ("z", "w", "gradient of the output"))
    inside = subject.draw(data, st.booleans(), "in a layer")
    factor = constant(w, dtype)
    product = layer(lambda _, x: factor * x, lambda _, g: paddle.conj(factor) * g).apply
    x = leaf(z, dtype)
    y = (product if inside else lambda x: factor * x)(x) * x
    found = paddle.grad(y, x, constant(cotangent, dtype))
    subject.assert_all_same("gradient", got=found, expected=[np.array(np.conj(2 * w * z) * cotangent)])


@keeps("PADDLE-TYPE-02")
def test_exp_of_complex128_has_double_precision(subject, data):
    """The documented exp layer is exact to a few roundings of double precision."""
    z = np.array(subject.draw(data, COMPLEX.filter(lambda z: z.real), "z"))

    def forward(ctx, x):
        y = paddle.exp(x)
        ctx.save_for_backward(y)
        return y

    apply = layer(forward, lambda ctx, g: g * paddle.conj(ctx.saved_tensor()[0])).apply
    expected = np.exp(z)
    error = abs(apply(leaf(z, "complex128")).numpy() - expected) / abs(expected) / np.finfo(np.float64).eps
    # Two faithfully rounded factors are multiplied; single precision would be off by about 10 ** 8.
    what = "relative error of exp in complex128, in units of its rounding"
    subject.assert_that(bool(error <= 8), what, got=float(error), expected="at most 8")
