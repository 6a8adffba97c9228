"""Known faults: a file of them lets only new ones fail."""

from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.watching.collecting import Program, Watched
from autograd_conformance.harness.watching.known import of_document, read
from autograd_conformance.harness.watching.summing_up import Summary
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.selftests.watching.watched_program import AMPLE, HEAD, rows_of, watched

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

WRONG = (
    HEAD
    + """
half = lambda ctx, g: g * ctx.saved_tensors[0]
made("Half", backward=half).apply(x).sum().backward()
made("Right").apply(x).sum().backward()
"""
)
MORE = (
    WRONG
    + """
made("New", backward=half).apply(x).sum().backward()
"""
)
FILE = "known.txt"


@pytest.fixture
def accepted(tmp_path):
    """A folder with a file of the faults of a program."""
    watched(tmp_path, WRONG, *AMPLE, torch=True)
    done = started("accept", "r.json", "-o", FILE, folder=tmp_path)
    assert done.stdout == f"{FILE}: 1 known faults\n"
    return tmp_path


def test_known_faults_fail_nothing_and_new_ones_do(accepted):
    done, _, document = watched(accepted, WRONG, *AMPLE, "--baseline", FILE, torch=True)
    assert (done.returncode, document["status"]) == (0, 0), done.stderr
    assert "known: __main__:Half: DIFFERS: VJP-FD" in done.stderr
    assert rows_of(done.stderr)["Half"].startswith("known ")
    assert "1 with known faults alone" in done.stderr
    done, _, _ = watched(accepted, MORE, *AMPLE, "--baseline", FILE, torch=True)
    assert done.returncode == 1
    rows = rows_of(done.stderr)
    assert [rows[name].split()[0] for name in ("Half", "Right", "New")] == ["known", "holds", "DIFFERS"]


def test_a_fault_that_is_gone_is_said(accepted):
    program = WRONG.replace("ctx, g: g", "ctx, g: 2 * g")
    done, _, _ = watched(accepted, program, *AMPLE, "--baseline", FILE, torch=True)
    assert done.returncode == 0
    assert "no longer found: __main__:Half: VJP-FD; take it out of the known faults" in done.stderr


def test_annotations_are_printed_for_github(tmp_path):
    done, _, _ = watched(tmp_path, WRONG, *AMPLE, "--format", "github", torch=True)
    annotations = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
    assert len(annotations) == 1
    assert "__main__%3AHalf" in annotations[0]
    assert "VJP-FD" in annotations[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must begin with"),
        ("# autograd-conformance known faults: 1\na:B\n", ":2 must be a Function and a property"),
        ("# autograd-conformance known faults: 1\n\na:B VJP-FDD\n", ":3: unknown property 'VJP-FDD'"),
        ("\xff", "must begin with"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, text, said):
    path = tmp_path / FILE
    path.write_text(text)
    with pytest.raises(UsageProblem, match=said):
        read(path)


def test_a_file_that_is_not_there_or_no_report_is_named(tmp_path):
    with pytest.raises(UsageProblem, match="write it with accept"):
        read(tmp_path / FILE)
    for text, said in (("[]", "must be a report of watch"), ("{", "must be a report of watch")):
        (tmp_path / "r.json").write_text(text)
        with pytest.raises(UsageProblem, match=said):
            of_document(tmp_path / "r.json")


def line_of(test: str) -> dict:
    call = "Call('F', args=(Tensor((2,), requires_grad=True),), cotangents=(Cotangent(),))"
    failure = {"what": "a gradient", "got": "1", "expected": "2", "call": call, "kind": "wrong", "everywhere": True}
    return {
        "kind": "result", "id": f"{test}[F]", "property": test, "function": "F", "outcome": "fail", "failure": failure,
        "examples": 1, "checks": 1,
    }  # fmt: skip


def test_a_known_fault_accepts_no_other(tmp_path):
    program = Program({"m:F": Watched("m:F", lines={"VJP-FD[F]": line_of("VJP-FD")})})
    for accepted, status, word in (("VJP-FD", 0, "known"), ("VJP-REF", 1, "DIFFERS")):
        summary = Summary(program, tmp_path, {("m:F", accepted)})
        assert summary.status == status
        assert rows_of("\n".join(summary.rows()).replace("m:F", "__main__:F"))["F"].startswith(word)


def test_what_is_wrong_in_every_call_does_not_only_differ_nor_is_known(tmp_path):
    one = Watched("m:F", lines={"VJP-FD[F]": line_of("VJP-FD")}, always_wrong="F: it raises")
    summary = Summary(Program({"m:F": one}), tmp_path, {("m:F", "VJP-FD")})
    assert summary.status == 1
    assert rows_of("\n".join(summary.rows()).replace("m:F", "__main__:F"))["F"].startswith("WRONG")
