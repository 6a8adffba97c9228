"""The finite-difference ladder next to torch.autograd.gradcheck: time, and what each of them notices.

Run `python benchmarks/ladder.py`. Times are the least CPU time of interleaved rounds on one thread. The ladder is timed
with everything it needs: directions, slope, the claim, and the verdict; gradcheck runs as it is called in practice.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from tabulate import tabulate

from autograd_conformance.reference.ladder import Verdict, directions, inner, judge, slope

SIZES = (10, 100, 1000, 10_000)
SLOW_SIZES = (10, 100, 1000)
FAULTS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
POSITIONS = 20


def faulty(position: int, fault: float) -> type[torch.autograd.Function]:
    """Exp whose backward multiplies one entry of the gradient by 1 + fault."""

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, *cotangents: torch.Tensor) -> torch.Tensor:
            (y,) = ctx.saved_tensors
            gradient = cotangents[0] * y
            if fault:
                gradient[position] *= 1 + fault
            return gradient

    return Exp


def ladder(function: type[torch.autograd.Function], x: np.ndarray, seed: int) -> bool:
    """Whether the ladder accepts the backward; an inconclusive answer counts as accepted."""
    generator = np.random.default_rng(seed)
    weights = (generator.standard_normal(x.shape),)
    point = torch.from_numpy(x).requires_grad_()
    (gradient,) = torch.autograd.grad(function.apply(point), point, torch.from_numpy(weights[0]))
    direction = directions((x,), seed=seed)
    estimate = slope(lambda points: (np.exp(points[0]),), (x,), direction, weights)  # type: ignore[arg-type]
    return judge(inner((gradient.numpy(),), direction), estimate) is not Verdict.DISAGREES


def gradcheck(function: type[torch.autograd.Function], x: np.ndarray, *, fast: bool) -> bool:
    """Whether gradcheck with its default tolerances accepts the backward."""
    point = torch.from_numpy(x).requires_grad_()
    return torch.autograd.gradcheck(function.apply, (point,), fast_mode=fast, raise_exception=False)


def oracles(n: int, *, slow: bool) -> dict[str, Callable[..., bool]]:
    """Name and call of each oracle to compare at this size."""
    found: dict[str, Callable[..., bool]] = {
        "ladder": lambda function, x, seed: ladder(function, x, seed),
        "gradcheck fast": lambda function, x, _: gradcheck(function, x, fast=True),
    }
    if slow and n in SLOW_SIZES:
        found["gradcheck slow"] = lambda function, x, _: gradcheck(function, x, fast=False)
    return found


def best_times(calls: dict[str, Callable[..., bool]], x: np.ndarray, rounds: int) -> dict[str, float]:
    """Least CPU time of each call in milliseconds; every round runs each of them for 20 ms or once."""
    best = dict.fromkeys(calls, float("inf"))
    function = faulty(0, 0.0)
    for seed in range(rounds):
        for name, call in calls.items():
            start, runs, spent = time.process_time(), 0, 0.0
            while spent < 0.02:
                if not call(function, x, seed):
                    raise RuntimeError(f"{name} rejects the correct backward of exp at n = {x.size}")
                runs, spent = runs + 1, time.process_time() - start
            best[name] = min(best[name], 1e3 * spent / runs)
    return best


def caught(call: Callable[..., bool], x: np.ndarray, fault: float, positions: Sequence[int]) -> float:
    """Share of positions at which one wrong entry is noticed."""
    return float(np.mean([not call(faulty(j, fault), x, seed) for seed, j in enumerate(positions)]))


def main() -> None:
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    points = {n: generator.standard_normal(n) for n in SIZES}
    times = []
    for n, x in points.items():
        best = best_times(oracles(n, slow=True), x, 15)
        slow = best.get("gradcheck slow")
        ratio = None if slow is None else slow / best["ladder"]
        times.append((n, best["ladder"], best["gradcheck fast"], slow, ratio))
    print("CPU time of one check in milliseconds (elementwise exp, float64)\n")
    columns = ("n", "ladder", "gradcheck fast", "gradcheck slow", "slow / ladder")
    print(tabulate(times, columns, tablefmt="github", floatfmt=".2f", missingval="-"))

    rates = []
    for n, x in points.items():
        for name, call in oracles(n, slow=True).items():
            # Slow mode costs a second at n = 1000: three are enough, because it looks at each entry on its own.
            count = 3 if name == "gradcheck slow" and n == 1000 else POSITIONS
            positions = generator.integers(0, n, count).tolist()
            rates.append((n, name, count, *(f"{caught(call, x, d, positions):.0%}" for d in FAULTS)))
    print("\nOne entry of the gradient times 1 + d: share of positions where it is noticed\n")
    print(tabulate(rates, ("n", "oracle", "positions", *(f"d = {d:g}" for d in FAULTS)), tablefmt="github"))


if __name__ == "__main__":
    main()
