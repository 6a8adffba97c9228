"""The failures of a run by their probable cause: one exception, or one thing that is wrong where it is observed.

This groups what is shown to a person. The gate and the baseline know test ids only.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from autograd_conformance.harness.outcomes import DEATH, HANG, Kind
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import place
from autograd_conformance.harness.views import describe
from autograd_conformance.reference.properties import PROPERTIES

# The most tests of a cause that are named.
NAMED = 6

# What differs between the messages of one error.
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|\d+")
# A name of the framework's interface, as in "ctx.needs_input_grad in forward".
_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


@dataclass(frozen=True)
class Cause:
    """Failing results with one probable cause; the first one tells most."""

    lines: tuple[Line, ...]

    @property
    def head(self) -> Line:
        """The result that tells most."""
        return self.lines[0]

    @property
    def others(self) -> str:
        """The tests of the other results, the first ones by name; "" if there are none."""
        functions: dict[str, int] = defaultdict(int)
        for line in self.lines[1:]:
            functions[ndjson.test_of(line)] += 1
        named = [f"{test} ({count} test ids)" if count > 1 else test for test, count in functions.items()]
        more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        return f"{', '.join(named[:NAMED])}{more}"

    @property
    def title(self) -> str:
        """The id that tells most, and how many others there are."""
        more = f", and {len(self.lines) - 1} more test ids" if len(self.lines) > 1 else ""
        return f"{self.head['id']}{more.removesuffix('s') if len(self.lines) == 2 else more}"


def causes(failing: Iterable[Line]) -> list[Cause]:
    """The causes of these results; the one that explains most of them comes first."""
    ordered = sorted(failing, key=place)
    errors = {text for line in ordered if (text := _error(line))}
    groups: dict[Hashable, list[Line]] = defaultdict(list)
    for line in ordered:
        groups[_key(line, errors)].append(line)
    parts = [part for key, group in groups.items() for part in (_parts(group) if _is_observed(key) else [group])]
    found = [Cause(tuple(sorted(part, key=_rank(part)))) for part in parts]
    return sorted(found, key=lambda cause: (-len(cause.lines), place(cause.head)))


def _key(line: Line, errors: Iterable[str]) -> Hashable:
    """What results of one cause have in common."""
    failure = line.get("failure", {})
    if failure.get("type") in (HANG, DEATH):
        return failure["type"], _constant(failure["message"]), _innermost(failure)
    told = _constant(" ".join(str(t) for t in (failure.get("got"), line.get("reason")) if t))
    # The exception may be a result of its own: refused, or compared with the expected one.
    raised = _error(line) or max((text for text in errors if text in told), key=len, default="")
    if raised:
        return "raised", raised
    if "what" not in failure:
        return line["outcome"], _constant(line.get("reason", "")) or ndjson.claim_of(line)
    name = _NAME.search(re.sub(r"\([^()]*\)", "", failure["what"]))
    if name:
        return "named", name[0]
    return "observed", failure.get("kind", Kind.WRONG), *_observed(line)


def _is_observed(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[0] == "observed"


def _observed(line: Line) -> tuple[str, str]:
    """What is wrong: of a clause that alone; of a property whether an output or a derivative, and what of it."""
    claim = ndjson.claim_of(line)
    if claim not in PROPERTIES:
        return claim, ""
    part = "output" if PROPERTIES[claim].group == PROPERTIES["FWD-VALUE"].group else "derivative"
    return part, line["failure"].get("component", {}).get("aspect", "")


def _error(line: Line) -> str:
    """The exception of a result, without what varies; "" if there is none."""
    failure = line.get("failure", {})
    if failure.get("kind") == Kind.RAISED and "raised" in failure:
        return _constant(failure["got"])
    if line["outcome"] == "error" and failure.get("type") not in (HANG, DEATH, None):
        return _constant(f"{failure['type']}: {failure['message']}")
    return ""


def _innermost(failure: Line) -> str:
    """The function in which a process was lost."""
    stack = failure.get("traceback", [])
    current = next((n for n, row in enumerate(stack) if row.startswith("Current thread")), -1)
    return _constant(next(iter(stack[current + 1 :]), ""))


def _constant(text: str) -> str:
    """The text without what varies."""
    return " ".join(_VARYING.sub("", text).split())


def _parts(group: Sequence[Line]) -> list[list[Line]]:
    """The results of one observed thing in parts: a property joins an earlier one that most of its Functions break."""
    by_property: dict[str, list[Line]] = defaultdict(list)
    for line in group:
        by_property[ndjson.claim_of(line)].append(line)
    parts: list[list[Line]] = []
    for lines in sorted(by_property.values(), key=len, reverse=True):
        joined = next((part for part in parts if _mostly_of(lines, part)), None)
        if joined is None:
            parts.append(list(lines))
        else:
            joined += lines
    return parts


def _mostly_of(lines: Sequence[Line], part: Sequence[Line]) -> bool:
    """Whether most Functions of these results are among those of the part."""
    mine, theirs = ({line.get("function") for line in each} for each in (lines, part))
    return 2 * len(mine & theirs) > len(mine)


def _rank(part: Sequence[Line]) -> Callable[[Line], tuple[bool, int, bool, tuple[int, str]]]:
    """The sort key within a cause: what is documented of a name comes first, then what fails most, and has a script."""
    texts = {f"{each.get('failure', {}).get('what', '')} {_error(each)}" for each in part}
    names = {name for text in texts for name in _NAME.findall(text)}
    counts = Counter(map(ndjson.test_of, part))

    def key(line: Line) -> tuple[bool, int, bool, tuple[int, str]]:
        sentence = describe.sentence(ndjson.claim_of(line))
        named = any(name in sentence for name in names)
        return not named, -counts[ndjson.test_of(line)], "script" not in line.get("failure", {}), place(line)

    return key
