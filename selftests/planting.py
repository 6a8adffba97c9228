"""What a planted fault is, and what the tests of a clause then raise, on any implementation."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from autograd_conformance.harness.checking import drawing
from autograd_conformance.harness.checking.clauses import ClauseSubject
from autograd_conformance.harness.checking.marks import ClauseClaim, claims_in
from autograd_conformance.harness.outcomes import Broken, Record
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import Function


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
    install: Callable[[], AbstractContextManager[Any]]
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


def fault(title: str, plant: Callable[[], AbstractContextManager[Any]], *says: str, **more: Any) -> Fault:
    """A `Fault`; its title is ``CLAUSE: what the bug is`` or ``PROPERTY/variant Name: what the bug is``."""
    which, _, words = title.partition(": ")
    about, _, variant = which.split(" ")[0].partition("/")
    return Fault(about, plant, says, words=words, name=name_in(title), variant=variant, **more)


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
