"""One fault hides no other, and the call that shows it is as small as it can be."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.strategies.shapes import smaller_shape_tuples
from autograd_conformance.suites.declared import Checked

SCHEMA = json.loads(Path(ndjson.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))


class Power(torch.autograd.Function):
    """A right Function, whose backward each fault overrides."""

    @staticmethod
    def forward(ctx, x, w, p):
        ctx.save_for_backward(x, w)
        ctx.p = p
        return w * x**p

    @staticmethod
    def backward(ctx, g):
        return power_gradients(ctx, g)


def power_gradients(ctx, g):
    x, w = ctx.saved_tensors
    return g * w * ctx.p * x ** (ctx.p - 1) if ctx.p else torch.zeros_like(x), g * x**ctx.p, None


def for_three_and_four(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    if ctx.p == 3:
        return undefined(found), other, None  # noqa: F821 - the fault
    return (2 * found if ctx.p == 4 else found), other, None


def without_w_and_for_four(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    if not ctx.needs_input_grad[1]:
        raise ValueError("the gradient of w was not computed")
    return (2 * found if ctx.p == 4 else found), other, None


def for_expanded_cotangents_and_four(ctx, g):
    found, other, _ = power_gradients(ctx, g.view(-1).view(g.shape))
    return (2 * found if ctx.p == 4 else found), other, None


def for_scalars_and_four(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    if g.ndim == 0:
        raise IndexError("no dimension")
    return (2 * found if ctx.p == 4 else found), other, None


def failures(backward, *asked, seed=1):
    """All failures of tests of `Power` with this backward, by the test."""
    cls = type("Faulty", (Power,), {"backward": staticmethod(backward)})
    declaration = Declaration(cls, "float[...]", "float[...]", "int(0..4)")
    lines = list(Checked(declaration, seed=seed).lines(*asked))
    for line in lines:
        jsonschema.validate(line, {**SCHEMA, "$ref": "#/$defs/result"})
    return {ndjson.test_of(line): [line["failure"], *line["failure"].get("further", ())] for line in lines
            if line["outcome"] == "fail"}  # fmt: skip


FAULTS = {
    for_three_and_four: "argument 2 (p) = 0",
    without_w_and_for_four: "every tensor requiring grad",
    for_expanded_cotangents_and_four: "contiguous cotangents",
    for_scalars_and_four: "shapes (1,), (1,)",
}


@pytest.mark.parametrize("backward", FAULTS, ids=lambda backward: backward.__name__)
def test_a_fault_of_one_choice_hides_no_other(backward):
    first, second = failures(backward, "VJP-FD")["VJP-FD"]
    explained = {failure["kind"]: failure["right_with"] for failure in (first, second)}
    assert explained == {"raised": FAULTS[backward], "wrong": "argument 2 (p) = 0"}
    wrong = first if first["kind"] == "wrong" else second
    assert ", 4)," in wrong["call"]


def doubled(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    return 2 * found, other, None


def test_a_fault_of_every_call_is_explained_by_no_choice():
    (failure,) = failures(doubled, "VJP-FD")["VJP-FD"]
    # The derivative of a constant is zero, and twice as well.
    assert failure.get("right_with") == "argument 2 (p) = 0"
    assert ", 1)," in failure["call"]


def test_what_is_right_has_no_failure():
    assert failures(Power.backward) == {}


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(1)

    @staticmethod
    def backward(ctx, g):
        found = g[:, None].repeat(1, ctx.shape[1])
        rows, columns = ctx.shape
        return 1.01 * found if rows >= 5 and columns >= 2 else found


@pytest.mark.parametrize("seed", range(3))
def test_the_smallest_shape_that_shows_a_fault_is_found(seed):
    lines = Checked(Declaration(Total, "float[n,m]"), seed=seed).lines("VJP-FD")
    calls = [line["failure"]["call"] for line in lines if line["outcome"] == "fail"]
    assert calls
    assert {re.search(r"Tensor\(\((\d+, \d+)\)", call).group(1) for call in calls} == {"5, 2"}


def for_three_and_for_expanded_cotangents(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    wrong = ctx.p == 3 or (g.ndim > 0 and g.stride()[0] == 0 and g.shape[0] > 1)
    return (2 * found if wrong else found), other, None


def test_two_wrong_numbers_with_two_explanations_are_two_faults():
    explained = [
        failure["right_with"] for failure in failures(for_three_and_for_expanded_cotangents, "VJP-FD")["VJP-FD"]
    ]
    assert sorted(explained) == ["argument 2 (p) = 0", "contiguous cotangents"]


def test_many_dimensions_have_few_smaller_shapes():
    """Every combination of many lengths of five names would take minutes."""
    arguments = ("float[b,h,n,d]", "float[b,h,m,d]", "float[b,h,m,e]")
    function = Checked(
        Declaration(lambda a, b, c: a.sum() + b.sum() + c.sum(), *arguments, name="Sums")
    ).selection.functions[0]
    shapes = ((1, 1, 1, 17), (1, 1, 1, 17), (1, 1, 1, 1))
    started = time.process_time()
    found = smaller_shape_tuples(function, shapes)
    assert time.process_time() - started < 5
    assert 10 < len(found) < 5000
    assert ((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 1)) in found
