"""How the tests of gradcheck and gradgradcheck assert that a check fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.autograd.gradcheck import GradcheckError

from autograd_conformance.harness.testing.clauses import ClauseSubject, Fact


def assert_check_fails(
    subject: ClauseSubject, what: str, check: Callable[..., bool], naming: Sequence[Fact] = (), **options: Any
) -> None:
    """``check`` (gradcheck or gradgradcheck) raises GradcheckError, and with raise_exception=False returns False."""
    subject.assert_raises(GradcheckError, lambda: check(**options), what, naming=naming)
    got = subject.assert_accepted(lambda: check(raise_exception=False, **options), f"{what} with raise_exception=False")
    subject.assert_equal(f"{what} with raise_exception=False", got=got, expected=False)
