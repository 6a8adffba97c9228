"""What failed is kept, run again, and found first."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_conformance.harness import cli
from autograd_conformance.harness.outcomes import Drawn, UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import corpus
from autograd_conformance.harness.running.corpus import Counterexample
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.support.reports import HEADER
from autograd_conformance.strategies.calls import calls, parse

CALL = "Call('Exp', args=(Tensor((2, 3), requires_grad=True),), cotangents=(Cotangent(),), seed=54321)"

# Fails for what is drawn in one of some fifty examples, and for one call that nobody draws.
SUITE = f"""
import os
from zlib import crc32

from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import holds, keeps
from autograd_conformance.strategies.calls import parse

CALL = parse({CALL!r})


@keeps("NIG-01")
def test_rarely_broken(subject, data):
    number = subject.draw(data, st.integers(0, 2**20), "number")
    subject.assert_that(crc32(b"%d" % number) % 50 > 0, "remainder", got=0, expected="more")


@keeps("NIG-02")
def test_dying(subject, data):
    number = subject.draw(data, st.integers(0, 2**20), "number")
    subject.record.checks += 1
    if crc32(b"%d" % number) % 50 == 0:
        os._exit(1)


@holds("VJP-REF", where=lambda f: f.name == "Exp")
def test_of_calls(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_that(example.call != CALL, example.call, "call", got="it", expected="another")


@holds("VJP-FD", where=lambda f: f.name == "Exp")
def test_of_some_calls(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    broken = crc32(repr(example.call).encode()) % 50 == 0
    subject.assert_that(not broken, example.call, "call", got="broken", expected="whole")
"""


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rare")
    (folder / "test_rare.py").write_text(SUITE)
    return str(folder)


@pytest.fixture
def keep(monkeypatch, tmp_path):
    """Exit status and output of ``keep``, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        done = CliRunner().invoke(cli.main, ["keep", *map(str, words)])
        return done.exit_code, done.output

    return call


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=10, derandomize=True, database=None)
@given(data=st.data())
def test_a_line_is_read_as_what_was_written(name, data, tmp_path_factory):
    kept = Counterexample(f"VJP-REF[{name}-cpu]", data.draw(calls(FUNCTIONS[name])), remark="engine: grad")
    path = tmp_path_factory.getbasetemp() / "one.txt"
    path.write_text(f"{kept}\n")
    assert [str(one) for one in corpus.read(path)] == [str(kept)]


@pytest.mark.parametrize("drawn", [Drawn(0, 25), Drawn(2**32 - 1, 300, "float32")], ids=str)
def test_so_is_how_something_was_drawn(tmp_path, drawn):
    kept = Counterexample("NIG-01/variant[cpu]", drawn=drawn, remark="function: Polynomial(arguments=('tracked',))")
    (tmp_path / "corpus").write_text(f"# said\n\n{kept}\n")
    (read,) = corpus.read(tmp_path / "corpus")
    assert (read, read.drawn, read.remark) == (kept, drawn, kept.remark)


BAD = [
    ("VJP-REF[Exp-cpu]", "must be ID CALL or ID seed=N examples=M"),
    ("vjp-ref seed=1 examples=2", "must be ID CALL or ID seed=N examples=M"),
    ("VJP-REF[Exp-cpu]  Call(", "cannot be read"),
    ("VJP-REF[Exp-cpu]  __import__('os')", "cannot be read"),
    ("VJP-GONE[Exp-cpu]  Call('Exp')", "VJP-GONE, which this suite does not have"),
    ("GONE-01[cpu]  seed=1 examples=2", "GONE-01, which this suite does not have"),
    ("VJP-REF[Gone-cpu]  Call('Gone')", "Gone, which is not a Function"),
    ("VJP-REF[Gone-cpu]  seed=1 examples=2", "Gone, which is not a Function"),
    ("VJP-REF[Square-cpu]  Call('Exp')", "does not match VJP-REF[Square-cpu]"),
    ("VJP-REF[Exp-cuda]  Call('Exp')", "does not match VJP-REF[Exp-cuda]"),
]


@pytest.mark.parametrize(("line", "problem"), BAD)
def test_a_line_that_cannot_be_run_is_reported(tmp_path, line, problem):
    path = tmp_path / "corpus"
    path.write_text(f"# said\nNIG-01[cpu]  seed=0 examples=1\n{line}\n")
    with pytest.raises(UsageProblem) as raised:
        corpus.read(path)
    assert problem in str(raised.value)
    assert f"{path}, line 3" in str(raised.value)


def result(id, outcome="fail", **failure):
    return {"kind": "result", "id": id, "outcome": outcome, "failure": {"what": "x", **failure}}


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, *lines)))


