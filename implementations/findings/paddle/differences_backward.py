"""Differences between backward of a PyLayer and that of a torch.autograd.Function."""

import sys

import paddle


def layer(backward):
    methods = {"forward": staticmethod(lambda ctx, x, *_: 2 * x), "backward": staticmethod(backward)}
    return type("Layer", (paddle.autograd.PyLayer,), methods)


def error(backward, *more):
    x = paddle.to_tensor(3.0, stop_gradient=False)
    try:
        paddle.grad(layer(backward).apply(x, *more), x, create_graph=True)
    except (OSError, ValueError) as raised:
        return f"{type(raised).__name__}: {str(raised).strip().splitlines()[0]}"


kept = paddle.to_tensor(2.0)
x = paddle.to_tensor(3.0, stop_gradient=False)
layer(lambda ctx, g: kept).apply(x).backward()
constant = paddle.grad(layer(lambda ctx, g: kept * 1).apply(x), x, create_graph=True)[0]
quotient, ended = 1 / x, False
try:
    for _ in range(4):
        (quotient,) = paddle.grad(quotient, x, create_graph=True)
except RuntimeError:
    ended = True
found = {
    "what an error of backward becomes": error(lambda ctx, g: {}["missing"]),
    "the message for a missing gradient": error(lambda ctx, g: (), paddle.ones([])),
    "what None beyond the arguments gives": error(lambda ctx, g: (g, None)),
    "whether .grad shares memory with what backward returned": x.grad.data_ptr() == kept.data_ptr(),
    "whether a constant gradient requires grad": not constant.stop_gradient,
    "whether the derivatives of a quotient come to an end": ended,
}
print("\n".join(f"{name}: {value}" for name, value in found.items()) if any(found.values()) else "holds")
sys.exit(any(map(bool, found.values())))
