"""The verdict on a result, for the author of a Function: a word, what to do, and a guess at the cause."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from autograd_conformance.harness.outcomes import DEATH, HANG, Kind, Means, is_of_output
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.property import Property
from autograd_conformance.strategies import lengths, magnitudes

WRONG, DETACHED, RAISES, MUTATES, SHARES = "wrong", "silently detached", "raises", "mutates", "shares memory"
LEAKS, UNDETECTED, MISFITS, NOT_FINITE, STALE = "leaks", "not detected", "misfits", "not finite", "stale"
EDGE, DIFFERS = "edge", "differs"
CRASHES, HANGS, ERROR = "crashes", "hangs", "error"
REFUSED, UNKNOWN, UNVERIFIED, SLOW = "refused", "not known", "not verified", "too slow"
DECLINED = "declared but refused"

# What each word means: to a reader of the documentation, and of `list verdicts`.
MEANINGS = {
    WRONG: "a number is not what it should be, by more than rounding explains",
    DIFFERS: "undeclared, and everywhere another gradient than the derivative: a fault, unless it is meant",
    DETACHED: "a second derivative lacks the part that goes through the inputs, without an error",
    NOT_FINITE: "NaN or infinite where the outputs are finite",
    UNDETECTED: "a change in place makes the gradient wrong, without an error",
    MUTATES: "an input, output or cotangent of the caller, or a setting of the process, is changed",
    SHARES: "a gradient is stored in another tensor's memory",
    LEAKS: "something stays alive after backward",
    MISFITS: "an output or gradient has the wrong shape, dtype or device",
    RAISES: "a declared call raised an exception",
    EDGE: "backward alone raises for tensors without elements",
    STALE: "a limitation is declared that does not exist",
    CRASHES: "the process died",
    HANGS: "a call did not end within the time limit",
    ERROR: "a call could not be judged",
    REFUSED: "an error for something that need not be supported: not a fault",
    DECLINED: "forward refuses calls that the declaration describes, or what `also=` asks for is refused",
    UNVERIFIED: "nothing shows that the gradient, or the second derivative, is right",
    SLOW: "too few examples ended within the time limit",
    UNKNOWN: "nothing could be compared",
}

# Verdicts that are not faults.
NOTES = frozenset((REFUSED, UNKNOWN, UNVERIFIED, SLOW, DECLINED))
# Verdicts on an exception.
RAISED = frozenset((RAISES, EDGE))
# Verdicts on a test that ended its process.
LOST = frozenset((CRASHES, HANGS))

_OF_KIND: dict[str, str] = {
    Kind.RAISED: RAISES,
    Kind.DETACHED: DETACHED,
    Kind.NAN: NOT_FINITE,
    Kind.MUTATED: MUTATES,
    Kind.SHARED: SHARES,
}
_OF_LOSS = {DEATH: CRASHES, HANG: HANGS}

# What is wrong, where the finding's hint says why: the run itself showed it.
_SHOWN = ("precision", "declared")

# The variants of tests that may compare nothing: other lengths and values say whether the gradient was verified.
BESIDE = (lengths.LONG, magnitudes.SMALL, magnitudes.RANGE, magnitudes.FAR)

# The property that calls which give something else each time do not hold.
_REPEATED = "VJP-REPEAT"

# The properties of plain calls that compare gradients, and the one that compares outputs.
_OF_GRADIENTS, _OF_OUTPUTS = ("VJP-REF", "VJP-FD"), "FWD-VALUE"

# What to do next.
_NEXT = {
    CRASHES: "make this call in a script of your own, under a debugger",
    HANGS: "if a call takes so long, raise --time-limit; if not, make this call in a script of your own",
    ERROR: "find the last line of your code in the traceback; if there is none, report a bug of autograd-conformance",
}

# The properties that explain most come first: what comes from outside the call, and then the plain call.
_ORDERED = sorted(PROPERTIES.values(), key=lambda each: each.head or len(PROPERTIES))
ORDER = tuple(each.id for each in _ORDERED)
# The order of the tests of a Function: what most faults break comes first, and then what names a NaN best.
TRIED = tuple(each.id for each in sorted(_ORDERED, key=lambda each: (not each.compared, each.verdict != NOT_FINITE)))


@dataclass(frozen=True)
class Verdict:
    """What a result means.

    ``advice`` says what to do. ``guess`` is the usual cause of such a failure, which the run did not show. ``follows``
    is the id of another property if this failure is a consequence of that one's.
    """

    word: str
    advice: str = ""
    guess: str = ""
    follows: str = ""

    @property
    def fault(self) -> bool:
        """Whether something is wrong with the Function or its declaration."""
        return self.word not in NOTES

    @property
    def edge(self) -> bool:
        """Whether that is an exception for tensors without elements alone, which fails no check by itself."""
        return self.word == EDGE


class _Result:
    """A result line, with what the rules ask about it."""

    def __init__(self, line: ndjson.Line) -> None:
        self.line, self.claim, self.variant = line, PROPERTIES[line["property"]], line.get("variant", "")
        self.failure: Mapping[str, Any] = line.get("failure", {})
        self.kind, self.likely = self.failure.get("kind", ""), self.failure.get("likely", "")
        self.means: Means = self.failure.get("raised", {}).get("means", "")
        self.of_output, self.follows = is_of_output(self.failure), self.failure.get("follows", "")
        if self.of_output and (self.follows or self.claim.id) in _OF_GRADIENTS:
            # The test of a gradient met a wrong output. What was declared is not compared with a reference.
            self.follows = "" if self.claim.own else _OF_OUTPUTS
        # Nothing else shows that it is right. Tests with special values, or of averages, verify nothing by themselves.
        self.verifies = bool(self.claim.verifies) and not self.variant
        # What was refused is what the property is about.
        self.by_rule = not self.claim.notes_every_refusal or line.get("refused", 0) > 0

    def vacuous(self, *why: str) -> bool:
        """Whether nothing was compared, for one of these reasons, or for any."""
        return self.line["outcome"] == "vacuous" and (not why or self.line["vacuous"] in why)

    @property
    def refuses(self) -> bool:
        """Whether what was asked for is refused, in most examples or as the property notes it."""
        noted = self.claim.notes_every_refusal and self.by_rule and not self.variant
        return (noted and self.line["outcome"] == "pass") or mostly_refused(self.line) or self.vacuous(ndjson.REFUSED)

    @property
    def is_nan_of_forward(self) -> bool:
        """Whether forward itself returned NaN."""
        own = self.follows in ("", _OF_OUTPUTS) and not self.claim.puts_nan
        return self.of_output and self.kind == Kind.NAN and own


def _of_refusal(result: _Result) -> Verdict:
    return Verdict(REFUSED, _if_refused(result.line, result.claim.if_refused) if result.by_rule else "")


def _of_error(result: _Result) -> Verdict:
    word = _OF_LOSS.get(result.failure.get("type", ""), ERROR)
    return Verdict(word, _NEXT[word])


def _of_follower(result: _Result) -> Verdict:
    word, about = _OF_KIND.get(result.kind, WRONG), PROPERTIES[result.follows]
    usual = "" if word == RAISES and about.compared else about.cure_of_others or _advice(about, result.kind)
    return Verdict(word, guess=result.likely or usual, follows=result.follows)


def _of_exception(result: _Result) -> Verdict:
    known = result.means not in ("", "backward alone") or not result.claim.raises
    return Verdict(RAISES, guess="" if known else result.claim.advice)


def _of_itself(result: _Result) -> Verdict:
    claim, failure = result.claim, result.failure
    kind = Kind.WRONG if result.kind == Kind.NAN else result.kind
    shown = failure.get("component", {}).get("aspect") in _SHOWN
    # What makes the call right says more than the usual cause.
    usual = "" if failure.get("right_with") else _advice(claim, kind)
    advice = dict(claim.of_variant).get(result.variant, usual)
    return Verdict(_OF_KIND.get(kind, claim.verdict), guess="" if shown else result.likely or advice)


class _Rule(NamedTuple):
    """What a result is, and the verdict on it, or None."""

    applies: Callable[[_Result], bool]
    verdict: Callable[[_Result], Verdict | None]


# The first rule that applies decides. Of a test without a failure:
_WITHOUT_FAILURE = (
    _Rule(lambda r: "declined" in r.line, lambda _: Verdict(DECLINED)),
    _Rule(lambda r: r.vacuous(ndjson.SLOW), lambda r: Verdict(UNVERIFIED if r.verifies else SLOW, _FOR_MORE)),
    _Rule(
        lambda r: r.vacuous() and r.verifies and not (r.vacuous(ndjson.REFUSED) and r.claim.if_refused),
        lambda _: Verdict(UNVERIFIED, _TO_VERIFY),
    ),
    _Rule(lambda r: r.refuses, _of_refusal),
    _Rule(lambda r: not r.vacuous() or r.variant in BESIDE, lambda _: None),
    _Rule(lambda _: True, lambda _: Verdict(UNKNOWN, "nothing could be compared; declare narrower arguments")),
)
# Of a test that was not judged:
_OF_ERROR = (
    _Rule(
        lambda r: is_flaky(r.line),
        lambda _: Verdict(WRONG, guess=PROPERTIES[_REPEATED].advice, follows=_REPEATED),
    ),
    _Rule(lambda _: True, _of_error),
)
# Of a failure:
_OF_FAILURE = (
    _Rule(lambda r: r.is_nan_of_forward, lambda r: Verdict(NOT_FINITE, guess=_LOST_IN_FORWARD, follows=r.follows)),
    _Rule(lambda r: r.means == "without elements", lambda r: Verdict(EDGE, follows=r.follows)),
    _Rule(lambda r: bool(r.follows), _of_follower),
    _Rule(lambda r: r.kind == Kind.RAISED, _of_exception),
    _Rule(
        lambda r: r.kind == Kind.NAN and not r.claim.puts_nan,
        lambda r: Verdict(NOT_FINITE, guess=r.likely or _HIDDEN_NAN),
    ),
    # The run itself showed this cause.
    _Rule(lambda r: r.claim.verdict == STALE, lambda r: Verdict(STALE, r.claim.advice)),
    _Rule(lambda _: True, _of_itself),
)
_RULES = {
    "pass": _WITHOUT_FAILURE,
    "emulated": _WITHOUT_FAILURE,
    "vacuous": _WITHOUT_FAILURE,
    "error": _OF_ERROR,
    "fail": _OF_FAILURE,
}


def verdict(line: ndjson.Line) -> Verdict | None:
    """The verdict on a result line; None if the property holds and few examples were refused, or was not checked."""
    result = _Result(line)
    rules = _RULES.get(line["outcome"], ())
    return next((rule.verdict(result) for rule in rules if rule.applies(result)), None)


def _advice(about: Property, kind: str) -> str:
    """The usual cause and cure of a failure of this kind."""
    return dict(about.of_kind).get(kind, about.advice)


def is_flaky(line: ndjson.Line) -> bool:
    """Whether a test ended because a call that it made again gave something else."""
    return bool(line.get("failure", {}).get("type", "").startswith("Flaky"))


def _if_refused(line: ndjson.Line, usual: str) -> str:
    """What to do about a refusal."""
    return next((advice for word, advice in _OF_EXCUSE.items() if usual and word in line.get("excuse", "")), usual)


def mostly_refused(line: ndjson.Line) -> bool:
    """Whether a property holds, but more than half of its examples were refused."""
    return line["outcome"] in ("pass", "emulated") and 2 * line.get("excused", 0) > line["examples"]


def judged(
    lines: Sequence[ndjson.Line], *, compared: bool, asked: Collection[str] = ()
) -> list[tuple[ndjson.Line, Verdict | None]]:
    """The lines of a Function with their verdicts.

    ``compared`` says whether a reference gives gradients. Where these decide, finite differences are not needed, and
    what they leave open is no news. ``asked`` are tests that the declaration asks for: nothing may refuse them.
    """
    found = [
        (line, _as_asked(line, verdict(line)) if ndjson.test_of(line) in asked else verdict(line)) for line in lines
    ]
    if not compared:
        return found
    decided = {ndjson.test_of(line) for line, v in found if v is None or v.fault}
    return [(line, _beside_reference(line, v, decided)) for line, v in found]


def _as_asked(line: ndjson.Line, found: Verdict | None) -> Verdict | None:
    """The verdict on a test that the declaration asks for: what refuses most of its examples does not fit that."""
    refused = found is not None and found.word == REFUSED and (mostly_refused(line) or line["outcome"] == "vacuous")
    return replace(found, word=DECLINED) if found is not None and refused else found


# The tests that compare with finite differences, and those that compare the same with a reference.
_COMPARED_BY = {"VJP-FD": "VJP-REF", "DBL-CORRECT": "DBL-CORRECT/averages"}


def _beside_reference(line: ndjson.Line, found: Verdict | None, decided: Collection[str]) -> Verdict | None:
    """A verdict if there is a reference: None if that ``decided`` what finite differences left open."""
    if found is None or found.word not in (UNVERIFIED, UNKNOWN):
        return found
    if _COMPARED_BY.get(line["property"]) in decided and not line.get("variant"):
        return None
    return replace(found, advice=_WITH_REFERENCE) if found.advice == _TO_VERIFY else found


_FOR_MORE = "for more examples raise --time-limit, or make the tensors smaller with sizes="
_HIDDEN_NAN = (
    "backward divides 0 by 0, multiplies 0 and infinity, or overflows; if where() hides this in the result, apply "
    "where() to the operands instead"
)
_LOST_IN_FORWARD = (
    "forward divides 0 by 0, multiplies 0 and infinity, or overflows; bound the divisor by a number that the dtype "
    "has, or compute such terms in a dtype with a larger range"
)
_TO_VERIFY = (
    "finite differences need a forward that computes in single or double precision, without kinks or noise nearly "
    "everywhere; so take float64 or float32 (see dtypes=), declare narrower arguments, as in 'float[n] positive', or "
    "give reference=, which does the same with built-in operations"
)
_WITH_REFERENCE = (
    "take float64 or float32 (see dtypes=), declare narrower arguments, as in 'float[n] positive', or let reference= "
    "take float64 and all that the Function takes"
)
# What to do about refusals whose exception has these words.
_OF_EXCUSE = {
    "setup_context": "write forward without ctx, and a static method setup_context; then set generate_vmap_rule = "
    "True, or write a static method vmap"
}
