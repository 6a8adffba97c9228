"""``record`` as its users call it: what a program calls is declared, whatever the program does, and check finds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograd_conformance.harness.check.declaration import loading
from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.support.warm import started

HEAD = """
import os, sys
import torch


def function(forward, backward, name):
    return type(name, (torch.autograd.Function,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__, "__qualname__": name
    })


def scaled(ctx, x, factor):
    return x * factor


Scale = function(lambda ctx, x, factor: setattr(ctx, "factor", factor) or x * factor, lambda ctx, g: (g * ctx.factor, None), "Scale")
Wrong = function(lambda ctx, x: x * 3, lambda ctx, g: g * 2, "Wrong")
Reshaped = function(lambda ctx, x, k: setattr(ctx, "k", k) or x.view(2, 4).sum(1) * k, lambda ctx, g: (g[:, None].expand(-1, 4).reshape(-1) * ctx.k, None), "Reshaped")
SECRET = 1234.56789
"""  # noqa: E501

CALLS = """
def main():
    for n in (2, 3, 5):
        Scale.apply(torch.full((n,), SECRET, requires_grad=True), 2.0).sum().backward()
        Wrong.apply(torch.ones(n, 7, requires_grad=True)).sum().backward()
        Reshaped.apply(torch.ones(8, requires_grad=True), 1)
"""
GUARDED = f"{HEAD}{CALLS}\n\nif __name__ == '__main__':\n    main()\n"


def recorded(folder: Path, program: str, *words: str, output: str = "declared.py"):
    """What the command prints for a program, and the text of the file that it writes."""
    folder.joinpath("program.py").write_text(program)
    done = started("record", "-o", output, "--", *(words or ["program.py"]), folder=folder)
    path = folder / output
    return done, path.read_text() if path.exists() else ""


def declared(text: str) -> dict[str, list[str]]:
    """The texts of the arguments, by the name of the declaration."""
    blocks = re.findall(r"^(\w+) = Declaration\(\n    \S+\n((?:    .*\n)*)", text, re.MULTILINE)
    return {name: re.findall(r'^    "(.*?)",', body, re.MULTILINE) for name, body in blocks}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    return folder, *recorded(folder, GUARDED)


def test_each_function_is_declared(whole):
    _, done, text = whole
    assert done.returncode == 0, done.stderr
    assert declared(text) == {
        "scale": ["float[...](600..3000)", "2.0"],
        "wrong": ["float[...](0.5..2)"],
        "reshaped": ["float[8](0.5..2)", "1"],
    }
    assert "program.py" in text.splitlines()[0]
    assert "declared.py: 3 of 3 Functions are declared" in done.stdout


def test_the_number_of_calls_and_the_guesses_are_said(whole):
    text = whole[2]
    assert "# __main__:Scale: 3 calls, of 3 kinds." in text
    assert "# __main__:Reshaped: 3 calls, all of one kind: nothing shows what may vary." in text
    assert "# Guess, of which forward takes others, too: the shape was always [n,m]." in text
    assert "# Lengths: numbers never varied. Calls with others raise." in text


def test_no_values_of_tensors_are_written(whole):
    assert "1234" not in whole[2]


def test_check_finds_what_is_wrong_and_accuses_nothing_else(whole):
    folder, _, _ = whole
    done = started("check", "declared.py", "--profile", "quick", "--seed", "0", folder=folder, torch=True)
    assert done.returncode == 1, done.stdout
    assert "3 Functions: 2 without a fault, 1 wrong (Wrong)" in done.stdout


def test_a_program_that_crashes_leaves_what_was_seen(tmp_path):
    crashing = GUARDED.replace("        Wrong.apply", "        os.abort() if n == 3 else None\n        Wrong.apply")
    done, text = recorded(tmp_path, crashing)
    assert done.returncode == 2
    assert "program.py ended with SIGABRT; what it called until then counts" in done.stderr
    assert set(declared(text)) == {"scale", "wrong", "reshaped"}


def test_what_child_processes_call_counts(tmp_path):
    forking = GUARDED.replace("    main()\n", "    pid = os.fork()\n    main() if not pid else os.waitpid(pid, 0)\n")
    done, text = recorded(tmp_path, forking)
    assert done.returncode == 0, done.stderr
    assert "# __main__:Scale: 3 calls, of 3 kinds." in text


def test_an_interpreter_that_the_program_starts_counts(tmp_path):
    starting = tmp_path / "starting.py"
    starting.write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'program.py'], check=True)\n")
    _, text = recorded(tmp_path, GUARDED, "starting.py")
    assert "# __main__:Scale: 3 calls, of 3 kinds." in text


def test_a_module_of_python_is_a_command(tmp_path):
    done, text = recorded(tmp_path, GUARDED, "-m", "program")
    assert done.returncode == 0, done.stderr
    assert "from program import" in text


def test_a_program_without_a_guard_is_not_run_again(tmp_path):
    unguarded = f"{HEAD}{CALLS}\nopen('runs', 'a').write('.')\nmain()\n"
    done, text = recorded(tmp_path, unguarded)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs").read_text() == "."
    assert "which has no if __name__ == '__main__'" in text
    assert declared(text)["wrong"] == ["float[n,7](0.5..2)"]


def test_a_module_without_a_guard_is_not_run_again(tmp_path):
    done, text = recorded(tmp_path, f"{HEAD}{CALLS}\nopen('runs', 'a').write('.')\nmain()\n", "-m", "program")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs").read_text() == "."
    assert declared(text)["wrong"] == ["float[n,7](0.5..2)"]


def test_calls_that_raise_are_no_calls_that_are_taken(tmp_path):
    raising = GUARDED.replace(
        "        Wrong.apply",
        "        try:\n            Reshaped.apply(torch.ones(n), 1)\n"
        "        except RuntimeError:\n            pass\n"
        "        Wrong.apply",
    )
    _, text = recorded(tmp_path, raising)
    assert declared(text)["reshaped"] == ["float[8](0.5..2)", "1"]


UNUSUAL = (
    HEAD
    + """
