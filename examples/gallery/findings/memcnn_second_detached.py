"""memcnn 1.5.2: backward(create_graph=True) gives gradients that are detached, without a word."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn import AdditiveCoupling, InvertibleModuleWrapper  # noqa: E402

torch.manual_seed(0)
coupling = AdditiveCoupling(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()), split_dim=1)


def connected(module):
    x = torch.tensor([[1.0, -2.0]], requires_grad=True)
    module(x * 1).pow(2).sum().backward(create_graph=True)
    return x.grad.requires_grad


got, expected = connected(InvertibleModuleWrapper(coupling)), connected(coupling)
print("the gradient requires grad: wrapped", got, "not wrapped", expected)
raise SystemExit(got != expected)
