"""What a property is: everything that is said of one stands in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autograd_conformance.reference.definitions import Shapes

GROUPS = {
    "FWD": "forward",
    "VJP": "VJP",
    "DBL": "second order",
    "JVP": "forward mode",
    "BATCH": "batching",
    "ENV": "environment",
    "MEM": "environment",
    "DECL": "declared",
}


@dataclass(frozen=True)
class Property:
    """A property: its id, the sentence that must hold, and what a failure means to the author of a Function."""

    id: str
    sentence: str
    # The usual cause of a failure in a user's Function, and what to do about it.
    cause: str = ""
    cure: str = ""
    # Whether an exception can be the failure that the cause explains.
    raises: bool = False
    # What a failure is called if its finding says nothing more special.
    verdict: str = "wrong"
    # What to do if the Function raises where it may.
    if_refused: str = ""
    # Whether a few refusals are worth a note, because what is refused then depends on the call.
    notes_every_refusal: bool = False
    # How many examples a user's Function gets for each of a documented one.
    share: float = 1.5
    # What a failure that follows from it says, and what to do about that if it is not the cure.
    explains: str = ""
    cure_of_others: str = ""
    # What is not verified if it cannot be decided.
    verifies: str = ""
    # Its place in a check that stops at the first fault: what finds most for its cost comes first; 0 is unranked.
    rank: int = 0
    # Its place among what explains most, for the order in which faults are shown; 0 is after these.
    head: int = 0
    # Whether it is about the plain call, from whose failure others may follow.
    plain: bool = False
    # The shapes that can show a fault; None for all.
    shapes: Callable[[Shapes], bool] | None = None
    # Whether it holds for Functions that draw random numbers, and for those that hold tensors that require grad.
    of_stochastic: bool = True
    of_holding: bool = True
    # Whether it is about extreme values where the outputs are finite, so that a forward that refuses these keeps it.
    of_extremes: bool = False
    # Whether it puts NaN where the Function may read it, so that NaN in a result says nothing about the formula.
    puts_nan: bool = False
    # Whether it is about users' Functions alone, because their authors declare it.
    own: bool = False
    # The cause and cure of a failure of a variant of its test, or of a kind, where these are others.
    of_variant: tuple[tuple[str, str], ...] = ()
    of_kind: tuple[tuple[str, str], ...] = ()

    @property
    def group(self) -> str:
        """The part of the matrix that shows it."""
        return GROUPS[self.id.split("-")[0]]

    @property
    def outside(self) -> bool:
        """Whether a failure comes from outside the call."""
        return self.plain and self.group == "environment"

    @property
    def compared(self) -> bool:
        """Whether it compares the numbers of the plain call with a reference."""
        return self.head > 0 and not self.outside

    @property
    def advice(self) -> str:
        """Cause and cure in one line."""
        return "; ".join(filter(None, (self.cause, self.cure)))
