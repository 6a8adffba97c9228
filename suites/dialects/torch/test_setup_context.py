"""setup_context with a forward that has keyword-only parameters."""

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps


@keeps("SETUP-08")
def test_keyword_only_parameters(subject, data):
    """apply takes keyword-only parameters or their defaults, and the gradient is right."""

    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    shifted = subject.custom(
        forward=lambda x, scale=1, *, first=3, second=5: x * scale + first + 10 * second,
        setup_context=setup_context,
        backward=lambda ctx, g: (g * ctx.scale, None),
    )
    numbers = st.integers(-3, 3)
    positional = subject.draw(data, st.lists(numbers, max_size=1), "scale")
    optional = st.fixed_dictionaries({}, optional={"first": numbers, "second": numbers})
    named = subject.draw(data, optional, "keyword arguments")
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    y = subject.assert_accepted(lambda: shifted(x, *positional, **named), "apply with keyword-only parameters")
    scale, first, second = *(positional or [1]), named.get("first", 3), named.get("second", 5)
    subject.assert_same("output", got=y, expected=subject.tensor([1.0, -2.0]) * scale + first + 10 * second)
    gradient = torch.autograd.grad(y.sum(), x)[0]
    subject.assert_same("gradient", got=gradient, expected=torch.full_like(x, scale))
