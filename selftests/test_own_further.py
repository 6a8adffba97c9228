"""One fault hides no other, and the call that shows it is as small as it can be."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.explain.alternatives import alternatives
from autograd_conformance.harness.check.explain.explaining import Runs
from autograd_conformance.harness.outcomes import Broken, Finding
from autograd_conformance.selftests.checking import RESULT, lines_of
from autograd_conformance.selftests.specimens.functions import function
from autograd_conformance.selftests.specimens.right_with import POWERS, power, power_gradients
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
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

    def attempt():
        raise failures

    with pytest.raises(Sometimes) as raised:
        Runs(subject, None, attempt).all()
    assert raised.value is failures
