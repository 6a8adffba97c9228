"""The arguments of a custom_vjp function: keywords, non-arrays, integers, and which are differentiated."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.jax._linear_functions import PACKS, jax_arrays, linears

VALUES = {"a": 2.0, "b": 3.0, "c": 5.0}
# How the arguments b and c are passed: by position as long as possible, by keyword, or not at all.
STYLES = ((), ("b",), ("b", "c"), ("c", "b"), ("c",))


@keeps("JAX-VJP-09")
def test_keywords_and_defaults_are_positions(subject, data):
    """fwd gets keywords and defaults as positional arguments, and bwd returns an entry for each."""
    positional = subject.draw(data, st.integers(0, 2), "arguments by position")
    rest = list(VALUES)[positional:]
    words = subject.draw(data, st.permutations(rest), "order of the keywords")
    left_out = subject.draw(data, st.sets(st.sampled_from(("b", "c"))), "arguments left out")
    seen = []

    def forward(a, b, c):
        seen.append([float(x) for x in (a, b, c)])
        return a + b + c, None

    function = jax.custom_vjp(lambda a, b=7.0, c=11.0: a + b + c)
    function.defvjp(forward, lambda _, g: (g, 2 * g, 3 * g))
    passed = {word: VALUES[word] for word in words if word not in left_out}

    def call(a, b, c):
        moving = {"a": a, "b": b, "c": c}
        positions = [moving[name] for name in list(VALUES)[:positional]]
        return function(*positions, **{name: moving[name] for name in passed})

    taken = [*list(VALUES)[:positional], *passed]
    gradients = jax.grad(call, argnums=(0, 1, 2))(*VALUES.values())
    defaults = {"a": 2.0, "b": 7.0, "c": 11.0}
    expected = [VALUES[name] if name in taken else default for name, default in defaults.items()]
    subject.assert_equal("arguments of fwd", got=seen, expected=[expected])
    slopes = [float(i + 1) if name in taken else 0.0 for i, name in enumerate(VALUES)]
    subject.assert_equal("gradients", got=[float(g) for g in gradients], expected=slopes)


# Non-array arguments: anything except tracers, hashable or not.
STATICS = ("text", (1, 2), None, len, {"key": [1]}, 3)


@keeps("JAX-VJP-11")
def test_what_is_not_differentiable_comes_first_in_bwd(subject, data):
    """Non-differentiable arguments keep their places in fwd and come first in bwd."""
    linear = subject.draw(data, linears(max_outputs=1), "function")
    statics = subject.draw(data, st.lists(st.sampled_from(STATICS), min_size=1, max_size=3), "arguments next to it")
    total = linear.arguments + len(statics)
    slots = sorted(subject.draw(data, st.permutations(range(total)), "places")[: len(statics)])
    by_name = subject.draw(data, st.booleans(), "by name")
    given_to = []

    def spread(tensors):
        alongside, rest = iter(statics), iter(tensors)
        return [next(alongside) if i in slots else next(rest) for i in range(total)]

    names = [f"argument_{i}" for i in range(total)]
    options = {"nondiff_argnames": [names[i] for i in slots]} if by_name else {"nondiff_argnums": tuple(slots)}

    def primal(*args):
        return linear.primal(*(x for i, x in enumerate(args) if i not in slots))[0]

    def forward(*args):
        given_to.append([args[i] for i in slots])
        return primal(*args), None

    def backward(*args):
        given_to.append(list(args[: len(slots)]))
        return linear.pulled(args[-1])

    function = jax.custom_vjp(_with_names(names, primal), **options)
    function.defvjp(forward, backward)
    output, pullback = jax.vjp(lambda *xs: function(*spread(xs)), *jax_arrays(subject, linear, linear.points))
    gradients = pullback(jax_arrays(subject, linear, linear.cotangents)[0])
    subject.assert_same("output", got=output, expected=linear.primal(*linear.points)[0])
    subject.assert_equal("non-differentiable arguments of fwd and bwd", got=given_to, expected=[statics, statics])
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))


def _with_names(names, f):
    """``f`` with these parameter names."""
    made = {"f": f}
    exec(f"def named({', '.join(names)}): return f({', '.join(names)})", made)
    return made["named"]


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
    way = subject.draw(data, tuple(TRACING), "transformation")
    pack = PACKS[subject.draw(data, tuple(PACKS), "tracer in a")]
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
    linear = subject.draw(data, linears(max_arguments=1, max_outputs=1), "function")
    dtype = subject.draw(data, ("int32", "int64", "uint8", "bool"), "dtype")
    numbers = subject.draw(data, st.lists(st.integers(0, 1), min_size=2, max_size=2), "integers")
    first = subject.draw(data, st.booleans(), "before the other argument")

    def ordered(a, b):
        return (a, b) if first else (b, a)

    function = jax.custom_vjp(lambda *args: ordered(*args)[1] * 2)
    function.defvjp(lambda *args: (ordered(*args)[1] * 2, ordered(*args)[0]),
                    lambda k, g: ordered(None, g * (1 + jnp.sum(k.astype(g.dtype)))))  # fmt: skip
    integers = jnp.asarray(np.asarray(numbers, dtype))
    (x,), (cotangent,) = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.cotangents)
    _, pullback = jax.vjp(function, *ordered(integers, x))
    of_integers, gradient = ordered(*pullback(cotangent))
    expected = linear.cotangents[0] * (1 + sum(numbers))
    subject.assert_same("gradient of the other argument", got=gradient, expected=np.asarray(expected))
    got = (of_integers.shape, of_integers.dtype == jax.dtypes.float0)
    subject.assert_equal("shape of the integers' gradient, whether it is float0", got=got, expected=((2,), True))


def _observing(linear, seen):
    """The function with symbolic_zeros; its rule notes which arguments and outputs are differentiated."""

    def forward(*xs):
        seen["perturbed"] = [x.perturbed for x in xs]
        seen["values"] = [x.value for x in xs]
        return linear.primal(*seen["values"]), None

    def backward(_, cotangents):
        seen["zeros"] = [isinstance(g, SymbolicZero) for g in cotangents]
        seen["types"] = [(g.shape, str(g.dtype)) for g in cotangents]
        return linear.pulled(*(jnp.zeros(g.shape, g.dtype) if isinstance(g, SymbolicZero) else g for g in cotangents))

    function = jax.custom_vjp(lambda *xs: linear.primal(*xs))
    function.defvjp(forward, backward, symbolic_zeros=True)
    return function


@keeps("JAX-VJP-14")
def test_fwd_gets_what_takes_part(subject, data):
    """With symbolic_zeros, fwd gets each argument's value and whether it takes part in differentiation."""
    linear = subject.draw(data, linears(), "function")
    flags = st.lists(st.booleans(), min_size=linear.arguments, max_size=linear.arguments).filter(any)
    moves = subject.draw(data, flags, "arguments that take part")
    seen = {}
    function = _observing(linear, seen)
    points = jax_arrays(subject, linear, linear.points)

    def f(*moving):
        rest = iter(moving)
        return function(*(next(rest) if m else x for m, x in zip(moves, points, strict=True)))

    jax.vjp(f, *(x for m, x in zip(moves, points, strict=True) if m))
    subject.assert_equal("perturbed", got=seen["perturbed"], expected=moves)
    subject.assert_all_same("values in fwd", got=seen["values"], expected=linear.points)


