"""Hooks on several tensors: once per pass, with the gradients of all of them or with the first."""

import weakref
from dataclasses import replace

from hypothesis import strategies as st
from torch.autograd import graph

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._derivatives import drawn_cotangents
from autograd_conformance.suites.contract._garbage import without_collector
from autograd_conformance.suites.dialects.torch._hooks import (
    backward,
)
from autograd_conformance.suites.dialects.torch._leaves import right_gradients
from autograd_conformance.suites.dialects.torch._nodes import floats_of, leaves_of

# Kinds of arguments, so that often several require grad.
KINDS = ("tracked", "tracked", "fixed", "integers", "number")


def _members(subject, data, needed, leaves):
    """Draw the tensors that the hook is on, in any order; ``needed`` has what each pass needs of all of them.

    A pass needs at least one of them, or none of the ``leaves`` that they are: outputs run their node in any case.
    """
    everything = range(len(needed[0]))
    several = st.permutations(everything) | st.lists(st.sampled_from(everything), unique=True, min_size=1)

    def decided(members):
        of_leaves = all(i < leaves for i in members)
        return all(of_leaves or any(gradients[i] is not None for i in members) for gradients in needed)

    what = "tensors with the hook, of the leaves, the float outputs and a stranger"
    return subject.draw(data, several.filter(decided), what)


def _floats(polynomial, cotangents):
    return [cotangents[o] for o in polynomial.float_outputs]


def _passes(subject, data, polynomial, leaves, *, partial):
    """Draw passes, each with its cotangents and the leaves that it is asked for, None for all."""
    some = st.none() | st.sets(st.sampled_from(range(len(leaves))), min_size=1)
    found = []
    for number in range(subject.draw(data, (2, 1, 3), "passes")):
        what = f"outputs with a cotangent in pass {number}"
        cotangents = drawn_cotangents(subject, data, polynomial, what) if partial else polynomial.cotangents()
        found.append((cotangents, subject.draw(data, some, f"leaves that pass {number} is asked for")))
    return found


def _run(run, leaves, cotangents, inputs):
    asked = None if inputs is None else [leaves[i] for i in inputs]
    backward(run, cotangents, downstream=True, inputs=asked)


@keeps("HOOK-10", examples=2)
def test_mode_all_waits_for_the_last_needed_gradient(subject, data):
    """Mode all fires once per pass with the gradients that this pass needs, and None for the other tensors."""
    polynomial = subject.polynomial(data, arguments=KINDS)
    run, got, expected = subject.run(polynomial), [], []
    leaves = leaves_of(run)
    passes = _passes(subject, data, polynomial, leaves, partial=True)
    needed = [_needed(polynomial, *each) for each in passes]
    members = _members(subject, data, needed, len(leaves))
    tensors = [*leaves, *floats_of(run), subject.tensor(1.0).requires_grad_()]
    handle = graph.register_multi_grad_hook([tensors[i] for i in members], got.append)
    for each, gradients in zip(passes, needed, strict=True):
        _run(run, leaves, *each)
        # A pass that needs none of the tensors does not call the hook.
        expected += [[gradients[i] for i in members]] * any(gradients[i] is not None for i in members)
    handle.remove()
    _run(run, leaves, *passes[-1])
    subject.assert_equal("number of calls of the hook", got=len(got), expected=len(expected))
    for mine, theirs in zip(got, expected, strict=True):
        subject.assert_all_same("gradients that the hook gets", got=mine, expected=theirs)


def _needed(polynomial, cotangents, inputs):
    """The gradients that a pass needs of the leaves, the float outputs and a stranger."""
    gradients = enumerate(right_gradients(polynomial, cotangents))
    wanted = [g if inputs is None or i in inputs else None for i, g in gradients]
    return [*wanted, *_floats(polynomial, cotangents), None]


@keeps("HOOK-10", variant="any")
def test_mode_any_gets_the_first_gradient(subject, data):
    """Mode any fires once per pass that needs one of its tensors, with the first gradient that is computed."""
    polynomial = subject.polynomial(data, arguments=KINDS)
    run, log, got = subject.run(polynomial), [], []
    leaves = leaves_of(run)
    passes = _passes(subject, data, polynomial, leaves, partial=False)
    tensors = [*leaves, *floats_of(run)]
    members = [tensors[i] for i in _members(subject, data, [range(len(tensors))], len(leaves))]
    [tensor.register_hook(log.append) for tensor in members]
    handle = graph.register_multi_grad_hook(members, lambda g: got.append((len(log), g)), mode="any")
    calls = []
    for each in passes:
        before = len(log)
        _run(run, leaves, *each)
        calls += [before + 1] * (len(log) > before)
    handle.remove()
    _run(run, leaves, *passes[-1])
    what = "gradients computed whenever the hook is called"
    subject.assert_equal(what, got=[count for count, _ in got], expected=calls)
    subject.assert_all_same("gradients", got=[g for _, g in got], expected=[log[count - 1] for count in calls])


