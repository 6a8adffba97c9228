"""What `check` may be given: operators, layers, methods, classes of a script."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration import loading
from autograd_conformance.harness.check.declaration.naming import module_name
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.test_own_command import OPS, check

TORCH = implementations.load("torch")
IMPORT = ("--import", "user_operators")
FEW = ("--profile", "quick", "--seed", 1, "--properties", "VJP-FD,FWD-DTYPE,VJP-REF")
HELD = "uses tensors that require grad but are not arguments; their gradients are not checked"


@pytest.mark.parametrize(
    ("target", "words", "name", "said"),
    [
        ("conformance_mine::cube", IMPORT, "cube", "takes float64, float32, float16, bfloat16"),
        ("conformance_mine::scaled.whole", (*IMPORT, "--arg", "int(1..2)"), "scaled_whole", "not a Function class"),
        ("conformance_mine::powered", IMPORT, "powered", "k can be given by keyword only, and keeps its default"),
        ("user_operators:cube", (), "cube", "not a Function class"),
        ("user_operators:packet", ("--arg", "int(1..2)"), "scaled", "one output"),
        ("user_operators:overload", ("--arg", "int(1..2)"), "scaled_whole", "one output"),
        ("user_operators:right_layer", (), "right_layer", HELD),
        ("user_operators:right_layer", (), "right_layer", "takes float32\n"),
        ("user_operators:right_layer.twice", (), "twice", HELD),
        ("user_operators:bound", (), "twice", HELD),
        ("user_operators:nameless", (), "nameless", "one output"),
    ],
)
def test_right_targets_are_accepted(tmp_path, target, words, name, said):
    status, out, err = check(target, "--arg", "float[3]", *words, *FEW, folder=tmp_path)
    assert (status, err) == (0, ""), out
    assert out.startswith(f"{name} ({target}): float[3]")
    assert said in out


@pytest.mark.parametrize(
    ("target", "words", "script"),
    [
        ("conformance_mine::wrong_cube", IMPORT, "conformance_mine/wrong_cube"),
        ("user_operators:wrong_cube", (), "user_operators/wrong_cube"),
        ("user_operators:wrong_layer", (), "user_operators/wrong_layer"),
        ("user_operators:wrong_layer.twice", (), "user_operators/twice"),
        ("user_operators:wrong_bound", (), "user_operators/twice"),
    ],
)
def test_wrong_targets_are_found_and_shown_by_a_script(tmp_path, target, words, script):
    status, out, _ = check(target, "--arg", "float[3]", *words, *FEW, folder=tmp_path)
    assert status == 1
    assert "WRONG: VJP-FD" in out
    path = tmp_path / "autograd-conformance-scripts" / f"{script}-VJP-FD.py"
    environment = {"PYTHONPATH": str(OPS.parent)}
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "slope of the drawn direction" in done.stdout + done.stderr
    assert re.findall(r"autograd_conformance", path.read_text()) == []


def test_a_class_of_a_script(tmp_path):
    text = OPS.read_text()
    (tmp_path / "my-notebook.py").write_text(text)
    status, out, err = check("my-notebook.py:Wrong", "--arg", "float[2,m]", "--arg", "float[m]", "--arg", "1",
                             *FEW, folder=tmp_path)  # fmt: skip
    assert (status, err) == (1, "")
    assert "script: autograd-conformance-scripts/my-notebook/Wrong-VJP-FD.py" in out


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nowhere::op", "nowhere::op is not an operator that torch has registered; --import PACKAGE imports"),
        ("aten::sine", "choose from: "),
        ("aten::sin.none", "did you mean aten::sin"),
    ],
)
def test_operators_that_are_not_there(target, said):
    with pytest.raises(UsageProblem) as raised:
        loading.declarations(target, ["float[n]"], {}, TORCH)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        # Of several overloads the first that takes so many; what is given by keyword has no place.
        ("aten::softmax", ["self", "dim"]),
        ("aten::sum", ["self"]),
        ("aten::sum", ["self", "dim"]),
        ("aten::sin", ["argument0", "argument1"]),
    ],
)
def test_the_arguments_of_an_operator_have_the_names_of_its_schema(target, names):
    (found,) = loading.declarations(target, ["float[n]", "int(0..0)"][: len(names)], {}, TORCH)
    assert [each.name for each in found.parsed.found] == names


def test_the_arguments_of_a_declared_operator_have_the_names_of_its_schema():
    scaled = torch.library.custom_op("conformance_named::scaled", mutates_args=())(_scaled)
    for operator in (scaled, torch.ops.conformance_named.scaled, torch.ops.conformance_named.scaled.default):
        assert [each.name for each in Declaration(operator, "float[n]", "int(1..2)").parsed.found] == ["x", "k"]


def _scaled(x: torch.Tensor, k: int) -> torch.Tensor:
    return x * k


def test_operators_need_arguments_and_a_framework_that_has_them():
    with pytest.raises(UsageProblem, match="aten::sin is not a declaration; describe its arguments"):
        loading.declarations("aten::sin", (), {}, TORCH)
    with pytest.raises(UsageProblem, match="is not an operator that model has registered"):
        loading.declarations("aten::sin", ["float[n]"], {}, implementations.load("model"))


def test_a_class_that_is_no_function_is_named(tmp_path):
    status, _, err = check("user_operators:Layer", "--arg", "float[3]", *FEW, folder=tmp_path)
    assert status == 2
    assert "Layer is a class, but no Function of torch; give an instance of it" in err


def test_scripts_of_operators_have_a_folder_of_their_own():
    assert [module_name(name) for name in ("mine::op", "mine.ops:F", "a/b.py:F")] == ["mine", "mine.ops", "a.b"]
