"""The Functions of a package, and what their code suggests; forward is called to see which suggestion it takes."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, tee
from types import ModuleType
from typing import Any

from autograd_conformance import implementations
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.loading import imported
from autograd_conformance.harness.drafting import signatures
from autograd_conformance.harness.drafting.drafts import Draft
from autograd_conformance.harness.drafting.observed import Observed
from autograd_conformance.harness.drafting.trying import best
from autograd_conformance.harness.drafting.uses import once
from autograd_conformance.harness.drafting.writing import Drafted
from autograd_conformance.harness.outcomes import UsageProblem, one_line
from autograd_conformance.harness.processes import child
from autograd_conformance.implementations.classes import derives
from autograd_conformance.implementations.protocol import Implementation, Unavailable

_NOWHERE = (
    "backward raised in each of the calls that were tried: it is wrong, or the arguments are others than its code "
    "suggests; one raised"
)
# Seconds for the suggestions of one Function, and for all of them before each gets less.
_SECONDS, _ALTOGETHER, _LESS = 8.0, 80.0, 2.0
# The most suggestions that are tried of one: on an idle machine this ends it, and not the time.
_MOST = 400


@dataclass
class Scanned:
    """The drafts of a package's Functions, and by name why modules of it cannot be imported.

    ``missing`` has the modules that need a package which is not installed, by the package.
    """

    found: list[Drafted] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)


def scanned(
    place: str, implementation: str, *, seconds: float, called: Callable[[str], None] = lambda _: None
) -> Scanned:
    """What a package or module has. Raises UsageProblem if it cannot be imported.

    ``called`` gets the name of each Function before it is tried.
    """
    results: dict[str, list[Drafted]] = {}
    unread: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    while True:
        last: Observed | None = None
        how = ""
        work = place, implementation, sorted(results)
        for message in child.messages(_scan, *work, fork=child.forks(implementation), seconds=seconds):
            if isinstance(message, child.Ended):
                how = message.how
            elif "problem" in message:
                raise UsageProblem(message["problem"])
            elif "unread" in message:
                unread, missing = message["unread"], message["missing"]
            elif "begins" in message:
                last = message["begins"]
                called(message["begins"].name)
            else:
                results.setdefault(last.name if last else "", []).append(message["found"])
        if not how:
            return Scanned([each for found in results.values() for each in found], unread, missing)
        if last is None:
            raise UsageProblem(f"importing {place} {how}")
        results.setdefault(last.name, []).append(Drafted(last, Draft(()), reason=f"a call that was tried {how}"))


def _scan(send: Callable[[child.Message], None], place: str, implementation: str, known: Collection[str]) -> None:
    """Send what is found; runs in a process of its own."""
    try:
        loaded = implementations.load(implementation)
        loaded.limit_threads()
        module = imported(place)
    except (UsageProblem, Unavailable) as problem:
        send({"problem": str(problem)})
        return
    modules, unread, missing = _modules(module)
    send({"unread": unread, "missing": missing})
    until = time.monotonic() + _ALTOGETHER
    for about, function, signed in _functions(modules, module.__name__, loaded):
        if about.name not in known:
            seconds = _SECONDS if time.monotonic() < until else _LESS
            send({"begins": about})
            for given in signatures.flags(signed):
                send({"found": _drafted(about, function, signed, given, loaded, seconds)})


def _modules(module: ModuleType) -> tuple[list[ModuleType], dict[str, str], dict[str, list[str]]]:
    """The module with those inside it; why others cannot be imported; and those that need what is not installed."""
    found, unread = [module], dict[str, str]()
    missing: dict[str, list[str]] = {}
    for each in found:
        # Modules that are found are looked into as well.
        for inner in pkgutil.iter_modules(getattr(each, "__path__", []), f"{each.__name__}."):
            if inner.name.rpartition(".")[2] == "__main__":
                continue
            try:
                found.append(importlib.import_module(inner.name))
            except BaseException as raised:  # noqa: BLE001 - a test module may skip itself, or leave
                absent = str(raised.name).partition(".")[0] if isinstance(raised, ModuleNotFoundError) else ""
                if absent and absent != module.__name__.partition(".")[0]:
                    missing.setdefault(absent, []).append(inner.name)
                else:
                    unread[inner.name] = one_line(raised)
    return found, unread, missing


def _functions(
    modules: list[ModuleType], package: str, implementation: Implementation
) -> Iterator[tuple[Observed, Any, Any]]:
    """The Function classes that the modules define, and the custom operators; each with what has the signature."""
    base = implementation.ag.Function
    seen: set[Any] = set()
    for module in modules:
        for value in list(vars(module).values()):
            mine = derives(value, base) and value.__module__ == module.__name__
            if mine and value not in seen and value.forward is not base.forward:
                seen.add(value)
                yield _about(value, module), value, value
    for name, (operator, function) in implementation.operators_of(package).items():
        about = _about(function, sys.modules[function.__module__])
        yield replace(about, name=name, operator=name), operator, function


def _about(value: Any, module: ModuleType) -> Observed:
    name, file = value.__qualname__, getattr(module, "__file__", None) or ""
    return Observed(f"{module.__name__}:{name}", "", module.__name__, name, file, False, ())


def _drafted(
    about: Observed, function: Any, signed: Any, given: Mapping[str, str], implementation: Implementation,
    seconds: float,
) -> Drafted:  # fmt: skip
    try:
        suggested, again = tee(signatures.drafts(signed, given))
        made = (partial(_declared, about, function, draft) for draft in islice(suggested, _MOST))
        number, fit = best(made, implementation, seconds=seconds)
    except ValueError as problem:
        return Drafted(about, Draft(()), reason=str(problem))
    chosen = next(draft for n, draft in enumerate(again) if n == number)
    if not fit.whole:
        taken = f"at most {fit.taken} of {fit.tried}" if fit.taken else "none"
        return Drafted(about, chosen, reason=f"forward took {taken} of the calls that were tried; one raised {fit.why}")
    if not fit.returned and fit.raised:
        return Drafted(about, chosen, reason=f"{_NOWHERE} {fit.raised}")
    parts = tuple(part.without_gradient() if n in fit.constant else part for n, part in enumerate(chosen.parts))
    return Drafted(
        about, replace(chosen, parts=parts, surrogate=fit.surrogate, stochastic=fit.stochastic, once=once(function))
    )


def _declared(about: Observed, function: Any, draft: Draft) -> Declaration:
    return Declaration(function, *(part.given for part in draft.parts), inplace=draft.inplace, where=about.name)
