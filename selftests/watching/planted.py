"""A program whose Functions have faults, each beside a right one; it is watched, and nothing of it is declared."""

import sys

import torch
from torch.autograd import Function


def made(name, forward, backward):
    """A Function of this module."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__}
    return type(name, (Function,), {**methods, "__qualname__": name})


class Scaling:
    """An object that no text describes, with a tensor in it."""

    def __init__(self):
        self.factor = torch.full((), 3.0)

    def __reduce__(self):
        raise TypeError("not to be pickled, nor copied")


torch.manual_seed(0)
SCALING, LAYER, STATE = Scaling(), torch.nn.Linear(4, 3), {"calls": 0}


def squared(ctx, x, *others):
    ctx.save_for_backward(x)
    ctx.others = others
    return x * x


def none(ctx):
    return (None,) * len(ctx.others)


def gradient_of_square(ctx, g):
    return 2 * g * ctx.saved_tensors[0], *none(ctx)


def scaled(ctx, x, scaling):
    ctx.scaling = scaling
    return x * scaling.factor


def layered(ctx, x, layer):
    ctx.layer = layer
    return layer(x)


def rows(ctx, x):
    ctx.shape = x.shape
    return x.sum(1)


def product(ctx, a, b):
    ctx.save_for_backward(a, b)
    return a * b


def gradients_of_product(ctx, g):
    a, b = ctx.saved_tensors
    return g * b, g * a


def only_with_both(ctx, g):
    a, b = ctx.saved_tensors
    both = all(ctx.needs_input_grad)
    return g * b * (1 if both else 2), g * a


def twice_the_first(ctx, g):
    a, b = ctx.saved_tensors
    return (2 * g * a, None) if a is b else (3 * g * b, g * a)


def writing_into_the_cotangent(ctx, g):
    return g.mul_(2 * ctx.saved_tensors[0]), *none(ctx)


def kept_on_ctx(ctx, x):
    ctx.x = x
    return x * x


def gradient_of_kept(ctx, g):
    return 2 * g * ctx.x


def kept_output(ctx, x):
    ctx.y = x * x
    ctx.save_for_backward(x)
    return ctx.y


def in_double(ctx, g):
    return (2 * g * ctx.saved_tensors[0]).double(), *none(ctx)


def as_double(ctx, x):
    ctx.save_for_backward(x)
    ctx.others = ()
    return (x * x).to(torch.float64)


def counting(ctx, g):
    STATE["calls"] += 1
    return 2 * g * ctx.saved_tensors[0] * (1 + STATE["calls"] % 2), *none(ctx)


def clipped(ctx, g):
    return 2 * g.clamp(-0.5, 0.5) * ctx.saved_tensors[0], *none(ctx)


def switching(ctx, g):
    torch.set_num_threads(3 - min(torch.get_num_threads(), 2))
    return 2 * g * ctx.saved_tensors[0], *none(ctx)


def unwritten(ctx, g):
    found = torch.empty_like(g)
    found[1:] = (2 * g * ctx.saved_tensors[0])[1:]
    return found, *none(ctx)


def contiguous_only(ctx, g):
    memory = torch.as_strided(g, g.shape, (1,) * g.dim()) if not g.is_contiguous() else g
    return memory[:, None].expand(ctx.shape).clone()


def recomputed(ctx, x, run, *weights):
    ctx.save_for_backward(x, *weights)
    ctx.run = run
    return run(x)


def through_recomputation(ctx, g):
    with torch.enable_grad():
        saved, *weights = ctx.saved_tensors
        x = saved.detach().requires_grad_()
        wanted = [x, *weights]
        needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[2:]]
        some = [each for each, needs in zip(wanted, needed, strict=True) if needs]
        found = iter(torch.autograd.grad(ctx.run(x), some, g))
    first, *others = [next(found) if needs else None for needs in needed]
    return first, None, *others


def twice_the_weights(ctx, g):
    first, _, *others = through_recomputation(ctx, g)
    return first, None, *(None if h is None else 2 * h for h in others)


def in_backward_alone(ctx, g):
    if not torch.autograd._is_checkpoint_valid():
        raise RuntimeError("use .backward()")
    return gradient_of_square(ctx, g)


def twice_in_backward_alone(ctx, g):
    return 2 * in_backward_alone(ctx, g)[0], *none(ctx)


def emptying(ctx, x):
    y = x * x
    ctx.save_for_backward(x.clone())
    ctx.others = ()
    x.untyped_storage().resize_(0)
    return y


def in_single_precision(ctx, g):
    found = torch.empty(g.shape)
    found[range(len(g))] = 2 * g * ctx.saved_tensors[0]
    return found


# By name: forward, backward, the other arguments, and the property that names the fault; empty for a right Function.
FUNCTIONS = {
    "WithObject": (scaled, lambda ctx, g: (g * ctx.scaling.factor, None), "object", ""),
    "WrongWithObject": (scaled, lambda ctx, g: (g * ctx.scaling.factor * 2, None), "object", "VJP-FD"),
    "WithLayer": (layered, lambda ctx, g: (g @ ctx.layer.weight, None), "layer", ""),
    "WrongWithLayer": (layered, lambda ctx, g: (g @ ctx.layer.weight.abs(), None), "layer", "VJP-FD"),
    "WithClosure": (squared, gradient_of_square, "closure", ""),
    "WrongWithClosure": (squared, lambda ctx, g: (g * ctx.saved_tensors[0], None), "closure", "VJP-FD"),
    "Product": (product, gradients_of_product, "two", ""),
    "WrongMask": (product, only_with_both, "two", "VJP-MASK"),
    "Writes": (squared, writing_into_the_cotangent, "one", "VJP-PURE"),
    "KeepsInput": (kept_on_ctx, gradient_of_kept, "one", "VJP-INPLACE-SAFE"),
    "Leaks": (kept_output, lambda ctx, g: 2 * g * ctx.saved_tensors[0], "one", "MEM-FREE"),
    "CastsOutput": (as_double, gradient_of_square, "one", ""),
    "CastsGradient": (squared, in_double, "one", ""),
    "Counts": (squared, counting, "one", "VJP-REPEAT"),
    "Clips": (squared, clipped, "one", "VJP-LINEAR"),
    "Switches": (squared, switching, "one", "ENV-SETTINGS"),
    "Unwritten": (squared, unwritten, "one", "MEM-WRITTEN"),
    "Rows": (rows, lambda ctx, g: g[:, None].expand(ctx.shape).clone(), "matrix", ""),
    "RowsOfMemory": (rows, contiguous_only, "matrix", "VJP-COTANGENT-LAYOUT"),
    "SameTwice": (product, gradients_of_product, "same", ""),
    "Block": (recomputed, through_recomputation, "layer and weights", ""),
    "WrongBlock": (recomputed, twice_the_weights, "layer and weights", "VJP-FD"),
    "Method": (recomputed, through_recomputation, "method and weights", ""),
    "WrongMethod": (recomputed, twice_the_weights, "method and weights", "VJP-FD"),
    "Around": (recomputed, through_recomputation, "closure and weights", ""),
    "WrongAround": (recomputed, twice_the_weights, "closure and weights", "VJP-FD"),
    "BackwardAlone": (squared, in_backward_alone, "one", ""),
    "WrongBackwardAlone": (squared, twice_in_backward_alone, "one", "VJP-FD"),
    "Empties": (emptying, gradient_of_square, "copy", ""),
    "WrongEmpties": (emptying, lambda ctx, g: g * ctx.saved_tensors[0], "copy", "VJP-FD"),
    "SinglePrecision": (squared, in_single_precision, "one", ""),
    "WrongSinglePrecision": (squared, lambda ctx, g: 2 * in_single_precision(ctx, g), "one", "VJP-FD"),
    "SeveralDtypes": (product, gradients_of_product, "single and half", ""),
    "WrongSeveralDtypes": (product, lambda ctx, g: (g * ctx.saved_tensors[1], g), "single and half", "VJP-FD"),
    "WrongTwice": (product, twice_the_first, "two", "VJP-FD"),
}  # fmt: skip

CLASSES = {name: made(name, forward, backward) for name, (forward, backward, _, _) in FUNCTIONS.items()}


def arguments(kind):
    """The arguments of a call."""
    x, layer = torch.randn(4, requires_grad=True), LAYER
    given = {
        "object": (x, SCALING),
        "layer": (torch.randn(5, 4, requires_grad=True), LAYER),
        "closure": (x, lambda: x),
        "two": (x, torch.randn(4, requires_grad=True)),
        "one": (x,),
        "matrix": (torch.randn(3, 5, requires_grad=True),),
        "same": (x, x),
        "copy": (x * 1,),
        "layer and weights": (torch.randn(5, 4, requires_grad=True), LAYER, *LAYER.parameters()),
        "method and weights": (torch.randn(5, 4, requires_grad=True), LAYER.forward, *LAYER.parameters()),
        "closure and weights": (torch.randn(5, 4, requires_grad=True), lambda x: layer(x), *layer.parameters()),
        "single and half": (x, torch.randn(4, dtype=torch.float16, requires_grad=True)),
    }
    return given[kind]


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        total = 0.0
        for name, (_, _, kind, _) in FUNCTIONS.items():
            total += CLASSES[name].apply(*arguments(kind)).double().sum()
        total.backward()
    print("the end", float(total.detach()).hex(), torch.rand(1).item())
