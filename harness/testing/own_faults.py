"""Exceptions of the suite's own code, where it looks into what a user's code did and goes on whatever that raises.

They are named beside the results: nothing that was known is lost for them, and no verdict changes.
"""

from __future__ import annotations

import traceback

from hypothesis.errors import HypothesisException
from numpy.linalg import LinAlgError

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.outcomes import Broken, Declared, UsageProblem, Vacuous, one_line
from autograd_conformance.harness.testing.examined import raised_by_suite

# What the suite raises on purpose, or what numbers of a user's Function may cause.
_MEANT = (ArithmeticError, LinAlgError, HypothesisException, UsageProblem, Vacuous, Broken, Declared)

_NOTICED: dict[str, None] = {}
# All that this process has noticed, for tests of the suite.
ALL: list[str] = []


def noticed(raised: BaseException) -> None:
    """Note an exception that is swallowed, if neither the user's code nor the framework raised it."""
    if isinstance(raised, Exception) and not isinstance(raised, _MEANT) and raised_by_suite(raised):
        last = traceback.extract_tb(raised.__traceback__)[-1]
        place = f"{last.filename.removeprefix(str(PACKAGE))[1:]}:{last.lineno} in {last.name}"
        ALL.append(f"{one_line(raised)} ({place})")
        _NOTICED[ALL[-1]] = None


def taken() -> list[str]:
    """What was noticed since the last time, each once."""
    found = list(_NOTICED)
    _NOTICED.clear()
    return found
