"""The properties of a call that a program makes, checked in a process that was forked where it is made."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.served import serving
from autograd_conformance.harness.check.report import places
from autograd_conformance.harness.outcomes import AlwaysWrong, Kind, UsageProblem
from autograd_conformance.harness.testing.drawing import forget_outer_test
from autograd_conformance.harness.testing.profiles import Profile
from autograd_conformance.harness.testing.transforms import SEARCHED
from autograd_conformance.harness.watching.given import Unwatched, changed_in_place, declared, precision_of
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch.widening import widened
from autograd_conformance.strategies.calls import parse
from autograd_conformance.suites.declared import Checked, claims

# What the derivative is compared in, for each dtype of a call.
_WIDE = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}

# The tests that ask for nothing but this call: about its numbers, which are compared in double precision, and about
# what else it does, which is asked in the dtype of the call. What says most comes first.
NUMBERS = (
    "VJP-FD", "VJP-REF", "VJP-MASK", "VJP-SUBSET", "VJP-COTANGENT-LAYOUT", "VJP-UNUSED", "VJP-UNUSED/severed",
    "VJP-NONDIFF", "VJP-LINEAR", "JVP-REF", "JVP-ADJOINT",
)  # fmt: skip
CONDUCT = (
    "FWD-DTYPE", "VJP-FIT", "VJP-NONE", "VJP-NEEDS", "FWD-PURE", "VJP-PURE", "VJP-PURE/owned", "VJP-PURE/leaves",
    "VJP-REPEAT", "VJP-ACCUMULATE", "VJP-INPLACE-SAFE", "FWD-MASK", "FWD-GRADFLAG", "MEM-WRITTEN", "MEM-FREE",
    "ENV-RANDOM", "ENV-SETTINGS", "ENV-SETTINGS/seeds", "ENV-SAVED-HOOKS",
)  # fmt: skip


class Stage(NamedTuple):
    """The tests of a stage of a check, which has a process of its own, and the share of the examples that they get."""

    tests: tuple[str, ...]
    share: float = 1.0
    # Whether it is in double precision, as everything that objects hold.
    wide: bool = False


# The ``narrow`` ones replace others for a Function that does not take double precision.
STAGES = {
    "first numbers": Stage(("VJP-FD",), 0.2, wide=True),
    "numbers": Stage(NUMBERS, wide=True),
    "first narrow": Stage(("VJP-FD",), 0.2),
    "narrow": Stage(NUMBERS),
    "conduct": Stage(CONDUCT),
}
# There is little to draw for a call whose arguments are given.
_PROFILE = Profile("watch", 3, True, False, "the calls of a program")

Send = Callable[[dict[str, Any]], None]


def prepare() -> None:
    """Load what every check needs: in the program, so that no process has to do it again."""
    serving("torch")
    claims()


class _Narrow(Exception):
    """Why a Function takes no double precision."""


def check(
    function: Any, args: Sequence[Any], *, name: str, where: str, stage: str, done: Collection[str], seconds: float,
    means: Mapping[str, Any], send: Send,
) -> None:  # fmt: skip
    """Ask the tests of a stage that are not done yet about a call, until the time is up: one at least.

    ``means`` are options of a declaration that say what is meant. Sends the facts about the Function and a result for
    each test, or why the call cannot be checked.
    """
    forget_outer_test()
    until = time.monotonic() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            implementation = serving("torch")
            checked = _checked(function, args, implementation, stage, {"name": name, "where": where, **means})
        except AlwaysWrong as wrong:
            send({"wrong": str(wrong)})
            return
        except _Narrow as problem:
            send({"narrow": str(problem)})
            return
        except (UsageProblem, Unwatched) as problem:
            send({"left_out": str(problem)})
            return
        facts = checked.function.facts
        # Nobody but ``means`` has declared anything.
        stale = tuple(sentence for sentence in facts.stale if sentence.partition(":")[0] in means)
        send({"facts": asdict(replace(facts, stale=stale)), "code": places.lines_of(function, where)})
        for test_id in STAGES[stage].tests:
            if test_id not in done:
                lines = _lines(checked, test_id)
                if any(
                    line.get("failure", {}).get("raised", {}).get("type") == "NotImplementedError" for line in lines
                ):
                    send({"left_out": "its backward is not implemented"})
                    return
                send({"test": test_id, "lines": lines, "arguments": _wrong_arguments(checked, test_id, lines)})
                if time.monotonic() > until:
                    return
        send({"finished": stage})


def _lines(checked: Checked, test_id: str) -> list[dict[str, Any]]:
    tests = [(claim, test) for claim, test in claims().values() if claim.test == test_id]
    found = [checked.line(claim, test, subject) for claim, test in tests for subject in checked.subjects(claim)]
    return [line for line in found if line is not None]


def _wrong_arguments(checked: Checked, test_id: str, lines: Sequence[dict[str, Any]]) -> dict[str, bool]:
    """Whether the gradient of each argument is wrong in a call in which finite differences show a wrong number."""
    failures = [line["failure"] for line in lines if line["outcome"] == "fail" and test_id == "VJP-FD"]
    wrong = [failure for failure in failures if failure.get("kind") == Kind.WRONG and failure.get("call")]
    if not wrong or not checked.explain:
        return {}
    claim = next(claim for claim, _ in claims().values() if claim.test == test_id)
    bench, call = Bench(next(checked.subjects(claim))), parse(wrong[0]["call"])
    slots = [slot for slot, requires in enumerate(call.mask) if requires]
    names = [argument.name for argument in checked.function.arguments]
    return {names[slot]: not bench.derives_but_for(call, tuple(x for x in slots if x != slot)) for slot in slots}


def _checked(
    function: Any, args: Sequence[Any], implementation: Implementation, stage: str, options: Mapping[str, Any]
) -> Checked:
    """The checks of a call, in the dtype of the stage, or in its own if it does not take that one."""
    own = precision_of(args, implementation)
    if not STAGES[stage].wide:
        return _in_dtype(function, args, implementation, own, stage, options)
    given = [x if implementation.is_tensor(x) else widened(x) for x in args]
    try:
        return _in_dtype(function, given, implementation, _WIDE.get(own, own), stage, options)
    except UsageProblem as problem:
        if isinstance(problem, AlwaysWrong) or own not in _WIDE:
            raise
        raise _Narrow(str(problem)) from problem


def _in_dtype(
    function: Any, args: Sequence[Any], implementation: Implementation, dtype: str, stage: str,
    options: Mapping[str, Any],
) -> Checked:  # fmt: skip
    size = sum(math.prod(implementation.describe(x).shape) for x in args if implementation.is_tensor(x))

    def checked(declaration: Declaration) -> Checked:
        found = Checked(declaration, profile=_PROFILE, seed=0, explain=size <= SEARCHED)
        found.selection  # noqa: B018 - it raises where the call cannot be made
        return found

    # What a declaration would say of a Function that is only called is seen, and no fault: here what it changes.
    inplace = changed_in_place(function, args, implementation)
    # That an output is cast, or a graph used once, is what the program does.
    usual = {"casts": True, "single_backward": True}
    seen = {**usual, **options, "dtypes": (dtype,), "inplace": inplace, "examples": STAGES[stage].share}
    found = checked(declared(function, args, implementation, **seen))
    if not found.function.facts.draws:
        return found
    return checked(declared(function, args, implementation, **{**seen, "stochastic": True}))
