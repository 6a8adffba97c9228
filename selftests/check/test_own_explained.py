"""Why a call fails: the questions about its cause, what it is right with, and what is said in the end."""

from __future__ import annotations

import contextlib
import io
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration, bench
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.explain import causes, hints, right_with
from autograd_conformance.harness.check.explain.causes import QUESTIONS, Fails, Failure
from autograd_conformance.harness.check.explain.explaining import Met, Runs
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.check.report.printing import rows
from autograd_conformance.harness.check.session.announcing import Announcer
from autograd_conformance.harness.check.session.child_discovery import Found
from autograd_conformance.harness.check.session.display import Display
from autograd_conformance.harness.outcomes import HOLDS, UNDECIDED, Broken, Finding
from autograd_conformance.harness.testing import own_faults
from autograd_conformance.selftests.check.checking import RESULT, lines_of
from autograd_conformance.selftests.check.specimens.causes import dropped
from autograd_conformance.selftests.check.specimens.empty import flat
from autograd_conformance.selftests.check.specimens.functions import custom, function
from autograd_conformance.selftests.check.specimens.right_with import POWERS, power, power_gradients
from autograd_conformance.strategies import changes, simpler
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, copied, parse, tensor_values
from autograd_conformance.strategies.changes import alternatives
from autograd_conformance.strategies.shapes import smaller_shape_tuples
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")


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


def failures(backward):
    """All failures of VJP-FD of a power with this backward."""
    (line,) = lines_of(Checked(Declaration(power(backward, "Faulty"), *POWERS), seed=1), "VJP-FD")
    RESULT.validate(line)
    return [line["failure"], *line["failure"].get("further", ())]


FAULTS = {
    for_three_and_four: "argument 2 (p) = 0, 1, 2; wrong with 3",
    without_w_and_for_four: "every tensor requiring grad",
    for_expanded_cotangents_and_four: "contiguous cotangents",
    for_scalars_and_four: "shapes (2,), (2,)",
}


@pytest.mark.parametrize("backward", FAULTS, ids=lambda backward: backward.__name__)
def test_a_fault_of_one_choice_hides_no_other(backward):
    first, second = failures(backward)
    explained = {failure["kind"]: failure["right_with"] for failure in (first, second)}
    others = "0, 1, 2" if backward is for_three_and_four else "0, 1, 2, 3"
    assert explained == {"raised": FAULTS[backward], "wrong": f"argument 2 (p) = {others}; wrong with 4"}
    wrong = first if first["kind"] == "wrong" else second
    assert ", 4)," in wrong["call"]


