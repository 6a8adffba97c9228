"""What the backward of a custom Function may change, share and remember."""

from autograd_conformance.harness.outcomes import Kind
from autograd_conformance.harness.testing import scenarios
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.harness.testing.observe import changes, copied, other_values, sharing_memory, state
from autograd_conformance.strategies.calls import varied
from autograd_conformance.strategies.scope import FULL_MASK, PLAIN


def _how(changed):
    """What is said of a change that no value shows."""
    written = all(each.startswith("version ") for each in changed)
    return " (was written to in place, with the same values)" if written else ""


@holds("VJP-PURE", examples=0.8)
def test_vjp_pure(subject, data):
    """backward changes no input, output or cotangent, and gradients share no memory with inputs or outputs."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    outputs, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    kept = (*example.primals, *outputs, *example.cotangents)
    names = (*example.input_names, *example.output_names, *(f"cotangent of {n}" for n in example.output_names))
    before = [state(subject.implementation, x) for x in kept]
    gradients = pullback(example.cotangents)
    after = [state(subject.implementation, x) for x in kept]
    changed = [
        name + _how(changes(old, new)) for name, old, new in zip(names, before, after, strict=True) if changes(old, new)
    ]
    subject.assert_equal(example.call, "what backward changed", got=changed, expected=[], kind=Kind.MUTATED)
    if "views" not in subject.implementation.capabilities:
        return
    held = dict(zip(names, kept[: len(example.primals) + len(outputs)], strict=False))
    shared = sharing_memory(subject.implementation, dict(zip(example.names, gradients, strict=True)), held)
    subject.assert_equal(example.call, "what shares memory with a gradient", got=shared, expected=[], kind=Kind.SHARED)


@holds("VJP-PURE", examples=0.5, needs="views accumulate", variant="leaves")
def test_vjp_pure_leaves(subject, data):
    """The .grad of a leaf shares no memory with another .grad or with an input."""
    example = subject.example(data.draw(subject.calls(FULL_MASK), label="call"))
    shared = scenarios.shared_by_leaves(example)
    subject.assert_equal(
        example.call, "what shares memory with a leaf's .grad", got=shared, expected=[], kind=Kind.SHARED
    )


@holds("VJP-PURE", examples=0.5, needs="views", variant="owned")
def test_vjp_pure_owned(subject, data):
    """A later backward does not change gradients given before, and changing those does not change later ones."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    implementation = subject.implementation
    _, pullback = implementation.vjp(example.f, example.primals, track=example.track)
    given = pullback(example.placed(example.expected.cotangents))
    kept = [None if g is None else implementation.numpy(g).copy() for g in given]
    pullback(example.placed(example.expected.other_cotangents()))
    subject.choose("gradients", "of the first backward, after a second")
    subject.assert_same(example.call, example.names, got=given, expected=kept, hint="a later backward changed these")
    for gradient in given:
        if gradient is not None:
            implementation.fill_(gradient, 7)
    subject.choose("gradients", "of a third backward, after the first were changed")
    again = pullback(example.placed(example.expected.cotangents))
    hint = "changing earlier gradients changed these: backward returned a saved tensor or a buffer that it keeps"
    subject.assert_same(example.call, example.names, got=again, expected=kept, hint=hint)


@holds("VJP-REPEAT", examples=0.8)
def test_vjp_repeat(subject, data):
    """Repeated passes and calls give the same results, whatever calls run in between."""
    # Everything is drawn before anything runs, so that a failure that does not repeat cannot change what is drawn.
    call, between = (data.draw(subject.calls(), label=label) for label in ("call", "call in between"))
    example = subject.example(call)
    # Of a call without a backward, which may free them.
    outputs = example.outputs()
    _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    # Copies, since a later call may overwrite the results of an earlier one.
    i = subject.implementation
    kept, first = copied(i, outputs), copied(i, pullback(example.cotangents))
    subject.choose("repeated", "backward")
    again = pullback(example.cotangents)
    subject.assert_same(call, example.names, got=again, expected=first, hint="a second backward of the same call")
    subject.choose("repeated", "call")
    repeated = subject.example(call).run()
    subject.assert_same(call, example.names, got=repeated[1], expected=first, hint="an identical second call")
    subject.choose("repeated", "backward and call, after other calls")
    subject.example(between).run()
    other = subject.example(varied(call, subject.function))
    got = other.run()[1]
    hint = "this call follows one with the same shapes and other values: a state may be left over from that one"
    subject.assert_close(other.call, other.names, got=got, expected=other.expected.gradients(), hint=hint)
    hint = "the outputs of an earlier call, changed by a later call with the same shapes: both use one buffer"
    subject.assert_same(call, example.output_names, got=outputs, expected=kept, hint=hint)
    got = pullback(example.cotangents)
    subject.assert_same(call, example.names, got=got, expected=first, hint="a second backward after other calls")
    later = subject.example(call).run()
    subject.assert_same(call, example.output_names, got=later[0], expected=kept, hint="the same call after others")
    subject.assert_same(call, example.names, got=later[1], expected=first, hint="the same call after others")


@holds("VJP-INPLACE-SAFE", where=lambda f: not f.inplace, needs="saved_check views")
def test_vjp_inplace_safe(subject, data):
    """After an in-place change, backward gives the right gradients or raises."""
    example = subject.example(data.draw(subject.calls(PLAIN), label="call"))
    expected = example.expected.gradients()
    names = (*example.input_names, *example.output_names)
    changed = subject.draw(data, names, "changed in place before backward")
    for words, change in other_values(scenarios.dtype_of(example, changed)).items():
        subject.choose("changed to", words)
        held, backward = scenarios.overwritten(example, changed, change)
        # Nobody notices a change of these, so that more values are worth trying.
        subject.record.suspicion = subject.record.suspicion or ", ".join(held)
        gradients = subject.unless_refused(backward, otherwise=expected, wanted=True)
        hint = "no error was raised: save the tensor with save_for_backward, which checks its version"
        subject.assert_close(example.call, example.names, got=gradients, expected=expected, hint=hint)
