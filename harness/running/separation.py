"""Which tests can be separated: they need nothing of the implementation except calls, arrays and descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autograd_conformance.harness.checking.marks import AnyClaim, ClauseClaim
from autograd_conformance.harness.reports.ndjson import Line, test_of

CLAUSES = "clauses are about ctx, nodes, hooks and exceptions, which the process under test would have to tell"

_CTX = "it looks at ctx, and at what backward receives and returns"
_FLAGS = "it asks for versions, flags or nodes of tensors"
_MEMORY = "it asks which tensors share memory or are alive"
_SETTINGS = "it asks for settings of the process under test, or for its random numbers"
_FUNCTION = "it calls another Function, which a test defines"

# The tests of properties that can be separated: all that they assert is computed from arrays and descriptions.
SEPARABLE = (
    "FWD-VALUE", "FWD-VALUE/sizes", "FWD-VALUE/specials", "VJP-REF/sizes", "VJP-REF/specials", "FWD-MASK",
    "FWD-LAYOUT", "FWD-EMPTY", "FWD-DTYPE", "VJP-REF", "VJP-FD", "VJP-LINEAR", "VJP-MASK",
    "VJP-SUBSET", "VJP-COTANGENT-LAYOUT", "VJP-SAME-TENSOR", "VJP-CHAIN/instances", "VJP-ACCUMULATE", "VJP-REPEAT",
    "VJP-FINITE", "DBL-CORRECT", "DBL-ONCE", "JVP-REF", "JVP-ADJOINT", "BATCH-VMAP", "BATCH-VMAP/cotangents",
    "VJP-PURE/owned", "ENV-COMPILE", "ENV-AUTOCAST", "ENV-SAVED-HOOKS", "ENV-SAVED-HOOKS/checkpoint", "ENV-DEVICE",
    "ENV-RANDOM", "MEM-WRITTEN",
)  # fmt: skip

# The others, each with the reason.
LEFT_OUT: Mapping[str, str] = {
    "FWD-PURE": _FLAGS,
    "FWD-GRADFLAG": _FLAGS,
    "VJP-NEEDS": _CTX,
    "VJP-NONE": _CTX,
    "VJP-NONDIFF": _CTX,
    "VJP-NONDIFF/flags": _FLAGS,
    "VJP-FIT": _CTX,
    "VJP-UNUSED": _CTX,
    "VJP-UNUSED/severed": _FUNCTION,
    "VJP-CHAIN": _FUNCTION,
    "VJP-PURE": _FLAGS,
    "VJP-PURE/leaves": _MEMORY,
    "VJP-INPLACE-SAFE": _MEMORY,
    "ENV-THREADS": "it calls from several threads, and the two processes talk in one",
    "ENV-SETTINGS": _SETTINGS,
    "ENV-SETTINGS/seeds": _SETTINGS,
    "MEM-FREE": _MEMORY,
}


# Of a test of somebody else.
_UNKNOWN = "nobody has said whether it asks for more"


def why_not(test: str, *, clause: bool = False) -> str:
    """Why the test of a property, with its variant, or of a clause cannot be separated; empty if it can."""
    return CLAUSES if clause else "" if test in SEPARABLE else LEFT_OUT.get(test, _UNKNOWN)


def reason_against(claim: AnyClaim) -> str | None:
    """Why a test is not run in a separate run; None if it is."""
    why = why_not("", clause=True) if isinstance(claim, ClauseClaim) else why_not(claim.test)
    return f"cannot be separated: {why}" if why else None


def in_words(results: Iterable[Line]) -> str:
    """How many test ids can be separated, and why the others cannot."""
    lines = list(results)
    why = [why_not(test_of(line), clause="clause" in line) for line in lines]
    counts = {reason: why.count(reason) for reason in dict.fromkeys(filter(None, why))}
    rows = [f"\n  {count} left out: {reason}" for reason, count in counts.items()]
    whole = f"{why.count('')} of {len(lines)} test ids can be separated{''.join(rows)}"
    return f"{whole}\n  not collected: clauses of the implementation's own interface, whose tests import it"
