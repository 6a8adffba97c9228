"""A listed deviation is known while it fails as listed, fixed once it passes, and hides nothing else."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.outcomes import Broken, Finding
from autograd_conformance.harness.report import result_line
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions import FUNCTIONS

LISTED = "requires_grad without grad mode"


@pytest.mark.parametrize(
    ("function", "what", "outcome"),
    [
        ("Select", LISTED, "known"),
        ("Select", None, "fixed"),
        ("Select", "requires_grad of the outputs", "fail"),
        ("Exp", LISTED, "fail"),
        ("Exp", None, "pass"),
    ],
)
def test_only_the_listed_finding_is_known(function: str, what: str | None, outcome: str) -> None:
    subject = Subject(TorchImplementation(), FUNCTIONS[function], "cpu", "FWD-GRADFLAG")
    error = what and Broken("FWD-GRADFLAG", "", "", Finding(what, "True", "False", ""))
    assert result_line(subject, error or None)["outcome"] == outcome
