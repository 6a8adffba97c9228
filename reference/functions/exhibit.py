"""Published Functions that are wrong, and the properties that must catch them."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_conformance.reference.definitions import Function


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A faulty Function: its declaration is that of the correct one, its body does something else.

    ``caught_by`` lists the properties that must fail on it; ``fault`` says in one sentence what is wrong.
    """

    function: Function
    caught_by: tuple[str, ...]
    fault: str
