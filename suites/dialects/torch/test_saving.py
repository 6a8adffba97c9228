"""Saved tensors: changes through aliases, the lifetime of the graph, and inference tensors."""

from functools import partial

import torch
from hypothesis import strategies as st
from torch.autograd import graph

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._inplace_and_views import IN_PLACE, NONEMPTY
from autograd_conformance.suites.contract._storing_calls import call_storing, drawn_storing

# Changes in place that raise the version counter of everything on the same memory.
SEEN = {
    "detach": lambda x: x.detach().fill_(2),
    "view of detach": lambda x: x.detach().view(-1)[:1].fill_(2),
    "strides": lambda x: x.as_strided((1,), (1,)).zero_(),
    "out": lambda x: torch.add(x.detach(), 1, out=x.detach()),
    "foreach": lambda x: torch._foreach_add_([x], 1),
    "index": lambda x: x.view(-1).__setitem__(0, 2),
    "mask": lambda x: x.masked_fill_(torch.ones_like(x, dtype=torch.bool), 2),
    "copy": lambda x: x.copy_(x + 1),
}


@keeps("SAVE-05", variant="aliases")
@torch.no_grad()
def test_every_way_of_changing_memory_counts(subject, data):
    """backward raises after a change through any alias or in-place operation that autograd sees."""
    function = drawn_storing(subject, data, shapes=NONEMPTY)
    kind = subject.draw(data, sorted(set(function.stored)), "changed")
    way = subject.draw(data, SEEN, "changed by")
    run = call_storing(subject, function)
    SEEN[way](run.known[kind])
    what = "backward that reads a saved tensor after its memory was changed"
    subject.assert_raises(RuntimeError, partial(run.gradients, function.cotangents()), what, naming=[IN_PLACE])


# In-place changes that autograd cannot see; NumPy shares memory on the CPU only, and DLPack knows few devices.
UNSEEN = {
    "data": lambda x: x.data.fill_(2),
    "view of data": lambda x: x.data.view(-1).fill_(2),
}
EXPORTED = {"DLPack": lambda x: torch.from_dlpack(x.detach()).fill_(2)}
NUMPY = {
    "NumPy": lambda x: x.detach().numpy().fill(2),
    "NumPy of a view": lambda x: x.detach().view(-1).numpy().__setitem__(slice(None), 2),
}


def _has_dlpack(subject):
    try:
        subject.tensor(1.0).__dlpack_device__()
    except (ValueError, BufferError):
        return False
    return True


@keeps("SAVE-06")
def test_changes_that_autograd_cannot_see_escape(subject, data):
    """A change through .data, NumPy or DLPack raises no error, and backward computes with it."""
    function = drawn_storing(subject, data, shapes=NONEMPTY, dtypes=("float64", "float32"))
    kind = subject.draw(data, sorted(set(function.stored)), "changed")
    ways = UNSEEN | (EXPORTED if _has_dlpack(subject) else {}) | (NUMPY if subject.device == "cpu" else {})
    way = subject.draw(data, ways, "changed through")
    run = call_storing(subject, function)
    ways[way](run.known[kind])
    cotangents = function.cotangents()
    got = subject.assert_accepted(partial(run.gradients, cotangents), "backward after a change that cannot be seen")
    subject.assert_all_same("gradients", got=got, expected=function.gradients(cotangents, changed={kind: 2.0}))


# retain_graph and create_graph of passes that keep the graph, and of those that free it.
KEEPING = ((True, False), (True, True), (None, True))
FREEING = ((None, False), (False, False), (False, True))


def passes(among):
    """One to three backward passes, each by grad or backward, with retain_graph and create_graph from ``among``."""
    return st.lists(st.tuples(st.sampled_from(("grad", "backward")), st.sampled_from(among)), min_size=1, max_size=3)


class Graph:
    """The graph of one call of a Function."""

    def __init__(self, subject, function):
        x, fixed = subject.tensors([function.values[kind] for kind in ("input", "fixed input")], function.dtype)
        self.leaf = x.requires_grad_()
        self.outputs = function.body(torch.autograd).apply(self.leaf, fixed)
        self.cotangents = subject.tensors(function.cotangents(), function.dtype)

    def gradient(self, way, options):
        """The gradient of the leaf."""
        named = dict(zip(("retain_graph", "create_graph"), options, strict=True))
        if way == "grad":
            return torch.autograd.grad(self.outputs, self.leaf, self.cotangents, **named)[0]
        self.leaf.grad = None
        torch.autograd.backward(self.outputs, self.cotangents, **named)
        found, self.leaf.grad = self.leaf.grad, None
        return found

    def saved_tensors(self):
        """The saved tensors as the node gives them."""
        return self.outputs[0].grad_fn.saved_tensors


@keeps("SAVE-09")
def test_nothing_can_be_read_once_the_graph_is_freed(subject, data):
    """After a pass that frees the graph, another pass raises, and so does grad_fn.saved_tensors."""
    function = drawn_storing(subject, data)
    kept = subject.draw(data, st.one_of(st.just([]), passes(KEEPING)), "passes that keep the graph")
    (way, options), *again = subject.draw(data, passes(FREEING), "passes, of which the first frees it")
    graph = Graph(subject, function)
    expected = function.gradients(function.cotangents())[0]
    for each in (*kept, (way, options)):
        subject.assert_same("gradient before the graph is freed", got=graph.gradient(*each), expected=expected)
    facts = [("second time", "freed")]
    for each in (*again, (way, options)):
        action = partial(graph.gradient, *each)
        subject.assert_raises(RuntimeError, action, "a backward pass after the graph was freed", naming=facts)
    what = "saved_tensors of the node after the graph was freed"
    subject.assert_raises(RuntimeError, graph.saved_tensors, what, naming=facts)


