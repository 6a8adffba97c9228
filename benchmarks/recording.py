"""What recording costs: a training loop of small layers and a custom Function, with `record` and without.

Run `python benchmarks/recording.py` on an idle machine. Both loops run in turn, and the medians are compared.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from autograd_conformance.harness.drafting.recording import MODULE
from autograd_conformance.harness.processes.instrumented import instrumented

# A custom Function between two small layers, one step of training each; prints the seconds.
LOOP = """
import time, torch
torch.set_num_threads(1)
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, factor):
        ctx.save_for_backward(x, weight)
        ctx.factor = factor
        return x * weight * factor
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g * weight * ctx.factor, (g * x).sum(0) * ctx.factor, None
first, second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)
weight = torch.ones(16, requires_grad=True)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters(), weight], 0.01)
def step(n):
    optimizer.zero_grad()
    second(Scaled.apply(first(torch.randn(8 + n % 5, 16)), weight, 0.5)).sum().backward()
    optimizer.step()
for n in range(300):
    step(n)
start = time.perf_counter()
for n in range(3000):
    step(n)
print(time.perf_counter() - start)
"""
ROUNDS = 9


def seconds(environment: dict[str, str]) -> float:
    """The seconds of the loop in this environment."""
    done = subprocess.run([sys.executable, "-c", LOOP], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    plain, watched = [], []
    for _ in range(ROUNDS):
        plain.append(seconds(dict(os.environ)))
        with instrumented(MODULE) as (environment, _folder):
            watched.append(seconds(dict(environment)))
    ratio = statistics.median(watched) / statistics.median(plain)
    print(f"a step takes {statistics.median(plain) / 3000 * 1e6:.0f} us, and {ratio:.3f} times as long recorded")


if __name__ == "__main__":
    main()
