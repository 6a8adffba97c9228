"""linear_operator 0.6.1: second derivatives of Matmul are detached without a word for operators with a function.

_bilinear_derivative calls torch.autograd.grad without create_graph.
"""

import torch
from linear_operator.operators import KernelLinearOperator

torch.manual_seed(0)
X, RHS = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 1, dtype=torch.float64)


def kernel(x1, x2, **_):
    return torch.exp(-(x1.unsqueeze(-2) - x2.unsqueeze(-3)).pow(2).sum(-1))


has_graph = []
for name, product in (
    ("KernelLinearOperator", lambda x: KernelLinearOperator(x, X, covar_func=kernel) @ RHS),
    ("plain torch", lambda x: kernel(x, X) @ RHS),
):
    x = X.clone().requires_grad_()
    gradient = torch.autograd.grad(product(x).sum(), x, create_graph=True)[0]
    has_graph.append(gradient.requires_grad)
    print(f"{name}: a gradient with create_graph=True has a graph: {gradient.requires_grad}")
raise SystemExit(has_graph != [True, True])
