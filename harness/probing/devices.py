"""What a device takes, found out by trying: dtypes, capabilities, how accurate its operations are, which run elsewhere.

The trials run in a process of their own, so that one that crashes or hangs is a fact about the device.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem, choose_from, one_line
from autograd_conformance.harness.processes import child, waiting
from autograd_conformance.harness.processes.isolation import environment
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import REAL, REAL_OF, Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.reference.uses import POINTS, USES, Use

# Seconds that all trials of a device may take.
SECONDS = 300

# The most operations that are shown, and the most characters of a reason.
_SHOWN, _LONGEST = 8, 80


@dataclass(frozen=True)
class Facts:
    """What a device does not take, with the reason, and what it computes less accurately than its dtype says.

    ``accurate_as`` maps a dtype to the one whose accuracy the built-in operations reach, and ``coarse`` says which one
    shows it. ``elsewhere`` has the operations that the device leaves to the CPU, ``autocast`` the dtypes that its
    autocast does not take, if it takes another one.
    """

    dtypes: Mapping[str, str] = field(default_factory=dict)
    capabilities: Mapping[str, str] = field(default_factory=dict)
    accurate_as: Mapping[str, str] = field(default_factory=dict)
    coarse: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Sequence[str] = ()
    autocast: Mapping[str, str] = field(default_factory=dict)

    def sentences(self) -> Iterator[str]:
        """The facts in words."""
        for name, reason in (*self.dtypes.items(), *self.capabilities.items()):
            yield f"without {name}: {textwrap.shorten(reason, _LONGEST, placeholder=' ...')}"
        if self.autocast:
            yield f"autocast without {', '.join(self.autocast)}"
        for dtype, shown in self.coarse.items():
            yield f"{dtype} is only as accurate as {self.accurate_as[dtype]}: {shown}"
        if self.elsewhere:
            count = len(self.elsewhere)
            several = f"{count} operations run" if count > 1 else "1 operation runs"
            more = f" and {count - _SHOWN} more, in the report" if count > _SHOWN else ""
            yield f"{several} on the CPU: {', '.join(self.elsewhere[:_SHOWN])}{more}"

    def adapter(self, implementation: Implementation) -> Implementation:
        """The adapter for this device: with the dtypes that it takes."""
        if not (self.dtypes or self.autocast):
            return implementation
        mine = copy(implementation)
        mine.autocast_dtypes = tuple(dtype for dtype in implementation.autocast_dtypes if dtype not in self.autocast)
        mine.untaken = frozenset(self.dtypes)
        mine.dtypes = tuple(dtype for dtype in implementation.dtypes if dtype not in mine.untaken)
        return mine

    def function(self, function: Function) -> Function:
        """The Function, with results as accurate as the device computes."""
        return _coarse(function, tuple(self.accurate_as.items())) if self.accurate_as else function


@cache
def _coarse(function: Function, accurate_as: tuple[tuple[str, str], ...]) -> Function:
    """The Function with less accurate results; one for all tests, which cache what they compute of it."""
    return replace(function, accurate_as=dict(accurate_as))


# Which devices there are.


@cache
def start(implementation: Implementation, device: str) -> None:
    """Prepare a device, once in each process."""
    implementation.start_device(device)


def every(i: Implementation) -> tuple[str, ...]:
    """All devices of an implementation on this machine."""
    return (*i.devices(), *i.simulated_devices(), *i.abstract_devices())


def chosen(given: str | None, implementation: Implementation) -> tuple[str, ...]:
    """The devices that a run is restricted to. Raises UsageProblem if one is not there."""
    there = every(implementation)
    names = () if given is None else tuple(dict.fromkeys(map(str.strip, given.split(","))))
    for name in names:
        if name not in there:
            what = f"{implementation.name} has no device {name!r} on this machine; {choose_from(name, there)}"
            raise UsageProblem(f"{what}; --import PACKAGE imports what registers another one")
    return names


def facts(
    options: Any, implementation: Implementation, devices: Sequence[str], known: Mapping[str, Any] | None
) -> dict[str, Facts]:
    """What the accelerators of a run take: found out, or ``known`` from the process that has."""
    if known is not None:
        return {device: Facts(**found) for device, found in known.items()}
    return {
        d: find_out(options.implementation, d) for d in implementation.accelerators() if d in devices or not devices
    }


# How a device is asked.


@cache
def find_out(given: str, device: str) -> Facts:
    """What a device of the implementation with this name takes. Raises UsageProblem if it cannot be found out."""
    known: list[dict[str, Any]] = []
    with waiting.during(f"a process that tries what {device} takes; it is ended after {SECONDS} s"):
        while True:
            words = ["-m", __name__, given, device, str(len(known))]
            said, ended = child.command(words, seconds=SECONDS, environment=environment())
            known += [message["ends"] for message in said if "ends" in message]
            if {"done": True} in said:
                return _facts(known)
            if not said:
                raise UsageProblem(f"what {device} takes cannot be found out: it {ended.how}")
            # A trial after others may have had little of the time: the next process begins with it.
            if "begins" in said[-1] and not (ended.late and len(said) > 1):
                known.append({**said[-1]["begins"], "raised": f"it {ended.how}"})


def _facts(known: Sequence[Mapping[str, Any]]) -> Facts:
    raised: dict[str, dict[str, str]] = {"dtypes": {}, "capabilities": {}, "autocast": {}}
    cast = [each for each in known if each["kind"] == "autocast"]
    coarse: dict[str, tuple[str, str]] = {}
    elsewhere: set[str] = set()
    for each in known:
        kind, name = each["kind"], each["name"]
        if "raised" in each and kind in raised:
            raised[kind][name] = each["raised"]
        # What is not as accurate as any dtype is a wrong result, which no bound may cover.
        elif kind == "accuracy" and each.get("found") and each["found"][0]:
            coarse[name] = each["found"]
        elif kind == "elsewhere":
            elsewhere.update(each.get("found", ()))
    if cast and len(raised["autocast"]) == len(cast):
        raised["capabilities"]["autocast"] = cast[0]["raised"]
        raised["autocast"].clear()
    accurate_as = {name: found[0] for name, found in coarse.items()}
    of_parts = {name: accurate_as[real] for name, real in REAL_OF.items() if real in accurate_as}
    shown = {name: found[1] for name, found in coarse.items()}
    return Facts(**raised, accurate_as={**accurate_as, **of_parts}, coarse=shown, elsewhere=sorted(elsewhere))


# The trials.


@dataclass(frozen=True)
class Trial:
    """One trial. ``run`` gets the adapter and the device; what it returns is kept, and what it raises."""

    kind: str
    name: str
    run: Callable[[Implementation, str], Any]


def trials(i: Implementation) -> list[Trial]:
    """The trials of an implementation's devices."""
    casting = i.autocast_dtypes if "autocast" in i.capabilities else ()
    return [
        *(Trial("dtypes", name, partial(_made, dtype=name)) for name in i.dtypes),
        *(Trial("capabilities", name, run) for name, run in _CAPABILITIES.items() if name in i.capabilities),
        *(Trial("autocast", name, partial(_cast, dtype=name)) for name in casting),
        *(Trial("accuracy", name, partial(coarseness, dtype=name)) for name in REAL if name in i.dtypes),
        *(Trial("elsewhere", use.text, partial(_elsewhere, use=use)) for use in USES if not use.needs),
    ]