def for_three_and_for_expanded_cotangents(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    wrong = ctx.p == 3 or (g.ndim > 0 and g.stride()[0] == 0 and g.shape[0] > 1)
    return (2 * found if wrong else found), other, None


def test_two_wrong_numbers_with_two_explanations_are_two_faults():
    explained = [failure["right_with"] for failure in failures(for_three_and_for_expanded_cotangents)]
    assert sorted(explained) == ["argument 2 (p) = 0, 1, 2, 4; wrong with 3", "contiguous cotangents"]


def test_many_dimensions_have_few_smaller_shapes():
    """Every combination of many lengths of five names would take minutes."""
    arguments = ("float[b,h,n,d]", "float[b,h,m,d]", "float[b,h,m,e]")
    declaration = Declaration(lambda a, b, c: a.sum() + b.sum() + c.sum(), *arguments, name="Sums", dtypes="float64")
    sketch = declaration.sketch(TORCH)
    shapes = ((1, 1, 1, 17), (1, 1, 1, 17), (1, 1, 1, 1))
    started = time.process_time()
    found = smaller_shape_tuples(sketch, shapes)
    assert time.process_time() - started < 5
    assert 10 < len(found) < 5000
    assert ((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 1)) in found


def one_or_two(x, w, flag):  # noqa: ARG001 - its name is said
    return x.clone() if w is None else x * w


def of_optional(g, _, x, w, flag):
    """With the flag, half of the gradient of x is missing."""
    return (g if w is None else g * w) * (0.5 if flag else 1.0), None if w is None else g * x, None


def test_another_value_is_tried_next_to_a_tensor_that_is_left_out():
    optional = function(one_or_two, of_optional, "Optional")
    declaration = Declaration(optional, "float[...]", "float[...] optional", "bool")
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
    declaration = Declaration(power(), *POWERS)
    subject = next(Checked(declaration).subjects(claims()["VJP_FD"][0]))
    failures = Sometimes(Broken("VJP-FD", "", "", Finding("what", "1", "2", call)))

    def attempt(_):
        raise failures

    with pytest.raises(Sometimes) as raised:
        Runs(subject, None, attempt).all()
    assert raised.value is failures


def test_each_question_names_tests_that_there_are():
    asked = {test for question in QUESTIONS if isinstance(question.asks, Fails) for test in question.asks.tests}
    assert asked <= {claim.test for claim, _ in claims().values()}
    assert asked


def test_a_failure_is_explained_if_time_is_up_before_it_is_the_smallest():
    checked = Checked(dropped, seed=0)
    claim, test = next(each for each in claims().values() if each[0].test == "VJP-FD/kinks")
    (subject,) = checked.subjects(claim)
    x = Tensor((3,), requires_grad=True, fill="dense", specials=((0, 1.0),))
    call = Call(subject.function.name, (x,), (Cotangent(),))
    finding = Finding("slope", "1.0", "2.0", repr(call), compared=(1.0, 2.0))

    def attempt(_):
        raise Broken("VJP-FD", "", "", finding)

    subject.record.until = 0.0
    with pytest.raises(Broken) as raised:
        Runs(subject, test, attempt).all()
    assert raised.value.finding.follows == "ENV-RANDOM"


doubled_flat = custom("Flat", forward=lambda _, x: x + x, backward=lambda _, g: flat(g))


def test_a_check_without_the_property_that_shows_an_edge_is_not_green(tmp_path):
    checked = Checked(
        Declaration(doubled_flat, "float[n,m]", sizes={"n": (0, 1, 2), "m": (1, 3)}), seed=0, profile="quick"
    )
    facts = discover(checked.declaration, implementations.load("torch"), errors=False)
    statuses = []
    for asked in (("FWD-DTYPE",), ("FWD-DTYPE", "FWD-EMPTY")):
        found = Found(
            Plan("mine", facts={"Flat": facts}),
            places={"Flat": "mine"},
            described={"Flat": "float[n,m]"},
            code={"Flat": {}},
        )
        with contextlib.redirect_stdout(io.StringIO()) as said:
            announcer = Announcer(found, Display(), tmp_path)
            for line in lines_of(checked, *asked):
                announcer.note(line)
            announcer.end("", SimpleNamespace(total=0, results=[], of_devices=list))
        assert "backward raises for tensors without elements" in said.getvalue()
        statuses.append(announcer.statuses["Flat"])
    assert statuses == [UNDECIDED, HOLDS]


class Cancelling(Function):
    """Rows without their mean, divided by their deviation. Backward cancels in half precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        wide = x.float() if x.dtype in (torch.half, torch.bfloat16) else x
        variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
        return ((wide - mean) * torch.rsqrt(variance + 1e-5)).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        r = torch.rsqrt(variance.clamp(min=0) + 1e-5)
        h = (x - mean) * r
        return r * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))


class InMemory(Function):
    """Twice the numbers of the memory, whatever the strides."""

    @staticmethod
    def forward(ctx, x):
        ctx.strided = not x.is_contiguous()
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g if ctx.strided else 2 * g


def call_of(name, layout="expanded", cotangent="contiguous"):
    tensor = Tensor((8, 2), "float16", requires_grad=True, layout=layout, fill="dense")
    return Call(name, (tensor,), (Cotangent("ramp", layout=cotangent),), seed=1838)


def cause(function, call):
    claim, _ = claims()["VJP_CHAIN_instances"]
    (subject,) = Checked(Declaration(function, "float[b,n]"), seed=0).subjects(claim)
    finding = Finding("gradient", "1.0", "2.0", repr(call), compared=(1.0, 2.0))
    return Failure(subject, Broken("VJP-CHAIN", "", "", finding)).cause()


@pytest.mark.parametrize("layout", ["expanded", "strided", "transposed"])
def test_a_copy_has_the_values_and_no_layout(layout):
    (subject,) = Checked(Declaration(InMemory, "float[b,n]"), seed=0).subjects(claims()["VJP_FD"][0])
    call = call_of("InMemory", layout, layout)
    plain = copied(call)
    assert np.array_equal(tensor_values(call, subject.function)[0], tensor_values(plain, subject.function)[0])
    example, other = subject.made(plain), subject.made(call)
    assert example.primals[0].is_contiguous()
    assert torch.equal(example.primals[0], other.primals[0])
    assert torch.equal(example.cotangents[0], other.cotangents[0])
    assert example.cotangents[0].is_contiguous()
    assert copied(plain) == plain == parse(repr(plain))


def test_values_that_a_layout_repeats_are_no_fault_of_the_layout():
    assert cause(Cancelling, call_of("Cancelling")) == "VJP-REF"
    assert cause(InMemory, call_of("InMemory")) == "FWD-LAYOUT"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (hints, "_CLOSE"), (bench, "copied"), (bench, "prepare"), (causes, "contiguous"), (right_with, "alternatives"),
        (changes, "copied"), (simpler, "contiguous"),
    ],
)  # fmt: skip
def test_a_fault_of_our_own_is_named_and_changes_no_verdict(module, name, monkeypatch, tmp_path):
    declaration = Declaration(function(lambda x: x * x, lambda g, _, x: 3 * g * x), "float[n]", name="Square")

    def check():
        asked = ("VJP-FD", "VJP-REF", "VJP-CHAIN", "FWD-LAYOUT")
        lines = list(lines_of(Checked(declaration, profile="quick", seed=0), *asked))
        return lines, "\n".join(rows("Square", concluded(Facts(), lines, tmp_path)))

    lines, text = check()
    assert not any("own_faults" in line for line in lines)
    monkeypatch.delattr(module, name)
    broken, said = check()
    faults = {each for line in broken for each in line.get("own_faults", ())}
    place = module.__name__.removeprefix("autograd_conformance.").replace(".", "/")
    assert faults
    assert all(each.startswith(f"NameError: name '{name}' is not defined ({place}.py:") for each in faults)
    words = re.sub(r"\s+", " ", said)
    for fault in faults:
        assert re.search(
            rf"autograd-conformance itself failed in [A-Z-, ]+: {re.escape(fault)}; please report it", words
        )
    # The same fault, with the same tests beside it.
    shown = [re.findall(r"^  [A-Z]+: .*|same fault: .*", each, re.MULTILINE) for each in (text, said)]
    assert shown[0] == shown[1]
    for line in broken:
        RESULT.validate(line)
    own_faults.ALL.clear()


class Counted(Function):
    """A wrong square, which counts how often forward runs."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        Counted.calls += 1
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0]


