"""The properties of a user's Function as tests for the user's own pytest suite."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import chain
from typing import Any

import pytest

from autograd_conformance.harness.check.declaration.declaration import Declaration, Own
from autograd_conformance.harness.check.declaration.served import serving
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.explain.explaining import Runs
from autograd_conformance.harness.check.report.verdicts import BESIDE
from autograd_conformance.harness.check.session.declared import Declared
from autograd_conformance.harness.check.subject import OwnSubject
from autograd_conformance.harness.outcomes import Vacuous
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import results
from autograd_conformance.harness.running.selection import Selection
from autograd_conformance.harness.testing.drawing import prepare, without_local_constants
from autograd_conformance.harness.testing.marks import Claim, claims_in
from autograd_conformance.harness.testing.profiles import PROFILES, Profile, choose_seed
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.suites.functions import (
    test_batching,
    test_environment,
    test_fakes,
    test_forward,
    test_forward_mode,
    test_kinks,
    test_long,
    test_low_precision,
    test_matrices,
    test_precision,
    test_relations,
    test_second_order,
    test_small,
    test_state,
    test_sweeps,
    test_vjp_contract,
    test_vjp_state,
    test_vjp_values,
)  # fmt: skip

_MODULES = (
    test_batching, test_environment, test_fakes,
    test_forward, test_forward_mode, test_kinks, test_long, test_low_precision,
    test_matrices, test_precision, test_relations, test_second_order, test_small, test_state, test_sweeps,
    test_vjp_contract, test_vjp_state, test_vjp_values,
)  # fmt: skip


@cache
def claims() -> dict[str, tuple[Claim, Any]]:
    """The tests of users' Functions with their claims, by the name of the test.

    Properties with a rank come first, so that a run that stops at the first fault is short.
    """
    found: dict[str, tuple[Claim, Any]] = {}
    for claim, test in chain.from_iterable(map(claims_in, _MODULES)):
        assert isinstance(claim, Claim)
        suffix = f"_{claim.variant}" if claim.variant else "_in_place" if _found_twice(found, claim) else ""
        found[re.sub(r"\W", "_", claim.property_id) + suffix] = claim, test
    return dict(sorted(found.items(), key=lambda item: _place(item[1][0].property_id)))


def _place(property_id: str) -> tuple[int, int]:
    return PROPERTIES[property_id].rank or len(PROPERTIES), list(PROPERTIES).index(property_id)


def _found_twice(found: dict[str, tuple[Claim, Any]], claim: Claim) -> bool:
    """Whether another test of the same property, for other Functions, was already found."""
    return any(c.property_id == claim.property_id and not c.variant for c, _ in found.values())


class Checked:
    """The checks of a declaration. Discovery runs when it is first needed, so importing a test module calls nothing.

    Without ``shrink`` the first failing call is reported as it was drawn. Unless they ``explain``, nothing is said of
    the cause of a failure. The ``implementation`` is that of the declaration unless one is given.
    """

    def __init__(
        self, declaration: Declaration, *, profile: Profile | str = "gate", seed: int | None = None,
        shrink: bool = True, explain: bool = True, implementation: Implementation | None = None,
    ) -> None:  # fmt: skip
        self.declaration, self.seed, self.shrink, self.explain = declaration, seed, shrink, explain
        self._implementation = implementation
        self.profile = PROFILES[profile] if isinstance(profile, str) else profile

    @cached_property
    def selection(self) -> Selection:
        """The selection of a run of this Function only."""
        implementation = self._implementation or serving(self.declaration.implementation)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            facts = discover(self.declaration, implementation, errors=False)
        function = self.declaration.own(implementation, facts)
        seed = choose_seed(self.profile, self.seed)
        catalog = Declared((function.name,))
        return Selection(implementation, (function,), tuple(PROPERTIES), (), self.profile, seed, catalog=catalog)

    @property
    def function(self) -> Own:
        """The Function with its facts."""
        (function,) = self.selection.functions
        assert isinstance(function, Own)
        return function

    def subjects(self, claim: Claim) -> Iterator[OwnSubject]:
        """The subjects of a test: the Function on each device."""
        for subject in self.selection.subjects(claim):
            assert isinstance(subject, OwnSubject)
            yield subject

    def run(self, claim: Claim, test: Any, subject: OwnSubject) -> None:
        """Run one test. Raises its failure, or pytest's Skipped if the test does not apply."""
        reason = self.selection.reason_against(claim, subject)
        if reason is not None:
            pytest.skip(str(reason))
        subject.implementation.start_device(subject.device)
        for this in (*self.selection.tries(subject.key["id"]), *self.selection.more_tries()):
            if not subject.record.examples or subject.record.worth_more:
                self._run(test, subject, this.drawn.examples)
        subject.record.verify_exercised()

    def _run(self, test: Any, subject: OwnSubject, examples: int) -> None:
        def attempt(shrink: bool) -> None:
            seed = self.selection.seed
            prepare(test, subject.key["id"], seed, examples=examples, shrink=shrink, share=subject.share)
            test(subject=subject)

        with without_local_constants(), warnings.catch_warnings():
            # No property is about warnings of the framework, or of NumPy at extreme values.
            warnings.simplefilter("ignore")
            if not self.explain:
                Runs(subject, test, attempt).briefly()
            elif self.shrink:
                subject.examine(test, attempt)
            else:
                Runs(subject, test, attempt).first()

    def lines(self, *properties: str) -> Iterator[ndjson.Line]:
        """The result lines of the tests that apply, of these properties or of all."""
        for claim, test in claims().values():
            if not properties or claim.property_id in properties:
                for subject in self.subjects(claim):
                    line = self.line(claim, test, subject)
                    if line is not None:
                        yield line

    def line(self, claim: Claim, test: Any, subject: OwnSubject) -> ndjson.Line | None:
        """The result line of one test; None if it does not apply."""
        try:
            self.run(claim, test, subject)
        except pytest.skip.Exception:
            return None
        except Exception as raised:  # noqa: BLE001 - the failure of the test
            return results.result_line(subject, raised)
        return results.result_line(subject, None)


def checks(declaration: Declaration, *, profile: str = "gate", seed: int | None = None) -> type:
    """A class with one test for each property, for pytest to collect.

    Args:
        declaration: The declared Function.
        profile: How thorough the tests are: `"quick"`, `"gate"` or `"nightly"`.
        seed: The seed of the examples. `"quick"` and `"nightly"` draw a new one each time by default.

    Raises:
        UsageProblem: If there is no such profile.
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


def _asked(checked: Checked, claim: Claim, test: Any, subject: OwnSubject) -> None:
    """Run one test, which is skipped if it compared nothing and need not."""
    __tracebackhide__ = True
    try:
        checked.run(claim, test, subject)
    except Vacuous as nothing:
        if subject.variant not in BESIDE:
            raise
        pytest.skip(str(nothing))


def _method(checked: Checked, claim: Claim, test: Any) -> Any:
    def method(_: Any) -> None:
        __tracebackhide__ = True
        subjects = list(checked.subjects(claim))
        if not subjects:
            pytest.skip("this property does not apply to the Function")
        for subject in subjects:
            _asked(checked, claim, test, subject)
        if all(subject.record.refused_throughout for subject in subjects):
            pytest.skip(f"refused in every example: {subjects[0].record.excuse}")

    method.__doc__ = PROPERTIES[claim.property_id].sentence
    return method
