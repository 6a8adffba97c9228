"""A program does not notice that it is watched, whatever happens to the processes that check its calls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.watching.watched_program import AMPLE, HEAD, watched

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

LOST = f"""{HEAD}
HERE = os.getpid()

def dying(ctx, x):
    if os.getpid() != HERE:
        os._exit(3)
    return square(ctx, x)

def hanging(ctx, x):
    if os.getpid() != HERE:
        time.sleep(1000)
    return square(ctx, x)

for _ in range(3):
    made("Dies", dying).apply(x)
    made("Right").apply(x)
made("Hangs", hanging).apply(x)
print("the end", x.sum().item())
"""


def test_a_process_that_dies_or_hangs_is_lost_and_the_program_goes_on(tmp_path):
    done, functions, document = watched(tmp_path, LOST, torch=True)
    assert done.stdout == "the end 3.0\n"
    assert done.returncode == 0, done.stderr
    assert functions.keys() == {"Right"}
    reasons = {each["target"].rpartition(":")[2]: each["message"] for each in document["problems"]}
    assert reasons == {"Dies": "ended in the middle of a check", "Hangs": "did not end in time; --limit gives more"}


def test_an_interrupt_ends_the_program_and_what_was_found_is_said(tmp_path):
    program = f"""{HEAD}
made("Wrong", backward=lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
open("began", "w").close()
time.sleep(1000)
"""
    tmp_path.joinpath("program.py").write_text(program)
    words = [sys.executable, "-m", "autograd_conformance", "watch", "--", "program.py"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=OUTSIDE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "began").exists():
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    assert "DIFFERS: VJP-FD" in err


WORKERS = f"""{HEAD}
import multiprocessing

Right = made("Right")

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, n):
        Right.apply(x).sum().backward()
        return n

if __name__ == "__main__":
    found = []
    for how in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context=how)
        found += [int(n) for n in loader]
    print(found)
"""


def test_worker_processes_are_watched(tmp_path):
    done, functions, _ = watched(tmp_path, WORKERS)
    assert done.stdout == "[0, 1, 2, 3, 0, 1, 2, 3]\n", done.stderr
    assert sum(each["status"] == 0 for each in functions.values()) == len(functions) > 0, done.stderr


COLLECTIVE = f"""{HEAD}
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)

def reduced(ctx, g):
    g = g.clone()
    dist.all_reduce(g)
    return 2 * g * ctx.saved_tensors[0]

made("Reduces", backward=reduced).apply(x).sum().backward()
made("Right").apply(x).sum().backward()
dist.destroy_process_group()
print("the end", x.grad.tolist())
"""


def test_a_function_that_calls_a_collective_is_left_out(tmp_path):
    done, functions, document = watched(tmp_path, COLLECTIVE, torch=True)
    assert done.stdout == "the end [4.0, 4.0, 4.0]\n", done.stderr
    assert functions["Right"]["status"] == 0
    assert [each["target"] for each in document["problems"]] == ["__main__:Reduces"]
    assert "it calls torch.distributed.all_reduce; check it with" in done.stderr


HUNGRY = f"""{HEAD}
HERE = os.getpid()

def hungry(ctx, x):
    if os.getpid() != HERE:
        ctx.memory = torch.ones(1 << 31)
    return square(ctx, x)

made("Hungry", hungry).apply(x).sum().backward()
made("Right").apply(x).sum().backward()
"""


def test_a_check_that_needs_too_much_memory_accuses_nobody(tmp_path):
    done, functions, document = watched(tmp_path, HUNGRY, torch=True)
    assert functions.keys() == {"Right"}, done.stderr
    assert [each["message"] for each in document["problems"]] == ["a check needs more than 4 GiB beside the program"]
    assert done.returncode == 0


# A program whose alarm comes in the middle of an import of the suite. Another thread takes it; the handler runs in the
# main one.
ALARM = f"""{HEAD}
import signal

def alarm():
    while "hypothesis.core" not in sys.modules:
        time.sleep(0.001)
    signal.raise_signal(signal.SIGALRM)

alarming = threading.Thread(target=alarm, daemon=True)
"""

LOOP = f"""{ALARM}
import asyncio

