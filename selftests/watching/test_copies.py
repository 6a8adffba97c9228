"""Where no process can be forked, copies of a call are checked in the program: that finds as much, and is unnoticed."""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import subprocess
import sys
import threading

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.inside import copies, snapshot
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.watching import planted
from autograd_conformance.selftests.watching.watched_program import AMPLE, HEAD, watched
from autograd_conformance.suites import watched as suite

ACCELERATOR = PACKAGE / "examples" / "accelerator"

# `planted.py` on a platform without fork.
FORKLESS = """
import os, runpy, sys
if hasattr(os, "fork"):
    del os.fork
sys.argv = ["planted.py", "1"]
runpy.run_path("planted.py", run_name="__main__")
"""
# These have an argument that refuses to be copied.
UNCOPIED = ("WithObject", "WrongWithObject")
COPIED = (
    "WithClosure", "WrongWithClosure", "WrongMask", "Writes", "KeepsInput", "Leaks", "Counts", "Switches", "Unwritten",
    "SameTwice", "Block", "WrongBlock", "WrongMethod", "BackwardAlone", "WrongEmpties", "SinglePrecision",
)  # fmt: skip


@pytest.fixture(scope="module")
def of_planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    shutil.copy(planted.__file__, folder)
    chosen = [word for name in (*COPIED, *UNCOPIED) for word in ("--only", f"__main__:{name}")]
    done, functions, document = watched(folder, FORKLESS, "--in-process", *AMPLE, *chosen, torch=True)
    plain = subprocess.run(
        [sys.executable, "planted.py", "1"], cwd=folder, env=outside_with(folder), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done, plain, functions, {each["target"].partition(":")[2]: each["message"] for each in document["problems"]}


@pytest.mark.parametrize("name", COPIED)
def test_each_planted_fault_is_named_and_its_right_twin_accepted(of_planted, name):
    expected = planted.FUNCTIONS[name][-1]
    found = of_planted[2][name]["findings"]
    assert [each["property"] for each in found if each["level"] == "error"] == [expected] * bool(expected)


@pytest.mark.parametrize("name", UNCOPIED)
def test_what_refuses_a_copy_is_left_out(of_planted, name):
    assert name not in of_planted[2]
    assert "argument 1 (Scaling) cannot be copied" in of_planted[3][name]


def test_the_program_computes_and_prints_what_it_does_without(of_planted):
    done, plain, _, _ = of_planted
    assert "the end" in plain.stdout
    assert done.stdout == plain.stdout
    assert done.returncode == 1


DEVICE = f"""{HEAD}
import simulated_accelerator
from torch.utils.checkpoint import checkpoint

torch.manual_seed(3)
Right, Wrong = made("Right"), made("Wrong", backward=lambda ctx, g: g * ctx.saved_tensors[0])

def dropped(ctx, x):
    print("forward")
    mask = (torch.rand_like(x) > 0.5).to(x.dtype)
    ctx.save_for_backward(mask)
    return x * mask

Drops = made("Drops", dropped, lambda ctx, g: g * ctx.saved_tensors[0])
Inner, OnHost = made("Inner"), made("OnHost", backward=lambda ctx, g: (2 * g * ctx.saved_tensors[0]).cpu())
torch.set_default_device("simulated")
made("Default", lambda ctx, x: square(ctx, x) * torch.ones(x.shape)).apply(torch.ones(3, requires_grad=True))
torch.set_default_device(None)
for device in ("simulated:1", "simulated:0"):
    layer = torch.nn.Linear(3, 3).to(device)
    x = layer(torch.randn(2, 3, device=device))
    loss = (Right.apply(x) + Wrong.apply(x) + Drops.apply(x) + OnHost.apply(x)).sum()
    checkpoint(Inner.apply, layer.weight, use_reentrant=True).sum().backward()
    print(loss.item().hex(), layer.weight.grad.sum().item().hex())
    print(torch.rand(1).item(), torch.rand(1, device="simulated:0").item(), torch.rand(1, device="simulated:1").item())
"""


def test_calls_on_an_accelerator_are_checked_there_and_the_program_does_not_notice(tmp_path):
    if shutil.which("c++") is None:
        pytest.skip("there is no compiler for the device")
    tmp_path.joinpath("program.py").write_text(DEVICE)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        given, environment = [sys.executable, *words, "program.py"], outside_with(ACCELERATOR)
        return subprocess.run(given, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    plain, done = run(), run("-m", "autograd_conformance", "watch", "--in-process", *AMPLE, "--report", "r.json", "--")
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.count("forward") == 2
    assert done.stdout == plain.stdout
    found = json.loads((tmp_path / "r.json").read_text())["functions"]
    assert {each["name"].partition(":")[2]: each["status"] for each in found} == {
        "Right": 0, "Wrong": 1, "Drops": 0, "OnHost": 1,
    }, done.stderr  # fmt: skip
    assert (
        "Default: it is not checked: a forked process cannot use tensors on simulated, and a default dev" in done.stderr
    )
    # Its calls within backward could not be checked without waiting for the thread that makes them.
    assert "Inner: it is not checked: no call was an ordinary one" in done.stderr


def test_a_check_that_does_not_end_is_given_up_and_the_next_is_not_begun(monkeypatch):
    monkeypatch.setattr(copies, "GRACE", 0.0)
    ends, began = threading.Event(), threading.Event()

    def work(send):
        began.set()
        ends.wait()
        send({"test": "VJP-FD"})

    assert list(copies.messages(contextlib.nullcontext, work, 0.05)) == [
        {"lost": "did not end in time; --limit gives more"}
    ]
    assert began.is_set()
    monkeypatch.setattr(snapshot, "unforkable", lambda _: "no fork")
    assert copies.impossible([], True) == "no fork, and an earlier check in this process did not end in time"
    ends.set()
    copies._ENDLESS[-1].join()
    assert copies.impossible([], True) == ""
    assert copies.impossible([], False) == "no fork; --in-process checks copies of it in the program"


def test_what_a_check_prints_and_leaves_is_not_there_afterwards(capsys):
    def work(send):
        print("of the check")
        torch.manual_seed(1)
        torch.set_default_dtype(torch.float64)
        send({"finished": "numbers"})

    before = torch.get_rng_state(), torch.get_default_dtype(), sys.stdout
    found = []
    for message in copies.messages(suite.kept, work, 60):
        print("of the program")
        found.append(message)
    assert found == [{"finished": "numbers"}]
    assert capsys.readouterr().out == "of the program\n"
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_default_dtype(), sys.stdout) == before[1:]


def test_a_check_leaves_no_tensor_behind():
    x = torch.ones(3, requires_grad=True)

    def work(send):
        suite.check(
            Square, (x,), name="Square", where="", stage="numbers", done=(), seconds=60, means={}, uses=(),
            scripted=suite.NUMBERS, copied=True, keep="", differs=False, send=send,
        )  # fmt: skip

    def count():
        gc.collect()
        return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())

    list(copies.messages(suite.kept, work, 60))
    before = count()
    assert {"finished": "numbers"} in list(copies.messages(suite.kept, work, 60))
    assert count() <= before


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


