"""torch-struct 0.5: the checkpointed semirings raise for one constant argument, and for a transposed cotangent.

Second derivatives are detached or wrong without a word: backward calls torch.autograd.grad without create_graph.
"""

import torch
from torch_struct import LogSemiring
from torch_struct.semirings import CheckpointSemiring, CheckpointShardSemiring

torch.manual_seed(0)
A, B, DIRECTION = (torch.randn(1, 2, 2, 3, 3, dtype=torch.float64) for _ in range(3))


def first(semiring, track=(True, True), transposed=False):
    """The gradient by the first argument."""
    a, b = A.clone().requires_grad_(track[0]), B.clone().requires_grad_(track[1])
    y = semiring.matmul(a, b)
    ones = torch.ones_like(y)
    given = ones.permute(4, 3, 2, 1, 0).contiguous().permute(4, 3, 2, 1, 0) if transposed else ones
    return torch.autograd.grad(y, a, given)[0]


def second(semiring):
    """The product of the second derivative by the first argument with a direction."""
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    g = torch.autograd.grad(semiring.matmul(a, b).sum(), a, create_graph=True)[0]
    return torch.autograd.grad((g * DIRECTION).sum(), a)[0]


bad = 0
checked = {"CheckpointSemiring": CheckpointSemiring(LogSemiring), "Shard": CheckpointShardSemiring(LogSemiring, 20)}
for what, semiring, gradient in (
    (
        "CheckpointSemiring, the second argument is constant",
        checked["CheckpointSemiring"],
        lambda s: first(s, (True, False)),
    ),
    ("CheckpointSemiring, second derivative", checked["CheckpointSemiring"], second),
    ("CheckpointShardSemiring, the cotangent is transposed", checked["Shard"], lambda s: first(s, transposed=True)),
    ("CheckpointShardSemiring, second derivative", checked["Shard"], second),
):
    expected = gradient(LogSemiring)
    try:
        got = gradient(semiring)
    except RuntimeError as error:
        print(f"{what}: {str(error).splitlines()[0]}")
        bad += 1
        continue
    print(f"{what}: {got.flatten()[:3].tolist()}, that of LogSemiring: {expected.flatten()[:3].tolist()}")
    bad += not torch.allclose(got, expected)
raise SystemExit(bad > 0)
