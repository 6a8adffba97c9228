"""Users' Functions get tensors that are longer than a block of a kernel: what is wrong there alone is found."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.bounds import sweeping
from autograd_conformance.harness.check.discovery import long_tensors
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.discovery.long_tensors import LENGTHS
from autograd_conformance.harness.check.refusals import declined
from autograd_conformance.harness.check.report import grouping
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.checking import lines_of
from autograd_conformance.selftests.check.specimens.functions import function
from autograd_conformance.selftests.check.specimens.lengths import MATRIX, WRONG, blocked
from autograd_conformance.selftests.check.specimens.right_with import scan
from autograd_conformance.selftests.support import scripts
from autograd_conformance.suites.declared import Checked

TORCH = implementations.load("torch")


def _scan_backwards(g, *_):
    found, carry = [], torch.zeros_like(g[0])
    for row in reversed(g):
        carry = row + 0.5 * carry
        found.append(carry)
    return torch.stack(found[::-1])


# A recurrence, element by element, which is slow for long tensors.
SCAN = function(lambda x: scan(x, 0.5, torch.zeros_like(x[0])), _scan_backwards, "Scan")


def test_the_script_shows_it(tmp_path):
    declaration = Declaration(WRONG["the last block of 64 is forgotten"], *MATRIX)
    with scripts.importable(declaration, tmp_path) as found:
        (line,) = lines_of(Checked(found, profile="quick", seed=0), "VJP-FD/long")
        assert "(2, 65)" in line["failure"]["call"]
        assert "65" in line["failure"]["script"]


@pytest.mark.parametrize("f", [blocked(64), blocked(128, 0), SCAN, torch.cumsum, torch.softmax])
def test_right_functions_hold(f):
    more = ["0"] if f in (torch.cumsum, torch.softmax) else []
    checked = Checked(Declaration(f, *MATRIX, *more), profile="quick", seed=0)
    assert [line["outcome"] for line in lines_of(checked, "VJP-FD", "VJP-FD/long")] == ["pass", "pass"]


@pytest.mark.parametrize("word", ["float[4096,4096]", "float[n-100]"])
def test_lengths_that_admit_no_call_are_refused_with_a_sentence(word):
    said = "no call is possible: each that was tried has a length below 0, or a tensor of more than 1048576 elements"
    with pytest.raises(UsageProblem, match=said):
        discover(Declaration(torch.exp, word), TORCH)


def test_a_long_row_is_not_swept_with_every_number():
    facts = discover(Declaration(torch.exp, "float[n,768]"), TORCH)
    assert (facts.sweeps, facts.maps_entries) == ((), False)
    assert discover(Declaration(torch.exp, "float[n,3]"), TORCH).maps_entries


@pytest.mark.parametrize(("factor", "outcome"), [(1, "pass"), (2, "fail")])
def test_lengths_that_are_fixed_may_all_be_large(factor, outcome):
    product = function(lambda x, w: x @ w, lambda g, _, x, w: (g @ w.mT, factor * x.mT @ g))
    checked = Checked(Declaration(product, "float[n,32]", "float[32,32]"), profile="quick", seed=0, shrink=False)
    assert [line["outcome"] for line in lines_of(checked, "VJP-FD")] == [outcome]


def test_each_free_dimension_is_long():
    facts = discover(Declaration(lambda x, w: x @ w, "float[n,k]", "float[k,m]"), TORCH)
    assert set(facts.long_shapes) >= {
        s for n in LENGTHS for s in (((n, 2), (2, 2)), ((2, n), (n, 2)), ((2, 2), (2, n)))
    }


def test_an_index_range_does_not_limit_a_dimension():
    facts = discover(Declaration(lambda x, i: x[i], "float[n]", "int[k](0..n-1)"), TORCH)
    assert ((1025,), (2,)) in facts.long_shapes


def test_declared_sizes_are_kept():
    facts = discover(Declaration(torch.sum, *MATRIX, sizes={"n": (2, 3)}), TORCH)
    assert facts.long_shapes == tuple(((2, n),) for n in LENGTHS)
    assert discover(Declaration(torch.sum, *MATRIX, sizes={"n": (2,), "m": (2,)}), TORCH).long_shapes == ()


def test_lengths_that_take_long_are_left_out():
    def slow(x):
        until = time.process_time() + (0.03 if max(x.shape) > 200 else 0)
        while time.process_time() < until:
            pass
        return x * x

    facts = discover(Declaration(slow, *MATRIX), TORCH)
    assert {max(shape) for (shape,) in facts.long_shapes} == {65, 130}
    assert "lengths tried: up to 130 (longer ones take too long)" in in_words(facts)


@pytest.mark.parametrize(
    ("module", "seconds", "said"),
    [
        (long_tensors, -1.0, "lengths tried: up to 17 (longer ones take too long)"),
        (sweeping, 0.0, "numbers tried in half precision: some of each kind (a call of all numbers takes too long)"),
        (declined, -1.0, "calls tried for what forward refuses: the first 0 (all of them take too long)"),
    ],
    ids=lambda value: getattr(value, "__name__", "").rpartition(".")[2],
)
def test_what_was_cut_short_is_said(module, seconds, said, monkeypatch):
    declaration = Declaration(torch.exp, "float[n]")
    assert discover(declaration, TORCH, errors=False).cut == ()
    monkeypatch.setattr(module, "_SECONDS", seconds)
    facts = discover(declaration, TORCH, errors=False)
    assert facts.cut == (said,)
    assert said in in_words(facts)


def test_lengths_that_forward_refuses_are_left_out():
    def limited(x):
        if x.shape[0] > 100:
            raise ValueError("too long")
        return x * x

    facts = discover(Declaration(limited, *MATRIX), TORCH)
    assert {shape[0] for (shape,) in facts.long_shapes} == {2, 65}
    assert {shape[1] for (shape,) in facts.long_shapes} == {2, *LENGTHS}


def _wrong_beyond_64(g, _, x):
    s = x.sigmoid()
    return g * (s + s * (1 - s) * (1 if x.numel() > 64 else x))


def test_long_tensors_that_the_plain_test_draws_are_one_fault_with_those_of_the_test_for_long_ones():
    swish = function(lambda x: x * x.sigmoid(), _wrong_beyond_64, "LongSwish")
    checked = Checked(Declaration(swish, "float[...]"), seed=1)
    plain, long, second = (next(lines_of(checked, test)) for test in ("VJP-FD", "VJP-FD/long", "DBL-CORRECT"))
    assert (second["outcome"], second["failure"]["follows"]) == ("fail", "VJP-FD")
    assert plain["failure"]["likely"].startswith("short tensors are right, and this length is not")
    finds = grouping.Finds()
    assert [finds.rows(line) for line in (plain, long)] == [["found: LongSwish: WRONG: VJP-FD"], []]
    assert grouping.headlines([(line, verdict(line)) for line in (plain, long)]) == [plain]
