"""What engine and Function exchange: needs_input_grad, None, number of gradients, non-differentiable outputs."""

from autograd_conformance.harness.testing.expected import without_gradient
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.implementations.protocol import Description
from autograd_conformance.strategies.calls import recast
from autograd_conformance.strategies.scope import ALL_USED


@holds("VJP-NEEDS", examples=0.6, needs="needs_input_grad", looks_inside=True)
def test_vjp_needs(subject, data):
    """needs_input_grad is a tuple of bools that says which inputs require grad, in forward and backward."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    f, seen = example.observed()
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    pullback(example.cotangents)
    for where, needs in (("forward", seen.needs_in_forward), ("backward", seen.needs_in_backward)):
        what = f"ctx.needs_input_grad in {where}"
        expected = example.expected.needs(len(needs))
        subject.assert_equal(example.call, what, got=needs, expected=expected)
        kinds = {type(needs).__name__, *(type(need).__name__ for need in needs)}
        subject.assert_equal(example.call, f"types of {what}", got=kinds, expected={"tuple", "bool"})


@holds("VJP-NONE", examples=0.8)
def test_vjp_none(subject, data):
    """Exactly the tensors that require grad get a gradient; for all other arguments backward returns None."""
    example = subject.example(data.draw(subject.calls(ALL_USED), label="call"))
    f, seen = example.observed()
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    subject.assert_received(example, pullback(example.cotangents))
    subject.choose("gradients", "as backward returned them")
    lenient = subject.policy.ignores_constants
    places = without_gradient(example.expected) if lenient else example.expected.undifferentiable
    returned = [seen.gradient_of(n) is not None for n in places]
    what = "which non-tensor and non-differentiable arguments backward returned a gradient for"
    subject.assert_equal(example.call, what, got=returned, expected=[False] * len(returned))


@holds(
    "VJP-NONDIFF",
    where=lambda f: not all(o.differentiable for o in f.outputs),
    needs="nondifferentiable",
    looks_inside=True,
)
def test_vjp_nondiff(subject, data):
    """backward gets zeros for non-differentiable outputs, or None if it does not materialize."""
    example = subject.example(data.draw(subject.calls(ALL_USED), label="call"))
    f, seen = example.observed()
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    pullback(example.cotangents)
    marked = [n for n, output in enumerate(subject.function.outputs) if not output.differentiable]
    names = [f"cotangent of {example.output_names[n]}, as backward received it" for n in marked]
    subject.assert_zero(example.call, names, got=[seen.cotangents[n] for n in marked])
    absent = [seen.cotangents[n] is None for n in marked]
    expected = [not subject.function.materialize] * len(marked)
    subject.assert_equal(example.call, "whether that cotangent is None", got=absent, expected=expected)


@holds(
    "VJP-NONDIFF",
    where=lambda f: not all(o.differentiable for o in f.outputs),
    needs="nondifferentiable requires_grad",
    variant="flags",
)
def test_vjp_nondiff_flags(subject, data):
    """Non-differentiable outputs do not require grad."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    outputs = example.outputs()
    marked = [n for n, output in enumerate(subject.function.outputs) if not output.differentiable]
    flags = [subject.implementation.requires_grad(outputs[n]) for n in marked]
    what = "requires_grad of the non-differentiable outputs"
    subject.assert_equal(example.call, what, got=flags, expected=[False] * len(marked))


@holds("VJP-FIT", examples=0.8)
def test_vjp_fit(subject, data):
    """Each gradient has the shape, dtype and device of its input, as returned and as received."""
    call = data.draw(subject.calls(ALL_USED), label="call")
    for dtype in subject.dtypes:
        _fits(subject, subject.example(recast(call, dtype, subject.function)))


def _fits(subject, example):
    f, seen = example.observed()
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    received = pullback(example.cotangents)
    expected = [
        Description(t.shape, t.dtype, example.call.device) if tracked else None
        for t, tracked in zip(example.call.tensors, example.track, strict=True)
    ]
    counted = subject.policy.received(example, received)
    got = [
        (fitting if counts else None) if g is None else subject.implementation.describe(g)
        for g, counts, fitting in zip(received, counted, expected, strict=True)
    ]
    what = "shape, dtype and device of the gradients as the caller gets them"
    subject.assert_fits(example.call, what, got=got, expected=expected)
    raw = [
        seen.gradient_of(slot) if tracked else None for slot, tracked in zip(example.slots, example.track, strict=True)
    ]
    subject.assert_returned(example, raw)
