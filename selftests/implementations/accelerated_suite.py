"""The suite's tests on the simulated accelerator, right and with each fault; prints what each raised as JSON.

They have a process of their own, with examples/accelerator on its path: one that has this device keeps it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator

import simulated_accelerator
import torch

from autograd_conformance.harness.outcomes import Broken, Record
from autograd_conformance.harness.testing import drawing
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.marks import ClauseClaim, claims_in
from autograd_conformance.implementations import load
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.faults.planting import Case
from autograd_conformance.selftests.faults.properties import checks
from autograd_conformance.selftests.implementations.accelerator_faults import FOUND_BY, Found
from autograd_conformance.suites.dialects.torch import test_devices

DEVICE = "simulated"
TORCH = load("torch")
CLAUSES = {
    f"{claim.id}/{claim.variant}".rstrip("/"): (claim, test)
    for claim, test in claims_in(test_devices)
    if isinstance(claim, ClauseClaim) and claim.accelerator
}


def run(found: Found) -> None:
    """Run a test as the plugin does, but for the search for the smallest call."""
    if not found.function:
        claim, test = CLAUSES[found.test]
        subject = ClauseSubject(TORCH, claim.clause, DEVICE, claim.variant, record=Record())
        drawing.prepare(test, subject.key["id"], 0, shrink=False)
        test(subject)
        subject.record.verify_exercised()
    else:
        checks.checked(found.test, "", Case(FUNCTIONS[found.function], TORCH, DEVICE))


def raised(check: Callable[[], None], fault: str) -> str:
    """The message of a test that fails with a fault; empty if it holds."""
    simulated_accelerator.plant(fault)
    try:
        check()
    except Broken as broken:
        return str(broken)
    except Exception as other:  # noqa: BLE001 - what is no finding is shown where it is expected
        return f"{type(other).__name__}: {other}"
    finally:
        simulated_accelerator.plant("")
        torch.accelerator.set_device_index(0)
    return ""


def everything() -> Iterator[tuple[str, str, str]]:
    """Each test on the right device, and the one that finds it with each fault: test, fault and message."""
    tests = [*(Found(test, "") for test in CLAUSES), *(each for each in FOUND_BY.values() if each.function)]
    for each in tests:
        yield each.test, "", raised(lambda each=each: run(each), "")
    for fault, each in FOUND_BY.items():
        yield each.test, fault, raised(lambda each=each: run(each), fault)


if __name__ == "__main__":
    TORCH.limit_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        json.dump(list(everything()), sys.stdout)
    sys.stdout.flush()
    # What is queued on a device with a fault must not decide how this process ends.
    os._exit(0)
