"""A tensor that is given twice among the outputs is refused, by paddle.grad and by paddle.autograd.backward."""

import sys

import paddle


def refusal(differentiate):
    x = paddle.to_tensor(3.0, stop_gradient=False)
    y = x * x
    try:
        differentiate(x, [y, y])
    except (AssertionError, RuntimeError) as raised:
        return f"{type(raised).__name__}: {str(raised).strip().splitlines()[-1].strip()}"


found = {
    "paddle.grad": refusal(lambda x, outputs: paddle.grad(outputs, x)),
    "paddle.autograd.backward": refusal(lambda _, outputs: paddle.autograd.backward(outputs)),
}
print("\n".join(f"{name}: {value}" for name, value in found.items()) if any(found.values()) else "holds")
sys.exit(any(map(bool, found.values())))
