"""Hooks on tensors: what they get and change, retained gradients, accumulation, and when they fire."""

from functools import partial

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._ctx_observers import observing_ctx
from autograd_conformance.suites.contract._derivatives import drawn_cotangents
from autograd_conformance.suites.dialects.torch._hooks import (
    FACTORS,
    assert_got,
    backward,
    check_until_removed,
    passed,
    register,
    scaled,
)
from autograd_conformance.suites.dialects.torch._leaves import right_gradients
from autograd_conformance.suites.dialects.torch._nodes import floats_of, leaves_of, node_of


@keeps("HOOK-05")
def test_tensor_hooks_replace_the_gradient_before_the_node_sees_it(subject, data):
    """Hooks of an output replace its cotangent before backward runs; removed ones no longer run."""
    polynomial = subject.polynomial(data)
    cotangents = drawn_cotangents(subject, data, polynomial)
    before = subject.draw(data, FACTORS, "factors of the output's hooks")
    after = subject.draw(data, FACTORS, "factors of each leaf's hooks")
    output = subject.draw(data, [i for i, g in enumerate(cotangents) if g is not None], "output with hooks")
    removed = subject.draw(data, st.sets(st.sampled_from(range(len(before)))), "output's hooks removed after a pass")
    run, got = subject.run(polynomial), []

    def add(factor):
        return run.outputs[output].register_hook(lambda g: (got.append((g,)), scaled(factor, g))[1])

    def check(active):
        got.clear()
        gradients = run.gradients(cotangents)
        *seen, (left,) = passed((cotangents[output],), active)
        assert_got(subject, "output's hook", "gradients", got, seen)
        subject.assert_same("cotangent that backward gets", got=run.seen.cotangents[output], expected=left)
        given = [left if i == output else g for i, g in enumerate(cotangents)]
        subject.assert_all_same("gradients", got=gradients, expected=passed(polynomial.vjp(given), after)[-1])

    [leaf.register_hook(partial(scaled, factor)) for leaf in leaves_of(run) for factor in after]
    check_until_removed(before, removed, add, check)


@keeps("HOOK-05", variant="refused")
def test_tensors_that_require_no_grad_take_no_hook(subject, data):
    """register_hook raises on detached, marked and unrecorded outputs."""
    polynomial = subject.polynomial(data, outputs=("float", "marked"))
    run = subject.run(polynomial)
    unrecorded = subject.run(polynomial, under=torch.no_grad)
    marked = [y for y, kind in zip(run.outputs, polynomial.outputs, strict=True) if kind == "marked"]
    tensors = {
        "detached output": floats_of(run)[0].detach(),
        "output of a call without grad mode": unrecorded.outputs[0],
        **({"marked output": marked[0]} if marked else {}),
    }
    kind = subject.draw(data, tensors, "tensor")
    facts = [("require", "requires", "requires_grad")]
    what = f"a hook on a {kind}"
    subject.assert_raises(RuntimeError, lambda: tensors[kind].register_hook(lambda g: g), what, naming=facts)
    subject.assert_accepted(lambda: floats_of(run)[0].register_hook(lambda g: g), "a hook on an output")


@keeps("HOOK-07")
def test_retained_grads_are_what_tensor_hooks_left(subject, data):
    """A retained .grad has what all hooks made of it, registered before or after retain_grad."""
    polynomial = subject.polynomial(data)
    cotangents = drawn_cotangents(subject, data, polynomial)
    before = subject.draw(data, FACTORS, "factors of the hooks registered before retain_grad")
    after = subject.draw(data, FACTORS, "factors of the hooks registered after retain_grad")
    kept = subject.draw(data, [i for i, g in enumerate(cotangents) if g is not None], "output that retains its grad")
    seen = []
    cls = observing_ctx(subject, polynomial, leave=lambda ctx: seen.append(run.outputs[kept].grad))
    run = subject.run(polynomial, cls=cls)
    [run.outputs[kept].register_hook(partial(scaled, factor)) for factor in before]
    run.outputs[kept].retain_grad()
    [run.outputs[kept].register_hook(partial(scaled, factor)) for factor in after]
    run.gradients(cotangents)
    (left,) = passed((cotangents[kept],), before + after)[-1]
    subject.assert_all_same("retained .grad that backward sees", got=seen, expected=[left])
    subject.assert_same("retained .grad after the pass", got=run.outputs[kept].grad, expected=left)


