"""Functions with a JVP rule: what the rule gets, how its result is used, and how it is transposed."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.jax._functions import (
    CALLS,
    FACTORS,
    STATICS,
    JaxCase,
    drawn_pack,
    leaves,
    named,
    passed_somehow,
    structure,
)
from autograd_conformance.suites.dialects.shared.linear import combined

# Both modes, for a function of one scalar.
MODES = {"forward mode": jax.jacfwd, "reverse mode": jax.grad}


@keeps("JAX-JVP-01")
def test_forward_mode_uses_the_rule(subject, data):
    """Outputs and tangents come from the rule, which gets all primals and tangents."""
    case, seen = JaxCase(subject, data), []

    def rule(primals, tangents):
        seen.extend((primals, tangents))
        return case.linear.primal(*primals), case.linear.pushed(*tangents)

    outputs, tangents = case.moved(case.with_jvp(rule))
    case.assert_outputs(outputs)
    subject.assert_all_same("tangents", got=tangents, expected=case.linear.pushed(*case.linear.tangents))
    subject.assert_all_same("primals in the rule", got=seen[0], expected=case.linear.points)
    subject.assert_all_same("tangents in the rule", got=seen[1], expected=case.linear.tangents)


@keeps("JAX-JVP-02")
def test_reverse_mode_transposes_the_rule(subject, data):
    """Gradients are the transpose of the rule's linear map."""
    case = JaxCase(subject, data)
    _, gradients = case.pulled(case.with_jvp())
    case.assert_gradients(gradients)


# Nonlinear functions of a tangent.
CURVED = {"exp": jnp.exp, "cos": jnp.cos, "abs": jnp.abs, "tanh": jnp.tanh, "square": jnp.square}


def _assert_refused(subject, data, curve, what):
    case = JaxCase(subject, data)
    position = case.position(data, "argument whose tangent it is of")

    def rule(primals, tangents):
        bent = [curve(t) if i == position else t for i, t in enumerate(tangents)]
        return case.linear.primal(*primals), case.linear.pushed(*bent)

    subject.assert_raises(Exception, lambda: case.pulled(case.with_jvp(rule)), what)


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
    case, seen = JaxCase(subject, data, outputs=1), []
    kept = case.flags(data, "arguments without None")
    (rule,) = case.linear.rule

    def of_argument(i):
        return lambda tangent, output, *primals: (seen.extend((output, *primals)), rule[i] * tangent)[1]

    function = jax.custom_jvp(lambda *xs: case.linear.primal(*xs)[0])
    function.defjvps(*(of_argument(i) if keep else None for i, keep in enumerate(kept)))
    output, tangent = case.moved(function)
    weights = [w * keep for w, keep in zip(rule, kept, strict=True)]
    subject.assert_same("tangent", got=tangent, expected=np.asarray(combined(weights, case.linear.tangents)))
    case.assert_outputs([output])
    one = [*case.linear.primal(*case.linear.points), *case.linear.points]
    subject.assert_all_same("output and primals in the rules", got=seen, expected=one * sum(kept))


@keeps("JAX-JVP-04", variant="constant", examples=0.4)
def test_defjvps_of_none_alone_is_zero(subject, data):
    """With None for every argument, the tangents are zeros."""
    case = JaxCase(subject, data)
    function = jax.custom_jvp(lambda *xs: case.linear.primal(*xs))
    function.defjvps(*[None] * case.linear.arguments)
    _, tangents = subject.assert_accepted(lambda: case.moved(function), "None for every argument")
    subject.assert_all_same("tangents", got=tangents, expected=[case.linear.zeros] * case.linear.outputs)


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
    modes = subject.draw(data, st.lists(st.sampled_from(tuple(MODES)), min_size=1, max_size=3), "modes, by order")
    factor, point = (subject.draw(data, FACTORS, name) for name in ("factor of the rule", "point"))
    function = jax.custom_jvp(lambda x: x**3)

    def rule(primals, tangents):
        ((x,), (t,)) = primals, tangents
        # The tangent has the function as a factor: its derivative shows whether the rule was used.
        value = function(x) if recursive else x**3
        return value, factor * value * t

    function.defjvp(rule)
    derivative = function
    for mode in modes:
        derivative = MODES[mode](derivative)
    # f' = c f, and with the rule in each order f'' = c f' and so on; without it (c x^3)' = 3 c x^2.
    plain = [point**3, 3 * point**2, 6 * point]
    higher = factor ** len(modes) * point**3 if recursive else factor * plain[len(modes) - 1]
    subject.assert_same("derivative", got=derivative(jnp.asarray(float(point))), expected=np.asarray(float(higher)))


