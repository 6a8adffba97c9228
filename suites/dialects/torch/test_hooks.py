"""Hooks on nodes: what they get and what they may change; and the order in which all hooks run."""

from functools import partial

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.polynomials import TENSORS
from autograd_conformance.suites.contract._ctx_observers import observing_ctx
from autograd_conformance.suites.contract._derivatives import drawn_cotangents
from autograd_conformance.suites.dialects.torch._hooks import (
    FACTORS,
    assert_got,
    backward,
    check_until_removed,
    passed,
    register,
    times,
)
from autograd_conformance.suites.dialects.torch._nodes import floats_of, node_of


@keeps("HOOK-01")
def test_pre_hooks_replace_the_cotangents_until_removed(subject, data):
    """Pre-hooks see and replace the cotangents in order; removed ones no longer run."""
    polynomial = subject.polynomial(data, materialize=None)
    cotangents = drawn_cotangents(subject, data, polynomial)
    factors = subject.draw(data, FACTORS, "factors of the pre-hooks")
    removed = subject.draw(data, st.sets(st.sampled_from(range(len(factors)))), "pre-hooks removed after a pass")
    run, got = subject.run(polynomial), []

    def add(factor):
        return node_of(run).register_prehook(lambda given: (got.append(given), times(given, factor))[1])

    def check(active):
        got.clear()
        gradients = run.gradients(cotangents)
        *seen, left = passed(cotangents, active)
        assert_got(subject, "pre-hook", "cotangents", got, seen)
        subject.assert_all_same("gradients", got=gradients, expected=polynomial.vjp(left))

    check_until_removed(factors, removed, add, check)


@keeps("HOOK-02")
def test_post_hooks_replace_the_gradients_until_removed(subject, data):
    """Post-hooks see the cotangents and replace the gradients in order; removed ones no longer run."""
    polynomial = subject.polynomial(data, arguments=TENSORS)
    cotangents = drawn_cotangents(subject, data, polynomial)
    factors = subject.draw(data, FACTORS, "factors of the post-hooks")
    removed = subject.draw(data, st.sets(st.sampled_from(range(len(factors)))), "post-hooks removed after a pass")
    run, inputs, outputs = subject.run(polynomial), [], []

    def add(factor):
        def hook(gradients, given):
            inputs.append(gradients)
            outputs.append(given)
            return times(gradients, factor)

        return node_of(run).register_hook(hook)

    def check(active):
        inputs.clear()
        outputs.clear()
        got = run.gradients(cotangents)
        *seen, left = passed(polynomial.vjp(cotangents), active)
        assert_got(subject, "post-hook", "gradients", inputs, seen)
        assert_got(subject, "post-hook", "cotangents", outputs, [cotangents] * len(active))
        subject.assert_all_same("gradients", got=got, expected=left)

    check_until_removed(factors, removed, add, check)


@keeps("HOOK-03")
def test_post_hooks_get_an_entry_for_each_tensor(subject, data):
    """Post-hooks get one gradient for each tensor argument and none for other arguments."""
    polynomial = subject.polynomial(data)
    cotangents = drawn_cotangents(subject, data, polynomial)
    run, got = subject.run(polynomial), []
    node_of(run).register_hook(lambda gradients, given: got.append(gradients))
    run.gradients(cotangents)
    expected = tuple(polynomial.vjp(cotangents)[i] for i in polynomial.tensors)
    assert_got(subject, "post-hook", "gradients", got, [expected])


NODE_HOOKS = ("pre-hook", "post-hook")
HOOKS = (*NODE_HOOKS, "tensor's hook")
NUMBERS = {"a value too few": -1, "a value too many": 1}
FORMS = {
    "another dtype": lambda v: v.to(torch.float16 if v.dtype == torch.float32 else torch.float32),
    "another shape": lambda v: v.reshape(1, *v.shape),
    "another size": lambda v: v.expand(2, *v.shape),
}


def _with_hook(subject, polynomial, hook, change):
    run = subject.run(polynomial)
    add = {
        "pre-hook": lambda: node_of(run).register_prehook(change),
        "post-hook": lambda: node_of(run).register_hook(lambda gradients, given: change(gradients)),
        "tensor's hook": lambda: floats_of(run)[0].register_hook(lambda g: change((g,))[0]),
    }
    add[hook]()
    return run


def _changed(values, which, change):
    position = [i for i, v in enumerate(values) if v is not None][which]
    return tuple(change(v) if i == position else v for i, v in enumerate(values))


