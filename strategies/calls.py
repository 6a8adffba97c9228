"""Calls of a custom Function: small values that print as text, and can be rebuilt from that text."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.reference.definitions import COMPLEX, Array, Function, Shape, Shapes, Values
from autograd_conformance.reference.rounding import PRECISION, Precision, round_to
from autograd_conformance.strategies import layouts as layouts_module
from autograd_conformance.strategies import values as values_module
from autograd_conformance.strategies.scope import ANY_CALL, Scope, masks
from autograd_conformance.strategies.shapes import mostly_full, shape_tuples, strata


class _Printable:
    """Prints as the shortest constructor call that makes an equal value."""

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
    """A tensor argument of a call.

    Its values are made from ``fill`` and the call's seed. Then ``specials``, which are (position, value) pairs in
    row-major order, are written over them. Given positions wrap around; what is kept is one pair for each element.
    """

    shape: Shape
    dtype: str = "float64"
    requires_grad: bool = False
    layout: str = "contiguous"
    fill: str = "ones"
    specials: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        size = math.prod(self.shape)
        counted = {position % size: value for position, value in self.specials} if size else {}
        object.__setattr__(self, "specials", tuple(counted.items()))


@dataclass(frozen=True, repr=False)
class Cotangent(_Printable):
    """The cotangent of one output; its shape and dtype are the output's."""

    fill: str = "ones"
    layout: str = "contiguous"


@dataclass(frozen=True, repr=False)
class Call(_Printable):
    """One call of a Function: its arguments in order, without the omitted ones, and the cotangents of its outputs.

    The cotangent of an unused output is None. If ``smooth``, values keep away from kinks.
    ``repr`` gives Python text that `parse` turns into an equal call.
    """

    function: str
    args: tuple[Any, ...] = ()
    cotangents: tuple[Cotangent | None, ...] = ()
    device: str = "cpu"
    seed: int = 0
    smooth: bool = False

    def __hash__(self) -> int:
        # Other arguments may be lists.
        return hash((self.function, self.tensors, self.cotangents, self.seed))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(argument for argument in self.args if isinstance(argument, Tensor))

    @property
    def mask(self) -> tuple[bool, ...]:
        """Which arguments require grad; False for those that are not tensors."""
        return tuple(isinstance(argument, Tensor) and argument.requires_grad for argument in self.args)

    @property
    def dtype(self) -> str:
        """The dtype of the floating tensors: if some are complex and others real, the complex one."""
        found = [t.dtype for t in self.tensors if t.dtype in _FLOATING]
        return next((dtype for dtype in found if dtype in COMPLEX), found[0])


# How far the values of one argument are from those of the next, before they are mapped into their domain.
_APART = 0.0371
_FLOATING = frozenset(("float64", "float32", "float16", "bfloat16", "complex128", "complex64"))
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (Call, Tensor, Cotangent)}


