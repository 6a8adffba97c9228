"""Gradients of several arguments and of trees, and transformations of transformed functions."""

import mlx.core as mx
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mlx._trees import (
    MLX,
    Values,
    leaves,
    mapped,
    numbered,
    shaped,
    surrogate,
    total,
    trees,
)
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

test_stopped_arguments = row(
    "MLX-STOP-01",
    sentences.no_gradient_flows_through_stopped_arguments,
    MLX,
    stop=lambda: mx.stop_gradient,
)


def _composed(subject, data, before):
    """The gradient through a rule of a function transformed ``before`` and after it, and what it should be."""
    values = Values(subject, data, shapes=((3,), (2, 3)))
    times = subject.draw(data, (5, -7), "factor of the rule")
    inner = subject.draw(data, st.lists(st.sampled_from(before), min_size=1, max_size=2), "before the gradient")
    outer = subject.draw(data, st.lists(st.sampled_from(("compile", "checkpoint")), max_size=2), "after it")
    f = surrogate(2, times)
    for name in inner:
        f = getattr(mx, name)(f)
    derivative = mx.grad(lambda x: f(x).sum())
    for name in outer:
        derivative = getattr(mx, name)(derivative)
    return derivative(values.tensor(values.array(0))), 0 * values.array(0) + times


@keeps("MLX-COMP-01")
def test_the_rule_holds_within_compilation_and_checkpoints(subject, data):
    """The vjp rule applies within any mix of compile and checkpoint, inside and outside the gradient."""
    got, expected = _composed(subject, data, ("compile", "checkpoint"))
    subject.assert_same("gradient", got=got, expected=expected)


@keeps("MLX-COMP-01", variant="batched-gradient")
def test_the_rule_holds_in_a_batch_of_gradients(subject, data):
    """The vjp rule applies in vmap of a gradient, and in forward mode through it."""
    values = Values(subject, data, shapes=((3,), (2,)))
    times = subject.draw(data, (5, -7), "factor of the rule")
    forward = subject.draw(data, st.booleans(), "differentiated once more, in forward mode")
    gradients = mx.vmap(mx.grad(surrogate(2, times)))
    x = values.tensor(values.array(0))
    got = mx.jvp(gradients, [x], [x])[1][0] if forward else gradients(x)
    subject.assert_same("gradients", got=got, expected=0 * values.array(0) + (0 if forward else times))


@keeps("MLX-COMP-01", variant="gradient-of-batch")
def test_the_rule_holds_in_the_gradient_of_a_batch(subject, data):
    """The vjp rule applies in the gradient of a function under vmap."""
    got, expected = _composed(subject, data, ("vmap",))
    subject.assert_same("gradient", got=got, expected=expected)


@keeps("MLX-GRAD-01")
def test_grad_gives_what_argnums_and_argnames_name(subject, data):
    """mx.grad gives the gradients that argnums and argnames ask for, in the documented structure."""
    values = Values(subject, data)
    count = subject.draw(data, st.integers(1, 4), "arguments")
    names = subject.draw(data, st.lists(st.sampled_from("abc"), unique=True, max_size=3), "keyword arguments")
    positions = subject.draw(data, st.sets(st.integers(0, count - 1)).map(sorted), "argnums")
    some = st.sets(st.sampled_from(names)).map(sorted) if names else st.just([])
    wanted = subject.draw(data, some, "argnames")
    asked = {"argnums": positions} if positions else {}
    asked |= {"argnames": wanted} if wanted else {}
    f = mx.custom_function(lambda *xs: sum(xs[1:], xs[0]))
    f.vjp(lambda primals, cotangent, output: [cotangent * (2 + n) for n in range(count + len(names))])

    def loss(*args, **kwargs):
        return f(*args, *(kwargs[name] for name in names)).sum()

    tensors = [values.tensor(each) for each in values.arrays(0, count + len(names))]
    got = mx.grad(loss, **asked)(*tensors[:count], **dict(zip(names, tensors[count:], strict=True)))
    ones = 0 * values.array(0) + 1
    by_position = [(2 + n) * ones for n in (positions or ([] if wanted else [0]))]
    by_name = {name: (2 + count + n) * ones for n, name in enumerate(names) if name in wanted}
    placed = None if not by_position else by_position[0] if len(by_position) == 1 else tuple(by_position)
    expected = (placed, by_name) if wanted else placed
    subject.assert_equal("structure of the gradients", got=shaped(got), expected=shaped(expected))
    subject.assert_all_same("gradients", got=leaves(got), expected=leaves(expected))


@keeps("MLX-GRAD-02")
def test_gradients_have_the_tree_of_their_argument(subject, data):
    """The gradient of a tree is a tree of the same structure with the right arrays."""
    values = Values(subject, data)
    structure = subject.draw(data, trees(), "argument")

    def loss(tree):
        weighted = zip(leaves(tree), leaves(numbered(structure)), strict=True)
        return total([x * (n + 2) for x, n in weighted]).sum()

    got = mx.grad(loss)(values.grown(structure, 0))
    subject.assert_equal("structure of the gradient", got=shaped(got), expected=shaped(structure))
    expected = mapped(lambda n: 0 * values.array(0) + n + 2, numbered(structure))
    subject.assert_all_same("gradients", got=leaves(got), expected=leaves(expected))


