"""The values of the gradients, compared with the reference."""

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.bounds.ranges import assert_in_range
from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.testing import scenarios, transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.harness.testing.observe import all_finite
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.strategies.calls import masked, varied, with_cotangents
from autograd_conformance.strategies.compositions import AFTER, SAME
from autograd_conformance.strategies.magnitudes import FAR, RANGE, at_extremes, everywhere_far
from autograd_conformance.strategies.scope import ALL_USED, CONTIGUOUS, FULL_MASK, PLAIN, SMOOTH
from autograd_conformance.strategies.shapes import shape_tuples, twins

DOUBLE = ("float64", "complex128")


def _in_both_halves(function):
    return facts_of(function).has_formula and {"float16", "bfloat16"} <= set(function.dtypes)


@holds("VJP-REF", examples=1.5)
def test_vjp_ref(subject, data):
    """The gradients match the reference."""
    drawn = data.draw(subject.calls(), label="call")
    for call in subject.recasts(drawn):
        example = subject.example(call)
        _, gradients = example.run()
        subject.assert_close(example.call, example.names, got=gradients, expected=example.expected.gradients())
    subject.verify_reference(drawn)


@holds("VJP-FD", where=lambda f: f.soft or not f.surrogate, dtypes=DOUBLE, examples=0.6)
def test_vjp_fd(subject, data):
    """The gradients match finite differences."""
    calls = subject.calls(replace(SMOOTH, layouts="contiguous", specials="none"))
    example = subject.example(data.draw(calls, label="call"))
    subject.assert_first_order(example.call, transforms.first_order(example))


@holds("VJP-LINEAR", where=lambda f: f.linear, examples=0.6)
def test_vjp_linear(subject, data):
    """The VJP is linear in the cotangent, and zero for a zero cotangent."""
    example = subject.example(data.draw(subject.calls(replace(ALL_USED, cotangent_layouts=False)), label="call"))
    _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    first, second = example.expected.cotangents, example.expected.other_cotangents()
    a, b = (example.pulled(pullback, cotangents) for cotangents in (first, second))
    both = example.pulled(pullback, example.expected.blended(first, second))
    errors = [0.0 if c is None else c.error for c in both]
    expected = [None if g is None else (g * 2.0 + h).widened(e) for g, h, e in zip(a, b, errors, strict=True)]
    subject.assert_close(example.call, example.names, got=both, expected=expected)
    zero = pullback(example.placed(example.expected.blended(first, first, weight=-1.0)))
    subject.assert_zero(example.call, example.names, got=zero, hint="the cotangent is zero everywhere")


@holds("VJP-MASK", where=lambda f: sum(a.differentiable for a in f.arrays) > 1, examples=0.8)
def test_vjp_mask(subject, data):
    """The gradient of an input does not depend on which other inputs require grad."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    full = [argument.differentiable for argument in example.arguments]
    _, pullback = subject.implementation.vjp(example.f, example.primals, track=full)
    everything = pullback(example.cotangents)
    for mask in dict.fromkeys([example.track, *scenarios.lonely_masks(full)]):
        other = subject.example(masked(example.call, mask))
        expected = other.near(everything, other.expected.gradients())
        _, gradients = other.run()
        subject.assert_close(other.call, other.names, got=gradients, expected=expected, slack=2 * SAFETY)


@holds("VJP-SUBSET", where=lambda f: sum(a.differentiable for a in f.arrays) > 1, examples=0.8)
def test_vjp_subset(subject, data):
    """The gradient of an input does not depend on which other gradients are asked for."""
    example = subject.example(data.draw(subject.calls(FULL_MASK), label="call"))
    wrt = subject.draw(data, scenarios.subsets(example), "gradients asked for")
    _, some = example.run(wrt=wrt)
    expected = example.near(example.run()[1], example.expected.gradients())
    expected = [g if asked else None for g, asked in zip(expected, wrt, strict=True)]
    subject.assert_close(example.call, example.names, got=some, expected=expected, slack=2 * SAFETY)


@holds("VJP-COTANGENT-LAYOUT", needs="views")
def test_vjp_cotangent_layout(subject, data):
    """The gradients are the same for every memory layout of the cotangents."""
    example = subject.example(data.draw(subject.calls(CONTIGUOUS), label="call"))
    call, expected = example.call, example.expected.gradients()
    _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    plain = example.near(pullback(example.placed(example.expected.cotangents)), expected)
    subject.assert_close(call, example.names, got=pullback(example.cotangents), expected=plain, slack=2 * SAFETY)
    for layout in example.cotangent_layouts:
        laid, hint = with_cotangents(call, layout), f"the cotangents are {layout}"
        subject.tried.append(laid)
        got = pullback(example.placed(example.expected.cotangents, layout))
        subject.assert_close(laid, example.names, got=got, expected=plain, slack=2 * SAFETY, hint=hint)
    repeated = subject.example(with_cotangents(call, "expanded"))
    got, expected = repeated.run()[1], repeated.expected.gradients()
    subject.assert_close(repeated.call, example.names, got=got, expected=expected)
    subject.tried.append(call)
    subject.choose("after the Function", "sum()")
    got, expected = scenarios.summed(example)
    hint = "sum() directly follows the Function, so that the cotangent is an expanded tensor (stride 0)"
    subject.assert_close(call, example.names, got=got, expected=expected, hint=hint)


@holds("VJP-UNUSED", examples=0.8)
def test_vjp_unused(subject, data):
    """An unused output counts as a zero cotangent, and reaches backward as zeros or None as set."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    f, seen = example.observed()
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    zeros = example.placed(example.expected.dense(example.expected.cotangents))
    expected = example.near(pullback(zeros), example.expected.gradients())
    got = pullback(example.cotangents)
    subject.assert_close(example.call, example.names, got=got, expected=expected, slack=2 * SAFETY)
    absent = [seen.cotangents_of_tensors[n] is None for n in (example.expected.unused if seen.backwards else [])]
    what = "whether the cotangents of unused outputs reach backward as None"
    materialized = [not subject.function.materialize] * len(absent)
    subject.assert_equal(example.call, what, got=absent, expected=materialized)


