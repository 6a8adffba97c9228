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

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.explain.alternatives import alternatives
from autograd_conformance.harness.check.explain.explaining import Runs
from autograd_conformance.harness.outcomes import Broken, Finding
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.checking import accuses, lines_of
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.strategies.shapes import smaller_shape_tuples
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")
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


def failures(backward, *asked):
    """All failures of these tests of `Power` with this backward, by the test."""
    cls = type("Faulty", (Power,), {"backward": staticmethod(backward)})
    declaration = Declaration(cls, "float[...]", "float[...]", "int(0..4)")
    lines = list(lines_of(Checked(declaration, seed=1), *asked))
    for line in lines:
        jsonschema.validate(line, {**SCHEMA, "$ref": "#/$defs/result"})
    return {ndjson.test_of(line): [line["failure"], *line["failure"].get("further", ())] for line in lines
            if line["outcome"] == "fail"}  # fmt: skip


FAULTS = {
    for_three_and_four: "argument 2 (p) = 0, 1, 2; wrong with 3",
    without_w_and_for_four: "every tensor requiring grad",
    for_expanded_cotangents_and_four: "contiguous cotangents",
    for_scalars_and_four: "shapes (2,), (2,)",
}


@pytest.mark.parametrize("backward", FAULTS, ids=lambda backward: backward.__name__)
def test_a_fault_of_one_choice_hides_no_other(backward):
    first, second = failures(backward, "VJP-FD")["VJP-FD"]
    explained = {failure["kind"]: failure["right_with"] for failure in (first, second)}
    others = "0, 1, 2" if backward is for_three_and_four else "0, 1, 2, 3"
    assert explained == {"raised": FAULTS[backward], "wrong": f"argument 2 (p) = {others}; wrong with 4"}
    wrong = first if first["kind"] == "wrong" else second
    assert ", 4)," in wrong["call"]


def doubled(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    return 2 * found, other, None


def test_a_fault_of_every_call_is_explained_by_no_choice():
    (failure,) = failures(doubled, "VJP-FD")["VJP-FD"]
    # With p = 0 the call is right, because twice zero is zero, but not with the other values.
    assert not failure.get("right_with")
    assert ", 1)," in failure["call"]


class Huber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, delta):
        ctx.save_for_backward(x)
        ctx.delta = delta
        return torch.where(x.abs() <= delta, 0.5 * x * x, delta * (x.abs() - 0.5 * delta))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x.abs() <= ctx.delta, x, torch.full_like(x, ctx.delta)), None


def test_a_number_that_moves_a_threshold_explains_nothing():
    (line,) = lines_of(Checked(Declaration(Huber, "float[...]", "float(0.5..2)"), seed=1), "VJP-FD")
    failure = line["failure"]
    assert not failure.get("right_with", "").startswith("argument")
    assert not failure.get("further")


class Pair(torch.autograd.Function):
    """Two outputs, of which backward forgets the second."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), 3 * x

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.saved_tensors[0].cos()


class Holomorphic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        (Declaration(Pair, "float[n]"), "output 1 not used"),
        (Declaration(Holomorphic, "number[n]"), "float64"),
    ],
    ids=["an output", "complex numbers"],
)
def test_an_output_or_complex_numbers_explain_a_failure(declaration, words):
    (line,) = lines_of(Checked(declaration, seed=1), "VJP-FD")
    assert line["failure"]["right_with"] == words


def test_what_is_right_has_no_failure():
    assert accuses(Declaration(Power, "float[...]", "float[...]", "int(0..4)"), "VJP-FD", "VJP-REF") == []


class LogSoftmax(torch.autograd.Function):
    """A negative axis is off by one, which is right by accident for some axes of some ranks."""

    @staticmethod
    def forward(ctx, x, axis):
        y = torch.log_softmax(x, axis)
        ctx.save_for_backward(y)
        ctx.axis = axis
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        axis = ctx.axis if ctx.axis >= 0 else max(ctx.axis + y.dim() - 1, 0)
        return g - torch.exp(y) * g.sum(axis, keepdim=True), None


def test_another_choice_is_named_if_it_is_right_in_several_failing_calls():
    (line,) = lines_of(Checked(Declaration(LogSoftmax, "float[...]", "axis"), seed=0), "VJP-FD")
    failure = line["failure"]
    # -2 is right in the smallest call, but not in those of more dimensions.
    assert failure["right_with"] == "argument 1 (axis) = 0, 1; wrong with -1"
    assert "further" not in failure


class Shifted(torch.autograd.Function):
    """x * w + b. With b, the gradient of x is doubled."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return x * w if b is None else x * w + b

    @staticmethod
    def backward(ctx, g):
        x, w, b = ctx.saved_tensors
        return (g * w, g * x, None) if b is None else (2 * g * w, g * x, g)


def test_an_optional_tensor_explains_a_failure():
    (line,) = lines_of(Checked(Declaration(Shifted, "float[n]", "float[n]", "float[n] ?"), seed=0), "VJP-FD")
    assert line["failure"]["right_with"] == "argument 2 (b) = None"


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


@pytest.mark.parametrize("seed", range(3), ids="seed{}".format)
def test_the_smallest_shape_that_shows_a_fault_is_found(seed):
    (line,) = lines_of(Checked(Declaration(Total, "float[n,m]"), seed=seed), "VJP-FD")
    assert re.search(r"Tensor\(\((\d+, \d+)\)", line["failure"]["call"]).group(1) == "5, 2"


