"""Gradients of complex functions."""

import autograd
import numpy as np
from autograd import numpy as anp
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.hips._primitives import with_vjps

INTEGERS = st.integers(-3, 3)
NUMBERS = st.builds(complex, INTEGERS, INTEGERS)
SHAPES = ((), (1,), (3,), (2, 2))


def _drawn(subject, data):
    """Small Gaussian integers in an array."""
    shape = subject.draw(data, SHAPES, "shape")
    count = int(np.prod(shape))
    numbers = subject.draw(data, st.lists(NUMBERS, min_size=count, max_size=count), "z")
    return np.array(numbers, np.complex128).reshape(shape)


def _squared(factor):
    """factor * z ** 2, with the rule of the real function."""
    return with_vjps(lambda z: factor * z * z, lambda ans, z: lambda g: g * (2 * factor * z))


@keeps("HIPS-CPLX-01")
def test_the_gradient_of_a_real_function(subject, data):
    """For a real function as one primitive, the gradient is dL/dx - i dL/dy."""
    z, a, b = _drawn(subject, data), *subject.draw(data, st.tuples(INTEGERS, INTEGERS), "weights of x, y squared")
    # L = sum(a x**2 + b y**2), so that dL/dx - i dL/dy = 2 a x - 2 i b y.
    of_z = lambda ans, z: lambda g: g * (2 * a * anp.real(z) - 2j * b * anp.imag(z))  # noqa: E731
    loss = with_vjps(lambda z: np.sum(a * z.real**2 + b * z.imag**2), of_z)
    got = autograd.grad(lambda z: loss(1 * z))(z)
    subject.assert_same("gradient", got=got, expected=2 * a * z.real - 2j * b * z.imag)


@keeps("HIPS-CPLX-01", variant="builtin")
def test_the_gradient_of_a_real_function_of_operations(subject, data):
    """For a real function made of autograd.numpy operations, the gradient is dL/dx - i dL/dy."""
    z, a, b = _drawn(subject, data), *subject.draw(data, st.tuples(INTEGERS, INTEGERS), "weights of x, y squared")
    got = autograd.grad(lambda z: anp.sum(a * anp.real(z) ** 2 + b * anp.imag(z) ** 2))(z)
    subject.assert_same("gradient", got=got, expected=2 * a * z.real - 2j * b * z.imag)


@keeps("HIPS-CPLX-01", variant="holomorphic")
def test_the_derivative_of_a_holomorphic_function(subject, data):
    """holomorphic_grad gives f' of a holomorphic function."""
    z, factor = complex(subject.draw(data, NUMBERS, "z")), subject.draw(data, NUMBERS, "factor")
    got = autograd.holomorphic_grad(_squared(factor))(z)
    subject.assert_same("derivative", got=got, expected=np.asarray(2 * factor * z))


@keeps("HIPS-CPLX-01", variant="grad")
def test_grad_of_a_complex_function(subject, data):
    """grad accepts a holomorphic function and gives f'."""
    z, factor = complex(subject.draw(data, NUMBERS, "z")), subject.draw(data, NUMBERS, "factor")
    got = subject.assert_accepted(lambda: autograd.grad(_squared(factor))(z), "grad of a complex function")
    subject.assert_same("derivative", got=got, expected=np.asarray(2 * factor * z))


@keeps("HIPS-CPLX-02")
def test_the_vjp_of_a_holomorphic_primitive(subject, data):
    """A VJP that multiplies by f' without a conjugate gets g as it is and gives g f'."""
    z, factor = _drawn(subject, data), subject.draw(data, NUMBERS, "factor")
    g = subject.draw(data, NUMBERS, "gradient of each output") * np.ones_like(z)
    arrived = []
    f = with_vjps(lambda z: factor * z * z, lambda ans, z: lambda g: (arrived.append(g), g * (2 * factor * z))[1])
    back, _ = autograd.make_vjp(f)(z)
    subject.assert_same("gradient", got=back(g), expected=g * (2 * factor * z))
    subject.assert_all_same("gradients that the VJP gets", got=arrived, expected=[g])


@keeps("HIPS-CPLX-02", variant="chain")
def test_the_vjp_of_holomorphic_primitives_one_after_another(subject, data):
    """In a chain of holomorphic primitives, the VJPs multiply without conjugates."""
    z, factors = _drawn(subject, data), subject.draw(data, st.tuples(NUMBERS, NUMBERS), "factors")
    g = subject.draw(data, NUMBERS, "gradient of each output") * np.ones_like(z)
    inner, outer = map(_squared, factors)
    back, _ = autograd.make_vjp(lambda z: 1j * outer(2 * inner(z)))(z)
    middle = 2 * factors[0] * z * z
    expected = 1j * g * (2 * factors[1] * middle) * 2 * (2 * factors[0] * z)
    subject.assert_same("gradient", got=back(g), expected=expected)


@keeps("HIPS-CPLX-03")
def test_a_real_function_by_complex_primitives(subject, data):
    """A real function that goes through complex values has a real gradient with the right values."""
    z, factor = _drawn(subject, data), subject.draw(data, NUMBERS, "factor")
    x, f = z.real, _squared(factor)
    got = autograd.elementwise_grad(lambda x: anp.real(f((1 + 1j) * x)))(x)
    # factor * (1 + i)**2 x**2 = 2 i factor x**2
    subject.assert_same("gradient", got=got, expected=np.asarray((4j * factor * x).real))
    subject.assert_equal("whether the gradient is complex", got=np.iscomplexobj(got), expected=False)
