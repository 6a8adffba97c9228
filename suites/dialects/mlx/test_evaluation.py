"""When functions are called, traced and evaluated: checkpoints, compilation, laziness."""

import mlx.core as mx
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mlx._trees import Values, leaves, mapped, shaped, surrogate, trees


@keeps("MLX-CKPT-01")
def test_a_checkpointed_function_is_called_again(subject, data):
    """A checkpointed function gives right results and gradients, and is called twice for a gradient."""
    values = Values(subject, data)
    weight = subject.draw(data, (2, -3), "weight")
    alongside = subject.draw(data, trees(), "structure of a second argument")
    calls = []

    def f(x, tree):
        calls.append(1)
        return {"y": surrogate(weight, 5)(x) * x, "same": tree}

    x, g = (values.tensor(values.array(salt)) for salt in range(2))
    other = values.grown(alongside, 2)
    checkpointed = mx.checkpoint(f)
    result = checkpointed(x, other)
    subject.assert_same("output", got=result["y"], expected=weight * values.array(0) ** 2)
    subject.assert_equal("structure of the other output", got=shaped(result["same"]), expected=shaped(alongside))
    calls.clear()
    _, (gradient,) = mx.vjp(lambda x: checkpointed(x, other)["y"], [x], [g])
    expected = values.array(1) * (5 + weight) * values.array(0)
    subject.assert_same("gradient", got=gradient, expected=expected)
    subject.assert_equal("number of calls for output and gradient", got=len(calls), expected=2)


@keeps("MLX-COMPILE-01")
def test_a_compiled_function_gives_the_same(subject, data):
    """Compiled functions and their compiled gradients give right results in repeated calls."""
    values = Values(subject, data)
    structure = subject.draw(data, trees(), "argument")
    calls = subject.draw(data, st.integers(1, 3), "calls")

    def f(tree):
        return mapped(lambda x: surrogate(3)(x + 1), tree)

    compiled = mx.compile(f)
    of_loss = mx.compile(mx.grad(lambda tree: sum(y.sum() for y in leaves(compiled(tree)))))
    for call in range(calls):
        numbers = [values.array(call, n) for n, _ in enumerate(leaves(structure))]
        got = compiled(values.grown(structure, call))
        subject.assert_equal("structure of the result", got=shaped(got), expected=shaped(structure))
        subject.assert_all_same("result", got=leaves(got), expected=[3 * (x + 1) for x in numbers])
        gradients = leaves(of_loss(values.grown(structure, call)))
        subject.assert_all_same("gradients", got=gradients, expected=[0 * x + 42 for x in numbers])


@keeps("MLX-COMPILE-02")
def test_a_function_is_compiled_once_for_inputs_alike(subject, data):
    """A function is traced once for each combination of input number, shapes and dtypes."""
    kinds = st.tuples(st.sampled_from(((), (3,), (2, 3))), st.sampled_from(("float32", "float16")), st.integers(1, 2))
    drawn = subject.draw(data, st.lists(kinds, min_size=1, max_size=6), "shape, dtype and number of the inputs")
    traced = []

    def f(*xs):
        traced.append(1)
        return sum(xs[1:], xs[0]) * 2

    compiled = mx.compile(f)
    for shape, dtype, count in drawn:
        got = compiled(*(subject.tensor(np.ones(shape), dtype) for _ in range(count)))
        subject.assert_same("result", got=got, expected=np.full(shape, 2.0 * count))
    subject.assert_equal("number of times that the function was traced", got=len(traced), expected=len(set(drawn)))


@keeps("MLX-COMPILE-03")
def test_what_is_captured_is_constant_unless_it_is_an_input(subject, data):
    """A compiled function keeps captured state from its first call, unless it is declared as input."""
    values = Values(subject, data)
    declared = subject.draw(data, st.booleans(), "the state is among the inputs")
    state = [values.tensor(values.array(1, 0))]
    compiled = mx.compile(lambda x: x + state[0], inputs=state if declared else None)
    x = values.tensor(values.array(0))
    for number in subject.draw(data, st.lists(st.integers(1, 5), min_size=1, max_size=3), "later states"):
        first = compiled(x)
        subject.assert_same("result", got=first, expected=values.array(0) + _held(values, state, declared))
        state[0] = values.tensor(values.array(1, number))
    last = compiled(x)
    subject.assert_same("result after a change", got=last, expected=values.array(0) + _held(values, state, declared))


def _held(values, state, declared):
    return values.subject.implementation.numpy(state[0]) if declared else values.array(1, 0)


@keeps("MLX-EVAL-01")
def test_arrays_may_be_evaluated_within_a_gradient(subject, data):
    """A differentiated function may evaluate an array and branch on its value."""
    values = Values(subject, data)
    evaluate = subject.draw(data, sorted(EVALUATIONS), "evaluated by")
    f, chosen = surrogate(2), []

    def loss(x):
        y = f(x)
        EVALUATIONS[evaluate](y)
        chosen.append((y.sum() > 0).item())
        return (y * (3 if chosen[-1] else 5)).sum()

    got = mx.grad(loss)(values.tensor(values.array(0)))
    positive = bool((2 * values.array(0)).sum() > 0)
    subject.assert_equal("branch that was taken", got=chosen[0], expected=positive)
    subject.assert_same("gradient", got=got, expected=0 * values.array(0) + 42 * (3 if positive else 5))


@keeps("MLX-EVAL-02")
def test_arrays_cannot_be_evaluated_where_they_have_no_values(subject, data):
    """Evaluating an array raises ValueError within a compiled or batched function."""
    values = Values(subject, data, shapes=((3,), (2, 3)))
    evaluate = subject.draw(data, sorted(EVALUATIONS), "evaluated by")
    transform = subject.draw(data, ("compile", "vmap"), "within")

    def f(x):
        y = surrogate(2)(x)
        EVALUATIONS[evaluate](y)
        return y

    x = values.tensor(values.array(0))
    transformed = getattr(mx, transform)(f)
    subject.assert_raises(ValueError, lambda: transformed(x), "evaluating an array", naming=["eval"])


EVALUATIONS = {"mx.eval": lambda y: mx.eval(y), "tolist": lambda y: y.tolist(), "str": str}
