"""The outcomes of a test id, and the data of a failure."""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal, NamedTuple

from autograd_conformance.reference.properties import PROPERTIES

OUTCOMES = {
    "pass": "held in every example",
    "fail": "an example breaks it",
    "error": "crashed, hung or raised something unexpected",
    "missing": "needs what the package lacks; the reason says what",
    "known": "a listed deviation that still fails",
    "fixed": "a listed deviation that passes",
    "emulated": "held, with help from the adapter",
    "unsupported": "not run or not decided; the reason is in the report",
    "refuses": "not claimed, and refused with an error",
    "holds": "not claimed, but held in every example",
    "silent": "not claimed, and wrong without an error",
    "dies": "not claimed, and the process died or hung",
    "vacuous": "ran without ever exercising what it checks",
    "skip": "not run here, with a reason",
}

# The outcome of a test id that needs what the package lacks.
MISSING = "missing"

# Outcomes with which a run fails.
FAILING = frozenset(("fail", "error", "missing", "fixed", "vacuous"))

# Outcomes of a test id that holds, and of one that does not.
KEPT = frozenset(("pass", "emulated"))
BROKEN = frozenset(("fail", "error"))

# Outcomes of a test id that needs a capability which the implementation does not claim. None of them fails a run.
UNCLAIMED = ("refuses", "holds", "silent", "dies")

# The exit statuses: everything holds, something fails, or nothing can be said.
HOLDS, FAILS, UNDECIDED = 0, 1, 2


def combined(*statuses: int) -> int:
    """The exit status of several: what fails counts more than what is undecided."""
    return FAILS if FAILS in statuses else max(statuses, default=HOLDS)


# Outcomes of a test id that was not run.
NOT_RUN = frozenset(("unsupported", "skip"))


class NotRun(NamedTuple):
    """Why a test id cannot be run; ``outcome`` is one of `NOT_RUN`."""

    outcome: str
    reason: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


# Types of the failure of a test whose process hung or died.
HANG, DEATH = "Hang", "Death"


def named(claim: str, variant: str) -> str:
    """The id of a property or clause, followed by the variant of its test, if there is one."""
    return f"{claim}/{variant}" if variant else claim


class Kind(str, Enum):
    """The kind of a finding, independent of its text."""

    # The result is not the expected one.
    WRONG = "wrong"
    # The call raised an exception.
    RAISED = "raised"
    # A derivative is missing, without an error.
    DETACHED = "detached"
    # A number is NaN.
    NAN = "nan"
    # A tensor was changed that should not have been.
    MUTATED = "mutated"
    # Two tensors share memory, but should not.
    SHARED = "shared"


# What an exception of a call may mean; empty if nothing is known.
Means = Literal["", "mistake", "batch dimensions", "forward", "without elements", "lazy tensor", "backward alone"]


@dataclass(frozen=True)
class Raised:
    """An exception that a call raised: its type, the place, whose code that is, and what it means."""

    type: str
    at: str = ""
    by: Literal["function", "framework"] = "framework"
    means: Means = ""


# The aspect of a component that is an exception.
LOUD = "exception"

# Fields that every finding has in a report, empty or not.
_REQUIRED = ("what", "got", "expected")


