"""What a planted fault is, and what the tests of a clause then raise, on any implementation."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from autograd_conformance.harness.outcomes import Broken, Record
from autograd_conformance.harness.testing import drawing
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.marks import ClauseClaim, claims_in
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import Function

# A context in which a fault is there, made when it is to be planted.
Plant = Callable[[], AbstractContextManager[Any]]
# What stands for a function, ``method(original, *args)``.
Method = Callable[..., Any]


def put(owner: Any, name: str, value: Any) -> Plant:
    """``owner.name`` is this value."""
    return lambda: patch.object(owner, name, value, create=True)


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Plant:
    """``owner.name`` is ``change(what it was)``."""
    return lambda: patch.object(owner, name, change(getattr(owner, name)))


def wrapped(owner: Any, name: str, method: Method) -> Plant:
    """``owner.name(*args)`` is ``method(original, *args)``."""
    return replaced(owner, name, lambda original: lambda *args, **options: method(original, *args, **options))


@contextmanager
def all_of(*plants: Plant) -> Iterator[None]:
    """These at once."""
    with ExitStack() as stack:
        for plant in plants:
            stack.enter_context(plant())
        yield


@dataclass(frozen=True)
class Case:
    """What the test of a property runs on."""

    function: Function
    implementation: Implementation
    device: str = "cpu"


@dataclass(frozen=True)
class Fault:
    """A deliberate bug that the tests of a clause, or of a property, must catch.

    Within ``install()`` the bug is there: in the running process, or in the `Case` that this gives, of which ``twin``
    is the right one. ``says`` lists words that the message must contain, ``neighbours`` are the other clauses of the
    group that the bug may break as well. ``words`` say what the bug is; where there are none the ``fault`` of the
    clause does. ``name`` and ``variant`` are those of a fault of a property.
    """

    id: str
    install: Plant
    says: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    words: str = ""
    name: str = ""
    variant: str = ""
    twin: Case | None = None
    raises: type[AssertionError] = Broken

    @property
    def wrong(self) -> Case:
        """What has the bug, where this is not the process."""
        with self.install() as case:
            return case  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return "-".join(filter(None, (self.id, self.variant, self.name or self.words.replace(" ", "_"))))


def fault(title: str, plant: Plant, *says: str, **more: Any) -> Fault:
    """A `Fault`; its title is ``CLAUSE: what the bug is`` or ``PROPERTY/variant Name: what the bug is``.

    ``more`` are its other fields.
    """
    which, _, words = title.partition(": ")
    about, _, variant = which.split(" ")[0].partition("/")
    return Fault(about, plant, says, **{"words": words, "name": name_in(title), "variant": variant, **more})


def name_in(title: str) -> str:
    """The name in the title of a fault of a property."""
    return title.partition(": ")[0].partition(" ")[2]


def checks_in(*suites: ModuleType) -> tuple[tuple[ClauseClaim, Any], ...]:
    """Every test of a clause in these packages, with its claim."""
    names = [f"{s.__name__}.{found.name}" for s in suites for found in pkgutil.iter_modules(s.__path__)]
    tests = (found for name in names for found in claims_in(import_module(name)))
    return tuple((claim, test) for claim, test in tests if isinstance(claim, ClauseClaim))


def run(claim: ClauseClaim, test: Any, implementation: Implementation, examples: float = 1.0) -> None:
    """Run a test as the plugin does. Raises Broken where the clause does not hold, Vacuous where nothing was seen."""
    devices = implementation.devices()[claim.accelerator :]
    if not devices:
        pytest.skip("skip: there is no accelerator on this machine")
    subject = ClauseSubject(implementation, claim.clause, devices[0], claim.variant, record=Record())
    drawing.prepare(test, subject.key["id"], 0, shrink=False, share=examples)
    test(subject)
    subject.record.verify_exercised()


def raised_by(*which: Any, by: Callable[..., Any] = run, **more: Any) -> BaseException | None:
    """What `run`, or another way to run a test, raises; of a group, which Hypothesis makes, the first."""
    try:
        by(*which, **more)
    except pytest.skip.Exception:
        return None
    except (Exception, Broken) as raised:  # noqa: BLE001 - the verdict of the caller
        while getattr(raised, "exceptions", None):
            raised = raised.exceptions[0]  # type: ignore[attr-defined]
        return raised
    return None
