"""Custom Functions under compilers, autocast, saved-tensor hooks, threads, on other devices, and their memory."""

from dataclasses import replace

from hypothesis import strategies as st

from autograd_conformance.harness.testing import scenarios, transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.strategies.calls import varied
from autograd_conformance.strategies.scope import CONTIGUOUS, PLAIN


@holds("ENV-COMPILE", needs="compile", examples=0.04, slow=True)
def test_env_compile(subject, data):
    """Compiled outputs and gradients match the reference, also when compiled for other values before."""
    call = data.draw(subject.calls(CONTIGUOUS), label="call")
    # The code that was compiled for other values is used again.
    earlier = subject.example(varied(call, subject.function))
    example = subject.example(call)
    outputs, gradients = transforms.compiled(example, earlier)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=example.expected.outputs)
    subject.assert_close(example.call, example.names, got=gradients, expected=example.expected.gradients())


@holds("ENV-AUTOCAST", where=lambda f: not f.inplace, needs="autocast", dtypes=("float32",), examples=0.6)
def test_env_autocast(subject, data):
    """Under autocast, outputs and gradients match the reference in its precision, or the call is refused."""
    dtype = subject.implementation.autocast_dtypes[0]
    calls = subject.calls(replace(PLAIN, smooth=True))
    example = subject.example(data.draw(calls, label="call"))
    expected = example.in_precision(dtype).expected
    whole = (expected.outputs, expected.gradients())
    outputs, gradients = subject.unless_refused(lambda: transforms.autocast(example, dtype), otherwise=whole)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=whole[0])
    subject.assert_close(example.call, example.names, got=gradients, expected=whole[1])


@holds("ENV-SAVED-HOOKS", needs="saved_hooks", examples=0.6)
def test_env_saved_hooks(subject, data):
    """Gradients are the same if hooks pack and unpack the saved tensors."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    expected = example.run()[1]
    with subject.implementation.offload():
        _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    got, expected = pullback(example.cotangents), example.near(expected, example.expected.gradients())
    # Not bit for bit: an unpacked tensor may have another memory layout than the packed one.
    hint = "under saved-tensor hooks"
    subject.assert_close(example.call, example.names, got=got, expected=expected, slack=2 * SAFETY, hint=hint)


@holds("ENV-SAVED-HOOKS", needs="checkpoint", examples=0.6, variant="checkpoint")
def test_env_checkpoint(subject, data):
    """Gradients are bit for bit the same under checkpointing."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    expected = example.run()[1]
    f = subject.implementation.checkpoint(example.f)
    _, pullback = subject.implementation.vjp(f, example.primals, track=example.track)
    got = pullback(example.cotangents)
    subject.assert_same(example.call, example.names, got=got, expected=expected, hint="under checkpointing")


@holds("ENV-THREADS", needs="threads", examples=0.3)
def test_env_threads(subject, data):
    """Calls in several threads at once give the gradients that they give alone."""
    drawn = data.draw(st.lists(subject.calls(), min_size=1, max_size=3), label="calls")
    # Only calls with the same shapes can mistake a shared state for their own.
    drawn = [*drawn, *(varied(call, subject.function) for call in drawn)]
    examples = [subject.example(call) for call in drawn]
    alone = [example.run()[1] for example in examples]
    for together, how in ((scenarios.by_turns, "by turns"), (scenarios.concurrently, "at once")):
        given = together([subject.example(call) for call in drawn])
        hint = f"several threads {how}"
        for example, rounds, expected in zip(examples, given, alone, strict=True):
            # Not bit for bit: kernels of a new thread may use another number of threads, hence another order of sums.
            near = example.near(expected, example.expected.gradients())
            for got in rounds:
                subject.assert_close(example.call, example.names, got=got, expected=near, slack=2 * SAFETY, hint=hint)


@holds("ENV-DEVICE", examples=0.5, simulated=True)
def test_env_device(subject, data):
    """On simulated devices and accelerators, values and gradients are right and stay on the device."""
    example = subject.example(data.draw(subject.calls(PLAIN), label="call"))
    outputs, gradients = example.run()
    subject.assert_described(example, outputs, gradients)
    subject.assert_close(example.call, example.output_names, got=outputs, expected=example.expected.outputs)
    subject.assert_close(example.call, example.names, got=gradients, expected=example.expected.gradients())


@holds("ENV-DEVICE", examples=0.5, abstract=True)
def test_env_abstract_device(subject, data):
    """On a device without values, shapes, dtypes and devices of outputs and gradients are right."""
    example = subject.example(data.draw(subject.calls(PLAIN), label="call"))
    subject.assert_described(example, *example.run())


@holds("MEM-FREE", needs="memory", examples=0.4)
def test_mem_free(subject, data):
    """After backward, once the caller has dropped everything, no tensor of the call is alive."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    alive = scenarios.left_behind(example)
    hint = "an output as an attribute of ctx makes a cycle; a class attribute or a cache keeps tensors for ever"
    what = "what is alive after the call"
    subject.assert_equal(example.call, what, got=alive, expected=[], hint=hint, compared=(alive, []))
