"""How the tests of gradcheck and gradgradcheck assert that a check fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.autograd.gradcheck import GradcheckError

from autograd_conformance.harness.testing.clauses import ClauseSubject, Fact

# By how much a slope of one may be wrong: the share, the options of the check, and whether it passes.
TOLERANCES: tuple[tuple[float, dict[str, float], bool], ...] = (
    (5e-4, {}, True),
    (5e-3, {}, False),
    (5e-3, {"atol": 1e-2}, True),
    (5e-4, {"atol": 1e-5, "rtol": 0.0}, False),
    (5e-3, {"rtol": 1e-2}, True),
    (5e-4, {"atol": 0.0, "rtol": 1e-4}, False),
)


def assert_check_fails(
    subject: ClauseSubject, what: str, check: Callable[..., bool], naming: Sequence[Fact] = (), **options: Any
) -> None:
    """``check`` (gradcheck or gradgradcheck) raises GradcheckError, and with raise_exception=False returns False."""
    subject.assert_raises(GradcheckError, lambda: check(**options), what, naming=naming)
    got = subject.assert_accepted(lambda: check(raise_exception=False, **options), f"{what} with raise_exception=False")
    subject.assert_equal(f"{what} with raise_exception=False", got=got, expected=False)
