"""custom_gradient, a value with its gradient function, and linear_call, a linear function with its transpose."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.jax._linear_functions import PACKS, jax_arrays, leaves, linears

FACTORS = st.integers(-3, 3).filter(bool)
TRANSFORMED = {"call": lambda f: f, "jit": jax.jit, "vmap": jax.vmap, "jit of vmap": lambda f: jax.jit(jax.vmap(f))}


@keeps("JAX-GRADIENT-01")
def test_the_gradient_function_gives_the_cotangents(subject, data):
    """The output is the function's and the gradients are those of the returned gradient function."""
    linear = subject.draw(data, linears(max_outputs=1), "function")
    function = jax.custom_gradient(lambda *xs: (linear.primal(*xs)[0], lambda g: linear.pulled(g)))
    output, pullback = jax.vjp(function, *jax_arrays(subject, linear, linear.points))
    gradients = pullback(jax_arrays(subject, linear, linear.cotangents)[0])
    subject.assert_same("output", got=output, expected=linear.primal(*linear.points)[0])
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))
    called = function(*jax_arrays(subject, linear, linear.points))
    subject.assert_same("output of a call", got=called, expected=linear.primal(*linear.points)[0])


@keeps("JAX-GRADIENT-02")
def test_intermediate_values_are_closed_over(subject, data):
    """The gradient function uses intermediate values of its own call, also under jit and vmap."""
    way = subject.draw(data, tuple(TRANSFORMED), "transformation")
    factor = subject.draw(data, FACTORS, "factor of the gradient")
    points = subject.draw(data, st.lists(st.lists(FACTORS, min_size=2, max_size=2), min_size=1, max_size=3), "points")

    @jax.custom_gradient
    def function(x):
        square = x * x
        return square * x, lambda g: (g * factor * square,)

    pullbacks = [jax.vjp(TRANSFORMED[way](function), jnp.asarray(p, "float64"))[1] for p in points]
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


def _linear(linear, pack, residual):
    """A linear_call whose transpose has the weights of the rule."""
    total = pack(list(range(linear.arguments)))

    def fun(r, tree):
        return tuple(r * y for y in linear.primal(*leaves(tree)))

    def transpose(r, cotangents):
        structure = jax.tree_util.tree_structure(total)
        return jax.tree_util.tree_unflatten(structure, [r * g for g in linear.pulled(*cotangents)])

    return lambda *xs: jax.custom_derivatives.linear_call(fun, transpose, residual, pack(list(xs)))


def _drawn_call(subject, data):
    linear = subject.draw(data, linears(), "function")
    pack = PACKS[subject.draw(data, tuple(PACKS), "linear inputs in a")]
    residual = float(subject.draw(data, FACTORS, "residual"))
    return linear, residual, _linear(linear, pack, subject.tensor(np.asarray(residual), linear.dtype))


@keeps("JAX-LINEAR-01")
def test_a_linear_call_is_its_function(subject, data):
    """A linear_call has its function's values and tangents, also under jit."""
    linear, residual, f = _drawn_call(subject, data)
    points, tangents = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.tangents)
    got, moved = (jax.jit(f) if subject.draw(data, st.booleans(), "under jit") else f), tuple(tangents)
    outputs, found = jax.jvp(got, tuple(points), moved)
    values, slopes = ([residual * y for y in linear.primal(*xs)] for xs in (linear.points, linear.tangents))
    subject.assert_all_same("outputs", got=outputs, expected=list(map(np.asarray, values)))
    subject.assert_all_same("tangents", got=found, expected=list(map(np.asarray, slopes)))
    subject.assert_all_same("outputs of a call", got=f(*points), expected=list(map(np.asarray, values)))


@keeps("JAX-LINEAR-02")
def test_a_transpose_is_transposed_back(subject, data):
    """Transposing once or three times gives the transpose; twice or four times the function itself."""
    linear, residual, f = _drawn_call(subject, data)
    times = subject.draw(data, st.integers(1, 4), "transpositions")
    points, cotangents = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.cotangents)
    for number in range(times):
        f = _transposed(f, points if number % 2 == 0 else cotangents)
    odd = times % 2 == 1
    got = f(*(cotangents if odd else points))
    found = linear.pulled(*linear.cotangents) if odd else linear.primal(*linear.points)
    subject.assert_all_same("result", got=got, expected=[np.asarray(residual * y) for y in found])


def _transposed(f, examples):
    transpose = jax.linear_transpose(lambda *xs: tuple(f(*xs)), *examples)
    return lambda *gs: transpose(tuple(gs))


@keeps("JAX-LINEAR-02", variant="gradient")
def test_reverse_mode_calls_the_transpose(subject, data):
    """Reverse mode of a linear_call gives what its transpose computes."""
    linear, residual, f = _drawn_call(subject, data)
    _, pullback = jax.vjp(f, *jax_arrays(subject, linear, linear.points))
    gradients = pullback(tuple(jax_arrays(subject, linear, linear.cotangents)))
    expected = [np.asarray(residual * g) for g in linear.pulled(*linear.cotangents)]
    subject.assert_all_same("gradients", got=gradients, expected=expected)


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
