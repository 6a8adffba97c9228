"""The failures of a run by their cause: what belongs together is one block, and what does not is not hidden."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from autograd_conformance.harness.views import causes, summary
from autograd_conformance.selftests.support.reports import FINDING, lines, result, write


def found(claim, function="", what="gradient of argument 0 (x) at (0,)", variant="", **details):
    place = f"{function}-cpu" if function else "cpu"
    which = {"variant": variant} if variant else {}
    name = f"{claim}/{variant}" if variant else claim
    component = {"component": {"aspect": "value"}} if function else {}
    return result(f"{name}[{place}]", "fail", failure={**FINDING, "what": what, **component, **details}, **which)


def raising(claim, function, got, kind="raised", at="f.py:3 in f"):
    raised = {"raised": {"type": got.partition(":")[0], "at": at}} if kind == "raised" else {}
    return found(claim, function, "the call", got=got, kind=kind, **raised)


FUNCTIONS = ("Exp", "Cube", "Sinh", "Sort", "Select")


def grouped(failing):
    return [Counter(line["id"].partition("[")[0] for line in cause.lines) for cause in causes.causes(failing)]


def test_one_thing_that_is_wrong_wherever_it_is_observed_is_one_cause():
    failing = [found("VJP-NEEDS", f, "ctx.needs_input_grad in forward", script="x = 1") for f in FUNCTIONS]
    failing += [
        found(c, what=w) for c, w in (("NIG-02", "needs_input_grad on grad_fn"), ("NIG-04", "4, needs_input_grad"))
    ]
    (cause,) = causes.causes(failing)
    assert cause.head["id"] == "VJP-NEEDS[Cube-cpu]"
    assert cause.others == "VJP-NEEDS (Exp, Select, Sinh and 1 more), NIG-02, NIG-04"


def test_an_exception_is_one_cause_with_what_was_refused_or_compared_because_of_it():
    text = "NotImplementedError: no {} in this fork (0x7f3{})"
    failing = [raising("VJP-REF", f, text.format("rule for 'a'", n)) for n, f in enumerate(FUNCTIONS)]
    failing += [raising("VJP-MASK", "Exp", text.format("rule for 'b'", 9), kind="wrong")]
    reason = "refused in every example: " + text.format("rule for 'c'", 1)
    failing += [result("ENV-AUTOCAST[Exp-cpu]", "vacuous", vacuous="refused", reason=reason)]
    failing += [raising("VJP-REPEAT", "Exp", "NotImplementedError: nothing else")]
    assert grouped(failing) == [{"VJP-REF": 5, "VJP-MASK": 1, "ENV-AUTOCAST": 1}, {"VJP-REPEAT": 1}]


def test_derivatives_that_are_wrong_for_the_same_functions_are_one_cause():
    failing = [
        found(c, f) for c, n in (("VJP-REF", 3), ("VJP-COTANGENT-LAYOUT", 5), ("VJP-CHAIN", 4)) for f in FUNCTIONS[:n]
    ]
    failing += [found("VJP-FD", "Exp", "slope of the drawn direction")]
    (cause,) = causes.causes(failing)
    assert cause.head["property"] == "VJP-COTANGENT-LAYOUT"


@pytest.mark.parametrize(
    "other",
    [
        found("VJP-REPEAT", "Select"),  # of another Function
        found("FWD-VALUE", "Exp", "output"),
        found("VJP-PURE", "Exp", "a cotangent", kind="mutated"),
        found("VJP-REF", "Exp", variant="averages")
        | {"outcome": "error", "failure": {"type": "Hang", "message": "m", "traceback": []}},
        raising("VJP-LINEAR", "Exp", "TypeError: not a tensor"),
        found("LAYOUT-01", what="gradient of argument 0 (x) at (0,)"),
    ],
    ids=lambda line: line["id"],
)
def test_another_fault_is_not_hidden(other):
    failing = [found("VJP-REF", f) for f in FUNCTIONS[:3]]
    groups = grouped([*failing, other])
    assert len(groups) == 2
    # What explains most comes first.
    assert groups[0] == {"VJP-REF": 3}


def test_clauses_of_one_group_are_one_cause_and_the_documented_one_comes_first():
    graph = [found(c, what="requires_grad, and having a grad_fn, of each output") for c in ("CTX-04", "ND-05", "ND-01")]
    others = [found("ND-04", what="a call that marks a non-tensor"), found("ND-05", what="a pass", variant="backward")]
    apart = [found("DIRTY-14", what="changed arguments"), raising("ND-06", "", "TypeError: no")]
    head, *rest = causes.causes([*graph, *others, *apart])
    assert head.head["id"] == "ND-01[cpu]"
    assert len(head.lines) == 3
    assert [line["id"] for line in head.nearby] == ["ND-04[cpu]", "ND-05/backward[cpu]"]
    assert grouped([line for cause in rest for line in cause.lines]) == [{"ND-06": 1}, {"DIRTY-14": 1}]


def test_two_clauses_of_a_group_are_two_causes():
    assert len(grouped([found("ND-04", what="a non-tensor"), found("ND-07", what="cotangents")])) == 2


def test_crashes_at_one_place_are_one_cause():
    def crash(function, place):
        stack = ["Thread 0x1 (most recent call first):", '  File "a.py", line 1 in wait',
                 "Current thread 0x2 (most recent call first):", f'  File "b.py", line {place}']  # fmt: skip
        failure = {"type": "Death", "message": "the process died: Aborted", "traceback": stack}
        return result(f"VJP-REF[{function}-cpu]", "error", failure=failure)

    assert grouped([crash("Exp", "3 in f"), crash("Cube", "9 in f"), crash("Sort", "3 in g")]) == [
        {"VJP-REF": 2},
        {"VJP-REF": 1},
    ]


FLOOD = [found("VJP-NEEDS", f"F{n}", "ctx.needs_input_grad in forward", script="x = 1") for n in range(300)]


def test_the_end_of_a_run_shows_a_cause_once():
    shown = "\n".join(summary.failures(FLOOD, lines(FLOOD)[0]))
    assert shown.startswith("300 test ids by one probable cause\n")
    assert shown.count("rerun: ") == 1
    assert "same cause: 299 more test ids: VJP-NEEDS (F1, F10, F100 and 296 more)" in shown


def test_the_comparison_shows_a_cause_once(held):
    before = {line["id"]: "pass" for line in FLOOD}
    status, out = held(before, {line["id"]: line for line in FLOOD})
    assert status == 1
    assert out.count("rerun: ") == 1
    assert "before: pass" in out
    assert "same cause: 299 more test ids: VJP-NEEDS (F1, F10, F100 and 296 more)" in out
    assert "gate: fails: 300 broken" in out


def test_the_page_shows_a_cause_once(tmp_path, said):
    write(tmp_path / "r.ndjson", lines(FLOOD))
    assert said("report", "r.ndjson", "-o", "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text()
    assert "What fails, by probable cause" in text
    assert text.count("same cause: 299 more: VJP-NEEDS (F1, F10, F100 and 296 more)") == 1
    write(tmp_path / "r.ndjson", lines([result("VJP-REF[Exp-cpu]")]))
    assert said("report", "r.ndjson", "-o", "page.html")[0] == 0
    assert "What fails" not in (tmp_path / "page.html").read_text()


def test_a_name_that_one_of_several_failures_has_heads_none():
    several = ("CKPT-09", "CKPT-05", "CKPT-02", "CKPT-01")
    whats = ("an unknown determinism_check", *["grad_fn of each run"] * 3)
    lines = [found(c, what=what) for c, what in zip(several, whats, strict=True)]
    (cause,) = causes.causes([*lines, found("CKPT-01", what="grad_fn of each run", variant="autocast")])
    assert cause.head["id"] == "CKPT-01[cpu]"
    assert [line["id"] for line in cause.nearby] == ["CKPT-09[cpu]"]


DISTINCT = [
    *(found(claim, what="ctx.needs_input_grad in forward") for claim in ("FUNC-01", "FUNC-02")),
    found("FUNC-07", what="tangents", got="3", expected="6"),
    found("FUNC-11", what="the Jacobian", got="0", expected="1"),
]
ROWS = ("FUNC-07[cpu]: tangents: got 3, expected 6", "FUNC-11[cpu]: the Jacobian: got 0, expected 1")


def test_another_fault_of_the_group_is_shown_with_what_happened():
    (cause,) = causes.causes(DISTINCT)
    assert cause.others == "FUNC-02"
    assert cause.title == "FUNC-01[cpu], and 3 more test ids"
    shown = summary.failures(DISTINCT, lines(DISTINCT)[0])
    assert "  same cause: 1 more test id: FUNC-02" in shown
    place = shown.index("  also failing in this group:")
    assert shown[place + 1 : place + 3] == [f"    {row}" for row in ROWS]


def test_the_comparison_shows_another_fault_of_the_group(held):
    status, out = held({line["id"]: "pass" for line in DISTINCT}, {line["id"]: line for line in DISTINCT})
    assert status == 1
    for row in ROWS:
        assert f"    {row.replace(': ', ': pass -> fail: ', 1)}\n" in out


# An autograd-conformance of an environment with the old implementation: it notes what it has to run, and passes it.
OLD = """#!{python}
import shutil, sys
words = dict(zip(sys.argv, sys.argv[1:]))
shutil.copy(words["--replay"], "asked")
shutil.copy("old.ndjson", words["--report"])
"""


def test_what_may_be_another_fault_is_run_on_the_old_implementation(held, said, tmp_path):
    failing = [*DISTINCT, found("FUNC-11", what="the Jacobian", variant="vmap")]
    held({line["id"]: "pass" for line in failing}, {line["id"]: line for line in failing})
    program = tmp_path / "old"
    program.write_text(OLD.format(python=sys.executable))
    program.chmod(0o755)
    out = said("compare", "base.txt", "new.ndjson", "--verify", str(program))[1]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert {row.partition("]")[0] for row in asked} == {"FUNC-01[cpu", "FUNC-07[cpu", "FUNC-11[cpu"}
    for row in ROWS:
        happened = row.partition(": ")[2]
        assert f"{happened}; before, with this counterexample: pass, on 1.2\n" in out


def test_the_page_shows_another_fault_of_the_group(tmp_path, said):
    write(tmp_path / "r.ndjson", lines(DISTINCT))
    assert said("report", "r.ndjson", "-o", "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text()
    assert "also failing in this group:" in text
    for row in ROWS:
        name, _, happened = row.partition(": ")
        assert f'<li><code>{name}</code>: <span class="faint">{happened}</span></li>' in text
