"""What a Function was seen to do while it was called, and no Function may."""

from __future__ import annotations


class Misbehaves(RuntimeError):
    """A fault, and never a refusal, whoever raises it. ``cure`` says what to do about it."""

    cure: str


class Varies(Misbehaves):
    """A Function returned another number of tensors than before."""

    cure = "return the same number of tensors in every call that is declared"
