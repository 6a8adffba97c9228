"""The finite-difference ladder: a directional derivative with a bound on its own error.

It takes one direction, several steps and both signs. The odd part of the differences gives the slope, the even part
shows a kink, and the levels finer than the chosen one show rounding that no model of the function could predict.
A function that computes in single precision gets fewer and larger steps, and wider bounds by its unit.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = tuple[Array | None, ...]
Mapping = Callable[[Arrays], Arrays]

NOT_FINITE = "not finite at the point"
TOO_FEW = "too few finite levels"
KINK = "kink at the point or within the finest step"
FINER = "finer steps disagree: a kink within the step, or rounding inside the function"
LOOSE = "error bound too large for the scale"
COARSE = "computed in half precision, which is too coarse for finite differences"

_EPS = float(np.finfo(np.float64).eps)
_COLUMNS = 5


@dataclass(frozen=True)
class _Grid:
    """The levels of one stage, and Richardson's tableaus over them as matrices, one for each order and level."""

    levels: Array
    steps: Array
    tableaus: Array  # [0] for slopes with errors in step**2, step**4, ...; [1] for half-jumps, in step, step**3, ...
    finer: Array  # [m, k]: step m over step k where m is the finer one, else 0


def _grid(all_steps: Array, levels: Array) -> _Grid:
    steps = all_steps[levels]
    tableaus = np.full((2, _COLUMNS, steps.size, steps.size), np.nan)
    tableaus[:, 0] = np.eye(steps.size)
    for power, table in zip((2, 1), tableaus, strict=True):
        for order in range(1, _COLUMNS):
            # Exact for evenly spaced steps. Across the gap before the two finest, the finer entry is kept.
            ratio = (steps[order - 1 : -1] / steps[order:]) ** (power + 2 * order - 2) - 1
            coarse, fine = table[order - 1, order - 1 : -1], table[order - 1, order:]
            table[order, order:] = fine + (fine - coarse) / ratio[:, None]
    return _Grid(levels, steps, tableaus, np.tril(steps[:, None] / steps, -1))


@dataclass(frozen=True)
class Resolution:
    """How finely a function computes, with the steps and limits that suit it.

    ``bits`` is the length of a direction's mantissa, with which the finest step is exact. An error bound above
    ``refuse`` of the scale is not an answer. ``settled`` is the bound at which no further step is needed.
    """

    eps: float
    subnormal: float
    steps: Array
    bits: int
    refuse: float
    settled: float
    stages: tuple[_Grid, ...]

    @property
    def least(self) -> float:
        """The finest step whose slope can be the answer."""
        # The three finer levels are only compared with: where outputs are coarse, two of them can agree by chance.
        return float(self.steps[-4])


def _resolution(kind: Any, steps: Array, stages: tuple[Array, ...], **limits: Any) -> Resolution:
    info = np.finfo(kind)
    grids = tuple(_grid(steps, levels) for levels in stages)
    return Resolution(float(info.eps), float(info.smallest_subnormal), steps, stages=grids, **limits)


# First both ends of the ladder: the coarse levels, at which smooth functions settle, and the two finest, which would
# show a kink or a ripple in between. Then all levels.
DOUBLE = _resolution(
    np.float64, 4.0 ** -np.arange(12) / 16, (np.array([0, 1, 2, 3, 4, 10, 11]), np.arange(12)),
    bits=24, refuse=1e-7, settled=1e-11,
)  # fmt: skip
SINGLE = _resolution(np.float32, 2.0 ** -np.arange(9) / 16, (np.arange(9),), bits=11, refuse=1e-3, settled=0.0)
# Half precision has none: its steps would be as large as the numbers.
RESOLUTIONS = {"float64": DOUBLE, "float32": SINGLE}


