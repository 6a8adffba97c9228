"""What an operator says of tensors without values, as compilers ask it, is what comes of tensors with values."""

from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.calls import with_inputs


def _foretells(function):
    facts = facts_of(function)
    # A fake kernel has no size that depends on values.
    return facts.foretells and not facts.resizes


def _laid(implementation, output):
    """Shape, dtype and device in words, with the strides that make a difference."""
    shape, dtype, device = implementation.describe(output)
    steps = [step for step, side in zip(implementation.strides(output), shape, strict=False) if side > 1]
    return f"{shape} {dtype} on {device}, strides {[] if 0 in shape else steps}"


# The orders of the axes in memory, of which a fake kernel by torch.empty(x.shape) knows nothing.
_ORDERS = ("transposed", "channels_last")


@holds("ENV-DEVICE", where=_foretells, needs="views", examples=0.3, variant="fake", own=True)
def test_env_device_fake(subject, data):
    """The outputs have the shapes, dtypes, devices and strides that the operator says, for every order of the axes."""
    example = subject.example(data.draw(subject.calls(), label="call"))
    implementation, call = subject.implementation, example.call
    what = "what the fake kernel says of the outputs"
    orders = (with_inputs(call, layout) for layout in example.input_layouts if layout in _ORDERS)
    for each in {str(each): each for each in map(subject.taken, [call, *orders])}.values():
        with subject.choice(each):
            laid = example.of(each)
            came, said = laid.outputs(), implementation.foretold(laid.f, laid.primals)
            got, expected = ([_laid(implementation, y) for y in outputs] for outputs in (said, came))
            subject.assert_equal(
                each,
                what,
                got=got,
                expected=expected,
                hint="got is what register_fake says, expected what the kernel returns",
            )
