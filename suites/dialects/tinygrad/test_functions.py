"""Functions with a grad_fxn: what it gets, and how its result is used."""

import numpy as np
import tinygrad
from hypothesis import strategies as st
from tinygrad import Tensor

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.linear import SHAPES, Case, Spelling
from autograd_conformance.suites.dialects.shared.sentences import row


def custom(forward, backward):
    """A function with a grad_fxn, whose values are tensors for ``backward``; it gets the call last or by keyword."""

    def grad_fxn(*given, call=None):
        *gradients, made = given if call is None else (*given, call)
        found = backward([*map(Tensor, made.src[1:])], [*map(Tensor, gradients)])
        return tuple(g.uop if isinstance(g, Tensor) else g for g in found)

    @tinygrad.function(grad_fxn=grad_fxn)
    def function(*xs):
        outputs = forward(*xs)
        return outputs if len(outputs) > 1 else outputs[0]

    return function


TINYGRAD = {"grad_fxn": Spelling(custom)}

test_the_rule_decides = row("TINYGRAD-02", sentences.the_rule_decides, TINYGRAD, outputs=1)
test_none = row("TINYGRAD-05", sentences.none_is_a_gradient_of_zeros, TINYGRAD, outputs=1)
test_number_of_gradients = row(
    "TINYGRAD-04",
    sentences.another_number_of_gradients_raises,
    TINYGRAD,
    refusal=AssertionError,
    naming=lambda given, wanted: [given + 1, wanted + 1],
    least=1,
    outputs=1,
)


@keeps("TINYGRAD-01")
def test_grad_fxn_gets_gradient_and_call(subject, data):
    """grad_fxn gets the output's gradient, and the call with the inputs after its body."""
    case, seen = Case(subject, data, TINYGRAD, outputs=1), []

    def backward(xs, gs):
        seen.extend((gs[0].shape, gs[0].dtype, *gs, *xs))
        return case.rule(xs, gs)

    (y,), gradients = case.pulled(case.custom(backward))
    case.assert_outputs([y])
    subject.assert_equal("shape and dtype of the gradient", got=seen[:2], expected=[y.shape, y.dtype])
    subject.assert_all_same("gradient that grad_fxn gets", got=seen[2:3], expected=case.linear.cotangents)
    subject.assert_all_same("inputs of the call", got=seen[3:], expected=case.linear.points)
    case.assert_gradients(gradients)


@keeps("TINYGRAD-03")
def test_a_tensor_given_twice_is_one_input(subject, data):
    """A tensor at several places is one input of the call and has one gradient."""
    case, seen = Case(subject, data, TINYGRAD, min_arguments=2, outputs=1), []
    which = subject.draw(data, st.tuples(*[st.integers(0, 1)] * case.linear.arguments), "tensor at each place")
    distinct = list(dict.fromkeys(which))

    def backward(xs, gs):
        seen.extend(xs)
        return tuple(gs[0] * (1 + k) for k in distinct)

    y = case.custom(backward)(*(case.points[k] for k in which))
    got = y.gradient(*(case.points[k] for k in distinct), gradient=case.tensors(case.linear.cotangents)[0])
    subject.assert_all_same("inputs of the call", got=seen, expected=[case.linear.points[k] for k in distinct])
    expected = [(1 + k) * case.linear.cotangents[0] for k in distinct]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("TINYGRAD-06")
def test_each_output_has_its_gradient(subject, data):
    """With several outputs, all used, grad_fxn gets their gradients in order."""
    case, seen = Case(subject, data, TINYGRAD, arguments=1, min_outputs=2), []
    _, gradients = case.pulled(case.custom(lambda xs, gs: (seen.extend(gs), case.rule(xs, gs))[1]))
    subject.assert_all_same("gradients that grad_fxn gets", got=seen, expected=case.linear.cotangents)
    case.assert_gradients(gradients)


@keeps("TINYGRAD-07")
def test_captured_tensors_are_refused(subject, data):
    """A captured tensor raises RuntimeError, unless allow_implicit is set."""
    case = Case(subject, data, TINYGRAD, outputs=1)
    count, allowed = (
        subject.draw(data, st.integers(0, 2), "captured"),
        subject.draw(data, st.booleans(), "allow_implicit"),
    )
    captured = [Tensor(np.full(1, 10.0**k), dtype=case.points[0].dtype).realize() for k in range(count)]

    @tinygrad.function(allow_implicit=allowed)
    def capturing(*xs):
        return sum(captured, *case.linear.primal(*xs))

    if count and not allowed:
        what = f"a function that captures {count} tensors"
        action = lambda: capturing(*case.points)  # noqa: E731
        subject.assert_raises(RuntimeError, action, what, naming=["implicit", count])
    else:
        expected = case.linear.primal(*case.linear.points)[0] + sum(10.0**k for k in range(count))
        expected = np.atleast_1d(expected) if count else expected
        subject.assert_same("output", got=capturing(*case.points), expected=expected)


@keeps("TINYGRAD-08")
def test_other_outputs_are_refused(subject, data):
    """A function that returns anything but tensors raises RuntimeError."""
    packs = {"list": lambda y: [y], "dict": lambda y: {"y": y}, "None": lambda _: None, "number": lambda _: 1.0}
    pack = packs[subject.draw(data, packs, "returned")]
    x = subject.tensor(np.ones(subject.draw(data, SHAPES, "shape")))
    made = tinygrad.function(lambda t: pack(t * 2))
    subject.assert_raises(RuntimeError, lambda: made(x), "a function that returns no tensor", naming=["return type"])
