"""Functions with a JVP rule: what the rule gets, how its result is used, and how it is transposed."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.jax._linear_functions import (
    PACKS,
    argument_of,
    combined,
    jax_arrays,
    leaves,
    linears,
)

FACTORS = st.integers(-3, 3).filter(bool)


def _pushed(subject, linear, function, tangents=None):
    """Outputs and tangents of the function at the drawn points."""
    points, moves = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, tangents or linear.tangents)
    return jax.jvp(function, tuple(points), tuple(moves))


def _pulled(subject, linear, function):
    """The gradients of the function at the drawn points."""
    _, pullback = jax.vjp(function, *jax_arrays(subject, linear, linear.points))
    return pullback(tuple(jax_arrays(subject, linear, linear.cotangents)))


@keeps("JAX-JVP-01")
def test_forward_mode_uses_the_rule(subject, data):
    """Outputs and tangents come from the rule, which gets all primals and tangents."""
    linear = subject.draw(data, linears(), "function")
    seen = []

    def rule(primals, tangents):
        seen.extend((primals, tangents))
        return linear.primal(*primals), linear.pushed(*tangents)

    outputs, tangents = _pushed(subject, linear, linear.with_jvp(rule))
    subject.assert_all_same("outputs", got=outputs, expected=linear.primal(*linear.points))
    subject.assert_all_same("tangents", got=tangents, expected=linear.pushed(*linear.tangents))
    subject.assert_all_same("primals in the rule", got=seen[0], expected=linear.points)
    subject.assert_all_same("tangents in the rule", got=seen[1], expected=linear.tangents)


@keeps("JAX-JVP-02")
def test_reverse_mode_transposes_the_rule(subject, data):
    """Gradients are the transpose of the rule's linear map."""
    linear = subject.draw(data, linears(), "function")
    gradients = _pulled(subject, linear, linear.with_jvp())
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))


# Nonlinear functions of a tangent.
CURVED = {"exp": jnp.exp, "cos": jnp.cos, "abs": jnp.abs, "tanh": jnp.tanh, "square": jnp.square}


def _assert_refused(subject, data, curve, what):
    linear = subject.draw(data, linears(), "function")
    position = subject.draw(data, argument_of(linear), "argument whose tangent it is of")

    def rule(primals, tangents):
        bent = [curve(t) if i == position else t for i, t in enumerate(tangents)]
        return linear.primal(*primals), linear.pushed(*bent)

    subject.assert_raises(Exception, lambda: _pulled(subject, linear, linear.with_jvp(rule)), what)


@keeps("JAX-JVP-03")
def test_a_curved_rule_has_no_transpose(subject, data):
    """Reverse mode raises if the rule applies a nonlinear function to a tangent."""
    name = subject.draw(data, tuple(CURVED), "function of a tangent")
    _assert_refused(subject, data, CURVED[name], f"reverse mode of a rule with {name} of a tangent")


@keeps("JAX-JVP-03", variant="affine", examples=0.4)
def test_an_affine_rule_has_no_transpose(subject, data):
    """Reverse mode raises if the rule adds a constant to a tangent."""
    shift = subject.draw(data, FACTORS, "constant added to a tangent")
    _assert_refused(subject, data, lambda t: t + shift, "reverse mode of a rule that adds a constant to a tangent")


@keeps("JAX-JVP-04")
def test_defjvps_sums_what_each_argument_gives(subject, data):
    """The tangent is the sum of the rules of each argument; None adds nothing."""
    linear = subject.draw(data, linears(max_outputs=1), "function")
    some = st.sets(argument_of(linear), max_size=linear.arguments - 1)
    dropped = subject.draw(data, some, "arguments with None")
    seen = []

    def of_argument(i):
        def rule(tangent, output, *primals):
            seen.append((output, primals))
            return linear.rule[0][i] * tangent

        return None if i in dropped else rule

    function = jax.custom_jvp(lambda *xs: linear.primal(*xs)[0])
    function.defjvps(*map(of_argument, range(linear.arguments)))
    output, tangent = _pushed(subject, linear, function)
    weights = [0 if i in dropped else w for i, w in enumerate(linear.rule[0])]
    subject.assert_same("tangent", got=tangent, expected=np.asarray(combined(weights, linear.tangents)))
    subject.assert_same("output", got=output, expected=linear.primal(*linear.points)[0])
    values = [x for y, primals in seen for x in (y, *primals)]
    one = [linear.primal(*linear.points)[0], *linear.points]
    subject.assert_all_same("output and primals in the rules", got=values, expected=one * len(seen))


