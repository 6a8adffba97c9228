"""The properties of a call that a program makes, checked where it is made: in a process forked there, or a thread."""

from __future__ import annotations

import gc
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.served import serving
from autograd_conformance.harness.check.report import places
from autograd_conformance.harness.inside.following import SECOND
from autograd_conformance.harness.outcomes import KEPT, AlwaysWrong, Kind, UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.testing.drawing import forget_outer_test
from autograd_conformance.harness.testing.marks import Claim
from autograd_conformance.harness.testing.profiles import Profile
from autograd_conformance.harness.testing.transforms import SEARCHED
from autograd_conformance.harness.watching import copying, keeping
from autograd_conformance.harness.watching.effects import effects
from autograd_conformance.harness.watching.given import Unwatched, declared, drawn, precision_of, widest_of, with_opaque
from autograd_conformance.harness.watching.links import Links, Opaque
from autograd_conformance.implementations import restrict
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import devices
from autograd_conformance.implementations.torch.widening import widened
from autograd_conformance.strategies.calls import Tensor, parse
from autograd_conformance.strategies.given import NEAR
from autograd_conformance.suites.declared import Checked, claims

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
# What few programs ask for: of second derivatives nothing is said where a first one is another than the derivative.
BEYOND = ("FWD-DTYPE", "DBL-CORRECT", "DBL-ONCE")


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
    "beyond": Stage(BEYOND, wide=True),
}
# Those that change for a moment what other threads of the program see.
_PROCESS_WIDE = ("MEM-WRITTEN", "ENV-SETTINGS", "ENV-SETTINGS/seeds")
# What is asked first if the program does this, by the words of `inside.following`.
_USED = {"unused": "VJP-UNUSED", "expanded": "VJP-COTANGENT-LAYOUT", "strided": "VJP-COTANGENT-LAYOUT"}
# The tests that compare with finite differences.
_SLOPES = ("VJP-FD", "DBL-CORRECT")
# So many times larger an error may be than rounding makes it, and what is said of one that is no larger.
_LENIENT = 100.0
_NEARLY = "it is nearly right: an iteration may end before it converges, or something be computed in single precision"
# There is little to draw for a call whose arguments are given.
_PROFILE = Profile("watch", 3, True, False, "the calls of a program")

Send = Callable[[dict[str, Any]], None]


def prepare() -> None:
    """Load what every check needs: in the program, so that no process has to do it again."""
    serving("torch")
    claims()


def kept() -> AbstractContextManager[None]:
    """A context that sets back the settings and the random numbers of this process."""
    implementation = serving("torch")
    return copying.kept(implementation, (*devices.generators(),))


class _Narrow(Exception):
    """Why a Function takes no double precision."""


def check(
    function: Any, args: Sequence[Any], *, name: str, where: str, stage: str, done: Collection[str], seconds: float,
    means: Mapping[str, Any], uses: Collection[str], scripted: Collection[str], copied: bool, keep: str,
    differs: bool, send: Send,
) -> None:  # fmt: skip
    """Ask the tests of a stage that are not done yet about a call, until the time is up: one at least.

    ``means`` are options of a declaration that say what is meant, and ``uses`` words for what the program does with
    such calls; tests that are ``scripted`` have a script. The arguments are ``copied`` in a process that is still
    that of the program. A call that shows a fault is kept in the folder ``keep``, if there is one. Sends the facts
    about the Function, a result for each test and scripts of those that fail, or why the call cannot be checked.
    """
    until, device, left = time.monotonic() + seconds, devices.device_of(args), _unasked_in_program(copied)
    if not copied:
        forget_outer_test()
    with warnings.catch_warnings(), devices.current(device):
        warnings.simplefilter("ignore")
        silent = differs and SECOND not in uses
        try:
            implementation = _on(device.type)
            if copied:
                implementation.synchronize(device.type)
                args = copying.copies(args, implementation)
            arguments = keeping.pickled(args) if keep else b""
            options = {"name": name, "where": where, **means}
            call = _Call(function, args, implementation, stage, options, uses, widens=not copied)
            checked = call.checked()
            send({"facts": asdict(_facts(checked, means)), "code": places.lines_of(function, where)})
            for test_id in _ordered(STAGES[stage].tests, uses):
                if test_id not in (*done, *call.unasked, *left, *BEYOND[1:] * silent):
                    lines, telling = _lines(checked, test_id)
                    lines = lines if differs else _leniently(call, test_id, lines)
                    failures = [line["failure"] for line in lines if _is_wrong(line)]
                    everywhere = bool(failures) and all(failure.get("everywhere") for failure in failures)
                    differs = differs or (test_id == "VJP-FD" and everywhere)
                    send({"test": test_id, "lines": lines, "telling": telling, "differs": differs})
                    if keep and stage != "beyond" and any(line["outcome"] == "fail" for line in lines):
                        send(keeping.written(keep, function, name, arguments))
                    if time.monotonic() > until:
                        return
                    if test_id not in scripted:
                        send({"scripts": _scripts(call, test_id, lines)})
        except AlwaysWrong as wrong:
            send({"wrong": str(wrong)})
        except _Narrow as problem:
            send({"narrow": str(problem)})
        except (UsageProblem, Unwatched) as problem:
            send({"left_out": str(problem)})
        else:
            send({"finished": stage})