def parse(text: str) -> Call:
    """The call that was printed as this text. Raises ValueError for any other text."""
    try:
        call = _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as problem:
        # Deeply nested text makes the parser raise the last two.
        raise ValueError(f"not a printed call: {text[:200]!r}: {problem}") from problem
    if not isinstance(call, Call):
        raise ValueError(f"not a printed call: {text!r}")
    return call


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CONSTRUCTORS:
        arguments = [_evaluate(argument) for argument in node.args]
        return _CONSTRUCTORS[node.func.id](*arguments, **{str(k.arg): _evaluate(k.value) for k in node.keywords})
    if isinstance(node, ast.Tuple | ast.List):
        elements = [_evaluate(element) for element in node.elts]
        return elements if isinstance(node, ast.List) else tuple(elements)
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
        return float(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    return ast.literal_eval(node)


def tensor_values(call: Call, function: Function) -> tuple[Any, ...]:
    """The values of the arguments.

    Those of a tensor are a NumPy array in float64 or complex128, rounded to the tensor's dtype. Others stay as given.
    """
    rng = np.random.default_rng(call.seed)
    # The shapes of later tensors are known already; their values are not.
    named = {a.name: v for a, v in zip(function.arguments, call.args, strict=False)}
    found = []
    for number, (argument, given) in enumerate(zip(function.arguments, call.args, strict=False)):
        # Where ties count as kinks, arguments of one shape are not equal by accident.
        apart = _APART * number if call.smooth else 0.0
        value = _values(argument, given, call, rng, named, apart) if isinstance(given, Tensor) else given
        named[argument.name] = value
        found.append(value)
    return tuple(found)


def _values(
    argument: Any, tensor: Tensor, call: Call, rng: np.random.Generator, named: dict[str, Any], apart: float
) -> Any:  # fmt: skip
    if argument.make is not None:
        values = np.asarray(argument.make(rng, tensor.shape, named), dtype=argument.dtype)
    elif argument.recorded is not None:
        values = argument.recorded(tensor.fill, rng)
    else:
        domain, is_complex = values_module.domain_of(argument, call.smooth), "complex" in tensor.dtype
        values = values_module.fill(tensor.fill, domain, tensor.shape, rng, complex_values=is_complex, shift=apart)
        if argument.bounds is not None:
            low, high = argument.bounds
            values = low + (high - low) * values
    changed = values_module.overwrite(values, tensor.specials)
    return layouts_module.stored(round_to(changed, tensor.dtype), tensor.dtype, tensor.layout)


def cotangent_values(call: Call, shapes: Sequence[Shape], dtypes: Sequence[str]) -> tuple[Any, ...]:
    """The values of the cotangents: one NumPy array per output, None for an unused output."""
    rng = np.random.default_rng(call.seed + 1)
    found: list[Any] = []
    for cotangent, shape, dtype in zip(call.cotangents, shapes, dtypes, strict=True):
        if cotangent is None:
            found.append(None)
            continue
        values = values_module.fill(cotangent.fill, "any", shape, rng, complex_values="complex" in dtype)
        found.append(layouts_module.stored(round_to(values, dtype), dtype, cotangent.layout))
    return tuple(found)


@lru_cache(maxsize=4096)
def _pick(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


@lru_cache
def _extremes(dtype: str, domain: Values) -> st.SearchStrategy[Any]:
    return _written(dtype, values_module.MODERATE if domain == "free" else values_module.EXTREMES)


@lru_cache
def _any_number(dtype: str) -> st.SearchStrategy[Any]:
    return _written(dtype, values_module.ANY_NUMBER)


def _written(dtype: str, among: dict[str, Callable[[Precision], float]]) -> st.SearchStrategy[Any]:
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


def recast(call: Call, dtype: str, function: Function) -> Call:
    """The same call in ``dtype``."""
    pairs = zip(function.arguments, call.args, strict=False)
    args = tuple(
        replace(given, dtype=a.kind(dtype)) if isinstance(given, Tensor) and isinstance(a, Array) else given
        for a, given in pairs
    )
    return replace(call, args=args)


def masked(call: Call, mask: Sequence[bool]) -> Call:
    """The same call with ``mask`` saying which tensors require grad, one entry per tensor."""
    flags = iter(mask)
    args = tuple(replace(a, requires_grad=next(flags)) if isinstance(a, Tensor) else a for a in call.args)
    return replace(call, args=args)


def with_fill_of_cotangents(call: Call, fill: str) -> Call:
    """The call with that fill in each cotangent."""
    return replace(call, cotangents=tuple(g and replace(g, fill=fill) for g in call.cotangents))


def with_cotangents(call: Call, layout: str) -> Call:
    """The same call with all cotangents in ``layout``."""
    return replace(call, cotangents=tuple(c and replace(c, layout=layout) for c in call.cotangents))


def with_inputs(call: Call, layout: str) -> Call:
    """The call with all its tensors in that layout."""
    return replace(call, args=tuple(replace(a, layout=layout) if isinstance(a, Tensor) else a for a in call.args))


def contiguous(call: Call) -> Call:
    """The call with contiguous tensors and cotangents alone."""
    return with_cotangents(with_inputs(call, "contiguous"), "contiguous")


def tame(call: Call) -> Call:
    """The contiguous call with ordinary values."""
    plain = contiguous(call)
    return replace(plain, args=tuple(replace(a, specials=()) if isinstance(a, Tensor) else a for a in plain.args))


def copied(call: Call) -> Call:
    """The call with contiguous copies of all tensors: unlike `contiguous`, it keeps the values of expanded ones."""
    args = (replace(a, layout=layouts_module.copied(a.layout)) if isinstance(a, Tensor) else a for a in call.args)
    return with_copied_cotangents(replace(call, args=tuple(args)))


def with_copied_cotangents(call: Call) -> Call:
    """The call with contiguous copies of all cotangents."""
    given = (g if g is None else replace(g, layout=layouts_module.copied(g.layout)) for g in call.cotangents)
    return replace(call, cotangents=tuple(given))


def reshaped(call: Call, shapes: Shapes, function: Function) -> Call | None:
    """The call with tensors of other ``shapes``, one each; None if another argument does not suit them."""
    sides, args = iter(shapes), list[Any]()
    for argument, given in zip(function.arguments, call.args, strict=False):
        shape = next(sides) if isinstance(argument, Array) else ()
        if isinstance(given, Tensor):
            suits = given.layout in layouts_module.suitable(shape, given.dtype)
            args.append(replace(given, shape=shape, layout=given.layout if suits else "contiguous"))
            continue
        if not isinstance(argument, Array) and not any(same(given, value) for value in argument.choices(shapes)):
            return None
        args.append(given)
    return replace(call, args=tuple(args))


def same(a: Any, b: Any) -> bool:
    """Whether two values of an argument are equal and of one type: 0 is not False."""
    return type(a) is type(b) and bool(a == b)


def varied(call: Call, function: Function) -> Call:
    """A call with the same shapes and non-tensor arguments, but other tensor values."""
    args = tuple(
        _refilled(argument, given, call.smooth) if isinstance(given, Tensor) else given
        for argument, given in zip(function.arguments, call.args, strict=False)
    )
    return replace(call, args=args, seed=call.seed + 7)


def _refilled(argument: Any, tensor: Tensor, smooth: bool) -> Tensor:
    if argument.dtype is not None:
        return tensor
    fills = values_module.fills_of(argument, smooth)
    number = fills.index(tensor.fill) if tensor.fill in fills else 0
    return replace(tensor, fill=fills[number - 1], specials=())


def _forms(function: Function) -> tuple[tuple[str, ...], ...]:
    """Every combination of given, None and omitted arguments, the one with all given first.

    Only trailing arguments can be omitted.
    """
    forms: list[tuple[str, ...]] = [()]
    for argument in function.arguments:
        ways = ("given", *(argument.optional if isinstance(argument, Array) else ()))
        if not isinstance(argument, Array) and argument.default is not ...:
            ways = ("given", "omitted")
        forms = [(*form, way) for form in forms for way in ways if form[-1:] != ("omitted",) or way == "omitted"]
    return tuple(forms)


def _trackable(function: Function, form: tuple[str, ...]) -> int:
    """The number of differentiable tensors that a form gives."""
    return sum(a.differentiable and way == "given" for a, way in zip(function.arguments, form, strict=True))


@lru_cache(maxsize=4096)
def _layouts(shape: Shape, dtype: str, repeats: bool) -> tuple[str, ...]:
    # An expanded tensor repeats its first slice: that makes ties, and indices that are not valid.
    return tuple(name for name in layouts_module.suitable(shape, dtype) if repeats or name != "expanded")


@lru_cache(maxsize=4096)
def calls(
    function: Function,
    scope: Scope = ANY_CALL,
    *,
    dtypes: tuple[str, ...] | None = None,
    shapes: tuple[Shapes, ...] | None = None,
    device: str = "cpu",
) -> st.SearchStrategy[Call]:
    """Calls of a Function within its domain, on a device.

    ``scope`` says what varies. ``dtypes`` and ``shapes`` restrict those that the Function's domain has.

    Shrinks towards a single element, float64, every tensor requiring grad, contiguous layouts and ones.

    >>> calls(FUNCTIONS["Exp"]).example()
    Call('Exp', args=(Tensor((), dtype='complex128', requires_grad=True, fill='zeros'),),
         cotangents=(Cotangent(layout='channels_last'),), seed=2099)
    """
    groups = strata(shape_tuples(function) if shapes is None else shapes)
    groups = mostly_full(groups) if scope.seldom_empty else groups
    kinds = function.dtypes if dtypes is None else dtypes
    forms = tuple(form for form in _forms(function) if scope.omitted_arguments or "omitted" not in form)
    some = scope.mask != "any"
    subsets = {form: masks(_trackable(function, form), some=some) for form in forms}
    if scope.mask == "full":
        subsets = {form: subset[:1] for form, subset in subsets.items()}
    differentiable = [output.differentiable for output in function.outputs]
    used = masks(sum(differentiable), some=some)[: None if scope.unused_outputs else 1]

    def one(draw: st.DrawFn) -> Call:
        group = _choose(draw, groups)
        drawn_shapes = group[draw(_SEEDS) % len(group)] if scope.steady else _choose(draw, group)
        dtype = _choose(draw, kinds)
        form = _choose(draw, forms)
        mask = iter(_choose(draw, subsets[form]))
        sides = iter(drawn_shapes)
        args: list[Any] = []
        # If all tensors are equal, what is computed from several of them meets kinks, or fills its mantissa.
        common = draw(_COMMON)
        for argument, way in zip(function.arguments, form, strict=True):
            if way == "omitted":
                break
            if not isinstance(argument, Array):
                # Chosen by place: a strategy kept for equal options would give 0 where False is meant.
                choices = tuple(argument.choices(drawn_shapes))
                args.append(choices[_choose(draw, tuple(range(len(choices))))])
                continue
            shape = next(sides)
            if way == "none":
                args.append(None)
            else:
                tracked = argument.differentiable and next(mask)
                args.append(_tensor(draw, scope, argument, shape, dtype, tracked=tracked, common=common))
        consumers = iter(_choose(draw, used))
        cotangents = tuple(_cotangent(draw, scope) if d and next(consumers) else None for d in differentiable)
        return Call(function.name, tuple(args), cotangents, device, draw(_SEEDS), scope.smooth)

    return _drawn(one)


@st.composite
def _drawn(draw: st.DrawFn, one: Callable[[st.DrawFn], Call]) -> Call:
    # Within a function, Hypothesis would read the source of a composite strategy at each call.
    return one(draw)


def _tensor(
    draw: st.DrawFn, scope: Scope, argument: Array, shape: Shape, dtype: str, *, tracked: bool, common: str
) -> Tensor:
    domain = values_module.domain_of(argument, scope.smooth)
    kind = argument.kind(dtype)
    repeats = values_module.DOMAINS[domain].elementwise and argument.dtype is None and argument.recorded is None
    layout = "contiguous" if scope.layouts == "contiguous" else _layout(draw, scope, _layouts(shape, kind, repeats))
    if argument.drawn is not None:
        listed = argument.drawn(shape, scope.smooth)
        values = np.ravel(listed[_choose(draw, tuple(range(len(listed))))]).tolist()
        return Tensor(shape, kind, tracked, layout, specials=tuple(enumerate(values)))
    if argument.dtype is not None:
        return Tensor(shape, kind, False, layout)
    fills = values_module.fills_of(argument, scope.smooth)
    # Drawn in any case: otherwise shrinking would prefer the common fill, which takes fewer choices.
    drawn = _choose(draw, fills)
    fill = common if common in fills else drawn
    specials = () if argument.recorded is not None else _specials(draw, scope, kind, domain)
    return Tensor(shape, kind, tracked, layout, fill, specials)


def _layout(draw: st.DrawFn, scope: Scope, suitable: tuple[str, ...]) -> str:
    among = suitable if scope.layouts != "unexpanded" else tuple(name for name in suitable if name != "expanded")
    if scope.layouts == "non-contiguous" and len(suitable) > 1:
        among = suitable[1:]
    # Drawn from all layouts, so that it stays the same while the shape shrinks.
    layout: str = _choose(draw, _ALL_LAYOUTS)
    return layout if layout in among else among[0]


def _specials(draw: st.DrawFn, scope: Scope, dtype: str, domain: Values) -> tuple[tuple[int, float], ...]:
    if not values_module.admits_specials(domain):
        return ()
    if scope.specials == "extreme":
        return tuple(draw(_extremes(dtype, domain)))
    if scope.specials == "any number":
        return tuple(draw(_any_number(dtype)))
    if scope.specials == "ordinary" and draw(_SOMETIMES):
        return tuple(draw(_SPECIALS))
    return ()


def _cotangent(draw: st.DrawFn, scope: Scope) -> Cotangent:
    fill = _choose(draw, ("ones", "ramp", "normal", "dense"))
    # Which layouts suit depends on the output's shape; one that does not suit becomes contiguous.
    return Cotangent(fill, _choose(draw, _ALL_LAYOUTS) if scope.cotangent_layouts else "contiguous")
