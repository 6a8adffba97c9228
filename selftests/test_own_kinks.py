"""Users' Functions at kinks, ties and zeros: what is wrong there is found, and every convention is accepted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.selftests import scripts
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.functions import function
from autograd_conformance.selftests.specimens.kinks import ONE, WRONG, abs_at, amax, of_sparse, split
from autograd_conformance.suites.declared import Checked, claims

TWIN = {
    "an entry of a sparse tensor at one": function(torch.sparse.mm, of_sparse),
    "no gradient at zero": function(lambda x: 3 * x, lambda g, *_: 3 * g),
    "every tie gets all": function(amax, split),
    "five at the kink of abs": abs_at(0.0),
}


def at_kinks(declaration, seed=0, *, profile="gate") -> Line:
    """The result of the test at kinks."""
    (line,) = lines_of(Checked(declaration, profile=profile, seed=seed, shrink=False), "VJP-FD/kinks")
    return line


@pytest.mark.parametrize("fault", TWIN)
def test_a_script_shows_it_and_accepts_any_convention(fault, tmp_path):
    wrong, arguments = WRONG[fault]
    with scripts.importable(Declaration(wrong, *arguments), tmp_path) as declaration:
        text = at_kinks(declaration)["failure"]["script"]
        assert scripts.status(text, DECLARED=declaration) == 1, text
        assert scripts.status(text, DECLARED=Declaration(TWIN[fault], *arguments)) == 0, text


def test_a_script_in_single_precision(tmp_path):
    wrong, arguments = WRONG["no gradient at zero"]
    with scripts.importable(Declaration(wrong, *arguments, dtypes="float32"), tmp_path) as declaration:
        text = at_kinks(declaration)["failure"]["script"]
        assert scripts.status(text, DECLARED=declaration) == 1, text
        right = Declaration(TWIN["no gradient at zero"], *arguments, dtypes="float32")
        assert scripts.status(text, DECLARED=right) == 0, text


def test_a_surrogate_is_not_asked():
    straight = function(torch.floor, lambda g, *_: g)
    checked = Checked(Declaration(straight, *ONE, surrogate=True), seed=0)
    claim = next(claim for claim, _ in claims().values() if claim.test == "VJP-FD/kinks")
    assert list(checked.subjects(claim)) == []


def scaled_in(dtype):
    """Eight times x in one precision alone, with the right gradient."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004 - the interface
            if x.dtype != dtype:
                raise TypeError(f"only {dtype}")
            return 8 * x

        @staticmethod
        def backward(ctx, g):  # noqa: ARG004 - the interface
            return 8 * g

    return Scaled


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_lower_precision_has_larger_steps_or_none(dtype):
    """The numbers of half precision are further apart than the points that are compared."""
    checked = Checked(Declaration(scaled_in(dtype), "float[n,m]"), profile="quick", seed=1)
    lines = list(checked.lines("VJP-FD"))
    held = ["pass"] if dtype is torch.float32 else []
    assert [line["outcome"] for line in lines if line.get("variant") == "kinks"] == held
    assert not any(line["outcome"] == "fail" for line in lines)