def _on(device: str) -> Implementation:
    """The implementation, with this device alone. Raises Unwatched if it does not know it."""
    implementation = serving("torch")
    if device not in implementation.devices():
        raise Unwatched(f"its tensors are on {device}")
    restrict(implementation, (device,))
    return implementation


def _unasked_in_program(copied: bool) -> tuple[str, ...]:
    """The tests that are left out in a process of the program if it has other threads."""
    others = {threading.main_thread(), threading.current_thread()}
    return _PROCESS_WIDE if copied and not others.issuperset(threading.enumerate()) else ()


def _scripts(call: _Call, test_id: str, lines: Sequence[dict[str, Any]]) -> dict[str, str]:
    """For failures of a test the scripts of calls of the same kind that fail alike."""
    failures = {line["id"]: line["failure"].get("kind") for line in lines if line["outcome"] == "fail"}
    if not failures:
        return {}
    try:
        checked = call.drawn()
        found = _lines(checked, test_id)[0] if checked is not None else []
    except UsageProblem:
        # Other numbers may not be what the Function is for.
        return {}
    alike = (line for line in found if line["id"] in failures and line["outcome"] == "fail")
    same = (line for line in alike if line["failure"].get("kind") == failures[line["id"]])
    return {line["id"]: line["failure"]["script"] for line in same if line["failure"].get("script")}


def _is_plain(value: Any, implementation: Implementation) -> bool:
    return implementation.is_tensor(value) or isinstance(value, bool | int | float | str | type(None))


def _facts(checked: Checked, means: Collection[str]) -> Facts:
    """The facts about the Function. Nobody but ``means`` has declared anything."""
    facts = checked.function.facts
    return replace(facts, stale=tuple(sentence for sentence in facts.stale if sentence.partition(":")[0] in means))


def _ordered(tests: Sequence[str], uses: Collection[str]) -> list[str]:
    """The tests, the first about the derivative and then what the program does."""
    asked = {_USED[word] for word in uses if word in _USED}
    return sorted(tests, key=lambda test: test != "VJP-FD" and test not in asked)


def _lines(checked: Checked, test_id: str) -> tuple[list[dict[str, Any]], bool]:
    """The results of a test, and whether it would have failed for gradients of 0, if it compares slopes."""
    tests = [(claim, test) for claim, test in claims().values() if claim.test == test_id]
    asked = [(claim, test, subject) for claim, test in tests for subject in checked.subjects(claim)]
    found = [line for each in asked if (line := checked.line(*each)) is not None]
    telling = test_id not in _SLOPES or any(subject.record.telling for _, _, subject in asked)
    return [_without_others(checked, line) for line in found], telling


