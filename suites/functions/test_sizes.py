"""Long tensors: lengths around the blocks of kernels, where the last block is another one."""

from dataclasses import replace

from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.scope import PLAIN
from autograd_conformance.strategies.shapes import BLOCKS, block_shape_tuples

# In lower precision the bound of a long sum admits nearly anything.
PRECISE = ("float64", "float32")


def _any_length(function):
    return all(block_shape_tuples(function, lengths) for lengths in BLOCKS)


def _drawn(subject, data):
    """An example of each size: small, middle and large."""
    for lengths in BLOCKS:
        shapes = block_shape_tuples(subject.function, lengths)
        yield subject.example(data.draw(subject.calls(replace(PLAIN, specials="none"), shapes=shapes), label="call"))


@holds("FWD-VALUE", where=_any_length, dtypes=PRECISE, examples=0.12, variant="sizes")
def test_fwd_value_sizes(subject, data):
    """The outputs of long tensors match the reference."""
    for example in _drawn(subject, data):
        got, expected = example.outputs(), example.expected.outputs
        subject.assert_close(example.call, example.output_names, got=got, expected=expected)


@holds("VJP-REF", where=_any_length, dtypes=PRECISE, examples=0.12, variant="sizes")
def test_vjp_ref_sizes(subject, data):
    """The gradients of long tensors match the reference."""
    for example in _drawn(subject, data):
        got, expected = example.run()[1], example.expected.gradients()
        subject.assert_close(example.call, example.names, got=got, expected=expected)