@keeps("JAX-JVP-07")
def test_what_is_not_differentiable_comes_first_in_the_rule(subject, data):
    """The non-differentiable arguments come first in the rule, as the objects that were passed."""
    statics, seen = subject.draw(data, STATICS, "arguments next to it"), []
    place = subject.draw(data, st.integers(0, len(statics)), "position of the array")
    factor, mode = subject.draw(data, FACTORS, "factor of the rule"), subject.draw(data, tuple(MODES), "mode")
    names = [f"argument_{i}" for i in range(len(statics) + 1)]
    slots = [i for i in range(len(names)) if i != place]
    by_name = subject.draw(data, st.booleans(), "by name")
    options = {"nondiff_argnames": [names[i] for i in slots]} if by_name else {"nondiff_argnums": tuple(slots)}
    function = jax.custom_jvp(named(names, lambda *args: args[place] * 2), **options)

    @function.defjvp
    def rule(*args):
        *alongside, (x,), (t,) = args
        seen.extend(alongside)
        return x * 2, factor * t

    derivative = MODES[mode](lambda x: function(*statics[:place], x, *statics[place:]))(2.0)
    subject.assert_equal("arguments before the primals", got=seen, expected=statics)
    subject.assert_equal("derivative", got=float(derivative), expected=float(factor))


@keeps("JAX-JVP-08")
def test_tangents_of_what_does_not_move(subject, data):
    """Arguments that do not move have zero tangents: symbolic with symbolic_zeros, arrays without it."""
    case, seen = JaxCase(subject, data), {}
    symbolic = subject.draw(data, st.booleans(), "symbolic_zeros")
    reverse = subject.draw(data, st.booleans(), "reverse mode")
    moves = case.flags(data, "arguments that move")

    def rule(primals, tangents):
        seen["symbolic"] = [isinstance(t, SymbolicZero) for t in tangents]
        seen["types"] = [(t.shape, str(t.dtype)) for t in tangents]
        dense = (jnp.zeros(t.shape, t.dtype) if isinstance(t, SymbolicZero) else t for t in tangents)
        return case.linear.primal(*primals), case.linear.pushed(*dense)

    def moving(values):
        return tuple(x for m, x in zip(moves, values, strict=True) if m)

    f = case.with_constants(case.with_jvp(rule, symbolic_zeros=symbolic), moves)
    if reverse:
        got = jax.vjp(f, *moving(case.points))[1](case.cotangents)
        expected = moving(case.linear.pulled(*case.linear.cotangents))
    else:
        _, got = jax.jvp(f, moving(case.points), moving(case.tensors(case.linear.tangents)))
        expected = case.linear.pushed(*(t * m for m, t in zip(moves, case.linear.tangents, strict=True)))
    subject.assert_all_same("derivatives", got=got, expected=list(map(np.asarray, expected)))
    zeros = [symbolic and not m for m in moves]
    subject.assert_equal("which tangents are symbolic zeros", got=seen["symbolic"], expected=zeros)
    types = [(case.linear.shape, case.linear.dtype)] * case.linear.arguments
    subject.assert_equal("shapes and dtypes of the tangents", got=seen["types"], expected=types)