@dataclass(frozen=True)
class Finding:
    """The smallest example found that breaks a property.

    ``follows`` is the id of another property if this failure is a consequence of that one's. ``right_with`` names
    another choice for one of the call's, with which the property holds. ``likely`` is the cause to which the call
    points, if it is not the property's usual one. ``everywhere`` says that the derivative is wrong along each argument,
    here and in simple calls. ``compared`` are the result and what was expected, as they were
    compared, if the failure may follow from another property's; no report has them.
    """

    what: str
    got: str
    expected: str
    call: str
    bound: str = ""
    chosen: str = ""
    hint: str = ""
    component: dict[str, Any] = field(default_factory=dict)
    kind: Kind = Kind.WRONG
    follows: str = ""
    raised: Raised | None = None
    choices: dict[str, Any] = field(default_factory=dict)
    right_with: str = ""
    likely: str = ""
    everywhere: bool = False
    compared: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def is_loud(self) -> bool:
        """Whether the user meets an exception, though perhaps another one than expected."""
        return self.kind is Kind.RAISED or self.component.get("aspect") == LOUD

    @property
    def because(self) -> str:
        """What it follows from, in words, if that is not named by the hint."""
        explains = PROPERTIES[self.follows].explains if self.follows and not self.hint else ""
        return explains and f"{explains} ({self.follows}); fix that first"

    def as_json(self) -> dict[str, Any]:
        """The fields that are not empty; of types that JSON and xdist can write."""
        fields = {**asdict(replace(self, compared=())), "kind": self.kind.value, "because": self.because}
        if self.raised is not None and not self.raised.means:
            del fields["raised"]["means"]
        return {
            key: value for key, value in fields.items() if key in _REQUIRED or value not in ("", {}, None, (), False)
        }


def in_words(finding: Mapping[str, Any]) -> str:
    """A sentence with the result of a finding, given as the report holds it."""
    if finding.get("kind") == Kind.RAISED:
        at = finding.get("raised", {}).get("at")
        return f"{finding['what']} raised {finding['got']}" + (f" (at {at})" if at else "")
    return f"{finding['what']}: got {finding['got']}, expected {finding['expected']}"


def is_of_output(finding: Mapping[str, Any]) -> bool:
    """Whether what is wrong is something that forward returned, of a finding as the report holds it."""
    return str(finding.get("what", "")).startswith("output")


class Broken(AssertionError):
    """A property does not hold; ``finding`` has the call, the actual and the expected result."""

    def __init__(self, property_id: str, sentence: str, where: str, finding: Finding) -> None:
        self.finding, self._of = finding, (property_id, sentence, where)
        hint = finding.hint or finding.because
        lines = [
            f"{property_id} must hold: {sentence}",
            f"  {where}: {in_words(finding.as_json())}",
            f"  bound: {finding.bound}" if finding.bound else "",
            f"  with: {finding.chosen}" if finding.chosen else "",
            f"  hint: {hint}" if hint else "",
            f"  right with: {finding.right_with}" if finding.right_with else "",
            f"  call: {finding.call}" if finding.call else "",
        ]
        super().__init__("\n".join(line for line in lines if line))

    def with_finding(self, finding: Finding) -> Broken:
        """The same failure with another finding."""
        other = Broken(*self._of, finding).with_traceback(self.__traceback__)
        other.__cause__ = self.__cause__
        return other


def message_of(raised: BaseException) -> str:
    """The exception's message, even if its ``__str__`` raises."""
    try:
        return str(raised)
    except Exception as failed:  # noqa: BLE001 - an implementation's exceptions may do anything
        return f"(no message: its __str__ raised {type(failed).__name__})"


def one_line(raised: BaseException) -> str:
    """The exception's type and message in one line."""
    return " ".join(f"{type(raised).__name__}: {message_of(raised)}".split())


# The numbers of errors that say what a machine lacks: open files, memory, processes, disk.
_SCARCE = frozenset(
    getattr(errno, name)
    for name in ("EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOSPC", "EDQUOT", "EFBIG")
    if hasattr(errno, name)
)


_NO_THREAD = ("can't start new thread", "unable to start watchdog thread")


def shortage(raised: BaseException) -> str:
    """A sentence for an exception that says that the machine lacks memory, files, threads or disk; empty for others."""
    scarce = isinstance(raised, MemoryError) or (isinstance(raised, OSError) and raised.errno in _SCARCE)
    # Errors that Python raises without a type of their own.
    threads = isinstance(raised, RuntimeError) and message_of(raised) in _NO_THREAD
    if not scarce and not threads:
        return ""
    return f"this machine, or a limit on it (see ulimit -a), leaves too little for a run: {one_line(raised)}"


# So many names fit into an error message.
_FEW = 40


