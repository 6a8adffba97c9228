"""The memory of saved outputs, and the warning about the cycle of a leaf with its .grad."""

from functools import partial

import torch
from hypothesis import strategies as st
from torch.autograd import graph
from torch.multiprocessing.reductions import StorageWeakRef

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._garbage import without_collector
from autograd_conformance.suites.contract._inplace_and_views import NONEMPTY
from autograd_conformance.suites.contract._storing_calls import drawn_storing
from autograd_conformance.suites.dialects.torch._leaves import new_leaves
from autograd_conformance.suites.dialects.torch._warnings import every_warning, warned


@keeps("MEM-04", variant="outputs")
def test_the_memory_of_saved_outputs_goes_before_the_next_node_runs(subject, data):
    """The memory of a saved output is free when the next node runs, unless the graph is retained."""
    function = drawn_storing(subject, data, needed=("output",), others=("fixed input", "intermediate"), shapes=NONEMPTY)
    passes = st.integers(0, 2).map(lambda kept: (True,) * kept + (False,))
    retained = subject.draw(data, passes, "retain_graph of each backward pass")
    storages, seen = [], []

    def backward(ctx, cotangent):
        seen.append(storages[0].expired())
        return cotangent * 2

    def note(_, known):
        storages.append(StorageWeakRef(known["output"].untyped_storage()))

    x, fixed = subject.tensors([function.values[kind] for kind in ("input", "fixed input")], function.dtype)
    body, first = function.body(torch.autograd, note), subject.custom(forward=lambda ctx, x: x * 2, backward=backward)
    with without_collector():
        result = body.apply(first(x.requires_grad_()), fixed)[-1] * 2
        for kept in retained:
            torch.autograd.backward(result, torch.ones_like(result), retain_graph=kept)
    what = "memory of the saved output is free when the next node runs, in each pass"
    subject.assert_equal(what, got=seen, expected=[not kept for kept in retained])


# What a pack hook returns for a saved output, and whether it holds the output itself.
KEPT = {
    "detached": (lambda y: y.detach(), False),
    "in a dictionary, detached": (lambda y: {"saved": y.detach()}, False),
    "copied": (lambda y: y * 1, False),
    "as it is": (lambda y: y, True),
}


@keeps("PACK-13")
def test_a_saved_output_does_not_outlive_what_refers_to_it(subject, data):
    """What is packed of an output lives as long as the output or, if it is the output itself, as the graph."""
    packed = subject.draw(data, KEPT, "packed")
    pack, itself = KEPT[packed]
    own = subject.draw(data, (True, False), "of a Function, not of exp")
    passes = subject.draw(data, (0, 1, 2), "passes that retain the graph")
    ends = itself or subject.draw(data, (False, True), "one that does not")
    exponential = subject.custom(
        forward=lambda x: torch.exp(x),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
        backward=lambda ctx, g: g * ctx.saved_tensors[0],
        separate=False,
    )
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    with without_collector():
        with graph.saved_tensors_hooks(pack, lambda kept: kept["saved"] if isinstance(kept, dict) else kept):
            y = (exponential if own else torch.exp)(x)
        for retained in [True] * passes + [False] * ends:
            y.backward(torch.ones_like(y), retain_graph=retained)
        memory = StorageWeakRef(y.untyped_storage())
        del y
        freed = memory.expired()
    subject.assert_equal("whether the memory of the output is free", got=freed, expected=True)


# Backward passes of one output with a cotangent.
BACKWARD = {
    "torch.autograd.backward": lambda *args, **options: torch.autograd.backward(*args, **options),
    "Tensor.backward": lambda *args, **options: torch.Tensor.backward(*args, **options),
}


@keeps("MEM-06")
def test_backward_with_create_graph_warns_of_a_cycle(subject, data):
    """backward with create_graph warns each time; backward without it and grad with it do not."""
    polynomial = subject.polynomial(data, outputs=("float",), max_outputs=1)
    way = subject.draw(data, BACKWARD, "backward pass by")
    times = subject.draw(data, st.integers(1, 2), "backward passes")
    leaves = new_leaves(subject, polynomial)
    (output,) = subject.call_of(polynomial)(*leaves)
    (cotangent,) = subject.tensors(polynomial.cotangents(), polynomial.dtype)
    tracked = [x for x in leaves if x.requires_grad]
    with every_warning():
        quiet = warned(partial(BACKWARD[way], output, cotangent, retain_graph=True), "create_graph")
        quiet += warned(partial(torch.autograd.grad, output, tracked, cotangent, create_graph=True), "create_graph")
        subject.assert_equal("warnings of backward without create_graph, and of grad with it", got=quiet, expected=[])
        for _ in range(times):
            action = partial(BACKWARD[way], output, cotangent, create_graph=True)
            facts = ["create_graph", "cycle", "autograd.grad"]
            subject.assert_warns(UserWarning, action, "backward with create_graph", naming=facts)
    for leaf in tracked:
        leaf.grad = None
