"""memcnn 1.5.2: with keep_input=True the .grad of an input comes out doubled: set by hand, then accumulated."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn import AdditiveCoupling, InvertibleModuleWrapper  # noqa: E402

torch.manual_seed(0)
coupling = AdditiveCoupling(torch.nn.Linear(1, 1), split_dim=1)


def gradient(module):
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    module(x).pow(2).sum().backward()
    return x.grad


got, expected = gradient(InvertibleModuleWrapper(coupling, keep_input=True)), gradient(coupling)
print("wrapped", got.tolist(), "not wrapped", expected.tolist())
raise SystemExit(not torch.allclose(got, expected))
