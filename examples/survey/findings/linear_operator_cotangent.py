"""linear_operator 0.6.1: backward of inv_quad_logdet writes to the cotangent, so that whoever saved it cannot go on."""

import linear_operator
import torch

matrix = (torch.eye(4, dtype=torch.float64) * 3 + 1).requires_grad_()
cotangent, weight = torch.tensor(1.0, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
product = weight * cotangent
with linear_operator.settings.max_cholesky_size(1):
    logdet = linear_operator.to_linear_operator(matrix).inv_quad_logdet(logdet=True)[1]
torch.autograd.grad(logdet, matrix, cotangent)
try:
    product.backward()
except RuntimeError as raised:
    print("the cotangent's version is", cotangent._version, "and its other user raises", str(raised)[:120])
    raise SystemExit(1) from None
