"""The gallery: `check` reports of published Functions what is expected, no less and no more, and scripts show it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.report.grouping import adds_nothing
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.check.checking import faults_of

for package in (
    "brevitas", "entmax", "gpytorch", "linear_operator", "memcnn", "pypose", "snntorch", "torch_struct", "torchdiffeq",
):  # fmt: skip
    # Some warn when they are imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(package, reason=f"skip: {package} of examples/gallery/requirements.txt is not installed")

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", GALLERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module


EXPECTED = loaded("expected")
DECLARED = {name: value for name, value in vars(loaded("declarations")).items() if isinstance(value, Declaration)}
SCRIPTS = sorted(path.name for path in (GALLERY / "findings").glob("*.py"))


def reported(declaration):
    """The verdicts and tests that `check` blames the Function for, except what follows from another one."""
    faults = faults_of(declaration)
    tests = {ndjson.test_of(line) for line, _ in faults}
    return {(v.word, ndjson.test_of(line)) for line, v in faults if not (v.follows or adds_nothing(line, tests))}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DECLARED)
def test_what_check_reports(name):
    assert reported(DECLARED[name]) == set(EXPECTED.REPORTED[name])


def test_expectations_name_declarations_and_scripts():
    assert set(EXPECTED.REPORTED) == set(DECLARED)
    named = {script for faults in EXPECTED.REPORTED.values() for script in faults.values()}
    assert sorted({*named, *EXPECTED.BEYOND}) == SCRIPTS
    assert named.isdisjoint(EXPECTED.BEYOND)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_shows_the_finding(script):
    words = [sys.executable, "-W", "ignore", str(GALLERY / "findings" / script)]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.stdout