def test_keep_adds_what_is_new_and_sorts_it(keep, tmp_path):
    drawn = {"seed": 7, "examples": 25, "dtype": None}
    other = CALL.replace("54321", "1")
    write(tmp_path / "a", result("VJP-REF[Exp-cpu]", call=CALL), result("NIG-01[cpu]", drawn=drawn, chosen="n: 1,\n2"))
    write(tmp_path / "b", result("VJP-REF[Exp-cpu]", call=other), result("VJP-REF[Exp-cpu]", call=CALL))
    write(tmp_path / "c", result("ND-01[cpu]", "known", drawn=drawn), result("CTX-01[cpu]", "error"))
    assert keep("a", "--corpus", "kept")[0] == 0
    (tmp_path / "kept").write_text("# a remark of ours\n" + (tmp_path / "kept").read_text())
    status, out = keep("b", "a", "--corpus", "kept")
    assert (status, out.splitlines()[-1]) == (0, "kept: 1 new of 3")
    assert f"new: VJP-REF[Exp-cpu]  {parse(other)!r}" in out
    before = (tmp_path / "kept").read_text().splitlines()
    assert before[0] == "# a remark of ours"
    assert before[2] == "NIG-01[cpu]  seed=7 examples=25  # n: 1, 2"
    assert before[2:] == sorted(before[2:])
    assert len(before) == 5
    status, out = keep("c", "--corpus", "kept")
    assert "the report has neither a call nor a seed for it: CTX-01[cpu]" in out
    assert (tmp_path / "kept").read_text().splitlines() == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "give the reports"),
        (("none",), "none cannot be read: No such file"),
        (("text",), "text is not a report"),
        (("whole", "none"), "none cannot be read: No such file"),
        (("whole", "--corpus", "text"), "text, line 1 must be ID CALL"),
        (
            ("whole", "--corpus", "nowhere/kept"),
            "cannot be written to nowhere/kept: there is no folder nowhere; choose another file with --corpus FILE",
        ),
        (("whole", "--corpus", "."), "the corpus cannot be written to .: it is a folder"),
    ],
)
def test_keep_refuses_what_is_wrong(keep, tmp_path, words, problem):
    write(tmp_path / "whole", result("VJP-REF[Exp-cpu]", call=CALL))
    (tmp_path / "text").write_text("no report\n")
    status, out = keep(*words)
    assert status == 2
    assert out.splitlines()[-1].startswith("Error: ")
    assert problem in out


def test_one_unreadable_report_does_not_lose_what_the_others_found(keep, tmp_path):
    write(tmp_path / "whole", result("VJP-REF[Exp-cpu]", call=CALL))
    (tmp_path / "empty").write_text("")
    status, out = keep("empty", "whole", "--corpus", "kept")
    assert status == 2
    assert "empty is not a report" in out
    assert CALL in (tmp_path / "kept").read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--corpus", "none"), "none cannot be read: No such file"),
        (("--corpus", "none"), "give a report, or a corpus that autograd-conformance keep has written"),
        (("--profile", "replay", "--corpus", "none"), "use --replay none"),
        (("--profile", "replay", "--replay", "none"), "none cannot be read: No such file"),
    ],
)
@pytest.mark.usefixtures("one_process")
def test_a_wrong_option_is_one_sentence(monkeypatch, tmp_path, words, problem):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.main, ["run", "model", *words])
    assert done.exit_code == 2
    assert problem in done.output.splitlines()[-1]


def test_an_empty_corpus_is_nothing_to_replay(command, tmp_path):
    for text in ("", "# nothing yet\n"):
        (tmp_path / "kept.txt").write_text(text)
        replayed = command("model", "--profile", "replay", "--replay", "kept.txt", folder=tmp_path)
        assert replayed.status == 2
        assert replayed.err == "Error: nothing was checked: kept.txt has no counterexamples to replay\n"
    (tmp_path / "broken.ndjson").write_text("")
    assert command("model", "--profile", "replay", "--replay", "broken.ndjson", folder=tmp_path).status == 2


def first_that(command, suite, id, outcome):
    """A nightly run of a test id in which it fails, at a seed that is not the first."""
    for seed in range(1, 20):
        words = ("--suite", suite, "--properties", id.partition("[")[0], "--profile", "nightly", "--seed", str(seed))
        run = command("model", *words, "-n", "1")
        if run.outcomes[id] == outcome:
            return run
    return pytest.fail("it never fails")


