"""What a run leaves on disk."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import time
from typing import get_args

import execnet
import jsonschema
import pytest

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.outcomes import OUTCOMES, Broken, Finding, Kind, Means, Record, UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import results
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.deviations import Cause, Deviation, Grade, Refused
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.conftest import COMMAND

SCHEMA = json.loads((PACKAGE / "harness" / "reports" / "report.schema.json").read_text())
LINES = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["outcome"]["enum"] == list(OUTCOMES)
    raised = SCHEMA["$defs"]["finding"]["properties"]["raised"]["properties"]
    assert ["", *raised["means"]["enum"]] == list(get_args(Means))
    assert SCHEMA["$defs"]["header"]["properties"]["schema"] == {"const": ndjson.SCHEMA}


def test_every_line_fits_the_schema(eventful):
    for line in eventful.lines:
        LINES.validate(line)


@pytest.mark.parametrize("change", [{"outcome": "great"}, {"extra": 1}, {"failure": {"what": "x"}}, {"id": "Exp"}])
def test_the_schema_is_strict(eventful, change):
    line = next(line for line in eventful.lines if line.get("outcome") == "pass")
    assert not LINES.is_valid({**line, **change})


def test_header_results_footer(eventful):
    kinds = [line["kind"] for line in eventful.lines]
    assert kinds == ["header", *["result"] * (len(kinds) - 2), "footer"]
    assert eventful.header["expected"] == len(eventful.results) == len(kinds) - 2
    assert eventful.header["functions"] == ["Exp", "Square"]
    assert sum(eventful.footer["counts"].values()) == len(eventful.results)
    assert eventful.footer["verdict"] == "fails"
    assert eventful.status == 1


@pytest.mark.parametrize("kind", Kind)
def test_a_worker_can_send_a_failure(kind):
    finding = Finding("output", "1", "2", "", kind=kind)
    line = results.result_line(Subject(ModelImplementation(), FUNCTIONS["Exp"], "cpu"), Broken("", "", "", finding))
    assert execnet.loads(execnet.dumps(line)) == line
    assert line["failure"]["kind"] == kind


def test_what_is_refused_in_every_example_is_vacuous():
    subject = Subject(ModelImplementation(), FUNCTIONS["Exp"], "cpu")
    # One was begun, and then not tried.
    subject.record = Record(examples=4, checks=3, refused=3, excused=3, excuse="RuntimeError: no rule")
    line = results.result_line(subject, None)
    assert (line["outcome"], line["reason"]) == ("vacuous", "refused in every example: RuntimeError: no rule")
    subject.record.answered = 1
    assert results.result_line(subject, None)["outcome"] == "pass"


def test_a_listed_refusal_is_known_and_another_is_not(monkeypatch):
    shows = (Refused("RuntimeError", starting="no "),)
    listed = Deviation(
        ("VJP-REF",), shows, Cause(grade=Grade.DIFFERENCE, reason="r", link="l", seen=("1.0",)), functions=("Exp",)
    )
    monkeypatch.setattr(ModelImplementation, "deviations", (listed,))
    for excuse, outcome in (("RuntimeError: no rule", "known"), ("RuntimeError: else", "vacuous")):
        subject = Subject(ModelImplementation(), FUNCTIONS["Exp"], "cpu")
        subject.record = Record(examples=3, checks=3, excused=3, excuse=excuse)
        line = results.result_line(subject, None)
        assert line["outcome"] == outcome
        assert line.get("grade") == ("difference" if outcome == "known" else None)


def test_a_report_may_have_each_grade():
    assert SCHEMA["$defs"]["result"]["properties"]["grade"]["enum"] == [grade.words for grade in Grade]


def test_the_largest_error_of_each_dtype_is_kept(eventful):
    line = eventful.results["VJP-REF[Exp-cpu]"]
    assert set(line["worst_by_dtype"]) > {"float64", "float16"}
    assert max(line["worst_by_dtype"].values()) == line["worst"] > 0
    assert "worst_by_dtype" not in eventful.results["VJP-UNUSED[Exp-cpu]"]
    record = Record()
    for dtype, ratio in (("float64", 0.5), ("float32", math.inf), ("float64", 0.25)):
        record.measure(dtype, ratio)
    assert (record.worst_by_dtype, record.worst) == ({"float64": 0.5, "float32": 1e300}, 1e300)


def test_outcomes(eventful):
    alone = {
        "VJP-SUBSET": "error", "VJP-FIT": "error", "VJP-PURE": "error", "VJP-REPEAT": "error", "VJP-CHAIN": "fail",
        "VJP-NONE": "pass",
    }  # fmt: skip
    both = {
        "VJP-REF": "pass", "VJP-FD": "fail", "VJP-LINEAR": "error", "VJP-UNUSED": "vacuous", "VJP-MASK": "unsupported",
    }  # fmt: skip
    expected = {f"{id}[Exp-cpu]": outcome for id, outcome in (alone | both).items()}
    expected |= {f"{id}[Square-cpu]": outcome for id, outcome in both.items()}
    assert eventful.outcomes == expected


@pytest.mark.parametrize(
    ("property_id", "kind", "message"),
    [
        ("VJP-SUBSET", "Hang", "time limit of 0:00:03"),
        ("VJP-FIT", "Hang", "time limit of 0:00:03"),
        ("VJP-PURE", "Death", "without a word"),
        ("VJP-REPEAT", "Death", "Segmentation fault"),
        ("VJP-LINEAR", "KeyError", "planted"),
    ],
)
def test_an_error_says_what_happened_and_in_which_call(eventful, property_id, kind, message):
    failure = eventful.results[f"{property_id}[Exp-cpu]"]["failure"]
    assert failure["type"] == kind
    assert message in failure["message"]
    assert failure["call"].startswith("Call('Exp'")
    if kind != "Death" or "Segmentation" in message:
        assert any("test_planted.py" in line for line in failure["traceback"])


def test_a_failure_is_the_smallest_found(eventful):
    failure = eventful.results["VJP-FD[Exp-cpu]"]["failure"]
    assert failure["call"] == "Call('Exp', args=(Tensor((1, 1), requires_grad=True),), cotangents=(Cotangent(),))"
    assert (failure["got"], failure["expected"], failure["hint"]) == ("2", "less", "it is planted")
    assert "flaky" not in failure


def test_a_failure_that_does_not_repeat_is_said_to_be_flaky(eventful):
    assert eventful.results["VJP-CHAIN[Exp-cpu]"]["failure"]["flaky"] is True


def test_the_terminal_says_it_all(eventful):
    out = eventful.out
    assert out.index("= failures =") < out.index("= results =") < out.index("= verdict =")
    assert "hint: it is planted" in out
    assert "rerun: autograd-conformance run model" in out
    held = eventful.footer["counts"]["pass"]
    assert f": {held} of {len(eventful.results) - 2} test ids hold" in out.splitlines()[-3]
    assert "report: autograd-conformance.ndjson" in out


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupted_run_leaves_a_readable_report_without_a_footer(tmp_path, suite, workers):
    path = tmp_path / "report.ndjson"
    words = ["--suite", str(suite), "--functions", "Exp", "--properties", "VJP-REF,VJP-NONE", "-n", workers]
    running = subprocess.Popen(
        [COMMAND, "run", "model", *words, "--report", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores it, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and '"result"' in path.read_text()):
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    out = running.communicate(timeout=60)[0]
    assert running.returncode == 2, out
    kinds = {line["kind"] for line in ndjson.read(path)}
    assert kinds == {"header", "result"}
    assert "the run did not finish" in out
    assert "without a footer" in out


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_that_a_failure_stops_fails_and_has_no_footer(command, suite, workers):
    words = ("--suite", str(suite), "--functions", "Square", "-n", workers)
    stopped = command("model", *words, "--", "-x")
    assert stopped.footer is None
    assert stopped.status == 1
    assert stopped.results["VJP-FD[Square-cpu]"]["outcome"] == "fail"
    assert "the run did not finish" in stopped.out


SKIPS = """
import pytest

