"""What is wrong with an adapter: in what it declares, in the tensors that it makes, and in the gradients it returns.

Every check says all that it finds, and one that cannot go on does not keep the others from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from autograd_conformance.harness.running.adapter_uses import as_a_body, has, said, slopes, tensors, unequal, values
from autograd_conformance.implementations.filling import unfilled
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
from autograd_conformance.reference.uses import POINTS

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
        absent = [name for name in names if not has(getattr(i, space), name)]
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
    found = said(f"{_arrays.__doc__}:", lambda: _arrays(i))
    # Everything else is read through these two.
    readable = not said("", lambda: () if np.array_equal(i.numpy(tensors(i, 1.0)[0]), 1.0) else ("wrong",))
    if not readable:
        return found + (["what else is wrong shows once array and numpy are right"] if found else [])
    for check in (_attributes, values, slopes, _conversions, _gradients, _conjugates, _nests, _applies):
        found += said(f"{check.__doc__}:", partial(check, i))
    return found


def _arrays(i: Implementation) -> Iterator[str]:
    """conversion to arrays and back"""
    device = i.devices()[0]
    seen = [
        (what, dtype)
        for dtype, shape in product(i.dtypes, ((), (2, 3), (0,)))
        for what in said("conversion to arrays and back:", partial(_conversion, i, dtype, shape, device))
    ]
    for what in dict.fromkeys(what for what, _ in seen):
        dtypes = list(dict.fromkeys(dtype for said, dtype in seen if said == what))
        yield what + (f" ({', '.join(dtypes)})" if len(dtypes) < len(i.dtypes) else "")


def _conversion(i: Implementation, dtype: str, shape: tuple[int, ...], device: str) -> Iterator[str]:
    """Mistakes in a tensor made of an array, and in the array made of the tensor."""
    values = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2)
    given = np.array(values.astype("float32" if dtype == "bfloat16" else dtype) if dtype in DTYPES else values)
    tensor = i.array(given, dtype, device)
    back = i.numpy(tensor)
    yield from unequal(f"numpy(array(..., {dtype!r}))", back, values)
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


def _attributes(i: Implementation) -> Iterator[str]:
    """the attributes that bodies read: shape, ndim, dtype and device"""
    yield from as_a_body(i, lambda x: list(_attributes_of(i, x)), tensors(i, POINTS["x"]))


def _attributes_of(i: Implementation, x: Any) -> Iterator[str]:
    absent = [name for name in ("shape", "ndim", "dtype", "device") if not hasattr(x, name)]
    if absent:
        yield f"a tensor lacks the attribute {', '.join(absent)}, which bodies read"
        return
    if tuple(x.shape) != (2, 3) or x.ndim != 2:
        yield f"a tensor of 2 rows and 3 columns has the shape {x.shape} and the ndim {x.ndim}"
    for what, make, expected in (
        ("xp.zeros((2, 3), dtype=x.dtype, device=x.device)", _zeros, np.zeros((2, 3))),
        ("xp.arange(3, device=x.device)", _arange, np.arange(3)),
    ):
        yield from said(f"{what} raises", partial(_made_like, i, what, make, x, expected))


def _made_like(i: Implementation, what: str, make: Any, x: Any, expected: Any) -> Iterator[str]:
    yield from unequal(what, i.numpy(make(i.xp, x)), expected)


def _arange(xp: Any, x: Any) -> Any:
    return xp.arange(3, device=x.device)


def _zeros(xp: Any, x: Any) -> Any:
    return xp.zeros((2, 3), dtype=x.dtype, device=x.device)


def _conversions(i: Implementation) -> Iterator[str]:
    """the names that only a capability needs"""
    x, b = tensors(i, POINTS["x"], POINTS["y"].T)
    if "numpy" in i.capabilities:
        yield from unequal("xp.to_numpy(x)", i.xp.to_numpy(x), POINTS["x"])
        yield from unequal("xp.from_numpy(a, x)", i.numpy(i.xp.from_numpy(POINTS["x"], x)), POINTS["x"])
    if "sparse" in i.capabilities:
        rows = i.array(np.array([[0, 1, 0], [2, 0, 2]]), "int64", i.devices()[0])
        (values,) = tensors(i, POINTS["v"])
        dense = np.array([[0, 0, 3.0], [0.5, 0, 0]])
        got = i.numpy(i.xp.sparse_matmul(rows, values, (2, 3), b))
        yield from unequal("xp.sparse_matmul(indices, values, (2, 3), b)", got, dense @ POINTS["y"].T)


def _gradients(i: Implementation) -> Iterator[str]:
    """gradients of plain operations"""
    x, y, g = tensors(i, [3.0, -2.0], [5.0, 4.0], [1.0, 2.0])

    def f(a: Any, b: Any) -> tuple[Any, Any]:
        return a * b, a + a

    outputs, pullback = i.vjp(f, (x, y))
    yield from unequal("the first output of vjp", i.numpy(outputs[0]), np.array([15.0, -8.0]))
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
        yield from unequal(what, i.numpy(gradient), np.array([(1 - 2j) * (3 - 4j)]))


def _nests(i: Implementation) -> Iterator[str]:
    """a gradient of a gradient of plain operations"""
    if "double_backward" in i.capabilities:
        x, g = tensors(i, [3.0, -2.0], [1.0, 1.0])

        def slope(a: Any) -> Any:
            return i.vjp(lambda b: b * b * b, (a,))[1]((g,), differentiable=True)[0]

        yield from _different("vjp within vjp", i, i.vjp(slope, (x,))[1]((g,)), ([18.0, -12.0],))


def _applies(i: Implementation) -> Iterator[str]:
    """simple custom Functions"""
    yield from said("a Function that reads attributes of ctx raises", partial(_contexts, i))
    for what, methods, more, outputs, gradients in _functions(i):
        yield from said(f"{what} raises", partial(_applied, i, what, methods, more, outputs, gradients))
    if "jvp" in i.capabilities:
        x, g = tensors(i, [3.0, -2.0], [1.0, 2.0])
        (primal,), (tangent,) = i.jvp(_made(i, _triple(i)), (x,), (g,))
        yield from _different("jvp of a Function that triples", i, (primal, tangent), ([9.0, -6.0], [3.0, 6.0]))


# What bodies use of ctx, and the capability without which no body does.
CONTEXT = {
    "save_for_backward": "",
    "save_for_forward": "",
    "saved_tensors": "",
    "needs_input_grad": "",
    "mark_non_differentiable": "tuples",
    "set_materialize_grads": "materialize",
}


def _contexts(i: Implementation) -> Iterator[str]:
    """What ctx lacks, in forward and in backward."""
    wanted = [name for name, needs in CONTEXT.items() if not needs or needs in i.capabilities]
    absent = set(wanted)

    def look(ctx: Any, inputs: Any = (), _: Any = None) -> None:
        if inputs and hasattr(ctx, "save_for_backward"):
            ctx.save_for_backward(*inputs)
        absent.difference_update([name for name in wanted if hasattr(ctx, name)])

    def backward(ctx: Any, g: Any) -> Any:
        look(ctx)
        return 3.0 * g

    methods = {"forward": lambda x: 3.0 * x, "setup_context": look, "backward": backward}
    x, g = tensors(i, [3.0, -2.0], [1.0, 2.0])
    i.vjp(_made(i, methods), (x,))[1]((g,))
    if absent:
        yield f"ctx lacks {', '.join(name for name in wanted if name in absent)}, which bodies use"


def _applied(i: Implementation, what: str, methods: Any, more: Any, expected: Any, slopes: Any) -> Iterator[str]:
    x, y, g = tensors(i, [3.0, -2.0], [5.0, 4.0], [1.0, 2.0])
    function = _made(i, methods)
    outputs, pullback = i.vjp(lambda *given: function(*given, *more), (x, y)[: len(slopes)])
    if not isinstance(outputs, tuple):
        yield f"vjp must return its outputs as a tuple, but returned a {type(outputs).__name__}"
    yield from _different(what, i, (*outputs, *pullback((g,) * len(outputs))), (*expected, *slopes))


def _made(i: Implementation, methods: dict[str, Any]) -> Any:
    """What users call to run the Function with these methods."""
    static = {name: staticmethod(method) for name, method in methods.items()}
    return i.function(type(i.ag.Function)("Smoke", (i.ag.Function,), static))


def _functions(i: Implementation) -> Iterator[tuple[str, dict[str, Any], tuple[Any, ...], Any, Any]]:
    """Functions with what bodies use: in words, the methods, arguments beside the tensors, outputs and gradients."""
    yield "a Function that triples", _triple(i), (), ([9.0, -6.0],), ([3.0, 6.0],)
    results = ([30.0, -16.0],), ([10.0, 16.0], [6.0, -8.0])
    if not i.needs_setup_context:
        several = {"forward": lambda _, x: (3.0 * x,), "backward": lambda _, g: 3.0 * g}
        yield "a Function that returns a tuple of one tensor", several, (), ([9.0, -6.0],), ([3.0, 6.0],)
        what = "a Function that saves tensors and a number on ctx, and gets a number and None,"
        yield what, {"forward": _kept_product, "backward": _product_back}, (2, None), *results
    if has(i.ag, "once_differentiable"):
        what = "a Function with a setup_context, whose backward is once differentiable,"
        once = i.ag.once_differentiable(_product_back)
        yield what, {"forward": _product, "setup_context": _keep, "backward": once}, (2, None), *results


def _keep(ctx: Any, inputs: Any, _: Any) -> None:
    x, y, ctx.factor, _ = inputs
    ctx.save_for_backward(x, y)
    ctx.save_for_forward(x, y)


def _product(x: Any, y: Any, factor: Any, _: Any) -> Any:
    return x * y * factor


def _kept_product(ctx: Any, *inputs: Any) -> Any:
    _keep(ctx, inputs, None)
    return _product(*inputs)


def _product_back(ctx: Any, g: Any) -> Any:
    x, y = ctx.saved_tensors
    return g * y * ctx.factor, g * x * ctx.factor, None, None


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
            yield from unequal(what, i.numpy(mine), np.array(wanted))
