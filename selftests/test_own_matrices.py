"""Derivatives at matrices with equal eigenvalues: NaN is a fault where the derivative exists, and nothing else is."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.matrices import InfiniteSquares, Squares, Undefined, symmetrically
from autograd_conformance.suites.declared import Checked


@pytest.mark.parametrize(
    ("declaration", "got", "hint"),
    [
        (Declaration(symmetrically(Undefined), "float[n,n] symmetric", once=True), "nan", "difference of eigenvalues"),
        (Declaration(Squares, "float[n,n]"), "nan", "division by 0"),
        (Declaration(symmetrically(InfiniteSquares), "float[n,n] symmetric"), "inf", "division by 0"),
    ],
    ids=["eigenvalues", "norm", "infinite"],
)
def test_a_finding_says_what_was_got_and_how_well_the_slope_is_known(declaration, got, hint):
    (line,) = lines_of(Checked(declaration, seed=0), "VJP-FD/matrices")
    failure = line["failure"]
    assert failure["got"] == got
    assert re.fullmatch(r"a number within \S{1,6} of -?\S{1,8}", failure["expected"])
    assert hint in failure["hint"]
