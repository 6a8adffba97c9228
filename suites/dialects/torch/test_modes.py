"""Grad mode after a block has ended; inference_mode: outputs under it, its tensors as arguments, and forward mode."""

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._blocks import Left

ENTRIES = st.lists(st.sampled_from((1.0, -1.0, 2.0, -2.0)), max_size=3)


@keeps("MODE-02")
def test_outputs_under_inference_mode_are_inference_tensors(subject, data):
    """Under inference_mode all outputs are inference tensors and none requires grad."""
    _check_inference(subject, data, torch.inference_mode)


@keeps("MODE-02", variant="enable_grad")
def test_enable_grad_within_inference_mode_records_nothing(subject, data):
    """Under enable_grad within inference_mode all outputs are inference tensors and none requires grad."""
    _check_inference(subject, data, _enabled)


@contextmanager
def _enabled():
    with torch.inference_mode(), torch.enable_grad():
        yield


def _check_inference(subject, data, under):
    polynomial = subject.polynomial(data, separate=None)
    if not subject.draw(data, (True, False), "inputs requiring grad"):
        kinds = ("fixed" if kind == "tracked" else kind for kind in polynomial.arguments)
        polynomial = replace(polynomial, arguments=tuple(kinds))
    run = subject.run(polynomial, under=under)
    subject.assert_all_same("outputs", got=run.outputs, expected=polynomial.forward())
    tensors = [y for y in run.outputs if isinstance(y, torch.Tensor)]
    got = [y.is_inference() for y in tensors]
    subject.assert_equal("is_inference of the outputs", got=got, expected=[True] * len(tensors))
    got = any(y.requires_grad for y in tensors)
    subject.assert_equal("requires_grad of any output under inference_mode", got=got, expected=False)


@keeps("MODE-03")
def test_an_inference_tensor_that_is_not_saved_may_be_an_argument(subject, data):
    """A recorded call takes inference tensors that it does not save, and its gradients are right."""
    kinds = subject.draw(data, st.lists(st.sampled_from(("tracked", "inference")), max_size=3), "other arguments")
    kinds = ["tracked", *kinds, "inference"]
    if subject.draw(data, (False, True), "inference tensors first"):
        kinds.sort()
    x = subject.tensor(subject.draw(data, ENTRIES, "each argument"))

    def forward(ctx, *xs):
        ctx.save_for_backward(*(x for x, kind in zip(xs, kinds, strict=True) if kind == "tracked"))
        return sum(n * x * x for n, x in enumerate(xs, 1))

    def backward(ctx, g):
        saved = iter(ctx.saved_tensors)
        return tuple(2 * n * next(saved) * g if kind == "tracked" else None for n, kind in enumerate(kinds, 1))

    weighted = subject.custom(forward=forward, backward=backward)
    with torch.inference_mode():
        arguments = [x.clone() for _ in kinds]
    leaves = [x.clone().requires_grad_() if kind == "tracked" else a for a, kind in zip(arguments, kinds, strict=True)]
    y = subject.assert_accepted(lambda: weighted(*leaves), "an inference tensor as argument of a recorded call")
    subject.assert_same("output", got=y, expected=sum(n * x * x for n in range(1, len(kinds) + 1)))
    subject.assert_equal("requires_grad of the output", got=y.requires_grad, expected=True)
    tracked = {n: leaf for n, (leaf, kind) in enumerate(zip(leaves, kinds, strict=True), 1) if kind == "tracked"}
    got = torch.autograd.grad(y, list(tracked.values()), torch.full_like(x, 3.0))
    subject.assert_all_same("gradients", got=got, expected=[6 * n * x for n in tracked])


@keeps("MODE-04")
def test_forward_mode_is_off_under_inference_mode(subject, data):
    """Under inference_mode, with enable_grad in it or not, outputs have no tangent."""
    enabled = subject.draw(data, (False, True), "enable_grad within inference_mode")
    outputs = subject.draw(data, st.integers(1, 3), "number of outputs")
    x = subject.tensor(subject.draw(data, ENTRIES, "x"))

    def multiples(ctx, x):
        return tuple(n * x for n in range(1, outputs + 1))

    apply = subject.custom(forward=multiples, jvp=multiples)

    def f(dual):
        with _enabled() if enabled else torch.inference_mode():
            return apply(dual)

    primals, tangents = subject.implementation.jvp(f, [x], [3 * torch.ones_like(x)])
    subject.assert_all_same("outputs", got=primals, expected=[n * x for n in range(1, outputs + 1)])
    subject.assert_all_same("tangents under inference_mode", got=tangents, expected=[None] * outputs)


# Ways to set grad mode, and whether calls in them are recorded. Some are documented as decorators too.
_MODES = {
    "no_grad()": (torch.no_grad, False),
    "enable_grad()": (torch.enable_grad, True),
    "set_grad_enabled(False)": (partial(torch.set_grad_enabled, False), False),
    "set_grad_enabled(True)": (partial(torch.set_grad_enabled, True), True),
    "inference_mode(False)": (partial(torch.inference_mode, False), True),
    "inference_mode()": (torch.inference_mode, False),
}


_DECORATORS = ("no_grad()", "enable_grad()", "inference_mode()")


@keeps("MODE-05")
def test_grad_mode_is_that_of_the_block(subject, data):
    """Calls in a block are recorded as it says, those after it as those before it, however it was left."""
    ways = [(name, decorates) for name in _MODES for decorates in {False, name in _DECORATORS}]
    step = st.tuples(st.sampled_from(sorted(ways)), st.booleans())
    steps = subject.draw(data, st.lists(step, min_size=1, max_size=4), "blocks: (mode, as decorator), left early")
    around = subject.draw(data, tuple(_MODES)[:-1], "around all of them")
    leaf, got, expected = subject.tensor([1.0, 2.0]).requires_grad_(), [], []

    double = subject.custom(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: 2 * g)

    def call(leave=False):
        got.append(double(leaf).requires_grad)
        if leave:
            raise Left

    mode, outside = _MODES[around]
    with mode():
        for (name, decorates), leaves in steps:
            block, recorded = _MODES[name]
            with suppress(Left):
                if decorates:
                    block()(call)(leaves)
                else:
                    with block():
                        call(leaves)
            call()
            expected += [recorded, outside]
    what = "requires_grad of the output of a call in each block and of one after it,"
    subject.assert_equal(what, got=got, expected=expected)