class Config(dict):
    __getattr__ = dict.__getitem__


def helper(x):
    return x


Not = function(lambda ctx, x, f: f(x) * 3, lambda ctx, g: (g * 3, None), "Not")
small = function(lambda ctx, x: x * 3, lambda ctx, g: g * 3, "small")
Fixed = function(lambda ctx, x, w: x * w.numpy().shape[0], lambda ctx, g: (g * 3, None), "Fixed")
Flag = function(lambda ctx, x, w: setattr(ctx, "w", w) or x * w, lambda ctx, g: (g * ctx.w, None), "Flag")
Matrix = function(lambda ctx, x: x * 3, lambda ctx, g: g * 3, "Matrix")
Marked = type("Marked", (torch.Tensor,), {"factor": 2})
Special = function(lambda ctx, x: torch.Tensor(x) * x.factor, lambda ctx, g: g * 2, "Special")
Configured = function(lambda ctx, x, config: x * 3, lambda ctx, g: (g * 3, None), "Configured")
Moduled = function(lambda ctx, x, module, k=0: x * 3, lambda ctx, g: (g * 3, None, None), "Moduled")
Weighted = function(lambda ctx, x, w: setattr(ctx, "w", w) or x * w, lambda ctx, g: (g * ctx.w, None), "Weighted")


def main():
    x = torch.ones(3, requires_grad=True)
    Not.apply(x, helper)
    small.apply(x)
    Configured.apply(x, Config(a=1))
    Moduled.apply(x, torch.nn.TransformerEncoderLayer(2, 1))
    Moduled.apply(x, torch.nn.Tanh(), 1)
    Weighted.apply(x, torch.full((3,), 2.5))
    Fixed.apply(x, torch.full((3,), 2.5))
    Flag.apply(x, torch.ones(()))
    for n in (2, 3):
        Matrix.apply(torch.ones(n, n) + torch.diag(torch.arange(n)))
    Special.apply(torch.ones(3).as_subclass(Marked))


if __name__ == "__main__":
    main()
