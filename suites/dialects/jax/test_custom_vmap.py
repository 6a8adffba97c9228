"""Functions with a batching rule."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.jax._functions import CALLS, JaxCase
from autograd_conformance.suites.dialects.shared.linear import combined

AXES = (0, -1, None)
SIZES = st.integers(1, 3)


def _batched(case, rule):
    """The function with a batching rule."""
    function = jax.custom_batching.custom_vmap(lambda *xs: case.linear.primal(*xs))
    function.def_vmap(rule)
    return function


def _noted(case, seen):
    """The function with a batching rule of other weights, which notes what it got."""

    def rule(axis_size, in_batched, *xs):
        seen.append((axis_size, list(in_batched), [x.shape for x in xs]))
        # Batched arguments have the batch axis first, so that the others broadcast.
        return case.linear.pushed(*xs), (True,) * case.linear.outputs

    return _batched(case, rule)


@keeps("JAX-VMAP-01")
def test_the_rule_gets_the_batch_in_front(subject, data):
    """The rule gets the batch size, flags and arguments with the batch axis first, and gives the outputs."""
    case, seen = JaxCase(subject, data), []
    count, size = case.linear.arguments, subject.draw(data, SIZES, "size of the batch")
    choices = st.lists(st.sampled_from(AXES), min_size=count, max_size=count)
    axes = subject.draw(data, choices.filter(lambda a: set(a) != {None}), "axes")
    call = subject.draw(data, ("call", "jit"), "call")
    members = [case.linear.arrays(count, 40 + number) for number in range(size)]
    columns = [[members[0][i]] * size if axis is None else [m[i] for m in members] for i, axis in enumerate(axes)]
    arrays = [c[0] if axis is None else np.stack(c, axis) for c, axis in zip(columns, axes, strict=True)]
    got = CALLS[call](jax.vmap(_noted(case, seen), tuple(axes)))(*case.tensors(arrays))
    expected = [combined(row, [np.stack(c) for c in columns]) for row in case.linear.rule]
    subject.assert_all_same("outputs", got=got, expected=expected)
    shapes = [case.linear.shape if axis is None else (size, *case.linear.shape) for axis in axes]
    flags = [axis is not None for axis in axes]
    what = "size of the axis, which arguments are batched, and their shapes"
    subject.assert_equal(what, got=seen, expected=[(size, flags, shapes)])


@keeps("JAX-VMAP-02")
def test_without_a_batch_it_is_the_function(subject, data):
    """Without vmap the function itself runs, and the rule does not."""
    case, seen = JaxCase(subject, data), []
    way = subject.draw(data, ("call", "jit", "checkpoint"), "call")
    case.assert_outputs(CALLS[way](_noted(case, seen))(*case.points))
    subject.assert_equal("calls of the rule", got=seen, expected=[])


@keeps("JAX-VMAP-03")
def test_an_output_may_be_the_same_for_the_batch(subject, data):
    """An output that the rule flags as not batched is repeated for the whole batch."""
    case = JaxCase(subject, data, arguments=1)
    flags = st.tuples(*[st.booleans()] * case.linear.outputs)
    batched = subject.draw(data, flags, "which outputs are batched")

    def rule(axis_size, in_batched, xs):
        return tuple(y if flag else y[0] for y, flag in zip(case.linear.pushed(xs), batched, strict=True)), batched

    members = np.stack([case.linear.points[0], *case.linear.arrays(1, 50)])
    got = jax.vmap(_batched(case, rule))(*case.tensors([members]))
    pairs = zip(case.linear.pushed(members), batched, strict=True)
    expected = [y if flag else np.stack([y[0]] * 2) for y, flag in pairs]
    subject.assert_all_same("outputs", got=got, expected=expected)


@keeps("JAX-VMAP-04")
def test_a_vjp_rule_goes_around_it(subject, data):
    """A custom_vjp around a custom_vmap has gradients by the one rule and batches by the other."""
    case = JaxCase(subject, data)
    inner = _noted(case, [])
    function = jax.custom_vjp(inner)
    function.defvjp(lambda *xs: (inner(*xs), None), case.rule)
    case.assert_gradients(case.pulled(function)[1])
    outputs = jax.vmap(function)(*case.tensors([x[None] for x in case.linear.points]))
    batched = [y[None] for y in map(np.asarray, case.linear.pushed(*case.linear.points))]
    subject.assert_all_same("outputs of the batch", got=outputs, expected=batched)


@keeps("JAX-VMAP-04", variant="alone")
def test_it_has_no_reverse_mode(subject, data):
    """Reverse mode of a custom_vmap function without a VJP rule raises."""
    case = JaxCase(subject, data)
    f = CALLS[subject.draw(data, ("call", "jit"), "call")](_noted(case, []))
    what = "reverse mode of a function with a batching rule"
    subject.assert_raises(Exception, lambda: case.pulled(f), what)


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
    case, misfit = JaxCase(subject, data), subject.draw(data, tuple(MISFITS), "what the rule returns")
    flags = (True,) * case.linear.outputs
    function = jax.vmap(_batched(case, lambda size, _, *xs: MISFITS[misfit](case.linear.pushed(*xs), flags)))
    arrays = case.tensors([x[None] for x in case.linear.points])
    what = f"a batching rule that returns {misfit}"
    subject.assert_raises(ValueError, lambda: function(*arrays), what, naming=["rule", "structure"])


@keeps("JAX-VMAP-06")
def test_a_sequential_function_sees_one_element_at_a_time(subject, data):
    """sequential_vmap calls the function on single elements and stacks the results."""
    case, shapes = JaxCase(subject, data), []
    size = subject.draw(data, SIZES, "size of the batch")

    def one(*xs):
        shapes.append([jnp.shape(x) for x in xs])
        return case.linear.primal(*xs)

    members = [case.linear.arrays(case.linear.arguments, 60 + number) for number in range(size)]
    arrays = [np.stack(column) for column in zip(*members, strict=True)]
    got = jax.vmap(jax.custom_batching.sequential_vmap(one))(*case.tensors(arrays))
    subject.assert_all_same("outputs", got=got, expected=[np.asarray(y) for y in case.linear.primal(*arrays)])
    expected = [[case.linear.shape] * case.linear.arguments] * len(shapes)
    subject.assert_equal("shapes that it sees", got=shapes, expected=expected)
