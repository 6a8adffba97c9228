"""The arguments of a custom_vjp function: keywords, non-arrays, integers, and which are differentiated."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.jax._functions import (
    STATICS,
    JaxCase,
    drawn_pack,
    named,
    passed_somehow,
)


@keeps("JAX-VJP-09")
def test_keywords_and_defaults_are_positions(subject, data):
    """fwd gets keywords and defaults as positional arguments, and bwd returns an entry for each."""
    calling, values, arriving, slopes = passed_somehow(subject, data)
    seen = []
    function = jax.custom_vjp(lambda a, b=7.0, c=11.0: a + b + c)
    function.defvjp(lambda *abc: (sum(abc), seen.extend(map(float, abc))), lambda _, g: (g, 2 * g, 3 * g))
    gradients = jax.grad(calling(function), argnums=(0, 1, 2))(*values)
    subject.assert_equal("arguments of fwd", got=seen, expected=arriving)
    subject.assert_equal("gradients", got=[float(g) for g in gradients], expected=slopes)


@keeps("JAX-VJP-11")
def test_what_is_not_differentiable_comes_first_in_bwd(subject, data):
    """Non-differentiable arguments keep their places in fwd and come first in bwd."""
    case, given_to = JaxCase(subject, data, outputs=1), []
    statics = subject.draw(data, STATICS, "arguments next to it")
    total = case.linear.arguments + len(statics)
    slots = sorted(subject.draw(data, st.permutations(range(total)), "places")[: len(statics)])
    by_name = subject.draw(data, st.booleans(), "by name")
    names = [f"argument_{i}" for i in range(total)]
    options = {"nondiff_argnames": [names[i] for i in slots]} if by_name else {"nondiff_argnums": tuple(slots)}

    def spread(tensors):
        alongside, rest = iter(statics), iter(tensors)
        return [next(alongside) if i in slots else next(rest) for i in range(total)]

    def primal(*args):
        return case.linear.primal(*(x for i, x in enumerate(args) if i not in slots))

    def forward(*args):
        given_to.append([args[i] for i in slots])
        return primal(*args), None

    def backward(*args):
        given_to.append(list(args[: len(slots)]))
        return case.linear.pulled(*args[-1])

    function = jax.custom_vjp(named(names, primal), **options)
    function.defvjp(forward, backward)
    outputs, gradients = case.pulled(lambda *xs: function(*spread(xs)))
    case.assert_outputs(outputs)
    subject.assert_equal("non-differentiable arguments of fwd and bwd", got=given_to, expected=[statics, statics])
    case.assert_gradients(gradients)


# Transformations whose tracers reach the function.
TRACING = {
    "grad": lambda f: jax.grad(f)(2.0),
    "jit": lambda f: jax.jit(f)(2.0),
    "vmap": lambda f: jax.vmap(f)(jnp.ones(2)),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(2.0),
}


@keeps("JAX-VJP-12")
def test_a_tracer_is_differentiable(subject, data):
    """A tracer in an argument of nondiff_argnums raises UnexpectedTracerError."""
    way, pack = subject.draw(data, tuple(TRACING), "transformation"), drawn_pack(subject, data, "tracer in a")
    position = subject.draw(data, (0, 1), "position")
    function = jax.custom_vjp(lambda *args: args[1 - position] * 2.0, nondiff_argnums=(position,))
    function.defvjp(lambda *args: (args[1 - position] * 2.0, None), lambda _, __, g: (g,))

    def call(x):
        return function(*([pack([x]), 3.0] if position == 0 else [3.0, pack([x])]))

    what = "a tracer among the arguments that are not differentiable"
    kind = jax.errors.UnexpectedTracerError
    subject.assert_raises(kind, lambda: TRACING[way](call), what, naming=["nondiff_argnums"])


@keeps("JAX-VJP-13")
def test_integers_are_arguments_like_others(subject, data):
    """Integer arrays need no nondiff_argnums; their cotangent has dtype float0."""
    case = JaxCase(subject, data, arguments=1, outputs=1)
    dtype = subject.draw(data, ("int32", "int64", "uint8", "bool"), "dtype")
    numbers = subject.draw(data, st.lists(st.integers(0, 1), min_size=2, max_size=2), "integers")
    first = subject.draw(data, st.booleans(), "before the other argument")

    def ordered(a, b):
        return (a, b) if first else (b, a)

    function = jax.custom_vjp(lambda *args: ordered(*args)[1] * 2)
    function.defvjp(lambda *args: (ordered(*args)[1] * 2, ordered(*args)[0]),
                    lambda k, g: ordered(None, g * (1 + jnp.sum(k.astype(g.dtype)))))  # fmt: skip
    _, pullback = jax.vjp(function, *ordered(jnp.asarray(np.asarray(numbers, dtype)), *case.points))
    of_integers, gradient = ordered(*pullback(*case.cotangents))
    expected = case.linear.cotangents[0] * (1 + sum(numbers))
    subject.assert_same("gradient of the other argument", got=gradient, expected=np.asarray(expected))
    got = (of_integers.shape, of_integers.dtype == jax.dtypes.float0)
    subject.assert_equal("shape of the integers' gradient, whether it is float0", got=got, expected=((2,), True))


def _observing(case):
    """The function with symbolic_zeros, and what its rule notes: which arguments and outputs are differentiated."""
    seen = {}

    def forward(*xs):
        seen["perturbed"] = [x.perturbed for x in xs]
        seen["values"] = [x.value for x in xs]
        return case.linear.primal(*seen["values"]), None

    def backward(_, cotangents):
        seen["zeros"] = [isinstance(g, SymbolicZero) for g in cotangents]
        seen["types"] = [(g.shape, str(g.dtype)) for g in cotangents]
        dense = (jnp.zeros(g.shape, g.dtype) if isinstance(g, SymbolicZero) else g for g in cotangents)
        return case.linear.pulled(*dense)

    return case.with_vjp(forward, backward, symbolic_zeros=True), seen


@keeps("JAX-VJP-14")
def test_fwd_gets_what_takes_part(subject, data):
    """With symbolic_zeros, fwd gets each argument's value and whether it takes part in differentiation."""
    case = JaxCase(subject, data)
    moves = case.flags(data, "arguments that take part")
    function, seen = _observing(case)
    moving = (x for m, x in zip(moves, case.points, strict=True) if m)
    jax.vjp(case.with_constants(function, moves), *moving)
    subject.assert_equal("perturbed", got=seen["perturbed"], expected=moves)
    subject.assert_all_same("values in fwd", got=seen["values"], expected=case.linear.points)


