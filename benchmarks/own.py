"""Faults found per second: `check` next to a loop of gradcheck and gradgradcheck over the same generated calls.

Of each Function with a planted fault only the code is known. Each way stops at the first fault, which counts unless the
right twin is blamed as well. `check` is asked as one would in the inner loop: with the profile quick, and if that finds
nothing with gate; once until it has found a call that shows the fault, which is all that the loop does, and once until
it has found the smallest. The loop gets calls as finite differences get them with the profile gate: smooth, and in
double precision, which gradcheck asks for; gradgradcheck is left out where second derivatives are declared to be
refused.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from tabulate import tabulate
from torch.autograd.gradcheck import gradcheck, gradgradcheck

from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.check.subject import OwnSubject
from autograd_conformance.reference.definitions import Function
from autograd_conformance.selftests.check.test_own_planted import IN_FUNCTIONS, declared, knowable
from autograd_conformance.strategies.calls import Call, recast
from autograd_conformance.strategies.scope import SMOOTH
from autograd_conformance.suites.declared import Checked, claims

# As many as VJP-REF gets of a user's Function.
CALLS = 38


def by_check(function: Function, *, shrink: bool) -> bool:
    """Whether any property is found broken: in a few examples of each, or else in more."""
    return any(_blamed(function, profile, shrink) for profile in ("quick", "gate"))


def _blamed(function: Function, profile: str, shrink: bool) -> bool:
    checked = Checked(declared(function, also=()), profile=profile, seed=0, shrink=shrink)
    return any(v is not None and v.fault for v in map(verdict, checked.lines()))


def by_gradcheck(function: Function) -> bool:
    """Whether gradcheck or gradgradcheck fails on any call."""
    checked = Checked(declared(function, also=()), seed=0)
    subject = next(iter(checked.subjects(claims()["VJP_REF"][0])))
    for call in _calls(subject):
        example = subject.made(call)
        leaves = [x.detach().requires_grad_(t) for x, t in zip(example.primals, example.track, strict=True)]
        # These gradcheck refuses.
        if not any(example.track) or any(0 in tensor.shape for tensor in call.tensors):
            continue
        try:
            gradcheck(example.f, leaves)
            if not checked.declaration.once:
                gradgradcheck(example.f, leaves)
        except Exception:  # noqa: BLE001 - whatever it raises, it is a fault that is found
            return True
    return False


def _calls(subject: OwnSubject) -> Iterator[Call]:
    """The calls of a property."""
    found: list[Call] = []

    @seed(0)
    @settings(max_examples=CALLS, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(subject.calls(replace(SMOOTH, layouts="contiguous", specials="none")))
    def keep(call: Call) -> None:
        known = subject.function.dtypes
        found.append(recast(call, "float64" if "float64" in known else known[0], subject.function))

    keep()
    yield from found


WAYS: dict[str, Callable[[Function], bool]] = {
    "check, until a call is found": partial(by_check, shrink=False),
    "check, until the smallest is found": partial(by_check, shrink=True),
    "gradcheck and gradgradcheck": by_gradcheck,
}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    faults = [planted for planted in IN_FUNCTIONS if knowable(planted)]
    twins = {planted.twin.name: planted.twin for planted in faults}
    accused = {way: {name for name, twin in twins.items() if WAYS[way](twin)} for way in WAYS}
    found, seconds = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0.0)
    # One way after the other on each, so that whatever slows the machine slows all of them.
    for planted in faults:
        for way, finds in WAYS.items():
            started = time.process_time()
            blamed = finds(planted.function)
            seconds[way] += time.process_time() - started
            found[way] += blamed and planted.twin.name not in accused[way]
    rows = [(w, found[w], len(accused[w]), round(seconds[w], 1), round(found[w] / seconds[w], 2)) for w in WAYS]
    print(f"{len(faults)} faults in variants of {len(twins)} right Functions")
    print(tabulate(rows, ("way", "faults found", "right ones blamed", "CPU seconds", "found per second")))


if __name__ == "__main__":
    main()
