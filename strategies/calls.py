"""Whole calls of a custom Function: small printable values that rebuild from their own text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.reference.definitions import Array, Function, Shape, Shapes, Values
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.strategies import layouts as layouts_module
from autograd_conformance.strategies import values as values_module
from autograd_conformance.strategies.shapes import shape_tuples, strata


class _Printable:
    """Prints as the shortest constructor call that makes it again."""

    def __repr__(self) -> str:
        parts = []
        for number, item in enumerate(fields(self)):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if value != item.default:
                parts.append(repr(value) if number == 0 else f"{item.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        # Hypothesis prints what it drew through this hook; its own layout of dataclasses is not shortest.
        printer.text(repr(self))


@dataclass(frozen=True, repr=False)
class Tensor(_Printable):
    """A tensor argument of a call: its values are made from ``fill`` and the call's seed, then ``specials``.

    ``specials`` are (position, value) pairs in row-major order.
    """

    shape: Shape
    dtype: str = "float64"
    requires_grad: bool = False
    layout: str = "contiguous"
    fill: str = "ones"
    specials: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, repr=False)
class Cotangent(_Printable):
    """The cotangent of one output; its shape and dtype are the output's."""

    fill: str = "ones"
    layout: str = "contiguous"


@dataclass(frozen=True, repr=False)
class Call(_Printable):
    """One call of a Function: its arguments, in order and without the omitted ones, and its outputs' cotangents.

    A cotangent None means that the output is not used. ``smooth`` says that values are kept off the kinks.
    ``repr`` is Python text that `parse` turns into an equal call.
    """

    function: str
    args: tuple[Any, ...] = ()
    cotangents: tuple[Cotangent | None, ...] = ()
    device: str = "cpu"
    seed: int = 0
    smooth: bool = False

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(argument for argument in self.args if isinstance(argument, Tensor))

    @property
    def mask(self) -> tuple[bool, ...]:
        """Which arguments require grad; False for those that are not tensors."""
        return tuple(isinstance(argument, Tensor) and argument.requires_grad for argument in self.args)

    @property
    def dtype(self) -> str:
        """The dtype of the floating tensors."""
        return next(t.dtype for t in self.tensors if t.dtype in _FLOATING)


_FLOATING = frozenset(("float64", "float32", "float16", "bfloat16", "complex128", "complex64"))
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (Call, Tensor, Cotangent)}


