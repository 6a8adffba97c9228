"""Functions with a VJP rule under JAX's transformations: higher derivatives, jit, vmap, checkpoint, scan, threads."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.jax._functions import CALLS, FACTORS, JAX, RECURSIVE, JaxCase
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

# Ways to ask for forward mode of a function of one scalar.
FORWARD = {
    "jvp": lambda f, x: jax.jvp(f, (x,), (x,)),
    "jacfwd": lambda f, x: jax.jacfwd(f)(x),
    "linearize": lambda f, x: jax.linearize(f, x)[1](x),
    "jvp of jit": lambda f, x: jax.jvp(jax.jit(f), (x,), (x,)),
    "jvp of vmap": lambda f, x: jax.jvp(jax.vmap(f), (x[None],), (x[None],)),
}
# Second derivatives of a function of one scalar, which need forward mode of a gradient or not.
FORWARD_OVER_REVERSE = {
    "hessian": lambda f, x: jax.hessian(f)(x),
    "jvp of grad": lambda f, x: jax.jvp(jax.grad(f), (x,), (jnp.ones(()),))[1],
    "linearize of grad": lambda f, x: jax.linearize(jax.grad(f), x)[1](jnp.ones(())),
}
REVERSE_OVER_REVERSE = {
    "grad of grad": lambda f, x: jax.grad(jax.grad(f))(x),
    "jacrev of jacrev": lambda f, x: jax.jacrev(jax.jacrev(f))(x),
}
SECOND = {
    **REVERSE_OVER_REVERSE,
    **FORWARD_OVER_REVERSE,
    "vjp of jit of grad": lambda f, x: jax.vjp(jax.jit(jax.grad(f)), x)[1](jnp.ones(()))[0],
}

SENTENCE = sentences.the_rule_is_differentiated
test_second_derivatives = row("JAX-VJP-18", SENTENCE, JAX, ways=SECOND)
test_reverse_mode_composes = row("JAX-VJP-18", SENTENCE, RECURSIVE, variant="recursive", ways=REVERSE_OVER_REVERSE)
test_forward_over_reverse = row("JAX-VJP-19", SENTENCE, RECURSIVE, examples=0.4, ways=FORWARD_OVER_REVERSE)


@keeps("JAX-VJP-10")
def test_forward_mode_is_refused(subject, data):
    """Forward mode of a custom_vjp function raises TypeError, in every way to ask for it."""
    way, factor = subject.draw(data, tuple(FORWARD), "forward mode"), subject.draw(data, FACTORS, "factor of the rule")
    function = JAX["custom_vjp"].custom(lambda x: x * x, lambda xs, g: (factor * g,))
    what, x = "forward mode of a function with a VJP rule", jnp.asarray(2.0)
    subject.assert_raises(TypeError, lambda: FORWARD[way](function, x), what, naming=["forward-mode", "custom_vjp"])


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
    case = JaxCase(subject, data, shapes=((3,), (2, 3)))
    inner, outer = (
        subject.draw(data, st.lists(st.sampled_from(tuple(NEUTRAL)), max_size=2), f"transformations of the {part}")
        for part in ("function", "gradient")
    )
    if sum("vmap" in way for way in (*inner, *outer)) > len(case.linear.shape):
        # Each vmap removes an axis.
        inner, outer = ([way for way in ways if "vmap" not in way] for ways in (inner, outer))

    def gradient(xs, cotangents):
        return jax.vjp(reduce(lambda f, way: NEUTRAL[way](f), inner, case.with_vjp()), *xs)[1](cotangents)

    transformed = reduce(lambda f, way: NEUTRAL[way](f), outer, gradient)
    case.assert_gradients(transformed(tuple(case.points), case.cotangents))


@keeps("JAX-VJP-20", variant="scan")
def test_the_rule_holds_in_each_step_of_a_loop(subject, data):
    """In a scan, the rule applies in every step."""
    steps, slope = subject.draw(data, st.integers(0, 4), "steps"), subject.draw(data, FACTORS, "factor of the rule")
    function = JAX["custom_vjp"].custom(lambda x: 2 * x, lambda _, g: (g * slope,))

    def loop(x):
        return jax.lax.scan(lambda carry, _: (function(carry), None), x, None, length=steps)[0]

    got = jax.value_and_grad(loop)(jnp.asarray(1.0))
    expected = [np.asarray(2.0**steps), np.asarray(float(slope) ** steps)]
    subject.assert_all_same("value and gradient", got=got, expected=expected)


@keeps("JAX-VJP-20", variant="cotangents")
def test_a_pullback_is_batched(subject, data):
    """vmap of a pullback gives the gradients of each cotangent of the batch."""
    case = JaxCase(subject, data)
    count = subject.draw(data, st.integers(1, 3), "cotangents at once")
    _, pullback = jax.vjp(case.with_vjp(), *case.points)
    each = [case.linear.arrays(case.linear.outputs, 20 + number) for number in range(count)]
    stacked = [np.stack(gs) for gs in zip(*each, strict=True)]
    case.assert_gradients(jax.vmap(pullback)(tuple(case.tensors(stacked))), stacked)


def _multiplying(case, **options):
    """The function with a rule that multiplies by what fwd saved, which are the arguments."""

    def backward(residuals, cotangents):
        return tuple(x * g for x, g in zip(residuals, case.linear.pulled(*cotangents), strict=True))

    return case.with_vjp(lambda *xs: (case.linear.primal(*xs), xs), backward, **options)


def _products(case, points):
    """The right gradients of `_multiplying` at these points."""
    pulled = case.linear.pulled(*case.linear.cotangents)
    return [np.asarray(x * g) for x, g in zip(points, pulled, strict=True)]


@keeps("JAX-VJP-22")
def test_checkpoint_runs_fwd_again(subject, data):
    """Under checkpoint the residuals are computed in the backward pass only."""
    case, ran = JaxCase(subject, data, outputs=1), []

    def saved(x):
        ran.append("residual")
        return x

    def forward(*xs):
        return case.linear.primal(*xs), tuple(jax.pure_callback(saved, jax.typeof(x), x) for x in xs)

    function = case.with_vjp(forward, lambda residuals, gs: tuple(x * gs[0] for x in residuals))
    _, pullback = jax.vjp(jax.checkpoint(function), *case.points)
    before = len(ran)
    gradients = jax.block_until_ready(pullback(case.cotangents))
    expected = [x * case.linear.cotangents[0] for x in case.linear.points]
    subject.assert_all_same("gradients", got=gradients, expected=expected)
    what = "residuals computed before and in the backward pass"
    subject.assert_equal(what, got=(before, len(ran) - before), expected=(0, case.linear.arguments))


@keeps("JAX-VJP-23")
def test_optimize_remat_changes_no_gradient(subject, data):
    """optimize_remat changes no output or gradient; together with symbolic_zeros it raises."""
    case = JaxCase(subject, data)
    way = subject.draw(data, ("checkpoint", "jit", "vmap"), "transformation")
    function = _multiplying(case, optimize_remat=True)
    points, cotangents = ([x[None] for x in xs] for xs in (case.linear.points, case.linear.cotangents))
    outputs, pullback = jax.vjp(CALLS[way](function), *case.tensors(points))
    gradients = pullback(tuple(case.tensors(cotangents)))
    subject.assert_all_same("gradients", got=gradients, expected=_products(case, points))
    subject.assert_all_same("outputs", got=outputs, expected=case.linear.primal(*points))
    both = {"symbolic_zeros": True, "optimize_remat": True}
    what = "optimize_remat together with symbolic_zeros"
    subject.assert_raises(NotImplementedError, lambda: function.defvjp(len, len, **both), what, naming=["symbolic"])


@keeps("JAX-VJP-24", examples=0.4)
def test_threads_differentiate_at_the_same_time(subject, data):
    """Threads that differentiate the same function at once each get their own right gradients."""
    case, count = JaxCase(subject, data, shapes=((3,),)), subject.draw(data, st.integers(2, 4), "threads")
    function, cotangents = _multiplying(case), case.cotangents
    points = [case.linear.arrays(case.linear.arguments, 30 + number) for number in range(count)]

    def differentiated(arrays):
        return [g for _ in range(3) for g in jax.vjp(function, *case.tensors(arrays))[1](cotangents)]

    with ThreadPoolExecutor(count) as pool:
        got = [g for gradients in pool.map(differentiated, points) for g in gradients]
    expected = [g for arrays in points for g in 3 * _products(case, arrays)]
    subject.assert_all_same("gradients", got=got, expected=expected)
