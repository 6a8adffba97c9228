"""What is wrong with an adapter: in what it declares, in its tensors and array namespace, and in its gradients.

Every check says all that it finds, and one that cannot go on does not keep the others from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.implementations.adapting.filling import Unfilled, unfilled
from autograd_conformance.implementations.protocol import (
    CAPABILITIES,
    DTYPES,
    METHODS,
    Description,
    Implementation,
    absent_methods,
)
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.namespace import ARRAY_NAMES, AUTOGRAD_NAMES, EXTRA_NAMES
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.uses import POINTS, USES, Use, numpy_namespace

# Names of the array namespace that only a capability needs.
_NAMES = {"numpy": ("to_numpy", "from_numpy"), "sparse": ("sparse_matmul",)}
_ATTRIBUTES = ("name", "capabilities", "dtypes", "xp", "ag")


def found_in(implementation: Implementation) -> list[str]:
    """All mistakes of an adapter: what is still to be filled in, and what is wrong in the rest."""
    found = [*unfilled(implementation), *declared(implementation)]
    if not _absent(implementation):
        found += behaviour(implementation)
    return found


# What it declares.


def declared(i: Implementation) -> Iterator[str]:
    """Mistakes in what an adapter declares."""
    if _absent(i):
        yield f"it lacks the attribute {', '.join(_absent(i))}"
        return
    unknown = sorted((set(i.capabilities) | set(i.emulated)) - CAPABILITIES.keys())
    if unknown:
        yield f"unknown capability {', '.join(unknown)}; choose from: {', '.join(CAPABILITIES)}"
    unclaimed = sorted(set(i.emulated) - set(i.capabilities) - set(unknown))
    if unclaimed:
        yield f"it emulates {', '.join(unclaimed)} without claiming it; add it to capabilities"
    missing = sorted(set(i.dtypes) - set(DTYPES))
    if missing or "float64" not in i.dtypes:
        yield f"dtypes has {', '.join(missing) or 'no float64'}; choose from: {', '.join(DTYPES)}, float64 among them"
    yield from _methods(i)
    yield from _names(i)
    yield from _deviations(i)


def _absent(i: Implementation) -> list[str]:
    return [name for name in _ATTRIBUTES if not hasattr(i, name)]


def _methods(i: Implementation) -> Iterator[str]:
    for capability in sorted(i.capabilities & METHODS.keys()):
        mine = absent_methods(i, capability)
        if mine:
            yield f"it claims {capability} and lacks the method {', '.join(mine)}"
    if type(i).is_tensor is Implementation.is_tensor:
        yield "it lacks the method is_tensor"


def _names(i: Implementation) -> Iterator[str]:
    optional = {name for capability, names in _NAMES.items() if capability not in i.capabilities for name in names}
    wanted = [name for name in (*ARRAY_NAMES, *EXTRA_NAMES) if name not in optional]
    for space, names in (("xp", wanted), ("ag", list(AUTOGRAD_NAMES))):
        absent = [name for name in names if not _has(getattr(i, space), name)]
        if absent:
            yield f"{space} lacks {', '.join(absent)}; see reference/namespace.py"


def _deviations(i: Implementation) -> Iterator[str]:
    for deviation in i.deviations:
        unknown = [id for id in deviation.ids if id.split("/")[0] not in (PROPERTIES.keys() | CLAUSES.keys())]
        if unknown:
            yield f"it lists a deviation from {', '.join(unknown)}, which is not a property or clause"


# What it does.


def behaviour(i: Implementation) -> list[str]:
    """Mistakes in what an adapter does."""
    found = _said(f"{_arrays.__doc__}:", lambda: _arrays(i))
    # Everything else is read through these two.
    readable = not _said("", lambda: () if np.array_equal(i.numpy(_tensors(i, 1.0)[0]), 1.0) else ("wrong",))
    if not readable:
        return found + (["what else is wrong shows once array and numpy are right"] if found else [])
    for check in (_values, _gradients, _conjugates, _nests, _applies):
        found += _said(f"{check.__doc__}:", partial(check, i))
    return found


def _arrays(i: Implementation) -> Iterator[str]:
    """conversion to arrays and back"""
    device = i.devices()[0]
    seen = [
        (what, dtype)
        for dtype, shape in product(i.dtypes, ((), (2, 3), (0,)))
        for what in _said("conversion to arrays and back:", partial(_conversion, i, dtype, shape, device))
    ]
    for what in dict.fromkeys(what for what, _ in seen):
        dtypes = list(dict.fromkeys(dtype for each, dtype in seen if each == what))
        yield what + (f" ({', '.join(dtypes)})" if len(dtypes) < len(i.dtypes) else "")


def _conversion(i: Implementation, dtype: str, shape: tuple[int, ...], device: str) -> Iterator[str]:
    """Mistakes in a tensor made of an array, and in the array made of the tensor."""
    values = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2)
    given = np.array(values.astype("float32" if dtype == "bfloat16" else dtype) if dtype in DTYPES else values)
    tensor = i.array(given, dtype, device)
    back = i.numpy(tensor)
    yield from _unequal(f"numpy(array(..., {dtype!r}))", back, values)
    described, expected = i.describe(tensor), Description(shape, dtype, device)
    if described != expected:
        yield f"describe gives {described} for a tensor made as {expected}"
    if not i.is_tensor(tensor) or i.is_tensor(None) or i.is_tensor(1.0):
        yield "is_tensor must be True for the result of array, and False for None and for numbers"
    if not isinstance(back, np.ndarray) or not back.size:
        return
    wanted = {"f": "float64", "c": "complex128"}.get(given.dtype.kind, back.dtype)
    if back.dtype != wanted:
        yield f"numpy gives {back.dtype} instead of {wanted} for a tensor of {dtype}"
    given[...] = 1 - given
    if not np.array_equal(i.numpy(tensor), values):
        yield "array shares memory with the NumPy array that it gets, so that changing one changes the other; copy it"
    elif back.flags.writeable:
        back[...] = 1 - values
        if not np.array_equal(i.numpy(tensor), values):
            yield "numpy returns memory of the tensor, so that changing one changes the other; return a copy"


def _values(i: Implementation) -> Iterator[str]:
    """operators and the array namespace"""
    names = [name for name in POINTS if str(POINTS[name].dtype) in i.dtypes]
    given = _tensors(i, *(POINTS[name] for name in names))
    found, inside = _used(i, dict(zip(names, given, strict=True))), list[list[str]]()
    if found and not i.needs_setup_context:
        # A body may get other tensors than users have. What goes wrong in a Function is said elsewhere.
        def forward(_: Any, *xs: Any) -> Any:
            if {*map(type, xs)} != {*map(type, given)}:
                inside.append(_used(i, dict(zip(names, xs, strict=True))))
            return xs[0] * 1.0

        _said("", lambda: _made(i, {"forward": forward, "backward": lambda _, g: g})(*given) and ())
    yield from inside[0] if inside else found


def _used(i: Implementation, points: dict[str, Any]) -> list[str]:
    """What is wrong in the uses of these tensors."""
    found: list[str] = []
    for use in USES:
        spaced = all(_has(i.xp, name) for name in re.findall(r"xp\.(\w+)", use.text))
        if spaced and {*use.given} <= points.keys() and (not use.needs or use.needs in i.capabilities):
            found += _said(f"{use.text} raises", partial(_value, i, points, use))
    return found


def _value(i: Implementation, points: dict[str, Any], use: Use) -> Iterator[str]:
    got = i.numpy(use.apply(i.xp, *(points[name] for name in use.given)))
    expected = np.asarray(use.apply(numpy_namespace, *(POINTS[name] for name in use.given)))
    yield from _unequal(use.text, got, expected, rounded=True)


def _gradients(i: Implementation) -> Iterator[str]:
    """gradients of plain operations"""
    x, y, g = _tensors(i, [3.0, -2.0], [5.0, 4.0], [1.0, 2.0])

    def f(a: Any, b: Any) -> tuple[Any, Any]:
        return a * b, a + a

    outputs, pullback = i.vjp(f, (x, y))
    yield from _unequal("the first output of vjp", i.numpy(outputs[0]), np.array([15.0, -8.0]))
    cases: list[tuple[Any, dict[str, Any], Any]] = [
        ((g, g), {}, ([7.0, 12.0], [3.0, -4.0])),
        ((g, None), {}, ([5.0, 8.0], [3.0, -4.0])),
    ]
    cases += [((g, g), {"wrt": (False, True)}, (None, [3.0, -4.0])), *cases[:1]]
    for cotangents, options, expected in cases:
        yield from _different(f"pullback with {options or 'no options'}", i, pullback(cotangents, **options), expected)
    _, pullback = i.vjp(f, (x, y), track=(True, False))
    yield from _different("vjp with track=(True, False)", i, pullback((g, g)), ([7.0, 12.0], None))
    if "accumulate" in i.capabilities:
        found = i.backward(f, (x, y), (g, g), track=(True, False), initial=(g, None))
        yield from _different("backward with initial gradients", i, found, ([8.0, 14.0], None))


def _conjugates(i: Implementation) -> Iterator[str]:
    """the convention for complex gradients"""
    if "complex128" in i.dtypes:
        x, factor, g = (i.array(np.array([v]), "complex128", i.devices()[0]) for v in (1 + 1j, 3 + 4j, 1 - 2j))
        (gradient,) = i.vjp(lambda a: a * factor, (x,))[1]((g,))
        what = "the gradient of z * (3+4j) for the cotangent 1-2j, which is their product with 3+4j conjugated,"
        yield from _unequal(what, i.numpy(gradient), np.array([(1 - 2j) * (3 - 4j)]))


def _nests(i: Implementation) -> Iterator[str]:
    """a gradient of a gradient of plain operations"""
    if "double_backward" in i.capabilities:
        x, g = _tensors(i, [3.0, -2.0], [1.0, 1.0])

        def slope(a: Any) -> Any:
            return i.vjp(lambda b: b * b * b, (a,))[1]((g,), differentiable=True)[0]

        yield from _different("vjp within vjp", i, i.vjp(slope, (x,))[1]((g,)), ([18.0, -12.0],))


def _applies(i: Implementation) -> Iterator[str]:
    """simple custom Functions"""
    x, g = _tensors(i, [3.0, -2.0], [1.0, 2.0])
    outputs, pullback = i.vjp(_made(i, _triple(i)), (x,))
    if not isinstance(outputs, tuple):
        yield f"vjp must return its outputs as a tuple, but returned a {type(outputs).__name__}"
    found = (*outputs, *pullback((g,)))
    yield from _different("a Function that triples", i, found, ([9.0, -6.0], [3.0, 6.0]))
    if "jvp" in i.capabilities:
        (primal,), (tangent,) = i.jvp(_made(i, _triple(i)), (x,), (g,))
        yield from _different("jvp of a Function that triples", i, (primal, tangent), ([9.0, -6.0], [3.0, 6.0]))


def _made(i: Implementation, methods: dict[str, Any]) -> Any:
    """What users call to run the Function with these methods."""
    static = {name: staticmethod(method) for name, method in methods.items()}
    return i.function(type(i.ag.Function)("Smoke", (i.ag.Function,), static))


def _triple(i: Implementation) -> dict[str, Any]:
    """The methods of a Function that multiplies by 3, in a style that the implementation supports."""

    def triple(_: Any, x: Any) -> Any:
        return 3.0 * x

    methods: dict[str, Any] = {"forward": triple, "backward": triple}
    if "jvp" in i.capabilities:
        methods["jvp"] = triple
    if i.needs_setup_context:
        methods |= {"forward": lambda x: 3.0 * x, "setup_context": lambda *_: None}
    return methods


def _different(what: str, i: Implementation, got: Sequence[Any], expected: Sequence[Any]) -> Iterator[str]:
    if len(got) != len(expected):
        yield f"{what} gives {len(got)} tensors instead of {len(expected)}"
        return
    for mine, wanted in zip(got, expected, strict=True):
        if mine is None or wanted is None:
            if mine is not wanted:
                yield f"{what} gives {mine} instead of {wanted}"
        else:
            yield from _unequal(what, i.numpy(mine), np.array(wanted))


def _said(what: str, check: Callable[[], Iterable[str]]) -> list[str]:
    """All that a check says; an exception is the last of it. What is still to be filled in is said elsewhere."""
    found: list[str] = []
    try:
        found.extend(check())
    except Unfilled:
        pass
    except Exception as raised:  # noqa: BLE001 - any exception is a mistake of the adapter
        found.append(f"{what} {one_line(raised)}")
    return found


def _has(space: Any, name: str) -> bool:
    """Whether a namespace has a name, also one that is still to be filled in."""
    try:
        return hasattr(space, name)
    except Unfilled:
        return True


def _tensors(i: Implementation, *values: Any) -> list[Any]:
    """Tensors of arrays, of the arrays' dtypes, or of float64 for numbers."""
    kinds = [str(v.dtype) if isinstance(v, np.ndarray) else "float64" for v in values]
    return [i.array(np.array(v, kind), kind, i.devices()[0]) for v, kind in zip(values, kinds, strict=True)]


def _unequal(what: str, got: Any, expected: Any, *, rounded: bool = False) -> Iterator[str]:
    """What differs, if the values are not those expected."""
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        yield f"{what} is {got!r} instead of {expected!r}"
    elif not (np.allclose(got, expected) if rounded else np.array_equal(got, expected)):
        yield f"{what} is {_short(got)} instead of {_short(expected)}"


def _short(array: Any) -> str:
    """An array in one line, with the digits that tell."""
    return " ".join(np.array2string(np.asarray(array), precision=4, separator=", ").split())
