"""How far off rounding may put a user's Function: what is measured, and what a second look excuses."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn.functional import layer_norm

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.bounds.noise import noise
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.leniency import Lenient
from autograd_conformance.harness.check.oracle.oracle import Oracle
from autograd_conformance.harness.check.oracle.perturb import signs
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.outcomes import Broken, UsageProblem
from autograd_conformance.harness.testing.assertions import DETACHED
from autograd_conformance.harness.testing.compare import difference
from autograd_conformance.harness.testing.transforms import SecondOrder
from autograd_conformance.reference.definitions import Array
from autograd_conformance.reference.ladder import Estimate
from autograd_conformance.reference.rounding import Tracked
from autograd_conformance.selftests.check.specimens import choices
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.suites.declared import Checked, claims

GRADIENT = "gradient of argument 0 (x)"
TORCH = implementations.load("torch")


def subject_of(declaration):
    return next(Checked(declaration, seed=0).subjects(claims()["VJP_REF"][0]))


def product(x, w):
    return x * w


@pytest.mark.parametrize("smallest", [1.0, 2.0**-11, 2.0**-14])
def test_a_small_number_does_not_hide_a_fault_elsewhere(smallest):
    arguments = [Array(name="x", dims="n"), Array(name="w", dims="n")]
    oracle = Oracle(TORCH, product, arguments, outputs=[True], dtype="float64", device="cpu")
    x, w = (Tracked.exact(np.array(values), "float16") for values in ([smallest, 1.0], [1.0, 1.0]))
    (output,) = oracle.forward(x, w)
    assert np.all(output.error < 0.03)


@pytest.mark.parametrize("first", [2.0**-22, 2.0**-24])
def test_what_underflows_and_is_divided_by_an_input_may_be_lost(first):
    x = np.array([first, 0.3, 0.7, 0.9], np.float16)

    def products(values):
        return torch.cumprod(values, 0)

    oracle = Oracle(TORCH, products, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    (expected,) = oracle.vjp((Tracked.exact(np.ones(4), "float16"),), Tracked.exact(x.astype(float), "float16"))
    given = torch.tensor(x, requires_grad=True)
    products(given).sum().backward()
    assert difference(given.grad.numpy(), expected).holds


def counting(x):
    counting.calls += 1
    return x * x + (counting.calls > 1) * counting.drift


@pytest.fixture(params=[0.0, 1.0])
def counted(request):
    """The oracle's square of two numbers, by a function that adds something after its first call."""
    counting.calls, counting.drift = 0, request.param
    oracle = Oracle(TORCH, counting, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    (output,) = oracle.forward(Tracked.exact(np.array([1.5, -2.0]), "float32"))
    return output


def test_a_bound_is_measured_only_if_the_least_of_it_is_exceeded(counted):
    assert difference(counted.value * (1 + 1e-7), counted).holds
    assert counting.calls == 1
    assert not difference(counted.value + 0.1, counted).holds
    assert counting.calls > 1


def test_a_bound_has_nothing_to_do_with_what_changes_from_call_to_call(counted):
    assert np.all(counted.least <= counted.error)
    assert np.all(counted.error < 0.01)


def test_a_bound_has_nothing_to_do_with_the_input_of_another_call():
    last = torch.ones(2, dtype=torch.float64)

    def lagging(x):
        nonlocal last
        previous, last = last, x.detach()
        return x * previous

    oracle = Oracle(TORCH, lagging, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    lagging(torch.tensor([1.5, -2.0], dtype=torch.float64))
    (output,) = oracle.forward(Tracked.exact(np.array([1.5, -2.0]), "float32"))
    lagging(torch.tensor([100.0, 3.0], dtype=torch.float64))
    assert np.all(output.error < 0.01)


def test_a_bound_has_nothing_to_do_with_what_is_written_into_a_result():
    known = {}

    def remembered(x):
        return known.setdefault(x.numpy(force=True).tobytes(), x.detach().exp())

    oracle = Oracle(TORCH, remembered, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    (output,) = oracle.forward(Tracked.exact(np.array([1.5, -2.0]), "float32"))
    for result in known.values():
        result.fill_(7)
    assert np.all(output.error < 0.01)


def strict(a, x):
    """A product that takes symmetric matrices and numbers between 1.5 and 2 alone."""
    if not torch.equal(a, a.mT) or bool(((x <= 1.5) | (x >= 2)).any()):
        raise ValueError("outside of the domain")
    return (a @ x).exp()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_moves_stay_in_the_domain(dtype):
    rows = Declaration(strict, "float[n,n] spd", "float[n](1.5..2)").parsed.found
    oracle = Oracle(TORCH, strict, rows, outputs=[True], dtype="float64", device="cpu")
    given = np.eye(40) + 2.0**-7, np.tile((1.5 + 2.0**-9, 2 - 2.0**-9), 20)
    (output,) = oracle.forward(*(Tracked.exact(x, dtype) for x in given))
    assert np.all(np.isfinite(output.error))
    assert np.all(output.error > output.least)


def test_where_no_move_is_taken_nothing_is_known():
    def one_alone(x):
        if bool((x != 1).any()):
            raise ValueError("only one")
        return x * 2

    oracle = Oracle(TORCH, one_alone, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    (output,) = oracle.forward(Tracked.exact(np.ones(3), "float32"))
    assert np.all(np.isinf(output.error))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_moves_part_neighbours_and_arguments(count):
    given = [Tracked.exact(np.ones((3, 4)), "float32") for _ in range(count)]
    given.insert(1, "mean")
    moves = [[np.asarray(s) for n, s in enumerate(each) if n != 1] for each in signs(given)]
    stacked = np.array(moves)
    for axis in (1, 2, 3):
        for distance in (1, 2) if stacked.shape[axis] > 2 else (1,):
            near = np.take(stacked, range(stacked.shape[axis] - distance), axis)
            far = np.take(stacked, range(distance, stacked.shape[axis]), axis)
            assert np.all(np.any(near != far, axis=0))
            assert np.all(np.any(near == far, axis=0))


def test_terms_that_cancel_in_half_precision_are_noise():
    declared = Declaration(lambda x, w, b: layer_norm(x, (2,), w, b), "float[k,n]", "float[n]", "float[n]", name="ln")
    # Of two numbers layer_norm makes -1 and 1, whatever they are: its gradient is what is left of large terms.
    x = Tensor((5, 2), "bfloat16", True, fill="dense", specials=((42, 1.0),))
    others = (Tensor((2,), "bfloat16", True, fill="dense"),) * 2
    assert noise(subject_of(declared), Call("ln", (x, *others), (Cotangent("dense"),), seed=88))[GRADIENT] > 0.1
    declared = Declaration(product, "float[n]", "float[n]")
    call = Call("product", (Tensor((2,), "bfloat16", True),) * 2, (Cotangent(),))
    assert noise(subject_of(declared), call)[GRADIENT] < 0.02


@pytest.mark.parametrize(
    ("measured", "judged"), [(4e-15, nullcontext()), (1e-3, pytest.raises(Broken, match=re.escape(DETACHED)))]
)
def test_what_is_zero_but_for_rounding_may_have_no_second_derivative(measured, judged):
    subject = next(Checked(Declaration(product, "float[n]", "float[n]"), seed=0).subjects(claims()["DBL_CORRECT"][0]))
    call = Call("product", (Tensor((2,), "float64", True),) * 2, (Cotangent(),))
    example = subject.made(call)
    estimate = Estimate(measured, 1e-17, None, 25)
    directions = (np.ones(2), np.ones(2))
    second = SecondOrder(
        (None, None), directions, lambda _: (), (), (), "cotangents", "grad", estimate, None, lambda _: ""
    )
    with judged:
        subject.assert_second_order(example.call, second)


def test_what_any_number_would_fit_is_inconclusive_without_dimensions(monkeypatch):
    subject = next(Checked(Declaration(product, "float[]", "float[]"), seed=0).subjects(claims()["FWD_VALUE"][0]))
    call = Call("product", (Tensor((), "float64", True),) * 2, (Cotangent(),))
    monkeypatch.setattr(Lenient, "widened", lambda *given: [e.widened(np.inf) for e in given[-1]])
    example = subject.made(call)
    subject.assert_close(call, example.output_names, got=[torch.tensor(7.0)], expected=example.expected.outputs)
    assert subject.record.inconclusive == 1


# The reference.


def test_calls_that_the_reference_refuses_are_left_out_and_counted():
    def picky(x):
        if x.numel() < 2:
            raise ValueError("two at least")
        return torch.relu(x)

    line = next(Checked(Declaration(choices.Relu, "float[n]", reference=picky), seed=0).lines("FWD-VALUE"))
    assert line["outcome"] == "pass"
    assert 0 < line["excused"] < line["examples"]

    def once_only(x):
        once_only.calls += 1
        if once_only.calls > 1:
            raise ValueError("never again")
        return torch.relu(x)

    once_only.calls = 0
    line = next(Checked(Declaration(choices.Relu, "float[n]", reference=once_only), seed=0).lines("FWD-VALUE"))
    judged = verdict(line)
    assert judged is not None
    assert not judged.fault
    assert "the reference: ValueError: never again" in line["reason"]


def test_a_reference_has_as_many_outputs_as_the_function():
    with pytest.raises(UsageProblem, match="its reference returns 1 output, but the Function returns 2"):
        discover(Declaration(choices.Sorted, "float[n]", reference=lambda x: torch.sort(x).values), TORCH)


# Where a result jumps.


def _errors(function, values, dtype="float64"):
    oracle = Oracle(TORCH, function, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    given = Tracked.exact(np.asarray(values, float), dtype)
    ones = Tracked.exact(np.ones_like(given.value), dtype)
    return oracle.forward(given)[0].widest, oracle.vjp((ones,), given)[0].widest


def test_nothing_is_claimed_where_a_result_jumps():
    forward, gradient = _errors(torch.round, [0.5, 0.75, 2.5])
    assert np.isinf(forward).tolist() == [True, False, True]
    assert np.all(np.isfinite(gradient))
    forward, gradient = _errors(torch.relu, [0.0, 1.0, -1.0])
    assert np.all(np.isfinite(forward))
    assert np.isinf(gradient).tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [torch.sin, torch.square, lambda x: x**4, torch.exp, lambda x: 0 * x])
def test_what_is_smooth_does_not_jump(function, dtype):
    forward, gradient = _errors(function, [0.0, -0.5, 1e-3, 3.0], dtype)
    assert np.all(np.isfinite(forward))
    assert np.all(np.isfinite(gradient))


def test_what_changes_from_call_to_call_does_not_jump():
    count = iter(range(10**6))
    forward, _ = _errors(lambda x: x + next(count), [1.0, 2.0])
    assert np.all(np.isfinite(forward))


def test_observing_changes_nothing():
    tensor = torch.ones(2, dtype=torch.float64)
    TORCH.numpy(tensor)
    tensor.untyped_storage().resize_(0)
    assert tensor.untyped_storage().size() == 0
