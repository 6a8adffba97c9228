"""What a project means by its Functions: the table ``tool.autograd-conformance.functions`` of its pyproject.toml."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from autograd_conformance.harness.outcomes import UsageProblem, choose_from

FILE = "pyproject.toml"
TABLE = "tool.autograd-conformance.functions"
# The options of a `Declaration` that say what is meant.
_FLAGS = ("surrogate", "once", "stochastic", "single_backward", "backward_only", "nonlinear", "casts")
WORDS = (*_FLAGS, "conditioning")

Intentions = dict[str, dict[str, Any]]


def read(folder: Path) -> Intentions:
    """What is meant, by names of Functions or globs, as in the nearest pyproject.toml; nothing if there is none.

    Raises UsageProblem for a table that cannot be read, with the file and what is valid.
    """
    path = next((place / FILE for place in (folder, *folder.parents) if (place / FILE).is_file()), None)
    if path is None:
        return {}
    # Releases of Python before 3.11 have it as a package, which pytest brings.
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        table: Any = toml.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageProblem(f"{path} cannot be read: {problem}") from None
    for name in TABLE.split("."):
        table = table.get(name, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        raise UsageProblem(f'{path}: {TABLE} must be a table, as in "mypackage.ops:Spike" = {{surrogate = true}}')
    for name, words in table.items():
        _verify(f"{path}: {TABLE}: {name}", words)
    return table


def _verify(place: str, words: Any) -> None:
    if not isinstance(words, dict):
        raise UsageProblem(f"{place} must be a table of words, such as {{surrogate = true}}, got {words!r}")
    for word, value in words.items():
        if word not in WORDS:
            raise UsageProblem(f"{place}: unknown word {word!r}; {choose_from(word, WORDS)}")
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 1
        if word in _FLAGS and not isinstance(value, bool):
            raise UsageProblem(f"{place}: {word} must be true or false, got {value!r}")
        if word not in _FLAGS and not is_number:
            raise UsageProblem(f"{place}: {word} must be a number, and at least 1, got {value!r}")


def of(name: str, table: Intentions) -> dict[str, Any]:
    """What is meant by a Function: the words and values of all patterns that match its name; the last one counts."""
    return {
        word: value for pattern, words in table.items() if fnmatchcase(name, pattern) for word, value in words.items()
    }


def line_for(name: str, word: str) -> str:
    """The line of the table that says that this is meant."""
    return f'"{name}" = {{ {word} = true }}'