async def program():
    came = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGALRM, came.append, "came")
    alarming.start()
    made("First").apply(x)
    await asyncio.sleep(0.1)
    print(came)

asyncio.run(program())
"""


def test_an_event_loop_hears_a_signal_once(tmp_path):
    done, functions, _ = watched(tmp_path, LOOP, *AMPLE, torch=True)
    assert done.stdout == "['came']\n", done.stderr
    assert functions["First"]["status"] == 0, done.stderr


INVISIBLE = f"""{ALARM}
import warnings

class Late(Exception):
    pass

def late(*_):
    raise Late

COUNTS = torch.zeros(1).share_memory_()

def counting(ctx, x):
    COUNTS.add_(1)
    return square(ctx, x)

signal.signal(signal.SIGALRM, late)
alarming.start()
try:
    made("First").apply(x)
    time.sleep(10)
except Late:
    print("late, as it should be")
for _ in range(2):
    made("Counting", counting).apply(x).sum().backward()
    warnings.warn("said once")
print(COUNTS.item(), "pytest" in sys.modules)
with torch.autograd.graph.save_on_cpu(), torch.autograd.set_detect_anomaly(True):
    made("Hooked").apply(x).sum().backward()

def difference(ctx, a, b):
    ctx.save_for_backward(a - b)
    return ((a - b) ** 2).sum()

def of_both(ctx, g):
    return 2 * g * ctx.saved_tensors[0], -2 * g * ctx.saved_tensors[0]

made("Loss", difference, of_both).apply(x, torch.zeros(3)).backward()

def forgetting(ctx, g):
    found = gradient(ctx, g)
    del ctx.others
    return found

made("Once", backward=forgetting).apply(x).sum().backward()

def nothing(ctx, g):
    raise NotImplementedError

made("Nothing", backward=nothing).apply(x)
made("Casts", lambda ctx, x: square(ctx, x).bfloat16()).apply(x).sum().backward()
made("Big", backward=lambda ctx, g: 3 * g * ctx.saved_tensors[0]).apply(torch.randn(700, 700, requires_grad=True))
"""


def test_what_else_a_program_may_notice_stays_and_what_it_does_not_do_is_no_fault(tmp_path):
    done, functions, _ = watched(tmp_path, INVISIBLE, *AMPLE, torch=True)
    assert done.stdout == "late, as it should be\n2.0 False\n", done.stderr
    assert done.stderr.count("UserWarning: said once") == 1
    assert {name for name, each in functions.items() if each["status"] == 1} == {"Big"}, done.stderr
    right = {"First", "Counting", "Hooked", "Loss", "Once"}
    assert {name for name, each in functions.items() if each["status"] == 0} >= right, done.stderr
    assert "__main__:Nothing: it is not checked: its backward refuses it (NotImplementedError)" in done.stderr


OF_HYPOTHESIS = f"""{HEAD}
from hypothesis import given, strategies as st

Wrong, Right = made("Wrong", backward=lambda ctx, g: 3 * g * ctx.saved_tensors[0]), made("Right")

@given(st.integers(1, 5))
def test_calls(n):
    assert Wrong.apply(x + n).sum() == Right.apply(x + n).sum()
"""


def test_a_test_of_hypothesis_is_watched_and_keeps_its_deadline(tmp_path):
    tmp_path.joinpath("test_mine.py").write_text(OF_HYPOTHESIS)
    command = ("-m", "pytest", "-q", "test_mine.py")
    done, functions, _ = watched(tmp_path, "", command=command, torch=True)
    assert "1 passed" in done.stdout, done.stdout
    assert {name: each["status"] for name, each in functions.items()} == {"Wrong": 1, "Right": 0}, done.stderr


COMPILED = f"""{HEAD}
Square = made("Square")
x = torch.ones(4, requires_grad=True)
with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
    for _ in range(3):
        Square.apply(x).sum().backward()
print("the end", x.grad.tolist())
"""


def test_a_compiled_backward_does_not_see_what_looks_at_it(tmp_path):
    done, _, _ = watched(tmp_path, COMPILED, *AMPLE, torch=True)
    assert done.stdout == "the end [6.0, 6.0, 6.0, 6.0]\n", done.stderr
    assert done.returncode == 0