class Verdict(enum.Enum):
    """What an estimate says about a claimed derivative."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Estimate:
    """A slope, a bound on its error, and the reason why it cannot be trusted (None: it can)."""

    value: float
    bound: float
    reason: str | None
    evaluations: int


@dataclass(frozen=True)
class Culprit:
    """The gradient entry with the largest error: its position, the output that shows it, and both values.

    `got` and `expected` are complex for a complex input; `output` is None if the entry changes no output.
    """

    input: int
    index: tuple[int, ...]
    output: int | None
    output_index: tuple[int, ...] | None
    got: float | complex
    expected: float | complex
    bound: float


def inner(a: Arrays, b: Arrays) -> float:
    """Re sum conj(a) b over the pairs of which neither is None. Raises ValueError if shapes or lengths differ."""
    total = 0.0
    for left, right in zip(a, b, strict=True):
        if left is not None and right is not None:
            if np.shape(left) != np.shape(right):
                raise ValueError(f"inner product of shapes {np.shape(left)} and {np.shape(right)}")
            total += float(np.vdot(left, right).real)
    return total


def directions(points: Arrays, *, seed: int, bits: int = DOUBLE.bits) -> Arrays:
    """Scale-free random directions, one for each float or complex point, None for the others.

    Each entry moves by 0.5 to 1.5 times its own magnitude, with a random sign (complex: in each of the two parts, over
    sqrt 2), so that every entry shows and a positive point stays positive at every step. There are two exceptions. An
    entry far below the geometric mean of its array moves up to 256 times further, at most 1/16 of that mean, because
    its cotangent would not show otherwise. An entry that is 0, or below one ulp of that mean, moves by the mean itself
    (by 1 in an array of zeros). Results are float64 or complex128.
    """
    generator = np.random.default_rng(seed)
    return tuple(_direction(point, generator, bits) for point in points)


def _direction(point: Array | None, generator: np.random.Generator, bits: int) -> Array | None:
    if point is None or np.asarray(point).dtype.kind not in "fc":
        return None
    size = _scale(np.abs(np.asarray(point)))
    if np.asarray(point).dtype.kind == "f":
        return _random(size, generator, bits)
    return _random(size / math.sqrt(2), generator, bits) + 1j * _random(size / math.sqrt(2), generator, bits)


def _scale(magnitude: Array) -> Array:
    """How far each entry moves."""
    size = magnitude.astype(np.float64)
    seen = size[np.isfinite(size) & (size > 2.0**-1000)]
    typical = math.exp(float(np.mean(np.log(seen)))) if seen.size else 1.0
    size = np.where(np.isfinite(size) & (size > _EPS * typical) & (size > 2.0**-1000), size, typical)
    return np.maximum(size, np.minimum(typical / 16, 256 * size))


def _random(size: Array, generator: np.random.Generator, bits: int) -> Array:
    moved = size * generator.uniform(0.5, 1.5, size.shape) * generator.choice((-1.0, 1.0), size.shape)
    # The bits leave room for those of the finest step (24 of 26 in double precision): point + step * direction is then
    # exact (except where it crosses a power of two), so that a sum of many entries does not add up their roundings.
    mantissa, exponent = np.frexp(moved)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**bits), exponent - bits))


def judge(claim: float, estimate: Estimate, *, rounding: float = 0.0) -> Verdict:
    """Compare a claimed derivative with an estimate; `rounding` bounds the error of the claim itself.

    They disagree iff |claim - value| > 10 * bound + rounding. The factor 10 is there because the bound rests on few
    samples of the noise. A claim that is not finite disagrees with any trusted estimate.
    """
    if estimate.reason is not None:
        return Verdict.INCONCLUSIVE
    if math.isfinite(claim) and abs(claim - estimate.value) <= 10 * estimate.bound + rounding:
        return Verdict.AGREES
    return Verdict.DISAGREES


def slope(
    f: Mapping, points: Arrays, direction: Arrays, weights: Arrays, resolution: Resolution | None = DOUBLE
) -> Estimate:
    """Derivative at t = 0 of Re sum conj(weights) f(points + t direction), with its error bound.

    `f` maps a tuple of arrays to a tuple of arrays, is deterministic, and does not change its arguments. Points without
    a direction and outputs without a weight are ignored. Without a `resolution` there is no answer. In double precision
    it takes 15 evaluations if the function settles at once, else 25. The levels in between can be left out, because a
    kink nearer than the coarse steps still shows in their even part, and the two finest levels, which are always
    evaluated, would show a ripple. A ripple whose slope is below the noise at the steps that resolve it is taken for
    noise. So may be, in one entry, the coarse steps of a result that cancelled (seen about once in 60 000 such draws).
    Levels at which f overflows, leaves its domain, finds a matrix singular, or has outputs of other shapes are left
    out; an exception of f at the point itself is raised. Raises ValueError for outputs that do not fit the weights.

    Central differences extrapolated to step 0: L. F. Richardson, Phil. Trans. R. Soc. A 210 (1911) 307; C. J. F.
    Ridders, Adv. Eng. Software 4 (1982) 75. Noise: after J. J. More, S. M. Wild, SIAM J. Sci. Comput. 33 (2011) 1292.
    """
    if all(u is None or u.size == 0 for u in direction) or all(v is None or v.size == 0 for v in weights):
        return Estimate(0.0, 0.0, None, 0)
    if resolution is None:
        return Estimate(math.nan, math.inf, COARSE, 0)
    samples = np.full((3, resolution.steps.size), np.nan)
    ran = np.zeros(resolution.steps.size, dtype=bool)
    with np.errstate(all="ignore"):
        line = _Line(f, points, direction, weights)
        if not math.isfinite(line.size):
            return Estimate(math.nan, math.inf, NOT_FINITE, 1)
        for grid in resolution.stages:
            for level in grid.levels[~ran[grid.levels]]:
                samples[:, level] = line.sample(float(resolution.steps[level]))
            ran[grid.levels] = True
            estimate, scale = _weigh(grid, samples[:, grid.levels], line, resolution)
            if estimate.reason is None and estimate.bound <= resolution.settled * scale:
                break
    return replace(estimate, evaluations=1 + 2 * int(ran.sum()))


class _Line:
    """The function along one line through the points: the weighted change of its outputs from those at the points."""

    def __init__(self, f: Mapping, points: Arrays, direction: Arrays, weights: Arrays) -> None:
        self._f, self._points = f, points
        pairs = enumerate(zip(points, direction, strict=True))
        self._moves = [(number, x, u) for number, (x, u) in pairs if x is not None and u is not None]
        outputs = self.outputs(0.0)
        self._shapes = [np.asarray(out).shape for out in outputs]
        self._parts = []
        for number, (v, out) in enumerate(zip(weights, outputs, strict=True)):
            if v is not None:
                start = np.array(out)  # A copy: f may return the same buffer every time.
                if start.shape != v.shape:
                    raise ValueError(f"output {number} has shape {start.shape}, its weight {v.shape}")
                self._parts.append((number, v.ravel(), np.abs(v).ravel(), start.ravel()))
        self.size = sum(float(np.dot(magnitude, np.abs(start))) for _, _, magnitude, start in self._parts)
        self.unit = sum(float(magnitude.sum()) for _, _, magnitude, _ in self._parts)
        self.entries = sum(v.size for _, v, _, _ in self._parts)

    def outputs(self, t: float) -> Arrays:
        """All outputs at t."""
        moved = list(self._points)
        for number, x, u in self._moves:
            moved[number] = np.asarray(x + t * u)
        return self._f(tuple(moved))

    def _change(self, t: float) -> tuple[float, float]:
        """The weighted sum of the changes from the points to t, and the same sum of absolute terms."""
        try:
            outputs = self.outputs(t)
        except (ArithmeticError, np.linalg.LinAlgError):
            return math.nan, math.nan
        change = spread = 0.0
        for number, v, magnitude, start in self._parts:
            output = np.asarray(outputs[number])
            if output.shape != self._shapes[number]:
                return math.nan, math.nan
            # Subtract before summing: the sum is then rounded at the size of the differences, not of the outputs.
            difference = np.ravel(output) - start
            change += float(np.vdot(v, difference).real)
            spread += float(np.dot(magnitude, np.abs(difference)))
        return change, spread

    def sample(self, step: float) -> tuple[float, float, float]:
        """Odd part and even part of the change at +-step, and the larger sum of absolute terms."""
        (forth, spread), (back, other) = self._change(step), self._change(-step)
        return (forth - back) / 2, (forth + back) / 2, max(spread, other)


def _weigh(grid: _Grid, samples: Array, line: _Line, resolution: Resolution) -> tuple[Estimate, float]:
    """The estimate with the smallest error bound in the two tableaus, and the scale of its error."""
    steps, spread, eps = grid.steps, samples[2], resolution.eps
    if not spread.any():
        # If no level shows a difference, the size of terms that may have cancelled is unknown: assume one ulp of 1, or
        # of the outputs if they are larger.
        scale = max(line.size, line.unit)
        return Estimate(0.0, eps * scale / float(steps[0]), None, 0), scale
    # The computed function is the exact one within an ulp of its outputs (at the point and at the step) and within an
    # ulp of its inputs, which the finest secant turns into a change of the outputs.
    noise = eps * (line.size + spread + spread[-1] / steps[-1]) + resolution.subnormal * (line.unit + line.entries)
    # Nothing changes at this step, but at coarser ones: the change may be below what the outputs can resolve, which is
    # no finer than the changes at those steps.
    noise = np.where(spread == 0, np.nanmax(spread, initial=0.0), noise)
    # Row 0: slopes. Row 1: one-sided slopes less the central one, even / step, which tend to half the slope's jump.
    values, jumps = tables = _extrapolate(grid.tableaus, samples[:2] / steps)
    floors = _extrapolate(np.abs(grid.tableaus), np.array([noise, 2 * noise]) / steps)
    # Finer levels may differ by noise alone, which grows as the step shrinks. Their difference, scaled to the coarser
    # step, is the noise that the model above missed. Extrapolating jumps triples the noise, hence the 3.
    wanted = np.array([values, np.zeros_like(jumps)])
    residual = _residual(tables, wanted, grid.finer)
    measured = np.maximum(residual[0], residual[1] / 3)
    bounds = np.maximum(np.maximum(_neighbours(tables), floors).max(axis=0), 3 * measured)
    bounds[np.isnan(bounds) | (steps < resolution.least)] = np.inf
    order, level = np.unravel_index(int(np.argmin(bounds)), bounds.shape)
    value, bound = float(values[order, level]), float(bounds[order, level])
    if not math.isfinite(bound):
        return Estimate(math.nan, math.inf, TOO_FEW, 0), math.nan
    scale = max(line.size, float(spread[level] / steps[level]))
    reason = None
    if min(abs(jumps[order, level]), 2 * abs(jumps[order, level + 1])) > bound:
        reason = KINK
    elif _settles_elsewhere(values[order, level + 1 :] - value, np.maximum(bound, 2 * floors[0, order, level + 1 :])):
        reason = FINER
    elif bound > resolution.refuse * scale:
        reason = FINER if 3 * measured[order, level] >= bound else LOOSE
    elif np.any((bounds <= resolution.refuse * scale) & (np.abs(values - value) > bounds + bound)):
        # The intervals of two trusted entries do not overlap: the steps of coarse outputs may align at some levels.
        reason = FINER
    return Estimate(value, bound, reason, 0), scale


def _settles_elsewhere(distance: Array, noise: Array) -> bool:
    """Whether two adjacent finer levels agree on another slope. A ripple makes them agree, noise does not."""
    coarse, fine = distance[:-1], distance[1:]
    return bool(np.any((np.abs(fine) > noise[1:]) & (np.abs(fine - coarse) < np.abs(fine) / 8)))


def _extrapolate(tableaus: Array, values: Array) -> Array:
    """The entries of the two tableaus for the values at each level; NaN where a level has no value."""
    missing = ~np.isfinite(values)
    table = np.asarray(tableaus @ np.where(missing, 0.0, values)[:, None, :, None])[..., 0]
    if missing.any():
        table[((tableaus != 0) & missing[:, None, None, :]).any(axis=-1)] = np.nan
    return table


def _neighbours(tables: Array) -> Array:
    """The largest difference of each entry from the next lower order and from the next finer level."""
    distance = np.full(tables.shape, np.nan)
    distance[:, 1:] = np.abs(tables[:, 1:] - tables[:, :-1])
    finer = np.abs(tables[:, 1:, 1:] - tables[:, 1:, :-1])
    distance[:, 1:, :-1] = np.maximum(distance[:, 1:, :-1], finer)
    return distance


def _residual(tables: Array, wanted: Array, finer: Array) -> Array:
    """For each entry, the largest difference of finer levels from `wanted`, scaled to the step of the entry."""
    differences = np.abs(tables[..., :, None] - wanted[..., None, :])
    # Not finer * differences everywhere: 0 * nan would let a level outside the domain corrupt the finer ones.
    return np.asarray(np.where(finer > 0, finer * differences, 0.0).max(axis=-2))


def diagnose(
    f: Mapping, points: Arrays, gradients: Arrays, weights: Arrays, *, vjp: Mapping | None = None,
    resolution: Resolution = DOUBLE, among: Callable[[Arrays], Arrays] = lambda moves: moves,
) -> Culprit | None:  # fmt: skip
    """Find the worst entry of `gradients`, the VJP of `f` at `points` with the cotangents `weights`.

    Bisects the inputs in at most 50 (log2(n) + 3) evaluations, following the half that disagrees most. Returns None if
    that leads to no single entry that disagrees. With `vjp` (cotangents to gradients) it bisects the outputs as well;
    without it, it names the output that the entry changes most. `among` keeps the part of a move in the entries that
    count.
    """
    direction = among(directions(points, seed=0, bits=resolution.bits))
    entry = _bisect(direction, lambda u: _suspicion(inner(gradients, u), slope(f, points, u, weights, resolution)))
    if entry is None:
        return None
    number, index = _place(direction, entry)
    move = _block(direction, entry, entry + 1)
    if vjp is None:
        shown = _most_moved(f, points, move, weights)
    else:
        shown = _bisect(weights, lambda v: _suspicion(inner(vjp(v), move), slope(f, points, move, v, resolution)))
    output, output_index = (None, None) if shown is None else _place(weights, shown)
    gradient = gradients[number]
    got = 0.0 if gradient is None else np.asarray(gradient)[index].item()
    expected, bound = _entry(f, points, move, weights, number, resolution)
    return Culprit(number, index, output, output_index, got, expected, bound)


def _suspicion(claim: float, estimate: Estimate) -> tuple[int, float]:
    """Sort key of blocks: the verdict (disagrees, inconclusive, agrees), then the size of the difference."""
    rank = {Verdict.AGREES: 0, Verdict.INCONCLUSIVE: 1, Verdict.DISAGREES: 2}[judge(claim, estimate)]
    distance = abs(claim - estimate.value)
    return rank, distance if math.isfinite(distance) else math.inf


def _bisect(arrays: Arrays, suspect: Callable[[Arrays], tuple[int, float]]) -> int | None:
    """The position of a single entry that disagrees, counted through all arrays."""
    start, stop = 0, sum(a.size for a in arrays if a is not None)
    worst = suspect(arrays) if stop else (0, 0.0)
    while stop - start > 1 and worst[0] > 0:
        middle = (start + stop) // 2
        low, high = suspect(_block(arrays, start, middle)), suspect(_block(arrays, middle, stop))
        worst = max(low, high)
        start, stop = (start, middle) if low >= high else (middle, stop)
    return start if worst[0] == 2 else None


def _block(arrays: Arrays, start: int, stop: int) -> Arrays:
    """The arrays with zeros outside the positions from start to stop, counted through all of them."""
    blocks: list[Array | None] = []
    for array in arrays:
        if array is None:
            blocks.append(None)
        else:
            position = np.arange(array.size).reshape(array.shape)
            blocks.append(np.where((position >= start) & (position < stop), array, 0))
            start, stop = start - array.size, stop - array.size
    return tuple(blocks)


def _place(arrays: Arrays, position: int) -> tuple[int, tuple[int, ...]]:
    """The number of the array, and the multi-index in it, of a position counted through all arrays."""
    for number, array in enumerate(arrays):
        if array is not None:
            if position < array.size:
                return number, tuple(int(i) for i in np.unravel_index(position, array.shape))
            position -= array.size
    raise IndexError("position beyond the last array")


def _most_moved(f: Mapping, points: Arrays, move: Arrays, weights: Arrays) -> int | None:
    """The position of the output entry that changes most along a direction."""
    with np.errstate(all="ignore"):
        line = _Line(f, points, move, weights)
        forth, back = ([np.array(out) for out in line.outputs(t)] for t in (2.0**-10, -(2.0**-10)))
        if [out.shape for out in forth] != [out.shape for out in back]:
            return None
        changes = [v * (a - b) for v, a, b in zip(weights, forth, back, strict=True) if v is not None]
    change = np.nan_to_num(np.concatenate([np.abs(one).ravel() for one in changes]))
    return int(np.argmax(change)) if change.any() else None


def _entry(
    f: Mapping, points: Arrays, move: Arrays, weights: Arrays, number: int, resolution: Resolution
) -> tuple[float | complex, float]:
    """The gradient of the single entry that `move` moves, from its own slopes, and its error bound."""
    whole = np.asarray(move[number])
    size, complexes = float(np.abs(whole).max()), whole.dtype.kind == "c"
    slopes = []
    for phase in (1.0, 1j) if complexes else (1.0,):
        single = np.where(whole == 0, 0.0, size * phase)
        slopes.append(slope(f, points, (*move[:number], single, *move[number + 1 :]), weights, resolution))
    bound = math.hypot(*(part.bound for part in slopes)) / size
    return (complex(*(part.value for part in slopes)) if complexes else slopes[0].value) / size, bound
