"""Determinism: the seed and the test id alone decide the drawn calls."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from autograd_conformance.harness.testing import drawing
from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.strategies.drawn_examples import LINEAR, SQUARE, drawn, options
from autograd_conformance.strategies.calls import Call, calls


def seeded(test_id: str, run_seed: int, function: Function = LINEAR) -> list[str]:
    found: list[str] = []

    @options(25)
    @given(calls(function))
    def test(call: Call) -> None:
        found.append(repr(call))

    drawing.prepare(test, test_id, run_seed)
    test()
    return found


def test_the_seed_and_the_test_id_decide_the_calls(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = seeded("VJP-REF[x]", 0)
    assert len(set(first)) > 10
    assert seeded("VJP-REF[x]", 1) != first
    assert seeded("VJP-REF[y]", 0) != first
    drawn(calls(SQUARE), 20, 5)
    np.random.default_rng().random()
    # Hypothesis would mix the numbers of a newly imported local module into its draws.
    (tmp_path / "newcomer.py").write_text("NUMBERS = (12345, 54321, 31337, 2.71, 40000)\nTEXT = 'unheard of'\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("newcomer")
    calls.cache_clear()
    assert seeded("VJP-REF[x]", 0) == first


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_draws_the_same_calls_again(name: str) -> None:
    assert seeded(name, 3, FUNCTIONS[name]) == seeded(name, 3, FUNCTIONS[name])


_ELSEWHERE = """
import sys, types
package = types.ModuleType("autograd_conformance")
package.__path__ = [{root!r}]
sys.modules["autograd_conformance"] = package
sys.path.insert(0, {folder!r})
import neighbour
from hypothesis import HealthCheck, Phase, given, settings
from autograd_conformance.harness.testing import drawing, profiles
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.strategies.calls import calls
drawing.load(profiles.PROFILES["gate"])

@settings(max_examples=25, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(calls(FUNCTIONS["LinearFunction"]))
def test(call):
    print(call)

drawing.prepare(test, "VJP-REF[x]", 0)
test()
"""


def test_another_process_draws_the_same_calls(tmp_path: Any) -> None:
    """With another hash seed, another order of imports, other local modules and no pytest."""
    (tmp_path / "neighbour.py").write_text("NUMBERS = (12345, 54321, 31337, 2.71, 40000)\nTEXT = 'unheard of'\n")
    root = str(Path(__file__).resolve().parents[2])
    code = _ELSEWHERE.format(root=root, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == seeded("VJP-REF[x]", 0)
