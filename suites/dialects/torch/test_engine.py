"""autograd.grad against autograd.backward and Tensor.backward: cotangents, inputs, sums and accumulation."""

import numpy as np
import torch
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._graphs import DTYPE, graphs, sum_of_gradients
from autograd_conformance.suites.dialects.torch._engine_entries import (
    ENTRIES,
    FUNCTIONS,
    GRAD,
    METHOD,
    built,
    gradients,
    run_pass,
)

# Shapes of outputs with more than one element, or none.
MANY = ((3,), (2, 3), (0,))


@keeps("ENG-01")
def test_ones_are_implied_for_one_element(subject, data):
    """A cotangent that is left out counts as one if the output has one element."""
    graph = subject.draw(data, st.sampled_from(((), (1,), (1, 1))).flatmap(lambda s: graphs(shape=s)), "graph")
    entry = subject.draw(data, ENTRIES, "entry")
    omitted = subject.draw(data, flags(len(graph.outputs)), "outputs whose cotangent is None")
    leaves, _, outputs, _ = built(subject, graph)
    cotangents = [np.ones(graph.shape) if o else g for o, g in zip(omitted, graph.cotangents(), strict=True)]
    given = [None if o else subject.tensor(g, DTYPE) for o, g in zip(omitted, cotangents, strict=True)]
    got = gradients(entry, outputs, leaves, given)
    subject.assert_all_same("gradients", got=got, expected=graph.leaf_gradients(cotangents))
    got = gradients(entry, outputs, leaves)
    expected = graph.leaf_gradients([np.ones(graph.shape)] * len(outputs))
    subject.assert_all_same("gradients without cotangents", got=got, expected=expected)


@keeps("ENG-01", variant="required")
def test_other_outputs_need_a_cotangent(subject, data):
    """Leaving out the cotangent of an output with more elements, or none, raises."""
    graph = subject.draw(data, st.sampled_from(MANY).flatmap(lambda s: graphs(shape=s)), "graph")
    entry = subject.draw(data, ENTRIES, "entry")
    omitted = subject.draw(data, flags(len(graph.outputs)).filter(any), "outputs whose cotangent is None")
    leaves, _, outputs, _ = built(subject, graph)
    cotangents = graph.cotangents()
    given = subject.tensors([None if o else g for o, g in zip(omitted, cotangents, strict=True)], DTYPE)
    what = f"a cotangent left out for an output of shape {graph.shape}"
    subject.assert_raises(RuntimeError, lambda: run_pass(entry, outputs, leaves, given), what, naming=["scalar"])
    subject.assert_raises(RuntimeError, lambda: run_pass(entry, outputs, leaves), what, naming=["scalar"])
    subject.assert_all_same(
        "gradients with all cotangents",
        got=gradients(GRAD, outputs, leaves, subject.tensors(cotangents, DTYPE)),
        expected=graph.leaf_gradients(cotangents),
    )


@keeps("ENG-01", variant="complex")
def test_complex_outputs_need_a_cotangent(subject, data):
    """Leaving out the cotangent of a complex output raises."""
    entry = subject.draw(data, ENTRIES, "entry")
    shape = subject.draw(data, ((), (1,), (1, 1)), "shape")
    dtype = subject.draw(data, ("complex64", "complex128"), "dtype")
    x = subject.tensor(np.full(shape, 1 + 2j), dtype).requires_grad_()
    y = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)(x)
    what = "a cotangent left out for a complex output"
    subject.assert_raises(RuntimeError, lambda: run_pass(entry, [y], [x]), what, naming=["real", dtype])
    got = gradients(entry, [y], [x], [torch.ones_like(y)])
    subject.assert_same("gradient for a complex cotangent", got=got[0], expected=np.full(shape, 2 + 0j))


