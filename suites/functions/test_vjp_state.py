"""What the backward of a custom Function may change, share and remember."""

from autograd_conformance.harness import scenarios
from autograd_conformance.harness.marks import holds
from autograd_conformance.strategies.calls import varied


@holds("VJP-PURE", examples=0.8, needs="views inplace requires_grad")
def test_vjp_pure(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    outputs, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    kept = (*example.primals, *outputs, *example.cotangents)
    names = (*example.input_names, *example.output_names, *(f"cotangent of {n}" for n in example.output_names))
    before = dict(zip(names, map(example.state, kept), strict=True))
    gradients = pullback(example.cotangents)
    after = dict(zip(names, map(example.state, kept), strict=True))
    changed = [name for name in names if before[name] != after[name]]
    subject.assert_equal(example.call, "what backward changed", got=changed, expected=[])
    shared = example.sharing_memory(gradients, (*example.primals, *outputs))
    subject.assert_equal(example.call, "what shares memory with a gradient", got=shared, expected=[])


@holds("VJP-PURE", examples=0.5, needs="views accumulate", variant="leaves")
def test_vjp_pure_leaves(subject, data):
    example = subject.example(data.draw(subject.calls(full=True), label="call"))
    shared = scenarios.shared_by_leaves(example)
    subject.assert_equal(example.call, "what shares memory with a leaf's .grad", got=shared, expected=[])


@holds("VJP-PURE", examples=0.5, needs="views", variant="owned")
def test_vjp_pure_owned(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    implementation = subject.implementation
    _, pullback = implementation.vjp(example.f, example.primals, track=example.track)
    given = pullback(example.placed(example.cotangent_values))
    kept = [None if g is None else implementation.numpy(g).copy() for g in given]
    pullback(example.placed(example.other_cotangent_values()))
    subject.assert_same(example.call, example.names, got=given, expected=kept, hint="a later backward changed these")
    for gradient in given:
        if gradient is not None:
            implementation.fill_(gradient, 7)
    again = pullback(example.placed(example.cotangent_values))
    hint = "changing the gradients of an earlier backward changed these: a saved tensor or a kept buffer was given away"
    subject.assert_same(example.call, example.names, got=again, expected=kept, hint=hint)


@holds("VJP-REPEAT", examples=0.8)
def test_vjp_repeat(subject, data):
    # Drawn before anything runs: a failure that does not repeat itself must not change what is drawn.
    call, between = (data.draw(subject.calls(), label=label) for label in ("call", "call in between"))
    example = subject.example(call)
    outputs, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    # Copies: a later call may overwrite what an earlier one gave away.
    kept, first = example.copied(outputs), example.copied(pullback(example.cotangents))
    again = pullback(example.cotangents)
    subject.assert_same(call, example.names, got=again, expected=first, hint="a second backward of the same call")
    repeated = subject.example(call).run()
    subject.assert_same(call, example.names, got=repeated[1], expected=first, hint="an identical second call")
    subject.example(between).run()
    other = subject.example(varied(call, subject.function))
    got = other.run()[1]
    hint = "a call with other values after one with the same shapes"
    subject.assert_close(other.call, other.names, got=got, expected=other.expected_gradients(), hint=hint)
    hint = "the outputs of an earlier call, after one with the same shapes: they share a buffer"
    subject.assert_same(call, example.output_names, got=outputs, expected=kept, hint=hint)
    got = pullback(example.cotangents)
    subject.assert_same(call, example.names, got=got, expected=first, hint="a second backward after other calls")
    later = subject.example(call).run()
    subject.assert_same(call, example.output_names, got=later[0], expected=kept, hint="after another call")
    subject.assert_same(call, example.names, got=later[1], expected=first, hint="after another call")


@holds("VJP-INPLACE-SAFE", where=lambda f: not f.inplace, needs="saved_check views")
def test_vjp_inplace_safe(subject, data):
    example = subject.example(data.draw(subject.calls(layouts=False, unused=False), label="call"))
    expected = example.expected_gradients()
    outputs, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    candidates = dict(zip((*example.input_names, *example.output_names), (*example.primals, *outputs), strict=True))
    name = subject.draw(data, list(candidates), "changed in place before backward")
    subject.implementation.fill_(candidates[name], example.other_value(candidates[name]))
    gradients = subject.unless_refused(lambda: pullback(example.cotangents), otherwise=expected, wanted=True)
    hint = "no error was raised: save tensors with save_for_backward, which checks their versions"
    subject.assert_close(example.call, example.names, got=gradients, expected=expected, hint=hint)
