"""memcnn 1.5.2: the gradient of four block Functions is wrong: halves are swapped, or a scale factor is left out."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn.models import additive, affine  # noqa: E402

torch.manual_seed(0)
F, G = torch.nn.Linear(1, 1).double(), torch.nn.Linear(1, 1).double()
WEIGHTS = torch.tensor([[1.0, 10.0]], dtype=torch.float64)
X = torch.tensor([[0.3, -0.2]], dtype=torch.float64)

bad = 0
for function, inverse in (
    (additive.AdditiveBlockFunction, False),
    (additive.AdditiveBlockInverseFunction, True),
    (affine.AffineBlockInverseFunction, True),
    (affine.AffineBlockFunction2, False),
    (affine.AffineBlockInverseFunction2, True),
):
    if function.__name__.startswith("Affine"):
        f, g = affine.AffineAdapterNaive(F), affine.AffineAdapterNaive(G)
        coupling = affine.AffineCoupling(f, g, implementation_fwd=-1, implementation_bwd=-1)
    else:
        f, g = F, G
        coupling = additive.AdditiveCoupling(f, g, implementation_fwd=-1, implementation_bwd=-1)
    x = X.clone().requires_grad_()
    got = torch.autograd.grad(function.apply(x, f, g, *f.parameters(), *g.parameters()), x, WEIGHTS)[0]
    expected = torch.autograd.grad(coupling.inverse(x) if inverse else coupling(x), x, WEIGHTS)[0]
    print(f"{function.__name__}: gradient {got.tolist()}, of the coupling in plain torch {expected.tolist()}")
    bad += not torch.allclose(got, expected)
raise SystemExit(bad > 0)
