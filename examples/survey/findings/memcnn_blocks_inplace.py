"""memcnn 1.5.2: weights or an input that change in place before backward make block gradients wrong: kept on ctx."""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn.models import additive, affine  # noqa: E402

torch.manual_seed(0)
F = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()).double()
G = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh()).double()


def gradient(module, name, changed=""):
    f, g = (F, G) if module is additive else (affine.AffineAdapterNaive(F), affine.AffineAdapterNaive(G))
    x = torch.tensor([[0.3, -0.2]], dtype=torch.float64, requires_grad=True)
    between = x * 1
    y = getattr(module, name).apply(between, f, g, *f.parameters(), *g.parameters())
    tensor = {"weight": F[0].weight, "input": between}.get(changed, torch.zeros(()))
    with torch.no_grad():
        tensor.add_(0.5)
    try:
        return torch.autograd.grad(y.sum(), x)[0]
    except RuntimeError:
        return None
    finally:
        with torch.no_grad():
            tensor.sub_(0.5)


bad = 0
for module, kind in ((additive, "AdditiveBlock"), (affine, "AffineBlock")):
    for name in (f"{kind}Function", f"{kind}InverseFunction", f"{kind}Function2", f"{kind}InverseFunction2"):
        expected = gradient(module, name)
        for changed in ("weight", "input"):
            got = gradient(module, name, changed)
            said = "refused, as it should be" if got is None else f"{got.tolist()}, without an error"
            print(f"{name}: {expected.tolist()}; after a change of the {changed}: {said}")
            bad += got is not None and not torch.allclose(got, expected)
raise SystemExit(bad > 0)
