"""How a custom Function is declared: its arguments, outputs, domain, reference and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]

REAL = ("float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex128", "complex64")
FLOATING = REAL + COMPLEX
# The dtype of the parts of complex numbers.
REAL_OF = {"complex128": "float64", "complex64": "float32"}

Values = Literal[
    "any",
    "free",
    "nonzero",
    "distinct",
    "positive",
    "irregular",
    "unit",
    "ball",
    "sorted",
    "definite",
    "symmetric",
    "full",
    "lower",
    "upper",
    "binary",
]


class Recorded(Protocol):
    """The values of a tensor of a recorded call.

    It makes the values of a fill, and ``along`` is the part of a move of such values that keeps what these have.
    """

    def __call__(self, fill: str, rng: np.random.Generator) -> Any: ...

    def along(self, values: Any, move: Any) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Array:
    """A tensor argument.

    ``dims`` names its dimensions, separated by spaces: ``n`` a named dimension, the same length wherever the name
    occurs; ``1`` or ``2`` a fixed length; ``h+p-1`` a sum; ``*s`` any shape; ``~s`` any shape that broadcasts with
    the others of that name.

    ``values`` is the domain: ``any`` finite number of ordinary size, ``free`` of any size, ``nonzero`` (bounded away
    from 0), ``distinct`` (spaced, no ties), ``positive``, ``irregular`` (off the round numbers at which kinks lie),
    ``unit`` (between 0 and 1, both left out), ``ball`` (vectors along the last dimension shorter than 1), ``sorted``
    (increasing along the last dimension, spaced), and matrices: ``definite`` (symmetric positive definite, Hermitian if
    complex), ``symmetric`` (Hermitian if complex), ``full`` (of full rank, well conditioned), ``lower`` and ``upper``
    (triangular, well conditioned). ``binary`` tensors have zeros and ones only; they are ``constant``. ``bounds`` are
    the two numbers between which ``unit`` values are scaled. ``smooth`` is the domain in which the forward is
    differentiable, if that is smaller.

    ``dtype`` is the dtype of an argument that does not follow the call's dtype (index tensors). ``make`` computes the
    values of such an argument from ``(rng, shape, arguments by name)``; of later arguments it sees only the shapes.
    ``constant`` says that the argument has no gradient intentionally, although it follows the call's dtype. ``wrap``
    turns the drawn tensor into what the Function gets, such as a sparse tensor, by a differentiable operation. The
    zeros of such a tensor are no entries: its derivative is defined for the others alone.

    ``drawn`` lists the arrays to choose from, by shape, and whether they should be away from kinks. ``recorded`` makes
    the values of a tensor that a program gave.
    ``real`` tensors stay real in a call in a complex dtype. ``optional`` lists other ways to pass the argument:
    ``none`` (None is passed) and ``omitted``.
    """

    name: str
    dims: str
    values: Values = "any"
    smooth: Values | None = None
    dtype: str | None = None
    make: Callable[[Any, Shape, Mapping[str, Any]], Any] | None = None
    optional: tuple[Literal["none", "omitted"], ...] = ()
    constant: bool = False
    bounds: tuple[float, float] | None = None
    real: bool = False
    wrap: Callable[[Any], Any] | None = None
    drawn: Callable[[Shape, bool], Sequence[Any]] | None = None
    recorded: Recorded | None = None

    @property
    def differentiable(self) -> bool:
        return self.dtype is None and not self.constant

    def kind(self, dtype: str) -> str:
        """The dtype of the tensor in a call in this dtype."""
        return self.dtype or (REAL_OF.get(dtype, dtype) if self.real else dtype)

    def given(self, tensor: Any) -> Any:
        """What the Function gets for a tensor; None for None."""
        return tensor if self.wrap is None or tensor is None else self.wrap(tensor)

    def entries(self, values: Any, move: Any) -> Any:
        """The part of a move of these values that is in their entries: a sparse tensor has no zeros."""
        if self.recorded is not None:
            return self.recorded.along(values, move)
        return move if self.wrap is None else np.where(values != 0, move, 0.0)


@dataclass(frozen=True, kw_only=True)
class Static:
    """An argument that is not a tensor.

    ``choices(shapes)`` lists its values, the simplest first, for the tensors' shapes. ``default`` is the value of an
    argument that may be omitted. ``build`` turns a choice into what the Function gets, such as a seed into a module.
    ``axis`` says that it names a dimension of the first tensor, along which the Function works.
    """

    name: str
    choices: Callable[[Shapes], Sequence[Any]]
    default: Any = ...
    build: Callable[[Any], Any] | None = None
    axis: bool = False

    @property
    def differentiable(self) -> bool:
        return False

    def given(self, choice: Any) -> Any:
        """What the Function gets for a choice."""
        return choice if self.build is None else self.build(choice)


def as_given(arguments: Sequence[Array | Static], values: Sequence[Any]) -> list[Any]:
    """What a Function gets for the values of its arguments. The last values may be missing: omitted arguments."""
    return [argument.given(value) for argument, value in zip(arguments, values, strict=False)]


@dataclass(frozen=True, kw_only=True)
class Output:
    """An output of the forward.

    ``dtypes`` maps the call's dtype to the output's, if they differ. With ``casts`` it is the dtype that the output
    should have.
    """

    name: str = "output"
    differentiable: bool = True
    dtypes: Mapping[str, str] = field(default_factory=dict)
    casts: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A custom Function and everything that is known about it.

    ``body(xp, ag)`` builds the class: ``xp`` is an array namespace (see `reference.namespace`), ``ag`` supplies the
    base class ``Function`` and ``once_differentiable``, as ``torch.autograd.function`` does.

    ``forward(*arguments)`` is the NumPy reference and returns a tuple, one entry per output.
    ``vjp(cotangents, *arguments)`` is the analytic NumPy VJP; it returns one gradient per argument, None for those
    that are not differentiable. Non-differentiable outputs have the cotangent None. Complex gradients follow the
    conjugate Wirtinger convention: a holomorphic f has the VJP ``g * conj(f')``.
    ``jvp(tangents, *arguments)`` is the analytic NumPy JVP, one tangent per output, where a forward-mode rule exists.
    ``tangents`` holds one entry per argument: zeros for a tensor without a tangent, None for other arguments.
    A tensor that is None or omitted reaches the references as None, an omitted static as its default. All three are
    plain NumPy without in-place changes, so that they also run on the arrays of `reference.rounding`, which carry an
    error bound.

    ``second(weights, cotangents, *arguments)`` is the derivative of the inner product of weights and VJP, like a VJP; a
    user's reference gives it for a Function that takes half precision only.
    ``double`` is the claim about the second derivative: ``supported``, or ``once`` (declared once-differentiable).
    ``surrogate`` means that the VJP intentionally is not the derivative of the forward; ``soft`` is then the function
    whose derivative it is, if there is one. ``linear`` says that the VJP is linear in the cotangent. ``inplace`` lists
    the arguments that the forward modifies and returns. ``needs`` lists the capabilities that it cannot run without.
    ``computes_in`` is the precision of the references' results. ``comes_back`` maps the call's dtype to the least
    precise one among outputs and gradients, if that is another, and ``accurate_as`` a dtype to the one whose accuracy
    the device reaches: these say how precise results must be.
    ``document`` names the text that prints the Function, ``exercises`` what only this Function exercises.
    """

    name: str
    body: Callable[[Any, Any], Any]
    arguments: tuple[Array | Static, ...]
    forward: Callable[..., tuple[Any, ...]]
    vjp: Callable[..., tuple[Any, ...]]
    document: str
    exercises: str
    outputs: tuple[Output, ...] = (Output(),)
    jvp: Callable[..., tuple[Any, ...]] | None = None
    second: Callable[..., tuple[Any, ...]] | None = None
    soft: Callable[..., tuple[Any, ...]] | None = None
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # The shapes of tensors whose dims are one name for them, where these are listed.
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOATING
    devices: tuple[str, ...] | None = None
    double: Literal["supported", "once"] = "supported"
    surrogate: bool = False
    linear: bool = True
    inplace: tuple[int, ...] = ()
    materialize: bool = True
    batching: bool = False
    computes_in: str = "float64"
    comes_back: Mapping[str, str] = field(default_factory=dict)
    accurate_as: Mapping[str, str] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()

    def accuracy(self, dtype: str) -> str:
        """The dtype whose rounding says how precise the results of a call of this dtype must be."""
        found = self.comes_back.get(dtype, dtype)
        return self.accurate_as.get(found, found)

    @property
    def derives_in(self) -> str:
        """The precision of the references' gradients."""
        found = self.comes_back.get(self.dtypes[0], self.computes_in)
        return REAL_OF.get(found, found)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The tensor arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Array))

    @property
    def statics(self) -> tuple[Static, ...]:
        """The other arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Static))
