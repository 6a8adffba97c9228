"""What users' Functions refuse: declared calls, which are left out, and rules for vmap."""

from __future__ import annotations

from dataclasses import asdict

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import printing
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.check.report.verdicts import DECLINED, RAISES, REFUSED, judged, verdict
from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.check.checking import first_fault, lines_of
from autograd_conformance.selftests.check.specimens.batching import ARGUMENTS, right, ruled
from autograd_conformance.selftests.check.specimens.functions import custom
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.suites.declared import Checked

TORCH = implementations.load("torch")


def picky(refuse):
    """x * 2, which refuses calls so. Right."""

    def forward(ctx, x, k=1):
        refuse(x, k)
        ctx.factor = 2
        return x * 2

    return custom(forward=forward, backward=lambda ctx, g: (ctx.factor * g, None))


def _rank(x, _):
    if x.ndim == 0:
        raise ValueError("needs a dimension")


def _length(x, k):
    if x.ndim == 0 or x.shape[-1] < k:
        raise RuntimeError(f"selected index {k} out of range")


def _multiple(x, k):
    assert x.shape[-1] % k == 0, "the length is no multiple"


def _values(x, _):
    if (x < 0).any():
        raise ValueError("negative")


def _loop(x, _):
    rows = list(range(x.shape[0] - 1))
    return rows[0]


def _name(x, _):
    if x.shape[0] == 1:
        return undefined  # noqa: F821
    return None


PROPERTIES = ("VJP-FD", "VJP-REF", "FWD-MASK", "FWD-VALUE", "VJP-PURE")


def lines_of_some(declaration, *properties):
    """The lines of these properties, by default of several, in a few calls as they were drawn."""
    return list(Checked(declaration, profile="quick", seed=0, shrink=False).lines(*(properties or PROPERTIES)))


@pytest.mark.parametrize(
    ("refuse", "arguments", "shown"),
    [
        (_rank, ["float[...]", "1"], "x of shape ()"),
        (_length, ["float[...]", "1 | 2"], "x of shape (1,), k = 2"),
        (_multiple, ["float[n]", "1 | 2"], "x of shape (1,), k = 2"),
    ],
    ids=["rank", "length", "multiple"],
)
def test_what_forward_refuses_of_the_declared_calls_is_left_out_and_named(refuse, arguments, shown, tmp_path):
    declaration = Declaration(picky(refuse), *arguments)
    facts = discover(declaration, TORCH)
    assert shown in [words for each in facts.declined for words in each.shown]
    lines = lines_of_some(declaration)
    assert {line["outcome"] for line in lines} == {"pass"}
    # No test draws what is known to be refused.
    assert [line["id"] for line in lines if "declined" in line and line.get("variant") != "long"] == []
    text = " ".join(" ".join(printing.rows("Made", concluded(facts, lines, tmp_path))).split())
    assert "DECLARED BUT REFUSED" in text
    assert f"{shown}" in text
    assert "0 do not" in text


def test_a_declaration_that_fits_is_said_to_fit():
    for refuse, *arguments in ((_rank, "float[n]"), (_multiple, "float[2*n]", "2"), (_length, "float[n]", "1")):
        assert discover(Declaration(picky(refuse), *arguments), TORCH).declined == ()


def test_refused_values_are_no_fault_but_never_green(tmp_path):
    declaration = Declaration(picky(_values), "float[n]")
    found = [(line, verdict(line)) for line in lines_of_some(declaration)]
    words = {v.word for _, v in found if v is not None}
    assert words == {DECLINED}
    text = " ".join(
        " ".join(
            printing.rows("Made", concluded(discover(declaration, TORCH), [x for x, _ in found], tmp_path))
        ).split()
    )
    assert text.count("DECLARED BUT REFUSED") == 1
    assert "ValueError: negative" in text
    assert "test_own_refused.py" in text
    assert {verdict(line) for line in lines_of_some(Declaration(picky(_values), "float[n] positive"))} == {None}


@pytest.mark.parametrize(("refuse", "error"), [(_loop, "list index out of range"), (_name, "undefined")])
def test_an_accident_of_forward_is_a_fault(refuse, error):
    lines = lines_of_some(Declaration(picky(refuse), "float[n]"), "VJP-REF")
    failures = [line["failure"] for line in lines if (v := verdict(line)) is not None and v.word == RAISES]
    assert failures
    assert error in failures[0]["got"]


def test_what_forward_refuses_after_other_calls_alone_is_a_fault():
    count = []

    def tired(*_):
        count.append(1)
        if len(count) > 400:
            raise RuntimeError("called too often")

    assert first_fault(Declaration(picky(tired), "float[n]"), "VJP-FD", "VJP-REF")[1].word == RAISES


def _with_context(_, x):
    return x * 2