@keeps("HOOK-04", variant="number")
def test_hooks_return_as_many_values_as_they_get(subject, data):
    """A node's hook that returns one value too few or too many raises."""
    polynomial = subject.polynomial(data)
    cotangents = polynomial.cotangents()
    hook = subject.draw(data, NODE_HOOKS, "hook")
    way = subject.draw(data, NUMBERS, "returned")
    run = _with_hook(subject, polynomial, hook, lambda values: (*values, None)[: len(values) + NUMBERS[way]])
    count = len(polynomial.tensors if hook == "post-hook" else polynomial.outputs)
    naming = [count, count + NUMBERS[way]]
    what = f"a {hook} that returns {way}"
    subject.assert_raises(RuntimeError, lambda: run.gradients(cotangents), what, naming=naming)


@keeps("HOOK-04", variant="form")
def test_hooks_return_values_of_the_dtype_and_shape_they_get(subject, data):
    """A hook that returns a value of another dtype or shape raises."""
    polynomial = subject.polynomial(data)
    cotangents = polynomial.cotangents()
    hook = subject.draw(data, HOOKS, "hook")
    way = subject.draw(data, FORMS, "returned")
    which = subject.draw(data, (0, -1), "index of the changed value")
    run = _with_hook(subject, polynomial, hook, lambda values: _changed(values, which, FORMS[way]))
    naming = [("dtype", "type") if way == "another dtype" else ("shape", "size")]
    what = f"a {hook} that returns {way}"
    subject.assert_raises(RuntimeError, lambda: run.gradients(cotangents), what, naming=naming)


@keeps("HOOK-04")
def test_hooks_may_return_other_tensors_of_the_same_form(subject, data):
    """A hook may return a clone of what it got."""
    polynomial = subject.polynomial(data)
    cotangents = polynomial.cotangents()
    hook = subject.draw(data, HOOKS, "hook")
    run = _with_hook(subject, polynomial, hook, lambda values: _changed(values, 0, torch.clone))
    got = subject.assert_accepted(lambda: run.gradients(cotangents), f"a {hook} that returns a clone")
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))


def _check_differentiated(subject, data, hook):
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), max_outputs=1)
    factor = subject.draw(data, (2, -1), f"factor of the {hook}")
    run = _with_hook(subject, polynomial, hook, lambda values: times(values, factor))
    (cotangent,) = subject.tensors(polynomial.cotangents(), polynomial.dtype)
    first = run.pullback((cotangent.requires_grad_(),), differentiable=True)
    slopes = polynomial.vjp([np.ones(polynomial.shape)])
    action = lambda: torch.autograd.grad(first, [cotangent], [torch.ones_like(g) for g in first])  # noqa: E731
    (got,) = subject.assert_accepted(action, f"a second derivative through what a {hook} returned")
    subject.assert_same("derivative by the cotangent", got=got, expected=np.asarray(factor * sum(slopes)))


@keeps("HOOK-01", variant="differentiable")
def test_what_a_pre_hook_returns_is_differentiated(subject, data):
    """Second derivatives go through what a pre-hook returns."""
    _check_differentiated(subject, data, "pre-hook")


@keeps("HOOK-02", variant="differentiable")
def test_what_a_post_hook_returns_is_differentiated(subject, data):
    """Second derivatives go through what a post-hook returns."""
    _check_differentiated(subject, data, "post-hook")


@keeps("HOOK-05", variant="differentiable")
def test_what_a_hook_of_a_tensor_returns_is_differentiated(subject, data):
    """Second derivatives go through what a tensor's hook returns."""
    _check_differentiated(subject, data, "tensor's hook")


@keeps("HOOK-11")
def test_hooks_may_be_registered_on_ctx(subject, data):
    """Hooks registered on ctx in forward run, and so do post-hooks registered during backward."""
    polynomial = subject.polynomial(data, arguments=TENSORS, separate=None)
    cotangents = drawn_cotangents(subject, data, polynomial)
    pre = subject.draw(data, FACTORS, "factors of the pre-hooks registered in forward")
    post = subject.draw(data, FACTORS, "factors of the post-hooks registered in forward")
    late = subject.draw(data, FACTORS, "factors of the post-hooks registered in backward")
    given, gradients = [], []

    def add_post_hook(ctx, factor):
        ctx.register_hook(lambda values, _: (gradients.append(values), times(values, factor))[1])

    def forward(ctx):
        [ctx.register_prehook(lambda g, factor=factor: (given.append(g), times(g, factor))[1]) for factor in pre]
        [add_post_hook(ctx, factor) for factor in post]

    def backward(ctx):
        [add_post_hook(ctx, factor) for factor in late]

    run = subject.run(polynomial, cls=observing_ctx(subject, polynomial, lambda ctx, *_: forward(ctx), backward))
    got = run.gradients(cotangents)
    *seen, left = passed(cotangents, pre)
    assert_got(subject, "pre-hook", "cotangents", given, seen)
    *seen, left = passed(polynomial.vjp(left), post + late)
    assert_got(subject, "post-hook", "gradients", gradients, seen)
    subject.assert_all_same("gradients", got=got, expected=left)


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
