"""What an example costs: CPU time of whole examples against the time spent in the implementation's own calls.

Run it on a quiet machine: ``python benchmarks/examples.py [IMPLEMENTATION]``.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tabulate import tabulate

from autograd_conformance import implementations
from autograd_conformance.harness.testing.drawing import load, prepare
from autograd_conformance.harness.testing.marks import claims_in
from autograd_conformance.harness.testing.profiles import PROFILES

load(PROFILES["gate"])  # before the suites are imported: they take their number of examples from it

from autograd_conformance.harness.testing.subject import Subject  # noqa: E402
from autograd_conformance.reference.functions import FUNCTIONS  # noqa: E402
from autograd_conformance.suites.functions import test_vjp_contract, test_vjp_state, test_vjp_values  # noqa: E402

# What the implementation itself does of an example's work; the rest is Hypothesis, the references and the suite.
OWN_CALLS = ("array", "numpy", "vjp", "backward", "describe")


@dataclass
class Clock:
    """CPU time spent in the implementation's calls, and the moments at which examples began."""

    own: float = 0.0
    depth: int = 0
    began: list[float] = field(default_factory=list)
    owned: list[float] = field(default_factory=list)

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            start = time.thread_time()
            try:
                result = call(*args, **kwargs)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.own += time.thread_time() - start
            if call.__name__ == "vjp":
                outputs, pullback = result
                return outputs, self.timed(pullback)
            return result

        return wrapper

    def example(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.began.append(time.thread_time())
            self.owned.append(self.own)
            return call(*args, **kwargs)

        return wrapper


def _tests() -> list[Any]:
    modules = (test_vjp_values, test_vjp_contract, test_vjp_state)
    return [test for module in modules for _, test in claims_in(module)]


def measure(test: Any, implementation_name: str) -> tuple[list[float], list[float]]:
    """Milliseconds of each example of a test over all documented Functions: whole, and in the implementation."""
    claim = test.claim
    whole: list[float] = []
    own: list[float] = []
    for function in FUNCTIONS.values():
        implementation = implementations.load(implementation_name)
        clock = Clock()
        for name in OWN_CALLS:
            setattr(implementation, name, clock.timed(getattr(implementation, name)))
        subject = Subject(implementation, function, "cpu", claim.property_id, allowed=claim.dtypes)
        missing = (claim.needs | function.needs) - implementation.capabilities
        if missing or not claim.where(function) or not subject.dtypes:
            continue
        # Entered once for every example that Hypothesis runs.
        subject.blaming_the_function = clock.example(subject.blaming_the_function)  # type: ignore[method-assign]
        prepare(test, f"{claim.property_id}-{function.name}", 0)
        test(subject)
        whole += [1e3 * (b - a) for a, b in zip(clock.began, clock.began[1:], strict=False)]
        own += [1e3 * (b - a) for a, b in zip(clock.owned, clock.owned[1:], strict=False)]
    return whole, own


def main(implementation_name: str) -> None:
    """Print a table of medians."""
    implementations.load(implementation_name).limit_threads()
    rows = []
    for test in _tests():
        whole, own = measure(test, implementation_name)
        if whole:
            name = test.__name__.removeprefix("test_").replace("_", "-")
            a, b = statistics.median(whole), statistics.median(own)
            rows.append([name, len(whole), a, b, a / b if b else float("nan")])
    headers = ["test", "examples", "whole, ms", "own calls, ms", "whole / own"]
    print(tabulate(rows, headers=headers, tablefmt="github", floatfmt=".2f"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "torch")
