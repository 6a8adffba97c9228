"""ctx.needs_input_grad with default arguments and in passes for some inputs."""

from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import flags

# What may be passed for the three parameters that have defaults.
PASSED = st.lists(st.sampled_from(("tracked", "fixed", "number")), max_size=3)


def _arguments(subject, kinds):
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    values = {"tracked": x.detach().clone().requires_grad_(), "fixed": x.detach(), "number": 3}
    return [x, *(values[kind] for kind in kinds)]


@keeps("NIG-03")
def test_combined_style_counts_what_is_passed(subject, data):
    """In the combined style there is one flag for each argument that was passed."""
    seen = []

    def forward(ctx, x, a=None, b=2, c="text"):
        seen.append(ctx.needs_input_grad)
        return x * 2

    kinds = subject.draw(data, PASSED, "passed next to the first argument")
    subject.custom(name="Defaults", forward=forward)(*_arguments(subject, kinds))
    expected = (True, *(kind == "tracked" for kind in kinds))
    subject.assert_equal("ctx.needs_input_grad", got=seen[0], expected=expected)


@keeps("NIG-04")
def test_separate_style_counts_every_parameter(subject, data):
    """With setup_context there is one flag for each parameter, also those left at their defaults."""
    seen = []

    apply = subject.custom(
        name="Defaults",
        forward=lambda x, a=None, b=2, c="text": x * 2,
        setup_context=lambda ctx, inputs, output: seen.append((len(inputs), ctx.needs_input_grad)),
    )
    kinds = subject.draw(data, PASSED, "passed next to the first argument")
    apply(*_arguments(subject, kinds))
    expected = (True, *(kind == "tracked" for kind in kinds), *(False,) * (3 - len(kinds)))
    subject.assert_equal("number of inputs, ctx.needs_input_grad", got=seen[0], expected=(4, expected))


def _flags_in_a_partial_backward(subject, data):
    """The arguments whose gradients a pass asks for, and the flags that its backward gets."""
    polynomial = subject.polynomial(data, arguments=("tracked",), max_arguments=4)
    count = len(polynomial.tensors)
    some = flags(count).filter(any)
    wanted = subject.draw(data, some, "inputs of autograd.grad")
    run = subject.run(polynomial)
    run.gradients(polynomial.cotangents(), wrt=wanted)
    return wanted, run.seen.needs_in_backward


@keeps("NIG-06", examples=2)
def test_partial_backward_turns_the_other_flags_off(subject, data):
    """In a pass for some inputs, the flags are True for exactly these."""
    wanted, flags = _flags_in_a_partial_backward(subject, data)
    subject.assert_equal("ctx.needs_input_grad in a partial backward", got=flags, expected=wanted)


@keeps("NIG-06", variant="wanted")
def test_partial_backward_leaves_the_flags_of_what_is_wanted_on(subject, data):
    """In a pass for some inputs, the flags of these stay True."""
    wanted, flags = _flags_in_a_partial_backward(subject, data)
    got = [flag for flag, asked in zip(flags, wanted, strict=False) if asked]
    subject.assert_equal(
        "flags of the inputs that a partial backward is asked for", got=got, expected=[True] * sum(wanted)
    )
