"""pypose 0.9.5: se3 Exp loses the turn's share of the translation in float32 below 3e-4: 1 - cos(theta) is 0."""

import pypose
import torch

twist = torch.tensor([1000.0, 0.0, 0.0, 0.0, 0.0, 2e-4], dtype=torch.float64)
got = pypose.se3(twist.float()).Exp().tensor()[:3]
expected = pypose.se3(twist).Exp().tensor()[:3]
print("translation in float32", got.tolist(), "in float64", expected.tolist())
raise SystemExit(not torch.allclose(got.double(), expected, atol=0.01))
