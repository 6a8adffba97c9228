"""What discovery found out about a user's Function, as data for another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autograd_conformance.reference.definitions import Output, Shapes


@dataclass(frozen=True)
class Declined:
    """Calls that forward refuses with one exception, out of so many that were tried.

    ``kinds`` has their shapes and other arguments as `kind` writes them, ``shown`` the first of them in words.
    """

    why: str
    at: str
    tried: int
    kinds: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True)
class RefusedLayout:
    """A layout in which forward refuses a tensor: the argument's position, and what forward says."""

    argument: int
    layout: str
    why: str


@dataclass(frozen=True)
class Facts:
    """What discovery found out about a Function."""

    outputs: tuple[Output, ...] = ()
    # The dtypes that it takes.
    dtypes: tuple[str, ...] = ()
    # Whether backward gets zeros, not None, for unused outputs.
    materialize: bool = True
    # Whether the reference takes tensors and not arrays.
    composite: bool = True
    # The dtypes that it does not take, each with its error.
    refused: dict[str, str] = field(default_factory=dict)
    # The layouts of its arguments that it does not take.
    refused_layouts: tuple[RefusedLayout, ...] = ()
    # Whether it is a Function class and not only a callable.
    is_class: bool = True
    # Whether it is an operator that says what its outputs are for tensors without values.
    foretells: bool = False
    # The keyword-only arguments of an operator, which are left at their defaults.
    unpassed: tuple[str, ...] = ()
    # A sentence for each declared limitation that it does not have.
    stale: tuple[str, ...] = ()
    # Whether it uses tensors that require grad and are not arguments.
    holds_others: bool = False
    # Whether gradients are declared to be others than those of forward, and nothing says which.
    any_gradient: bool = False
    # Whether a reference gives gradients to compare with.
    compared: bool = False
    # Of a Function of half precision alone, the most precise dtype that its reference takes.
    refers_in: str = ""
    # Whether it has a vmap rule.
    batches: bool = False
    # Whether it has a rule for forward mode.
    jvp: bool = False
    # Whether it draws random numbers that change its results, although that is not declared.
    draws: bool = False
    # Whether its results depend on memory that was allocated but never written.
    reads_new_memory: bool = False
    # The names of the results in double precision whose numbers are all of single precision.
    coarse: tuple[str, ...] = ()
    # The least precise dtype among outputs and gradients for each dtype of calls, if it is another.
    comes_back: dict[str, str] = field(default_factory=dict)
    # The precision of what forward returns for calls in the most precise dtype.
    computes_in: str = "float64"
    # Whether a gradient is a sparse tensor.
    sparse: bool = False
    # Whether the sizes of outputs depend on the values.
    resizes: bool = False
    # Whether it maps single entries, and then a sentence for each 16-bit dtype: the largest errors over all numbers.
    maps_entries: bool = False
    sweeps: tuple[str, ...] = ()
    # Whether built-in operations of its formula give gradients in float16.
    has_formula: bool = False
    # Shapes with one long dimension that it takes, and that do not take it long.
    long_shapes: tuple[Shapes, ...] = ()
    # Shapes without elements for which backward raises, one for each choice of the dimensions that are empty.
    emptied: tuple[Shapes, ...] = ()
    # The calls that are declared and forward refuses, and whether all kinds of calls were tried.
    declined: tuple[Declined, ...] = ()
    tried_all: bool = False
    # A sentence for each sweep that was cut short because calls take too long.
    cut: tuple[str, ...] = ()
    # The exceptions of the suite itself, which found out less for them.
    own_faults: tuple[str, ...] = ()
    # The share of the profile's examples, and whether it is less than 1 because a call was found to take long.
    share: float = 1.0
    paced: bool = False
    # Whether Triton's interpreter runs its kernels.
    interpreted: bool = False
    # The tests that run because the declaration asks for them with also=.
    asked: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Facts:
        """The facts from the result of `dataclasses.asdict`."""
        outputs, dtypes = tuple(Output(**y) for y in found["outputs"]), tuple(found["dtypes"])
        of_words = ("stale", "coarse", "sweeps", "cut", "asked", "unpassed", "own_faults")
        sentences = {name: tuple(found[name]) for name in of_words}
        layouts = tuple(RefusedLayout(**each) for each in found["refused_layouts"])
        shapes = {name: tuple(tuple(map(tuple, each)) for each in found[name]) for name in ("long_shapes", "emptied")}
        refused = tuple(
            Declined(**{**each, "kinds": tuple(each["kinds"]), "shown": tuple(each["shown"])})
            for each in found["declined"]
        )
        known = {"outputs": outputs, "dtypes": dtypes, "refused_layouts": layouts, "declined": refused}
        return cls(**{**found, **known, **shapes, **sentences})


def facts_of(function: Any) -> Facts:
    """The facts about a user's Function; of a documented one there are none."""
    return getattr(function, "facts", Facts())
