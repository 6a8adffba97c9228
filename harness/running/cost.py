"""Measures the cost of custom Functions: the overhead of apply, backward and ctx's methods, in units of a built-in.

Method. The time of a differentiated chain of calls is divided by that of a chain of multiplications in the same
process. A chain is long, so that the work that the adapter does once hardly counts. All chains take turns in rounds;
each counts with the shortest of a few repetitions, as in `timeit`, since other work can only make it longer. Processes
differ by memory layout and hashing more than the rounds of one process do. So several short processes are measured, and
the interval is a bootstrap over processes and rounds: Kalibera and Jones, "Rigorous benchmarking in reasonable time",
ISMM 2013; Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007.

pyperf does not fit: it times each benchmark in processes of its own and compares their means, so that it cannot
interleave two chains in one process and compute the ratio of each round.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.running import waiting
from autograd_conformance.harness.running.supervision import leaving
from autograd_conformance.implementations.protocol import Implementation

Step = Callable[[Any], Any]

PROCESSES, ROUNDS, REPETITIONS, CALLS = 5, 40, 3, 20

# The first rounds, which do not count.
_WARM = 2

# The confidence of the interval, and the number of means in the bootstrap.
_CONFIDENCE, _MEANS = 0.99, 2000

# The time limit of a process in seconds.
_TIMEOUT = 300

_UNIT = "x * 2.0"
_UNITS = {"apply": f"the forward of {_UNIT}", "backward": f"the backward of {_UNIT}"}


def _nothing(*_: Any) -> None:
    pass


def _double(x: Any) -> Any:
    return x * 2.0


def _double_in_place(x: Any) -> Any:
    x *= 2.0
    return x


def _two(x: Any) -> Any:
    return x * 2.0, x * 2.0


def _save(ctx: Any, x: Any, _: Any) -> None:
    ctx.save_for_backward(x)


def _leave_undefined(ctx: Any, *_: Any) -> None:
    ctx.set_materialize_grads(False)


def _mark_second(ctx: Any, _: Any, outputs: Any) -> None:
    ctx.mark_non_differentiable(outputs[1])


def _mark_input(ctx: Any, x: Any, _: Any) -> None:
    ctx.mark_dirty(x)


@dataclass(frozen=True)
class Variant:
    """A Function that doubles its argument, and calls a method of its ctx.

    ``in_forward`` gets ctx, input and output, ``in_backward`` the ctx. ``than`` names the variant to compare with,
    ``needs`` the capabilities.
    """

    compute: Step = _double
    in_forward: Callable[[Any, Any, Any], None] = _nothing
    in_backward: Callable[[Any], object] = _nothing
    than: str = "plain"
    needs: str = ""


VARIANTS = {
    "plain": Variant(),
    "two": Variant(_two, needs="tuples"),
    "save_for_backward": Variant(in_forward=_save, in_backward=lambda ctx: ctx.saved_tensors, needs="context"),
    "needs_input_grad": Variant(in_backward=lambda ctx: ctx.needs_input_grad, needs="needs_input_grad"),
    "set_materialize_grads": Variant(in_forward=_leave_undefined, needs="materialize"),
    "mark_non_differentiable": Variant(_two, _mark_second, than="two", needs="tuples nondifferentiable"),
    "mark_dirty": Variant(_double_in_place, _mark_input, needs="inplace"),
}


def measured(named: str, processes: int = PROCESSES) -> list[Line]:
    """The costs of an implementation's custom Functions, as lines of a report. Raises UsageProblem."""
    with waiting.during(f"{processes} processes, one after the other, that measure the cost of a call"):
        found = [_in_a_process(named) for _ in range(processes)]
    return [_line(what, [each[what] for each in found]) for what in found[0]]


def _in_a_process(named: str) -> dict[str, list[float]]:
    words = [sys.executable, "-m", __name__, named]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=True)
        found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise UsageProblem(f"the cost of {named} cannot be measured: it takes more than {_TIMEOUT} s") from None
    except (subprocess.CalledProcessError, ValueError, IndexError) as problem:
        last = str(getattr(problem, "stderr", "") or problem).strip().splitlines()[-1:]
        raise UsageProblem(f"the cost of {named} cannot be measured: {' '.join(last)}") from None
    return found


