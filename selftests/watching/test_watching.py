"""``watch`` as its users call it: the faults of a program's Functions are named, and the program does not notice it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.selftests.watching import planted

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

HEAD = """
import os, sys, threading, time
import torch
from torch.autograd import Function

def made(name, forward=None, backward=None, **methods):
    found = {"forward": forward or square, "backward": backward or gradient, **methods}
    return type(name, (Function,), {**{n: staticmethod(f) for n, f in found.items()}, "__module__": __name__,
                                    "__qualname__": name})

def square(ctx, x, *others):
    ctx.save_for_backward(x)
    ctx.others = len(others)
    return x * x

def gradient(ctx, g):
    return (2 * g * ctx.saved_tensors[0], *[None] * ctx.others)

x = torch.ones(3, requires_grad=True)
"""


def watched(folder: Path, program: str, *words: str, command: tuple[str, ...] = ("program.py",), **more):
    """What the command prints of a program, its exit status, and its report as the Functions by name."""
    folder.joinpath("program.py").write_text(program)
    done = started("watch", *words, "--report", "r.json", "--", *command, folder=folder, **more)
    document = json.loads((folder / "r.json").read_text())
    return done, {each["name"].rpartition(":")[2]: each for each in document["functions"]}, document


def rows_of(text: str) -> dict[str, str]:
    """The rows of the table at the end, by the Function's name."""
    found = (line.split(None, 1) for line in text.splitlines() if line.startswith("  __main__:"))
    return {name.rpartition(":")[2]: row for name, row in found}


@pytest.fixture(scope="module")
def of_planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    shutil.copy(planted.__file__, folder / "planted.py")
    done = started("watch", "--budget", "100", "--report", "r.json", "--", "planted.py", "2", folder=folder)
    plain = subprocess.run(
        [sys.executable, "planted.py", "2"], cwd=folder, env=OUTSIDE, capture_output=True, text=True, check=True
    )
    document = json.loads((folder / "r.json").read_text())
    return done, plain, {each["name"].rpartition(":")[2]: each for each in document["functions"]}


@pytest.mark.parametrize("name", planted.FUNCTIONS)
def test_each_planted_fault_is_named_and_its_right_twin_accepted(of_planted, name):
    expected = planted.FUNCTIONS[name][-1]
    found = of_planted[-1][name]["findings"]
    assert [each["property"] for each in found if each["level"] == "error"] == [expected] * bool(expected)
    assert of_planted[-1][name]["status"] == int(bool(expected))


def test_the_program_computes_and_prints_what_it_does_without(of_planted):
    done, plain, _ = of_planted
    assert done.stdout == plain.stdout
    assert "the end" in plain.stdout
    assert done.returncode == 1


PROGRAM = f"""{HEAD}
from torch.utils.checkpoint import checkpoint

Threaded, Inner, Checkpointed, Unrecorded, InPlace = map(made, ("Threaded", "Inner", "Checkpointed", "Unrecorded", "F"))

def work():
    own = torch.ones(3, requires_grad=True)
    for _ in range(20):
        Threaded.apply(own).sum().backward()

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]

def calling(ctx, g):
    with torch.enable_grad():
        y = ctx.saved_tensors[0].detach().requires_grad_()
        return g * torch.autograd.grad(Inner.apply(y).sum(), y)[0]

made("Outer", backward=calling).apply(x).sum().backward()
checkpoint(lambda y: Checkpointed.apply(y), x, use_reentrant=True).sum().backward()
with torch.no_grad():
    Unrecorded.apply(x)
with torch.inference_mode():
    Unrecorded.apply(x)
Unrecorded.apply(x.detach())
Mapped = made("Mapped", lambda x: x * x, gradient, generate_vmap_rule=True,
              setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(*inputs), setattr(ctx, "others", 0))[0])
Mapped.generate_vmap_rule = True
torch.func.vmap(Mapped.apply)(torch.ones(3, 2, requires_grad=True)).sum().backward()
torch.func.grad(lambda y: Mapped.apply(y).sum())(torch.ones(3))
for n in range(50):
    made("main.<locals>.Again").apply(x).sum().backward()

class NoCopy:
    def __deepcopy__(self, memo):
        raise TypeError("no copy")
    __reduce__ = __deepcopy__

made("Objects").apply(x, NoCopy(), threading.Lock(), lambda: 3).sum().backward()

def narrow(ctx, x):
    assert x.dtype == torch.float32
    return square(ctx, x)

made("Narrow", narrow).apply(x).sum().backward()
made("NarrowAndWrong", narrow, lambda ctx, g: 3 * g * ctx.saved_tensors[0]).apply(x).sum().backward()

def doubled(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)

made("InPlace", doubled, lambda ctx, g: 2 * g).apply(x * 1).sum().backward()

def dropped(ctx, x):
    mask = (torch.rand_like(x) > 0.5).to(x.dtype)
    ctx.save_for_backward(mask)
    return x * mask

made("Drops", dropped, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x).sum().backward()
relu = made("Relu", lambda ctx, x: (ctx.save_for_backward(x), x.clamp(min=0))[1],
            lambda ctx, g: g * (ctx.saved_tensors[0] > 0))
relu.apply(torch.tensor([0.0, 2.0, 0.0, 1.0], requires_grad=True)).sum().backward()

@torch.library.custom_op("watched::tripled", mutates_args=())
def tripled(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k

tripled.register_autograd(lambda ctx, g: (2 * g, None), setup_context=lambda ctx, inputs, output: None)
tripled(x, 3.0).sum().backward()
torch.compile(lambda y: Inner.apply(y) * 2, backend="eager")(x).sum().backward()
print("the end")
sys.exit(5)
"""