@holds("VJP-UNUSED", needs="none_gradients", variant="severed", examples=0.4)
def test_vjp_unused_of_a_severed_graph(subject, data):
    """The gradients are zero if the next Function's backward returned None."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    hint = "the next Function's backward returned None, so that the cotangent is undefined"
    subject.assert_zero(example.call, example.names, got=scenarios.severed(example), hint=hint)


@holds("VJP-SAME-TENSOR", where=lambda f: any(twins(f, shapes) for shapes in shape_tuples(f)), examples=0.8)
def test_vjp_same_tensor(subject, data):
    """A tensor gets the sum of both gradients if it, or something equal made from it, is passed twice."""
    shapes = tuple(s for s in shape_tuples(subject.function) if twins(subject.function, s))
    example = subject.example(data.draw(subject.calls(replace(CONTIGUOUS, mask="full"), shapes=shapes), label="call"))
    # Tensors that are None have no shape, so that positions would not match.
    assume(len(example.call.tensors) == len(subject.function.arrays))
    pairs = twins(subject.function, tuple(t.shape for t in example.call.tensors))
    pair = subject.draw(data, pairs, "tensors given the same tensor")
    relation = subject.draw(data, dict.fromkeys((SAME, *subject.before)), "how the second comes from the first")
    got, expected = scenarios.sharing(example, *pair, relation)
    subject.assert_close(example.call, example.names, got=got, expected=expected, slack=2 * SAFETY)


@holds("VJP-CHAIN")
def test_vjp_chain(subject, data):
    """The gradients are right in a chain with operations before and after."""
    example = subject.example(data.draw(subject.calls(replace(ALL_USED, cotangent_layouts=False)), label="call"))
    before = subject.draw(data, subject.before, "before")
    after = subject.draw(data, st.lists(st.sampled_from(AFTER), min_size=1, max_size=2), "after")
    assume(not scenarios.overflows(example, after))
    got, expected = scenarios.composed(example, before, after)
    subject.assert_close(example.call, example.names, got=got, expected=expected)


@holds("VJP-CHAIN", examples=0.6, variant="instances")
def test_vjp_chain_instances(subject, data):
    """Several calls in one graph each have the right gradients."""
    label = "calls in one graph, each next to one with other values"
    drawn = subject.draw(data, st.lists(subject.calls(), min_size=1, max_size=2), label)
    examples = [subject.example(call) for call in (*drawn, *(varied(call, subject.function) for call in drawn))]
    for example, gradients in zip(examples, scenarios.side_by_side(examples), strict=True):
        subject.assert_close(example.call, example.names, got=gradients, expected=example.expected.gradients())


@holds("VJP-ACCUMULATE", examples=0.6, needs="accumulate")
def test_vjp_accumulate(subject, data):
    """backward() adds to the gradients that leaves hold before."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    held = subject.draw(data, scenarios.subsets(example), "leaves that hold a gradient before")
    got, expected = scenarios.accumulated(example, held)
    names = [name.replace("gradient of", ".grad of") for name in example.names]
    subject.assert_close(example.call, names, got=got, expected=expected)


@holds("VJP-FINITE")
def test_vjp_finite(subject, data):
    """If outputs are finite for extreme values, so are the gradients."""
    example = subject.example(data.draw(subject.calls(replace(PLAIN, specials="extreme")), label="call"))
    outputs, gradients = example.run()
    within = all_finite(subject.implementation, outputs)
    subject.assert_finite(example, gradients, given=within)


@holds("VJP-FINITE", examples=0.2, variant=FAR, own=True)
def test_vjp_finite_far(subject, data):
    """Gradients are finite where all numbers are as large as two factors may be, in every dtype."""
    drawn = data.draw(subject.calls(replace(PLAIN, mask="full", specials="none")), label="call")
    for call in subject.recasts(drawn):
        example = subject.example(everywhere_far(call, subject.function, equal=True))
        # Whether what is lost need not be is known only of another formula.
        if gradients_of_formula(example) is None:
            subject.record.leave_open("there is nothing to compare such values with")
            continue
        outputs, gradients = example.run()
        subject.assert_finite(example, gradients, given=all_finite(subject.implementation, outputs))


@holds("VJP-REF", where=_in_both_halves, dtypes=("float16",), examples=0.2, variant=RANGE, own=True)
def test_vjp_ref_range(subject, data):
    """No term of backward overflows in float16 where the outputs and the gradient do not."""
    drawn = data.draw(subject.calls(replace(PLAIN, specials="extreme")), label="call")
    # What forward refuses of the drawn calls is counted.
    subject.example(drawn).outputs()
    others = (*at_extremes(drawn, subject.function), everywhere_far(drawn, subject.function))
    for call in dict.fromkeys((drawn, *others)):
        assert_in_range(subject, subject.example(call))