def test_the_bench_runs_a_call_once_for_all_tests_of_a_function():
    checked, known = Checked(Declaration(Counted, "float[n]"), seed=0), claims()
    call = Call("Counted", (Tensor((2,), requires_grad=True, fill="ramp"),), (Cotangent(),), smooth=True)
    (claim, fd), (other, reference) = known["VJP_FD"], known["VJP_REF"]
    first, second = (bench.Bench(next(checked.subjects(each))) for each in (claim, other))
    asked = first.outcome(fd, call), first.derives(call), first.runs(call), first.outcome(reference, call)
    assert (asked[0].holds, asked[0].finding.kind.value) == (False, "wrong")
    assert (asked[1], asked[2], asked[3].holds) == (False, True, True)
    before = Counted.calls
    again = second.outcome(fd, call), second.derives(call), second.runs(call), second.outcome(reference, call)
    assert again == asked
    assert Counted.calls == before
    # With more examples it may draw something else; a failure stays one.
    second.outcome(reference, call, 6)
    assert Counted.calls > before
    before = Counted.calls
    assert second.outcome(fd, call, 6) is asked[0]
    assert Counted.calls == before


def test_a_failure_that_is_kept_has_all_that_is_said_of_it():
    checked = Checked(Declaration(Counted, "float[n]"), seed=0)
    claim, test = claims()["VJP_FD"]
    at = bench.Bench(next(checked.subjects(claim)))
    call = Call("Counted", (Tensor((2,), requires_grad=True, fill="ramp"),), (Cotangent(),), smooth=True)
    kept, failure = at.outcome(test, call).finding, at.failure(test, call).finding
    assert bench.kind_of(kept) == bench.kind_of(failure)
    assert "the worst entry is" in failure.hint
    assert at.failure(claims()["FWD_VALUE"][1], call) is None


