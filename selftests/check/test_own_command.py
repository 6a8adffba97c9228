"""The command `check` as users call it, and their mistakes on the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from click.testing import CliRunner

from autograd_conformance import implementations
from autograd_conformance.harness import cli
from autograd_conformance.harness.check.declaration import loading
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.served import SERVED
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check import user_ops
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.support.warm import started

TORCH = implementations.load("torch")
OPS = Path(user_ops.__file__)


def check(*words, folder, fresh=False):
    done = started("check", *words, folder=folder, environment=outside_with(OPS.parent), fresh=fresh, torch=True)
    return done.returncode, done.stdout, done.stderr


def test_the_shortest_way(tmp_path):
    words = ("--arg", "float[2,m]", "--arg", "float[m]", "--arg", "1", "--properties", "VJP-FD/long,VJP-FD")
    status, out, err = check("user_ops:Wrong", *words, "--profile", "quick", "--seed", 1, folder=tmp_path, fresh=True)
    assert (status, err) == (1, "")
    found, verdict = out.split("\n\n", 1)
    assert found == "found: Wrong: WRONG: VJP-FD"
    assert verdict.startswith("Wrong (user_ops:Wrong): float[2,m], float[m], 1\n  one output\n  takes float64")
    assert "argument 1 (w)" in out
    script = tmp_path / "autograd-conformance-scripts" / "user_ops" / "Wrong-VJP-FD.py"
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert shown.returncode == 1, shown.stderr
    assert re.findall(r"^\s*(?:from|import) autograd_conformance", script.read_text(), re.MULTILINE) == []


def test_a_file_of_declarations(tmp_path):
    (tmp_path / "other.py").write_text(
        "import user_ops\nfrom autograd_conformance.harness.check import Declaration\n"
        "scaled = Declaration(user_ops.Kept, 'float[n]', name='scaled')\n"
    )
    words = ("--functions", "Scaled,Single", "--properties", "FWD-VALUE,VJP-FD,DBL-CORRECT")
    status, out, err = check(OPS, "other.py", *words, "--profile", "quick", "--seed", 3, folder=tmp_path)
    assert status == 2
    assert re.findall("^Error: (.*)$", err, re.MULTILINE) == [
        "no Function matches 'Scaled'; choose from: scaled (did you mean scaled?)"
    ]
    assert re.findall(r"^(\w+) \(", out, re.MULTILINE) == ["Scaled", "Single"]
    assert re.findall(r"hold, (\d+) do not", out) == ["0", "0"]
    assert out.endswith("\n2 Functions: 2 without a fault\n")


def test_a_function_that_is_asked_for_and_cannot_be_checked_costs_no_other(tmp_path):
    (tmp_path / "two.py").write_text(
        "import user_ops\nfrom autograd_conformance import Declaration\n"
        "refused = Declaration(user_ops.Scaled, 'float[n]', name='refused')\n"
        "single = Declaration(user_ops.Single, 'float[...]', once=True, name='single')\n"
    )
    words = ("two.py", "--functions", "refused,single", "--properties", "VJP-FD", "--profile", "quick")
    status, out, err = check(*words, folder=tmp_path)
    assert status == 2
    assert len(re.findall("^Error: ", err, re.MULTILINE)) == 1
    assert out.endswith("\n2 Functions: 1 without a fault, 1 not verified (refused)\n")


def test_what_is_said_on_the_command_line(tmp_path):
    (undeclared,) = loading.declarations(f"{user_ops.__name__}:Squared", ["float[n]"])
    with pytest.raises(UsageProblem, match=r"changes an argument on purpose, declare inplace=\(its position,\)"):
        discover(undeclared, TORCH)
    words = ("user_ops:Squared", "--arg", "float[n]", "--properties", "FWD-PURE", "--profile", "quick")
    status, out, err = check(*words, "--inplace", 0, "--dtypes", "float64, float32", folder=tmp_path)
    assert (status, err) == (0, "")
    assert "takes float64, float32\n  1 check holds, 0 do not" in out


def test_a_function_that_dies_is_reported_and_the_others_are_checked(tmp_path):
    text = (
        "import user_ops\nfrom autograd_conformance.harness.check import Declaration\n"
        "dies = Declaration(user_ops.crashing, 'float[n]')\n"
        "late = Declaration(user_ops.crashing_when_empty, 'float[n]')\n"
        "hangs = Declaration(user_ops.endless, 'float[n]')\n"
        "nothing = Declaration(user_ops.nothing, 'float[n]')\n"
        "odd = Declaration(user_ops.no_tensor, 'float[n]')\n"
        "right = Declaration(user_ops.Kept.apply, 'float[n]')\n"
    )
    (tmp_path / "mine.py").write_text(text)
    words = ("--time-limit", 4, "--properties", "FWD-DTYPE,FWD-EMPTY", "--profile", "quick", "--seed", 1)
    status, out, err = check("mine.py", *words, folder=tmp_path)
    assert status == 2
    shown = dict(re.findall(r"^Error: .*mine\.py:(\d+): \w+: (.*)$", err, re.MULTILINE))
    assert "ended the process (SIGSEGV)" in shown["3"]
    assert "did not end within 4 s" in shown["5"]
    assert "returns nothing differentiable" in shown["6"]
    assert "it must return a tensor or a tuple with tensors, but returned dict" in shown["7"]
    assert sorted(shown) == ["3", "5", "6", "7"]
    late, right = re.split(r"^(?=Kept)", out, flags=re.MULTILINE)
    assert "CRASHES: FWD-EMPTY" in late
    assert "1 check holds, 1 does not" in late
    assert "2 checks hold, 0 do not" in right


BARE = """
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Implementation

