"""Scripts show a failure without this suite, and say that all is right where it is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness import script
from autograd_conformance.implementations import torch_script
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor

TORCH = implementations.load("torch")

# Runs every script of a folder, one after the other, where nothing of this suite can be imported.
DRIVER = """
import contextlib, io, runpy, sys
from pathlib import Path
for path in sorted(Path(sys.argv[1]).iterdir()):
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        print(path.stem, int(end.code), *said.getvalue().splitlines()[-1:], sep="|")
assert "autograd_conformance" not in sys.modules
"""


def statuses(folder, scripts):
    """The exit status of each script, in a bare interpreter."""
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
    words = [sys.executable, "-I", "-c", DRIVER, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line.split("|")[0]: int(line.split("|")[1]) for line in done.stdout.splitlines() if line.count("|") == 2}


def written(function, test, call):
    text, problem = script.script_for(TORCH, function, test, {"call": repr(call), "message": "planted"})
    assert text, problem
    assert "autograd_conformance" not in text
    return text


def complex_call(name):
    tensor = Tensor((2,), "complex128", requires_grad=True, layout="strided", fill="normal")
    return Call(name, (tensor,), (Cotangent("normal", "conjugated"),), seed=3)


def test_a_planted_fault_is_shown_and_its_correct_twin_is_not(tmp_path):
    found = statuses(
        tmp_path,
        {
            "wrong": written(EXHIBITS["ExpUnconjugated"].function, "VJP-REF", complex_call("ExpUnconjugated")),
            "right": written(FUNCTIONS["Exp"], "VJP-REF", complex_call("Exp")),
        },
    )
    assert found == {"wrong": 1, "right": 0}


LINEAR = Call(
    "LinearFunction",
    (
        Tensor((2, 3), requires_grad=True, layout="transposed", fill="ramp"),
        Tensor((4, 3), requires_grad=True, fill="normal"),
        Tensor((4,), requires_grad=True, layout="offset"),
    ),
    (Cotangent("normal"),),
)
MUL = Call(
    "NumpyMul",
    (Tensor((3,), requires_grad=True), Tensor((3,), requires_grad=True, fill="ramp")),
    (Cotangent(),),
)
CUBE = Call("MyCube", (Tensor((3,), requires_grad=True, fill="ramp"),), (Cotangent("normal"), Cotangent()))


def test_every_property_has_a_script_that_accepts_what_is_right(tmp_path):
    tests = [*PROPERTIES, *(test for test in torch_script.SCRIPT.demonstrations if "/" in test)]
    special = {
        "DBL-ONCE": Call("Sort", (Tensor((2, 3), requires_grad=True, fill="spaced"), 1), (Cotangent(), None)),
        "BATCH-VMAP": MUL,
        "JVP-REF": CUBE,
        "JVP-ADJOINT": CUBE,
    }
    scripts = {}
    for test in tests:
        call = special.get(test, LINEAR)
        scripts[test.replace("/", " ")] = written(FUNCTIONS[call.function], test, call)
    assert statuses(tmp_path, scripts) == dict.fromkeys(scripts, 0)


@pytest.mark.parametrize(
    "values",
    [
        np.array(1.5),
        np.array([0.0, -0.0, np.nan, np.inf, -np.inf]),
        np.array([complex(-0.0, np.nan), complex(np.inf, -0.0)]),
        np.ones((2, 3)),
        np.zeros((0, 3)),
        np.arange(90).reshape(9, 10),
        np.linspace(-1, 1, 200).reshape(10, 20),
        np.array([True, False]),
    ],
    ids=str,
)
def test_literals_are_exact(values):
    again = eval(script.literal(values), {"np": np, "nan": np.nan, "inf": np.inf})
    assert again.shape == values.shape
    assert again.dtype == values.dtype
    assert again.tobytes() == values.tobytes() or np.array_equal(again, values, equal_nan=True)
    assert np.array_equal(np.signbit(again.real), np.signbit(values.real)) or values.dtype == bool


def test_the_namespace_of_the_scripts_is_that_of_the_adapter():
    xp = TORCH.xp
    differing = {n for n in (*ARRAY_NAMES, *EXTRA_NAMES) if getattr(xp, n) is not getattr(torch, n, None)}
    assert differing == set(torch_script.NAMES) & {*ARRAY_NAMES, *EXTRA_NAMES}
    for name, text in torch_script.NAMES.items():
        found, mine = eval(text, {"torch": torch, "np": np}), getattr(xp, name)
        assert found is mine or found.__code__.co_argcount == mine.__code__.co_argcount


def test_a_failure_without_a_script_says_why():
    text, problem = script.script_for(
        implementations.load("model"), FUNCTIONS["Exp"], "VJP-REF", {"call": "Call('Exp')"}
    )
    assert text is None
    assert "model" in problem
    nameless = replace(FUNCTIONS["Exp"], body=lambda xp, ag: FUNCTIONS["Exp"].body(xp, ag))
    text, problem = script.script_for(TORCH, nameless, "VJP-REF", {"call": repr(complex_call("Exp"))})
    assert text is None
    assert "no plain function" in problem or "not a plain function" in problem
