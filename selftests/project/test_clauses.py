"""Every clause has a test and a planted fault, or a reason, and every test a clause; runs report them."""

from __future__ import annotations

import ast
import json
import re
from itertools import groupby
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

pytest.importorskip("torch")

from autograd_conformance.harness import catalogue
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.harness.testing.clauses import ClauseSubject, missing
from autograd_conformance.harness.testing.marks import Claim, keeps
from autograd_conformance.harness.views import clause_table
from autograd_conformance.implementations.deviations.torch import DEVIATIONS
from autograd_conformance.implementations.protocol import CAPABILITIES
from autograd_conformance.reference.clauses import CLAUSES, CONTRACT, DIALECTS
from autograd_conformance.reference.clauses.definitions import DOCUMENTS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests.faults.clauses import FAULTS, FIXES
from autograd_conformance.selftests.faults.clauses.definitions import TORCH, every_test
from autograd_conformance.selftests.faults.properties import checks
from autograd_conformance.selftests.implementations.accelerator_faults import FOUND_BY
from autograd_conformance.selftests.support.warm import started

ROOT = Path(__file__).resolve().parents[2]
CLAIMED = {subject_id for claim, _ in every_test() for subject_id in [f"{claim.clause.id}/{claim.variant}".rstrip("/")]}
KNOWN = {id for d in TORCH.deviations for id in d.ids if id.split("/")[0] in CONTRACT}


def test_every_clause_has_a_test_or_a_reason():
    tested = catalogue.tests_by_clause()
    assert [c.id for c in CLAUSES.values() if bool(tested[c.id]) == bool(c.untested)] == []


def test_the_clauses_of_a_group_stand_together():
    starts = [group for group, _ in groupby(CLAUSES.values(), key=lambda clause: clause.group)]
    assert len(starts) == len(set(starts)), starts


def test_every_test_names_a_clause():
    assert set(catalogue.tests_by_clause()) == set(CLAUSES)
    files = [path for part in ("contract", "dialects") for path in (ROOT / "suites" / part).rglob("test_*.py")]
    names = re.compile(r"^(?:def )?(test_\w+)(?:\(| = row\()", re.MULTILINE)
    written = {f"{path.stem}::{name}" for path in files for name in names.findall(path.read_text())}
    marked = {
        f"{Path(t.split('::')[0]).stem}::{t.split('::')[1]}" for ts in catalogue.tests_by_clause().values() for t in ts
    }
    assert written == marked


def test_every_test_says_in_a_sentence_what_it_checks():
    tests = [
        (f"{path.stem}::{node.name}", ast.get_docstring(node) or "")
        for path in (ROOT / "suites").rglob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert tests
    assert [name for name, sentence in tests if not sentence.endswith(".")] == []


def test_the_catalogue_reads_the_same_marks_as_pytest():
    read = {clause for clause, tests in catalogue.tests_by_clause().items() if tests and clause in CONTRACT}
    assert read == {claim.clause.id for claim, _ in every_test()}


def test_every_clause_has_a_planted_fault_or_a_reason():
    planted = {fault.id for fault in FAULTS} | {fix.clause for fix in FIXES}
    planted |= {found.test.partition("/")[0] for found in FOUND_BY.values()}
    assert [c.id for c in CONTRACT.values() if (c.id in planted) == bool(c.unplanted)] == []


def test_nearly_all_documented_clauses_have_a_planted_fault():
    documented = [c for c in CONTRACT.values() if c.level == "documented"]
    assert sum(not c.unplanted for c in documented) >= 0.95 * len(documented)


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.id)
def test_a_clause_is_well_formed(clause):
    assert set(clause.needs.split()) <= CAPABILITIES.keys()
    assert clause.sentence.endswith(".")
    assert len(clause.sentence) <= 250
    assert bool(clause.fault) != bool(clause.unplanted)


@pytest.mark.parametrize("clause", CONTRACT.values(), ids=lambda clause: clause.id)
def test_a_clause_of_the_contract_names_a_document(clause):
    assert clause.document.split(":")[0] in DOCUMENTS


@pytest.mark.parametrize("name", DIALECTS)
def test_the_clauses_of_a_dialect_have_its_name_and_quote_what_they_rest_on(name):
    for clause in DIALECTS[name].values():
        assert clause.id.startswith(f"{name.upper()}-")
        assert clause.document
        assert clause.quote or clause.level == "observed", clause.id


@pytest.mark.parametrize("part", [CONTRACT, *DIALECTS.values()], ids=["contract", *DIALECTS])
def test_sentences_are_reported_apart(part):
    shown = [clause.sentence for clause in part.values()]
    assert len(shown) == len(set(shown))


def test_faults_are_reported_apart():
    shown = [clause.fault for clause in CONTRACT.values() if clause.fault]
    assert len(shown) == len(set(shown))


def test_a_listed_deviation_is_of_a_test_that_exists():
    properties = {"/".join(filter(None, (claim.property_id, claim.variant))) for claim, _ in checks.tests()}
    tested = CLAIMED | properties | set(DIALECTS["cpp"])
    assert {id for deviation in TORCH.deviations for id in deviation.ids} <= tested