@keeps("JAX-JVP-04", variant="constant", examples=0.4)
def test_defjvps_of_none_alone_is_zero(subject, data):
    """With None for every argument, the tangents are zeros."""
    linear = subject.draw(data, linears(), "function")
    function = jax.custom_jvp(lambda *xs: linear.primal(*xs))
    function.defjvps(*[None] * linear.arguments)
    _, tangents = subject.assert_accepted(lambda: _pushed(subject, linear, function), "None for every argument")
    subject.assert_all_same("tangents", got=tangents, expected=[np.zeros(linear.shape)] * linear.outputs)


@keeps("JAX-JVP-05")
def test_defjvps_knows_no_nondiff_argnums(subject, data):
    """defjvps raises TypeError on a function with nondiff_argnums."""
    argnums = subject.draw(data, st.sets(st.integers(0, 2), min_size=1).map(sorted), "nondiff_argnums")
    function = jax.custom_jvp(lambda x, y, z: x, nondiff_argnums=tuple(argnums))
    what = "defjvps with nondiff_argnums"
    subject.assert_raises(TypeError, lambda: function.defjvps(None, None, None), what, naming=["nondiff_argnums"])


@keeps("JAX-JVP-06")
def test_the_rule_runs_in_each_order_if_it_calls_the_function(subject, data):
    """Higher derivatives use the rule again only if the rule calls the function itself."""
    recursive = subject.draw(data, st.booleans(), "the rule calls the function")
    order = subject.draw(data, st.integers(1, 3), "order of the derivative")
    forward = subject.draw(data, st.lists(st.booleans(), min_size=order, max_size=order), "forward mode, by order")
    factor, point = (subject.draw(data, FACTORS, name) for name in ("factor of the rule", "point"))
    function = jax.custom_jvp(lambda x: x**3)

    def rule(primals, tangents):
        ((x,), (t,)) = primals, tangents
        # The tangent has the function as a factor: its derivative shows whether the rule was used.
        value = function(x) if recursive else x**3
        return value, factor * value * t

    function.defjvp(rule)
    derivative = function
    for mode in forward:
        derivative = (jax.jacfwd if mode else jax.grad)(derivative)
    # f' = c f, and with the rule in each order f'' = c f' and so on; without it (c x^3)' = 3 c x^2.
    plain = [point**3, 3 * point**2, 6 * point]
    higher = factor**order * point**3 if recursive else factor * plain[order - 1]
    subject.assert_same("derivative", got=derivative(jnp.asarray(float(point))), expected=np.asarray(float(higher)))


STATICS = ("text", (1, 2), None, len, {"key": [1]}, 3)


@keeps("JAX-JVP-07")
def test_what_is_not_differentiable_comes_first_in_the_rule(subject, data):
    """The non-differentiable arguments come first in the rule, as the objects that were passed."""
    statics = subject.draw(data, st.lists(st.sampled_from(STATICS), min_size=1, max_size=3), "arguments next to it")
    total = len(statics) + 1
    place = subject.draw(data, st.integers(0, len(statics)), "position of the array")
    factor = subject.draw(data, FACTORS, "factor of the rule")
    reverse = subject.draw(data, st.booleans(), "reverse mode")
    names = [f"argument_{i}" for i in range(total)]
    by_name = subject.draw(data, st.booleans(), "by name")
    slots = [i for i in range(total) if i != place]
    options = {"nondiff_argnames": [names[i] for i in slots]} if by_name else {"nondiff_argnums": tuple(slots)}
    made = {"place": place}
    exec(f"def named({', '.join(names)}): return argument_{place} * 2", made)
    function = jax.custom_jvp(made["named"], **options)
    seen = []

    @function.defjvp
    def rule(*args):
        *alongside, (x,), (t,) = args
        seen.extend(alongside)
        return x * 2, factor * t

    def call(x):
        return function(*statics[:place], x, *statics[place:])

    derivative = (jax.grad if reverse else jax.jacfwd)(call)(2.0)
    subject.assert_equal("arguments before the primals", got=seen, expected=statics)
    subject.assert_equal("derivative", got=float(derivative), expected=float(factor))


