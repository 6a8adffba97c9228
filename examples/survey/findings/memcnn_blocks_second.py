"""memcnn 1.5.2: the gradients of the block Functions are detached under create_graph, without a word."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn.models import additive, affine  # noqa: E402

torch.manual_seed(0)
F = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()).double()
G = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()).double()

bad = 0
for module, kind in ((additive, "AdditiveBlock"), (affine, "AffineBlock")):
    for name in (f"{kind}Function", f"{kind}InverseFunction", f"{kind}Function2", f"{kind}InverseFunction2"):
        f, g = (F, G) if module is additive else (affine.AffineAdapterNaive(F), affine.AffineAdapterNaive(G))
        x = torch.tensor([[0.3, -0.2]], dtype=torch.float64, requires_grad=True)
        y = getattr(module, name).apply(x, f, g, *f.parameters(), *g.parameters())
        first = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
        print(f"{name}: gradient {first.tolist()}, which requires grad: {first.requires_grad}")
        bad += not first.requires_grad
raise SystemExit(bad > 0)