def choose_from(given: str, valid: Iterable[str], *, command: str = "") -> str:
    """What to do about a name that is not valid: the valid ones, or the nearest and the command that lists all."""
    every = list(valid)
    names = {name.lower(): name for name in every}
    longer = [name for name in names if given and name.startswith(given.lower())][:3]
    near = [names[name] for name in longer or get_close_matches(given.lower(), names)]
    if len(every) <= _FEW or not command:
        return f"choose from: {', '.join(every)}" + (f" (did you mean {near[0]}?)" if near else "")
    asked = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{asked}{command} lists all {len(every)}"


class UsageProblem(Exception):
    """A wrong option, file or environment; the message says what is wrong and what is valid."""


class Declared(ValueError):
    """What a declaration says, and a call shows to be wrong."""


class AlwaysWrong(UsageProblem):
    """What a user's Function does in every simple call, and no Function may: a fault, though nothing else is known."""


class Vacuous(AssertionError):
    """The examples of a test id did not exercise what it checks."""


class TooSlow(Vacuous):
    """The time of a test id was up before enough of its examples were run."""


class OutOfTime(KeyboardInterrupt):
    """The time of a test id is up. Hypothesis takes it for an interrupt, and so draws no more examples."""


def _ignore(_: str) -> None:
    pass


@dataclass(frozen=True)
class Drawn:
    """What the examples of a test depend on, apart from its id and the suite: the same values draw the same examples.

    ``examples`` is the profile's number, even if the test draws a share of it. ``dtype`` is the value of ``--dtype``.
    """

    seed: int
    examples: int
    dtype: str | None = None

    def __str__(self) -> str:
        return f"seed={self.seed} examples={self.examples}" + (f" dtype={self.dtype}" if self.dtype else "")


# So many comparisons without an answer are not chance, and so many with one are enough.
_SEVERAL, _ENOUGH = 4, 8
# The failures that are kept with their calls.
_KEPT = 32