@pytest.fixture(scope="module")
def of_program(tmp_path_factory):
    return watched(tmp_path_factory.mktemp("program"), PROGRAM, "--budget", "100", torch=True)


def test_whatever_a_program_does_its_calls_are_checked(of_program):
    done, functions, _ = of_program
    assert done.stdout == "the end\n"
    assert done.returncode == 5
    wrong = {name for name, each in functions.items() if each["status"] == 1}
    assert wrong == {"NarrowAndWrong", "tripled"}, done.stderr
    right = {"Threaded", "Inner", "Outer", "Checkpointed", "Objects", "Narrow", "InPlace", "Drops", "Relu"}
    assert {name for name, each in functions.items() if each["status"] == 0} >= right, done.stderr
    assert "program.py ended with exit status 5" in done.stderr


def test_a_call_that_autograd_does_not_record_is_left_out(of_program):
    done, functions, _ = of_program
    for name in ("Unrecorded", "Mapped"):
        assert name not in functions
        assert f"__main__:{name}: it is not checked: no call was an ordinary one" in done.stderr


def test_calls_are_counted_across_threads_and_classes(of_program):
    rows = rows_of(of_program[0].stderr)
    assert rows["Threaded"].startswith("holds         80 calls, ")
    assert rows["main.<locals>.Again"].startswith("holds         50 calls, ")


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
    assert reasons == {"Dies": "ended in the middle of a check", "Hangs": "did not end in time"}


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


def test_patterns_choose_what_is_watched(tmp_path):
    program = f"{HEAD}\nfor name in ('One', 'Two', 'Other'):\n    made(name).apply(x)\n"
    _, functions, _ = watched(tmp_path, program, "--only", "[OT]*", "--skip", "__main__:Oth*", torch=True)
    assert functions.keys() == {"One", "Two"}


def test_a_fault_of_some_calls_alone_says_of_how_many(tmp_path):
    of_long = "lambda ctx, g: (2 if len(g) < 5 else 3) * g * ctx.saved_tensors[0]"
    program = f"""{HEAD}
Long = made("Long", backward={of_long})
for n in range(1, 7):
    Long.apply(torch.ones(n, requires_grad=True))
"""
    done, _, _ = watched(tmp_path, program, "--budget", "100", torch=True)
    assert "__main__:Long" in done.stderr
    assert "VJP-FD fails in 2 of 6 calls" in done.stderr, done.stderr


