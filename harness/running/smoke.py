"""The smoke stage: it finds mistakes of an adapter before the run reports anything about the implementation.

It uses only the simplest custom Function. It runs in a process of its own, so that a crash does not end the run.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem, message_of
from autograd_conformance.implementations.protocol import (
    CAPABILITIES,
    METHODS,
    Description,
    Implementation,
    Unavailable,
    absent_methods,
)
from autograd_conformance.implementations.separate import environment
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.reference.namespace import ARRAY_NAMES, AUTOGRAD_NAMES, EXTRA_NAMES
from autograd_conformance.reference.properties import PROPERTIES

SECONDS = 300
_SECONDS_IN_FORK = 60

# Takes seconds to import, and survives a fork: the stage needs no second import if the run has just made the first.
_FORKABLE = "torch"

# The most mistakes that are shown.
_SHOWN = 12

# The first word of the line with the result; a framework may print other lines.
_FOUND, _UNAVAILABLE = "autograd-conformance-found", "autograd-conformance-unavailable"

DTYPES = (*FLOATING, "int64", "int32", "int16", "int8", "uint8", "bool")

# Names of the array namespace that only a capability needs.
_NAMES = {"numpy": ("to_numpy", "from_numpy"), "sparse": ("sparse_matmul",)}
_ATTRIBUTES = ("name", "capabilities", "dtypes", "xp", "ag")


def verify(given: str, *, known: bool = False, separate: bool = False, python: str | None = None) -> str:
    """Raise UsageProblem if the adapter has mistakes, which would make every result meaningless.

    An adapter that is ``known`` to be right has none: then it is the implementation that is wrong. The run can go on,
    and names what it breaks. Returns a warning that says so, or "". If the run is ``separate``, this process never
    imports the implementation, which another interpreter may have.
    """
    found = problems(given, forks=not separate, python=python)
    if not found:
        return ""
    more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
    listed = "".join(f"\n  {problem}" for problem in found[:_SHOWN]) + more
    if known or given in implementations.ADAPTERS:
        return f"{given} does not do what its adapter relies on; the run goes on, to show what this breaks:{listed}"
    raise UsageProblem(
        f"the adapter {given} does not pass the smoke stage; fix it before its implementation can be checked:{listed}"
    )


def problems(
    given: str, *, seconds: float = SECONDS, forks: bool = True, python: str | None = None
) -> list[str]:  # fmt: skip
    """The mistakes of the adapter with that name, found in a process of its own.

    Raises UsageProblem if there is no such adapter, or its framework is not installed.
    """
    forks = forks and given == _FORKABLE and given not in sys.modules and sys.platform == "linux"
    if forks and _holds_in_fork(given, seconds):
        return []
    words = [python or sys.executable, "-m", __name__, given]
    try:
        done = subprocess.run(
            words, env=environment(python), capture_output=True, text=True, timeout=seconds, check=False
        )
    except OSError as problem:
        raise UsageProblem(f"{words[0]} cannot be started: {problem.strerror}") from None
    except subprocess.TimeoutExpired:
        return [f"it does not end: it was stopped after {seconds:g} s"]
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith((_FOUND, _UNAVAILABLE)))
    if _UNAVAILABLE in said:
        raise UsageProblem(json.loads(said[_UNAVAILABLE]))
    if _FOUND in said:
        found: list[str] = json.loads(said[_FOUND])
        return found
    last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return [f"the process ended with {ended}: {last}"]


def _holds_in_fork(given: str, seconds: float) -> bool:
    """Whether an adapter that this process imports has no mistake, as a fork of it says. Raises UsageProblem.

    What a framework does not survive in a fork is not its mistake. An import that does not end is ended with its
    stack, and this process with it.
    """
    # Also where the framework waits in C, and no other thread runs.
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        adapter = implementations.load(given)
        implementations.check_version(adapter)
    except Unavailable as problem:
        raise UsageProblem(str(problem)) from problem
    finally:
        faulthandler.cancel_dump_traceback_later()
    start = multiprocessing.get_context("fork")
    mine, theirs = start.Pipe(duplex=False)
    process = start.Process(target=_send, args=(adapter, theirs), daemon=True)
    with warnings.catch_warnings():
        # Of a thread that waits for the end of the parent.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    try:
        return bool(mine.poll(min(seconds, _SECONDS_IN_FORK)) and mine.recv() == [])
    except EOFError:
        return False
    finally:
        process.kill()
        process.join()


def _send(adapter: Implementation, pipe: Any) -> None:
    # A framework may print something.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    pipe.send(found_in(adapter))


def found_in(implementation: Implementation) -> list[str]:
    """The mistakes of an adapter: in what it declares, or else in what it does."""
    return list(declared(implementation)) or list(_behaviour(implementation))


def declared(i: Implementation) -> Iterator[str]:
    """Mistakes in what an adapter declares."""
    absent = [name for name in _ATTRIBUTES if not hasattr(i, name)]
    if absent:
        yield f"it lacks the attribute {', '.join(absent)}"
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
        absent = [name for name in names if not hasattr(getattr(i, space), name)]
        if absent:
            yield f"{space} lacks {', '.join(absent)}; see reference/namespace.py"


def _deviations(i: Implementation) -> Iterator[str]:
    for deviation in i.deviations:
        unknown = [id for id in deviation.ids if id.split("/")[0] not in (PROPERTIES.keys() | CLAUSES.keys())]
        if unknown:
            yield f"it lists a deviation from {', '.join(unknown)}, which is not a property or clause"


def _behaviour(i: Implementation) -> Iterator[str]:
    """Mistakes in what an adapter does; only the last check uses a custom Function."""
    for check in (_arrays, _namespace, _gradients, _conjugates, _nests, _applies):
        yield from _guarded(check, i)


def _guarded(check: Callable[[Implementation], Iterator[str]], i: Implementation) -> Iterator[str]:
    try:
        yield from check(i)
    except Exception as raised:  # noqa: BLE001 - any exception is a mistake of the adapter
        yield f"{check.__doc__}: {type(raised).__name__}: {' '.join(message_of(raised).split())}"


def _arrays(i: Implementation) -> Iterator[str]:
    """conversion to arrays and back"""
    device = i.devices()[0]
    for dtype, shape in product(i.dtypes, ((), (2, 3), (0,))):
        values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2
        tensor = i.array(values, dtype, device)
        yield from _unequal(f"numpy(array(..., {dtype!r}))", i.numpy(tensor), values)
        described, expected = i.describe(tensor), Description(shape, dtype, device)
        if described != expected:
            yield f"describe gives {described} for a tensor made as {expected}"
        if not i.is_tensor(tensor) or i.is_tensor(None) or i.is_tensor(1.0):
            yield "is_tensor must be True for the result of array, and False for None and for numbers"


def _namespace(i: Implementation) -> Iterator[str]:
    """the array namespace"""
    matrix, signs = np.array([[4.0, 1.0, 0.25], [9.0, 2.25, 16.0]]), np.array([[1.0, -2.0, 0.5], [-1.0, 3.0, 2.0]])
    a, b = (i.array(values, "float64", i.devices()[0]) for values in (matrix, signs))
    order = i.array(np.argsort(signs, axis=-1), "int64", i.devices()[0])
    xp = i.xp
    given: dict[str, tuple[Any, Any]] = {
        "abs": (xp.abs(b), np.abs(signs)),
        "argmax": (xp.argmax(a, axis=1), np.argmax(matrix, axis=1)),
        "argsort": (xp.argsort(b, axis=-1), np.argsort(signs, axis=-1)),
        "broadcast_to": (xp.broadcast_to(b, (2, 2, 3)), np.broadcast_to(signs, (2, 2, 3))),
        "concat": (xp.concat([a, b], axis=1), np.concatenate([matrix, signs], axis=1)),
        "copy": (xp.copy(a), matrix),
        "exp": (xp.exp(b), np.exp(signs)),
        "expand_dims": (xp.expand_dims(a, axis=1), np.expand_dims(matrix, 1)),
        "flip": (xp.flip(a, axis=1), np.flip(matrix, 1)),
        "matmul": (xp.matmul(a, xp.matrix_transpose(b)), matrix @ signs.T),
        "max": (xp.max(a, axis=0), matrix.max(0)),
        "mean": (xp.mean(a, axis=1), matrix.mean(1)),
        "permute_dims": (xp.permute_dims(a, (1, 0)), matrix.T),
        "reshape": (xp.reshape(a, (3, 2)), matrix.reshape(3, 2)),
        "sign": (xp.sign(b), np.sign(signs)),
        "sqrt": (xp.sqrt(a), np.sqrt(matrix)),
        "stack": (xp.stack([a, b]), np.stack([matrix, signs])),
        "sum": (xp.sum(a, axis=(0,)), matrix.sum(0)),
        "take_along_axis": (xp.take_along_axis(a, order, axis=-1), np.take_along_axis(matrix, np.argsort(signs), -1)),
        "where": (xp.where(b > 0, a, b), np.where(signs > 0, matrix, signs)),
        "zeros_like": (xp.zeros_like(a), np.zeros((2, 3))),
    }
    for name, (got, expected) in given.items():
        yield from _unequal(f"xp.{name}", i.numpy(got), expected, rounded=True)


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
    """the simplest custom Function"""

    triple = _triple(i)
    x, g = _tensors(i, [3.0, -2.0], [1.0, 2.0])
    outputs, pullback = i.vjp(i.function(triple), (x,))
    if not isinstance(outputs, tuple):
        yield f"vjp must return its outputs as a tuple, but returned a {type(outputs).__name__}"
    yield from _different("a Function that triples", i, (*outputs, *pullback((g,))), ([9.0, -6.0], [3.0, 6.0]))
    if "jvp" in i.capabilities:
        (primal,), (tangent,) = i.jvp(i.function(triple), (x,), (g,))
        yield from _different("jvp of a Function that triples", i, (primal, tangent), ([9.0, -6.0], [3.0, 6.0]))


def _triple(i: Implementation) -> Any:
    """A Function that multiplies by 3, in a style that the implementation supports."""

    def triple(ctx: Any, x: Any) -> Any:
        return 3.0 * x

    methods: dict[str, Any] = {"forward": triple, "backward": triple}
    if "jvp" in i.capabilities:
        methods["jvp"] = triple
    if i.needs_setup_context:
        methods |= {"forward": lambda x: 3.0 * x, "setup_context": lambda ctx, inputs, output: None}
    namespace = {name: staticmethod(method) for name, method in methods.items()}
    return type(i.ag.Function)("Triple", (i.ag.Function,), namespace)


def _tensors(i: Implementation, *values: Sequence[float]) -> list[Any]:
    return [i.array(np.array(v), "float64", i.devices()[0]) for v in values]


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


def _unequal(what: str, got: Any, expected: Any, *, rounded: bool = False) -> Iterator[str]:
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        yield f"{what} is {got!r} instead of {expected!r}"
    elif not (np.allclose(got, expected) if rounded else np.array_equal(got, expected)):
        yield f"{what} is {got.tolist()} instead of {expected.tolist()}"


def _main(load: Callable[[str], Implementation] = implementations.load) -> None:
    try:
        adapter = load(sys.argv[1])
        implementations.check_version(adapter)
    except Unavailable as problem:
        print(_UNAVAILABLE, json.dumps(str(problem)))
    else:
        print(_FOUND, json.dumps(found_in(adapter)))


if __name__ == "__main__":
    _main()
