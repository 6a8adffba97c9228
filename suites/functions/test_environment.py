"""Custom Functions under compilers, autocast, saved-tensor hooks, threads, on other devices, and their memory."""

from hypothesis import strategies as st

from autograd_conformance.harness import scenarios, transforms
from autograd_conformance.harness.marks import holds
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.strategies.calls import varied


@holds("ENV-COMPILE", needs="compile", examples=0.08, slow=True)
def test_env_compile(subject, data):
    call = data.draw(subject.calls(layouts=False), label="call")
    # What is compiled for other values is used again.
    earlier = subject.example(varied(call, subject.function))
    example = subject.example(call)
    outputs, gradients = transforms.compiled(example, earlier)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=example.expected_outputs)
    subject.assert_close(example.call, example.names, got=gradients, expected=example.expected_gradients())


@holds("ENV-AUTOCAST", where=lambda f: not f.inplace, needs="autocast", dtypes=("float32",), examples=0.6)
def test_env_autocast(subject, data):
    calls = subject.calls(layouts=False, unused=False, smooth=True)
    example = subject.example(data.draw(calls, label="call"))
    lowered = example.lowered("bfloat16")
    whole = (lowered.expected_outputs, lowered.expected_gradients())
    outputs, gradients = subject.unless_refused(lambda: transforms.autocast(example, "bfloat16"), otherwise=whole)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=whole[0])
    subject.assert_close(example.call, example.names, got=gradients, expected=whole[1])


@holds("ENV-SAVED-HOOKS", needs="saved_hooks", examples=0.6)
def test_env_saved_hooks(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    expected = example.run()[1]
    with subject.implementation.offload():
        _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    got, expected = pullback(example.cotangents), example.near(expected, example.expected_gradients())
    # Not bit for bit: an unpacked tensor may lie otherwise than the packed one.
    hint = "under saved-tensor hooks"
    subject.assert_close(example.call, example.names, got=got, expected=expected, slack=2 * SAFETY, hint=hint)


@holds("ENV-SAVED-HOOKS", needs="checkpoint", examples=0.6, variant="checkpoint")
def test_env_checkpoint(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    expected = example.run()[1]
    f = subject.implementation.checkpoint(example.f)
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    got = pullback(example.cotangents)
    subject.assert_same(example.call, example.names, got=got, expected=expected, hint="under checkpointing")


@holds("ENV-THREADS", needs="threads", examples=0.3)
def test_env_threads(subject, data):
    drawn = data.draw(st.lists(subject.calls(), min_size=1, max_size=3), label="calls")
    # State that calls share is mistaken for their own where the shapes are the same.
    drawn = [*drawn, *(varied(call, subject.function) for call in drawn)]
    examples = [subject.example(call) for call in drawn]
    alone = [example.run()[1] for example in examples]
    together = scenarios.concurrently([subject.example(call) for call in drawn])
    for example, rounds, expected in zip(examples, together, alone, strict=True):
        for got in rounds:
            subject.assert_same(example.call, example.names, got=got, expected=expected, hint="several threads at once")


@holds("ENV-DEVICE", examples=0.5, simulated=True)
def test_env_device(subject, data):
    example = subject.example(data.draw(subject.calls(layouts=False, unused=False), label="call"))
    outputs, gradients = example.run()
    subject.assert_described(example, outputs, gradients)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=example.expected_outputs)
    subject.assert_close(example.call, example.names, got=gradients, expected=example.expected_gradients())


@holds("ENV-DEVICE", examples=0.5, abstract=True)
def test_env_abstract_device(subject, data):
    example = subject.example(data.draw(subject.calls(layouts=False, unused=False), label="call"))
    subject.assert_described(example, *example.run())


@holds("MEM-FREE", needs="memory", examples=0.4)
def test_mem_free(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    alive = scenarios.left_behind(example)
    hint = "a tensor stored on ctx that is an output makes a cycle; a class attribute or a cache keeps tensors for ever"
    subject.assert_equal(example.call, "what is alive after the call", got=alive, expected=[], hint=hint)
