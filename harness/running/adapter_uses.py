"""What an adapter's tensors and array namespace do not do as bodies use them, compared with NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.implementations.filling import Unfilled
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference import ladder
from autograd_conformance.reference.uses import POINTS, USES, Use, numpy_namespace

_EPS = float(np.finfo(np.float64).eps)

# Why an operator or a function of NumPy returns an array of its own.
_HOOK = (
    "; NumPy leaves operators to a tensor with __array_ufunc__ = None, and its functions return tensors of a subclass "
    "of numpy.ndarray or with __array_ufunc__ and __array_function__"
)


def said(what: str, check: Callable[[], Iterable[str]]) -> list[str]:
    """All that a check says; an exception is the last of it. What is still to be filled in is said elsewhere."""
    found: list[str] = []
    try:
        found.extend(check())
    except Unfilled:
        pass
    except Exception as raised:  # noqa: BLE001 - any exception is a mistake of the adapter
        found.append(f"{what} {one_line(raised)}")
    return found


def has(space: Any, name: str) -> bool:
    """Whether a namespace has a name, also one that is still to be filled in."""
    try:
        return hasattr(space, name)
    except Unfilled:
        return True


def values(i: Implementation) -> Iterator[str]:
    """operators and the array namespace"""
    names = [name for name in POINTS if _exists(i, name)]
    given = tensors(i, *(POINTS[name] for name in names))

    def check(*mine: Any) -> list[str]:
        return list(_gathered(partial(_value, i, dict(zip(names, mine, strict=True))), _uses(i)))

    yield from as_a_body(i, check, given)


def as_a_body(i: Implementation, check: Callable[..., list[str]], given: Sequence[Any]) -> list[str]:
    """What a check says of tensors. A body may get others than users have: then what it says of those, in a body."""
    found = check(*given)
    inside: list[list[str]] = []

    def forward(*given: Any) -> Any:
        if {*map(type, given)} != kinds:
            inside.append(check(*given))
        return given[0] * 1.0

    kinds = {*map(type, given)}
    if found and not i.needs_setup_context:
        methods = {"forward": staticmethod(lambda _, *xs: forward(*xs)), "backward": staticmethod(lambda _, g: g)}
        # What goes wrong in a Function is said elsewhere.
        said("", lambda: i.function(type(i.ag.Function)("Smoke", (i.ag.Function,), methods))(*given) and ())
    return inside[0] if inside else found


def _value(i: Implementation, points: dict[str, Any], use: Use) -> Iterator[str]:
    given = [points[name] for name in use.given]
    try:
        got = use.apply(i.xp, *given)
    except Unfilled:
        return
    except Exception as raised:  # noqa: BLE001 - any exception is a mistake of the adapter
        without = bool(use.method) and not hasattr(type(given[0]), use.method)
        numpys = bool(use.name) and getattr(i.xp, use.name) is getattr(np, use.name, None)
        cure = f"; a tensor needs the method {use.method}" if without else _HOOK if numpys else ""
        yield f"raises {one_line(raised)}{cure}"
        return
    expected = np.asarray(use.apply(numpy_namespace, *(POINTS[name] for name in use.given)))
    hook = _HOOK if isinstance(got, np.ndarray | np.generic) else ""
    try:
        found = i.numpy(got)
    except Exception as raised:  # noqa: BLE001 - any exception is a mistake of the adapter
        kind = f"a {type(got).__module__}.{type(got).__name__}"
        yield f"gives {kind}, which " + (
            f"numpy does not read: {one_line(raised)}" if hook == "" else f"is no tensor{hook}"
        )
        return
    for complaint in unequal("", found, expected, rounded=True):
        yield complaint + (hook if np.asarray(found).dtype == object else "")


def slopes(i: Implementation) -> Iterator[str]:
    """gradients of operators and of the array namespace"""
    yield from _gathered(
        partial(_slope, i),
        [u for u in _uses(i) if u.differentiated is not None and set(u.differentiated.split()) <= i.capabilities],
    )


def _slope(i: Implementation, use: Use) -> Iterator[str]:
    """Mistakes in the gradients of a use, which are compared with finite differences of NumPy's function."""
    points = tuple(POINTS[name] for name in use.given)
    claimed = " and ".join((use.differentiated or "").split())
    why = f", since {claimed} {'are' if ' and ' in claimed else 'is'} claimed" if claimed else ", whatever is claimed"
    differentiates = f"; the suite differentiates through it{why}"

    def mapped(arrays: Any) -> Any:
        return (np.asarray(use.apply(numpy_namespace, *arrays)),)

    shape = mapped(points)[0].shape
    weights = 1.0 + np.arange(np.prod(shape, dtype=int)).reshape(shape) / 4
    try:
        mask = [point.dtype.kind != "i" for point in points]
        outputs, pullback = i.vjp(lambda *given: use.apply(i.xp, *given), tensors(i, *points), track=mask)
        if np.shape(i.numpy(outputs[0])) != shape:
            # Said of the values.
            return
        gradients = [None if g is None else np.asarray(i.numpy(g)) for g in pullback(tuple(tensors(i, weights)))]
    except Unfilled:
        return
    except Exception as raised:  # noqa: BLE001 - any exception is a mistake of the adapter
        yield f"its gradient raises {one_line(raised)}{differentiates}"
        return
    if len(gradients) != len(points):
        yield f"it has {len(gradients)} gradients instead of {len(points)}{differentiates}"
        return
    for name, got, expected in zip(use.given, gradients, _expected(mapped, points, weights, gradients), strict=True):
        if expected is not None:
            shaped = "" if got is None or got.shape == expected.shape else f" of the shape {got.shape}"
            found = "None" if got is None else short(got) + shaped
            yield f"its gradient of {name} is {found} instead of {short(expected)}{differentiates}"


