"""once_differentiable with torch's further ways to ask for a second derivative."""

from contextlib import suppress

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._powers import save_inputs

ENTRIES = st.lists(st.sampled_from((1.0, -1.0, 2.0, -2.0)), min_size=1, max_size=3)


def _power(subject, n, once=True):
    """x ** n, by default with a backward that is declared once-differentiable."""

    def slope(ctx, g):
        (x,) = ctx.saved_tensors
        return g * n * x ** (n - 1)

    backward = torch.autograd.function.once_differentiable(slope) if once else slope
    return subject.custom(forward=lambda x: x**n, setup_context=save_inputs, backward=backward, jvp=slope)


@keeps("ONCE-03", variant="strict")
def test_grad_of_a_gradient_raises_where_no_input_may_be_unused(subject, data):
    """grad without allow_unused raises for a second derivative by x, the cotangent or both."""
    n, xs = subject.draw(data, (2, 3), "power"), subject.draw(data, ENTRIES, "x")
    wanted = subject.draw(data, (("x",), ("cotangent",), ("x", "cotangent")), "with respect to")

    def second(f):
        variables = {"x": subject.tensor(xs).requires_grad_(), "cotangent": subject.tensor(xs).requires_grad_()}
        x, g = variables.values()
        (first,) = torch.autograd.grad(f(x), x, g, create_graph=True)
        return torch.autograd.grad(first.sum(), [variables[name] for name in wanted])

    subject.assert_raises(RuntimeError, lambda: second(_power(subject, n)), "grad of a gradient")
    what = "grad of a gradient that is not declared once-differentiable"
    subject.assert_accepted(lambda: second(_power(subject, n, once=False)), what)


@keeps("ONCE-05")
def test_nested_func_grad_raises(subject, data):
    """func.grad is right, and a nested one raises and names once_differentiable."""
    n, xs = subject.draw(data, (2, 3), "power"), subject.draw(data, ENTRIES, "x")
    more = subject.draw(data, (0, 1, 2), "factor of a further term")
    once, x = _power(subject, n), subject.tensor(xs)

    def f(x):
        return (once(x) + more * x * x).sum()

    first = torch.func.grad(f)
    subject.assert_same("func.grad", got=first(x), expected=n * x ** (n - 1) + 2 * more * x)
    action = torch.func.grad(lambda x: first(x).sum())
    subject.assert_raises(RuntimeError, lambda: action(x), "nested func.grad", naming=["once_differentiable"])


@keeps("ONCE-08")
def test_forward_mode_over_a_constant_cotangent(subject, data):
    """func.jvp of func.grad of a Function alone raises or is right."""
    n, x, second = _forward_over_reverse(subject, data, outer=1)
    with suppress(RuntimeError):
        subject.assert_same("forward over reverse", got=second(), expected=n * (n - 1) * x ** (n - 2.0))


@keeps("ONCE-08", variant="cotangent")
def test_forward_mode_over_a_cotangent_that_moves(subject, data):
    """func.jvp of func.grad of a product of Functions raises or is right."""
    n, x, second = _forward_over_reverse(subject, data, outer=2)
    with suppress(RuntimeError):
        expected = 2 * n * (2 * n - 1) * x ** (2 * n - 2.0)
        subject.assert_same("forward over reverse, where the cotangent moves", got=second(), expected=expected)


def _forward_over_reverse(subject, data, outer):
    """A power, its base, and the tangent of the gradient of a product of ``outer`` such powers."""
    n, xs = subject.draw(data, (2, 3), "power"), subject.draw(data, ENTRIES, "x")
    once, x = _power(subject, n), subject.tensor(xs)
    first = torch.func.grad(lambda x: torch.sum(once(x) if outer == 1 else once(x) * once(x)))
    got = first(x)
    subject.assert_same("func.grad", got=got, expected=outer * n * np.array(xs) ** (outer * n - 1))
    return n, np.array(xs), lambda: torch.func.jvp(first, (x,), (torch.ones_like(x),))[1]


@keeps("ONCE-07", variant="inputs")
def test_backward_for_some_inputs_with_other_terms_raises(subject, data):
    """backward(inputs=...) of a gradient with other terms raises and names once_differentiable."""
    n, xs = subject.draw(data, (1, 2, 3), "power"), subject.draw(data, ENTRIES, "x")
    x = subject.tensor(xs).requires_grad_()
    (first,) = torch.autograd.grad((_power(subject, n)(x) ** 2 + x**3).sum(), x, create_graph=True)
    what = "backward of a gradient for some inputs"
    naming = ["once_differentiable"]
    subject.assert_raises(RuntimeError, lambda: first.sum().backward(inputs=[x]), what, naming=naming)
