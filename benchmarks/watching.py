"""What watching costs: a training loop of four custom Functions, with `watch` and without.

Run `python benchmarks/watching.py` on an idle machine. Both loops run in turn, and the medians are compared: of a whole
program, in which calls are checked, and of steps in which none is.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping

from autograd_conformance.harness.inside.watching import USUAL
from autograd_conformance.harness.processes.instrumented import instrumented

# A thousand steps; prints the seconds of one later step, in which nothing is checked.
LOOP = """
import sys, time, torch
from torch.autograd import Function
torch.set_num_threads(1)
def made(name, forward, backward):
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__}
    return type(name, (Function,), {**methods, "__qualname__": name})
def saved(ctx, y, *tensors):
    ctx.save_for_backward(*tensors)
    return y
Linear = made("Linear", lambda ctx, x, w: saved(ctx, x @ w.t(), x, w),
              lambda ctx, g: (g @ ctx.saved_tensors[1], g.t() @ ctx.saved_tensors[0]))
Scale = made("Scale", lambda ctx, x, w, k: saved(ctx, x * w * k, x, w),
             lambda ctx, g: (g * ctx.saved_tensors[1] * 0.5, (g * ctx.saved_tensors[0]).sum(0) * 0.5, None))
Tanh = made("Tanh", lambda ctx, x: (lambda y: saved(ctx, y, y))(x.tanh()),
            lambda ctx, g: g * (1 - ctx.saved_tensors[0] ** 2))
Square = made("Square", lambda ctx, x: saved(ctx, x * x, x), lambda ctx, g: 2 * g * ctx.saved_tensors[0])
first = torch.nn.Linear(256, 256)
w, s = torch.randn(128, 256, requires_grad=True), torch.ones(128, requires_grad=True)
optimizer = torch.optim.SGD([*first.parameters(), w, s], 1e-4)
def step():
    optimizer.zero_grad()
    x = Tanh.apply(first(torch.randn(256, 256)))
    Square.apply(Scale.apply(Linear.apply(x, w), s, 0.5)).mean().backward()
    optimizer.step()
for n in range(1000):
    step()
if "quiet" in sys.argv:
    start = time.perf_counter()
    for n in range(500):
        step()
    print(time.perf_counter() - start)
"""
_ROUNDS = 5


def _whole(environment: Mapping[str, str] | None) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", LOOP], env=environment, check=True)
    return time.perf_counter() - start


def _quiet(environment: Mapping[str, str] | None) -> float:
    done = subprocess.run(
        [sys.executable, "-c", LOOP, "quiet"], env=environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def main() -> None:
    """Print the ratios."""
    ratios = {"a program of a thousand steps": (_whole, 0.2), "a step in which nothing is checked": (_quiet, 0.0)}
    for what, (seconds, share) in ratios.items():
        watched, plain = [], []
        for _ in range(_ROUNDS):
            options = {**USUAL, "share": share, "means": {}}
            with instrumented("watching", **options) as (environment, _folder):
                watched.append(seconds(environment))
            plain.append(seconds(None))
        one, other = statistics.median(watched), statistics.median(plain)
        print(f"{what}: {one:.2f} s and {other:.2f} s, {one / other:.3f} times as long")


if __name__ == "__main__":
    main()