def parse(text: str) -> Call:
    """The call that a text stands for. Raises ValueError for anything but a printed call."""
    try:
        call = _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as problem:
        # The last two: what the parser makes of deep nesting.
        raise ValueError(f"not a printed call: {text[:200]!r}: {problem}") from problem
    if not isinstance(call, Call):
        raise ValueError(f"not a printed call: {text!r}")
    return call


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CONSTRUCTORS:
        arguments = [_evaluate(argument) for argument in node.args]
        return _CONSTRUCTORS[node.func.id](*arguments, **{str(k.arg): _evaluate(k.value) for k in node.keywords})
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate(element) for element in node.elts)
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
        return float(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    return ast.literal_eval(node)


def tensor_values(call: Call, function: Function) -> tuple[Any, ...]:
    """The arguments' values in NumPy: float64 or complex128 rounded to the tensor's dtype, the rest as given."""
    rng = np.random.default_rng(call.seed)
    # Of a tensor that comes later the shape is known already.
    named = {a.name: v for a, v in zip(function.arguments, call.args, strict=False)}
    found = []
    for argument, given in zip(function.arguments, call.args, strict=False):
        value = _values(argument, given, call, rng, named) if isinstance(given, Tensor) else given
        named[argument.name] = value
        found.append(value)
    return tuple(found)


def _values(argument: Any, tensor: Tensor, call: Call, rng: np.random.Generator, named: dict[str, Any]) -> Any:
    if argument.make is not None:
        values = np.asarray(argument.make(rng, tensor.shape, named), dtype=tensor.dtype)
    else:
        values = values_module.fill(
            tensor.fill, _domain(argument, call.smooth), tensor.shape, rng, complex_values="complex" in tensor.dtype
        )
        if argument.bounds is not None:
            low, high = argument.bounds
            values = low + (high - low) * values
    changed = values_module.overwrite(values, tensor.specials)
    return layouts_module.stored(round_to(changed, tensor.dtype), tensor.dtype, tensor.layout)


def cotangent_values(call: Call, shapes: Sequence[Shape], dtypes: Sequence[str]) -> tuple[Any, ...]:
    """The cotangents' values in NumPy, one per output, None for an output that is not used."""
    rng = np.random.default_rng(call.seed + 1)
    found: list[Any] = []
    for cotangent, shape, dtype in zip(call.cotangents, shapes, dtypes, strict=True):
        if cotangent is None:
            found.append(None)
            continue
        values = values_module.fill(cotangent.fill, "any", shape, rng, complex_values="complex" in dtype)
        found.append(layouts_module.stored(round_to(values, dtype), dtype, cotangent.layout))
    return tuple(found)


def _domain(argument: Array, smooth: bool) -> Any:
    return argument.smooth if smooth and argument.smooth is not None else argument.values


@lru_cache(maxsize=4096)
def _pick(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


@lru_cache
def _extremes(dtype: str, domain: Values) -> st.SearchStrategy[Any]:
    among = values_module.MODERATE if domain == "free" else values_module.EXTREMES
    values = tuple(extreme(PRECISION[dtype]) for extreme in among.values())
    return st.lists(st.tuples(st.integers(0, 63), st.sampled_from(values)), min_size=1, max_size=2)


def _choose(draw: Callable[..., Any], options: tuple[Any, ...]) -> Any:
    return options[0] if len(options) == 1 else draw(_pick(options))


_ALL_LAYOUTS = tuple(layouts_module.LAYOUTS)
_SEEDS = st.integers(0, 2**16 - 1)
_SPECIALS = st.lists(
    st.tuples(st.integers(0, 63), st.sampled_from(tuple(values_module.SPECIALS.values()))), min_size=1, max_size=2
)
_COMMON = st.sampled_from(("", "", "", "dense", "dense", "zeros"))
_SOMETIMES = st.sampled_from((False, False, False, True))


@lru_cache(maxsize=64)
def masks(count: int, *, some: bool) -> tuple[tuple[bool, ...], ...]:
    """Every subset of ``count`` tensors, the full one first; with ``some`` without the empty one."""
    subsets = [tuple(bool(number >> bit & 1) for bit in range(count)) for number in range(2**count)]
    return tuple(sorted((s for s in subsets if any(s) or not some), key=lambda s: -sum(s)))


def recast(call: Call, dtype: str) -> Call:
    """The call with its floating tensors in another dtype."""
    args = tuple(replace(a, dtype=dtype) if isinstance(a, Tensor) and a.dtype in _FLOATING else a for a in call.args)
    return replace(call, args=args)


def masked(call: Call, mask: Sequence[bool]) -> Call:
    """The call with other tensors requiring grad, one entry of the mask for each."""
    flags = iter(mask)
    args = tuple(replace(a, requires_grad=next(flags)) if isinstance(a, Tensor) else a for a in call.args)
    return replace(call, args=args)


def with_cotangents(call: Call, layout: str) -> Call:
    """The call with all its cotangents in that layout."""
    return replace(call, cotangents=tuple(c and replace(c, layout=layout) for c in call.cotangents))


def varied(call: Call, function: Function) -> Call:
    """A call with the same shapes and arguments, and other values."""
    args = tuple(
        _refilled(argument, given) if isinstance(given, Tensor) else given
        for argument, given in zip(function.arguments, call.args, strict=False)
    )
    return replace(call, args=args, seed=call.seed + 7)


def _refilled(argument: Any, tensor: Tensor) -> Tensor:
    fills = values_module.DOMAINS[argument.values].fills
    return (
        tensor if argument.dtype is not None else replace(tensor, fill=fills[fills.index(tensor.fill) - 1], specials=())
    )


def _static_value(draw: Callable[..., Any], argument: Any, shapes: Shapes) -> Any:
    return _choose(draw, tuple(argument.choices(shapes)))


def _forms(function: Function) -> tuple[tuple[str, ...], ...]:
    """The ways in which the optional arguments may come, the fullest first; only trailing ones can be omitted."""
    forms: list[tuple[str, ...]] = [()]
    for argument in function.arguments:
        ways = ("given", *(argument.optional if isinstance(argument, Array) else ()))
        if not isinstance(argument, Array) and argument.default is not ...:
            ways = ("given", "omitted")
        forms = [(*form, way) for form in forms for way in ways if form[-1:] != ("omitted",) or way == "omitted"]
    return tuple(forms)


def _trackable(function: Function, form: tuple[str, ...]) -> int:
    """How many differentiable tensors are given in a form."""
    return sum(a.differentiable and way == "given" for a, way in zip(function.arguments, form, strict=True))


@lru_cache(maxsize=4096)
def _layouts(shape: Shape, dtype: str, repeats: bool) -> tuple[str, ...]:
    # Repeating a slice would make ties and invalid indices.
    return tuple(name for name in layouts_module.suitable(shape, dtype) if repeats or name != "expanded")


@lru_cache(maxsize=4096)
def calls(
    function: Function,
    *,
    dtypes: tuple[str, ...] | None = None,
    device: str = "cpu",
    shapes: tuple[Shapes, ...] | None = None,
    some: bool = True,
    full: bool = False,
    layouts: bool = True,
    contiguous: bool = True,
    expanded: bool = True,
    smooth: bool = False,
    specials: bool = True,
    extremes: bool = False,
    unused: bool = True,
    cotangent_layouts: bool = True,
    omitted: bool = True,
    steady: bool = False,
) -> st.SearchStrategy[Call]:
    """Calls of a Function within its domain.

    ``dtypes`` and ``shapes`` restrict the draw; ``some`` asks for at least one tensor that requires grad and ``full``
    for all of them; without ``contiguous`` every tensor that can lie otherwise does, without ``expanded`` none
    has stride 0; ``layouts``, ``specials``, ``unused`` (outputs without a cotangent), ``cotangent_layouts`` and
    ``omitted`` (arguments left out) switch a dimension of the draw off; ``extremes`` writes a value of extreme
    magnitude over some elements; ``smooth`` keeps values off the kinks. A ``steady`` draw takes as many choices for any
    shape, so that one among many large ones shrinks to a small one.

    Shrinks towards a single element, float64, every tensor requiring grad, contiguous layouts and ones.
    """
    among = shape_tuples(function) if shapes is None else shapes
    forms = tuple(form for form in _forms(function) if omitted or "omitted" not in form)
    kinds = function.dtypes if dtypes is None else dtypes
    subsets = {form: masks(_trackable(function, form), some=some)[: 1 if full else None] for form in forms}
    differentiable = [output.differentiable for output in function.outputs]
    used = masks(sum(differentiable), some=some)[: None if unused else 1]

    @st.composite
    def one(draw: st.DrawFn) -> Call:
        group = _choose(draw, strata(among))
        drawn_shapes = group[draw(_SEEDS) % len(group)] if steady else _choose(draw, group)
        dtype = _choose(draw, kinds)
        form = _choose(draw, forms)
        mask = iter(_choose(draw, subsets[form]))
        sides = iter(drawn_shapes)
        args: list[Any] = []
        # Where all tensors are alike, what is computed from several of them meets kinks, or fills its mantissa.
        common = draw(_COMMON)
        for argument, way in zip(function.arguments, form, strict=True):
            if way == "omitted":
                break
            if not isinstance(argument, Array):
                args.append(_static_value(draw, argument, drawn_shapes))
                continue
            shape = next(sides)
            if way == "none":
                args.append(None)
            else:
                args.append(_tensor(draw, argument, shape, dtype, argument.differentiable and next(mask), common))
        consumers = iter(_choose(draw, used))
        cotangents = tuple(_cotangent(draw) if d and next(consumers) else None for d in differentiable)
        return Call(function.name, tuple(args), cotangents, device, draw(_SEEDS), smooth)

    def _tensor(draw: st.DrawFn, argument: Array, shape: Shape, dtype: str, tracked: bool, common: str) -> Tensor:
        domain = _domain(argument, smooth)
        kind = argument.dtype or dtype
        layout = "contiguous"
        if layouts:
            repeats = expanded and values_module.DOMAINS[domain].elementwise and argument.dtype is None
            suitable = _layouts(shape, kind, repeats)
            among = suitable if contiguous or len(suitable) == 1 else suitable[1:]
            # Drawn among all, so that it stays the same layout while the shape shrinks.
            layout = _choose(draw, _ALL_LAYOUTS)
            layout = layout if layout in among else among[0]
        if argument.dtype is not None:
            return Tensor(shape, kind, False, layout)
        fills = values_module.DOMAINS[domain].fills
        # Drawn in any case: shrinking would otherwise prefer the common fill, which takes fewer choices.
        drawn = _choose(draw, fills)
        fill = common if common in fills else drawn
        special: tuple[tuple[int, float], ...] = ()
        if extremes and values_module.admits_specials(domain):
            special = tuple(draw(_extremes(kind, domain)))
        elif specials and values_module.admits_specials(domain) and draw(_SOMETIMES):
            special = tuple(draw(_SPECIALS))
        return Tensor(shape, kind, tracked, layout, fill, special)

    def _cotangent(draw: st.DrawFn) -> Cotangent:
        fill = _choose(draw, ("ones", "ramp", "normal", "dense"))
        # Which layouts suit is known only with the output's shape; one that does not suit is laid out contiguously.
        return Cotangent(fill, _choose(draw, _ALL_LAYOUTS) if cotangent_layouts else "contiguous")

    return one()