def _outputs(subject, data, case, label):
    """Some outputs by position, and the cotangents that are zero for the others."""
    chosen = subject.draw(data, st.sets(st.integers(0, case.linear.outputs - 1), min_size=1), label)
    return chosen, [g if o in chosen else case.linear.zeros for o, g in enumerate(case.linear.cotangents)]


@keeps("JAX-VJP-15")
def test_bwd_gets_which_outputs_are_used(subject, data):
    """With symbolic_zeros, bwd gets symbolic zeros exactly for the outputs that are not used."""
    case = JaxCase(subject, data, max_outputs=3)
    used, cotangents = _outputs(subject, data, case, "outputs used")
    function, seen = _observing(case)

    def loss(*xs):
        pairs = zip(function(*xs), case.cotangents, strict=True)
        return sum(jnp.sum(y * g) for o, (y, g) in enumerate(pairs) if o in used)

    gradients = jax.grad(loss, argnums=tuple(range(case.linear.arguments)))(*case.points)
    unused = [o not in used for o in range(case.linear.outputs)]
    subject.assert_equal("which cotangents are symbolic zeros", got=seen["zeros"], expected=unused)
    types = [(case.linear.shape, case.linear.dtype)] * case.linear.outputs
    subject.assert_equal("shapes and dtypes of the cotangents", got=seen["types"], expected=types)
    case.assert_gradients(gradients, cotangents)


