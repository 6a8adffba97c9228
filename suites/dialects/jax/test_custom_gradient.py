"""custom_gradient, a value with its gradient function, and linear_call, a linear function with its transpose."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.jax._functions import CALLS, FACTORS, JaxCase, drawn_pack, leaves, structure


@keeps("JAX-GRADIENT-01")
def test_the_gradient_function_gives_the_cotangents(subject, data):
    """The output is the function's and the gradients are those of the returned gradient function."""
    case = JaxCase(subject, data, outputs=1)
    function = jax.custom_gradient(lambda *xs: (case.linear.primal(*xs)[0], lambda g: case.linear.pulled(g)))
    output, pullback = jax.vjp(function, *case.points)
    case.assert_outputs([output])
    case.assert_gradients(pullback(*case.cotangents))
    case.assert_outputs([function(*case.points)])


@keeps("JAX-GRADIENT-02")
def test_intermediate_values_are_closed_over(subject, data):
    """The gradient function uses intermediate values of its own call, also under jit and vmap."""
    way = subject.draw(data, ("call", "jit", "vmap", "jit of vmap"), "transformation")
    factor = subject.draw(data, FACTORS, "factor of the gradient")
    points = subject.draw(data, st.lists(st.lists(FACTORS, min_size=2, max_size=2), min_size=1, max_size=3), "points")

    @jax.custom_gradient
    def function(x):
        square = x * x
        return square * x, lambda g: (g * factor * square,)

    pullbacks = [jax.vjp(CALLS[way](function), jnp.asarray(p, "float64"))[1] for p in points]
    got = [pullback(jnp.ones(2))[0] for pullback in pullbacks]
    subject.assert_all_same("gradients", got=got, expected=[factor * np.square(np.asarray(p, float)) for p in points])


@keeps("JAX-GRADIENT-03")
def test_control_flow_on_a_cotangent_is_an_error(subject, data):
    """An if on a cotangent raises TracerBoolConversionError."""
    factor = subject.draw(data, FACTORS, "factor")
    function = jax.custom_gradient(lambda x: (x * x, lambda g: (g * factor if g > 0 else g,)))
    point = float(subject.draw(data, FACTORS, "point"))
    error = jax.errors.TracerBoolConversionError
    subject.assert_raises(error, lambda: jax.grad(function)(point), "control flow on a cotangent")


@keeps("JAX-GRADIENT-04", examples=0.4)
def test_control_flow_on_an_intermediate_value_is_an_error(subject, data):
    """An if on an intermediate value that the gradient function closes over raises."""
    factor = subject.draw(data, FACTORS, "factor")
    function = jax.custom_gradient(lambda x: (x * x, lambda g: (g * factor if x > 0 else g,)))
    point = float(subject.draw(data, FACTORS, "point"))
    what = "control flow on a value that the gradient function closes over"
    subject.assert_raises(Exception, lambda: jax.grad(function)(point), what)


@keeps("JAX-GRADIENT-05", examples=0.4)
def test_arguments_may_be_given_by_keyword(subject, data):
    """The decorated function takes its arguments by position and by keyword, in any order."""
    words = subject.draw(data, st.permutations(("x", "y")), "order of the keywords")
    by_position = subject.draw(data, st.booleans(), "x by position")
    function = jax.custom_gradient(lambda x, y: (x - y, lambda g: (g, -g)))
    values = {"x": 5.0, "y": 3.0}
    args = [values["x"]] if by_position else []
    passed = {word: values[word] for word in words if not (by_position and word == "x")}
    got = subject.assert_accepted(lambda: function(*args, **passed), "an argument given by keyword")
    subject.assert_equal("output", got=float(got), expected=2.0)


def _drawn_call(subject, data):
    """A linear_call whose transpose has the weights of the rule, and the residual that both multiply by."""
    case, pack = JaxCase(subject, data), drawn_pack(subject, data, "linear inputs in a")
    residual = float(subject.draw(data, FACTORS, "residual"))
    inputs = structure(pack(list(range(case.linear.arguments))))

    def fun(r, tree):
        return tuple(r * y for y in case.linear.primal(*leaves(tree)))

    def transpose(r, cotangents):
        return jax.tree_util.tree_unflatten(inputs, [r * g for g in case.linear.pulled(*cotangents)])

    held = subject.tensor(np.asarray(residual), case.linear.dtype)
    return case, residual, lambda *xs: jax.custom_derivatives.linear_call(fun, transpose, held, pack(list(xs)))


def _times(residual, arrays):
    return [np.asarray(residual * y) for y in arrays]


@keeps("JAX-LINEAR-01")
def test_a_linear_call_is_its_function(subject, data):
    """A linear_call has its function's values and tangents, also under jit."""
    case, residual, f = _drawn_call(subject, data)
    outputs, tangents = case.moved(CALLS[subject.draw(data, ("call", "jit"), "call")](f))
    values, slopes = (_times(residual, case.linear.primal(*xs)) for xs in (case.linear.points, case.linear.tangents))
    subject.assert_all_same("outputs", got=outputs, expected=values)
    subject.assert_all_same("tangents", got=tangents, expected=slopes)
    subject.assert_all_same("outputs of a call", got=f(*case.points), expected=values)


@keeps("JAX-LINEAR-02")
def test_a_transpose_is_transposed_back(subject, data):
    """Transposing once or three times gives the transpose; twice or four times the function itself."""
    case, residual, f = _drawn_call(subject, data)
    times = subject.draw(data, st.integers(1, 4), "transpositions")
    for number in range(times):
        f = _transposed(f, case.points if number % 2 == 0 else case.cotangents)
    odd = times % 2 == 1
    found = case.linear.pulled(*case.linear.cotangents) if odd else case.linear.primal(*case.linear.points)
    got = f(*(case.cotangents if odd else case.points))
    subject.assert_all_same("result", got=got, expected=_times(residual, found))


def _transposed(f, examples):
    transpose = jax.linear_transpose(lambda *xs: tuple(f(*xs)), *examples)
    return lambda *gs: transpose(tuple(gs))


@keeps("JAX-LINEAR-02", variant="gradient")
def test_reverse_mode_calls_the_transpose(subject, data):
    """Reverse mode of a linear_call gives what its transpose computes."""
    case, residual, f = _drawn_call(subject, data)
    expected = _times(residual, case.linear.pulled(*case.linear.cotangents))
    subject.assert_all_same("gradients", got=case.pulled(f)[1], expected=expected)


@keeps("JAX-LINEAR-03")
def test_a_transpose_gives_the_structure_of_the_inputs(subject, data):
    """A transpose with too few or too many outputs raises TypeError."""
    count = subject.draw(data, st.integers(0, 3).filter(lambda n: n != 1), "outputs of the transpose")
    packs = {"bare": lambda x: x, "tuple": lambda x: (x,), "dict": lambda x: {"x": x}}
    pack = packs[subject.draw(data, tuple(packs), "linear input in a")]
    call = jax.custom_derivatives.linear_call

    def f(x):
        return leaves(call(lambda _, t: t, lambda _, t: leaves(t) * count, (), pack(x)))[0]

    what = f"a transpose with {count} outputs for one linear input"
    subject.assert_raises(TypeError, lambda: jax.grad(f)(1.0), what, naming=["transpose", "structure"])