def _leniently(call: _Call, test_id: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results; a number in double precision that is wrong by little is undecided.

    Nobody has declared how exactly the Function computes.
    """
    if not call.is_double or not any(map(_is_wrong, lines)):
        return lines
    found, _ = _lines(call.checked(lenient=True), test_id)
    right = {line["id"] for line in found if line["outcome"] in KEPT}
    return [_undecided(line, _NEARLY) if _is_wrong(line) and line["id"] in right else line for line in lines]


def _is_wrong(line: dict[str, Any]) -> bool:
    return line["outcome"] == "fail" and line["failure"].get("kind") == Kind.WRONG


def _without_others(checked: Checked, line: dict[str, Any]) -> dict[str, Any]:
    """The result, without its failure if that is of something else than the Function."""
    if _is_of_others(checked, line):
        return _undecided(line, "forward refuses numbers near those of the call")
    if line["property"] == "MEM-FREE" and line["outcome"] == "fail" and _has_mocks():
        return _undecided(line, "a mock of the program's keeps what it was called with")
    return line


def _has_mocks() -> bool:
    """Whether the program has objects of unittest.mock now that were called."""
    mocks = sys.modules.get("unittest.mock")
    if mocks is None:
        return False
    # What was there before the process was forked is frozen.
    gc.unfreeze()
    objects = [each for each in gc.get_objects() if issubclass(type(each), mocks.NonCallableMock)]
    gc.freeze()
    return any(each.mock_calls for each in objects)


def _undecided(line: dict[str, Any], reason: str) -> dict[str, Any]:
    """The result of a test that says nothing."""
    rest = {key: value for key, value in line.items() if key != "failure"}
    return {**rest, "outcome": "vacuous", "vacuous": ndjson.UNCHECKED, "reason": reason}


def _claim_of(test_id: str) -> Claim:
    return next(claim for claim, _ in claims().values() if claim.test == test_id)


def _is_of_others(checked: Checked, line: dict[str, Any]) -> bool:
    """Whether a failure is that forward refuses numbers that the program did not give: those of finite differences, and
    others near its own.
    """
    failure = line.get("failure", {})
    if not failure.get("raised") or not failure.get("call"):
        return False
    call, bench = parse(failure["call"]), Bench(next(checked.subjects(_claim_of(line["property"]))))
    if any(isinstance(arg, Tensor) and arg.fill == NEAR for arg in call.args) and not bench.runs_forward(call):
        return True
    # Second derivatives are compared of Functions alone whose simple calls have them.
    return line["property"] in _SLOPES and bench.runs(call)


class _Call:
    """A call that a program makes, in the precision of a stage."""

    def __init__(
        self, function: Any, args: Sequence[Any], implementation: Implementation, stage: str,
        options: Mapping[str, Any], uses: Collection[str], *, widens: bool,
    ) -> None:  # fmt: skip
        self.function, self.stage, self._implementation = function, stage, implementation
        args = with_opaque(args, implementation)
        own, widest = precision_of(args, implementation), widest_of(args, implementation)
        self.is_wide = STAGES[stage].wide and own != widest
        if not own and not self.is_wide:
            raise Unwatched("its tensors have several dtypes, or none of floating-point numbers")
        if self.is_wide and not widens and not all(_is_plain(x, implementation) for x in args):
            raise _Narrow("objects of the program keep their precision: a copy may share parts with them")
        self._args = [x if implementation.is_tensor(x) or not self.is_wide else widened(x) for x in args]
        dtype = widest if self.is_wide else own
        self.effects = effects(function, self._args, implementation, dtype)
        refuses = isinstance(self.effects.raised, NotImplementedError | AssertionError)
        # Some assert that they get single precision.
        if refuses and not (self.is_wide and isinstance(self.effects.raised, AssertionError)):
            why = f"{type(self.effects.raised).__name__}: {self.effects.raised}".removesuffix(": ")
            raise Unwatched(f"its backward refuses it ({why})")
        if self.effects.raised is not None and self.is_wide and "numbers" in stage:
            raise _Narrow(f"it raises in {dtype}")
        # What a declaration would say of a Function that is only called is seen, and no fault: what it changes, that
        # an output is cast, that a graph is used once, or gradients are had by .backward() alone.
        # A tensor that is passed twice requires grad in both places, and is drawn in one. What .backward() gives cannot
        # be differentiated by an enclosing .grad().
        links = Links(args, implementation)
        # Parameters of an object that is passed may be there because they require grad: they do in every call.
        self._steady = tuple(slot for slot in links.held if slot in self.effects.tracked)
        self.unasked = (
            *("VJP-NEEDS",) * bool(links.same or self._steady),
            *("FWD-GRADFLAG",) * bool(self._steady),
            *("DBL-CORRECT", "DBL-ONCE") * self.effects.backward_only,
            # Hooks that copy, as `save_on_cpu`, may give back another class than they got; and it may have a gradient.
            *("ENV-SAVED-HOOKS", "VJP-NONE") * any(isinstance(x, Opaque) for x in args),
        )
        self.is_double = dtype == widest
        self._options = {
            "casts": stage != "beyond", "single_backward": "again" not in uses,
            "backward_only": self.effects.backward_only, "stochastic": self.effects.draws, **options,
            "dtypes": (dtype,), "examples": STAGES[stage].share,
        }  # fmt: skip

    def checked(self, lenient: bool = False) -> Checked:
        """The checks of the call. Raises _Narrow if it cannot be made in the precision of the stage."""
        call = self.function, self._args, self._implementation, self.effects
        options = {"conditioning": 1.0, **self._options}
        options["conditioning"] *= _LENIENT**lenient
        try:
            found = self._checks_of(declared(*call, self._steady, **options))
            found.selection  # noqa: B018 - it raises where the call cannot be made
            return found
        except UsageProblem as problem:
            if isinstance(problem, AlwaysWrong) or not self.is_wide:
                raise
            raise _Narrow(str(problem)) from problem

    def drawn(self) -> Checked | None:
        """The checks of calls of the same kind with other numbers; None if no script could make them."""
        call = self.function, self._args, self._implementation, self.effects
        declaration = drawn(*call, **self._options)
        return None if declaration is None else self._checks_of(declaration)

    def _checks_of(self, declaration: Declaration) -> Checked:
        size = sum(math.prod(self._implementation.describe(x).shape) for x in self._args if self._is_tensor(x))
        explain = size <= SEARCHED
        return Checked(declaration, profile=_PROFILE, seed=0, explain=explain, implementation=self._implementation)

    def _is_tensor(self, value: Any) -> bool:
        return self._implementation.is_tensor(value)
