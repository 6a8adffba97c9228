"""What can come of a test id, and what a failure has to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

OUTCOMES = {
    "pass": "held in every example",
    "fail": "an example breaks it",
    "error": "crashed, hung or raised something unexpected",
    "known": "a listed deviation that still fails",
    "fixed": "a listed deviation that passes",
    "emulated": "held, with help from the adapter",
    "unsupported": "the implementation does not claim the capability",
    "vacuous": "ran without ever exercising what it checks",
    "skip": "not run here, with a reason",
}

# Outcomes with which a run falls short.
SHORTFALLS = frozenset(("fail", "error", "fixed", "vacuous"))

# Outcomes of what was not run.
UNASKED = frozenset(("unsupported", "skip"))


def named(claim: str, variant: str) -> str:
    """The id of a property or clause, with the variant of the test that checks it, if it has one."""
    return f"{claim}/{variant}" if variant else claim


@dataclass(frozen=True)
class Finding:
    """The smallest example found that breaks a property, in words and numbers."""

    what: str
    got: str
    expected: str
    call: str
    bound: str = ""
    chosen: str = ""
    hint: str = ""
    component: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value not in ("", {})}


class Broken(AssertionError):
    """A property does not hold; ``finding`` says for what call, what came and what should have come."""

    def __init__(self, property_id: str, sentence: str, where: str, finding: Finding) -> None:
        self.finding = finding
        lines = [
            f"{property_id}: {sentence}",
            f"  {where}: {finding.what} is {finding.got}, but should be {finding.expected}",
            f"  bound: {finding.bound}" if finding.bound else "",
            f"  with: {finding.chosen}" if finding.chosen else "",
            f"  hint: {finding.hint}" if finding.hint else "",
            f"  call: {finding.call}" if finding.call else "",
        ]
        super().__init__("\n".join(line for line in lines if line))


def message_of(raised: BaseException) -> str:
    """The exception's message, whatever its ``__str__`` does."""
    try:
        return str(raised)
    except Exception as failed:  # noqa: BLE001 - an implementation's exceptions may do anything
        return f"(no message: its __str__ raised {type(failed).__name__})"


def told(raised: BaseException) -> str:
    """The exception's type and message in one line."""
    return " ".join(f"{type(raised).__name__}: {message_of(raised)}".split())


class UsageProblem(Exception):
    """A wrong option or environment; the message says what is wrong and what is valid."""


class Vacuous(AssertionError):
    """A test id ran its examples without exercising what it checks."""


def _ignore(_: str) -> None:
    pass


@dataclass(frozen=True)
class Drawn:
    """What the examples of a test depend on, beside its id and the suite: with it they are drawn again.

    ``examples`` is the profile's number, whatever the test makes of it, and ``dtype`` the only one of the run, if any.
    """

    seed: int
    examples: int
    dtype: str | None = None

    def __str__(self) -> str:
        return f"seed={self.seed} examples={self.examples}" + (f" dtype={self.dtype}" if self.dtype else "")


@dataclass
class Record:
    """What happened while the examples of one test id ran; ``note`` is told of each call before it runs.

    ``checks`` counts comparisons, those with an ``inconclusive`` oracle included; ``excused`` examples were refused by
    the implementation, with ``excuse`` as the last reason, ``answered`` ones were not. ``drawn`` says how the latest
    examples were drawn, None if that does not tell them. ``worst_by_dtype`` holds the largest error of each dtype, in
    units of its bound.
    """

    examples: int = 0
    checks: int = 0
    inconclusive: int = 0
    refused: int = 0
    excused: int = 0
    answered: int = 0
    excuse: str = ""
    worst_by_dtype: dict[str, float] = field(default_factory=dict)
    call: str = ""
    drawn: Drawn | None = None
    note: Callable[[str], None] = field(default=_ignore, repr=False, compare=False)

    def begin(self, call: str) -> None:
        """Count an example."""
        self.examples += 1
        self.call = call
        self.note(call)

    def measure(self, dtype: str, ratio: float) -> None:
        """Keep an error, in units of its bound, if it is the largest so far."""
        # JSON has no infinity.
        self.worst_by_dtype[dtype] = max(self.worst_by_dtype.get(dtype, 0.0), min(ratio, 1e300))

    def excuse_with(self, why: str) -> None:
        """Count an example that is refused, and keep the reason."""
        self.excused += 1
        self.excuse = why

    @property
    def refused_throughout(self) -> bool:
        """Whether every example was refused, or not tried."""
        return self.excused > 0 and self.answered == 0

    @property
    def worst(self) -> float:
        """The largest error of all, in units of its bound."""
        return max(self.worst_by_dtype.values(), default=0.0)

    def verify_exercised(self) -> None:
        """Raise Vacuous unless something was checked, and mostly conclusively, or all of it was refused."""
        if self.refused_throughout:
            return
        if self.checks == 0 or 2 * self.inconclusive > self.checks:
            raise Vacuous(
                f"{self.examples} examples made {self.checks} checks, {self.inconclusive} of them inconclusive: "
                "nothing is known about this property here"
            )
