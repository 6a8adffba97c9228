"""backward() takes views of the cotangent that a backward returns as the .grad of leaves, without copying them.

Two leaves then share their .grad, and a later pass through one of them changes that of the other, and the caller's
cotangent. "The attribute will then contain the gradients computed and future calls to backward() will accumulate (add)
gradients into it." (Tensor.grad)
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad.html
https://github.com/pytorch/pytorch/issues/34082
"""

import torch


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        return g.view_as(g), g.view_as(g)


x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
cotangent = torch.ones(2)
Sum.apply(x, y).backward(cotangent)
shared = x.grad.data_ptr() == y.grad.data_ptr()
(5 * x).sum().backward()
if shared or cotangent.tolist() != [1, 1]:
    print(f"whether x.grad and y.grad share memory: {shared}, but should be False")
    print(f"the cotangent after a pass through x is {cotangent.tolist()}, but should be [1.0, 1.0]")
    print(f"y.grad after that pass is {y.grad.tolist()}, but should be [1.0, 1.0]")
    raise SystemExit(1)
print("holds")
