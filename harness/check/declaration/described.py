"""What a declaration says, in the words of the first line of a verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from typing import Any

from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.naming import words
from autograd_conformance.strategies import drawn

# The most letters of a strategy.
_WIDEST = 60

# The options of a declaration, with what is meant if they are not given.
OPTIONS = {
    name: parameter.default
    for name, parameter in signature(Declaration).parameters.items()
    if parameter.kind is Parameter.KEYWORD_ONLY
}
# Options that the line shows anyway: it begins with them.
TITLE = ("name", "where")
# Values that say as little as none.
_NOTHING: tuple[Any, ...] = (None, "", (), [], {})


# The options whose values are shown. The others are shown as a word.
_WITH_VALUE: dict[str, Callable[[Declaration, Any], str]] = {
    "up_to": lambda *_: "up to a canonical form",
    "examples": lambda _, value: f"{value:g} of the examples",
    "conditioning": lambda _, value: f"conditioning {value:g}",
    "also": lambda _, value: f"also {' and '.join(words(value))}",
    "implementation": lambda _, value: f"implementation {value}",
}


def described(declaration: Declaration) -> str:
    """The arguments of a declaration, and every option that was given."""
    arguments = ", ".join(map(_argument, declaration.arguments))
    said = ", ".join(_said(declaration))
    return f"{arguments}; declared: {said}" if said else arguments


def _argument(given: Any) -> str:
    if drawn.is_strategy(given):
        return textwrap.shorten(repr(given), _WIDEST, placeholder="...")
    return given if isinstance(given, str) else type(given).__name__


def _said(declaration: Declaration) -> Iterator[str]:
    for option, default in OPTIONS.items():
        value = declaration.given[option]
        # A position may be 0.
        says = callable(value) or (value != default and value not in _NOTHING)
        if says and option not in TITLE:
            yield _WITH_VALUE[option](declaration, value) if option in _WITH_VALUE else option