"""
)


def test_the_file_of_unusual_arguments_and_names_can_be_imported(tmp_path):
    done, text = recorded(tmp_path, UNUSUAL, "program.py", "--token", "secret", '"""')
    assert done.returncode == 0, done.stderr
    assert "secret" not in text
    assert {"not_", "small_", "weighted"} <= set(declared(text))
    names = [declaration.name for declaration in loading.declarations(str(tmp_path / "declared.py"))]
    assert names == ["Not", "small", "Moduled_2", "Weighted", "Fixed", "Flag", "Matrix"]
    assert re.search(r"Moduled: 2 calls$", done.stdout, re.MULTILINE)
    assert declared(text)["matrix"] == ["float[n,n] spd"]
    # One number that is 1 says nothing about others.
    assert declared(text)["flag"] == ["float[n](0.5..2)", "float[](0.5..2) constant"]
    assert declared(text)["weighted"] == ["float[...](0.5..2)", "float[...](1..5) constant"]
    # Forward refuses a weight that requires grad.
    assert declared(text)["fixed"] == ["float[...,n](0.5..2)", "float[...,n](1..5) constant"]
    assert "module is a torch.nn.modules.transformer.TransformerEncoderLayer" in text
    assert "Left out: x is a __main__.Marked, and forward refuses other tensors: AttributeError" in text


# An object, and the words that make it again.
OBJECTS = {
    "Width(0.25)": "Width(width=0.25)",
    "Width(0.25).grad": "Width(width=0.25).grad",
    "Pair(torch.tensor(2.0), 'super')": "Pair(tau=torch.tensor(2.0, dtype=torch.float32), method='super')",
    "Scaled(4)": "Scaled(scale=4)",
    "functools.partial(helper, by=3)": "partial(helper, by=3)",
    "torch.nn.Sequential(torch.nn.Tanh())": "torch.nn.Sequential(torch.nn.Tanh())",
    "(torch.full((3,), SECRET), torch.arange(4))":
        "(torch.randn((3,), dtype=torch.float32), torch.randint(0, 4, (4,), dtype=torch.int64))",
    "{'lr': [0.5], 'size': torch.Size([2])}": "{'lr': [0.5], 'size': torch.Size([2])}",
    "Other(3)": "restored(Other, kept=3)",
    "Layered(torch.nn.Tanh())":
        "restored(Layered, f=torch.nn.Tanh(), "
        "bias=torch.nn.Parameter(torch.randn((2,), dtype=torch.float32)), n=2)",
    "Kind.ONE": "Kind.ONE",
    # A single number is the user's own.
    "Pair(torch.tensor([19]), 'super')": "Pair(tau=torch.randint(31, 32, (1,), dtype=torch.int64), method='super')",
    "(slice(0, 3), None, ...)": "(slice(0, 3, None), None, ...)",
    "Scaled(Local())": "",
    "Scaled('a text with blanks')": "",
}  # fmt: skip
WITH_OBJECTS = (
    HEAD
    + """
import enum
import functools
from dataclasses import dataclass
from typing import NamedTuple


@dataclass
class Width:
    width: float

    def grad(self, x):
        return x * self.width


class Pair(NamedTuple):
    tau: torch.Tensor
    method: str


class Scaled:
    def __init__(self, scale, verbose=False):
        self.scale = scale


class Other:
    def __init__(self, scale):
        self.kept = scale


class Layered(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.f, self.bias, self.n = module, torch.nn.Parameter(torch.ones(2)), 2


class Kind(enum.Enum):
    ONE = 1


def helper(x, by):
    return x * by


def Local():
    class Local:
        pass
    return Local()


Configured = function(lambda ctx, x, config: x * 3, lambda ctx, g: (g * 3, None), "Configured")

if __name__ == "__main__":
    Configured.apply(torch.ones(3, requires_grad=True), CONFIG)
"""
)


@pytest.mark.parametrize("made", OBJECTS)
def test_an_object_is_made_again(tmp_path, made):
    done, text = recorded(tmp_path, WITH_OBJECTS.replace("CONFIG", made))
    assert "1234.5" not in text
    if not OBJECTS[made]:
        assert "left out: config is a" in done.stdout
        return
    assert re.search(rf"    (Factory\(lambda seed: )?{re.escape(OBJECTS[made])}\)?,  # config: ", text)