@keeps("JAX-VJP-27")
def test_a_stopped_output_contributes_nothing(subject, data):
    """Outputs under stop_gradient keep their values and have symbolic zeros as cotangents."""
    case = JaxCase(subject, data, max_outputs=3)
    stopped, dropped = _outputs(subject, data, case, "outputs under stop_gradient")
    function, seen = _observing(case)

    def f(*xs):
        return tuple(jax.lax.stop_gradient(y) if o in stopped else y for o, y in enumerate(function(*xs)))

    outputs, gradients = case.pulled(f)
    case.assert_outputs(outputs)
    case.assert_gradients(gradients, [g - d for g, d in zip(case.linear.cotangents, dropped, strict=True)])
    # Where every output is stopped, bwd need not run at all.
    zeros = seen.get("zeros", [True] * case.linear.outputs)
    expected = [o in stopped for o in range(case.linear.outputs)]
    subject.assert_equal("which cotangents are symbolic zeros", got=zeros, expected=expected)


@keeps("JAX-VJP-25")
def test_a_function_needs_a_rule(subject, data):
    """Calling a function without a rule raises AttributeError, for VJP, JVP and batching rules."""
    kinds = {"vjp": jax.custom_vjp, "jvp": jax.custom_jvp, "batching": jax.custom_batching.custom_vmap}
    kind = subject.draw(data, tuple(kinds), "rule that is missing")
    way = subject.draw(data, ("call", "jit", "vmap"), "call")
    function = kinds[kind](lambda x: x * 2)
    calls = {"call": function, "jit": jax.jit(function), "vmap": jax.vmap(function)}
    what = "a call of a function without a rule"
    subject.assert_raises(AttributeError, lambda: calls[way](jnp.ones(2)), what, naming=[kind])


@keeps("JAX-CLOSURE-01")
def test_values_of_a_closure_become_arguments(subject, data):
    """closure_convert turns captured values into arguments, for which bwd gives gradients."""
    case = JaxCase(subject, data, outputs=1)
    compiled = subject.draw(data, st.booleans(), "under jit")

    def applied(converted, x, *hoisted):
        return converted(x, *hoisted)

    function = jax.custom_vjp(applied, nondiff_argnums=(0,))
    function.defvjp(lambda *args: (applied(*args), None), lambda _, __, g: (jnp.sum(g), *case.linear.pulled(g)))

    def f(*points):
        converted, hoisted = jax.closure_convert(lambda x: case.linear.primal(*points)[0] * x, 1.0)
        return (function(converted, 2.0, *hoisted),)

    outputs, gradients = case.pulled(jax.jit(f) if compiled else f)
    subject.assert_same("output", got=outputs[0], expected=2 * case.linear.primal(*case.linear.points)[0])
    case.assert_gradients(gradients)


@keeps("JAX-VJP-21")
def test_a_closure_is_not_differentiated(subject, data):
    """Captured tracers of jit and vmap work; differentiating with respect to a captured value raises."""
    case = JaxCase(subject, data, arguments=1, outputs=1)
    ways = {"grad": jax.grad, "grad of jit": lambda f: jax.grad(jax.jit(f)), "vmap": None, "jit": None}
    way = subject.draw(data, tuple(ways), "transformation")

    def f(scale):
        function = jax.custom_vjp(lambda x: x * scale)
        function.defvjp(lambda x: (x * scale, None), lambda _, g: (g,))
        return jnp.sum(function(*case.points))

    total = float(np.sum(case.linear.points[0]))
    if ways[way] is None:
        got = jax.vmap(f)(jnp.asarray([2.0, 3.0])) if way == "vmap" else jax.jit(f)(jnp.asarray(2.0))
        subject.assert_same("outputs", got=got, expected=np.asarray([2.0, 3.0] if way == "vmap" else 2.0) * total)
    else:
        what = "a derivative with respect to what the function closes over"
        subject.assert_raises(Exception, lambda: ways[way](f)(2.0), what)