def _with_used_outputs(subject, linear, function, used):
    """The gradients of a loss that uses only these outputs."""
    cotangents = jax_arrays(subject, linear, linear.cotangents)

    def loss(*xs):
        return sum(jnp.sum(y * g) for o, (y, g) in enumerate(zip(function(*xs), cotangents, strict=True)) if o in used)

    every = tuple(range(linear.arguments))
    return jax.grad(loss, argnums=every)(*jax_arrays(subject, linear, linear.points))


def _used(subject, data, linear):
    positions = st.integers(0, linear.outputs - 1)
    return subject.draw(data, st.sets(positions, min_size=1), "outputs used")


def _expected(linear, used):
    given_to = [g if o in used else np.zeros(linear.shape) for o, g in enumerate(linear.cotangents)]
    return linear.pulled(*given_to)


@keeps("JAX-VJP-15")
def test_bwd_gets_which_outputs_are_used(subject, data):
    """With symbolic_zeros, bwd gets symbolic zeros exactly for the outputs that are not used."""
    linear = subject.draw(data, linears(max_outputs=3), "function")
    used = _used(subject, data, linear)
    seen = {}
    gradients = _with_used_outputs(subject, linear, _observing(linear, seen), used)
    unused = [o not in used for o in range(linear.outputs)]
    subject.assert_equal("which cotangents are symbolic zeros", got=seen["zeros"], expected=unused)
    types = [(linear.shape, linear.dtype)] * linear.outputs
    subject.assert_equal("shapes and dtypes of the cotangents", got=seen["types"], expected=types)
    subject.assert_all_same("gradients", got=gradients, expected=_expected(linear, used))


