"""What the forward of a custom Function gives, and what it leaves alone."""

from autograd_conformance.harness.marks import holds
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.strategies.shapes import degenerate, shape_tuples


@holds("FWD-VALUE")
def test_fwd_value(subject, data):
    example = subject.example(data.draw(subject.calls(some=False), label="call"))
    subject.assert_close(example.call, example.output_names, got=example.outputs(), expected=example.expected_outputs)


@holds("FWD-MASK", examples=0.6, needs="requires_grad")
def test_fwd_mask(subject, data):
    example = subject.example(data.draw(subject.calls(some=False), label="call"))
    full = [argument.differentiable for argument in example.arguments]
    everything = subject.implementation.vjp(example.f, example.primals, track=full)[0]
    nothing = subject.implementation.vjp(example.f, example.primals, track=[False] * len(full))[0]
    unrecorded = subject.implementation.vjp(example.unrecorded, example.primals, track=full)[0]
    for got in (everything, nothing, unrecorded):
        subject.assert_same(example.call, example.output_names, got=got, expected=example.outputs())


@holds("FWD-LAYOUT", needs="views")
def test_fwd_layout(subject, data):
    example = subject.example(data.draw(subject.calls(contiguous=False), label="call"))
    outputs, gradients = example.run()
    implementation = subject.implementation
    plain, pullback = implementation.vjp(example.f, example.fresh_primals("contiguous"), track=example.track)
    expected = example.near(plain, example.expected_outputs)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=expected, slack=2 * SAFETY)
    expected = example.near(pullback(example.cotangents), example.expected_gradients())
    subject.assert_close(example.call, example.names, got=gradients, expected=expected, slack=2 * SAFETY)


@holds("FWD-EMPTY", where=lambda f: any(map(degenerate, shape_tuples(f))), examples=0.6)
def test_fwd_empty(subject, data):
    shapes = tuple(filter(degenerate, shape_tuples(subject.function)))
    example = subject.example(data.draw(subject.calls(shapes=shapes), label="call"))
    outputs, gradients = example.run()
    subject.assert_close(example.call, example.output_names, got=outputs, expected=example.expected_outputs)
    subject.assert_close(example.call, example.names, got=gradients, expected=example.expected_gradients())


@holds("FWD-PURE", where=lambda f: not f.inplace, examples=0.6, needs="inplace views requires_grad")
def test_fwd_pure(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    before = [example.state(x) for x in example.primals]
    example.run()
    after = [example.state(x) for x in example.primals]
    subject.assert_equal(example.call, "state of the inputs after the call", got=after, expected=before)


@holds("FWD-PURE", where=lambda f: f.inplace, examples=0.6, needs="inplace views requires_grad")
def test_fwd_dirty(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    call, version = example.call, subject.implementation.version
    outputs, dirty, versions = example.run_in_place()
    risen = [version(x) > before for x, before in zip(dirty, versions, strict=True)]
    subject.assert_equal(call, "whether the dirty inputs' versions rose", got=risen, expected=[True] * len(dirty))
    identical = [any(y is x for y in outputs) for x in dirty]
    subject.assert_equal(call, "whether the dirty inputs came back", got=identical, expected=[True] * len(dirty))


@holds("FWD-GRADFLAG", examples=0.6, needs="requires_grad")
def test_fwd_gradflag(subject, data):
    example = subject.example(data.draw(subject.calls(some=False), label="call"))
    call, implementation, outputs = example.call, subject.implementation, example.outputs()
    flags = [implementation.requires_grad(y) for y in outputs]
    expected = [o.differentiable and any(example.track) for o in subject.function.outputs]
    subject.assert_equal(call, "requires_grad of the outputs", got=flags, expected=expected)
    nodes = {id(implementation.node(y)) for y, flag in zip(outputs, flags, strict=True) if flag}
    subject.assert_that(len(nodes) <= 1, call, "the graph node of the outputs", got="several nodes", expected="one")
    unrecorded = implementation.vjp(example.unrecorded, example.primals, track=example.track)[0]
    flags = [implementation.requires_grad(y) for y in unrecorded]
    subject.assert_equal(call, "requires_grad without grad mode", got=flags, expected=[False] * len(flags))


@holds("FWD-DTYPE", examples=0.6)
def test_fwd_dtype(subject, data):
    example = subject.example(data.draw(subject.calls(some=False), label="call"))
    described = [subject.implementation.describe(y) for y in example.outputs()]
    expected = example.output_descriptions
    subject.assert_equal(example.call, "shape, dtype and device of the outputs", got=described, expected=expected)