def _dtype(i: Implementation, device: str) -> str:
    """A real dtype that the device takes."""
    for dtype in REAL:
        try:
            _made(i, device, dtype)
        except Exception:  # noqa: BLE001 - as the trial of the dtype says
            continue
        return dtype
    raise TypeError(f"{device} takes none of {', '.join(REAL)}")


def _made(i: Implementation, device: str, dtype: str) -> None:
    """Make a tensor and read it. What cannot be computed with it is for the tests to say, and no reason to ask less."""
    x = i.array(np.array([[1, 0], [1, 1]]), dtype, device)
    there = i.describe(x).dtype
    if there != dtype:
        raise TypeError(f"a tensor of {dtype} becomes one of {there}")
    i.numpy(x)


def _squares(i: Implementation, device: str) -> tuple[Callable[..., Any], Any]:
    return lambda x: x * x, i.array(np.array([1.0, 2.0]), _dtype(i, device), device)


def _jvp(i: Implementation, device: str) -> None:
    _, x = _squares(i, device)
    # Of some implementations only Functions have forward mode.
    f = i.function(i.build(FUNCTIONS["MyCube"]))
    i.numpy(i.jvp(f, (x,), (x,))[1][0])


def _vmap(i: Implementation, device: str) -> None:
    f, x = _squares(i, device)
    i.numpy(i.vmap(f, (0,))(x))


def _batched(i: Implementation, device: str) -> None:
    f, x = _squares(i, device)
    i.numpy(i.batched_vjp(f, (x,), (i.xp.stack([x, x], axis=0),), track=(True,))[0])


def _twice(i: Implementation, device: str) -> None:
    f, x = _squares(i, device)
    _, pullback = i.vjp(lambda x: i.vjp(f, (x,))[1]((x,), differentiable=True)[0], (x,))
    i.numpy(pullback((x,))[0])


def _backward(i: Implementation, device: str, make: Callable[[Callable[..., Any]], Any]) -> None:
    f, x = _squares(i, device)
    outputs, pullback = i.vjp(make(f), (x,))
    for result in (*outputs, *pullback((x,))):
        i.numpy(result)


def _saved(i: Implementation, device: str) -> None:
    with i.offload():
        _backward(i, device, lambda f: f)


