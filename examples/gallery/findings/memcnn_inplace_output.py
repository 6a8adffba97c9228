"""memcnn 1.5.2: ReLU(inplace=True) behind the wrapper makes the gradient wrong: the input is remade of the output."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn import AdditiveCoupling, InvertibleModuleWrapper  # noqa: E402

torch.manual_seed(0)
coupling = AdditiveCoupling(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()), split_dim=1)


def gradient(module, inplace):
    x = torch.tensor([[1.0, -2.0], [-0.5, 0.3]], requires_grad=True)
    torch.nn.ReLU(inplace=inplace)(module(x * 1)).pow(2).sum().backward()
    return x.grad


wrapped = InvertibleModuleWrapper(coupling)
try:
    got = gradient(wrapped, True)
except RuntimeError as error:
    print("refused, as it should be:", error)
    raise SystemExit(0) from None
print("ReLU(inplace=True)", got.tolist(), "ReLU()", gradient(wrapped, False).tolist())
raise SystemExit(not torch.allclose(got, gradient(wrapped, False)))
