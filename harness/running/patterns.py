"""Names and globs that a user gives, separated by commas."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from autograd_conformance.harness.outcomes import UsageProblem, choose_from, named


def matching(
    kind: str, patterns: str | None, valid: Iterable[str], hidden: Iterable[str] = (), *, command: str = ""
) -> tuple[str, ...]:
    """The valid names that match a comma-separated list of names and globs; hidden names match only exactly.

    ``command`` lists the valid names. Raises UsageProblem.
    """
    if patterns is None:
        return tuple(valid)
    chosen: dict[str, None] = {}
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        found = [name for name in valid if fnmatchcase(name, pattern)] + [name for name in hidden if name == pattern]
        if not found:
            raise UsageProblem(f"no {kind} matches {pattern!r}; {choose_from(pattern, valid, command=command)}")
        chosen.update(dict.fromkeys(found))
    if not chosen:
        raise UsageProblem(f"{patterns!r} names no {kind}; {choose_from(patterns, valid, command=command)}")
    return tuple(chosen)


def without_variants(patterns: str | None) -> str | None:
    """The patterns of properties and clauses, some of which name one test: VJP-FD/long."""
    return patterns and ",".join(pattern.partition("/")[0] for pattern in patterns.split(","))


def names_test(patterns: str | None, claim: str, variant: str) -> bool:
    """Whether one of the patterns names a test: by the id of its property or clause, or with its variant."""
    test = named(claim, variant)
    found = [pattern.strip() for pattern in patterns.split(",")] if patterns is not None else ["*"]
    return any(fnmatchcase(test if "/" in pattern else claim, pattern) for pattern in found)