def test_every_listed_deviation_of_a_clause_can_hold():
    fixed = {f"{fix.clause}/{fix.variant}".rstrip("/") for fix in FIXES}
    assert fixed >= KNOWN


def test_the_page_of_clauses_has_the_coverage_table():
    assert catalogue.coverage() in (ROOT / "docs" / "clauses" / "index.md").read_text()


def test_an_unknown_clause_is_named():
    with pytest.raises(ValueError, match="unknown clause or capability: NOT-01"):
        keeps("NOT-01")


def test_claims_of_properties_and_clauses_have_different_ids():
    assert not PROPERTIES.keys() & CLAUSES.keys()
    assert all(isinstance(claim, Claim) for claim, _ in checks.tests())


# What the verbs say.


@pytest.fixture
def subject():
    found = ClauseSubject(TORCH, CLAUSES["FN-01"], "cpu")
    found.choices = {"size": 3}
    return found


FAILING = {
    "equal": (lambda s: s.assert_equal("count", got=1, expected=2), "count: got 1, expected 2"),
    "type": (lambda s: s.assert_equal("flags", got=[True], expected=(True,)), "flags: got [True], expected (T"),
    "same": (lambda s: s.assert_same("y", got=s.tensor([1.0]), expected=s.tensor([2.0])), "y: got [1.], expected"),
    "shape": (lambda s: s.assert_same("y", got=s.tensor([1.0]), expected=s.tensor(1.0)), "y: got [1.], expected 1."),
    "none": (lambda s: s.assert_same("y", got=None, expected=s.tensor(1.0)), "y: got None, expected 1."),
    "all": (lambda s: s.assert_all_same("ys", got=[None, 1], expected=[None, 2]), "ys, position 1: got 1"),
    "count": (lambda s: s.assert_all_same("ys", got=[], expected=[None]), "number of ys: got 0, expected 1"),
    "silence": (lambda s: s.assert_raises(ValueError, lambda: 5, "a call"), "a call: got no error, but the result 5"),
    "kind": (lambda s: s.assert_raises(ValueError, lambda: {}["k"], "a call"), "a call: got KeyError: 'k', exp"),
    "facts": (lambda s: s.assert_raises(ValueError, lambda: int("x"), "a call", naming=[7]), "message that names [7]"),
    "accepted": (lambda s: s.assert_accepted(lambda: int("x"), "a call"), "a call: got ValueError: invalid literal"),
    "warning": (lambda s: s.assert_warns(UserWarning, lambda: 5, "a call"), "a call: got no warning, expected"),
}  # fmt: skip


@pytest.mark.parametrize(("fails", "says"), FAILING.values(), ids=FAILING)
def test_a_verb_says_what_is_wrong(subject, fails, says):
    with pytest.raises(Broken) as raised:
        fails(subject)
    assert says in str(raised.value)
    assert "with: size: 3" in str(raised.value)
    assert str(raised.value).startswith(f"FN-01 must hold: {CLAUSES['FN-01'].sentence}")


@pytest.mark.parametrize(
    ("message", "naming", "absent"),
    [
        ("expected 2, got 1", [2, 1], []),
        ("expected 12", [2], [2]),
        ("Position 3 of the inputs", [("argument", "position"), 3], []),
        ("an error", [("argument", "position")], [("argument", "position")]),
    ],
)
def test_facts_are_whole_words_in_any_case(message, naming, absent):
    assert missing(message, naming) == absent


# What a run says of clauses.

TROUBLE = """
import os

from autograd_conformance.harness.testing.marks import keeps


@keeps("FN-01")
def test_dying_of_the_implementation(subject, data):
    n = subject.draw(data, range(5), "n")
    values, dtype = ([1.0], "float64") if n < 3 else (None, "no dtype")
    subject.assert_that(True, "n", got=subject.implementation.array(values, dtype, subject.device), expected=n)


@keeps("FN-02")
def test_dying_of_itself(subject, data):
    subject.draw(data, range(5), "n")
    no_such_name


@keeps("FN-03")
def test_taking_its_process_down(subject, data):
    subject.draw(data, [7], "n")
    os._exit(3)


@keeps("FN-04")
def test_checking_nothing(subject, data):
    subject.draw(data, range(5), "n")
"""


@pytest.fixture(scope="module")
def trouble(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trouble")
    (folder / "test_trouble.py").write_text(TROUBLE)
    return command("model", "--suite", str(folder), "-n", "1")


@pytest.mark.parametrize(
    ("clause", "outcome", "chosen", "shown"),
    [
        ("FN-01", "fail", "n: 3", "raised"),
        ("FN-02", "error", "n: 0", "no_such_name"),
        ("FN-03", "error", "n: 7", "Death"),
        ("FN-04", "vacuous", None, "made 0 checks"),
    ],
)
def test_what_goes_wrong_costs_one_id_and_says_where(trouble, clause, outcome, chosen, shown):
    line = trouble.results[f"{clause}[cpu]"]
    assert (trouble.status, line["outcome"]) == (1, outcome)
    assert line.get("failure", {}).get("chosen") == chosen
    assert shown in json.dumps(line)
    assert f"{outcome}: {clause}[cpu]" in trouble.out
    assert f"--properties {clause} --device cpu" in trouble.out


def test_lines_of_trouble_keep_the_schema(trouble):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "harness" / "reports" / "report.schema.json").read_text())
    for line in trouble.lines:
        jsonschema.validate(line, schema)


