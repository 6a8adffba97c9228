"""The survey: its page says what was found, each accusation is judged, and with the packages it is found again."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SURVEY = Path(__file__).resolve().parents[2] / "examples" / "survey"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
sys.path.insert(0, str(SURVEY))
survey, watching, judgements = map(importlib.import_module, ("survey", "watching", "judgements"))
sys.path.remove(str(SURVEY))

ROWS = survey.rows()
SCRIPTS = sorted(path.name for path in (SURVEY / "findings").glob("*.py"))
# What a file needs; some packages are imported under the name of a namespace.
PACKAGES = {path: path.stem.removeprefix("check_").partition("__")[0] for path in survey.declared()}


def test_the_page_is_made_from_the_outcomes():
    assert survey.PAGE.read_text() == survey.page(), "run: python examples/survey/survey.py page"


def test_each_accusation_is_judged():
    accused = [(row.package, row.name, each) for row in ROWS for each, judged in row.judgements.items() if not judged]
    assert [each for each in accused if not each[2].startswith("not checked")] == []


def test_what_watch_finds_is_judged():
    found = [
        (each.package, each.name, text) for each in watching.functions() for text, j in each.judgements.items() if not j
    ]
    assert found == []
    assert json.loads(watching.PROGRAMS.read_text()).keys() == json.loads(watching.WATCHED.read_text()).keys()


def test_each_fault_has_a_script_and_each_script_a_fault():
    named = {each.script for each in judgements.JUDGEMENTS if each.kind == "fault"}
    gallery = {f"gallery/{path.name}" for path in (SURVEY.parent / "gallery" / "findings").glob("*.py")}
    assert named <= gallery | set(SCRIPTS)
    assert set(SCRIPTS) <= named


def test_nothing_of_a_machine_is_in_the_files():
    for path in (survey.PAGE, *(path for path in SURVEY.rglob("*.*") if path.suffix in (".py", ".json", ".md"))):
        assert not re.search(r"/(work|tmp|home|root)/|https?:", path.read_text()), path


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_shows_the_finding(script):
    package = script.partition("_")[0]
    words = [sys.executable, "-W", "ignore", str(SURVEY / "findings" / script)]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"{package} of examples/survey/requirements.txt is not installed")
    assert done.returncode == 1, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.stdout


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_check_finds_the_same_again(path):
    if importlib.util.find_spec(PACKAGES[path]) is None:
        pytest.skip(f"{PACKAGES[path]} of examples/survey/requirements.txt is not installed")
    expected = json.loads(survey.OUTCOMES.read_text()).get(f"{path.parent.name}/{path.name}")
    if expected is None:
        pytest.skip("not checked yet")
    assert survey.check(path) == expected
