"""Gradients of complex inputs and outputs by the conjugate Wirtinger convention, in Gaussian integers."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

NUMBERS = st.lists(st.builds(complex, st.integers(-2, 2), st.integers(-2, 2)), max_size=3)
REALS = st.lists(st.integers(-2, 2), max_size=3)
FACTORS = (1, 1j, 1 + 1j, -1 + 2j)
COMPLEX = ("complex128", "complex64")
REAL = {"complex128": "float64", "complex64": "float32"}


def _function(subject, forward, rule):
    """A Function of one tensor, with the backward ``rule(cotangent, input)``."""
    return subject.custom(
        forward=forward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        backward=lambda ctx, g: rule(g, *ctx.saved_tensors),
        separate=False,
    )


def _power(x, n):
    """x ** n by multiplication, which keeps integers exact."""
    product = 1 + 0 * x
    for _ in range(n):
        product = product * x
    return product


def _leaf(subject, values, dtype):
    return subject.tensor(np.array(values), dtype).requires_grad_()


def _holomorphic(subject, n, conjugated=True):
    def rule(g, u):
        slope = n * _power(u, n - 1)
        return g * (slope.conj() if conjugated else slope)

    return _function(subject, lambda u: _power(u, n), rule)


@keeps("CPLX-01")
def test_a_holomorphic_function_gives_the_conjugate_of_its_derivative(subject, data):
    """The gradient of a loss through a holomorphic Function is the conjugate derivative."""
    n, dtype = subject.draw(data, (1, 2, 3), "power"), subject.draw(data, COMPLEX, "dtype")
    before, after = subject.draw(data, FACTORS, "factor before"), subject.draw(data, FACTORS, "factor after")
    z = np.array(subject.draw(data, NUMBERS, "z"), complex)
    part = subject.draw(data, ("real", "imag"), "part of the output in the loss")
    leaf = _leaf(subject, z, dtype)
    loss = getattr(_holomorphic(subject, n)(leaf * before) * after, part).sum()
    slope = before * n * _power(before * z, n - 1) * after * {"real": 1, "imag": -1j}[part]
    subject.assert_same("gradient", got=torch.autograd.grad(loss, leaf)[0], expected=np.conj(slope))


@keeps("CPLX-01", variant="gradcheck", examples=0.2)
def test_gradcheck_wants_the_conjugate(subject, data):
    """gradcheck accepts a backward with the conjugate and rejects one without."""
    parts = st.sampled_from((-2, -1, 1, 2))
    numbers = st.lists(st.builds(complex, parts, parts), min_size=1, max_size=2)
    n, leaf = subject.draw(data, (2, 3), "power"), _leaf(subject, subject.draw(data, numbers, "z"), "complex128")
    got = torch.autograd.gradcheck(_holomorphic(subject, n), (leaf,), raise_exception=False)
    subject.assert_equal("gradcheck with the conjugate", got=got, expected=True)
    plain = _holomorphic(subject, n, conjugated=False)
    got = torch.autograd.gradcheck(plain, (leaf,), raise_exception=False)
    subject.assert_equal("gradcheck without the conjugate", got=got, expected=False)


@keeps("CPLX-02")
def test_a_real_gradient_for_a_complex_input_is_promoted(subject, data):
    """A real gradient of any precision becomes complex in the input's dtype."""
    dtype = subject.draw(data, COMPLEX, "dtype of the input")
    given = subject.draw(data, ("float64", "float32", "float16"), "dtype of the gradient")
    factor, z = subject.draw(data, (1, -2, 3), "factor"), np.array(subject.draw(data, NUMBERS, "z"), complex)
    kind = getattr(torch, subject.supported(given))
    real = _function(subject, lambda z: z.real * factor, lambda g, z: (g * factor).to(kind))
    leaf = _leaf(subject, z, dtype)
    (got,) = torch.autograd.grad(real(leaf).sum(), leaf)
    subject.assert_same("gradient", got=got, expected=factor + 0 * z)
    subject.assert_equal("dtype of the gradient", got=got.dtype, expected=leaf.dtype)