def _line(what: str, ratios: Sequence[Sequence[float]]) -> Line:
    """The line of a cost, from the ratios of each process."""
    rounds = np.array(ratios)
    low, high = interval(rounds)
    found = {"ratio": float(np.mean(np.median(rounds, axis=1))), "low": low, "high": high}
    unit = _UNITS.get(what, f"forward and backward of {_UNIT}")
    return {"what": what, **{name: round(value, 3) for name, value in found.items()}, "n": rounds.size, "unit": unit}


def interval(rounds: Any) -> tuple[float, float]:
    """The confidence interval of the mean over processes of the median over rounds, by a bootstrap of both."""
    rng = np.random.default_rng(0)
    processes, count = rounds.shape
    rows = rng.integers(processes, size=(_MEANS, processes, 1))
    columns = rng.integers(count, size=(_MEANS, processes, count))
    means = np.median(rounds[rows, columns], axis=2).mean(axis=1)
    low, high = np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def ratios(implementation: Implementation) -> dict[str, list[float]]:
    """The cost of each variant in units of the built-in operation, for each round, measured in this process."""
    implementation.limit_threads()
    steps = {"unit": _double, **dict(_steps(implementation))}
    rng = np.random.default_rng(0)
    times = np.array([_round(implementation, steps, rng) for _ in range(_WARM + ROUNDS)][_WARM:])
    at = {name: times[:, number] for number, name in enumerate(steps)}
    unit, plain = at["unit"], at["plain"]
    found = {"apply": plain[:, 0] / unit[:, 0], "backward": plain[:, 1] / unit[:, 1]}
    for name in [name for name in steps if name not in ("unit", "plain", "two")]:
        more = (at[name] - at[VARIANTS[name].than]).sum(axis=1)
        found[name] = more / unit.sum(axis=1)
    return {name: [float(f"{ratio:.4g}") for ratio in values] for name, values in found.items()}


def _steps(implementation: Implementation) -> Iterator[tuple[str, Step]]:
    """The step of each variant's chain, for the variants that the implementation supports."""
    for name, variant in VARIANTS.items():
        if implementation.capabilities >= set(variant.needs.split()):
            apply = implementation.function(_function(variant, implementation))
            yield name, _first_of(apply) if variant.compute is _two else apply


def _first_of(apply: Step) -> Step:
    return lambda x: apply(x)[0]


def _function(variant: Variant, implementation: Implementation) -> Any:
    def prepare(ctx: Any, inputs: Any, output: Any) -> None:
        variant.in_forward(ctx, inputs[0], output)

    def forward(ctx: Any, x: Any) -> Any:
        y = variant.compute(x)
        variant.in_forward(ctx, x, y)
        return y

    def backward(ctx: Any, cotangent: Any, *_: Any) -> Any:
        variant.in_backward(ctx)
        return cotangent * 2.0

    entry: dict[str, Callable[..., Any]] = {"forward": forward}
    if implementation.needs_setup_context:
        entry = {"forward": variant.compute, "setup_context": prepare}
    methods = {name: staticmethod(method) for name, method in {**entry, "backward": backward}.items()}
    base = implementation.ag.Function
    return type(base)("Doubled", (base,), methods)


def _round(
    implementation: Implementation, steps: Mapping[str, Step], rng: np.random.Generator
) -> list[tuple[float, float]]:
    """The seconds of forward and backward of each chain; the chains run in random order."""
    gc.collect()
    gc.disable()
    try:
        found = {name: _best(implementation, steps[name]) for name in rng.permutation(list(steps))}
    finally:
        gc.enable()
    return [found[name] for name in steps]


def _best(implementation: Implementation, step: Step) -> tuple[float, float]:
    times = [_timed(implementation, step) for _ in range(REPETITIONS)]
    return min(forward for forward, _ in times), min(backward for _, backward in times)


def _timed(implementation: Implementation, step: Step) -> tuple[float, float]:
    def chain(x: Any) -> Any:
        # A leaf must not be changed in place.
        x = x * 1.0
        for _ in range(CALLS):
            x = step(x)
        return x

    dtype = next(d for d in ("float32", "float64") if d in implementation.dtypes)
    device = implementation.devices()[0]
    x, one = (implementation.array(np.ones(4), dtype, device) for _ in range(2))
    start = perf_counter()
    outputs, pullback = implementation.vjp(chain, (x,))
    # Reading a value waits for lazy and asynchronous computations.
    implementation.numpy(outputs[0])
    middle = perf_counter()
    (gradient,) = pullback((one,))
    implementation.numpy(gradient)
    return middle - start, perf_counter() - middle


if __name__ == "__main__":
    leaving(lambda: print(json.dumps(ratios(implementations.load(sys.argv[1])))))