@keeps("SAVE-10")
def test_a_retained_graph_can_be_differentiated_again(subject, data):
    """While the graph is retained, every pass and grad_fn.saved_tensors work."""
    function = drawn_storing(subject, data)
    kept = subject.draw(data, passes(KEEPING), "passes that keep the graph")
    last = subject.draw(data, st.sampled_from(FREEING), "last pass")
    graph = Graph(subject, function)
    expected = [function.values[kind] for kind in function.stored]
    gradient = function.gradients(function.cotangents())[0]
    for each in (*kept, ("grad", last)):
        got = subject.assert_accepted(graph.saved_tensors, "saved_tensors of the node of a retained graph")
        subject.assert_all_same("saved tensors", got=got, expected=expected)
        got = subject.assert_accepted(partial(graph.gradient, *each), "a backward pass of a retained graph")
        subject.assert_same("gradient", got=got, expected=gradient)


@keeps("SAVE-11")
def test_what_saved_nothing_need_not_be_retained(subject, data):
    """A call that saved nothing can be differentiated several times without retain_graph."""
    function = drawn_storing(subject, data, saved=False)
    freed = subject.draw(data, passes(FREEING), "passes after the first")
    graph = Graph(subject, function)
    expected = function.gradients(function.cotangents())[0]
    for each in (("grad", (None, False)), *freed):
        got = subject.assert_accepted(partial(graph.gradient, *each), "a backward pass of a call that saved nothing")
        subject.assert_same("gradient", got=got, expected=expected)


@keeps("SAVE-13")
def test_inference_tensors_cannot_be_saved(subject, data):
    """Saving an inference tensor raises in a recorded call and is accepted in an unrecorded one."""
    made = subject.draw(data, ("before the call", "in forward"), "inference tensor made")
    before, after = (subject.draw(data, st.integers(0, 2), f"tensors saved {side} it") for side in ("before", "after"))

    def forward(ctx, x, given):
        with torch.inference_mode():
            tensor = {"before the call": given, "in forward": given * 2}[made]
        ctx.save_for_backward(*[x] * before, tensor, *[x] * after)
        return x * 2

    saves = subject.custom(forward=forward, backward=lambda ctx, cotangent: (cotangent * 2, None))
    x = subject.tensor([1.0, 2.0])
    with torch.inference_mode():
        given = x.clone()
    recorded, unrecorded = (partial(saves, x.clone().requires_grad_(flag), given) for flag in (True, False))
    subject.assert_raises(RuntimeError, recorded, "saving an inference tensor", naming=["inference"])
    subject.assert_accepted(unrecorded, "saving an inference tensor in a call that is not recorded")


# How tensors are handed to increment_version.
HANDED = {"itself": lambda x, y: x, "list": lambda x, y: [y, x], "tuple": lambda x, y: (y, x)}


@keeps("SAVE-14")
def test_a_change_that_was_declared_is_noticed(subject, data):
    """increment_version of a saved tensor, alone or one of several, makes backward raise; of a copy it does not."""
    function = drawn_storing(subject, data, shapes=NONEMPTY)
    kind = subject.draw(data, sorted(set(function.stored)), "declared as changed")
    handed = HANDED[subject.draw(data, HANDED, "handed over as")]
    copied = subject.draw(data, (False, True), "a copy is declared as changed")
    times = subject.draw(data, st.integers(1, 3), "times that it is declared")
    run, cotangents = call_storing(subject, function), function.cotangents()
    x = run.known[kind].detach()
    times = subject.draw(data, (1, 3), "times that it is declared")
    with torch.inference_mode():
        # Such a tensor has no version, and is accepted.
        other = torch.ones(2)
    for _ in range(times):
        graph.increment_version(handed(x.clone() if copied else x, other))
    if copied:
        subject.assert_accepted(partial(run.gradients, cotangents), "backward after a change of a copy")
    else:
        what = "backward after a saved tensor was declared as changed"
        subject.assert_raises(RuntimeError, partial(run.gradients, cotangents), what, naming=[IN_PLACE])


@keeps("SAVE-14", variant="inference")
def test_an_inference_tensor_has_no_version_to_declare(subject, data):
    """increment_version of an inference tensor, alone or beside another one, raises nothing and declares the other."""
    handed = HANDED[subject.draw(data, HANDED, "handed over as")]
    with torch.inference_mode():
        x = subject.tensor([1.0, 2.0]) + 1
    y = torch.ones(2)
    alone = handed(x, y) is x
    subject.assert_accepted(lambda: graph.increment_version(handed(x, y)), "increment_version of an inference tensor")
    subject.assert_equal("version of the other tensor", got=y._version, expected=0 if alone else 1)
    subject.assert_equal("is_inference afterwards", got=x.is_inference(), expected=True)