def _doubling(**methods):
    """x * 2, with forward as given."""
    plain = {"forward": _with_context, "backward": lambda _, g: 2 * g}
    return custom("Doubling", **{**plain, **methods})


_NO_RULE = {"forward": lambda x: x * 2, "setup_context": lambda *_: None}


def _by_second(info, dims, x):
    if info.batch_size > 1:
        raise ValueError("only one at a time")
    return x * 2, dims[0]


@pytest.mark.parametrize(
    ("methods", "also", "word", "says"),
    [
        ({}, ("vmap",), DECLINED, "write forward without ctx, and a static method setup_context"),
        (_NO_RULE, ("vmap",), DECLINED, "let a static method vmap move each batch dimension"),
        ({**_NO_RULE, "vmap": _by_second}, (), REFUSED, "let a static method vmap move each batch dimension"),
        ({**_NO_RULE, "vmap": _by_second}, ("vmap",), DECLINED, "let a static method vmap"),
    ],
)
def test_what_is_asked_for_and_refused_is_declared_but_refused(methods, also, word, says, tmp_path):
    declaration = Declaration(_doubling(**methods), "float[n]", also=also)
    lines, facts = lines_of_some(declaration, "BATCH-VMAP"), discover(declaration, TORCH)
    ((_, found),) = [pair for pair in judged(lines, compared=False, asked=facts.asked) if pair[1] is not None]
    assert (found.word, found.fault) == (word, False)
    text = " ".join(" ".join(printing.rows("Doubling", concluded(facts, lines, tmp_path))).split())
    assert says in text
    assert ("declared calls refused; 0 checks hold" in text) == (word == DECLINED)
    assert ("DECLARED BUT REFUSED: BATCH-VMAP: in " in text) == (word == DECLINED)
    assert ("refused (not a fault)" in text) == (word == REFUSED)


OPS = """
import torch
from autograd_conformance import Declaration


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.ndim == 0:
            raise ValueError("needs a dimension")
        return x.cumsum(-1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(-1).cumsum(-1).flip(-1)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


any_rank = Declaration(Sum, "float[...]", name="AnyRank")
one_rank = Declaration(Sum, "float[n]", name="OneRank")
not_asked = Declaration(Twice, "float[n]", name="NotAsked")
"""


@pytest.mark.parametrize(
    ("words", "summary"),
    [
        (["ops.py"], "3 Functions: 2 without a fault, 1 not verified (AnyRank)"),
        (["ops.py:Twice", "--arg", "float[n]", "--also", "vmap"], "DECLARED BUT REFUSED: BATCH-VMAP"),
    ],
    ids=["declared", "asked for"],
)
def test_what_is_declared_or_asked_for_and_refused_ends_with_2(words, summary, tmp_path):
    (tmp_path / "ops.py").write_text(OPS)
    words = ["check", *words, "--properties", "VJP-FD,BATCH-VMAP", "--profile", "quick", "--seed", "0"]
    environment = outside_with(tmp_path)
    done = started(*words, folder=tmp_path, environment=environment, torch=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert summary in done.stdout


def test_facts_can_be_sent_to_another_process():
    facts = discover(Declaration(picky(_rank), "float[...]"), TORCH)
    again = Facts.from_json(asdict(facts))
    assert again.declined == facts.declined


def refuses_the_second(size, dims, x, w):
    if dims[1] not in (None, 0):
        raise RuntimeError("the batch of w must come first")
    return right(size, dims, x, w)


def has_no_rule_for_the_second(size, dims, x, w):
    if dims[1] not in (None, 0):
        raise NotImplementedError
    return right(size, dims, x, w)


def line_of(function, *arguments):
    (line,) = lines_of(Checked(Declaration(function, *arguments), seed=0, shrink=tiers.NIGHT), "BATCH-VMAP")
    return line


@pytest.mark.parametrize("prepare", [refuses_the_second, has_no_rule_for_the_second])
def test_a_rule_that_refuses_a_little_gets_a_note(prepare):
    line = line_of(ruled(prepare), *ARGUMENTS)
    assert line["outcome"] == "pass"
    assert 0 < 2 * line["excused"] < line["examples"]
    assert verdict(line).word == REFUSED


class Reduced(torch.autograd.Function):
    """The maximum without ties, which an empty tensor has not. Right."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp() * x.amax(-1, keepdim=True).detach() * 0 + x.exp()

    @staticmethod
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].exp()


# The plain call of the second one refuses empty tensors, which is no note on batches.
@pytest.mark.parametrize(("function", "arguments"), [(ruled(right), ARGUMENTS), (Reduced, ("float[...]",))])
def test_a_right_rule_gets_none(function, arguments):
    line = line_of(function, *arguments)
    assert line["outcome"] == "pass"
    assert verdict(line) is None
