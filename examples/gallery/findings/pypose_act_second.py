"""pypose 0.9.5: the second derivative of SE3 Act by twist and point is wrong: that of a quaternion's entries."""

import pypose
import torch

TWIST = torch.tensor([1.0, 2.0, 3.0, 0.5, -0.3, 0.2], dtype=torch.float64, requires_grad=True)
POINT = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)


def by_the_point(twist, create_graph=False):
    return torch.autograd.grad(pypose.se3(twist).Exp().Act(POINT)[0], POINT, create_graph=create_graph)[0]


second = torch.autograd.grad(by_the_point(TWIST, True)[1], TWIST)[0]
steps = 1e-5 * torch.eye(6, dtype=torch.float64)
expected = torch.stack([(by_the_point(TWIST + s) - by_the_point(TWIST - s))[1] / 2e-5 for s in steps])
print("second derivative", second.tolist())
print("by differences   ", expected.tolist())
raise SystemExit(not torch.allclose(second, expected, atol=1e-4))