class WarmingUp(Function):
    """A square whose first backward passes are wrong, so many as are ``left``."""

    left = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        WarmingUp.left -= 1
        return (3 if WarmingUp.left >= 0 else 2) * ctx.saved_tensors[0] * g


def run(checked, name):
    """The failure of a test, and its further ones; none if it holds."""
    claim, test = claims()[name]
    (subject,) = checked.subjects(claim)
    try:
        checked.run(claim, test, subject)
    except Exception as raised:  # noqa: BLE001 - Hypothesis has an exception for a call that fails only sometimes
        return [raised, *subject.record.further]
    return []


@pytest.mark.parametrize("first", [2, 3, 4, 8])
def test_a_fault_of_the_first_calls_alone_is_no_pass(first):
    checked = Checked(Declaration(WarmingUp, "float[n]", dtypes="float64"), profile="quick", seed=0)
    assert checked.selection
    WarmingUp.left = first
    assert run(checked, "VJP_FD")
    assert WarmingUp.left < 0
    assert run(checked, "VJP_FD") == []


class Writing(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g.mul_(2 * ctx.saved_tensors[0])


def test_what_nobody_had_the_time_to_see_is_looked_at_again():
    checked = Checked(Declaration(Writing, "float[n]"), seed=0)
    (late,), (in_time,) = (list(checked.subjects(claims()[name][0])) for name in ("VJP_FD", "VJP_REF"))
    call = Call("Writing", (Tensor((2,), requires_grad=True, fill="ramp"),), (Cotangent(),))
    late.record.until = 0.0
    assert not bench.Bench(late).fails("VJP-PURE", call)
    assert bench.Bench(in_time).fails("VJP-PURE", call)


def test_a_known_call_that_the_test_does_not_draw_is_not_taken():
    checked = Checked(Declaration(Counted, "float[n]"), seed=0)
    claim, test = claims()["VJP_FD"]
    (subject,) = checked.subjects(claim)
    # At a kink finite differences say nothing: the test draws smooth calls alone.
    known = Call("Counted", (Tensor((2,), requires_grad=True, fill="dense"),), (Cotangent(),))
    drawn = replace(known, smooth=True)

    def attempt(_):
        raise bench.Bench(subject).failure(test, drawn)

    runs = Runs(subject, test, attempt)
    runs.met[repr(known)] = Met(None, [])
    assert runs.bench.outcome(test, known).is_like(runs.bench.outcome(test, drawn).finding)
    with pytest.raises(Broken) as raised:
        runs.all()
    assert parse(raised.value.finding.call).smooth
