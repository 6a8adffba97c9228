"""Every Function that the suite declares, documented and exhibited."""

from __future__ import annotations

import pytest

from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS

DECLARED = {**FUNCTIONS, **{name: exhibit.function for name, exhibit in EXHIBITS.items()}}

every = pytest.mark.parametrize("function", DECLARED.values(), ids=DECLARED)