@pytest.mark.parametrize(("id", "outcome"), [("NIG-01[cpu]", "fail"), ("NIG-02[cpu]", "error")])
def test_a_clause_is_replayed_with_the_examples_that_broke_it(command, rare, keep, id, outcome):
    found = first_that(command, rare, id, outcome)
    folder = found.path.parent
    assert keep(found.path, "--corpus", folder / "kept")[1].endswith("1 new of 1\n")
    words = ("model", "--suite", rare, "--profile", "replay", "-n", "1")
    again = command(*words, "--replay", "kept", "--report", "again", folder=folder)
    assert again.status == 1
    lines = {line["id"]: line for line in ndjson.read(folder / "again") if line["kind"] == "result"}
    assert ndjson.comparable(lines.values()) == ndjson.comparable(found.results.values())
    assert lines[id]["failure"]["drawn"] == found.results[id]["failure"]["drawn"]
    # Of the report itself too; and another seed shows nothing, or something else.
    command(*words, "--replay", found.path.name, "--report", "again", folder=folder)
    assert ndjson.comparable(ndjson.read(folder / "again")[1:-1]) == ndjson.comparable(lines.values())
    kept = (folder / "kept").read_text()
    (folder / "kept").write_text(re.sub(r"seed=\d+ examples=\d+", "seed=99 examples=2", kept))
    assert command(*words, "--replay", "kept", "--report", "again", folder=folder).status == 0


def test_kept_calls_come_before_what_is_drawn(command, rare, tmp_path):
    words = ("model", "--suite", rare, "--properties", "VJP-REF", "-n", "0")
    assert command(*words).status == 0
    (tmp_path / "kept").write_text(
        f"VJP-REF[Exp-cpu]  {CALL.replace('54321', '1')}\nVJP-REF[Exp-cpu]  {CALL}\nNIG-01[cpu]  seed=1 examples=2\n"
        "VJP-REF[Exp-cuda]  Call('Exp', device='cuda')\n"
    )
    broken = command(*words, "--corpus", "kept", folder=tmp_path)
    assert broken.status == 1
    assert broken.results["VJP-REF[Exp-cpu]"]["failure"]["call"] == repr(parse(CALL))
    # Hypothesis runs what failed once more, to see whether it does so again.
    assert broken.results["VJP-REF[Exp-cpu]"]["examples"] == 3
    assert "2 of the kept counterexamples have no test in this run: NIG-01[cpu], VJP-REF[Exp-cuda]" in broken.out
    (again,) = (line.partition("rerun: ")[2] for line in broken.out.splitlines() if "rerun: " in line)
    assert "--corpus kept" in again
    only = command(*words[:-2], "-n", "2", "--profile", "replay", "--replay", "kept", folder=tmp_path)
    assert only.status == 1


def test_every_kept_call_of_an_id_is_run(command, rare, tmp_path):
    kept = [f"VJP-REF[Exp-cpu]  {CALL.replace('54321', str(seed))}\n" for seed in range(150)]
    (tmp_path / "kept").write_text("".join(kept))
    words = ("model", "--suite", rare, "--profile", "replay", "-n", "0", "--replay", "kept")
    whole = command(*words, "--report", "r", folder=tmp_path)
    assert whole.status == 0
    (line,) = ndjson.read(tmp_path / "r")[1:-1]
    assert line["examples"] == 150


def test_shards_say_which_kept_ids_must_have_a_test(command, rare, said, tmp_path):
    (tmp_path / "kept").write_text(f"VJP-REF[Exp-cpu]  {CALL}\nVJP-REF[Exp-cuda]  Call('Exp', device='cuda')\n")
    words = ("model", "--suite", rare, "-n", "0", "--profile", "replay", "--replay", "kept")
    parts = []
    for n in (1, 2):
        command(*words, "--shard", f"{n}/2", "--report", f"r{n}", folder=tmp_path)
        parts.append(tmp_path / f"r{n}")
    status, out = said("merge", *parts, "-o", str(tmp_path / "all"))
    assert status == 2
    assert "1 of the kept counterexamples have no test in this run: VJP-REF[Exp-cuda]; take" in out
    # The other one is in one shard only; the report is whole, as that of a run of one part.
    assert not ndjson.flaw(ndjson.read(tmp_path / "all"))


def test_a_corpus_without_a_test_in_the_run_is_no_success(command, tmp_path):
    (tmp_path / "kept").write_text("VJP-REF[Exp-cuda]  Call('Exp', device='cuda')\n")
    lost = command("model", "--profile", "replay", "--replay", "kept", "-n", "0", folder=tmp_path)
    assert lost.status == 2
    assert "VJP-REF[Exp-cuda]" in lost.out
