"""The result line of a test id: its outcome, its counts, and the failure with a standalone script."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis.errors import FailedHealthCheck, Unsatisfiable

from autograd_conformance.harness.outcomes import (
    FAILING,
    NOT_RUN,
    UNCLAIMED,
    Broken,
    NotRun,
    TooSlow,
    Vacuous,
    message_of,
)
from autograd_conformance.harness.processes.blackbox import MACHINERY, LastWords
from autograd_conformance.harness.reports.ndjson import REFUSED, SLOW, UNCHECKED, Line, test_of
from autograd_conformance.harness.running import unclaimed
from autograd_conformance.harness.running.unclaimed import Tested
from autograd_conformance.harness.scripts.script import script_for
from autograd_conformance.harness.testing import own_faults
from autograd_conformance.harness.testing.examined import PartMissing
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.harness.text import of_result
from autograd_conformance.implementations.deviations import Deviation, Frequency, Grade, named_by, release_of
from autograd_conformance.strategies import integers
from autograd_conformance.strategies.calls import parse

# Lines of a traceback that a result keeps.
_LINES = 16

# Characters of a refusal that a result keeps.
_EXCUSE = 300


def result_line(
    subject: Tested, error: BaseException | None, needs: frozenset[str] = frozenset(), not_run: NotRun | None = None
) -> Line:
    """The line of a test id that ended with ``error``, if any.

    ``needs`` lists the capabilities that it used; ``not_run`` says why the test could not be run.
    """
    outcome = not_run._asdict() if not_run is not None else _outcome(subject, error, needs)
    if subject.unclaimed and not_run is None:
        outcome = unclaimed.outcome(outcome, subject)
    ran = outcome["outcome"] not in (*NOT_RUN, *UNCLAIMED)
    asked = {"dtypes": list(dict.fromkeys(subject.dtypes))} if ran else {}
    line = {**subject.key, **outcome, **asked, **_figures(subject)}
    line.update(_as_listed(subject.deviations, line, _seen_on(subject)))
    line.update(_unclaimed_grade(line))
    own = own_faults.taken()
    line.update({"own_faults": own} if own else {})
    if "failure" in line and subject.record.drawn is not None:
        line["failure"]["drawn"] = asdict(subject.record.drawn)
    if line["outcome"] in (*FAILING, "silent") and "failure" in line and isinstance(subject, Subject):
        for failure in (line["failure"], *line["failure"].get("further", ())):
            failure.update(_script(subject, failure))
            values = integers.in_words(subject.function, parse(failure["call"])) if _is_own(subject, failure) else ""
            failure.update({"values": values} if values else {})
    return of_result(line)  # type: ignore[no-any-return]


def _is_own(subject: Subject, failure: Line) -> bool:
    """Whether a failure is of a call of a user's Function, whose author does not know how values are drawn."""
    return subject.explores and bool(failure.get("call"))


def agree(report: Any, line: Line) -> None:
    """Let pytest count a test, and end after failures, by its result line."""
    if line["outcome"] == "known" or (line["outcome"] not in FAILING and report.outcome == "failed"):
        report.outcome, report.wasxfail = "skipped", line.get("reason", line["outcome"])
    elif line["outcome"] in FAILING and report.outcome != "failed":
        failure = line.get("failure", {})
        reason = line.get("reason") or failure.get("message") or failure.get("what", "")
        report.outcome, report.longrepr = "failed", f"{line['outcome']}: {reason}"


def _script(subject: Subject, failure: Line) -> Line:
    """The fields of a failure with its script, or the reason why it has none."""
    if not failure.get("call"):
        return {}
    script, problem = script_for(subject.implementation, subject.function, subject.claim_id, failure, subject.source())
    return {"script": script} if script else {"no_script": problem}


def died_line(last: LastWords, deviations: Sequence[Deviation]) -> Line:
    """The line of a test id whose process hung or died, on an implementation with these deviations."""
    failure: Line = {"type": last.kind, "message": last.cause, "traceback": last.frames[:_LINES]}
    if last.call and "function" in last.key:
        failure["call"] = last.call
        failure["no_script"] = "the process ended or hung in this call, which a script must not repeat"
    elif last.call:
        failure["chosen"] = last.call
    if last.at:
        failure["at"] = last.at
    if last.drawn is not None:
        failure["drawn"] = last.drawn
    nothing = dict.fromkeys(("examples", "checks", "inconclusive", "refused", "worst", "seconds"), 0)
    line = {**last.key, "outcome": "dies" if "unclaimed" in last.key else "error", "failure": failure, **nothing}
    listed = named_by(deviations, test_of(last.key), last.key.get("function", ""))
    return of_result({**line, **_unclaimed_grade(line), **_as_listed(listed, line, "")})  # type: ignore[no-any-return]


def _unclaimed_grade(line: Line) -> Line:
    """The grade of what is wrong without an error where nothing is claimed; empty for any other result."""
    return {"grade": Grade.UNCLAIMED.words} if line["outcome"] in ("silent", "dies") else {}