from autograd_conformance.harness.testing.marks import holds


@holds("VJP-REF")
def test_skips(subject, data):
    pytest.skip("pass: said the test")


@holds("VJP-FD")
def test_skipped_by_the_function(subject, data):
    exec(compile("pytest.skip('pass: said the Function')", "function.py", "exec"))


@holds("VJP-MASK", needs="compile")
def test_unsupported(subject, data):
    pytest.skip("pass: never runs")
"""


def test_what_a_skip_says_decides_nothing(command, tmp_path):
    (tmp_path / "test_skips.py").write_text(SKIPS)
    run = command("model", "--suite", str(tmp_path / "test_skips.py"), "--functions", "Exp", "-n", "0")
    assert run.outcomes == {
        "VJP-REF[Exp-cpu]": "skip", "VJP-FD[Exp-cpu]": "error", "VJP-MASK[Exp-cpu]": "unsupported",
    }  # fmt: skip
    assert run.results["VJP-REF[Exp-cpu]"]["reason"] == "pass: said the test"
    assert "said the Function" in run.results["VJP-FD[Exp-cpu]"]["failure"]["message"]
    assert run.results["VJP-MASK[Exp-cpu]"]["reason"].startswith("not claimed, and the adapter has no method compile")
    assert run.status == 1


def test_reading_a_report_that_breaks_off(tmp_path, eventful):
    whole = eventful.path.read_text()
    broken = tmp_path / "broken.ndjson"
    broken.write_text(whole[:-20])
    assert ndjson.read(broken) == eventful.lines[:-1]


@pytest.mark.parametrize("text", ["", "nonsense\n", "[]\n", '{"kind": "result"}\n'])
def test_reading_what_is_no_report(tmp_path, text):
    path = tmp_path / "other.ndjson"
    path.write_text(text)
    with pytest.raises(UsageProblem, match=re.escape(str(path))):
        ndjson.read(path)
