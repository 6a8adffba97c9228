"""torchopt 0.7.3: AdamOp.UpdatesOp's gradient leaves out eps, and is 0 by a first moment that is exactly 0."""

import torch
from torchopt.accelerated_op.adam_op import AdamOp


def plain(mu, nu, others):
    b1, b2, eps, eps_root, count = others
    return mu / (1 - b1**count) / ((nu / (1 - b2**count) + eps_root).sqrt() + eps)


def gradients(update, moments, others):
    moments = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in moments]
    return [each.item() for each in torch.autograd.grad(update(*moments, others), moments)]


bad = 0
for moments, eps, eps_root in (
    ((0.3, 0.2), 1e-8, 0.0),
    ((0.3, 1e-12), 1e-8, 0.0),
    ((0.3, 0.2), 1e-2, 0.0),
    ((0.3, 0.2), 1e-8, 0.1),
    ((0.0, 0.2), 1e-8, 0.0),
):
    others = (0.9, 0.999, eps, eps_root, torch.tensor(1))
    got = gradients(AdamOp.UpdatesOp.apply, moments, others)
    expected = gradients(plain, moments, others)
    print(f"moments {moments}, eps {eps}, eps_root {eps_root}: gradient {got}, in plain torch {expected}")
    bad += any(abs(a - b) > 1e-5 * abs(b) for a, b in zip(got, expected, strict=True))
raise SystemExit(bad > 0)
