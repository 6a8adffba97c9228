"""Functions with a VJP rule under JAX's transformations: higher derivatives, jit, vmap, checkpoint, scan, threads."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.jax._linear_functions import jax_arrays, linears

FACTORS = st.integers(-3, 3).filter(bool)

# Ways to ask for forward mode of a function of one scalar.
FORWARD = {
    "jvp": lambda f, x: jax.jvp(f, (x,), (x,)),
    "jacfwd": lambda f, x: jax.jacfwd(f)(x),
    "linearize": lambda f, x: jax.linearize(f, x)[1](x),
    "jvp of jit": lambda f, x: jax.jvp(jax.jit(f), (x,), (x,)),
    "jvp of vmap": lambda f, x: jax.jvp(jax.vmap(f), (x[None],), (x[None],)),
}


def cubic(power, slope, *, calls_itself=False):
    """``x ** power`` whose rule says that its derivative is ``slope * x ** 2``."""
    function = jax.custom_vjp(lambda x: x**power)
    function.defvjp(lambda x: (function(x) if calls_itself else x**power, x), lambda x, g: (g * slope * x * x,))
    return function


@keeps("JAX-VJP-10")
def test_forward_mode_is_refused(subject, data):
    """Forward mode of a custom_vjp function raises TypeError, in every way to ask for it."""
    way = subject.draw(data, tuple(FORWARD), "forward mode")
    function = cubic(2, subject.draw(data, FACTORS, "factor of the rule"))
    what = "forward mode of a function with a VJP rule"
    x = jnp.asarray(2.0)
    subject.assert_raises(TypeError, lambda: FORWARD[way](function, x), what, naming=["forward-mode", "custom_vjp"])


# Second derivatives of a function of one scalar.
SECOND = {
    "grad of grad": lambda f, x: jax.grad(jax.grad(f))(x),
    "jacrev of jacrev": lambda f, x: jax.jacrev(jax.jacrev(f))(x),
    "hessian": lambda f, x: jax.hessian(f)(x),
    "jvp of grad": lambda f, x: jax.jvp(jax.grad(f), (x,), (jnp.ones(()),))[1],
    "linearize of grad": lambda f, x: jax.linearize(jax.grad(f), x)[1](jnp.ones(())),
    "vjp of jit of grad": lambda f, x: jax.vjp(jax.jit(jax.grad(f)), x)[1](jnp.ones(()))[0],
}


def _second(subject, data, ways, **options):
    """The second derivative at an integer, and the right one: the derivative of the rule."""
    way = subject.draw(data, ways, "second derivative")
    power = subject.draw(data, st.integers(1, 3), "power")
    slope, factor = subject.draw(data, FACTORS, "factor of the rule"), subject.draw(data, FACTORS, "factor outside")
    point = float(subject.draw(data, FACTORS, "point"))
    function = cubic(power, slope, **options)
    found = subject.assert_accepted(lambda: SECOND[way](lambda x: factor * function(x), jnp.asarray(point)), way)
    return found, np.asarray(factor * slope * 2 * point)


@keeps("JAX-VJP-18")
def test_fwd_and_bwd_are_differentiated(subject, data):
    """Every kind of second derivative differentiates the operations of fwd and bwd."""
    found, expected = _second(subject, data, tuple(SECOND))
    subject.assert_same("second derivative", got=found, expected=expected)


@keeps("JAX-VJP-18", variant="recursive")
def test_reverse_mode_composes_where_fwd_calls_the_function(subject, data):
    """Reverse over reverse mode is right if fwd calls the function itself."""
    found, expected = _second(subject, data, ("grad of grad", "jacrev of jacrev"), calls_itself=True)
    subject.assert_same("second derivative", got=found, expected=expected)


@keeps("JAX-VJP-19", examples=0.4)
def test_forward_over_reverse_works_where_fwd_calls_the_function(subject, data):
    """Forward over reverse mode is right if fwd calls the function itself."""
    ways = ("hessian", "jvp of grad", "linearize of grad")
    found, expected = _second(subject, data, ways, calls_itself=True)
    subject.assert_same("second derivative", got=found, expected=expected)


# Transformations that leave the values of an elementwise function unchanged.
NEUTRAL = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "checkpoint": jax.checkpoint,
    "vmap along the last axis": partial(jax.vmap, in_axes=-1, out_axes=-1),
}


@keeps("JAX-VJP-20")
def test_gradients_are_the_same_under_transformations(subject, data):
    """Gradients by the rule are the same under any composition of jit, vmap and checkpoint."""
    linear = subject.draw(data, linears(shapes=((3,), (2, 3))), "function")
    inner, outer = (
        subject.draw(data, st.lists(st.sampled_from(tuple(NEUTRAL)), max_size=2), f"transformations of the {part}")
        for part in ("function", "gradient")
    )
    # Each vmap removes an axis.
    rank = 2 if sum("vmap" in way for way in (*inner, *outer)) > len(linear.shape) else 0
    inner, outer = ([way for way in ways if not (rank and "vmap" in way)] for ways in (inner, outer))

    def gradient(xs, cotangents):
        transformed = reduce(lambda f, way: NEUTRAL[way](f), inner, linear.with_vjp())
        return jax.vjp(transformed, *xs)[1](cotangents)

    transformed = reduce(lambda f, way: NEUTRAL[way](f), outer, gradient)
    xs, cotangents = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.cotangents)
    got = transformed(tuple(xs), tuple(cotangents))
    subject.assert_all_same("gradients", got=got, expected=linear.pulled(*linear.cotangents))


@keeps("JAX-VJP-20", variant="scan")
def test_the_rule_holds_in_each_step_of_a_loop(subject, data):
    """In a scan, the rule applies in every step."""
    steps, slope = subject.draw(data, st.integers(0, 4), "steps"), subject.draw(data, FACTORS, "factor of the rule")
    function = jax.custom_vjp(lambda x: 2 * x)
    function.defvjp(lambda x: (2 * x, None), lambda _, g: (g * slope,))

    def loop(x):
        return jax.lax.scan(lambda carry, _: (function(carry), None), x, None, length=steps)[0]

    got = jax.value_and_grad(loop)(jnp.asarray(1.0))
    expected = [np.asarray(2.0**steps), np.asarray(float(slope) ** steps)]
    subject.assert_all_same("value and gradient", got=got, expected=expected)


@keeps("JAX-VJP-20", variant="cotangents")
def test_a_pullback_is_batched(subject, data):
    """vmap of a pullback gives the gradients of each cotangent of the batch."""
    linear = subject.draw(data, linears(), "function")
    count = subject.draw(data, st.integers(1, 3), "cotangents at once")
    _, pullback = jax.vjp(linear.with_vjp(), *jax_arrays(subject, linear, linear.points))
    each = [linear.arrays(linear.outputs, 20 + number) for number in range(count)]
    stacked = jax_arrays(subject, linear, [np.stack(gs) for gs in zip(*each, strict=True)])
    expected = [np.stack(gs) for gs in zip(*(linear.pulled(*gs) for gs in each), strict=True)]
    subject.assert_all_same("gradients", got=jax.vmap(pullback)(tuple(stacked)), expected=expected)


@keeps("JAX-VJP-22")
def test_checkpoint_runs_fwd_again(subject, data):
    """Under checkpoint the residuals are computed in the backward pass only."""
    linear = subject.draw(data, linears(max_outputs=1), "function")
    ran = []

    def saved(x):
        ran.append("residual")
        return x

    def forward(*xs):
        residuals = tuple(jax.pure_callback(saved, jax.typeof(x), x) for x in xs)
        return linear.primal(*xs), residuals

    def backward(residuals, cotangents):
        return tuple(x * cotangents[0] for x in residuals)

    function = linear.with_vjp(forward=forward, backward=backward)
    _, pullback = jax.vjp(jax.checkpoint(function), *jax_arrays(subject, linear, linear.points))
    before = len(ran)
    gradients = jax.block_until_ready(pullback(tuple(jax_arrays(subject, linear, linear.cotangents))))
    expected = [x * linear.cotangents[0] for x in linear.points]
    subject.assert_all_same("gradients", got=gradients, expected=expected)
    times = (before, len(ran) - before)
    what = "residuals computed before and in the backward pass"
    subject.assert_equal(what, got=times, expected=(0, linear.arguments))


@keeps("JAX-VJP-23")
def test_optimize_remat_changes_no_gradient(subject, data):
    """optimize_remat changes no output or gradient; together with symbolic_zeros it raises."""
    linear = subject.draw(data, linears(), "function")
    way = subject.draw(data, ("checkpoint", "jit", "vmap"), "transformation")
    function = jax.custom_vjp(lambda *xs: linear.primal(*xs))

    def backward(residuals, cotangents):
        return tuple(x * g for x, g in zip(residuals, linear.pulled(*cotangents), strict=True))

    function.defvjp(lambda *xs: (linear.primal(*xs), xs), backward, optimize_remat=True)
    lift = (lambda arrays: [x[None] for x in arrays]) if way == "vmap" else list
    outputs, pullback = jax.vjp(NEUTRAL[way](function), *jax_arrays(subject, linear, lift(linear.points)))
    gradients = pullback(tuple(jax_arrays(subject, linear, lift(linear.cotangents))))
    pairs = zip(linear.points, linear.pulled(*linear.cotangents), strict=True)
    subject.assert_all_same("gradients", got=gradients, expected=lift([np.asarray(x * g) for x, g in pairs]))
    subject.assert_all_same("outputs", got=outputs, expected=lift(linear.primal(*linear.points)))
    both = {"symbolic_zeros": True, "optimize_remat": True}
    what = "optimize_remat together with symbolic_zeros"
    subject.assert_raises(NotImplementedError, lambda: function.defvjp(len, len, **both), what, naming=["symbolic"])


@keeps("JAX-VJP-24", examples=0.4)
def test_threads_differentiate_at_the_same_time(subject, data):
    """Threads that differentiate the same function at once each get their own right gradients."""
    count = subject.draw(data, st.integers(2, 4), "threads")
    linear = subject.draw(data, linears(shapes=((3,),)), "function")
    function = linear.with_vjp(
        forward=lambda *xs: (linear.primal(*xs), xs),
        backward=lambda xs, cts: tuple(x * g for x, g in zip(xs, linear.pulled(*cts), strict=True)),
    )
    cotangents = tuple(jax_arrays(subject, linear, linear.cotangents))
    points = [linear.arrays(linear.arguments, 30 + number) for number in range(count)]

    def differentiated(arrays):
        return [jax.vjp(function, *jax_arrays(subject, linear, arrays))[1](cotangents) for _ in range(3)]

    with ThreadPoolExecutor(count) as pool:
        got = [gradients for each in pool.map(differentiated, points) for gradients in each]
    pulled = linear.pulled(*linear.cotangents)
    expected = [x * g for arrays in points for _ in range(3) for x, g in zip(arrays, pulled, strict=True)]
    subject.assert_all_same("gradients", got=[g for gradients in got for g in gradients], expected=expected)
