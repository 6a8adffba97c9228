"""memcnn 1.5.2: a weight that is changed in place before backward makes the gradient wrong, and nothing is raised."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn import AdditiveCoupling, InvertibleModuleWrapper  # noqa: E402

torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh())
coupling = AdditiveCoupling(layers, split_dim=1)


def gradient(module, change):
    x = torch.tensor([[1.0, -2.0], [-0.5, 0.3]], requires_grad=True)
    y = module(x * 1)
    with torch.no_grad():
        layers[0].weight.add_(change)
    try:
        y.pow(2).sum().backward()
        return x.grad.tolist()
    except RuntimeError as error:
        return f"refused: {error}"
    finally:
        with torch.no_grad():
            layers[0].weight.sub_(change)


wrapped = InvertibleModuleWrapper(coupling)
expected, got = gradient(wrapped, 0.0), gradient(wrapped, 0.5)
print("expected", expected)
print("wrapped, the weight changed:", got)
print("not wrapped, the weight changed:", gradient(coupling, 0.5))
raise SystemExit(isinstance(got, list) and not torch.allclose(torch.tensor(expected), torch.tensor(got)))
