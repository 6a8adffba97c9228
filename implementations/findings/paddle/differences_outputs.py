"""Differences in arguments and outputs between apply of a PyLayer and that of a torch.autograd.Function."""

import sys
from collections import namedtuple

import paddle

Pair = namedtuple("Pair", "a b")


def called(forward, *args):
    backward = staticmethod(lambda ctx, *cotangents: cotangents[0])
    layer = type("Layer", (paddle.autograd.PyLayer,), {"forward": staticmethod(forward), "backward": backward})
    try:
        return layer.apply(*args)
    except ValueError as error:
        return str(error).strip().splitlines()[0]


def marked(ctx, x):
    ctx.mark_non_differentiable(x)
    return x, 2 * x


x = paddle.to_tensor(3.0, stop_gradient=False)
z = 2 * x
called(marked, z)
facts = {
    "a marked input does not require grad any more": z.stop_gradient,
    "an integer output requires grad": not called(lambda _, x: x.astype("int64"), x).stop_gradient,
    "a tensor in a list is tracked": not called(lambda _, xs: 2 * xs[0], [x]).stop_gradient,
    "a tensor in a list that is returned is tracked": not called(lambda _, x: [2 * x], x)[0].stop_gradient,
    "one output has to be a tensor": isinstance(called(lambda *_: (), x), str),
    "a named tuple stays one": isinstance(called(lambda _, x: Pair(2 * x, 3 * x), x), Pair),
    "a leaf cannot be returned": isinstance(called(lambda _, x: x, x), str),
}
print("\n".join(f"{fact}: {holds}" for fact, holds in facts.items()))
print("" if any(facts.values()) else "holds")
sys.exit(any(facts.values()))
