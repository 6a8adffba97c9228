"""Hooks on the creation of nodes: which nodes they get, and when, on which thread, and what they may do."""

import threading
from contextlib import ExitStack

import torch
import torch.utils.checkpoint
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._leaves import new_leaves


def edges_of(tensors):
    return [torch.autograd.graph.get_gradient_edge(t) for t in tensors]


def _creating(hook):
    return torch.autograd.graph.node_creation_hook(hook)


def _doubled(subject, name="Custom"):
    """A Function that doubles, in backward too."""
    return subject.define(name=name, forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: 2 * g)


@keeps("NODE-08")
def test_a_creation_hook_sees_every_node_once(subject, data):
    """Within the context the hook gets every new node once, in order, with its edges."""
    polynomial = subject.polynomial(data, separate=None)
    calls = subject.draw(data, st.lists(st.booleans(), max_size=4), "calls, and whether they are recorded")
    leaves = new_leaves(subject, polynomial)
    accumulators = edges_of([x for x in leaves if x.requires_grad])
    seen = []

    def nodes(recorded):
        with torch.set_grad_enabled(recorded):
            y = subject.call_of(polynomial)(*leaves)[polynomial.outputs.index("float")]
            z = -y
        return [t.grad_fn for t in (y, z) if t.grad_fn is not None]

    with torch.autograd.graph.node_creation_hook(lambda node: seen.append((node, node.next_functions))):
        made = [node for recorded in calls for node in nodes(recorded)]
    nodes(recorded=True)
    numbered = [(made.index(node) if node in made else "unknown", node.name()) for node, _ in seen]
    expected = [(number, node.name()) for number, node in enumerate(made)]
    subject.assert_equal("nodes that the hook saw, numbered as they were made", got=numbered, expected=expected)
    edges = [node.next_functions for node in made]
    subject.assert_equal("edges of the nodes that the hook saw", got=[e for _, e in seen], expected=edges)
    # Kept until here, since a leaf's node that nothing holds is created again.
    del accumulators


@keeps("NODE-08", variant="leaf")
def test_a_creation_hook_sees_the_node_of_a_leaf_when_it_is_created(subject, data):
    """The node of a leaf is seen at the first use, and at a later one if the graph was freed in between."""
    uses = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=4), "the graph is freed before each use")
    double, x = _doubled(subject), subject.tensor([1.0, -2.0]).requires_grad_()
    graphs, seen, expected = [], [], []
    with _creating(lambda node: seen.append(hasattr(node, "variable"))):
        for freed in uses:
            if freed:
                graphs.clear()
            expected += [False] if graphs else [True, False]
            graphs.append(double.apply(x))
    subject.assert_equal("which of the nodes that the hook saw are of the leaf", got=seen, expected=expected)


@keeps("NODE-09")
def test_nested_creation_hooks_run_from_the_outermost(subject, data):
    """For each node each active hook is called, the outermost first, and what it registers runs with the node."""
    count, calls = subject.draw(data, st.tuples(st.integers(1, 3), st.integers(1, 2)), "hooks and calls")
    double, x = _doubled(subject), subject.tensor([1.0, -2.0]).requires_grad_()
    kept = edges_of([x])
    called, ran = [], []

    def hook(number):
        def see(node):
            made = len(called) // count
            called.append((made, number))
            node.register_prehook(lambda *_: ran.append((made, "prehook", number)))
            node.register_hook(lambda *_: ran.append((made, "hook", number)))

        return see

    y = x
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(_creating(hook(number)))
        for _ in range(calls):
            y = double.apply(y)
    y = double.apply(y)
    expected = [(made, number) for made in range(calls) for number in range(count)]
    subject.assert_equal("nodes that each hook saw, as they were made", got=called, expected=expected)
    torch.autograd.backward(y.sum())
    hooks = ("prehook", "hook")
    expected = [(made, kind, n) for made in reversed(range(calls)) for kind in hooks for n in range(count)]
    subject.assert_equal("hooks that ran in the pass", got=ran, expected=expected)
    del kept


# What makes nodes within a pass: the call, and whether the pass builds a graph.
PASSES = {
    "create_graph": (lambda f, x: f(x), True),
    "a checkpoint": (lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False), False),
    "a reentrant checkpoint": (lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=True), False),
}


@keeps("NODE-09", variant="passes", needs="checkpoint double_backward")
def test_a_creation_hook_sees_the_nodes_of_a_pass(subject, data):
    """Within the context a pass that builds a graph, or recomputes, makes nodes that the hook sees."""
    what = subject.draw(data, tuple(PASSES), "pass")
    later = subject.draw(data, (True, False), "the context is around the pass, and not around the call")
    inner = _doubled(subject, "Inner")
    outer = subject.define(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: inner.apply(g))
    x, g = (subject.tensor(values).requires_grad_() for values in ([1.0, -2.0], [1.0, 3.0]))
    call, builds = PASSES[what]
    seen = []

    def run(f):
        with _creating(lambda node: seen.append(node.name())):
            return f()

    forward = lambda: call(lambda x: outer.apply(inner.apply(x)).exp(), x)  # noqa: E731
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        y = forward() if later else run(forward)
        seen.clear()
        backward = lambda: torch.autograd.backward(y, g, create_graph=builds)  # noqa: E731
        run(backward) if later else backward()
    count = seen.count("InnerBackward")
    # Outside of the context nothing is seen, also of what began within it.
    subject.assert_equal("nodes of a Function that the hook saw in the pass", got=count, expected=int(later))


@keeps("NODE-09", variant="threads")
def test_a_creation_hook_is_of_its_thread(subject, data):
    """A hook sees the nodes of the thread that entered its context, and of no other."""
    other = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "calls, and whether on another thread")
    double, x = _doubled(subject), subject.tensor([1.0, -2.0]).requires_grad_()
    kept, made, seen = edges_of([x]), [], []
    with _creating(lambda node: seen.append(node)):
        for elsewhere in other:
            call = lambda: made.append(double.apply(x).grad_fn)  # noqa: E731
            if elsewhere:
                thread = threading.Thread(target=call)
                thread.start()
                thread.join()
            else:
                call()
    got = [made.index(node) for node in seen]
    expected = [number for number, elsewhere in enumerate(other) if not elsewhere]
    subject.assert_equal("nodes that the hook saw, numbered as they were made", got=got, expected=expected)
    del kept


@keeps("NODE-09", variant="recording")
def test_a_creation_hook_must_not_record(subject, data):
    """A hook that calls a Function, or an operation, on what requires grad raises; under no_grad it may do so."""
    built_in = subject.draw(data, (True, False), "an operation in the hook, not a Function")
    recorded = subject.draw(data, (True, False), "it is recorded")
    double, x = _doubled(subject), subject.tensor([1.0, -2.0]).requires_grad_()
    within = torch.exp if built_in else double.apply
    kept = edges_of([x])

    def hook(node):
        with torch.set_grad_enabled(recorded):
            within(x)

    def call():
        with _creating(hook):
            return double.apply(x)

    if recorded:
        what = "a hook that makes a node"
        subject.assert_raises(RuntimeError, call, what, naming=["node", "hook"])
    else:
        y = subject.assert_accepted(call, "a hook that records nothing")
        subject.assert_same("output", got=y.detach(), expected=2 * x.detach())
    del kept
