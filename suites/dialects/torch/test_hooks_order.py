"""The order in which the hooks of a node, of its outputs and of leaves run."""

from functools import partial

from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.contract._ctx_observers import observing_ctx
from autograd_conformance.suites.dialects.torch._hooks import backward, node_of, register

AT_NODE = ("tensor's hook", "pre-hook", "backward", "post-hook")
AT_LEAF = ("tensor's hook", "pre-hook", "post-accumulate hook", "post-hook")


@keeps("HOOK-06")
def test_hooks_of_a_node_run_in_the_documented_order(subject, data):
    """Around a node: tensor hooks, pre-hooks, backward, post-hooks, each kind in order of registration."""
    polynomial = subject.polynomial(data, outputs=("float",))
    several = st.lists(st.sampled_from(("tensor's hook", "pre-hook", "post-hook")), min_size=2, max_size=6)
    kinds = subject.draw(data, several, "registered")
    output = subject.draw(data, range(len(polynomial.outputs)), "output with hooks")
    log = []
    run = subject.run(polynomial, cls=observing_ctx(subject, polynomial, leave=lambda ctx: log.append((0, "backward"))))
    for number, kind in enumerate(kinds):
        register(kind, run.outputs[output], node_of(run), partial(log.append, (number, kind)))
    run.gradients(polynomial.cotangents())
    expected = sorted([*enumerate(kinds), (0, "backward")], key=lambda it: AT_NODE.index(it[1]))
    subject.assert_equal("order of what ran", got=log, expected=expected)


@keeps("HOOK-06", variant="leaf")
def test_hooks_of_a_leaf_run_in_the_documented_order(subject, data):
    """Around a leaf: tensor hook, pre-hook, .grad is set, post-accumulate hook, post-hook."""
    polynomial = subject.polynomial(data)
    run, log = subject.run(polynomial), []
    nodes = [node for node, _ in node_of(run).next_functions if node is not None]
    node = nodes[subject.draw(data, range(len(nodes)), "leaf")]
    for kind in subject.draw(data, st.permutations(AT_LEAF), "registered"):
        register(kind, node.variable, node, lambda kind=kind: log.append((kind, node.variable.grad is not None)))
    backward(run, polynomial.cotangents())
    expected = list(zip(AT_LEAF, (False, False, True, True), strict=True))
    subject.assert_equal("what ran, in order, and whether .grad was set", got=log, expected=expected)


@keeps("HOOK-06", variant="retain_grad")
def test_pre_hooks_run_before_a_retained_grad_is_set(subject, data):
    """A node's pre-hook runs before a retained .grad of its output is set."""
    polynomial = subject.polynomial(data, outputs=("float",))
    run, got = subject.run(polynomial), []
    kept = run.outputs[subject.draw(data, range(len(polynomial.outputs)), "output that retains its grad")]
    kept.retain_grad()
    node_of(run).register_prehook(lambda given: got.append(kept.grad is not None))
    run.gradients(polynomial.cotangents())
    subject.assert_equal("whether pre-hooks see a retained .grad", got=got, expected=[False])