@keeps("JAX-JVP-08")
def test_tangents_of_what_does_not_move(subject, data):
    """Arguments that do not move have zero tangents: symbolic with symbolic_zeros, arrays without it."""
    linear = subject.draw(data, linears(), "function")
    symbolic = subject.draw(data, st.booleans(), "symbolic_zeros")
    reverse = subject.draw(data, st.booleans(), "reverse mode")
    flags = st.lists(st.booleans(), min_size=linear.arguments, max_size=linear.arguments).filter(any)
    moves = subject.draw(data, flags, "arguments that move")
    seen = {}

    def rule(primals, tangents):
        seen["symbolic"] = [isinstance(t, SymbolicZero) for t in tangents]
        seen["types"] = [(t.shape, str(t.dtype)) for t in tangents]
        arrays = [jnp.zeros(t.shape, t.dtype) if isinstance(t, SymbolicZero) else t for t in tangents]
        return linear.primal(*primals), linear.pushed(*arrays)

    function = jax.custom_jvp(lambda *xs: linear.primal(*xs))
    function.defjvp(rule, symbolic_zeros=symbolic)
    points, tangents = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.tangents)

    def f(*moving):
        rest = iter(moving)
        return function(*(next(rest) if m else x for m, x in zip(moves, points, strict=True)))

    moving = tuple(x for m, x in zip(moves, points, strict=True) if m)
    if reverse:
        got = jax.vjp(f, *moving)[1](tuple(jax_arrays(subject, linear, linear.cotangents)))
        expected = [g for m, g in zip(moves, linear.pulled(*linear.cotangents), strict=True) if m]
    else:
        _, got = jax.jvp(f, moving, tuple(t for m, t in zip(moves, tangents, strict=True) if m))
        steps = [t if m else np.zeros(linear.shape) for m, t in zip(moves, linear.tangents, strict=True)]
        expected = linear.pushed(*steps)
    subject.assert_all_same("derivatives", got=got, expected=expected)
    zeros = [symbolic and not m for m in moves]
    subject.assert_equal("which tangents are symbolic zeros", got=seen["symbolic"], expected=zeros)
    types = [(linear.shape, linear.dtype)] * linear.arguments
    subject.assert_equal("shapes and dtypes of the tangents", got=seen["types"], expected=types)


@keeps("JAX-JVP-09")
def test_keywords_and_defaults_are_positions(subject, data):
    """The rule gets keyword arguments and defaults as positional primals."""
    positional = subject.draw(data, st.integers(0, 2), "arguments by position")
    values = {"a": 2.0, "b": 3.0, "c": 5.0}
    words = subject.draw(data, st.permutations(list(values)[positional:]), "order of the keywords")
    left_out = subject.draw(data, st.sets(st.sampled_from(("b", "c"))), "arguments left out")
    seen = []

    def rule(primals, tangents):
        seen.append([float(x) for x in primals])
        return sum(primals), combined((1, 2, 3), tangents)

    function = jax.custom_jvp(lambda a, b=7.0, c=11.0: a + b + c)
    function.defjvp(rule)
    passed = [word for word in words if word not in left_out]

    def call(a, b, c):
        moving = {"a": a, "b": b, "c": c}
        return function(*list(moving.values())[:positional], **{name: moving[name] for name in passed})

    taken = [*list(values)[:positional], *passed]
    derivatives = jax.jacfwd(call, argnums=(0, 1, 2))(*values.values())
    defaults = {"a": 2.0, "b": 7.0, "c": 11.0}
    expected = [values[name] if name in taken else default for name, default in defaults.items()]
    subject.assert_equal("primals in the rule", got=seen[0], expected=expected)
    slopes = [float(i + 1) if name in taken else 0.0 for i, name in enumerate(values)]
    subject.assert_equal("derivatives", got=[float(t) for t in derivatives], expected=slopes)


@keeps("JAX-JVP-10")
def test_containers_keep_their_structure(subject, data):
    """Primals and tangents keep the pytree structure of arguments and outputs."""
    linear = subject.draw(data, linears(), "function")
    pack, pack_outputs = (PACKS[subject.draw(data, tuple(PACKS), f"{part} in a")] for part in ("arguments", "outputs"))
    structure = jax.tree_util.tree_structure
    seen = []

    def rule(primals, tangents):
        seen.extend((structure(primals), structure(tangents)))
        ys, ts = linear.primal(*leaves(primals)), linear.pushed(*leaves(tangents))
        return pack_outputs(ys), pack_outputs(ts)

    function = jax.custom_jvp(lambda tree: pack_outputs(linear.primal(*leaves(tree))))
    function.defjvp(rule)
    points, moves = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.tangents)
    outputs, tangents = jax.jvp(function, (pack(points),), (pack(moves),))
    expected = structure((pack(points),))
    subject.assert_equal("structures of primals and tangents in the rule", got=seen, expected=[expected] * 2)
    subject.assert_equal("structure of the tangents", got=structure(tangents), expected=structure(outputs))
    subject.assert_all_same("tangents", got=leaves(tangents), expected=linear.pushed(*linear.tangents))


