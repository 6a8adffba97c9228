"""What the forward of a custom Function returns, and what it leaves unchanged."""

from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.strategies.calls import recast, with_inputs
from autograd_conformance.strategies.scope import ANY_MASK, NON_CONTIGUOUS
from autograd_conformance.strategies.shapes import degenerate, shape_tuples


@holds("FWD-VALUE", examples=0.8)
def test_fwd_value(subject, data):
    """The outputs match the reference in every dtype."""
    call = data.draw(subject.calls(ANY_MASK), label="call")
    for dtype in subject.dtypes:
        example = subject.example(recast(call, dtype, subject.function))
        got, expected = example.outputs(), example.expected.outputs
        subject.assert_close(example.call, example.output_names, got=got, expected=expected)
    subject.verify_reference(call)


@holds("FWD-MASK", examples=0.6, needs="requires_grad")
def test_fwd_mask(subject, data):
    """The outputs are the same whichever inputs require grad, and if nothing is recorded."""
    example = subject.example(data.draw(subject.calls(ANY_MASK), label="call"))
    full = [argument.differentiable for argument in example.arguments]
    everything = subject.implementation.vjp(example.f, example.primals, track=full)[0]
    nothing = subject.implementation.vjp(example.f, example.primals, track=[False] * len(full))[0]
    unrecorded = subject.implementation.vjp(example.unrecorded, example.primals, track=full)[0]
    # Not bit for bit: an implementation may choose another order of summation where nothing is recorded.
    expected = example.near(example.outputs(), example.expected.outputs)
    for which, got in (("all", everything), ("none", nothing), ("all, under no_grad", unrecorded)):
        subject.choose("inputs that require grad", which)
        subject.assert_close(example.call, example.output_names, got=got, expected=expected, slack=2 * SAFETY)


@holds("FWD-LAYOUT", needs="views")
def test_fwd_layout(subject, data):
    """Outputs and gradients are the same for every memory layout of the inputs."""
    example = subject.example(data.draw(subject.calls(NON_CONTIGUOUS), label="call"))
    call, names = example.call, example.result_names
    expected = example.near(example.results("contiguous"), example.expected.results())
    laid = [call, *(with_inputs(call, layout) for layout in example.input_layouts)]
    # A call may have a list among its arguments, which has no hash.
    taken = {str(each): each for each in map(subject.taken, laid)}.values()
    stored = [each for each in taken if with_inputs(each, "contiguous") != each]
    if example.input_layouts and not stored:
        subject.leave_out("tensors that are not contiguous")
        return
    for other in stored or [call]:
        hint = f"the inputs are {', '.join(dict.fromkeys(t.layout for t in other.tensors))}"
        with subject.choice(other):
            # The same values: an expanded tensor has others.
            same = Expected(subject.function, other, values=example.values)
            got = example.of(other, expected=same).results()
            subject.assert_close(other, names, got=got, expected=expected, slack=2 * SAFETY, hint=hint)


@holds("FWD-EMPTY", where=lambda f: any(map(degenerate, shape_tuples(f))), examples=0.6)
def test_fwd_empty(subject, data):
    """Outputs and gradients are right for tensors without elements or without dimensions."""
    shapes = tuple(filter(degenerate, shape_tuples(subject.function)))
    example = subject.example(data.draw(subject.calls(shapes=shapes), label="call"))
    outputs, gradients = example.run()
    subject.assert_close(example.call, example.output_names, got=outputs, expected=example.expected.outputs)
    subject.assert_close(example.call, example.names, got=gradients, expected=example.expected.gradients())
    if subject.function.linear and all(0 in y.shape for y in example.expected.outputs):
        # The slope of nothing is zero.
        subject.assert_first_order(example.call, transforms.first_order(example))


@holds("FWD-PURE", where=lambda f: not f.inplace, examples=0.6)
def test_fwd_pure(subject, data):
    """A call leaves the inputs alone: values, versions, layouts and flags. VJP-PURE says it of backward."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    found = "; ".join(example.changed_inputs())
    subject.assert_equal(example.call, "what changed in the inputs", got=found or "nothing", expected="nothing")


@holds("FWD-PURE", where=lambda f: f.inplace, examples=0.6, needs="inplace views requires_grad")
def test_fwd_dirty(subject, data):
    """A Function that changes its inputs raises their versions and returns the same objects."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    call, version = example.call, subject.implementation.version
    outputs, dirty, versions = example.run_in_place()
    for slot, x, before in zip(subject.function.inplace, dirty, versions, strict=True):
        name = subject.function.arguments[slot].name
        what, got = "version of the dirty inputs", f"the version of {name} is the one before the call"
        why = f"a change of {name} through .data, detach() or NumPy goes unnoticed; change {name} itself"
        rose, shown = version(x) > before, {"component": {"aspect": "declared"}}
        subject.assert_that(rose, call, what, got=got, expected="a higher one", hint=why, **shown)
        cure = f"call ctx.mark_dirty({name}) in forward, and return {name}"
        what, got = "dirty inputs", f"{name} was changed in place, but what forward returns is not {name}"
        back = any(y is x for y in outputs)
        subject.assert_that(back, call, what, got=got, expected=f"{name} itself", hint=cure, **shown)


@holds("FWD-GRADFLAG", examples=0.6, needs="requires_grad")
def test_fwd_gradflag(subject, data):
    """Outputs require grad exactly if they are differentiable and an input does, and share one node."""
    example = subject.example(data.draw(subject.calls(ANY_MASK), label="call"))
    call, implementation, outputs = example.call, subject.implementation, example.outputs()
    flags = [implementation.requires_grad(y) for y in outputs]
    expected = [o.differentiable and any(example.track) for o in subject.function.outputs]
    subject.assert_equal(call, "requires_grad of the outputs", got=flags, expected=expected)
    nodes = {id(implementation.node(y)) for y, flag in zip(outputs, flags, strict=True) if flag}
    single = len(nodes) <= 1 or not subject.policy.one_node
    subject.assert_that(single, call, "the graph node of the outputs", got="several nodes", expected="one")
    subject.assert_unrecorded(example, example.outputs_unrecorded())


@holds("FWD-DTYPE", examples=0.6)
def test_fwd_dtype(subject, data):
    """Shape, dtype and device of the outputs are the documented ones in every dtype."""
    call = data.draw(subject.calls(ANY_MASK), label="call")
    for dtype in subject.dtypes:
        example = subject.example(recast(call, dtype, subject.function))
        got, expected = [subject.implementation.describe(y) for y in example.outputs()], example.expected.descriptions
        subject.assert_equal(example.call, "shape, dtype and device of the outputs", got=got, expected=expected)
