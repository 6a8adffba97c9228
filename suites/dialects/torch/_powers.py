"""Powers as Functions with all rules, which are off by a factor: so a result shows whether they were used."""

from autograd_conformance.suites.contract._handwritten import define


def _product(x, count):
    found = x
    for _ in range(count - 1):
        found = found * x
    return found


def times_function(subject):
    """The product of two numbers, with all rules."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    cls = define(
        subject,
        name="Times",
        forward=lambda x, y: x * y,
        setup_context=setup_context,
        backward=lambda ctx, g: tuple(times(g, other) for other in ctx.saved_tensors[::-1]),
        jvp=lambda ctx, t, u: t * ctx.saved_tensors[1] + u * ctx.saved_tensors[0],
    )
    cls.generate_vmap_rule = True
    times = cls.apply
    return times


def power_function(subject, exponent, factor, written=False, calling=False):
    """A power of a number, made of products; its backward and its jvp are off by a factor.

    The batching rule is ``written`` by hand, or generated. Backward and jvp multiply, or are ``calling`` a
    Function that does.
    """
    times = times_function(subject) if calling else lambda x, y: x * y

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def rule(ctx, given):
        (x,) = ctx.saved_tensors
        for _ in range(exponent - 1):
            given = times(x, given)
        return factor * exponent * given

    def vmap(info, in_dims, x):
        return cls.apply(x), in_dims[0]

    methods = {
        "forward": lambda x: _product(x, exponent),
        "setup_context": setup_context,
        "backward": rule,
        "jvp": rule,
    }
    cls = define(subject, **methods, vmap=vmap if written else None)
    cls.generate_vmap_rule = not written
    return cls