@keeps("HOOK-08")
def test_hooks_of_tensors_asked_for_fire_without_their_node(subject, data):
    """The hook of an input of grad fires; its node's hooks fire only if the node runs."""
    polynomial = subject.polynomial(data, outputs=("float",))
    positions = range(len(polynomial.outputs))
    asked = subject.draw(data, st.sets(st.sampled_from(positions), min_size=1), "outputs asked for")
    deeper = subject.draw(data, st.booleans(), "leaves asked for too")
    run, log = subject.run(polynomial), []
    [register("tensor's hook", run.outputs[i], None, partial(log.append, f"hook of output {i}")) for i in asked]
    [register(kind, None, node_of(run), partial(log.append, kind)) for kind in ("pre-hook", "post-hook")]
    inputs = [*(run.outputs[i] for i in asked), *(leaves_of(run) if deeper else ())]
    downstream = [y * 1 for y in run.outputs]
    torch.autograd.grad(downstream, inputs, subject.tensors(polynomial.cotangents(), polynomial.dtype))
    expected = [*(f"hook of output {i}" for i in asked), *(["pre-hook", "post-hook"] if deeper else [])]
    subject.assert_equal("hooks that fired", got=sorted(log), expected=sorted(expected))


def _copy(tensor):
    return None if tensor is None else tensor.clone()


def _left(handle):
    with handle:
        pass


# How a hook is removed: by a call, or where the block of its handle ends.
_REMOVALS = {"remove": lambda handle: handle.remove(), "the end of a block": _left}


@keeps("HOOK-09")
def test_post_accumulate_hooks_fire_after_grad_was_set(subject, data):
    """Post-accumulate hooks see the new .grad in each backward() and never fire in grad."""
    polynomial = subject.polynomial(data)
    passes = subject.draw(data, st.integers(1, 3), "passes")
    asked = subject.draw(data, st.booleans(), "leaves asked for")
    hooks = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=2), "hooks, and which are removed")
    remove = _REMOVALS[subject.draw(data, tuple(_REMOVALS), "removed by")]
    cotangents = polynomial.cotangents()
    run = subject.run(polynomial)
    leaves = leaves_of(run)
    got = [[[] for _ in hooks] for _ in leaves]

    def add(leaf, seen):
        return leaf.register_post_accumulate_grad_hook(lambda it: seen.append(_copy(it.grad)))

    handles = [[add(leaf, seen) for seen in each] for leaf, each in zip(leaves, got, strict=True)]
    run.gradients(cotangents)
    [backward(run, cotangents, inputs=leaves if asked else None) for _ in range(passes)]
    [remove(handle) for each in handles for handle, gone in zip(each, hooks, strict=True) if gone]
    backward(run, cotangents)
    for each, gradient in zip(got, right_gradients(polynomial, cotangents), strict=True):
        for seen, gone in zip(each, hooks, strict=True):
            expected = [np.asarray(n * gradient) for n in range(1, passes + (1 if gone else 2))]
            subject.assert_all_same(".grad that the hook of a leaf sees", got=seen, expected=expected)


@keeps("HOOK-09", variant="refused")
def test_tensors_that_are_no_leaves_take_no_post_accumulate_hook(subject, data):
    """A post-accumulate hook raises on an output and is accepted on a leaf."""
    run = subject.run(subject.polynomial(data))
    output = subject.draw(data, range(len(floats_of(run))), "float output")
    leaf = subject.draw(data, range(len(leaves_of(run))), "leaf")

    def add(tensor):
        return lambda: tensor.register_post_accumulate_grad_hook(lambda it: None)

    what = "a post-accumulate hook on an output"
    subject.assert_raises(RuntimeError, add(floats_of(run)[output]), what, naming=[("leaf", "leaves")])
    subject.assert_accepted(add(leaves_of(run)[leaf]), "a post-accumulate hook on a leaf")