# Wrong results of a rule, made from outputs and tangents.
MISFITS = {
    "no pair": lambda ys, ts: ys[0],
    "three": lambda ys, ts: (ys, ts, ts),
    "fewer tangents": lambda ys, ts: (ys, ts[:-1]),
    "more tangents": lambda ys, ts: (ys, (*ts, ts[0])),
    "tangents in a list": lambda ys, ts: (ys, list(ts)),
    "another shape": lambda ys, ts: (ys, (*ts[:-1], ts[-1][None])),
    "another dtype": lambda ys, ts: (ys, (*ts[:-1], ts[-1].astype("float16"))),
}


@keeps("JAX-JVP-11")
def test_tangents_fit_their_outputs(subject, data):
    """A rule whose tangents do not match its outputs raises TypeError, which names the JVP."""
    linear = subject.draw(data, linears(), "function")
    misfit = subject.draw(data, tuple(MISFITS), "what the rule returns")

    def rule(primals, tangents):
        return MISFITS[misfit](linear.primal(*primals), linear.pushed(*tangents))

    what = f"a rule that returns {misfit}"
    subject.assert_raises(TypeError, lambda: _pushed(subject, linear, linear.with_jvp(rule)), what, naming=["JVP"])


@keeps("JAX-JVP-12")
def test_control_flow_sees_values(subject, data):
    """Function and rule may branch on the values of primals, in both modes."""
    point, factors = (
        float(subject.draw(data, FACTORS, "point")),
        subject.draw(data, st.tuples(FACTORS, FACTORS), "rule"),
    )
    reverse = subject.draw(data, st.booleans(), "reverse mode")
    function = jax.custom_jvp(lambda x: 2 * x if x > 0 else 3 * x)

    @function.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return function(x), factors[0] * t if x > 0 else factors[1] * t

    mode = jax.grad if reverse else jax.jacfwd
    got = subject.assert_accepted(lambda: mode(function)(point), "control flow on a primal")
    subject.assert_equal("derivative", got=float(got), expected=float(factors[0] if point > 0 else factors[1]))


@keeps("JAX-JVP-13")
def test_a_call_that_is_not_differentiated_does_not_run_the_rule(subject, data):
    """A call that is not differentiated gives the function's outputs and runs no rule."""
    linear = subject.draw(data, linears(), "function")
    calls = {"call": lambda f: f, "jit": jax.jit, "checkpoint": jax.checkpoint, "vmap": jax.vmap}
    way = subject.draw(data, tuple(calls), "call")
    ran = []

    def rule(primals, tangents):
        ran.append("rule")
        return linear.primal(*primals), linear.pushed(*tangents)

    arrays = [x[None] for x in linear.points]
    got = calls[way](linear.with_jvp(rule))(*jax_arrays(subject, linear, arrays))
    subject.assert_all_same("outputs", got=got, expected=linear.primal(*arrays))
    subject.assert_equal("rules that ran", got=ran, expected=[])


# Ways to compute the diagonal of the Jacobian of an elementwise function.
JACOBIANS = {
    "jacfwd": lambda f, x: jnp.diag(jax.jacfwd(f)(x)),
    "jacrev": lambda f, x: jnp.diag(jax.jacrev(f)(x)),
    "linearize": lambda f, x: jax.linearize(f, x)[1](jnp.ones_like(x)),
    "vmap of grad": lambda f, x: jax.vmap(jax.grad(f))(x),
    "jit of vmap of jacfwd": lambda f, x: jax.jit(jax.vmap(jax.jacfwd(f)))(x),
    "jvp of jit": lambda f, x: jax.jvp(jax.jit(f), (x,), (jnp.ones_like(x),))[1],
    "grad of sum of vmap": lambda f, x: jax.grad(lambda x: jnp.sum(jax.vmap(f)(x)))(x),
}


@keeps("JAX-JVP-14")
def test_derivatives_agree_in_every_way(subject, data):
    """Every way to the Jacobian gives the rule's derivatives."""
    way = subject.draw(data, tuple(JACOBIANS), "way")
    factor, points = (
        subject.draw(data, FACTORS, "factor of the rule"),
        subject.draw(data, st.lists(FACTORS, min_size=2, max_size=3), "points"),
    )
    function = jax.custom_jvp(lambda x: x * x)
    function.defjvp(lambda primals, tangents: (primals[0] * primals[0], factor * primals[0] * tangents[0]))
    got = JACOBIANS[way](function, jnp.asarray(points, "float64"))
    subject.assert_same("derivatives", got=got, expected=factor * np.asarray(points, np.float64))
