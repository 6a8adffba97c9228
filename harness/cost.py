"""What custom Functions cost: the overhead of apply, backward and ctx's methods, in units of a built-in operation.

Method. A chain of calls is differentiated, so that what the adapter does once divides out; the unit is a chain of
multiplications in the same process. Chains of all kinds take turns in rounds. In each a chain counts as the best of a
few repetitions, as `timeit` has it: more time than that was taken by something else. Processes differ in memory layout
and hashing, by more than the rounds of one let expect, so that several short ones are measured, and the interval is a
bootstrap of both levels, processes and the medians of their rounds: Kalibera and Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013; Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation",
OOPSLA 2007.
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
from autograd_conformance.implementations.protocol import Implementation

Line = dict[str, Any]
Step = Callable[[Any], Any]

PROCESSES, ROUNDS, REPETITIONS, CALLS = 5, 40, 3, 20

# Rounds that come first and do not count.
_WARM = 2

# The share of the bootstrap's means that an interval holds, and their number.
_CONFIDENCE, _MEANS = 0.99, 2000

# Seconds until a process is given up.
_PATIENCE = 300

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
class Way:
    """A Function that doubles its argument, with what it does to its ctx beside.

    ``prepare`` gets ctx, input and output, ``look`` the ctx in backward. ``than`` names the way that it is compared
    with, ``needs`` the capabilities.
    """

    compute: Step = _double
    prepare: Callable[[Any, Any, Any], None] = _nothing
    look: Callable[[Any], object] = _nothing
    than: str = "plain"
    needs: str = ""


WAYS = {
    "plain": Way(),
    "two": Way(_two, needs="tuples"),
    "save_for_backward": Way(prepare=_save, look=lambda ctx: ctx.saved_tensors, needs="context"),
    "needs_input_grad": Way(look=lambda ctx: ctx.needs_input_grad, needs="needs_input_grad"),
    "set_materialize_grads": Way(prepare=_leave_undefined, needs="materialize"),
    "mark_non_differentiable": Way(_two, _mark_second, than="two", needs="tuples nondifferentiable"),
    "mark_dirty": Way(_double_in_place, _mark_input, needs="inplace"),
}


def measured(named: str, processes: int = PROCESSES) -> list[Line]:
    """What an implementation's custom Functions cost, as a report has it. Raises UsageProblem."""
    found = [_in_a_process(named) for _ in range(processes)]
    return [_line(what, [each[what] for each in found]) for what in found[0]]


def _in_a_process(named: str) -> dict[str, list[float]]:
    words = [sys.executable, "-m", __name__, named]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise UsageProblem(f"the cost of {named} cannot be measured: it takes over {_PATIENCE} s") from None
    except (subprocess.CalledProcessError, ValueError, IndexError) as problem:
        last = str(getattr(problem, "stderr", "") or problem).strip().splitlines()[-1:]
        raise UsageProblem(f"the cost of {named} cannot be measured: {' '.join(last)}") from None
    return found


def _line(what: str, ratios: Sequence[Sequence[float]]) -> Line:
    """One row of ratios a process."""
    rounds = np.array(ratios)
    low, high = interval(rounds)
    found = {"ratio": float(np.mean(np.median(rounds, axis=1))), "low": low, "high": high}
    unit = _UNITS.get(what, f"forward and backward of {_UNIT}")
    return {"what": what, **{name: round(value, 3) for name, value in found.items()}, "n": rounds.size, "unit": unit}


def interval(rounds: Any) -> tuple[float, float]:
    """Between which the mean over processes of the medians of their rounds lies: a bootstrap of both."""
    rng = np.random.default_rng(0)
    processes, count = rounds.shape
    rows = rng.integers(processes, size=(_MEANS, processes, 1))
    columns = rng.integers(count, size=(_MEANS, processes, count))
    means = np.median(rounds[rows, columns], axis=2).mean(axis=1)
    low, high = np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def ratios(implementation: Implementation) -> dict[str, list[float]]:
    """What each thing costs in units of the built-in operation, round by round, measured in this process."""
    implementation.limit_threads()
    steps = {"unit": _double, **dict(_steps(implementation))}
    rng = np.random.default_rng(0)
    times = np.array([_round(implementation, steps, rng) for _ in range(_WARM + ROUNDS)][_WARM:])
    at = {name: times[:, number] for number, name in enumerate(steps)}
    unit, plain = at["unit"], at["plain"]
    found = {"apply": plain[:, 0] / unit[:, 0], "backward": plain[:, 1] / unit[:, 1]}
    for name in [name for name in steps if name not in ("unit", "plain", "two")]:
        more = (at[name] - at[WAYS[name].than]).sum(axis=1)
        found[name] = more / unit.sum(axis=1)
    return {name: [float(f"{ratio:.4g}") for ratio in values] for name, values in found.items()}


def _steps(implementation: Implementation) -> Iterator[tuple[str, Step]]:
    """What each way's chain repeats, of the ways that the implementation claims."""
    for name, way in WAYS.items():
        if implementation.capabilities >= set(way.needs.split()):
            apply = implementation.function(_function(way, implementation))
            yield name, _first_of(apply) if way.compute is _two else apply


def _first_of(apply: Step) -> Step:
    return lambda x: apply(x)[0]


def _function(way: Way, implementation: Implementation) -> Any:
    def prepare(ctx: Any, inputs: Any, output: Any) -> None:
        way.prepare(ctx, inputs[0], output)

    def forward(ctx: Any, x: Any) -> Any:
        y = way.compute(x)
        way.prepare(ctx, x, y)
        return y

    def backward(ctx: Any, cotangent: Any, *_: Any) -> Any:
        way.look(ctx)
        return cotangent * 2.0

    entry: dict[str, Callable[..., Any]] = {"forward": forward}
    if implementation.needs_setup_context:
        entry = {"forward": way.compute, "setup_context": prepare}
    methods = {name: staticmethod(method) for name, method in {**entry, "backward": backward}.items()}
    base = implementation.ag.Function
    return type(base)("Doubled", (base,), methods)


def _round(
    implementation: Implementation, steps: Mapping[str, Step], rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Seconds of forward and backward of each chain, in an order of its own."""
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
        # What may be changed in place must not be a leaf.
        x = x * 1.0
        for _ in range(CALLS):
            x = step(x)
        return x

    dtype = next(d for d in ("float32", "float64") if d in implementation.dtypes)
    device = implementation.devices()[0]
    x, one = (implementation.array(np.ones(4), dtype, device) for _ in range(2))
    start = perf_counter()
    outputs, pullback = implementation.vjp(chain, (x,))
    # Reading a value waits for what is computed lazily or elsewhere.
    implementation.numpy(outputs[0])
    middle = perf_counter()
    (gradient,) = pullback((one,))
    implementation.numpy(gradient)
    return middle - start, perf_counter() - middle


if __name__ == "__main__":
    print(json.dumps(ratios(implementations.load(sys.argv[1]))))