@keeps("JAX-VJP-16")
def test_bwd_gets_zeros_for_unused_outputs(subject, data):
    """Without symbolic_zeros, bwd gets arrays of zeros for the outputs that are not used."""
    linear = subject.draw(data, linears(max_outputs=3), "function")
    used = _used(subject, data, linear)
    seen = []

    def backward(_, cotangents):
        seen.extend(cotangents)
        return linear.pulled(*cotangents)

    gradients = _with_used_outputs(subject, linear, linear.with_vjp(backward=backward), used)
    expected = [g if o in used else np.zeros(linear.shape) for o, g in enumerate(linear.cotangents)]
    subject.assert_all_same("cotangents in bwd", got=seen, expected=expected)
    kinds = [str(g.dtype) for g in seen]
    subject.assert_equal("dtypes of the cotangents", got=kinds, expected=[linear.dtype] * linear.outputs)
    subject.assert_all_same("gradients", got=gradients, expected=_expected(linear, used))


@keeps("JAX-VJP-27")
def test_a_stopped_output_contributes_nothing(subject, data):
    """Outputs under stop_gradient keep their values and have symbolic zeros as cotangents."""
    linear = subject.draw(data, linears(max_outputs=3), "function")
    stopped = subject.draw(data, st.sets(st.integers(0, linear.outputs - 1), min_size=1), "outputs under stop_gradient")
    seen = {}
    function = _observing(linear, seen)

    def f(*xs):
        return tuple(jax.lax.stop_gradient(y) if o in stopped else y for o, y in enumerate(function(*xs)))

    outputs, pullback = jax.vjp(f, *jax_arrays(subject, linear, linear.points))
    gradients = pullback(tuple(jax_arrays(subject, linear, linear.cotangents)))
    used = set(range(linear.outputs)) - stopped
    subject.assert_all_same("outputs", got=outputs, expected=linear.primal(*linear.points))
    subject.assert_all_same("gradients", got=gradients, expected=_expected(linear, used))
    # Where every output is stopped, bwd need not run at all.
    zeros = seen.get("zeros", [True] * linear.outputs)
    expected = [o in stopped for o in range(linear.outputs)]
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
    linear = subject.draw(data, linears(max_outputs=1), "function whose points are closed over")
    compiled = subject.draw(data, st.booleans(), "under jit")

    def applied(converted, x, *hoisted):
        return converted(x, *hoisted)

    function = jax.custom_vjp(applied, nondiff_argnums=(0,))
    function.defvjp(lambda *args: (applied(*args), None), lambda _, __, g: (jnp.sum(g), *linear.pulled(g)))

    def f(*points):
        converted, hoisted = jax.closure_convert(lambda x: linear.primal(*points)[0] * x, 1.0)
        return function(converted, 2.0, *hoisted)

    output, pullback = jax.vjp(jax.jit(f) if compiled else f, *jax_arrays(subject, linear, linear.points))
    gradients = pullback(jax_arrays(subject, linear, linear.cotangents)[0])
    subject.assert_same("output", got=output, expected=2 * linear.primal(*linear.points)[0])
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))


@keeps("JAX-VJP-21")
def test_a_closure_is_not_differentiated(subject, data):
    """Captured tracers of jit and vmap work; differentiating with respect to a captured value raises."""
    linear = subject.draw(data, linears(max_arguments=1, max_outputs=1), "function")
    ways = {"grad": jax.grad, "grad of jit": lambda f: jax.grad(jax.jit(f)), "vmap": None, "jit": None}
    way = subject.draw(data, tuple(ways), "transformation")

    def f(scale):
        function = jax.custom_vjp(lambda x: x * scale)
        function.defvjp(lambda x: (x * scale, None), lambda _, g: (g,))
        return jnp.sum(function(jax_arrays(subject, linear, linear.points)[0]))

    total = float(np.sum(linear.points[0]))
    if ways[way] is None:
        got = jax.vmap(f)(jnp.asarray([2.0, 3.0])) if way == "vmap" else jax.jit(f)(jnp.asarray(2.0))
        subject.assert_same("outputs", got=got, expected=np.asarray([2.0, 3.0] if way == "vmap" else 2.0) * total)
    else:
        what = "a derivative with respect to what the function closes over"
        subject.assert_raises(Exception, lambda: ways[way](f)(2.0), what)
