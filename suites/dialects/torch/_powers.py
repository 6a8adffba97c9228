"""Powers as Functions with all rules, which are off by a factor: so a result shows whether they were used."""

from autograd_conformance.suites.contract._handwritten import define


def _product(x, count):
    found = x
    for _ in range(count - 1):
        found = found * x
    return found


def power_function(subject, exponent, factor, written=False):
    """A power of a number, made of products; its backward and its jvp are off by a factor.

    The batching rule is ``written`` by hand, or generated.
    """

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def rule(ctx, given):
        (x,) = ctx.saved_tensors
        return factor * exponent * _product(x, exponent - 1) * given

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
