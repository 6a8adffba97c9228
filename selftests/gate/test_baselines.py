"""Baselines: what one says, and which are refused."""

from __future__ import annotations

import json

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import baseline, ndjson
from autograd_conformance.selftests.support.reports import ALL_PASS, HEADER, IDS, lines, result, write


def test_a_baseline_is_small_sorted_and_says_nothing_of_the_machine(said, tmp_path):
    texts = []
    for machine, order in (("linux", IDS), ("darwin", IDS[::-1])):
        found = [result(id, "fail" if id == IDS[0] else "pass") for id in order]
        write(tmp_path / "r", lines(found, platform=machine, python=machine, started="2027-01-01T00:00:00+00:00"))
        assert said("accept", "r", "-o", machine)[0] == 0
        texts.append((tmp_path / machine).read_text())
    assert texts[0] == texts[1]
    rows = [line for line in texts[0].splitlines() if not line.startswith("#")]
    assert rows == sorted(rows)
    assert "VJP-REF[Exp-cpu]  fail  25/25 f64 f32  gradient of argument 0 (x)" in rows
    assert texts[0].endswith("# end 4\n")


PASSED = "NIG-01[cpu]  pass  25/25 f64 f32\n"

DAMAGES = {
    "missing": (lambda _: None, "No such file"),
    "empty": (lambda _: "", "is empty"),
    "blank": (lambda _: "\n\n", "is empty"),
    "a report": (
        lambda _: json.dumps(HEADER) + "\n",
        "base.txt is a report, not a baseline; make a baseline from it with",
    ),
    "other text": (lambda _: "hello\n", "is not a baseline"),
    "half a file": (lambda text: text[: len(text) // 2], "is truncated"),
    "no end": (lambda text: text.removesuffix("# end 4\n"), "is truncated"),
    "a line less": (lambda text: text.replace(PASSED, ""), "is truncated"),
    "a line twice": (lambda text: text.replace(PASSED, PASSED * 2), "is truncated"),
    "twice, counted": (
        lambda text: text.replace(PASSED, PASSED * 2).replace("end 4", "end 5"),
        "has an id twice",
    ),
    "not sorted": (lambda text: text.replace("VJP-REF[Exp-cpu]", "ZZZ-REF[Exp-cpu]"), "is not sorted"),
    "another outcome": (lambda text: text.replace("NIG-01[cpu]  pass", "NIG-01[cpu]  fail"), "changed by hand"),
    "no outcome": (lambda text: text.replace("NIG-01[cpu]  pass", "NIG-01[cpu]  great"), "cannot be read"),
    "another parameter": (lambda text: text.replace("# seed: 0", "# seed: 1"), "changed by hand"),
    "a conflict": (
        lambda text: text.replace(PASSED, f"<<<<<<< a\n{PASSED}=======\n>>>>>>> b\n"),
        "merge conflict in line",
    ),
    "another format": (
        lambda text: text.replace("baseline: 2", "baseline: 7"),
        "format 7, but this version of the suite reads 2",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_baseline_that_cannot_be_trusted_is_refused(said, base, tmp_path, damage):
    change, reason = DAMAGES[damage]
    (tmp_path / "base.txt").unlink()
    if change(base) is not None:
        assert change(base) != base
        (tmp_path / "base.txt").write_text(change(base))
    with pytest.raises(UsageProblem, match="accept") as raised:
        baseline.read(tmp_path / "base.txt")
    assert reason in str(raised.value)
    if damage != "a report":
        status, out = said("compare", "base.txt", "old.ndjson")
        assert status == 2
        assert reason in out


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_no_part_of_a_baseline_is_one(base, tmp_path, cut):
    (tmp_path / "base.txt").write_text(base[: len(base) - 2 - cut])
    with pytest.raises(UsageProblem):
        baseline.read(tmp_path / "base.txt")


def test_line_ends_and_marks_of_other_systems_change_nothing(base, tmp_path):
    found = baseline.read(tmp_path / "base.txt")
    for other in (base.replace("\n", "\r\n"), "\ufeff" + base, base.rstrip("\n")):
        (tmp_path / "base.txt").write_bytes(other.encode())
        assert baseline.read(tmp_path / "base.txt") == found


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("implementation is mine, and", {"implementation": {**HEADER["implementation"], "name": "yours"}}),
        ("profile is gate, and this run's is nightly", {"profile": "nightly"}),
        ("examples is 25, and this run's is 7", {"examples": 7}),
        ("seed is 0, and this run's is 1", {"seed": 1}),
        ("dtype is all, and this run's is float32", {"dtype": "float32"}),
        ("device is all, and this run's is cpu", {"options": {**HEADER["options"], "device": "cpu"}}),
        ("functions is all, and this run's is Exp", {"options": {**HEADER["options"], "functions": "Exp"}}),
        ("properties is all, and", {"options": {**HEADER["options"], "properties": "VJP-*"}}),
        ("hypothesis is 6, and this run's is 7", {"packages": {**HEADER["packages"], "hypothesis": "7"}}),
        ("tests is all, and this run's is functions", {"options": {**HEADER["options"], "tests": "functions"}}),
    ],
)
def test_a_run_with_other_parameters_is_not_compared(held, name, header):
    status, out = held(ALL_PASS, ALL_PASS, **header)
    assert status == 2
    assert name in out


def test_another_version_of_the_implementation_is_what_a_gate_is_for(held):
    status, _ = held(ALL_PASS, ALL_PASS, implementation={**HEADER["implementation"], "version": "2.0", "named": "x"})
    assert status == 0


@pytest.mark.parametrize("id", ["VJP-REF[Exp-my device]", "VJP-REF[Exp-Gerät]", "VJP-REF[Exp-a  pass]"])
@pytest.mark.parametrize("name", ["mine", "möin # end 4", "<<<<<<< x", "a: b"])
def test_odd_names_survive_or_are_refused(said, tmp_path, id, name):
    write(
        tmp_path / "r",
        lines([result(id), result("NIG-01[cpu]")], implementation={**HEADER["implementation"], "name": name}),
    )
    status, out = said("accept", "r", "-o", "b")
    if "  " in id:
        assert status == 2
        assert repr(id) in out
    else:
        assert set(baseline.read(tmp_path / "b").entries) == {id, "NIG-01[cpu]"}
        assert said("compare", "b", "r")[0] == 0


def of_format_1(base):
    """The text of a baseline as the first format had it."""
    rows = [line.replace("  25/25 f64 f32", "") for line in base.splitlines() if not line.startswith("# digest")]
    rows[0], rows[1] = "# autograd-conformance baseline: 1", "# suite: 0.1.0"
    rows = [row for row in rows if not row.startswith(("# claims", "# columns"))]
    place = next(n for n, row in enumerate(rows) if row.startswith("# ids")) + 1
    digest = ndjson.digest(f"{row}\n" for row in rows)
    return "".join(f"{row}\n" for row in [*rows[:place], f"# digest: {digest}", *rows[place:]])


def test_a_baseline_that_does_not_say_how_much_was_asked_is_compared_on_purpose_alone(said, base, tmp_path):
    (tmp_path / "base.txt").write_text(of_format_1(base))
    status, out = said("compare", "base.txt", "old.ndjson")
    assert status == 2
    assert "base.txt is of format 1, which does not say how much was asked, and by which sources" in out
    assert "accept" in out
    status, out = said("compare", "base.txt", "old.ndjson", "--other-suite")
    assert status == 0
    assert "warning: base.txt is of format 1" in out


@pytest.mark.parametrize(
    ("header", "differs"),
    [
        ({"version": "0.2.0"}, "version"),
        ({"sources": {**HEADER["suite"]["sources"], "reference": "1" * 16}}, "reference"),
        ({"sources": {**HEADER["suite"]["sources"], "tests": "1" * 16}}, "tests"),
    ],
)
def test_a_run_of_another_suite_is_compared_on_purpose_alone(held, said, header, differs):
    status, out = held(ALL_PASS, ALL_PASS, suite={**HEADER["suite"], **header})
    assert status == 2
    assert f"base.txt was made with another suite: its {differs} differ" in out
    status, out = said("compare", "base.txt", "new.ndjson", "--other-suite")
    assert status == 0
    assert f"warning: base.txt was made with another suite: its {differs} differ" in out
    status, out = said("accept", "new.ndjson", "-o", "base.txt")
    assert f"suite, {differs}: " in out
    assert said("compare", "base.txt", "new.ndjson")[0] == 0


def test_another_adapter_of_ones_own_is_a_warning(held):
    sources = {**HEADER["suite"]["sources"], "adapter": "1" * 16}
    status, out = held(ALL_PASS, ALL_PASS, suite={**HEADER["suite"], "sources": sources})
    assert status == 0
    assert "warning: the adapter is not the one that base.txt was made with" in out