@keeps("JAX-JVP-09")
def test_keywords_and_defaults_are_positions(subject, data):
    """The rule gets keyword arguments and defaults as positional primals."""
    calling, values, arriving, slopes = passed_somehow(subject, data)
    seen = []

    def rule(primals, tangents):
        seen.append([float(x) for x in primals])
        return sum(primals), combined((1, 2, 3), tangents)

    function = jax.custom_jvp(lambda a, b=7.0, c=11.0: a + b + c)
    function.defjvp(rule)
    derivatives = jax.jacfwd(calling(function), argnums=(0, 1, 2))(*values)
    subject.assert_equal("primals in the rule", got=seen[0], expected=arriving)
    subject.assert_equal("derivatives", got=[float(t) for t in derivatives], expected=slopes)


@keeps("JAX-JVP-10")
def test_containers_keep_their_structure(subject, data):
    """Primals and tangents keep the pytree structure of arguments and outputs."""
    case, seen = JaxCase(subject, data), []
    pack, pack_outputs = (drawn_pack(subject, data, f"{part} in a") for part in ("arguments", "outputs"))

    def rule(primals, tangents):
        seen.extend((structure(primals), structure(tangents)))
        ys, ts = case.linear.primal(*leaves(primals)), case.linear.pushed(*leaves(tangents))
        return pack_outputs(ys), pack_outputs(ts)

    function = jax.custom_jvp(lambda tree: pack_outputs(case.linear.primal(*leaves(tree))))
    function.defjvp(rule)
    points = (pack(case.points),)
    outputs, tangents = jax.jvp(function, points, (pack(case.tensors(case.linear.tangents)),))
    what = "structures of primals and tangents in the rule"
    subject.assert_equal(what, got=seen, expected=[structure(points)] * 2)
    subject.assert_equal("structure of the tangents", got=structure(tangents), expected=structure(outputs))
    subject.assert_all_same("tangents", got=leaves(tangents), expected=case.linear.pushed(*case.linear.tangents))


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
    case, misfit = JaxCase(subject, data), subject.draw(data, tuple(MISFITS), "what the rule returns")
    function = case.with_jvp(lambda xs, ts: MISFITS[misfit](case.linear.primal(*xs), case.linear.pushed(*ts)))
    subject.assert_raises(TypeError, lambda: case.moved(function), f"a rule that returns {misfit}", naming=["JVP"])


@keeps("JAX-JVP-12")
def test_control_flow_sees_values(subject, data):
    """Function and rule may branch on the values of primals, in both modes."""
    point, mode = float(subject.draw(data, FACTORS, "point")), subject.draw(data, tuple(MODES), "mode")
    factors = subject.draw(data, st.tuples(FACTORS, FACTORS), "rule")
    function = jax.custom_jvp(lambda x: 2 * x if x > 0 else 3 * x)

    @function.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return function(x), factors[0] * t if x > 0 else factors[1] * t

    got = subject.assert_accepted(lambda: MODES[mode](function)(point), "control flow on a primal")
    subject.assert_equal("derivative", got=float(got), expected=float(factors[0] if point > 0 else factors[1]))


@keeps("JAX-JVP-13")
def test_a_call_that_is_not_differentiated_does_not_run_the_rule(subject, data):
    """A call that is not differentiated gives the function's outputs and runs no rule."""
    case, ran = JaxCase(subject, data), []
    way = subject.draw(data, tuple(CALLS), "call")

    def rule(primals, tangents):
        ran.append("rule")
        return case.linear.primal(*primals), case.linear.pushed(*tangents)

    arrays = [x[None] for x in case.linear.points]
    got = CALLS[way](case.with_jvp(rule))(*case.tensors(arrays))
    subject.assert_all_same("outputs", got=got, expected=case.linear.primal(*arrays))
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
    way, factor = subject.draw(data, tuple(JACOBIANS), "way"), subject.draw(data, FACTORS, "factor of the rule")
    points = np.asarray(subject.draw(data, st.lists(FACTORS, min_size=2, max_size=3), "points"), np.float64)
    function = jax.custom_jvp(lambda x: x * x)
    function.defjvp(lambda primals, tangents: (primals[0] * primals[0], factor * primals[0] * tangents[0]))
    subject.assert_same("derivatives", got=JACOBIANS[way](function, jnp.asarray(points)), expected=factor * points)