def _seen_on(subject: Tested) -> str:
    """The version on which a listed deviation may have been seen; "" on an accelerator, where none was looked for."""
    i = subject.implementation
    return "" if subject.device in i.accelerators() else i.environment().version


def _as_listed(listed: Sequence[Deviation], line: Line, version: str) -> Line:
    """The outcome, reason and grade of the listed deviations of a test; empty if they do not say what comes of it.

    What holds is fixed only on a release on which it was seen: of another one the list promises nothing.
    """
    outcome = _LISTED.get(line["outcome"], "")
    if outcome == "known":
        about = [d for d in listed if d.covers(line.get("failure", line))]
    else:
        seen = [d for d in listed if outcome and release_of(version) in d.cause.seen]
        about = [d for d in seen if d.frequency is not Frequency.SOMETIMES]
    if not about:
        return {}
    cause = about[0].cause
    return {"outcome": outcome, "reason": str(cause), "grade": cause.grade.words}


_LISTED = {"fail": "known", "error": "known", "vacuous": "known", "pass": "fixed", "emulated": "fixed"}


def _figures(subject: Tested) -> Line:
    record = subject.record
    by_dtype = {dtype: _figure(ratio) for dtype, ratio in sorted(record.worst_by_dtype.items())}
    return {
        "examples": record.examples,
        "checks": record.checks,
        "inconclusive": record.inconclusive,
        "refused": record.refused,
        **({"excused": record.excused, "excuse": record.excuse[:_EXCUSE]} if record.excused else {}),
        **({"declined": dict(record.declined)} if record.declined else {}),
        **({"slow": record.answered} if record.slow else {}),
        **({"share": subject.paced} if isinstance(subject, Subject) and subject.paced < 1 else {}),
        "worst": _figure(record.worst),
        **({"worst_by_dtype": by_dtype} if by_dtype else {}),
        "seconds": round(subject.cpu_seconds, 3),
    }


def _figure(ratio: float) -> float:
    return float(f"{ratio:.3g}")


def _outcome(subject: Tested, error: BaseException | None, needs: frozenset[str]) -> Line:
    if error is None:
        helped = sorted((needs | subject.needs) & subject.implementation.emulated)
        if helped:
            return {"outcome": "emulated", "reason": f"the adapter supplies {', '.join(helped)}"}
        if subject.record.refused_throughout:
            # Not a pass: the implementation claims the capability, and the property was never checked.
            reason = f"refused in every example: {subject.record.excuse[:_EXCUSE]}"
            return {"outcome": "vacuous", "vacuous": REFUSED, "reason": reason}
        return {"outcome": "pass"}
    if isinstance(error, PartMissing):
        return {"outcome": "missing", "reason": str(error)}
    if isinstance(error, pytest.skip.Exception):
        return {"outcome": "skip", "reason": str(error.msg)}
    # Of a user's Function nothing is verified by a test that compares nothing.
    users = isinstance(subject, Subject) and subject.explores
    if subject.record.untaken and not users and isinstance(error, Vacuous | Unsatisfiable | FailedHealthCheck):
        return {"outcome": "skip", "reason": subject.record.untaken}
    if isinstance(error, Vacuous | Unsatisfiable):
        why = SLOW if isinstance(error, TooSlow) else UNCHECKED
        return {"outcome": "vacuous", "vacuous": why, "reason": str(error)}
    leaves = list(_leaves(error))
    broken = [leaf for leaf in leaves if isinstance(leaf, Broken)]
    if broken and len(broken) == len(leaves):
        flaky = {"flaky": True} if broken[0] is not error else {}
        failure = {**json_of(broken[0].finding.as_json()), **flaky}
        others = [json_of(finding.as_json()) for finding in subject.record.further]
        return {"outcome": "fail", "failure": {**failure, **({"further": others} if others else {})}}
    failure = {"type": type(error).__name__, "message": message_of(error), "traceback": _last_lines(error)}
    if subject.record.call:
        failure["call" if isinstance(subject, Subject) else "chosen"] = subject.record.call
    return {"outcome": "error", "failure": failure}


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group: Hypothesis groups them when a failure cannot be reproduced."""
    inner = getattr(error, "exceptions", None)
    if inner is None:
        yield error
    for each in inner or ():
        yield from _leaves(each)


def _last_lines(error: BaseException) -> list[str]:
    """The end of the traceback, without frames in `MACHINERY`."""
    frames = traceback.extract_tb(error.__traceback__)
    kept = [frame for frame in frames if not any(part in frame.filename for part in MACHINERY)]
    text = "".join(traceback.StackSummary.from_list(kept).format())
    return [line for line in text.splitlines() if line.strip("^~ ")][-_LINES:]


def json_of(value: Any) -> Any:
    """The value for JSON: NumPy's scalars become numbers, infinity and NaN become null."""
    if isinstance(value, Mapping):
        return {str(key): json_of(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(each) for each in value]
    if isinstance(value, str | bool | int | None):
        return value
    return float(value) if math.isfinite(value) else None