@pytest.mark.parametrize("others", [False, True])
def test_where_other_threads_run_nothing_is_asked_that_they_would_see(monkeypatch, others):
    running = [threading.main_thread(), *[threading.Thread()] * others]
    monkeypatch.setattr(threading, "enumerate", lambda: running)
    unseen = ("MEM-WRITTEN", "ENV-SETTINGS", "ENV-SETTINGS/seeds")
    assert suite._unasked_in_program(True) == unseen * others
    assert suite._unasked_in_program(False) == ()


def test_nothing_is_checked_in_the_program_unless_that_is_asked_for(tmp_path):
    done, functions, _ = watched(tmp_path, f"{HEAD}\ndel os.fork\nmade('Right').apply(x)\n", torch=True)
    assert not functions
    assert "cannot be forked; --in-process checks copies of it in the program" in done.stderr


COLLECTIVE = f"""{HEAD}
del os.fork
torch.distributed.init_process_group("gloo", init_method=f"file://{{os.getcwd()}}/store", rank=0, world_size=1)
made("Right").apply(x)
"""


def test_a_process_with_collectives_is_left_out(tmp_path):
    done, functions, _ = watched(tmp_path, COLLECTIVE, "--in-process", torch=True)
    assert not functions
    assert "a check in the process itself could meet its collectives" in done.stderr


WITHIN_HYPOTHESIS = f"""{HEAD}
del os.fork
from hypothesis import given, settings, strategies as st

Right, Wrong = made("Right"), made("Wrong", backward=lambda ctx, g: g * ctx.saved_tensors[0])

@settings(max_examples=5, database=None)
@given(st.data())
def test(data):
    n = data.draw(st.integers(1, 3))
    (Right.apply(x) + Wrong.apply(x)).sum().backward()
    data.draw(st.integers(1, 3))

test()
"""


def test_a_test_of_hypothesis_goes_on_after_a_check(tmp_path):
    done, functions, _ = watched(tmp_path, WITHIN_HYPOTHESIS, "--in-process", *AMPLE, torch=True)
    assert "Error" not in done.stderr
    assert {name: each["status"] for name, each in functions.items()} == {"Right": 0, "Wrong": 1}, done.stderr