@keeps("HOOK-10", variant="roots")
def test_mode_all_takes_the_tensor_that_a_pass_starts_from(subject, data):
    """Mode all gets the cotangent of an output from which the pass starts."""
    polynomial = subject.polynomial(data)
    floats = polynomial.float_outputs
    start = subject.draw(data, floats, "output with a cotangent")
    cotangents = polynomial.cotangents([i == start for i in range(len(polynomial.outputs))])
    run, got = subject.run(polynomial), []
    graph.register_multi_grad_hook([run.outputs[start], *leaves_of(run)], got.append)
    backward(run, cotangents)
    subject.assert_equal("number of calls of a hook on an output and leaves", got=len(got), expected=1)
    expected = [cotangents[start], *right_gradients(polynomial, cotangents)]
    subject.assert_all_same("gradients that the hook gets", got=got[0], expected=expected)


@keeps("HOOK-10", variant="unused")
def test_mode_any_passes_over_unused_outputs(subject, data):
    """Mode any gets the gradient of the used output, not one of an unused output."""
    drawn = subject.polynomial(data, outputs=("float",))
    polynomial = replace(drawn, outputs=("float", *drawn.outputs))
    used = subject.draw(data, range(1, len(polynomial.outputs)), "output with a cotangent, after a further output")
    cotangents = polynomial.cotangents([i == used for i in range(len(polynomial.outputs))])
    run, got = subject.run(polynomial), []
    graph.register_multi_grad_hook(run.outputs, got.append, mode="any")
    backward(run, cotangents, downstream=True)
    subject.assert_all_same("gradients that a hook in mode any gets", got=got, expected=[cotangents[used]])


@keeps("HOOK-10", variant="grad")
def test_mode_all_fires_in_autograd_grad(subject, data):
    """Mode all fires in autograd.grad if its tensors are the inputs."""
    polynomial = subject.polynomial(data)
    cotangents = polynomial.cotangents()
    run, got = subject.run(polynomial), []
    graph.register_multi_grad_hook(leaves_of(run), got.append)
    subject.assert_accepted(lambda: run.gradients(cotangents), "autograd.grad where its inputs have a hook in mode all")
    subject.assert_equal("number of calls of the hook", got=len(got), expected=1)
    expected = right_gradients(polynomial, cotangents)
    subject.assert_all_same("gradients that the hook gets", got=got[0], expected=expected)


@keeps("HOOK-10", variant="freed")
def test_gradients_are_let_go_after_the_pass(subject, data):
    """Mode all keeps no gradient after the pass that computed it, however many passes there were."""
    count = subject.draw(data, (1, 2, 3), "number of tensors")
    passes = subject.draw(data, (1, 2, 3), "passes")
    double = subject.custom(forward=lambda _, x: 2 * x, backward=lambda _, g: 2 * g)
    leaves = [subject.tensor([n + 1.0]).requires_grad_() for n in range(count)]
    output, seen = sum(map(double, leaves)), []
    handle = graph.register_multi_grad_hook(leaves, lambda found: seen.extend(map(weakref.ref, found)))
    with without_collector():
        for _ in range(passes):
            output.backward(retain_graph=True)
        for leaf in leaves:
            leaf.grad = None
        alive = sum(ref() is not None for ref in seen)
    subject.assert_equal("number of gradients that the hook got", got=len(seen), expected=count * passes)
    subject.assert_equal("how many of them are alive after the passes", got=alive, expected=0)
    handle.remove()


@keeps("HOOK-10", variant="constants")
def test_mode_any_takes_tensors_that_require_no_grad(subject, data):
    """A hook in mode any may be on tensors of which some require no grad; it fires for the others."""
    flags = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=4).filter(any), "requires grad")
    tensors = [subject.tensor([1.0 + n]).requires_grad_(flag) for n, flag in enumerate(flags)]
    double = subject.custom(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: 3 * g)
    seen = []
    what = "a hook in mode any on tensors of which some require no grad"
    subject.assert_accepted(lambda: graph.register_multi_grad_hook(tensors, seen.append, mode="any"), what)
    sum(double(x) for x in tensors).backward()
    subject.assert_all_same("gradients in the hook", got=seen, expected=[subject.tensor([3.0])])