@dataclass
class Record:
    """What happened while the examples of one test id ran; ``note`` gets the text of each call before it runs.

    ``checks`` counts comparisons, including those with an ``inconclusive`` oracle. ``slopes`` counts those with
    finite differences by dtype: all, and the conclusive ones. ``telling`` ones agree, and gradients of 0 would not
    have. ``doubt`` is the last reason why one was not conclusive, and ``suspicion`` a reason to try more examples.
    The implementation refused the ``excused`` examples, with ``excuse`` as the last reason, and ran the
    ``answered`` ones. ``declined`` is the smallest call of those that a user declared and forward refuses, with
    what it raised. The test may take ``allowed`` seconds. After ``until`` no example begins, and the test is
    ``slow``; at least ``enough`` examples must have been run by then. ``failed`` is the last failure, and
    ``failures`` has the first ones by their calls. ``drawn`` says how the last examples were drawn; None if that
    cannot reproduce them. ``worst_by_dtype`` has the largest error of each dtype, in units of its bound.
    ``further`` are failures of other kinds than the first. ``untaken`` says which dtype an example asked a device
    for that does not take it.
    """

    examples: int = 0
    checks: int = 0
    inconclusive: int = 0
    telling: int = 0
    refused: int = 0
    excused: int = 0
    answered: int = 0
    excuse: str = ""
    declined: dict[str, str] = field(default_factory=dict)
    slopes: dict[str, tuple[int, int]] = field(default_factory=dict)
    doubt: str = ""
    suspicion: str = ""
    worst_by_dtype: dict[str, float] = field(default_factory=dict)
    call: str = ""
    drawn: Drawn | None = None
    further: list[Finding] = field(default_factory=list)
    untaken: str = ""
    allowed: float = math.inf
    until: float = math.inf
    enough: int = 1
    slow: bool = False
    failed: Broken | None = None
    failures: dict[str, Finding] = field(default_factory=dict)
    note: Callable[[str], None] = field(default=_ignore, repr=False, compare=False)

    def limit(self, seconds: float, enough: int) -> None:
        """Let no example begin after so many seconds, by which so many are enough."""
        self.allowed, self.until, self.enough = seconds, time.monotonic() + seconds, enough

    def another(self) -> Record:
        """An empty record of the same test, within the same time."""
        return Record(note=self.note, allowed=self.allowed, until=self.until)

    def begin(self, call: str) -> None:
        """Count an example."""
        self.examples += 1
        self.call = call
        self.note(call)

    def measure(self, dtype: str, ratio: float) -> None:
        """Record an error, in units of its bound, if it is the largest so far."""
        # JSON has no infinity.
        self.worst_by_dtype[dtype] = max(self.worst_by_dtype.get(dtype, 0.0), min(ratio, 1e300))

    def compare_slope(self, dtype: str, doubt: str | None) -> None:
        """Count a comparison with finite differences, and the reason why it was inconclusive, if it was."""
        made, decided = self.slopes.get(dtype, (0, 0))
        self.slopes[dtype] = made + 1, decided + (doubt is None)
        if doubt is None:
            self.checks += 1
        else:
            self.leave_open(doubt)

    def leave_open(self, doubt: str) -> None:
        """Count a comparison without an answer, and the reason."""
        self.checks += 1
        self.inconclusive += 1
        self.doubt = doubt

    def fail_with(self, broken: Broken) -> None:
        """Keep a failure, and the first ones by their calls. Smaller ones are looked for as long again."""
        if self.failed is None:
            self.until = time.monotonic() + self.allowed
        self.failed = broken
        if len(self.failures) < _KEPT:
            self.failures.setdefault(broken.finding.call, broken.finding)

    def excuse_with(self, why: str) -> None:
        """Count a refused example, and keep the reason."""
        self.excused += 1
        self.excuse = why

    def decline(self, call: str, got: str, at: str) -> None:
        """Keep a call that is declared and that forward refuses, if there is no smaller one."""
        if not self.declined or len(call) < len(self.declined["call"]):
            self.declined = {"call": call, "got": got, "at": at}

    @property
    def refused_throughout(self) -> bool:
        """Whether examples were refused and none was answered."""
        return self.excused > 0 and self.answered == 0

    @property
    def worst(self) -> float:
        """The largest error of all dtypes, in units of its bound."""
        return max(self.worst_by_dtype.values(), default=0.0)

    @property
    def conclusive(self) -> bool:
        """Whether something was checked, and at most half of it was inconclusive, but in no dtype all of it.

        Many answers of finite differences are enough, however many of them were inconclusive.
        """
        most = 2 * self.inconclusive <= self.checks or self._decided >= _ENOUGH
        return self.checks > 0 and most and not self._undecided

    @property
    def worth_more(self) -> bool:
        """Whether finite differences gave answers, but too few, or something in the Function is suspicious."""
        return bool(self.suspicion) or (not self.conclusive and self._decided > 0)

    @property
    def _decided(self) -> int:
        return sum(decided for _, decided in self.slopes.values())

    @property
    def _undecided(self) -> list[str]:
        """The dtypes in which finite differences never gave an answer."""
        return [dtype for dtype, (made, decided) in self.slopes.items() if made >= _SEVERAL and not decided]

    @property
    def exercised(self) -> bool:
        """Whether the examples show that the property holds or not."""
        return self.conclusive and not self.refused_throughout

    def verify_exercised(self) -> None:
        """Raise Vacuous unless the checks were conclusive or every example was refused."""
        if self.slow and self.answered < self.enough and not self.refused_throughout:
            raise TooSlow(f"{self.answered} {'example' if self.answered == 1 else 'examples'} held before time was up")
        if not (self.conclusive or self.refused_throughout):
            most = self.inconclusive < self.checks
            among = f", and all in {', '.join(self._undecided)}," if self._undecided and most else ""
            raise Vacuous(
                f"{self.examples} examples made {self.checks} checks, {self.inconclusive} of them{among} inconclusive"
                + (f" (the last one: {self.doubt})" if self.doubt else "")
                + ": this is too little to say whether the property holds"
            )
