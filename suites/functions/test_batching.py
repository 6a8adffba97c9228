"""Custom Functions under batching transforms."""

from dataclasses import replace

from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.scope import PLAIN


@holds("BATCH-VMAP", where=lambda f: f.batching, needs="vmap", examples=0.8)
def test_batch_vmap(subject, data):
    """Outputs and gradients under vmap are those of single calls, whatever axis is batched."""
    example = subject.example(data.draw(subject.calls(PLAIN), label="call"))
    axes = subject.draw(data, transforms.batch_axes(example), transforms.AXES)
    batch = transforms.Batch(example, axes, subject.draw(data, transforms.batch_sizes(example), transforms.SIZE))
    outputs, gradients = batch.run()
    subject.assert_close(example.call, example.output_names, got=outputs, expected=batch.expected_outputs)
    subject.assert_close(example.call, example.names, got=gradients(), expected=batch.expected_gradients)


@holds("BATCH-VMAP", where=lambda f: not f.inplace, needs="batched_cotangents", examples=0.5, variant="cotangents")
def test_batch_cotangents(subject, data):
    """A batch of cotangents gives the gradients of each, or is refused."""
    example = subject.example(data.draw(subject.calls(replace(PLAIN, mask="full")), label="call"))
    got, expected = transforms.batched_cotangents(example, subject.draw(data, (2, 1, 3), transforms.SIZE))
    gradients = subject.unless_refused(got, otherwise=expected)
    subject.assert_close(example.call, example.names, got=gradients, expected=expected)
