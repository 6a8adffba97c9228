"""Powers as Functions with all rules, which are off by a factor: so a result shows whether they were used."""


def save_inputs(ctx, inputs, output):
    """A `setup_context` that saves the inputs for backward and for jvp."""
    ctx.save_for_backward(*inputs)
    ctx.save_for_forward(*inputs)


def _product(x, count):
    found = x
    for _ in range(count - 1):
        found = found * x
    return found


def times_function(subject):
    """The product of two numbers, with all rules."""
    times = subject.custom(
        name="Times",
        forward=lambda x, y: x * y,
        setup_context=save_inputs,
        backward=lambda ctx, g: tuple(times(g, other) for other in ctx.saved_tensors[::-1]),
        jvp=lambda ctx, t, u: t * ctx.saved_tensors[1] + u * ctx.saved_tensors[0],
        generate_vmap_rule=True,
    )
    return times


def power_function(subject, exponent, factor, written=False, calling=False):
    """A power of a number, made of products; its backward and its jvp are off by a factor.

    The batching rule is ``written`` by hand, or generated. Backward and jvp multiply, or are ``calling`` a
    Function that does.
    """
    times = times_function(subject) if calling else lambda x, y: x * y

    def rule(ctx, given):
        (x,) = ctx.saved_tensors
        for _ in range(exponent - 1):
            given = times(x, given)
        return factor * exponent * given

    cls = subject.define(
        forward=lambda x: _product(x, exponent),
        setup_context=save_inputs,
        backward=rule,
        jvp=rule,
        vmap=(lambda info, in_dims, x: (cls.apply(x), in_dims[0])) if written else None,
        generate_vmap_rule=not written,
    )
    return cls
