"""Analytic functions with exact VJPs in NumPy: what the finite-difference oracle is itself held against.

A real weight v and a complex one follow the same convention: the gradients are those of Re sum conj(v) f.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = tuple[Array, ...]
Draw = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Analytic:
    """A function over a tuple of arrays, its exact VJP, and points to try it at.

    `refusals` says what an oracle may answer at these points: "none" where the function is smooth and well
    conditioned, "some" where rounding or frequency may hide the slope, "kinks" where points lie at or near a kink.
    """

    name: str
    f: Callable[[Any], Arrays]
    vjp: Callable[[Arrays, Arrays], Arrays]
    sample: Callable[[np.random.Generator, int], Arrays]
    refusals: str = "none"


def weights_for(outputs: Arrays, generator: np.random.Generator) -> Arrays:
    """Normal cotangents for the outputs, complex where they are."""
    return tuple(
        generator.standard_normal(out.shape)
        + (1j * generator.standard_normal(out.shape) if np.iscomplexobj(out) else 0.0)
        for out in outputs
    )


def normal(generator: np.random.Generator, n: int) -> Array:
    """Standard normal entries."""
    return generator.standard_normal(n)


def complex_normal(generator: np.random.Generator, n: int) -> Array:
    """Complex entries with two standard normal parts."""
    return generator.standard_normal(n) + 1j * generator.standard_normal(n)


def around(scale: float) -> Draw:
    """Entries from 0.3 to 3 times `scale`, of either sign."""
    return lambda generator, n: positive(scale)(generator, n) * generator.choice((-1.0, 1.0), n)


def positive(scale: float) -> Draw:
    """Positive entries from 0.3 to 3 times `scale`."""
    return lambda generator, n: scale * generator.uniform(0.3, 3.0, n)


def spaced(generator: np.random.Generator, n: int) -> Array:
    """Shuffled entries at least 0.3 of the least magnitude apart, away from 0 as well: no kink within 9 %."""
    return np.asarray(generator.permutation(1.5 ** np.arange(n % 60 or 60)) * generator.choice((-1.0, 1.0)))


def mixed(generator: np.random.Generator, n: int) -> Array:
    """Entries near 1e-8, 1 and 1e8 in one array."""
    return np.asarray(positive(1.0)(generator, n) * generator.choice((1e-8, 1.0, 1e8), n))


def near_zero(generator: np.random.Generator, n: int) -> Array:
    """Normal entries, one of them at 0 or 1e-9 to 1e-3 from it."""
    x = generator.standard_normal(n)
    x[0] = generator.choice((0.0, 1e-9, -1e-7, 1e-5, -1e-3))
    return x


def tied(generator: np.random.Generator, n: int) -> Array:
    """Two entries equal or almost so, above all the others."""
    x = generator.standard_normal(n + 1)
    x[:2] = 5.0, 5.0 + generator.choice((0.0, 1e-9, 1e-6))
    return x


def square_matrix(generator: np.random.Generator, n: int) -> Array:
    """A well-conditioned square matrix of about n entries."""
    side = max(1, round(n**0.5))
    return np.asarray(np.eye(side) + 0.3 * generator.standard_normal((side, side)) / side**0.5)


def elementwise(
    name: str, f: Callable[[Array], Array], derivative: Callable[[Array], Array], draw: Draw, refusals: str = "none"
) -> Analytic:
    """One array in, one out, entry by entry; `derivative` is complex differentiation for complex entries."""

    def vjp(points: Arrays, weights: Arrays) -> Arrays:
        gradient = np.conj(derivative(points[0])) * weights[0]
        return (gradient if np.iscomplexobj(points[0]) else gradient.real,)

    return Analytic(name, lambda p: (f(p[0]),), vjp, lambda generator, n: (draw(generator, n),), refusals)


def unary(
    name: str, f: Callable[[Array], Array], vjp: Callable[[Array, Array], Array], draw: Draw, refusals: str = "none"
) -> Analytic:
    """One array in, one out."""
    return Analytic(
        name,
        lambda p: (np.asarray(f(p[0])),),
        lambda p, w: (vjp(p[0], w[0]),),
        lambda generator, n: (draw(generator, n),),
        refusals,
    )


def pair(first: Draw, second: Draw) -> Callable[[np.random.Generator, int], Arrays]:
    """Sampler of two arrays."""
    return lambda generator, n: (first(generator, n), second(generator, n))


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum())


def _centred(x: Array) -> Array:
    # Differences first: they are exact where the entries almost agree, which x - mean(x) is not.
    difference = x - x[0]
    return np.asarray(difference - difference.mean())


def _layernorm(x: Array) -> Array:
    return np.asarray(_centred(x) / np.sqrt(x.var() + 1e-5))


def _layernorm_vjp(x: Array, v: Array) -> Array:
    y = _layernorm(x)
    return np.asarray((v - v.mean() - y * (v * y).mean()) / np.sqrt(x.var() + 1e-5))


def _sort_vjp(x: Array, v: Array) -> Array:
    gradient = np.empty_like(v)
    gradient[np.argsort(x, kind="stable")] = v
    return gradient


def _max_vjp(x: Array, v: Array) -> Array:
    return np.asarray(v * (np.arange(x.size) == np.argmax(x)))


def _inverse_vjp(x: Array, v: Array) -> Array:
    y = np.linalg.inv(x)
    return np.asarray(-y.T @ v @ y.T)


def _solve_vjp(points: Arrays, weights: Arrays) -> Arrays:
    a, b = points
    adjoint = np.linalg.solve(a.T, weights[0])
    return -np.outer(adjoint, np.linalg.solve(a, b)), adjoint


def _solve_sample(generator: np.random.Generator, n: int) -> Arrays:
    a = square_matrix(generator, n)
    return a, generator.standard_normal(a.shape[0])


def _matmul_sample(generator: np.random.Generator, n: int) -> Arrays:
    side = max(1, round(n**0.5))
    return generator.standard_normal((side, 3)), generator.standard_normal((3, side))


def _many_vjp(points: Arrays, weights: Arrays) -> Arrays:
    (a, b), (v, w, z) = points, weights
    return v * b + w + z / b, v * a + w - z * a / b**2


def _weight_matrix(n: int) -> Array:
    return np.cos(np.arange(n * n, dtype=np.float64).reshape(n, n))


def _gather_index(n: int) -> Array:
    return np.asarray((7 * np.arange(2 * n)) % n)


def _gather_vjp(x: Array, v: Array) -> Array:
    gradient = np.zeros_like(x)
    np.add.at(gradient, _gather_index(x.size), v)
    return gradient


def _polynomial(x: Array) -> Array:
    return np.asarray(((x - 2) * x + 0.5) * x**2 - 1)


def _safe_norm_vjp(x: Array, v: Array) -> Array:
    norm = np.linalg.norm(x)
    return np.asarray(v * (x / norm if norm else np.zeros_like(x)))


FUNCTIONS: tuple[Analytic, ...] = (
    elementwise("exp", np.exp, np.exp, normal),
    elementwise("exp, steep", lambda x: np.exp(20 * x), lambda x: 20 * np.exp(20 * x), normal),
    elementwise("square at 1e9", np.square, lambda x: 2 * x, around(1e9)),
    elementwise("log at 1e-5", np.log, lambda x: 1 / x, positive(1e-5)),
    elementwise("sqrt at 1e-5", np.sqrt, lambda x: 0.5 / np.sqrt(x), positive(1e-5)),
    elementwise("sin(1e4 x)", lambda x: np.sin(1e4 * x), lambda x: 1e4 * np.cos(1e4 * x), normal, "some"),
    elementwise("tanh", np.tanh, lambda x: 1 / np.cosh(x) ** 2, normal),
    elementwise("tanh, saturated", np.tanh, lambda x: 1 / np.cosh(x) ** 2, around(20.0)),
    elementwise("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda x: 0.25 / np.cosh(x / 2) ** 2, normal),
    elementwise(
        "sin times cos",
        lambda x: np.sin(x) * np.cos(3 * x),
        lambda x: np.cos(x) * np.cos(3 * x) - 3 * np.sin(x) * np.sin(3 * x),
        normal,
    ),
    elementwise("arctan", np.arctan, lambda x: 1 / (1 + x**2), normal),
    elementwise("reciprocal", np.reciprocal, lambda x: -1 / x**2, normal),
    elementwise("polynomial", _polynomial, lambda x: 4 * x**3 - 6 * x**2 + x, normal),
    elementwise("cube at 0", lambda x: x**3, lambda x: 3 * x**2, lambda _, n: np.zeros(n)),
    elementwise("power 2.5", lambda x: x**2.5, lambda x: 2.5 * x**1.5, positive(1.0)),
    elementwise("square at 1e150", np.square, lambda x: 2 * x, around(1e150)),
    elementwise("square at 1e-150", np.square, lambda x: 2 * x, around(1e-150)),
    elementwise("reciprocal at 1e150", np.reciprocal, lambda x: -1 / x / x, around(1e150)),
    elementwise("sqrt at 1e-300", np.sqrt, lambda x: 0.5 / np.sqrt(x), positive(1e-300)),
    elementwise("identity at 1e300", lambda x: 1.0 * x, np.ones_like, around(1e300)),
    elementwise("shift by 1e8", lambda x: x + 1e8, np.ones_like, normal, "some"),
    elementwise("square, mixed scales", np.square, lambda x: 2 * x, mixed),
    elementwise("log, mixed scales", np.log, lambda x: 1 / x, mixed, "some"),
    elementwise("arctan, mixed scales", np.arctan, lambda x: 1 / (1 + x**2), mixed),
    elementwise("constant", np.ones_like, np.zeros_like, normal),
    elementwise("zero", np.zeros_like, np.zeros_like, normal),
    elementwise("z * z", np.square, lambda z: 2 * z, complex_normal),
    elementwise("exp(i z)", lambda z: np.exp(1j * z), lambda z: 1j * np.exp(1j * z), complex_normal),
    elementwise("exp(i x)", lambda x: np.exp(1j * x), lambda x: 1j * np.exp(1j * x), normal),
    elementwise("1 / z", lambda z: 1 / z, lambda z: -1 / z**2, complex_normal),
    unary("|z|^2", lambda z: z.real**2 + z.imag**2, lambda z, v: 2 * v * z, complex_normal),
    unary("|z|", np.abs, lambda z, v: v * z / np.abs(z), complex_normal),
    unary("conj(z)", np.conj, lambda _, v: np.conj(v), complex_normal),
    unary("cumsum", np.cumsum, lambda _, v: np.cumsum(v[::-1])[::-1], normal),
    unary("sum", np.sum, lambda x, v: v * np.ones_like(x), normal),
    unary("mean, mixed scales", np.mean, lambda x, v: v * np.ones_like(x) / x.size, mixed),
    unary("variance", np.var, lambda x, v: v * 2 * _centred(x) / x.size, normal),
    unary("softmax", _softmax, lambda x, v: _softmax(x) * (v - (v * _softmax(x)).sum()), normal),
    unary("logsumexp", lambda x: x.max() + np.log(np.exp(x - x.max()).sum()), lambda x, v: v * _softmax(x), normal),
    unary("layernorm", _layernorm, _layernorm_vjp, lambda generator, n: 3 + generator.standard_normal(n + 2)),
    unary("norm", np.linalg.norm, _safe_norm_vjp, normal),
    unary("inverse", np.linalg.inv, _inverse_vjp, square_matrix),
    unary("log of |det|", lambda x: np.linalg.slogdet(x)[1], lambda x, v: v * np.linalg.inv(x).T, square_matrix),
    unary("dense linear", lambda x: _weight_matrix(x.size) @ x, lambda x, v: _weight_matrix(x.size).T @ v, normal),
    unary(
        "dense linear, mixed scales",
        lambda x: _weight_matrix(x.size) @ x,
        lambda x, v: _weight_matrix(x.size).T @ v,
        mixed,
    ),
    unary("gather", lambda x: x[_gather_index(x.size)], _gather_vjp, normal),
    Analytic("matmul", lambda p: (p[0] @ p[1],), lambda p, w: (w[0] @ p[1].T, p[0].T @ w[0]), _matmul_sample),
    Analytic("solve", lambda p: (np.linalg.solve(*p),), _solve_vjp, _solve_sample),
    Analytic(
        "division",
        lambda p: (p[0] / p[1],),
        lambda p, w: (w[0] / p[1], -w[0] * p[0] / p[1] ** 2),
        pair(normal, around(1.0)),
    ),
    Analytic("three outputs", lambda p: (p[0] * p[1], p[0] + p[1], p[0] / p[1]), _many_vjp, pair(normal, around(1.0))),
    Analytic(
        "arctan2",
        lambda p: (np.arctan2(*p),),
        lambda p, w: (w[0] * p[1] / (p[0] ** 2 + p[1] ** 2), -w[0] * p[0] / (p[0] ** 2 + p[1] ** 2)),
        pair(normal, positive(1.0)),
    ),
    Analytic(
        "product of zeros",
        lambda p: (p[0] * p[1],),
        lambda p, w: (w[0] * p[1], w[0] * p[0]),
        pair(lambda _, n: np.zeros(n), lambda _, n: np.zeros(n)),
    ),
    elementwise("relu, spaced", lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), spaced),
    elementwise("abs, spaced", np.abs, np.sign, spaced),
    unary("max, spaced", np.max, _max_vjp, spaced),
    unary("sort, spaced", np.sort, _sort_vjp, spaced),
    elementwise("exp(x) - 1 at 1e-6", lambda x: np.exp(x) - 1, np.exp, around(1e-6), "some"),
    elementwise("exp(x) - 1 at 1e-15", lambda x: np.exp(x) - 1, np.exp, around(1e-15), "some"),
    elementwise("x - (x + 1e-8)", lambda x: x - (x + 1e-8), np.zeros_like, normal, "some"),
    elementwise(
        "(1 - cos x) / x^2 at 1e-4",
        lambda x: (1 - np.cos(x)) / x**2,
        lambda x: x**3 / 120 - x / 12,
        around(1e-4),
        "some",
    ),
    elementwise("in float32", lambda x: np.float64(np.exp(x.astype(np.float32))), np.exp, normal, "some"),
    elementwise("floor", np.floor, np.zeros_like, normal, "kinks"),
    elementwise("relu, normal", lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), normal),
    elementwise("relu near 0", lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), near_zero, "kinks"),
    elementwise("abs near 0", np.abs, np.sign, near_zero, "kinks"),
    elementwise(
        "clip at its ends",
        lambda x: np.clip(x, -1, 1),
        lambda x: 1.0 * (np.abs(x) < 1),
        lambda generator, n: generator.choice((-1.0, 1.0, 1 + 1e-8, -1 + 1e-4, 0.3), n),
        "kinks",
    ),
    unary("max, tied", np.max, _max_vjp, tied, "kinks"),
    unary("sort, tied", np.sort, _sort_vjp, tied, "kinks"),
    unary("sort, normal", np.sort, _sort_vjp, normal, "kinks"),
    unary(
        "norm at or near 0",
        np.linalg.norm,
        _safe_norm_vjp,
        lambda generator, n: generator.choice((0.0, 1e-150)) * generator.standard_normal(n),
        "kinks",
    ),
    elementwise(
        "sqrt |x| near 0",
        lambda x: np.sqrt(np.abs(x)),
        lambda x: np.where(x == 0, 0, 0.5 * np.sign(x) / np.sqrt(np.abs(x) + (x == 0))),
        near_zero,
        "kinks",
    ),
)