def _cast(i: Implementation, device: str, dtype: str) -> None:
    x = i.array(np.eye(2), "float32", device)
    with i.autocast(device, dtype):
        found = i.describe(i.xp.matmul(x, x)).dtype
    if found != dtype:
        raise TypeError(f"under autocast in {dtype}, a product of matrices is {found}")


def _viewed(i: Implementation, device: str) -> None:
    _, x = _squares(i, device)
    view = x[1:]
    i.fill_(view, 3.0)
    if not i.shares_memory(x, view) or i.strides(view) != (1,) or i.numpy(x)[1] != 3.0:
        raise TypeError("a slice is no view")


def _sparse(i: Implementation, device: str) -> None:
    indices = i.array(np.array([[0, 1], [1, 0]]), "int64", device)
    _, values = _squares(i, device)
    i.numpy(i.xp.sparse_matmul(indices, values, (2, 2), i.xp.expand_dims(values, axis=1)))


def _numpy(i: Implementation, device: str) -> None:
    _, x = _squares(i, device)
    i.numpy(i.xp.from_numpy(i.xp.to_numpy(x), x))


_CAPABILITIES: dict[str, Callable[[Implementation, str], None]] = {
    "jvp": _jvp,
    "vmap": _vmap,
    "batched_cotangents": _batched,
    "double_backward": _twice,
    "checkpoint": lambda i, device: _backward(i, device, i.checkpoint),
    "compile": lambda i, device: _backward(i, device, i.compile),
    "saved_hooks": _saved,
    "views": _viewed,
    "sparse": _sparse,
    "numpy": _numpy,
}

# What a built-in operation may be off, in units of its dtype's rounding: on graphics processors it is a few.
_UNITS = 64
_COARSER = ("float32", "float16", "bfloat16")
_OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "exp(x)": lambda xp, x, _: xp.exp(x),
    "sqrt(x)": lambda xp, x, _: xp.sqrt(x),
    "tanh(x)": lambda xp, x, _: xp.tanh(x),
    "x / y": lambda _, x, y: x / y,
    "log(x)": lambda xp, x, _: xp.log(x),
    "x * y": lambda _, x, y: x * y,
    "x @ y of matrices": lambda xp, x, y: xp.reshape(x, (8, 8)) @ xp.reshape(y, (8, 8)),
    "sum(x)": lambda xp, x, _: xp.sum(x),
}


def coarseness(i: Implementation, device: str, dtype: str) -> tuple[str, str] | None:
    """The dtype that a device is only as accurate as, and an operation that shows it; None if it keeps the dtype's.

    A device that is not as accurate as any dtype has "" as the first.
    """
    x, y = (round_to(a, dtype) for a in (np.linspace(0.3, 3.1, 64), np.linspace(2.9, 0.7, 64)))
    given = [i.array(a, dtype, device) for a in (x, y)]
    worst, shown = 0.0, ""
    for text, operation in _OPERATIONS.items():
        try:
            result = operation(i.xp, *given)
        except AttributeError:
            # The suite asks no namespace for log.
            continue
        got, right = np.asarray(i.numpy(result)), np.asarray(operation(np, x, y))
        # Of sums, the error is that of the terms and not of their result; here all of them are positive.
        errors = np.nan_to_num(np.abs(got - right) / np.abs(right), nan=np.inf)
        place = np.unravel_index(np.argmax(errors), errors.shape)
        if errors[place] > worst:
            worst = float(errors[place])
            shown = f"{text} is {float(got[place])} instead of {float(right[place])}"
    if worst <= _UNITS * PRECISION[dtype].unit:
        return None
    fitting = [name for name in _COARSER if PRECISION[name].unit > PRECISION[dtype].unit]
    enough = [name for name in fitting if worst <= _UNITS * PRECISION[name].unit]
    return (enough[0] if enough else ""), shown


def _elsewhere(i: Implementation, device: str, use: Use) -> list[str]:
    """The operations that the device leaves to the CPU in a use."""
    kind, places = _dtype(i, device), (device, i.devices()[0])

    def on(place: str) -> frozenset[str]:
        given = [
            i.array(POINTS[name], kind if POINTS[name].dtype.kind == "f" else str(POINTS[name].dtype), place)
            for name in use.given
        ]
        return i.redispatched(lambda: use.apply(i.xp, *given))

    return sorted(on(places[0]) - on(places[1]))


def _main() -> None:
    given, device, done = sys.argv[1:]
    # The device is compared with the default one, whether that is to be checked or not.
    os.environ.pop(implementations.DEVICES, None)
    implementation = implementations.load(given)
    implementation.start_device(device)
    for trial in trials(implementation)[int(done) :]:
        about = {"kind": trial.kind, "name": trial.name}
        child.say({"begins": about})
        try:
            found = {"found": trial.run(implementation, device)}
        except Exception as raised:  # noqa: BLE001 - any exception is a fact about the device
            found = {"raised": one_line(raised)}
        child.say({"ends": {**about, **found}})
    child.say({"done": True})


if __name__ == "__main__":
    child.leaving(_main)
