"""torchopt 0.7.3: AdamOp.UpdatesOp's gradient by a first moment that is exactly 0 is 0: update / moment is masked."""

import torch
from torchopt.accelerated_op.adam_op import AdamOp

OTHERS = (0.9, 0.999, 1e-8, 0.0, torch.tensor(1))


def plain(mu, nu):
    b1, b2, eps, eps_root, count = OTHERS
    return mu / (1 - b1**count) / ((nu / (1 - b2**count) + eps_root).sqrt() + eps)


def gradients(update, *moments):
    moments = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in moments]
    return [each.item() for each in torch.autograd.grad(update(*moments), moments)]


bad = 0
for moments in ((0.3, 0.2), (0.0, 0.2)):
    got = gradients(lambda mu, nu: AdamOp.UpdatesOp.apply(mu, nu, OTHERS), *moments)
    expected = gradients(plain, *moments)
    print(f"by the moments at {moments}: {got}, of the formula in plain torch {expected}")
    bad += abs(got[0] - expected[0]) > 1e-6
raise SystemExit(bad > 0)