@keeps("ENG-01", variant="constant")
def test_none_is_enough_for_an_output_without_gradient(subject, data):
    """None is accepted as the cotangent of an output that does not require grad."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, FUNCTIONS, "entry")
    position = subject.draw(data, range(len(graph.outputs) + 1), "position of the constant output")
    leaves, _, outputs, _ = built(subject, graph)
    cotangents = graph.cotangents()
    given = subject.tensors(cotangents, DTYPE)
    mixed = (*outputs[:position], subject.tensor(np.ones(3)), *outputs[position:])
    got = subject.assert_accepted(
        lambda: gradients(entry, mixed, leaves, (*given[:position], None, *given[position:])),
        "None as the cotangent of an output that does not require grad",
    )
    subject.assert_all_same("gradients", got=got, expected=graph.leaf_gradients(cotangents))


@keeps("ENG-03", variant="passes")
def test_passes_add_up_in_grad_whichever_way_they_enter(subject, data):
    """Both forms of backward add to .grad of leaves; grad returns gradients and leaves .grad alone."""
    graph = subject.draw(data, graphs(), "graph")
    entries = subject.draw(data, st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=5), "entries")
    leaves, values, outputs, _ = built(subject, graph)
    total = [None] * graph.leaves
    for salt, entry in enumerate(entries):
        cotangents = graph.cotangents(salt)
        found = run_pass(entry, outputs, leaves, subject.tensors(cotangents, DTYPE))
        expected = graph.leaf_gradients(cotangents)
        total = total if entry == GRAD else [sum_of_gradients(t, g) for t, g in zip(total, expected, strict=True)]
        returned = expected if entry == GRAD else None
        subject.assert_equal(f"type of what {entry} returns", got=type(found), expected=type(returned))
        subject.assert_all_same(f"what {entry} returns", got=found or (), expected=returned or ())
        subject.assert_all_same(f".grad after {entry}", got=[x.grad for x in leaves], expected=total)
    held = [y.grad for y in values[graph.leaves :]]
    subject.assert_equal(".grad of what is not a leaf", got=held, expected=[None] * len(held))


@keeps("ENG-05", variant="entries")
def test_all_entries_give_the_same_sum(subject, data):
    """grad, autograd.backward and Tensor.backward give the same sum over all outputs."""
    graph = subject.draw(data, graphs(max_outputs=4), "graph")
    sequence = subject.draw(data, (list, tuple), "type of the sequences")
    leaves, _, outputs, _ = built(subject, graph)
    cotangents = graph.cotangents()
    given = sequence(subject.tensors(cotangents, DTYPE))
    expected = graph.leaf_gradients(cotangents)
    for entry in ENTRIES:
        got = gradients(entry, sequence(outputs), sequence(leaves), given)
        subject.assert_all_same(f"gradients from {entry}", got=got, expected=expected)


@keeps("ENG-05", variant="bare")
def test_a_single_tensor_needs_no_sequence(subject, data):
    """grad and autograd.backward take a bare output, input and cotangent."""
    graph = subject.draw(data, graphs(max_outputs=1), "graph")
    leaf = subject.draw(data, range(graph.leaves), "input")
    leaves, _, (y,), _ = built(subject, graph)
    (cotangent,) = cotangents = graph.cotangents()
    g, expected = subject.tensor(cotangent, DTYPE), graph.leaf_gradients(cotangents)
    got = torch.autograd.grad(y, leaves[leaf], g, allow_unused=True, retain_graph=True)
    subject.assert_equal("type of what autograd.grad returns for one input", got=type(got), expected=tuple)
    subject.assert_all_same("gradients", got=got, expected=expected[leaf : leaf + 1])
    torch.autograd.backward(y, g)
    subject.assert_all_same(".grad of the leaves", got=[x.grad for x in leaves], expected=expected)


@keeps("ENG-06", variant="fewer")
def test_fewer_cotangents_than_outputs_raise(subject, data):
    """Too few cotangents raise, and the error names both numbers."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, FUNCTIONS, "entry")
    count = subject.draw(data, range(len(graph.outputs)), "number of cotangents")
    leaves, _, outputs, _ = built(subject, graph)
    cotangents = graph.cotangents()
    given = subject.tensors(cotangents, DTYPE)
    what = f"{entry} with fewer cotangents than outputs"
    facts = [count, len(outputs)]
    subject.assert_raises(RuntimeError, lambda: run_pass(entry, outputs, leaves, given[:count]), what, naming=facts)
    got = gradients(entry, outputs, leaves, given)
    subject.assert_all_same("gradients", got=got, expected=graph.leaf_gradients(cotangents))


@keeps("ENG-06")
def test_more_cotangents_than_outputs_raise(subject, data):
    """Too many cotangents raise, and the error names both numbers."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, FUNCTIONS, "entry")
    surplus = subject.draw(data, st.integers(1, 2), "cotangents beyond the outputs")
    leaves, _, outputs, _ = built(subject, graph)
    cotangents = (*graph.cotangents(), *(np.ones(graph.shape) for _ in range(surplus)))
    given = subject.tensors(cotangents, DTYPE)
    action = subject.implementation.refusals, lambda: run_pass(entry, outputs, leaves, given)
    subject.assert_raises(*action, "more cotangents than outputs", naming=[len(given), len(outputs)])


@keeps("ENG-12")
def test_an_output_without_a_node_cannot_be_differentiated(subject, data):
    """A detached output raises, and the error names its position."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, ENTRIES, "entry")
    position = subject.draw(data, range(len(graph.outputs)), "output that is detached")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    cut = [y.detach() if i == position else y for i, y in enumerate(outputs)]
    subject.assert_raises(
        RuntimeError,
        lambda: run_pass(entry, cut, leaves, given),
        "an output that does not require grad",
        naming=["grad_fn", *([] if entry == METHOD else [position])],
    )
    subject.assert_accepted(lambda: run_pass(entry, outputs, leaves, given), "outputs that require grad")


@keeps("ENG-13")
def test_of_the_ready_nodes_the_last_created_runs_first(subject, data):
    """Nodes run in the reverse order of their creation."""
    graph = subject.draw(data, graphs(max_steps=6), "graph")
    entry = subject.draw(data, FUNCTIONS, "entry")
    leaves, _, outputs, ran = built(subject, graph)
    run_pass(entry, outputs, leaves, subject.tensors(graph.cotangents(), DTYPE))
    reached = graph.pass_over(graph.cotangents()).cotangents
    assume(len(reached) > 1)
    subject.assert_equal("steps in the order in which they ran", got=ran.order, expected=sorted(reached, reverse=True))


@keeps("ENG-14", examples=0.4)
def test_backward_may_run_a_backward_pass(subject, data):
    """Up to 120 nested backward passes run in order and give the right gradient."""
    entry = subject.draw(data, FUNCTIONS, "entry")
    depth = subject.draw(data, st.sampled_from((1, 2, 10, 120)), "levels")
    weights = subject.draw(data, st.lists(st.sampled_from((1.0, -1.0)), min_size=2, max_size=2), "weights")
    ran = []

    def forward(ctx, x, level):
        ctx.save_for_backward(x)
        ctx.level = level
        return x * 1

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ran.append(ctx.level)
        if ctx.level == 0:
            return weights[0] * g, None
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            y = nested(inner, ctx.level - 1)
        return weights[1] * gradients(entry, [y], [inner], [g])[0], None

    nested = subject.custom(forward=forward, backward=backward)
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    got = gradients(entry, [nested(x, depth)], [x], [torch.ones_like(x)])
    subject.assert_equal("levels in the order in which they ran", got=ran, expected=list(range(depth, -1, -1)))
    subject.assert_same("gradient", got=got[0], expected=np.full(2, weights[0] * weights[1] ** depth))
