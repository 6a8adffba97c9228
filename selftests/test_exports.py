"""What a run is written as for CI: JUnit XML, Markdown, a badge."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from autograd_conformance.harness.outcomes import FAILING, OUTCOMES
from autograd_conformance.harness.reports import reading
from autograd_conformance.harness.views import badge, exports, junit, markdown
from autograd_conformance.selftests import reports
from autograd_conformance.selftests.reports import result
from autograd_conformance.selftests.warm import started

NASTY = 'a <b> & "c" | `d` ``e`` *f* _g_ \x1b[31mred\x00 \ud800 \uffff $h$ @i #1 </details>\n```\n- j'
FINDING = {"what": NASTY, "got": "1", "expected": "2", "call": "Call('Exp', args=(Tensor((2,)),))"}
DIED = {"type": "Death", "message": NASTY, "traceback": ['  File "x.py", line 1 in f'], "call": FINDING["call"]}
RESULTS = [
    result("VJP-REF/leaves[Exp-cpu]", "fail", failure=FINDING),
    result("VJP-REF[Sort-cpu]"),
    {key: value for key, value in result("VJP-FD[Exp-cpu]", "error", failure=DIED).items() if key != "reason"},
    result("VJP-FD[Sort-meta]", "emulated"),
    result("NIG-01[cpu]", "unsupported", reason=NASTY),
    result("NIG-02[cpu]", "known", failure=FINDING, reason=f"a reason (a link; seen) {NASTY}", grade="difference"),
    result("NIG-02/b[cpu]", "known", failure=FINDING, reason=f"a reason (a link; seen) {NASTY}", grade="difference"),
    result("NIG-03[cpu]", "fixed", reason="another reason"),
    result("NIG-04[cpu]", "vacuous", reason="nothing was checked"),
    result("NIG-05[cpu]", "skip", reason="there is none"),
]
HOLDING = [result("VJP-REF[Sort-cpu]"), result("NIG-02[cpu]", "known", failure=FINDING, reason="a reason")]


@pytest.fixture
def write(tmp_path):
    def to(results=RESULTS, *, whole=True, name="r.ndjson", **header):
        lines = reports.lines(results, devices=["cpu", "meta"], **header)
        text = "".join(json.dumps(line) + "\n" for line in (lines if whole else lines[:-1]))
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return to


@pytest.fixture
def read(write):
    return lambda *args, **options: reading.read(write(*args, **options))


# JUnit XML, as Jenkins, GitLab and Surefire read it: what may be in what, and the attributes that there are.

CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "testcase": {"properties", "failure", "error", "skipped"},
    "properties": {"property"},
}
COUNTS = {"tests", "failures", "errors", "skipped"}
ATTRIBUTES = {
    "testsuites": {"name", "time", *COUNTS},
    "testsuite": {"name", "time", "timestamp", *COUNTS},
    "testcase": {"classname", "name", "time"},
    "properties": set(),
    "property": {"name", "value"},
    **{element: {"type", "message"} for element in ("failure", "error", "skipped")},
}
ELEMENTS = ("failure", "error", "skipped")


def verify(element):
    """Raise AssertionError for what the readers do not know."""
    assert set(element.attrib) == ATTRIBUTES[element.tag], element.tag
    assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    for name in {"time", *COUNTS} & set(element.attrib):
        assert re.fullmatch(r"\d+\.\d{3}" if name == "time" else r"\d+", element.get(name))
    if element.tag == "testsuite":
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.get("timestamp"))
        assert [child.tag for child in element][:1] == ["properties"]
    if element.tag in ("testsuite", "testsuites"):
        cases = list(element.iter("testcase"))
        found = {tag: len(list(element.iter(tag))) for tag in ELEMENTS}
        shown = [int(element.get(name)) for name in ("tests", "failures", "errors", "skipped")]
        assert shown == [len(cases), *(found[tag] for tag in ELEMENTS)]
    if element.tag == "testcase":
        assert sum(child.tag in ELEMENTS for child in element) <= 1
    for child in element:
        verify(child)


def parsed(run):
    root = ET.fromstring(junit.xml(run).encode())
    verify(root)
    return root


def case(root, name):
    (found,) = (one for one in root.iter("testcase") if one.get("name") == name)
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root[0].set("failures", "7"),
        lambda root: root[0].append(ET.Element("failure", type="x", message="y")),
        lambda root: root[0].attrib.pop("timestamp"),
        lambda root: root[0][1].set("time", "1,5"),
        lambda root: root[0][1].append(ET.Element("skipped", type="x", message="y")),
    ],
)
def test_the_check_of_the_xml_finds_what_is_wrong(read, change):
    root = parsed(read())
    change(root)
    with pytest.raises(AssertionError):
        verify(root)


def test_each_outcome_is_one_of_junits(read):
    root = parsed(read())
    found = {
        one.get("name"): next((child.tag for child in one if child.tag in ELEMENTS), None)
        for one in root.iter("testcase")
    }
    assert found == {
        "VJP-REF/leaves[Exp-cpu]": "failure", "VJP-REF[Sort-cpu]": None, "VJP-FD[Exp-cpu]": "error",
        "VJP-FD[Sort-meta]": None, "NIG-01[cpu]": "skipped", "NIG-02[cpu]": "skipped", "NIG-02/b[cpu]": "skipped",
        "NIG-03[cpu]": "failure", "NIG-04[cpu]": "error", "NIG-05[cpu]": "skipped",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == ["mine on cpu", "mine on meta"]


def test_every_outcome_is_reported_by_every_way():
    assert {name for name in OUTCOMES if name in junit._ELEMENTS} == set(OUTCOMES) - {"pass", "emulated"}
    assert {name for name, element in junit._ELEMENTS.items() if element != "skipped"} == FAILING


def test_clause_and_function_are_properties(read):
    root = parsed(read())
    found = {p.get("name"): p.get("value") for p in case(root, "VJP-REF/leaves[Exp-cpu]").iter("property")}
    assert found == {
        "property": "VJP-REF", "variant": "leaves", "function": "Exp", "device": "cpu", "outcome": "fail",
    }  # fmt: skip
    found = {p.get("name"): p.get("value") for p in case(root, "NIG-02[cpu]").iter("property")}
    assert found == {"clause": "NIG-02", "level": "documented", "device": "cpu", "outcome": "known"}


def test_a_failure_shows_all_and_stays_readable(read):
    root = parsed(read())
    shown = case(root, "VJP-REF/leaves[Exp-cpu]").find("failure")
    assert shown.get("message").startswith('a <b> & "c" | `d`')
    assert r"\x1b[31mred\x00 \ud800 \uffff" in shown.get("message")
    for part in ("gradients equal the reference", "call: Call('Exp'", "rerun: autograd-conformance run mine.py -n 0"):
        assert part in shown.text, part
    assert 'File "x.py", line 1 in f' in case(root, "VJP-FD[Exp-cpu]").find("error").text
    assert "if nothing else fails, remove it from the list: another reason" in case(root, "NIG-03[cpu]").find(
        "failure"
    ).get("message")
    assert case(root, "NIG-05[cpu]").find("skipped").get("message") == "there is none"


@pytest.mark.parametrize("results", [RESULTS, HOLDING, []])
def test_an_unfinished_run_is_an_error(read, results):
    root = parsed(read(results, whole=False))
    shown = case(root, "the report is complete").find("error")
    missing = (
        "every test id has a result, but its last line is missing" if results else "it ended before the first test"
    )
    assert f"the run did not finish: {missing}" in shown.get("message")
    assert int(root.get("errors")) >= 1
    assert not [one for one in parsed(read(results)).iter("testcase") if one.get("name") == "the report is complete"]


# Markdown.


def test_the_summary_shows_verdict_counts_and_failures(read):
    text = markdown.text(read())
    first = text.splitlines()[0]
    assert first.startswith("### ❌ mine 1.2 fails: 2 of 6 test ids hold; 1 errors, 1 failed, 1 fixed, 1 vacuous")
    assert "| fail " in text
    assert "#### 4 fail" in text
    assert r"**fail: VJP-REF/leaves\[Exp-cpu\]** must hold: gradients equal the reference VJP" in text
    assert "- got: 1\n- expected: 2" in text
    assert "- why: nothing was checked" in text
    assert "<details><summary>2 listed deviations, by 1 causes</summary>\n\n- difference: NIG-02[cpu]" in text.replace(
        "\\", ""
    )


def test_the_summary_of_a_shard_says_so(read):
    assert "\nshard 2/7; profile gate" in markdown.text(read(HOLDING, shard="2/7"))
    assert "shard" not in markdown.text(read(HOLDING))


def test_the_commands_can_be_copied(read):
    blocks = re.findall(r"^(`{3,})text\n(.*?)\n\1$", markdown.text(read()), re.M | re.S)
    found = [line for _, block in blocks for line in block.splitlines()]
    assert "Call('Exp', args=(Tensor((2,)),))" in found
    command = "autograd-conformance run mine.py -n 1 --properties VJP-FD --functions Exp --device cpu"
    assert any(line.startswith(command) for line in found)


def test_what_markdown_reads_as_its_own_is_escaped(read):
    text = markdown.text(read())
    prose = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.M | re.S)
    ours = ("<details><summary>", "</summary>", "</details>", "**", "####", "###")
    for mark in ours:
        prose = prose.replace(mark, "")
    prose = re.sub(r"^\|.*\|$", "", prose, flags=re.M)
    assert not re.search(r"(?<!\\)[`*_<>|~$@#&\[\]]", prose)
    assert prose.count(r"\</details\>") == 3  # of two failures, and of the one cause
    assert "\x1b" not in text


def test_a_fence_is_longer_than_what_it_holds():
    assert markdown._literal("a ```` b").startswith("`````text\n")


def test_the_summary_stays_under_githubs_limit(read):
    long = "x|" * 1500
    many = [
        result(f"VJP-REF[F{n}-cpu]", "fail", failure={**FINDING, "what": long, "hint": long, "call": long})
        for n in range(1000)
    ]
    many += [result(f"NIG-01/v{n}[cpu]", "known", failure=FINDING, reason=f"{n} {long}") for n in range(1000)]
    text = markdown.text(read(many))
    assert len(text.encode()) < markdown.LIMIT
    assert text.count("**fail: ") == markdown.IN_FULL
    assert f"- and {1000 - markdown.IN_FULL - markdown.BY_NAME} more, in the report" in text
    assert f"- and {1000 - markdown.CAUSES} more causes, in the report" in text


def test_the_summary_of_a_run_that_holds_is_short(read):
    text = markdown.text(read(HOLDING))
    assert text.startswith("### ✅ mine 1.2 holds: 1 of 1 test ids hold; 1 known\n")
    assert "####" not in text


def test_the_summary_of_an_unfinished_run_says_so(read):
    text = markdown.text(read(HOLDING, whole=False))
    assert text.startswith("### ⚠️ mine 1.2 did not finish: ")
    assert "**The run did not finish**: every test id has a result, but its last line is missing." in text


# The badge.


@pytest.mark.parametrize(
    ("results", "whole", "message", "color"),
    [
        (HOLDING, True, "1.2: 1 of 1 test ids hold", "brightgreen"),
        (RESULTS, True, "1.2: 4 fail", "red"),
        (HOLDING, False, "1.2: did not finish", "lightgrey"),
        (RESULTS, False, "1.2: did not finish", "lightgrey"),
    ],
)
def test_the_badge(read, results, whole, message, color):
    found = json.loads(badge.text(read(results, whole=whole)))
    label = "autograd conformance of mine"
    assert found == {"schemaVersion": 1, "label": label, "message": message, "color": color}


def test_a_report_that_was_changed_is_no_success(write):
    path = write(HOLDING)
    path.write_text(path.read_text().replace('"examples": 25', '"examples": 26'))
    run = reading.read(path)
    assert json.loads(badge.text(run))["message"] == "1.2: has a damaged report"
    assert parsed(run).get("errors") == "1"
    assert markdown.text(run).startswith("### ⚠️ ")


# The command.


def export(folder, *words):
    return started("export", *words, folder=folder)


def test_the_command_writes_what_it_is_asked_for(write, tmp_path):
    write()
    done = export(tmp_path, "r.ndjson", "--junit", "j.xml", "--markdown", "-", "--badge", "b.json")
    run = reading.read(tmp_path / "r.ndjson")
    assert (done.returncode, done.stdout, done.stderr) == (0, markdown.text(run), "")
    assert (tmp_path / "j.xml").read_text() == junit.xml(run)
    assert (tmp_path / "b.json").read_text() == badge.text(run)
    assert export(tmp_path, "r.ndjson", "--markdown", "m.md").stdout == ""
    assert (tmp_path / "m.md").read_text() == markdown.text(run)


MISTAKES = [
    (("r.ndjson",), "nothing to export; give at least one of: --junit FILE, --markdown FILE, --badge FILE"),
    (("none.ndjson", "--badge", "b"), "none.ndjson cannot be read: No such file"),
    (("page.txt", "--badge", "b"), "page.txt is not a report"),
    (("r.ndjson", "--junit", "nowhere/j"), "the file of --junit cannot be written to nowhere/j: there is no folder"),
    (("r.ndjson", "--markdown", "."), "the file of --markdown cannot be written to .: it is a folder"),
    (("r.ndjson", "--badge", "r.ndjson"), "--badge r.ndjson would overwrite the report"),
    (("r.ndjson", "--junit", "x", "--badge", "./x"), "--badge x would overwrite the file of --junit"),
    (("r.ndjson", "--junit"), "--junit"),
    (("--junit", "x"), "REPORT"),
]


@pytest.mark.parametrize(("words", "shown"), MISTAKES)
def test_mistakes_are_reported_in_a_sentence(write, tmp_path, words, shown):
    before = write().read_bytes()
    (tmp_path / "page.txt").write_text("text\n")
    done = export(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert shown in done.stderr.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.txt", "r.ndjson"]
    assert (tmp_path / "r.ndjson").read_bytes() == before


def test_a_full_disk_is_reported_in_a_sentence(write, tmp_path):
    write()
    done = export(tmp_path, "r.ndjson", "--junit", "/dev/full")
    assert done.returncode == 2
    reason = "No space left on device; choose another file with --junit FILE"
    assert done.stderr == f"Error: the file of --junit cannot be written to /dev/full: {reason}\n"


FILES = ("--junit", "j.xml", "--markdown", "m.md", "--badge", "b.json")


def test_a_run_writes_them_also_when_it_falls_short(command, suite):
    run = command("model", "--suite", str(suite), "--functions", "Square", "-n", "1", *FILES)
    assert run.status == 1
    folder = run.path.parent
    assert ET.parse(folder / "j.xml").getroot().get("failures") == "1"
    assert (folder / "m.md").read_text().startswith("### ❌ model ")
    assert json.loads((folder / "b.json").read_text())["color"] == "red"


def test_a_run_that_breaks_off_writes_that(command, suite):
    run = command("model", "--suite", str(suite), "--functions", "Square", "-n", "0", *FILES, "--", "-x")
    assert run.footer is None
    assert "did not finish" in (run.path.parent / "b.json").read_text()


def test_a_run_shows_its_summary_last(command):
    run = command("model", "--functions", "Exp", "--properties", "FWD-VALUE", "-n", "0", "--markdown", "-")
    assert run.status == 0
    assert run.out.endswith(markdown.text(reading.read(run.path)))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--junit", "nowhere/j"), "the file of --junit cannot be written to nowhere/j"),
        (("--badge", "r", "--report", "r"), "--badge r would overwrite the report"),
        (("--markdown", "autograd-conformance.ndjson"), "would overwrite the report"),
        (("--profile", "replay", "--replay", "old.ndjson", "--junit", "j"), "--junit needs a report; name one with"),
    ],
)
def test_a_run_refuses_them_before_it_starts(command, tmp_path, words, shown):
    failed = result("VJP-REF[Exp-cpu]", "fail", failure=reports.FINDING | {"call": FINDING["call"]})
    reports.write(tmp_path / "old.ndjson", reports.lines([failed]))
    run = command("model", "--functions", "Exp", "--properties", "FWD-VALUE", "-n", "0", *words, folder=tmp_path)
    assert run.status == 2
    assert shown in run.err
    assert "checking" not in run.out
    assert [path.name for path in tmp_path.iterdir()] == ["old.ndjson"]


def test_the_ways_are_the_options():
    assert exports.chosen({"junit": None, "badge": "b", "other": "c"}) == {"badge": "b"}
