"""Functions with a grad_fxn: what it gets, and how its result is used."""

import numpy as np
import tinygrad
from hypothesis import strategies as st
from tinygrad import Tensor

from autograd_conformance.harness.checking.marks import keeps

SHAPES = ((), (1,), (3,), (2, 2))
FACTORS = st.sampled_from((-3, -2, -1, 1, 2, 3))


def _tensor(values):
    """A realized tensor, since constants are not inputs of a function."""
    array = np.asarray(values, np.float64)
    return Tensor(array.ravel()).realize().reshape(array.shape)


def _filled(shape, start):
    """Small integers, all different."""
    return np.arange(start, start + np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)


def _added(factors, grad_fxn, **options):
    """A function that adds its inputs, each times a factor; ``grad_fxn`` gives its gradients."""

    @tinygrad.function(grad_fxn=grad_fxn, **options)
    def weighted(*xs):
        return sum((x * f for x, f in zip(xs[1:], factors[1:], strict=True)), xs[0] * factors[0])

    return weighted


def _gradients(y, inputs, g):
    return [x.numpy() for x in y.gradient(*inputs, gradient=_tensor(g))]


def _drawn(subject, data, least=1):
    """Factors, inputs in NumPy, and a gradient of the output."""
    factors = subject.draw(data, st.lists(FACTORS, min_size=least, max_size=3), "factors of the inputs")
    shape = subject.draw(data, SHAPES, "shape")
    return factors, [_filled(shape, 1 + 10 * i) for i in range(len(factors))], _filled(shape, 5)


@keeps("TINYGRAD-01")
def test_grad_fxn_gets_gradient_and_call(subject, data):
    """grad_fxn gets the output's gradient, and the call with the inputs after its body."""
    factors, arrays, g = _drawn(subject, data)
    seen = []

    def grad_fxn(grad, call):
        seen.extend((grad.shape, grad.dtype, Tensor(grad).numpy(), *(Tensor(x).numpy() for x in call.src[1:])))
        return tuple(grad * f for f in factors)

    inputs = [_tensor(x) for x in arrays]
    y = _added(factors, grad_fxn)(*inputs)
    subject.assert_same("output", got=y, expected=sum(f * x for f, x in zip(factors, arrays, strict=True)))
    got = _gradients(y, inputs, g)
    subject.assert_equal("shape and dtype of the gradient", got=seen[:2], expected=[y.shape, y.dtype])
    subject.assert_same("gradient that grad_fxn gets", got=seen[2], expected=g)
    subject.assert_all_same("inputs of the call", got=seen[3:], expected=arrays)
    subject.assert_all_same("gradients", got=got, expected=[f * g for f in factors])


@keeps("TINYGRAD-02")
def test_the_rule_decides(subject, data):
    """The gradients follow grad_fxn, even if it does not match the body."""
    factors, arrays, g = _drawn(subject, data)
    rule_factors = subject.draw(
        data, st.lists(FACTORS, min_size=len(factors), max_size=len(factors)), "factors of the rule"
    )
    inputs = [_tensor(x) for x in arrays]
    y = _added(factors, lambda grad, _: tuple(grad * f for f in rule_factors))(*inputs)
    subject.assert_all_same("gradients", got=_gradients(y * 2, inputs, g), expected=[2 * f * g for f in rule_factors])


@keeps("TINYGRAD-03")
def test_a_tensor_given_twice_is_one_input(subject, data):
    """A tensor at several places is one input of the call and has one gradient."""
    factors, arrays, g = _drawn(subject, data, least=2)
    entries = st.lists(st.integers(0, 1), min_size=len(factors), max_size=len(factors))
    which = subject.draw(data, entries, "tensor given at each place")
    pair = [_tensor(arrays[0]), _tensor(arrays[1])]
    distinct = list(dict.fromkeys(which))
    seen = []

    def grad_fxn(grad, call):
        seen.extend(Tensor(x).numpy() for x in call.src[1:])
        return tuple(grad * (1 + k) for k in distinct)

    y = _added(factors, grad_fxn)(*(pair[k] for k in which))
    got = _gradients(y, [pair[k] for k in distinct], g)
    subject.assert_all_same("inputs of the call", got=seen, expected=[arrays[k] for k in distinct])
    subject.assert_all_same("gradients", got=got, expected=[(1 + k) * g for k in distinct])


