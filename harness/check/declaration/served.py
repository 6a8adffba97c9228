"""The implementations whose users' own Functions `check` can call."""

from __future__ import annotations

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.implementations import ADAPTERS, load
from autograd_conformance.implementations.protocol import Implementation, Unavailable

# Of the adapters of this suite. Others need the methods below.
SERVED = ("torch", "torch-compile", "torch-inductor", "torch-func", "model")
# What `check` calls of an adapter beside the methods that each has.
NEEDED = ("is_tensor", "no_grad")

_WORDS = f"it is for those of {', '.join(SERVED)}"


def serving(given: str) -> Implementation:
    """The implementation of this name.

    Raises UsageProblem if `check` cannot call its users' Functions, and Unavailable as `load` does.
    """
    why_not = unserved(given)
    if why_not:
        raise UsageProblem(why_not)
    try:
        found = load(given)
    except Unavailable as problem:
        raise Unavailable(
            f"{problem}; check calls the Functions of {', '.join(SERVED)}" if given in SERVED else str(problem)
        ) from None
    absent = [name for name in NEEDED if getattr(type(found), name) is getattr(Implementation, name)]
    if absent:
        raise UsageProblem(f"check cannot call Functions of {given}: its adapter has no {' and no '.join(absent)}")
    return found


def unserved(given: str) -> str:
    """Why `check` cannot call the Functions of an adapter of this suite; empty if it can."""
    if given not in ADAPTERS or given in SERVED:
        return ""
    return (
        f"check cannot call Functions of {given} yet: {_WORDS}; autograd-conformance run {given} checks {given} itself"
    )