class Bare(ModelImplementation):
    is_tensor, no_grad = Implementation.is_tensor, Implementation.no_grad
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere:F", "--arg", "float[n]"), "nowhere cannot be imported: ModuleNotFoundError"),
        (("nowhere.py",), "file not found: nowhere.py"),
        (("user_ops:Missing", "--arg", "float[n]"), "user_ops has no 'Missing'; choose from: "),
        (("user_ops:Kept",), "is not a declaration; describe its arguments in order, as in --arg 'float[n,m]'"),
        (("user_ops:Kept",), "; or check user_ops as a whole: if it declares nothing, arguments are assumed"),
        (("os",), "os has no declarations and no custom Functions; add NAME = Declaration"),
        (("user_ops", "--once"), "--once needs --arg"),
        (("user_ops:scaled", "--arg", "float[n]"), "is a declaration and already has arguments"),
        (("user_ops:Kept", "--arg", "float[n]", "--profile", "huge"), "unknown profile 'huge'; choose from: quick"),
        (("user_ops:Kept", "--arg", "float[n]", "--implementation", "touch"), "unknown implementation 'touch'"),
        *(
            (
                ("user_ops:Kept", "--arg", "float[n]", "--implementation", name),
                f"cannot call Functions of {name} yet: it is",
            )
            for name in implementations.ADAPTERS
            if name not in SERVED
        ),
        (
            ("user_ops:Kept", "--arg", "float[n]", "--implementation", "bare_adapter:Bare"),
            "has no is_tensor and no no_grad",
        ),
        (("user_ops:Kept", "--arg", "float[n]", "--dtypes", "half"), "unknown dtype 'half'; choose from: float64"),
        (
            ("user_ops:Kept", "--arg", "float[n]", "--dtypes", "float32 half"),
            "unknown dtype 'half'; choose from: float64",
        ),
        (("user_ops:Kept", "--arg", "float[n]", "--properties", "NO-SUCH"), "no property"),
        (("user_ops:Kept", "--arg", "float[n]", "--inplace", "1"), ":Kept: --inplace 1: there is no argument 1"),
        (("user_ops:Kept", "--arg", "float[n]", "--surrogate", "--properties", "VJP-FD"), "surrogate leaves out VJP"),
        (("user_ops:Kept", "--arg", "float[n]", "--examples", "2"), "must be a share of the examples"),
        (("user_ops:Kept", "--arg", "float[n]", "--inplace", "x"), "x is not a whole number of at least 0"),
        (("user_ops:Kept", "os:getcwd", "--arg", "float[n]"), "--arg needs a single target"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(words, said, tmp_path, monkeypatch):
    (tmp_path / "bare_adapter.py").write_text(BARE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(OPS.parent)
    done = CliRunner().invoke(cli.main, ["check", *words])
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert len(re.findall("^Error: ", done.output, re.MULTILINE)) == 1
    assert "Traceback" not in done.output


def test_an_edge_fails_where_that_is_asked(tmp_path):
    (tmp_path / "edges.py").write_text(EDGES)
    words = ("edges.py", "--properties", "FWD-EMPTY,VJP-FD", "--profile", "quick", "--seed", 0)
    status, out, err = check(*words, folder=tmp_path)
    assert (status, err) == (0, "")
    assert re.findall(r"hold, 0 do not(.*)", out) == [", 1 edge", ""]
    assert "EDGE: FWD-EMPTY" in out
    assert "only where the last dimension of argument 0 (x) is 0" in re.sub(r"\s+", " ", out)
    assert out.endswith("2 Functions: 2 without a fault, 1 with an edge (Halves)\n")
    assert check(*words, "--edges", folder=tmp_path)[0] == 1
    assert check(*words, "--edges", "--functions", "Whole", folder=tmp_path)[0] == 0


EDGES = """
import torch
from autograd_conformance import Declaration

class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, g):
        return g.reshape(-1, g.shape[-1]).reshape(g.shape) / 2

class Whole(Halves):
    @staticmethod
    def backward(ctx, g):
        return g.reshape(g.shape) / 2

halves = Declaration(Halves, "float[n,m]")
whole = Declaration(Whole, "float[n,m]")
"""


def test_processes_that_never_agree_are_a_fault(tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    status, out, err = check("ranks.py", folder=tmp_path)
    assert (status, err) == (1, "")
    assert "sums: wrong in every simple call; the first is Call(" in out
    assert "output 0 must be the same in all processes" in out
    assert "let each process call the same collectives" in out


RANKS = """
from torch import distributed
from autograd_conformance import Declaration, in_processes

def own(x):
    return (1 + distributed.get_rank()) * x.sum()

sums = Declaration(in_processes(own, replicated_outputs=True), "float[2,n]", name="sums")
"""


def test_a_declaration_for_what_is_not_served_is_named():
    with pytest.raises(UsageProblem, match=r"test_own_command.py:\d+: Sine: check cannot call Functions of jax yet"):
        Declaration(user_ops.Kept, "float[n]", name="Sine", implementation="jax")


@pytest.mark.parametrize(("factor", "status"), [(2, 0), (3, 1)])
def test_a_function_of_the_model(factor, status, tmp_path):
    (tmp_path / "of_model.py").write_text(OF_MODEL.format(factor=factor))
    words = ("--implementation", "model", "--properties", "VJP-*,FWD-VALUE", "--profile", "quick", "--seed", 0)
    found, out, err = check("of_model:Square", "--arg", "float[n]", *words, folder=tmp_path)
    assert (found, err) == (status, "")
    assert ("WRONG: VJP-FD" in out) == (status == 1)
    assert "NotImplementedError" not in out


OF_MODEL = """
from autograd_conformance.reference.model import Function

class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {factor} * g * x
"""


def test_a_declaration_that_fits_no_call_is_named():
    (declaration,) = loading.declarations(f"{user_ops.__name__}:Kept", ["float[n]", "int(0..3)"])
    with pytest.raises(UsageProblem, match="every simple call that the declaration"):
        discover(declaration, TORCH)


def test_a_number_of_outputs_that_the_arguments_decide_is_named():
    with pytest.raises(UsageProblem, match=r"the same number of tensors in every call, but returns 1 in .* and 2 in "):
        discover(Declaration(user_ops.Rows, "float[n,m]"), TORCH)
    assert len(discover(Declaration(user_ops.Rows, "float[2,m]"), TORCH).outputs) == 2


OWN = """
from torch.autograd import Function
from torch.nn.functional import relu


class Scaled(Function):
    pass


scaled = Scaled.apply
"""


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("own.py", "name it: own.py:NAME"),
        ("own.py:", "name it: own.py:NAME"),
        ("own:Scalde", "own has no 'Scalde'; choose from: Scaled, scaled (did you mean scaled?)"),
        ("text.txt", "text.txt is not a .py file or a module"),
        ("./own", "./own is not a .py file or a module; name one of these (did you mean own.py?)"),
        ("folder", "folder is a folder without code of its own; name a .py file or a module in it"),
        ("./folder", "./folder is a folder"),
    ],
)
def test_a_target_that_names_no_function(target, said, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("text")
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("own", "folder"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(UsageProblem, match=re.escape(said)):
        loading.declarations(target, ["float[n]"])


def test_the_help_lists_the_words():
    out = CliRunner().invoke(cli.main, ["check", "--help"]).output
    assert "float[n,m], complex[n], number[...]" in out
    assert "symmetric (Hermitian) positive definite" in out