@keeps("TINYGRAD-04")
def test_another_number_of_gradients_is_refused(subject, data):
    """Too many or too few gradients raise AssertionError with both numbers."""
    factors, arrays, g = _drawn(subject, data)
    numbers = [n for n in range(1, 6) if n != len(factors)]
    number = subject.draw(data, numbers, "number of gradients")
    inputs = [_tensor(x) for x in arrays]
    y = _added(factors, lambda grad, _: (grad,) * number)(*inputs)
    what = f"a grad_fxn that returns {number} gradients for {len(factors)} inputs"
    naming = [number + 1, len(factors) + 1]
    subject.assert_raises(AssertionError, lambda: _gradients(y, inputs, g), what, naming=naming)


@keeps("TINYGRAD-05")
def test_none_is_no_gradient(subject, data):
    """An input that gets None has zeros, or the gradient of its other uses."""
    factors, arrays, g = _drawn(subject, data)
    withheld = subject.draw(data, st.sets(st.sampled_from(range(len(factors))), min_size=1), "inputs that get None")
    alongside = subject.draw(data, st.booleans(), "the inputs are used next to the function")
    inputs = [_tensor(x) for x in arrays]
    rule = [None if i in withheld else f for i, f in enumerate(factors)]
    y = _added(factors, lambda grad, _: tuple(None if f is None else grad * f for f in rule))(*inputs)
    if alongside:
        y = y + sum(x * 4 for x in inputs)
    expected = [((f or 0) + 4 * alongside) * g for f in rule]
    subject.assert_all_same("gradients", got=_gradients(y, inputs, g), expected=expected)


@keeps("TINYGRAD-06")
def test_each_output_has_its_gradient(subject, data):
    """With several outputs, all used, grad_fxn gets their gradients in order."""
    factors = subject.draw(data, st.lists(FACTORS, min_size=2, max_size=3), "factors of the outputs")
    uses = subject.draw(data, st.lists(FACTORS, min_size=len(factors), max_size=len(factors)), "factors of their uses")
    x, g, seen = _filled((2,), 1), _filled((2,), 5), []

    def grad_fxn(*grads, call):
        seen.extend(Tensor(grad).numpy() for grad in grads)
        return (sum((grad * f for grad, f in zip(grads[1:], factors[1:], strict=True)), grads[0] * factors[0]),)

    @tinygrad.function(grad_fxn=grad_fxn)
    def several(t):
        return tuple(t * f for f in factors)

    t = _tensor(x)
    used = [y * use for y, use in zip(several(t), uses, strict=True)]
    got = _gradients(sum(used[1:], used[0]), [t], g)
    subject.assert_all_same("gradients that grad_fxn gets", got=seen, expected=[use * g for use in uses])
    total = sum(f * use for f, use in zip(factors, uses, strict=True))
    subject.assert_all_same("gradient", got=got, expected=[total * g])


@keeps("TINYGRAD-07")
def test_captured_tensors_are_refused(subject, data):
    """A captured tensor raises RuntimeError, unless allow_implicit is set."""
    factors, arrays, _ = _drawn(subject, data)
    count = subject.draw(data, st.integers(0, 2), "captured tensors")
    allowed = subject.draw(data, st.booleans(), "allow_implicit")
    captured = [Tensor(np.full(1, 10.0**k)).realize() for k in range(count)]
    inner = _added(factors, None)

    @tinygrad.function(allow_implicit=allowed)
    def capturing(*xs):
        return sum(captured, inner.fxn(*xs))

    inputs = [_tensor(x) for x in arrays]
    expected = sum(f * x for f, x in zip(factors, arrays, strict=True)) + sum(10.0**k for k in range(count))
    if count and not allowed:
        what = f"a function that captures {count} tensors"
        subject.assert_raises(RuntimeError, lambda: capturing(*inputs), what, naming=["implicit", count])
    else:
        subject.assert_same("output", got=capturing(*inputs), expected=np.atleast_1d(expected) if count else expected)


@keeps("TINYGRAD-08")
def test_other_outputs_are_refused(subject, data):
    """A function that returns anything but tensors raises RuntimeError."""
    packs = {"list": lambda y: [y], "dict": lambda y: {"y": y}, "None": lambda _: None, "number": lambda _: 1.0}
    pack = packs[subject.draw(data, packs, "returned")]
    x = _tensor(_filled(subject.draw(data, SHAPES, "shape"), 1))
    made = tinygrad.function(lambda t: pack(t * 2))
    subject.assert_raises(RuntimeError, lambda: made(x), "a function that returns no tensor", naming=["return type"])
