"""``watch`` as its users call it: the faults of a program's Functions are named, and the program does not notice it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.selftests.watching import planted
from autograd_conformance.selftests.watching.watched_program import AMPLE, HEAD, rows_of, watched

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)


@pytest.fixture(scope="module")
def of_planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    shutil.copy(planted.__file__, folder / "planted.py")
    done = started("watch", *AMPLE, "--report", "r.json", "--", "planted.py", "2", folder=folder)
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
    return watched(tmp_path_factory.mktemp("program"), PROGRAM, *AMPLE, torch=True)


def test_whatever_a_program_does_its_calls_are_checked(of_program):
    done, functions, _ = of_program
    assert done.stdout == "the end\n"
    assert done.returncode == 5
    wrong = {name for name, each in functions.items() if each["status"] == 1}
    assert wrong == {"NarrowAndWrong", "tripled"}, done.stderr
    right = {"Threaded", "Inner", "Outer", "Checkpointed", "Objects", "Narrow", "InPlace", "Drops", "Relu", "Mapped"}
    assert {name for name, each in functions.items() if each["status"] == 0} >= right, done.stderr
    assert "program.py ended with exit status 5" in done.stderr


def test_a_call_that_autograd_does_not_record_is_left_out(of_program):
    done, functions, _ = of_program
    assert "Unrecorded" not in functions
    assert "__main__:Unrecorded: it is not checked: no call was an ordinary one" in done.stderr


def test_calls_are_counted_across_threads_and_classes(of_program):
    rows = rows_of(of_program[0].stderr)
    assert rows["Threaded"].startswith("holds         80 calls, ")
    assert rows["main.<locals>.Again"].startswith("holds         50 calls, ")


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
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
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
    done, functions, _ = watched(tmp_path, MEANT, *AMPLE, torch=True)
    assert done.returncode == 1
    words = {name: row.split()[0] for name, row in rows_of(done.stderr).items()}
    assert words == {"Through": "DIFFERS", "Double": "DIFFERS", "OneOfTwo": "WRONG"}, done.stderr
    text = " ".join(done.stderr.split())
    assert '[tool.autograd-conformance.functions] of pyproject.toml: "__main__:Through" = { surrogate = true }' in text
    assert "says: A straight-through estimator." in text
    assert "1 wrong, 2 with another gradient than the derivative" in done.stderr
    assert {each["status"] for each in functions.values()} == {1}


def test_a_right_gradient_that_might_as_well_be_zero_is_no_sign_that_it_is_not_meant(tmp_path):
    program = f"""{HEAD}
def step(ctx, x):
    ctx.save_for_backward(x)
    return (x > 0).to(x.dtype)

# The first gradient is 2e-16: that is within the error of a slope of 0.
Spike = made("Spike", step, lambda ctx, g: g * torch.exp(-(10 * ctx.saved_tensors[0]) ** 2))
for value in (0.6, 0.3):
    Spike.apply(torch.full((10,), value, requires_grad=True)).sum().backward()
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    assert rows_of(done.stderr)["Spike"].startswith("DIFFERS"), done.stderr


def test_a_call_that_is_too_large_to_explain_is_compared_as_a_whole(tmp_path):
    program = f"""{HEAD}
def step(ctx, x, *others):
    ctx.save_for_backward(x)
    return (x > 0).to(x.dtype)

def product(ctx, a, b):
    ctx.save_for_backward(a, b)
    return a * b

x = torch.full((40, 500), 0.7, requires_grad=True)
made("Spike", step, lambda ctx, g: g / (1 + ctx.saved_tensors[0] ** 2)).apply(x).sum().backward()
OneOfTwo = made("OneOfTwo", product, lambda ctx, g: (g * ctx.saved_tensors[1], 2 * g * ctx.saved_tensors[0]))
OneOfTwo.apply(x, x + 1).sum().backward()
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    words = {name: row.split()[0] for name, row in rows_of(done.stderr).items()}
    assert words == {"Spike": "DIFFERS", "OneOfTwo": "WRONG"}, done.stderr


def test_a_derivative_that_is_nearly_right_is_undecided(tmp_path):
    program = f"""{HEAD}
for name, error in (("Nearly", 1e-7), ("Wrong", 1e-4)):
    backward = lambda ctx, g, error=error: (2 + error) * g * ctx.saved_tensors[0]
    made(name, backward=backward).apply(x).sum().backward()
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    words = {name: row.split()[0] for name, row in rows_of(done.stderr).items()}
    assert words == {"Nearly": "not", "Wrong": "DIFFERS"}, done.stderr
    assert "__main__:Nearly: not verified: VJP-FD: it is nearly right" in done.stderr


def test_constants_that_belong_together_stay_together(tmp_path):
    program = f"""{HEAD}
def scaled(ctx, x, factor, inverse):
    ctx.save_for_backward(inverse)
    return x * factor

factor = torch.tensor([2.0, 4.0, 0.5])
Right = made("Right", scaled, lambda ctx, g: (g / ctx.saved_tensors[0], None, None))
Right.apply(x, factor, 1 / factor).sum().backward()
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    assert rows_of(done.stderr)["Right"].startswith("holds"), done.stderr


def test_what_asserts_single_precision_is_checked_in_it(tmp_path):
    program = f"""{HEAD}
def single(ctx, x):
    assert x.dtype == torch.float32
    return square(ctx, x)

def tripled(ctx, g):
    return 3 * g * ctx.saved_tensors[0]

def of_single(ctx, g):
    assert g.dtype == torch.float32
    return tripled(ctx, g)

def refusing(ctx, g):
    assert False, "for sums alone"

made("Forward", single, tripled).apply(x).sum().backward()
made("Backward", backward=of_single).apply(x).sum().backward()
made("Refuses", backward=refusing).apply(x)
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    words = {name: row.split()[0] for name, row in rows_of(done.stderr).items()}
    assert words == {"Forward": "DIFFERS", "Backward": "DIFFERS", "Refuses": "not"}, done.stderr
    assert "its backward refuses it (AssertionError: for sums alone)" in done.stderr


def test_a_call_that_is_too_large_does_not_keep_others_from_being_checked(tmp_path):
    program = f"""{HEAD}
Wrong = made("Wrong", backward=lambda ctx, g: g * ctx.saved_tensors[0])
Wrong.apply(torch.ones(2000, 1000, requires_grad=True))
Wrong.apply(x).sum().backward()
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    assert rows_of(done.stderr)["Wrong"].startswith("DIFFERS"), done.stderr
    assert "__main__:Wrong: some calls are not checked: its tensors have more than 1048576 elements" in done.stderr


def test_random_numbers_that_seldom_change_a_result_are_seen(tmp_path):
    program = f"""{HEAD}
def drawn(ctx, x):
    ctx.save_for_backward((torch.rand_like(x) < 0.98).to(x.dtype))
    return x * ctx.to_save[0]

torch.manual_seed(0)
made("Right", drawn, lambda ctx, g: g * ctx.saved_tensors[0]).apply(torch.ones(10, requires_grad=True)).sum().backward()
"""
    done, _, _ = watched(tmp_path, program, *AMPLE, torch=True)
    assert rows_of(done.stderr)["Right"].startswith("holds"), done.stderr


def test_what_a_project_means_is_no_fault(tmp_path):
    table = '[tool.autograd-conformance.functions]\n"__main__:[TD]*" = { surrogate = true }\n'
    tmp_path.joinpath("pyproject.toml").write_text(table)
    done, _, _ = watched(tmp_path, MEANT, *AMPLE, torch=True)
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