@keeps("CPLX-02", variant="real")
def test_a_complex_gradient_for_a_real_input_raises(subject, data):
    """A complex gradient of a real input raises; its real part is accepted."""
    dtype, factor = subject.draw(data, COMPLEX, "dtype of the output"), subject.draw(data, FACTORS, "factor")
    cotangent = subject.draw(data, FACTORS, "cotangent")
    x = np.array(subject.draw(data, REALS, "x"), float)

    def gradient(rule):
        turned = _function(subject, lambda x: x.to(getattr(torch, dtype)) * factor, rule)
        leaf = _leaf(subject, x, REAL[dtype])
        return torch.autograd.grad((turned(leaf) * cotangent).real.sum(), leaf)[0]

    def whole(g, x):
        return g * complex(factor).conjugate()

    subject.assert_raises(RuntimeError, lambda: gradient(whole), "a complex gradient for a real input")
    got = subject.assert_accepted(lambda: gradient(lambda g, x: whole(g, x).real), "its real part")
    subject.assert_same("gradient", got=got, expected=(factor * cotangent + 0 * x).real)


def _check_twice(subject, leaf, loss, weight, first, second):
    """Check the gradient of a loss and its derivative along a weight."""
    (got,) = torch.autograd.grad(loss, leaf, create_graph=True)
    subject.assert_same("gradient", got=got, expected=first)
    (again,) = torch.autograd.grad(got, leaf, torch.full_like(leaf, weight))
    subject.assert_same("second derivative", got=again, expected=second)


@keeps("CPLX-03")
def test_a_real_function_of_a_complex_input(subject, data):
    """First and second derivatives of a real function of a complex input are right."""
    a, b = subject.draw(data, (1, -1, 2), "a"), subject.draw(data, (*FACTORS, 0), "b")
    before, weight = subject.draw(data, FACTORS, "factor before"), subject.draw(data, FACTORS, "weight")
    after, dtype = subject.draw(data, (1, -2), "factor after"), subject.draw(data, COMPLEX, "dtype")
    z = np.array(subject.draw(data, NUMBERS, "z"), complex)
    # s = a * |u| ** 2 + Re(b * u), whose ds/du* is a * u + conj(b) / 2.
    real = _function(
        subject,
        lambda u: a * (u.real * u.real + u.imag * u.imag) + (b * u).real,
        lambda g, u: g * (2 * a * u + complex(b).conjugate()),
    )
    leaf = _leaf(subject, z, dtype)
    first = np.conj(before) * after * (2 * a * before * z + np.conj(b))
    second = 2 * a * after * (before * np.conj(before)) * weight + 0 * z
    _check_twice(subject, leaf, (real(leaf * before) * after).sum(), weight, first, second)


@keeps("CPLX-03", variant="complex")
def test_a_complex_function_of_a_real_input(subject, data):
    """First and second derivatives of a complex function of a real input are right."""
    n, factor = subject.draw(data, (1, 2, 3), "power"), subject.draw(data, FACTORS, "factor")
    before, weight = subject.draw(data, (1, -2), "factor before"), subject.draw(data, (1, -1, 2), "weight")
    after, dtype = subject.draw(data, FACTORS, "factor after"), subject.draw(data, COMPLEX, "dtype")
    x = np.array(subject.draw(data, REALS, "x"), float)
    turned = _function(
        subject, lambda u: _power(u, n) * factor, lambda g, u: (g * (n * _power(u, n - 1) * factor).conj()).real
    )
    leaf = _leaf(subject, x, REAL[dtype])
    loss = (turned(leaf * before) * after).real.sum()
    first = before * (after * factor).real * n * _power(before * x, n - 1)
    second = before**2 * (after * factor).real * n * (n - 1) * _power(before * x, max(n - 2, 0)) * weight
    _check_twice(subject, leaf, loss, weight, first, second)
