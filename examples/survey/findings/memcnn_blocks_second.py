"""memcnn 1.5.2: second derivatives of the block Functions are detached without a word.

backward computes the gradient of a detached copy of the input, without create_graph.
"""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn.models import additive, affine  # noqa: E402

torch.manual_seed(0)
F, G = (torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()).double() for _ in range(2))

bad = 0
for function in (
    additive.AdditiveBlockFunction,
    additive.AdditiveBlockFunction2,
    additive.AdditiveBlockInverseFunction2,
    affine.AffineBlockFunction,
):
    if function.__name__.startswith("Affine"):
        f, g = affine.AffineAdapterNaive(F), affine.AffineAdapterNaive(G)
    else:
        f, g = F, G
    x = torch.tensor([[0.3, -0.2]], dtype=torch.float64, requires_grad=True)
    y = function.apply(x, f, g, *f.parameters(), *g.parameters())
    gradient = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    print(f"{function.__name__}: a gradient with create_graph=True has a graph: {gradient.requires_grad}")
    bad += not gradient.requires_grad
raise SystemExit(bad > 0)