MISTAKES = {
    "give the command whose calls to check, as in: autograd-conformance watch -- train.py": (),
    "--report must be a file that ends in .json or .sarif, got r.txt": ("--report", "r.txt", "--", "program.py"),
    "twice is not a finite number of at least 0": ("--budget", "twice", "--", "program.py"),
    "-1 is not a finite number of at least 0": ("--limit", "-1", "--", "program.py"),
    "nothing-there cannot be started: No such file or directory": ("--", "nothing-there"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named(tmp_path, message):
    done = started("watch", *MISTAKES[message], folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_program_without_functions_is_not_verified(tmp_path):
    done, functions, _ = watched(tmp_path, "print('nothing')")
    assert done.returncode == 2
    assert not functions
    assert "no custom Function was called" in done.stderr


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


MEANT = f"""{HEAD}
def through(ctx, x):
    return x.round()

class Through(Function):
    '''A straight-through estimator.'''
    forward, backward = staticmethod(through), staticmethod(lambda ctx, g: g)

def product(ctx, a, b):
    ctx.save_for_backward(a, b)
    return a * b

OneOfTwo = made("OneOfTwo", product, lambda ctx, g: (g * ctx.saved_tensors[1], 2 * g * ctx.saved_tensors[0]))
y = torch.tensor([0.3, 1.2, 2.6], requires_grad=True)
Through.apply(y)
made("Double", backward=lambda ctx, g: 4 * g * ctx.saved_tensors[0]).apply(y)
OneOfTwo.apply(y, x)
"""


def test_a_gradient_that_may_be_meant_differs_and_one_of_two_is_wrong(tmp_path):
    done, functions, _ = watched(tmp_path, MEANT, "--budget", "100", torch=True)
    assert done.returncode == 1
    words = {name: row.split()[0] for name, row in rows_of(done.stderr).items()}
    assert words == {"Through": "DIFFERS", "Double": "DIFFERS", "OneOfTwo": "WRONG"}, done.stderr
    text = " ".join(done.stderr.split())
    assert '[tool.autograd-conformance.functions] of pyproject.toml: "__main__:Through" = { surrogate = true }' in text
    assert "says: A straight-through estimator." in text
    assert "1 wrong, 2 with another gradient than the derivative" in done.stderr
    assert {each["status"] for each in functions.values()} == {1}


def test_what_a_project_means_is_no_fault(tmp_path):
    table = '[tool.autograd-conformance.functions]\n"__main__:[TD]*" = { surrogate = true }\n'
    tmp_path.joinpath("pyproject.toml").write_text(table)
    done, _, _ = watched(tmp_path, MEANT, "--budget", "100", torch=True)
    words = {name: row.split()[0] for name, row in rows_of(done.stderr).items()}
    assert words == {"Through": "holds", "Double": "holds", "OneOfTwo": "WRONG"}, done.stderr


def test_an_intention_that_is_none_is_named(tmp_path):
    tmp_path.joinpath("pyproject.toml").write_text('[tool.autograd-conformance.functions]\n"a:b" = { surogate = 1 }\n')
    done = started("watch", "--", "program.py", folder=tmp_path)
    assert done.returncode == 2
    assert "unknown word 'surogate'; choose from: surrogate" in done.stderr


SUITE = f"""{HEAD}
import pytest

Wrong, Right = made("Wrong", backward=lambda ctx, g: g * ctx.saved_tensors[0]), made("Right")

@pytest.mark.parametrize("n", range(4))
def test_the_call(n):
    assert Wrong.apply(x + n).sum() == Right.apply(x + n).sum()
"""


@pytest.mark.parametrize("words", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_pytest_watches_and_fails_for_a_fault(tmp_path, words):
    tmp_path.joinpath("test_mine.py").write_text(SUITE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--watch-functions",
        "test_mine.py",
        *words,
    ]
    done = subprocess.run(command, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert "DIFFERS: VJP-FD" in done.stdout
    assert "test_mine:Right  holds         4 calls" in done.stdout, done.stdout


INVISIBLE = f"""{HEAD}
import signal, warnings

class Late(Exception):
    pass

def late(*_):
    raise Late

COUNTS = torch.zeros(1).share_memory_()

def counting(ctx, x):
    COUNTS.add_(1)
    return square(ctx, x)

def slow(ctx, x):
    time.sleep(0.3)
    return square(ctx, x)

signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    made("Slow", slow).apply(x)
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
    done, functions, _ = watched(tmp_path, INVISIBLE, "--budget", "100", torch=True)
    assert done.stdout == "late, as it should be\n2.0 False\n", done.stderr
    assert done.stderr.count("UserWarning: said once") == 1
    assert {name for name, each in functions.items() if each["status"] == 1} == {"Big"}, done.stderr
    right = {"Counting", "Hooked", "Loss", "Once"}
    assert {name for name, each in functions.items() if each["status"] == 0} >= right, done.stderr
    assert "__main__:Nothing: it is not checked: its backward is not implemented" in done.stderr


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
