"""The catalog of a check: the Functions that are declared, and the tests that each gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograd_conformance.harness.check.declaration.declaration import Own
from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.subject import OwnSubject
from autograd_conformance.harness.outcomes import NotRun
from autograd_conformance.harness.testing.marks import Claim
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import Function


class Declared:
    """The catalog of users' Functions."""

    documented = False
    hidden: tuple[str, ...] = ()

    def __init__(self, names: tuple[str, ...], plan: Plan | None = None, *, kept: bool = False) -> None:
        self.names, self._plan, self.kept = names, plan, kept

    def functions(self, implementation: Implementation) -> Mapping[str, Function]:
        return {} if self._plan is None else self._plan.functions(implementation)

    def subject(self, implementation: Implementation, function: Function, device: str, **of_test: Any) -> Subject:
        assert isinstance(function, Own)
        return OwnSubject(function.on or implementation, function, device, **of_test)

    def wants(self, claim: Claim, function: Function) -> bool:
        assert isinstance(function, Own)
        return function.wants(claim)

    def reason_against(self, claim: Claim, function: Function) -> NotRun | None:
        assert isinstance(function, Own)
        if claim.looks_inside and not function.sees_inside:
            reason = f"{function.name} is not a Function class, so its forward and backward cannot be observed"
            return NotRun("skip", reason)
        return None
