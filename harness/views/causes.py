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
from autograd_conformance.harness.reports.reading import constant, lost_in, place
from autograd_conformance.harness.views import describe
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES

# The most tests of a cause that are named, and the most Functions of each.
NAMED = 8
FUNCTIONS = 3

# A name of the framework's interface, as in "ctx.needs_input_grad in forward".
_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


@dataclass(frozen=True)
class Cause:
    """Failing results with one probable cause; the first one says most.

    ``nearby`` are results of the same group of clauses that fail in another way: they may be faults of their own.
    """

    lines: tuple[Line, ...]
    nearby: tuple[Line, ...] = ()

    @property
    def head(self) -> Line:
        """The result that says most."""
        return self.lines[0]

    @property
    def to_rerun(self) -> list[Line]:
        """A result for each thing that may be a fault: the head, and the first one of each clause nearby."""
        return [self.head, *{ndjson.claim_of(line): line for line in reversed(self.nearby)}.values()]

    @property
    def others(self) -> str:
        """The tests of the other results with their Functions, the first ones by name; "" if there are none."""
        functions: dict[str, list[str]] = defaultdict(list)
        for line in self.lines[1:]:
            functions[ndjson.test_of(line)].append(line.get("function", ""))
        return _few([f"{test}{_in_brackets(found)}" for test, found in functions.items()], NAMED)

    @property
    def title(self) -> str:
        """The id that says most, and how many others there are."""
        count = len(self.lines) + len(self.nearby) - 1
        more = f", and {count} more test id{'s' if count > 1 else ''}" if count else ""
        return f"{self.head['id']}{more}"


def _in_brackets(functions: Sequence[str]) -> str:
    """The Functions of a test, or the number of its test ids if they have none; "" for a clause with one test id."""
    named = list(dict.fromkeys(filter(None, functions)))
    if named:
        return f" ({_few(named, FUNCTIONS)})"
    return f" ({len(functions)} test ids)" if len(functions) > 1 else ""


def _few(words: Sequence[str], most: int) -> str:
    """The first words, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{', '.join(words[:most])}{more}"


def causes(failing: Iterable[Line]) -> list[Cause]:
    """The causes of these results; the one that explains most of them comes first."""
    ordered = sorted(failing, key=place)
    errors = {text for line in ordered if (text := _error(line))}
    groups: dict[Hashable, list[Line]] = defaultdict(list)
    for line in ordered:
        groups[_key(line, errors)].append(line)
    found = _causes([p for key, group in groups.items() for p in (_parts(group) if _is_observed(key) else [group])])
    return sorted(found, key=lambda cause: (-len(cause.lines), place(cause.head)))


def _key(line: Line, errors: Iterable[str]) -> Hashable:
    """What results of one cause have in common."""
    failure = line.get("failure", {})
    if failure.get("type") in (HANG, DEATH):
        return failure["type"], constant(failure["message"]), lost_in(failure)
    text = constant(" ".join(str(t) for t in (failure.get("got"), line.get("reason")) if t))
    # The exception may be a result of its own: refused, or compared with the expected one.
    raised = _error(line) or max((error for error in errors if error in text), key=len, default="")
    if raised:
        return "raised", raised
    if "what" not in failure:
        return line["outcome"], constant(line.get("reason", "")) or ndjson.claim_of(line)
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
        return constant(failure["got"])
    if line["outcome"] == "error" and failure.get("type") not in (HANG, DEATH, None):
        return constant(f"{failure['type']}: {failure['message']}")
    return ""


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


def _causes(parts: Sequence[list[Line]]) -> list[Cause]:
    """A cause for each part; one clause alone, without an exception, is nearby a part that has several of its group."""
    several = [part for part in parts if len({*map(ndjson.claim_of, part)}) > 1]
    nearest = _nearest(several)
    nearby: list[list[Line]] = [[] for _ in several]
    alone: list[list[Line]] = []
    for part in parts:
        claims = {*map(ndjson.claim_of, part)}
        if len(claims) > 1:
            continue
        number = None if claims <= PROPERTIES.keys() or _error(part[0]) else nearest.get(_group(*claims))
        if number is None:
            alone.append(part)
        else:
            nearby[number] += part
    found = zip([*several, *alone], [*nearby, *([] for _ in alone)], strict=True)
    return [Cause(tuple(sorted(part, key=_rank(part))), tuple(sorted(near, key=place))) for part, near in found]


def _nearest(parts: Sequence[Sequence[Line]]) -> dict[str, int]:
    """The part that has most clauses of a group, by its number; a single clause says nothing of its group."""
    most: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        for group, count in Counter(map(_group, {*map(ndjson.claim_of, part)})).items():
            if count > most.get(group, (1, 0))[0]:
                most[group] = count, number
    return {group: number for group, (_, number) in most.items()}


def _group(claim: str) -> str:
    return claim.rpartition("-")[0]


def _mostly_of(lines: Sequence[Line], part: Sequence[Line]) -> bool:
    """Whether most Functions of these results are among those of the part."""
    mine, theirs = ({line.get("function") for line in each} for each in (lines, part))
    return 2 * len(mine & theirs) > len(mine)


def _rank(part: Sequence[Line]) -> Callable[[Line], tuple[bool, bool, int, bool, tuple[int, str, str]]]:
    """The sort key within a cause: a documented sentence with a name that most failures have, then what fails most."""
    texts = [f"{each.get('failure', {}).get('what', '')} {_error(each)}" for each in part]
    found = Counter(name for text in texts for name in {*_NAME.findall(text)})
    names = {name for name, count in found.items() if 2 * count >= len(part)}
    counts = Counter(map(ndjson.test_of, part))

    def key(line: Line) -> tuple[bool, bool, int, bool, tuple[int, str, str]]:
        claim, script = ndjson.claim_of(line), "script" in line.get("failure", {})
        named = any(name in describe.sentence(claim) for name in names)
        promised = claim not in CLAUSES or CLAUSES[claim].level == "documented"
        return not named, not promised, -counts[ndjson.test_of(line)], not script, place(line)

    return key