def for_three_and_for_expanded_cotangents(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    wrong = ctx.p == 3 or (g.ndim > 0 and g.stride()[0] == 0 and g.shape[0] > 1)
    return (2 * found if wrong else found), other, None


def test_two_wrong_numbers_with_two_explanations_are_two_faults():
    explained = [
        failure["right_with"] for failure in failures(for_three_and_for_expanded_cotangents, "VJP-FD")["VJP-FD"]
    ]
    assert sorted(explained) == ["argument 2 (p) = 0, 1, 2, 4; wrong with 3", "contiguous cotangents"]


def test_many_dimensions_have_few_smaller_shapes():
    """Every combination of many lengths of five names would take minutes."""
    arguments = ("float[b,h,n,d]", "float[b,h,m,d]", "float[b,h,m,e]")
    declaration = Declaration(lambda a, b, c: a.sum() + b.sum() + c.sum(), *arguments, name="Sums", dtypes="float64")
    function = declaration.sketch(TORCH)
    shapes = ((1, 1, 1, 17), (1, 1, 1, 17), (1, 1, 1, 1))
    started = time.process_time()
    found = smaller_shape_tuples(function, shapes)
    assert time.process_time() - started < 5
    assert 10 < len(found) < 5000
    assert ((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 1)) in found


class Optional(torch.autograd.Function):
    """x * w, or x; with the flag, half of the gradient of x is missing."""

    @staticmethod
    def forward(ctx, x, w, flag):
        ctx.save_for_backward(x, *(() if w is None else (w,)))
        ctx.flag = flag
        return x.clone() if w is None else x * w

    @staticmethod
    def backward(ctx, g):
        x, *w = ctx.saved_tensors
        found = g * w[0] if w else g
        return found * (0.5 if ctx.flag else 1.0), g * x if w else None, None


def test_another_value_is_tried_next_to_a_tensor_that_is_left_out():
    declaration = Declaration(Optional, "float[...]", "float[...] optional", "bool")
    call = Call("Optional", (Tensor((2,), requires_grad=True), None, True), (Cotangent(),))
    words = {name for each in alternatives(declaration.sketch(TORCH), call) for name, _ in each.calls}
    assert "argument 2 (flag) = False" in words
    assert any(each.startswith("shapes ") for each in words)


class Sometimes(Exception):
    """Failures of a call that fails only sometimes, as Hypothesis groups them."""

    def __init__(self, *exceptions):
        super().__init__()
        self.exceptions = exceptions


@pytest.mark.parametrize("call", ["Call(", "Call('Power')"])
def test_an_explanation_that_raises_hides_no_failure(call):
    declaration = Declaration(Power, "float[...]", "float[...]", "int(0..4)")
    subject = next(Checked(declaration).subjects(claims()["VJP_FD"][0]))
    failures = Sometimes(Broken("VJP-FD", "", "", Finding("what", "1", "2", call)))

    def attempt():
        raise failures

    with pytest.raises(Sometimes) as raised:
        Runs(subject, None, attempt).all()
    assert raised.value is failures


class Picked(torch.autograd.Function):
    """x[i]. Backward loses all but one of the gradients of an index that comes twice."""

    @staticmethod
    def forward(ctx, x, i):
        ctx.save_for_backward(x, i)
        return x[i]

    @staticmethod
    def backward(ctx, g):
        x, i = ctx.saved_tensors
        found = torch.zeros_like(x)
        found[i] += g
        return found, None


class PickedTwice(Picked):
    """x[i]. Backward is wrong for every index."""

    @staticmethod
    def backward(ctx, g):
        x, i = ctx.saved_tensors
        return torch.zeros_like(x).index_add(0, i, 2 * g), None


@pytest.mark.parametrize(
    ("function", "explained"), [(Picked, "all values of argument 1 (i) different"), (PickedTwice, None)]
)
def test_indices_that_come_twice_are_named_and_shown(function, explained):
    declaration = Declaration(function, "float[n]", "int[e](0..n-1)", once=True)
    (line,) = lines_of(Checked(declaration, seed=0), "VJP-FD")
    jsonschema.validate(line, SCHEMA)
    failure = line["failure"]
    assert failure.get("right_with") == explained
    values = re.fullmatch(r"argument 1 \(i\) = \[(.*)\]", failure["values"])[1].split(", ")
    assert (len(set(values)) < len(values)) == (explained is not None)


class Scan(torch.autograd.Function):
    """a * h0 + x[0], a * (a * h0 + x[0]) + x[1], ... A shortcut for sequences of length 1 forgets a in backward."""

    @staticmethod
    def forward(ctx, x, a, h0):
        h, out = h0, []
        for row in x:
            h = a * h + row
            out.append(h)
        y = torch.stack(out)
        ctx.save_for_backward(a, h0, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, h0, y = ctx.saved_tensors
        if g.shape[0] == 1:
            return g, g[0] * h0, g[0]
        rows, ga, carry = [], torch.zeros_like(a), torch.zeros_like(a)
        for t in range(g.shape[0] - 1, -1, -1):
            carry = carry + g[t]
            rows.append(carry)
            ga = ga + carry * (y[t - 1] if t else h0)
            carry = a * carry
        return torch.stack(rows[::-1]), ga, carry


class ScanWrong(Scan):
    """The last gradient is wrong for every length."""

    @staticmethod
    def backward(ctx, g):
        gx, ga, gh = Scan.backward(ctx, g)
        return gx, ga, 2 * gh


@pytest.mark.parametrize(("function", "explained"), [(Scan, "shapes (2, 1), (1,), (1,)"), (ScanWrong, None)])
def test_where_length_one_alone_is_wrong_a_longer_one_is_right(function, explained):
    declaration = Declaration(function, "float[t,n]", "float[n]", "float[n]", once=True, sizes={"t": (1, 2, 3)})
    (line,) = lines_of(Checked(declaration, seed=0), "VJP-FD")
    assert line["failure"].get("right_with") == explained
