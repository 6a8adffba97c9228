"""Functions whose results are not unique are checked up to what is free in them. ``--seed N`` draws other examples."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.freedom import signs
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.verdicts import UNVERIFIED, verdict
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.checking import lines_of
from autograd_conformance.selftests.check.specimens import freedom as free
from autograd_conformance.suites.declared import Checked

TORCH = implementations.load("torch")


def test_second_derivatives_at_a_degenerate_spectrum_are_undecided():
    (line,) = Checked(free.degenerate, seed=0).lines("DBL-CORRECT")
    assert line["outcome"] == "vacuous"


def test_what_is_always_degenerate_is_not_verified():
    (line,) = lines_of(Checked(free.always_degenerate, profile="quick", seed=0, shrink=False), "VJP-FD")
    assert verdict(line).word == UNVERIFIED


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.complex128])
def test_what_is_free_has_one_form(dtype):
    generator = torch.Generator().manual_seed(0)
    u, vh = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in ((2, 5, 3), (2, 3, 4)))
    change = torch.tensor([1, -1, 1]).to(dtype)
    mapped = signs(-1, -2)
    here, there = mapped((u, vh), ()), mapped((u * change, vh * change[:, None]), ())
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
    assert not torch.allclose(mapped((u * change, vh), ())[1], here[1], rtol=1e-2)


def test_a_phase_and_its_conjugate_go_together():
    generator = torch.Generator().manual_seed(0)
    u, vh = (torch.randn(shape, generator=generator, dtype=torch.complex128) for shape in ((5, 3), (3, 4)))
    phases = torch.polar(torch.ones(3), torch.tensor([0.3, 1.0, 2.0])).to(u.dtype)
    mapped = signs(-1, -2)
    here, there = mapped((u, vh), ()), mapped((u * phases, vh * phases.conj()[:, None]), ())
    assert all(torch.allclose(a, b) for a, b in zip(here, there, strict=True))
    assert not torch.allclose(here[1], mapped((u * phases, vh * phases[:, None]), ())[1])


def test_what_is_no_canonical_form_is_said():
    with pytest.raises(UsageProblem, match=r"up_to='sign' is not callable; give canonical\(outputs, inputs\)"):
        Declaration(torch.linalg.eigh, "float[n,n] spd", up_to="sign")
    with pytest.raises(UsageProblem, match=r"signs\(-1,\) is about 1 outputs, but the Function returns 2"):
        discover(Declaration(torch.linalg.eigh, "float[n,n] spd", up_to=signs(-1)), TORCH)


declared = Declaration(free.Halved, "float[n,n] spd", up_to=free.EIGH)


def test_a_script_calls_the_declaration():
    source = declared.source()
    assert source.apply == "declared.call"
    assert "import declared" in source.lines
    matrix = torch.tensor([[2.0, 0.5], [0.5, 3.0]])
    here, there = declared.call(matrix), declared.call(matrix.double())
    assert torch.allclose(here[1].double(), there[1])
    local = Declaration(free.Halved, "float[n,n] spd", up_to=free.EIGH)
    assert "up_to=" in local.source()
