"""A Function with a fault that has been published, and what must catch it."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_conformance.reference.definitions import Function


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A faulty Function: it declares what the right one does, and its body does something else.

    ``caught_by`` lists the properties that must fail on it, ``fault`` says in one sentence what is wrong.
    """

    function: Function
    caught_by: tuple[str, ...]
    fault: str