@keeps("MLX-GRAD-03")
def test_value_and_grad_returns_all_that_the_function_returns(subject, data):
    """value_and_grad returns the scalar and all further outputs, and the gradient of the scalar."""
    values = Values(subject, data)
    more = subject.draw(data, st.lists(st.one_of(st.integers(), st.text(max_size=2)), max_size=3), "more")
    alone = not more and subject.draw(data, st.booleans(), "a bare scalar")
    f = surrogate(2)

    def loss(x):
        value = f(x).sum()
        return value if alone else (value, *more, {"y": f(x)})

    value, gradient = mx.value_and_grad(loss)(values.tensor(values.array(0)))
    subject.assert_same("gradient", got=gradient, expected=0 * values.array(0) + 42)
    first, *others = (value,) if alone else value
    subject.assert_same("loss", got=first, expected=np.asarray(2 * values.array(0).sum()))
    subject.assert_equal("outputs between the first and the last", got=others[: len(more)], expected=list(more))
    for last in others[len(more) :]:
        subject.assert_same("the array that comes last", got=last["y"], expected=2 * values.array(0))


@keeps("MLX-GRAD-04")
def test_grad_refuses_what_it_cannot_differentiate(subject, data):
    """mx.grad raises ValueError for results that are not scalar arrays and for wrong argnums."""
    count = subject.draw(data, st.integers(1, 3), "arguments")
    args = [mx.array(1.0)] * count
    wrong = {
        "a result that is not a scalar": lambda: mx.grad(lambda *xs: mx.stack([*xs, *xs]))(*args),
        "a result that is not an array": lambda: mx.grad(lambda *xs: "text")(*args),
        "a negative argnums": lambda: mx.grad(total_of, argnums=-subject.draw(data, (1, 2), "below"))(*args),
        "an argnums given twice": lambda: mx.grad(total_of, argnums=[0, 0])(*args),
        "an argnums beyond the arguments": lambda: mx.grad(
            total_of, argnums=count + subject.draw(data, (0, 1, 5), "beyond")
        )(*args),
    }
    what = subject.draw(data, sorted(wrong), "mistake")
    subject.assert_raises(ValueError, wrong[what], what)


def total_of(*xs):
    return sum(xs[1:], xs[0])


@keeps("MLX-DEP-01")
def test_depends_is_the_identity_of_its_inputs(subject, data):
    """mx.depends gives its input with its gradient, and the dependency a zero gradient."""
    values = Values(subject, data)
    weight = subject.draw(data, (2, -3), "weight")
    x, y, g = (values.tensor(values.array(salt)) for salt in range(3))
    outputs, gradients = mx.vjp(lambda x, y: mx.depends(surrogate(2, weight)(x), y), [x, y], [g])
    subject.assert_same("output", got=outputs[0], expected=2 * values.array(0))
    expected = [weight * values.array(2), 0 * values.array(1)]
    subject.assert_all_same("gradients of input and dependency", got=gradients, expected=expected)


@keeps("MLX-CPLX-01")
def test_gradients_are_conjugated(subject, data):
    """Gradients of products and squares are the cotangent times the conjugate derivative."""
    _assert_conjugated(subject, data, ("z * z", "z * z * z", "(1 + 2j) * z", "square"))


@keeps("MLX-CPLX-01", variant="powers")
def test_gradients_of_powers_are_conjugated(subject, data):
    """Gradients of powers are the cotangent times the conjugate derivative."""
    _assert_conjugated(subject, data, ("z ** 2", "z ** 3"))


HOLOMORPHIC = {
    "z * z": (lambda z: z * z, lambda z: 2 * z),
    "z * z * z": (lambda z: z * z * z, lambda z: 3 * z * z),
    "(1 + 2j) * z": (lambda z: (1 + 2j) * z, lambda z: 1 + 2j + 0 * z),
    "square": (mx.square, lambda z: 2 * z),
    "z ** 2": (lambda z: z**2, lambda z: 2 * z),
    "z ** 3": (lambda z: z**3, lambda z: 3 * z * z),
}


def _assert_conjugated(subject, data, names):
    parts = [subject.draw(data, (1, -2, 3), label) for label in ("real", "imaginary", "of g, real", "of g, imaginary")]
    name = subject.draw(data, names, "function")
    f, derivative = HOLOMORPHIC[name]
    z, g = complex(*parts[:2]), complex(*parts[2:])
    _, (got,) = mx.vjp(f, [mx.array(z)], [mx.array(g)])
    # Powers are computed with logarithms, so the result is rounded to the nearest integers.
    near = complex(round(got.item().real), round(got.item().imag))
    subject.assert_equal("gradient", got=near, expected=g * complex(derivative(z)).conjugate())
