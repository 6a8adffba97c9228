"""The smoke stage: it finds mistakes of an adapter before the run reports anything about the implementation.

`adapter_checks` says what it looks at. It runs in a process of its own, so that a crash does not end the run.
"""

from __future__ import annotations

import faulthandler
import sys
import warnings
from collections.abc import Callable

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.probing.adapter_checks import found_in
from autograd_conformance.harness.processes import child, waiting
from autograd_conformance.harness.processes.isolation import environment
from autograd_conformance.implementations.adapting.filling import unfilled
from autograd_conformance.implementations.protocol import Implementation, Unavailable

SECONDS = 300
_SECONDS_IN_FORK = 60

# The most mistakes that are shown.
_SHOWN = 30


def verify(given: str, *, known: bool = False) -> str:
    """Raise UsageProblem if the adapter has mistakes, which would make every result meaningless.

    An adapter that is ``known`` to be right has none: then it is the implementation that is wrong. The run can go on,
    and names what it breaks. Returns a warning that says so, or "".
    """
    found = problems(given)
    if not found:
        return ""
    more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
    listed = "".join(f"\n  {problem}" for problem in found[:_SHOWN]) + more
    if known or given in implementations.ADAPTERS:
        return f"{given} does not do what its adapter relies on; the run goes on, to show what this breaks:{listed}"
    raise UsageProblem(
        f"the adapter {given} does not pass the smoke stage; fix it before its implementation can be checked:{listed}"
    )


def problems(given: str, *, seconds: float = SECONDS) -> list[str]:
    """The mistakes of the adapter with that name, found in a process of its own.

    Raises UsageProblem if there is no such adapter, or its framework is not installed.
    """
    forks = child.CAN_FORK and given in child.FORKABLE and given not in sys.modules
    limit = f"it is ended after {seconds:g} s"
    with waiting.during(f"the import of {given} and the calls of its smoke stage; {limit}"):
        if forks and _holds_in_fork(given, seconds):
            return []
    with waiting.during(f"a process that imports {given} and makes the calls of the smoke stage; {limit}"):
        said, ended = child.command(["-m", __name__, given], seconds=seconds, environment=environment())
    last = said[-1] if said else {}
    if "unavailable" in last:
        raise UsageProblem(last["unavailable"])
    found: list[str] = last.get("found", [f"it {ended.how}"])
    return found


def _holds_in_fork(given: str, seconds: float) -> bool:
    """Whether an adapter that this process imports has no mistake, as a fork of it says. Raises UsageProblem.

    What a framework does not survive in a fork is not its mistake. An import that does not end is ended with its
    stack, and this process with it.
    """
    # Also where the framework waits in C, and no other thread runs.
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or 2)
    try:
        adapter = implementations.load(given)
        implementations.check_version(adapter)
    except Unavailable as problem:
        raise UsageProblem(str(problem)) from problem
    finally:
        faulthandler.cancel_dump_traceback_later()
    said = child.messages(_examine, adapter, fork=True, seconds=min(seconds, _SECONDS_IN_FORK))
    return list(said) == [{"found": []}]


def _examine(send: Callable[[child.Message], None], adapter: Implementation) -> None:
    with warnings.catch_warnings():
        # A framework may warn of its own parts, and -W error would make a mistake of that.
        warnings.simplefilter("ignore")
        send({"found": found_in(adapter)})


def _main(load: Callable[[str], Implementation] = implementations.load) -> None:
    try:
        adapter = load(sys.argv[1])
        # Its version may be among what is to be filled in.
        if not unfilled(adapter):
            implementations.check_version(adapter)
    except Unavailable as problem:
        child.say({"unavailable": str(problem)})
    else:
        _examine(child.say, adapter)


if __name__ == "__main__":
    child.leaving(_main)
