"""Users' Functions get tensors that are longer than a block of a kernel: what is wrong there alone is found."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.bounds import sweeping
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.refusals import declined, long_tensors
from autograd_conformance.harness.check.refusals.long_tensors import LENGTHS
from autograd_conformance.harness.check.report import grouping
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.selftests import scripts
from autograd_conformance.selftests.checking import accuses, faults_in, lines_of
from autograd_conformance.suites.declared import Checked

TORCH = implementations.load("torch")
MATRIX = ("float[n,m]",)


def blocked(block, along=-1, *, forget=False, shift=False, limit=None):
    """The sum of squares along a dimension, whose backward works in blocks; it may be wrong in the last one."""

    class Blocked(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * x).sum(along)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            x, gx = x.movedim(along, -1), torch.zeros_like(x.movedim(along, -1))
            length = x.shape[-1]
            for start in range(0, length, block):
                end = min(start + block, length)
                partial = end - start < block and start > 0
                if (forget and partial) or (limit is not None and start >= limit):
                    continue
                taken = slice(length - block, length) if shift and partial else slice(start, end)
                gx[..., start:end] = 2 * x[..., taken][..., : end - start]
            return (gx * g.unsqueeze(-1)).movedim(-1, along)

    return Blocked


class Scan(Function):
    """A recurrence, element by element. Right, and slow for long tensors."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ys, y = [], torch.zeros_like(x[0])
        for row in x:
            y = 0.5 * y + row
            ys.append(y)
        return torch.stack(ys)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        found, carry = [], torch.zeros_like(x[0])
        for row in reversed(range(len(x))):
            carry = g[row] + 0.5 * carry
            found.append(carry)
        return torch.stack(found[::-1])


