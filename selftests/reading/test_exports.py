"""What a run is written as for CI: Markdown."""

from __future__ import annotations

import json
import re

import pytest

from autograd_conformance.harness.reports import reading
from autograd_conformance.harness.views import markdown
from autograd_conformance.selftests.support import reports
from autograd_conformance.selftests.support.reports import result
from autograd_conformance.selftests.support.warm import started

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


def test_a_report_that_was_changed_is_no_success(write):
    path = write(HOLDING)
    path.write_text(path.read_text().replace('"examples": 25', '"examples": 26'))
    assert markdown.text(reading.read(path)).startswith("### ⚠️ ")


# The command.


def export(folder, *words):
    return started("export", *words, folder=folder)


def test_the_command_writes_what_it_is_asked_for(write, tmp_path):
    write()
    done = export(tmp_path, "r.ndjson", "--markdown", "-")
    run = reading.read(tmp_path / "r.ndjson")
    assert (done.returncode, done.stdout, done.stderr) == (0, markdown.text(run), "")
    assert export(tmp_path, "r.ndjson", "--markdown", "m.md").stdout == ""
    assert (tmp_path / "m.md").read_text() == markdown.text(run)


MISTAKES = [
    (("r.ndjson",), "nothing to export; give --markdown FILE"),
    (("none.ndjson", "--markdown", "m"), "none.ndjson cannot be read: No such file"),
    (("page.txt", "--markdown", "m"), "page.txt is not a report"),
    (("r.ndjson", "--markdown", "no/m"), "the file of --markdown cannot be written to no/m: there is no folder"),
    (("r.ndjson", "--markdown", "."), "the file of --markdown cannot be written to .: it is a folder"),
    (("r.ndjson", "--markdown", "r.ndjson"), "--markdown r.ndjson would overwrite the report"),
    (("r.ndjson", "--markdown"), "--markdown"),
    (("r.ndjson", "--junit", "x"), "unknown option --junit"),
    (("--markdown", "x"), "REPORT"),
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
    done = export(tmp_path, "r.ndjson", "--markdown", "/dev/full")
    assert done.returncode == 2
    reason = "No space left on device; choose another file with --markdown FILE"
    assert done.stderr == f"Error: the file of --markdown cannot be written to /dev/full: {reason}\n"


SUMMARY = ("--markdown", "m.md")


def test_a_run_writes_it_also_when_it_falls_short(command, suite):
    words = (*SUMMARY, "--", "--junitxml=j.xml")
    run = command("model", "--suite", str(suite), "--functions", "Square", "-n", "1", *words)
    assert run.status == 1
    assert (run.path.parent / "m.md").read_text().startswith("### ❌ model ")
    # Pytest's own, which leaves nothing out.
    assert "<failure" in (run.path.parent / "j.xml").read_text()
    assert run.lines[0]["options"]["pytest"] is None


def test_a_run_that_breaks_off_writes_that(command, suite):
    run = command("model", "--suite", str(suite), "--functions", "Square", "-n", "0", *SUMMARY, "--", "-x")
    assert run.footer is None
    assert "did not finish" in (run.path.parent / "m.md").read_text()


def test_a_run_shows_its_summary_last(command):
    run = command("model", "--functions", "Exp", "--properties", "FWD-VALUE", "-n", "0", "--markdown", "-")
    assert run.status == 0
    assert run.out.endswith(markdown.text(reading.read(run.path)))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--markdown", "nowhere/m"), "the file of --markdown cannot be written to nowhere/m"),
        (("--markdown", "r", "--report", "r"), "--markdown r would overwrite the report"),
        (("--markdown", "autograd-conformance.ndjson"), "would overwrite the report"),
        (("--profile", "replay", "--replay", "old.ndjson", "--markdown", "m"), "--markdown needs a report; name"),
    ],
)
def test_a_run_refuses_it_before_it_starts(command, tmp_path, words, shown):
    failed = result("VJP-REF[Exp-cpu]", "fail", failure=reports.FINDING | {"call": FINDING["call"]})
    reports.write(tmp_path / "old.ndjson", reports.lines([failed]))
    run = command("model", "--functions", "Exp", "--properties", "FWD-VALUE", "-n", "0", *words, folder=tmp_path)
    assert run.status == 2
    assert shown in run.err
    assert "checking" not in run.out
    assert [path.name for path in tmp_path.iterdir()] == ["old.ndjson"]