def test_a_run_reports_clauses(command):
    run = command("model", "--properties", "NIG-*", "-n", "0")
    assert run.status == 0, run.out + run.err
    assert {line["clause"] for line in run.results.values()} == {"NIG-01", "NIG-02", "NIG-05", "NIG-07"}
    assert run.header["clauses"] == [f"NIG-0{n}" for n in range(1, 8)]
    assert "clauses: all of NIG pass" in run.out


@pytest.fixture(scope="session")
def of_torch(command):
    """A run of torch on a group of clauses."""
    return command("torch", "--properties", "NIG-*", "-n", "0", "--profile", "quick", "--seed", "1")


@pytest.fixture(scope="session")
def without_clauses(command):
    """A run of which Functions were chosen."""
    return command("model", "--functions", "Exp", "-n", "0", "--profile", "quick", "--seed", "1")


def test_a_known_clause_is_counted_and_the_report_has_what_shows_it(of_torch):
    run = of_torch
    line = run.results["NIG-06[cpu]"]
    assert (run.status, line["outcome"], line["level"]) == (0, "known", "documented")
    assert line["failure"]["chosen"].startswith("function: Polynomial(")
    assert "known: 1 test id, which autograd-conformance list findings explains" in run.out
    assert "k known" in run.out
    assert "clauses: one symbol each of the others\nNIG      ..... k." in run.out


def test_the_table_of_a_report(of_torch):
    run = of_torch
    done = started("list", "clauses", "--report", run.path, folder=run.path.parent)
    assert done.returncode == 0
    table = done.stdout
    assert len(table.splitlines()) == 2 + 7
    assert "| NIG-06   | documented | known     | ctx.needs_input_grad in a partial backward: got" in table


def test_a_report_without_clauses_has_no_table(without_clauses):
    run = without_clauses
    asked = started("list", "clauses", "--report", run.path, folder=run.path.parent)
    assert asked.returncode == 2
    assert "has no results of clauses" in asked.stderr


def test_choosing_functions_leaves_the_clauses_out(without_clauses):
    run = without_clauses
    assert run.results
    assert not any("clause" in line for line in run.results.values())


def test_the_table_shows_the_worst_of_several_tests():
    lines = [
        {"clause": "NIG-01", "outcome": "pass"},
        {
            "clause": "NIG-01",
            "outcome": "fail",
            "failure": {"what": "x", "got": "1|2", "expected": "2", "chosen": "n: 1"},
        },
        {"clause": "NIG-02", "outcome": "unsupported", "reason": "too old"},
    ]
    assert clause_table.rows(lines) == [
        ("NIG-01", "documented", "fail", "x: got 1|2, expected 2 (n: 1)"),
        ("NIG-02", "documented", "unsupported", "too old"),
    ]
    assert clause_table.overview(lines, 80) == [
        "clauses: one symbol each of the others",
        "NIG      Fu",
        "",
        "u unsupported, F fail",
    ]
    assert "got 1\\|2" in clause_table.markdown(lines)


def test_groups_that_pass_are_named_and_long_ones_have_several_rows():
    names = [name for name in CLAUSES if name.startswith(("FN-", "NIG-", "CTX-"))]
    lines = [{"clause": name, "outcome": "known" if name in ("FN-02", "NIG-01") else "pass"} for name in names]
    assert all(len(line) <= 40 for line in clause_table.overview(lines, 40))
    assert clause_table.overview(lines, 80)[:3] == [
        "clauses: all of CTX pass; one symbol each of the others",
        "FN       .k... ..... ..... .....  NIG      k.... ..",
        "         ..... ..... ..",
    ]


def test_a_clause_of_a_newer_release_is_unsupported(monkeypatch):
    monkeypatch.setattr("autograd_conformance.implementations.torch.RELEASE", Version("2.4.1"))
    assert TORCH.predates("2.11")
    assert not TORCH.predates("2.4")


@pytest.mark.parametrize("cause", dict.fromkeys(d.cause for d in DEVIATIONS), ids=lambda cause: cause.script)
def test_a_deviation_is_listed_for_the_releases_on_which_it_was_seen(cause):
    releases = SpecifierSet(cause.releases)
    assert list(releases.filter(cause.seen)) == list(cause.seen)
    assert not cause.releases or list(releases.filter(cause.held)) == []


def test_lines_of_clauses_keep_the_schema(of_torch):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "harness" / "reports" / "report.schema.json").read_text())
    run = of_torch
    assert run.status == 0, run.out + run.err
    assert any(line["kind"] == "result" for line in run.lines)
    for line in run.lines:
        jsonschema.validate(line, schema)