def _expected(mapped: Any, points: Any, weights: Any, gradients: Sequence[Any]) -> Iterator[Any]:
    """For each argument None if its gradient is right, else the gradient by finite differences."""
    for n, (got, point) in enumerate(zip(gradients, points, strict=True)):
        direction = ladder.directions(points, seed=n)[n]
        if direction is None:
            yield None
            continue
        along = tuple(direction if k == n else None for k in range(len(points)))
        estimate = ladder.slope(mapped, points, along, (weights,))
        fits = got is None or got.shape == point.shape
        terms = np.asarray(direction) * got if fits and got is not None else np.zeros(())
        # A gradient is a sum of few products, each rounded a few times.
        rounding = 64 * _EPS * float(np.sum(np.abs(terms)))
        agrees = fits and ladder.judge(float(np.sum(terms)), estimate, rounding=rounding) is ladder.Verdict.AGREES
        yield None if agrees else _differences(mapped, points, n, weights)


def _differences(mapped: Any, points: Sequence[Any], n: int, weights: Any) -> Any:
    """The gradient of one argument by finite differences."""
    expected = np.zeros(points[n].shape)
    for index in np.ndindex(expected.shape):
        unit = np.zeros(expected.shape)
        unit[index] = 1.0
        direction = tuple(unit if k == n else None for k in range(len(points)))
        expected[index] = ladder.slope(mapped, tuple(points), direction, (weights,)).value
    return expected


def _uses(i: Implementation) -> list[Use]:
    """The uses that the tests of this implementation have, except those of names that it lacks."""
    return [
        use
        for use in USES
        if (not use.needs or use.needs in i.capabilities)
        and all(_exists(i, name) for name in use.given)
        and all(has(i.xp, name) for name in re.findall(r"xp\.(\w+)", use.text))
    ]


def _exists(i: Implementation, name: str) -> bool:
    """Whether the implementation has the dtype of a point."""
    return str(POINTS[name].dtype) in i.dtypes


def _gathered(check: Callable[[Use], Iterable[str]], uses: Iterable[Use]) -> Iterator[str]:
    """What the check says of the uses; the same of several is said once."""
    texts: dict[str, list[str]] = {}
    for use in uses:
        for complaint in check(use):
            texts.setdefault(complaint.strip(), []).append(use.text)
    for complaint, mine in texts.items():
        yield f"{' and '.join(mine) if len(mine) < 3 else ', '.join(mine)}: {complaint}"


def tensors(i: Implementation, *values: Any) -> list[Any]:
    """Tensors of arrays, of the arrays' dtypes, or of float64 for numbers."""
    kinds = [str(v.dtype) if isinstance(v, np.ndarray) else "float64" for v in values]
    return [i.array(np.array(v, kind), kind, i.devices()[0]) for v, kind in zip(values, kinds, strict=True)]


def unequal(what: str, got: Any, expected: Any, *, rounded: bool = False) -> Iterator[str]:
    """What differs, if the values are not those expected."""
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        yield f"{what} is {got!r} instead of {expected!r}"
    elif not (np.allclose(got, expected) if rounded else np.array_equal(got, expected)):
        yield f"{what} is {short(got)} instead of {short(expected)}"


def short(array: Any) -> str:
    """An array in one line, with the digits that tell."""
    return " ".join(np.array2string(np.asarray(array), precision=4, separator=", ").split())
