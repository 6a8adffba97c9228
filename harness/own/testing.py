"""Properties of a user's Function as tests of the user's own pytest suite."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import pytest

from autograd_conformance import implementations
from autograd_conformance.harness import report
from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.marks import Claim
from autograd_conformance.harness.own.declaration import Declaration
from autograd_conformance.harness.own.discovery import discover
from autograd_conformance.harness.own.subject import OwnSubject
from autograd_conformance.harness.profiles import PROFILES, choose_seed, prepare, without_local_constants
from autograd_conformance.harness.selection import Selection
from autograd_conformance.reference.properties import PROPERTIES

# What finds most for what it costs. The others follow in the order of the catalogue.
_SOONEST = (
    "VJP-FD", "MEM-FREE", "VJP-PURE", "FWD-PURE", "FWD-DTYPE", "VJP-UNUSED", "VJP-INPLACE-SAFE", "VJP-FINITE",
    "VJP-SAME-TENSOR", "JVP-REF", "DBL-CORRECT", "VJP-REPEAT", "VJP-COTANGENT-LAYOUT", "VJP-REF", "FWD-VALUE",
)  # fmt: skip
_ORDER = (*_SOONEST, *(name for name in PROPERTIES if name not in _SOONEST))


@cache
def claims() -> dict[str, tuple[Claim, Any]]:
    """The properties that are checked of users' Functions, by the name of the test: what is claimed, and the test.

    Those come first that find most for what they cost, so that a run that stops at the first fault is short.
    """
    found: dict[str, tuple[Claim, Any]] = {}
    for path in sorted((SUITES / "functions").glob("test_*.py")):
        with warnings.catch_warnings():
            # In a user's suite nobody has registered the mark.
            warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
            module = importlib.import_module(f"autograd_conformance.suites.functions.{path.stem}")
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "conformance":
                    claim = mark.args[0]
                    suffix = f"_{claim.variant}" if claim.variant else "_in_place" if _found_twice(found, claim) else ""
                    found[re.sub(r"\W", "_", claim.property_id) + suffix] = claim, test
    return dict(sorted(found.items(), key=lambda item: _ORDER.index(item[1][0].property_id)))


def _found_twice(found: dict[str, tuple[Claim, Any]], claim: Claim) -> bool:
    """Whether another test of the property, of other Functions, is known already."""
    return any(c.property_id == claim.property_id and not c.variant for c, _ in found.values())


class Checked:
    """A declaration made ready when it is first asked for, so that importing a test module calls nothing.

    Without ``shrink`` the first call that shows a fault is left as it was drawn.
    """

    def __init__(
        self, declaration: Declaration, *, profile: str = "gate", seed: int | None = None, shrink: bool = True
    ) -> None:
        self.declaration, self.profile, self.seed, self.shrink = declaration, PROFILES[profile], seed, shrink

    @cached_property
    def selection(self) -> Selection:
        """A run of this Function alone."""
        implementation = implementations.load(self.declaration.implementation)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            facts = discover(self.declaration, implementation)
        function = self.declaration.own(implementation, facts)
        seed = choose_seed(self.profile, self.seed)
        return Selection(implementation, (function,), tuple(PROPERTIES), (), self.profile, seed)

    def subjects(self, claim: Claim) -> Iterator[OwnSubject]:
        """What a test is run on: the Function on each device."""
        for subject in self.selection.subjects(claim):
            assert isinstance(subject, OwnSubject)
            yield subject

    def run(self, claim: Claim, test: Any, subject: OwnSubject) -> None:
        """Run one test; raises what it finds, and pytest's Skipped for what does not apply."""
        reason = self.selection.reason_against(claim, subject)
        if reason is not None:
            pytest.skip(reason)
        examples, seed = self.profile.examples, self.selection.seed
        prepare(test, subject.key["id"], seed, examples=examples, shrink=self.shrink, share=subject.share)
        subject.implementation.start_device(subject.device)
        with without_local_constants(), warnings.catch_warnings():
            # A warning of the framework, or of NumPy at extreme values, is nothing that a property speaks of.
            warnings.simplefilter("ignore")
            test(subject=subject)
        subject.record.verify_exercised()

    def lines(self, *properties: str) -> Iterator[report.Line]:
        """The result lines of what applies, of these properties or of all."""
        for claim, test in claims().values():
            if not properties or claim.property_id in properties:
                for subject in self.subjects(claim):
                    line = self._line(claim, test, subject)
                    if line is not None:
                        yield line

    def _line(self, claim: Claim, test: Any, subject: OwnSubject) -> report.Line | None:
        try:
            self.run(claim, test, subject)
        except pytest.skip.Exception:
            return None
        except Exception as raised:  # noqa: BLE001 - what a check finds
            return report.result_line(subject, raised)
        return report.result_line(subject, None)


def class_of_tests(declaration: Declaration, *, profile: str = "gate", seed: int | None = None) -> type:
    """A class with a test for each property, for pytest to collect.

    ``profile`` is one of quick, gate and nightly; random ones take a ``seed`` to be repeated.
    """
    if profile not in PROFILES or profile == "replay":
        raise declaration.problem(f"unknown profile {profile!r}; choose from: quick, gate, nightly")
    checked = Checked(declaration, profile=profile, seed=seed)
    methods = {
        f"test_{name}": _method(checked, claim, test)
        for name, (claim, test) in claims().items()
        if declaration.wants(claim)
    }
    return type(f"Test{declaration.name}", (), {"__doc__": f"The properties of {declaration.name}.", **methods})


def _method(checked: Checked, claim: Claim, test: Any) -> Any:
    def method(_: Any) -> None:
        __tracebackhide__ = True
        subjects = list(checked.subjects(claim))
        if not subjects:
            pytest.skip("does not apply to this Function")
        for subject in subjects:
            checked.run(claim, test, subject)
        if all(subject.record.refused_throughout for subject in subjects):
            pytest.skip(f"{report.REFUSED}: {subjects[0].record.excuse}")

    method.__doc__ = PROPERTIES[claim.property_id].sentence
    return method