WRONG = {
    "the last block of 64 is forgotten": blocked(64, forget=True),
    "the last block of 128 is read elsewhere": blocked(128, shift=True),
    "the last block of 256 is forgotten, along the first dimension": blocked(256, 0, forget=True),
    "nothing beyond 1024": blocked(32, limit=1024),
    "nothing beyond 50": blocked(50, limit=50),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_long_tensors_alone_is_found(name):
    ((line, verdict),) = accuses(Declaration(WRONG[name], *MATRIX), "VJP-FD", "VJP-REF", "VJP-CHAIN")
    assert (line["property"], line["variant"], verdict.word) == ("VJP-FD", "long", "wrong")
    assert verdict.guess.startswith("short tensors are right, and this length is not")
    assert "the worst entry is argument 0" in line["failure"]["hint"]


class OfEvenLengths(torch.autograd.Function):
    """A sum from each entry on. Backward is wrong in the last dimension if that is even and longer than 2."""

    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        return x.flip(dim).cumsum(dim).flip(dim)

    @staticmethod
    def backward(ctx, g):
        wrong = ctx.dim == -1 and g.shape[-1] % 2 == 0 and g.shape[-1] > 2
        return g.cumsum(ctx.dim) * (1.01 if wrong else 1.0), None


class NearZero(torch.autograd.Function):
    """A square. Backward is wrong near 0.3, which few entries are."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where((x - 0.3).abs() < 1e-2, 3 * x, 2 * x)


@pytest.mark.parametrize(
    "declaration", [Declaration(OfEvenLengths, "float[n,m]", "-1"), Declaration(NearZero, "float[n]")]
)
def test_what_short_tensors_show_as_well_is_not_blamed_on_the_length(declaration):
    faults = list(faults_in(lines_of(Checked(declaration, seed=0), "VJP-FD", "VJP-FD/long")))
    assert faults
    for line, found in faults:
        assert "short tensors are right" not in found.guess
        assert line.get("variant") != "long" or found.follows == "VJP-FD"


def test_the_script_shows_it(tmp_path):
    declaration = Declaration(WRONG["the last block of 64 is forgotten"], *MATRIX)
    with scripts.importable(declaration, tmp_path) as found:
        (line,) = lines_of(Checked(found, profile="quick", seed=0), "VJP-FD/long")
        assert "(2, 65)" in line["failure"]["call"]
        assert "65" in line["failure"]["script"]


def test_a_wrong_formula_is_one_fault():
    class Halved(blocked(64)):
        @staticmethod
        def backward(ctx, g):
            return 0.5 * g.unsqueeze(-1) * ctx.saved_tensors[0]

    found = {line.get("variant", ""): v.follows for line, v in accuses(Declaration(Halved, *MATRIX), "VJP-FD")}
    assert found[""] == ""
    assert found["long"] == "VJP-FD"


@pytest.mark.parametrize("function", [blocked(64), blocked(128, 0), Scan, torch.cumsum, torch.softmax])
def test_right_functions_hold(function):
    more = ["0"] if function in (torch.cumsum, torch.softmax) else []
    checked = Checked(Declaration(function, *MATRIX, *more), profile="quick", seed=0)
    assert [line["outcome"] for line in lines_of(checked, "VJP-FD", "VJP-FD/long")] == ["pass", "pass"]


def test_the_reference_is_compared_in_long_tensors():
    def cut(x):
        return (x * x)[..., :1000].sum(-1)

    declaration = Declaration(cut, *MATRIX, reference=lambda x: (x * x).sum(-1))
    checked = Checked(declaration, profile="quick", seed=0, shrink=False)
    assert [line["outcome"] for line in lines_of(checked, "FWD-VALUE", "FWD-VALUE/long")] == ["pass", "fail"]


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


def raising(*, above, forward=None, backward=None, **options):
    """A product of rows whose forward or backward raises this for more rows."""

    class Raising(Function):
        @staticmethod
        def forward(ctx, x, w):
            if forward is not None and len(x) > above:
                raise forward
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            if backward is not None and len(x) > above:
                raise backward
            return g * w, (g * x).sum(0)

    return Declaration(Raising, "float[n,m]", "float[m]", **options)


_TOO_LONG = ValueError("too many rows")


@pytest.mark.parametrize(
    ("raises", "said"),
    [
        ({"backward": _TOO_LONG}, "forward accepted this call, so backward must not raise"),
        ({"forward": NameError("name 'rows' is not defined")}, "a mistake in the code, not a refusal"),
    ],
    ids=["backward", "mistake"],
)
def test_what_raises_for_long_tensors_alone_is_no_refusal(raises, said):
    ((line, verdict),) = accuses(raising(above=1000, **raises), "VJP-FD", "VJP-REF", "FWD-EMPTY")
    assert (line["property"], line["variant"], verdict.word, verdict.follows) == ("VJP-FD", "long", "raises", "")
    assert said in line["failure"]["hint"]
    assert "(1025, 2)" in line["failure"]["call"]


@pytest.mark.parametrize(("backward", "words"), [(_TOO_LONG, ["raises"]), (None, [])], ids=["raises", "right"])
def test_a_surrogate_gets_long_tensors_as_well(backward, words):
    declaration = raising(above=1000, backward=backward, surrogate=True)
    assert [v.word for _, v in accuses(declaration, "VJP-REF")] == words


def test_what_forward_refuses_of_long_tensors_is_no_fault():
    assert accuses(raising(above=1000, forward=_TOO_LONG), "VJP-FD", "VJP-REF") == []


class LongSwish(torch.autograd.Function):
    """x sigmoid(x), whose backward is wrong for more than 64 elements."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return g * (s + s * (1 - s) * (1 if x.numel() > 64 else x))


def test_long_tensors_that_the_plain_test_draws_are_one_fault_with_those_of_the_test_for_long_ones():
    checked = Checked(Declaration(LongSwish, "float[...]"), seed=1)
    plain, long, second = (next(lines_of(checked, test)) for test in ("VJP-FD", "VJP-FD/long", "DBL-CORRECT"))
    assert (second["outcome"], second["failure"]["follows"]) == ("fail", "VJP-FD")
    assert plain["failure"]["likely"].startswith("short tensors are right, and this length is not")
    finds = grouping.Finds()
    assert [finds.rows(line) for line in (plain, long)] == [["found: LongSwish: WRONG: VJP-FD"], []]
    assert grouping.headlines([(line, verdict(line)) for line in (plain, long)]) == [plain]
