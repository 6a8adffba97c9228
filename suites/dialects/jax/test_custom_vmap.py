"""Functions with a batching rule."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.jax._linear_functions import combined, jax_arrays, linears

AXES = (0, -1, None)


def _batched(linear, seen):
    """The function with a batching rule of other weights, which notes what it got."""
    function = jax.custom_batching.custom_vmap(lambda *xs: linear.primal(*xs))

    @function.def_vmap
    def rule(axis_size, in_batched, *xs):
        seen.append((axis_size, list(in_batched), [x.shape for x in xs]))
        # Batched arguments have the batch axis first, so that the others broadcast.
        return linear.pushed(*xs), (True,) * linear.outputs

    return function


@keeps("JAX-VMAP-01")
def test_the_rule_gets_the_batch_in_front(subject, data):
    """The rule gets the batch size, flags and arguments with the batch axis first, and gives the outputs."""
    linear = subject.draw(data, linears(), "function")
    size = subject.draw(data, st.integers(1, 3), "size of the batch")
    choices = st.lists(st.sampled_from(AXES), min_size=linear.arguments, max_size=linear.arguments)
    axes = subject.draw(data, choices.filter(lambda a: set(a) != {None}), "axes")
    seen = []
    members = [linear.arrays(linear.arguments, 40 + number) for number in range(size)]
    columns = [[members[0][i]] * size if axis is None else [m[i] for m in members] for i, axis in enumerate(axes)]
    arrays = [c[0] if axis is None else np.stack(c, axis) for c, axis in zip(columns, axes, strict=True)]
    function = jax.vmap(_batched(linear, seen), tuple(axes))
    if subject.draw(data, st.booleans(), "under jit"):
        function = jax.jit(function)
    got = function(*jax_arrays(subject, linear, arrays))
    expected = [combined(row, [np.stack(c) for c in columns]) for row in linear.rule]
    subject.assert_all_same("outputs", got=got, expected=expected)
    shapes = [linear.shape if axis is None else (size, *linear.shape) for axis in axes]
    flags = [axis is not None for axis in axes]
    what = "size of the axis, which arguments are batched, and their shapes"
    subject.assert_equal(what, got=seen, expected=[(size, flags, shapes)])


@keeps("JAX-VMAP-02")
def test_without_a_batch_it_is_the_function(subject, data):
    """Without vmap the function itself runs, and the rule does not."""
    linear = subject.draw(data, linears(), "function")
    ways = {"call": lambda f: f, "jit": jax.jit, "checkpoint": jax.checkpoint}
    way, seen = subject.draw(data, tuple(ways), "call"), []
    got = ways[way](_batched(linear, seen))(*jax_arrays(subject, linear, linear.points))
    subject.assert_all_same("outputs", got=got, expected=linear.primal(*linear.points))
    subject.assert_equal("calls of the rule", got=seen, expected=[])


@keeps("JAX-VMAP-03")
def test_an_output_may_be_the_same_for_the_batch(subject, data):
    """An output that the rule flags as not batched is repeated for the whole batch."""
    linear = subject.draw(data, linears(max_arguments=1), "function")
    flags = st.lists(st.booleans(), min_size=linear.outputs, max_size=linear.outputs)
    batched = subject.draw(data, flags, "which outputs are batched")
    function = jax.custom_batching.custom_vmap(lambda x: linear.primal(x))

    @function.def_vmap
    def rule(axis_size, in_batched, xs):
        pairs = zip(linear.pushed(xs), batched, strict=True)
        return tuple(y if flag else y[0] for y, flag in pairs), tuple(batched)

    members = np.stack([linear.points[0], *linear.arrays(1, 50)])
    got = jax.vmap(function)(*jax_arrays(subject, linear, [members]))
    pairs = zip(linear.pushed(members), batched, strict=True)
    expected = [y if flag else np.stack([y[0]] * 2) for y, flag in pairs]
    subject.assert_all_same("outputs", got=got, expected=expected)


@keeps("JAX-VMAP-04")
def test_a_vjp_rule_goes_around_it(subject, data):
    """A custom_vjp around a custom_vmap has gradients by the one rule and batches by the other."""
    linear = subject.draw(data, linears(), "function")
    inner = _batched(linear, [])
    function = jax.custom_vjp(inner)
    function.defvjp(lambda *xs: (inner(*xs), None), lambda _, cts: linear.pulled(*cts))
    _, pullback = jax.vjp(function, *jax_arrays(subject, linear, linear.points))
    gradients = pullback(tuple(jax_arrays(subject, linear, linear.cotangents)))
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))
    outputs = jax.vmap(function)(*jax_arrays(subject, linear, [x[None] for x in linear.points]))
    batched = [y[None] for y in map(np.asarray, linear.pushed(*linear.points))]
    subject.assert_all_same("outputs of the batch", got=outputs, expected=batched)


@keeps("JAX-VMAP-04", variant="alone")
def test_it_has_no_reverse_mode(subject, data):
    """Reverse mode of a custom_vmap function without a VJP rule raises."""
    linear = subject.draw(data, linears(), "function")
    f = _batched(linear, [])
    if subject.draw(data, st.booleans(), "under jit"):
        f = jax.jit(f)
    what = "reverse mode of a function with a batching rule"
    points, cotangents = jax_arrays(subject, linear, linear.points), jax_arrays(subject, linear, linear.cotangents)
    subject.assert_raises(Exception, lambda: jax.vjp(f, *points)[1](tuple(cotangents)), what)


# Wrong results of a rule, made from a tuple of outputs.
MISFITS = {
    "a flag less": lambda ys, flags: (ys, flags[:-1]),
    "a flag more": lambda ys, flags: (ys, (*flags, True)),
    "flags in a list": lambda ys, flags: (ys, list(flags)),
    "an output less": lambda ys, flags: (ys[:-1], flags[:-1]),
    "outputs in a list": lambda ys, flags: (list(ys), list(flags)),
}


@keeps("JAX-VMAP-05")
def test_a_rule_gives_the_structure_of_the_output(subject, data):
    """A rule whose outputs or flags have another structure raises ValueError."""
    linear = subject.draw(data, linears(), "function")
    misfit = subject.draw(data, tuple(MISFITS), "what the rule returns")
    function = jax.custom_batching.custom_vmap(lambda *xs: linear.primal(*xs))
    function.def_vmap(lambda size, _, *xs: MISFITS[misfit](linear.pushed(*xs), (True,) * linear.outputs))
    arrays = jax_arrays(subject, linear, [x[None] for x in linear.points])
    what = f"a batching rule that returns {misfit}"
    subject.assert_raises(ValueError, lambda: jax.vmap(function)(*arrays), what, naming=["rule", "structure"])


@keeps("JAX-VMAP-06")
def test_a_sequential_function_sees_one_element_at_a_time(subject, data):
    """sequential_vmap calls the function on single elements and stacks the results."""
    linear = subject.draw(data, linears(), "function")
    size = subject.draw(data, st.integers(1, 3), "size of the batch")
    shapes = []

    def one(*xs):
        shapes.append([jnp.shape(x) for x in xs])
        return linear.primal(*xs)

    members = [linear.arrays(linear.arguments, 60 + number) for number in range(size)]
    arrays = [np.stack(column) for column in zip(*members, strict=True)]
    got = jax.vmap(jax.custom_batching.sequential_vmap(one))(*jax_arrays(subject, linear, arrays))
    subject.assert_all_same("outputs", got=got, expected=[np.asarray(y) for y in linear.primal(*arrays)])
    subject.assert_equal("shapes that it sees", got=shapes, expected=[[linear.shape] * linear.arguments] * len(shapes))
