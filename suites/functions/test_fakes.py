"""What an operator says of tensors without values, as compilers ask it, is what comes of tensors with values."""

from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.testing.marks import holds


def _foretells(function):
    facts = facts_of(function)
    # A fake kernel has no size that depends on values.
    return facts.foretells and not facts.resizes


def _laid(implementation, output):
    """Shape, dtype and device in words, with the strides that make a difference."""
    shape, dtype, device = implementation.describe(output)
    steps = [step for step, side in zip(implementation.strides(output), shape, strict=False) if side > 1]
    return f"{shape} {dtype} on {device}, strides {[] if 0 in shape else steps}"


@holds("ENV-DEVICE", where=_foretells, needs="views", examples=0.3, variant="fake", own=True)
def test_env_device_fake(subject, data):
    """The outputs have the shapes, dtypes, devices and strides that the operator says."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    implementation = subject.implementation
    came, said = example.outputs(), implementation.foretold(example.f, example.primals)
    got, expected = ([_laid(implementation, y) for y in outputs] for outputs in (said, came))
    what = "shape, dtype, device and strides of the outputs, as the fake kernel says"
    subject.assert_equal(example.call, what, got=got, expected=expected, hint="register_fake and the kernel disagree")
