"""What a program does with its calls decides what is a fault, and what is noted beside."""

from __future__ import annotations

import os
import re
import sys

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.selftests.watching.watched_program import AMPLE, HEAD, rows_of, watched
from autograd_conformance.suites import watched as suite

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

CALLS = """
import copy

def detached(ctx, g):
    return 2 * g * ctx.saved_tensors[0].detach()

def single(ctx, x):
    return square(ctx, x).float()

def halved(ctx, g):
    return g * ctx.saved_tensors[0]

def root(ctx, x):
    ctx.save_for_backward(x)
    return x.abs().sqrt()

def slope(ctx, g):
    y = ctx.saved_tensors[0]
    return g * torch.where(y == 0, END, y.sign() / (2 * y.abs().sqrt()))

def call(name, *functions, x=x):
    return made(name, *functions).apply(x).sum()

def determinant(ctx, a):
    lower = torch.linalg.cholesky(a)
    ctx.save_for_backward(lower)
    return 2 * lower.diagonal().log().sum()

def inverse(ctx, g):
    return g * torch.cholesky_inverse(ctx.saved_tensors[0])

singular = (torch.ones(3, 3) + 1e-6 * torch.eye(3)).requires_grad_()
call("Refusing", determinant, inverse, x=singular).backward()
from unittest.mock import patch

mocked = made("Mocked")
with patch.object(mocked, "forward", wraps=mocked.forward) as seen:
    mocked.apply(x).sum().backward()
seen.assert_called_once()
def power(ctx, x, p):
    ctx.save_for_backward(x, p)
    return x ** p

def gradients_of_power(ctx, g):
    x, p = ctx.saved_tensors
    return g * p * x ** (p - 1), g * x ** p * x.log()

made("Power", power, gradients_of_power).apply(-x, torch.tensor(2.0)).sum().backward()

def ran(ctx, x, run, *weights):
    ctx.save_for_backward(x, *weights)
    ctx.run = run
    return run(x)

def again(ctx, g):
    saved, *weights = ctx.saved_tensors
    with torch.enable_grad():
        y = saved.detach().requires_grad_()
        found = torch.autograd.grad(ctx.run(y), [y, *weights], g)
    return found[0], None, *found[1:]

layer, locked = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
locked.lock = threading.Lock()
rerun = lambda name, run, weights: made(name, ran, again).apply(x, run, *weights).sum().backward()
rerun("Default", lambda y, m=layer: m(y), layer.parameters())
rerun("Global", lambda y: layer(y), layer.parameters())
rerun("Locked", locked, locked.parameters())
zero = torch.zeros(3, requires_grad=True)
call("Once").backward()
call("Detached", square, detached).backward()
call("Single", single).backward()
call("Unneeded", square, halved, x=x.detach())
call("NeededToo", square, x=x.detach())
END = torch.nan
call("NaN", root, slope, x=zero).backward()
END = torch.inf
call("Infinite", root, slope, x=zero).backward()
call("Overflowing", root, slope, x=zero).mul(torch.inf).backward()
"""
# The same, as a penalty on a gradient needs it.
SECOND = """
def detached(ctx, g):
    return 2 * g * ctx.saved_tensors[0].detach()

gradient_of_x, = torch.autograd.grad(made("Twice", square, detached).apply(x).sum(), x, create_graph=True)
(gradient_of_x * x).sum().backward()
y = made("Right").apply(x)
gradient_of_x, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
gradient_of_x.sum().backward()
"""


@pytest.fixture(scope="module")
def of_calls(tmp_path_factory):
    return watched(tmp_path_factory.mktemp("calls"), HEAD + CALLS, *AMPLE, torch=True)


def _found(functions, name):
    return [(each["level"], each["verdict"], each["property"]) for each in functions[name]["findings"]]


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("Once", [], ""),
        ("Detached", [("note", "silently detached", "DBL-CORRECT")], "the program takes no second derivatives"),
        ("Single", [("note", "misfits", "FWD-DTYPE")], "in double precision"),
        ("Unneeded", [("note", "differs", "VJP-FD")], "in calls that need no gradient"),
        ("NeededToo", [], ""),
        ("NaN", [], "the gradient of argument 0 of call 1 is NaN"),
        ("Infinite", [], "the gradient of argument 0 of call 1 is infinite"),
        ("Overflowing", [], ""),
        ("Refusing", [], ""),
        ("Mocked", [], ""),
        ("Power", [], ""),
        ("Default", [("note", "silently detached", "DBL-CORRECT")], "the program takes no second derivatives"),
    ],
)
def test_what_the_program_does_not_do_is_noted(of_calls, name, found, said):
    done, functions, _ = of_calls
    undecided = ("not verified", "not known")
    assert [each for each in _found(functions, name) if each[1] not in undecided] == found, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith(f"NOTE: __main__:{name}: ")]
    assert len(notes) == bool(said), done.stderr
    assert said in "".join(notes)


def test_objects_that_no_copy_can_give_other_tensors_are_left_out(of_calls):
    said = of_calls[0].stderr
    for name in ("Global", "Locked"):
        assert re.search(
            rf"__main__:{name}: it is not checked: argument 1 .* has tensors that are passed beside it", said
        )


def test_notes_are_no_faults(of_calls):
    said = of_calls[0].stderr
    rows = rows_of(said)
    assert {name for name, row in rows.items() if "WRONG" in row or "DIFFERS" in row} == set()
    assert "not verified" in rows["Unneeded"]
    assert "not verified" in rows["Refusing"]
    assert "__main__:Refusing: not verified: VJP-FD: forward refuses numbers near those of the call" in said
    assert all("holds" in rows[name] for name in ("Once", "Detached", "Single", "NeededToo"))


def test_second_derivatives_that_a_program_takes_must_be_right(tmp_path):
    done, functions, _ = watched(tmp_path, HEAD + SECOND, *AMPLE, torch=True)
    assert _found(functions, "Twice") == [("error", "silently detached", "DBL-CORRECT")], done.stderr
    assert _found(functions, "Right") == []
    assert done.returncode == 1


class Spike(torch.autograd.Function):
    """A step, whose gradient is that of a sigmoid."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        s = ctx.saved_tensors[0].sigmoid()
        return g * s * (1 - s)


def asked_of_a_spike(stage, differs):
    """The messages about a call in a stage."""
    sent = []
    suite.check(
        Spike, (torch.ones(3, requires_grad=True),), name="Spike", where="", stage=stage, done=(), seconds=60,
        means={}, uses=(), scripted=suite.BEYOND, copied=True, keep="", differs=differs, send=sent.append,
    )  # fmt: skip
    return [message for message in sent if "test" in message]


def test_nothing_is_said_of_second_derivatives_of_what_is_no_derivative():
    assert asked_of_a_spike("first numbers", False)[0]["differs"]
    assert [message["test"] for message in asked_of_a_spike("beyond", True)] == ["FWD-DTYPE"]
    assert "DBL-CORRECT" in [message["test"] for message in asked_of_a_spike("beyond", False)]
