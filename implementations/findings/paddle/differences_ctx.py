"""Differences between the ctx of a PyLayer and that of a torch.autograd.Function."""

import sys

import paddle

SEEN = {}


class Square(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, other):
        y = x * x
        ctx.save_for_backward(x, y, other)
        ctx.set_materialize_grads(None)
        ctx.mark_non_differentiable(other)
        SEEN.update(ctx=ctx, early=ctx.saved_tensor())
        return y

    @staticmethod
    def backward(ctx, g):
        x, SEEN["output"], _ = ctx.saved_tensor()
        ctx.save_for_backward(0 * x, SEEN["output"], None)
        return 2 * x * g


x = paddle.to_tensor(3.0, stop_gradient=False)
y = Square.apply(x, "text")
gradients = [paddle.grad(y, x, retain_graph=True)[0].item() for _ in range(2)]
facts = {
    "ctx is no node of the graph": SEEN["ctx"] is not y.grad_fn,
    "what is saved can be read in forward": len(SEEN["early"]) == 3,
    "text can be saved and marked, and None given for a bool": True,
    "a saved output is the object that was returned": SEEN["output"] is y,
    f"saving in backward changes the next pass: {gradients}": gradients != [6.0, 6.0],
}
print("\n".join(f"{fact}: {holds}" for fact, holds in facts.items()))
print("" if any(facts.values()) else "holds")
sys.exit(any(facts.values()))