def test_functions_of_one_name_in_two_modules_are_both_checked(tmp_path):
    for name, factor in (("one", 2), ("two", 3)):
        body = f"Lin = function(lambda ctx, x: x * {factor}, lambda ctx, g: g * {factor}, 'Lin')\n"
        tmp_path.joinpath(f"{name}.py").write_text(HEAD + body)
    calling = "import torch, one, two\nfor f in (one.Lin, two.Lin):\n    f.apply(torch.ones(2))\n"
    recorded(tmp_path, f"{calling}\nif __name__ == '__main__':\n    pass\n")
    first, second = loading.declarations(str(tmp_path / "declared.py"))
    assert (first.function.__module__, second.function.__module__) == ("one", "two")


def test_a_function_within_another_is_left_out_with_the_reason(tmp_path):
    local = GUARDED.replace("        Scale.apply", "        local().apply(torch.ones(n))\n        Scale.apply")
    local = local.replace(
        "def main", "def local():\n    class Inner(Scale):\n        @staticmethod\n        def forward(ctx, x):\n"
        "            return x * 2\n    return Inner\n\n\ndef main",
    )  # fmt: skip
    done, text = recorded(tmp_path, local)
    assert "local.<locals>.Inner: 3 calls; left out: it is defined within local" in done.stdout
    assert "# Left out: it is defined within local; move it to the level of its module." in text
    assert "inner" not in declared(text)


def test_a_forward_that_ends_the_process_costs_its_own_draft_only(tmp_path):
    ending = GUARDED.replace("x * 3", "x * 3 if x.shape[-1] == 7 else os._exit(5)")
    done, text = recorded(tmp_path, ending)
    assert done.returncode == 0, done.stderr
    assert declared(text)["wrong"] == ["float[n,7](0.5..2)"]
    assert declared(text)["reshaped"] == ["float[8](0.5..2)", "1"]
    assert "# Forward was not called to see which lengths and values it takes" in text


OPERATOR = """
import torch


@torch.library.custom_op("recorded::twice", mutates_args=())
def twice(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * 2 * factor


def keep(ctx, inputs, output):
    ctx.factor = inputs[1]


twice.register_autograd(lambda ctx, g: (g * 2 * ctx.factor, None), setup_context=keep)
if __name__ == "__main__":
    twice(torch.ones(3, requires_grad=True), 1.5)
"""


def test_a_custom_operator_is_declared(tmp_path):
    _, text = recorded(tmp_path, OPERATOR)
    assert "torch.ops.recorded.twice," in text
    assert declared(text) == {"twice": ["float[...](0.5..2)", "1.5"]}


TESTS = """
import pytest
import torch
import program

scale = program.Scale.apply


@pytest.mark.parametrize("n", range(1, 7))
def test_it(n):
    scale(torch.ones(n, requires_grad=True), 2.0)
"""


@pytest.mark.parametrize("words", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_a_test_suite_is_recorded_by_an_option(tmp_path, words):
    tmp_path.joinpath("program.py").write_text(GUARDED)
    tmp_path.joinpath("test_it.py").write_text(TESTS)
    given = [sys.executable, "-m", "pytest", "-q", *words, "--record-functions", "declared.py", "test_it.py"]
    done = subprocess.run(given, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "program:Scale: 6 calls" in done.stdout
    text = (tmp_path / "declared.py").read_text()
    assert declared(text) == {"scale": ["float[...](0.5..2)", "2.0"]}
    assert loading.declarations(str(tmp_path / "declared.py"))[0].name == "Scale"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give the command whose calls to record"),
        (["-o", "declared.txt", "--", "program.py"], "name a file that ends in .py, not declared.txt"),
        (["-o", "there.py", "--", "program.py"], "there.py is there already, and may have been edited"),
        (["-o", "absent/declared.py", "--", "program.py"], "absent is not a folder"),
        (["--time-limit", "0", "--", "program.py"], "--time-limit"),
        (["--", "absent"], "absent cannot be started: No such file or directory"),
        (["--", "-c", "pass"], "no custom Function was called, so nothing is written"),
    ],
)
def test_mistakes_are_said(tmp_path, words, says):
    tmp_path.joinpath("there.py").write_text("")
    done = started("record", *words, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["there.py"]
