"""The gate: what it lets through, what it tells, and what it takes for a baseline or a whole report."""

from __future__ import annotations

import json
import time

import jsonschema
import pytest
from click.testing import CliRunner

from autograd_conformance.harness import baseline, cli, gate, report
from autograd_conformance.harness.commands import running
from autograd_conformance.harness.outcomes import OUTCOMES, SHORTFALLS, UsageProblem
from autograd_conformance.selftests.conftest import COMMAND
from autograd_conformance.selftests.reports import FINDING, HEADER, lines, result, write

SCHEMA = json.loads((running.PACKAGE / "harness" / "report.schema.json").read_text())

IDS = ("VJP-REF[Exp-cpu]", "VJP-REF[Sort-cpu]", "NIG-01[cpu]", "FN-12/keyword-only[cpu]")


@pytest.fixture
def said(monkeypatch, tmp_path):
    """Exit status and output of the command, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        done = CliRunner().invoke(cli.main, [str(word) for word in words])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return call


@pytest.fixture
def held(said, tmp_path):
    """Hold a run with these results (id to outcome, or to a line) against a baseline or report of others."""

    def call(old, new, *, of_report=False, **header):
        for name, results in (("old.ndjson", old), ("new.ndjson", new)):
            found = [r if isinstance(r, dict) else result(id, r) for id, r in results.items()]
            write(tmp_path / name, lines(found, **(header if name == "new.ndjson" else {})))
        assert said("accept", "old.ndjson", "-o", "base.txt")[0] == 0
        return said("compare", "old.ndjson" if of_report else "base.txt", "new.ndjson")

    return call


ALL_PASS = dict.fromkeys(IDS, "pass")


def test_the_lines_made_here_are_those_of_a_report():
    for line in lines([result(id, outcome) for id in IDS for outcome in ("pass", "fail", "vacuous")]):
        jsonschema.Draft202012Validator(SCHEMA).validate(line | ({"failure": FINDING} if "fail" in line else {}))


def test_every_pair_of_outcomes_has_a_verdict():
    names = (*OUTCOMES, "absent")
    assert set(gate.VERDICTS) == {(old, new) for old in names for new in names}
    assert set(gate.VERDICTS.values()) <= set(gate.KINDS)


def fails(old, new):
    return gate.KINDS[gate.VERDICTS[old, new]].fails


def test_what_a_gate_must_not_let_through():
    fine = ("pass", "emulated")
    for old in (*OUTCOMES, "absent"):
        assert all(fails(old, new) for new in SHORTFALLS if new != old)
        # On a machine with an accelerator the tests of accelerators are not skipped, and have other ids.
        assert fails(old, "absent") == (old not in ("absent", "skip"))
        assert not fails(old, old)
    for old in (*fine, "known", "fixed"):
        assert fails(old, "unsupported")
        assert fails(old, "skip")
    assert fails("pass", "emulated")
    assert fails("pass", "known")
    assert all(fails(old, new) for old in ("fail", "error", "vacuous", "known") for new in fine)
    assert not any(fails("absent", new) for new in (*fine, "known", "unsupported", "skip"))


@pytest.mark.parametrize("of_report", [False, True])
def test_two_runs_alike_hold(held, of_report):
    status, out = held(ALL_PASS, ALL_PASS, of_report=of_report)
    assert (status, out) == (0, "gate: holds: 4 same\n")


def test_what_failed_before_may_fail_again(held):
    failing = {**ALL_PASS, IDS[0]: "fail", IDS[2]: "vacuous"}
    assert held(failing, failing)[0] == 0


@pytest.mark.parametrize("of_report", [False, True])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({IDS[0]: "fail"}, ("broken: VJP-REF[Exp-cpu] does not hold any more", "gate: fails: 1 broken, 3 same")),
        ({IDS[2]: "vacuous"}, ("broken: NIG-01[cpu]", "reason: so")),
        ({IDS[0]: "unsupported"}, ("unasked: VJP-REF[Exp-cpu] is not asked any more",)),
        ({IDS[0]: "skip"}, ("unasked: ",)),
        ({IDS[0]: "emulated"}, ("helped: VJP-REF[Exp-cpu] holds with the adapter's help only",)),
        ({IDS[0]: "known"}, ("broken: ", "before: pass", "now: known")),
        ({IDS[0]: "fixed"}, ("mended: ", "VJP-REF[Exp-cpu]: pass -> fixed", "autograd-conformance accept new.ndjson")),
        ({"VJP-REF[Cube-cpu]": "fail"}, ("added: VJP-REF[Cube-cpu] is new, and does not hold",)),
    ],
)
def test_what_is_worse_fails_and_is_told(held, change, told, of_report):
    status, out = held(ALL_PASS, {**ALL_PASS, **change}, of_report=of_report)
    assert status == 1
    assert all(part in out for part in told), out


def test_a_regression_is_told_with_sentence_counterexample_and_replay(held):
    out = held(ALL_PASS, {**ALL_PASS, IDS[0]: "fail"}, of_report=True)[1]
    for told in (
        "equal the reference VJP", "call: Call('Exp')", "what: gradient of argument 0 (x)", "got: 1", "expected: 2",
        "before: pass, over 25 examples, on 1.2", "now: fail (gradient of argument 0 (x))",
        "again: autograd-conformance run mine.py --profile replay --replay new.ndjson --properties VJP-REF "
        "--device cpu --functions Exp",
    ):  # fmt: skip
        assert told in out, out


def test_another_fault_at_the_same_id_is_new(held):
    other = result(IDS[0], "fail", failure={**FINDING, "what": "shape of gradient"})
    status, out = held({**ALL_PASS, IDS[0]: "fail"}, {**ALL_PASS, IDS[0]: other})
    assert status == 1
    assert "other: VJP-REF[Exp-cpu] fails as before, but in another way" in out
    died = result(IDS[0], "error", failure={"type": "Death", "message": "m", "traceback": []})
    hung = result(IDS[0], "error", failure={"type": "Hang", "message": "m", "traceback": []})
    assert held({IDS[0]: died}, {IDS[0]: died})[0] == 0
    assert held({IDS[0]: died}, {IDS[0]: hung})[0] == 1


def raised(text):
    return result(IDS[0], "fail", failure={**FINDING, "what": "what came of the call", "got": text})


def died(message):
    return result(IDS[0], "error", failure={"type": "Death", "message": message, "traceback": []})


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (raised("an exception, TypeError: x"), raised("an exception, IndexError: x"), 1),
        (raised("an exception, TypeError: x"), raised("an exception, TypeError: y"), 0),
        (raised("KeyError: x"), raised("ValueError: x"), 1),
        (died("the process died: Segmentation fault"), died("the process died: Aborted"), 1),
        (died("lost /a1/b at 0x7f00 after 3.5 s"), died("lost /home/c at 0x8e11 after 12 s"), 0),
    ],
)
def test_exceptions_and_deaths_are_told_apart_and_their_numbers_are_not(held, old, new, status):
    assert held({IDS[0]: old}, {IDS[0]: new})[0] == status


def test_what_refuses_more_than_before_is_worse(held):
    before, now = (result(IDS[0], "pass", excused=refused) for refused in (3, 9))
    status, out = held({IDS[0]: before}, {IDS[0]: now})
    assert status == 1
    assert "refusing: VJP-REF[Exp-cpu] refuses more than before" in out
    status, out = held({IDS[0]: now}, {IDS[0]: before})
    assert status == 0
    assert "1 better" in out
    assert held({IDS[0]: now}, {IDS[0]: now})[0] == 0


def test_the_worst_place_in_a_tensor_is_not_another_fault(held):
    found = [
        result(IDS[0], "fail", failure={**FINDING, "what": f"gradient at ({n},)", "component": {"what": "gradient"}})
        for n in (0, 1)
    ]
    assert held({IDS[0]: found[0]}, {IDS[0]: found[1]})[0] == 0


def test_an_id_that_was_not_run_fails(held):
    status, out = held(ALL_PASS, dict.fromkeys(IDS[1:], "pass"))
    assert status == 1
    assert "VJP-REF[Exp-cpu]: pass -> absent" in out


def test_what_holds_now_is_to_be_accepted(held, said):
    status, out = held({**ALL_PASS, IDS[0]: "fail"}, ALL_PASS)
    assert status == 1
    command = "autograd-conformance accept new.ndjson -o base.txt"
    assert command in out
    status, out = said(*command.split()[1:])
    assert status == 0
    assert "VJP-REF[Exp-cpu]: fail (gradient of argument 0 (x)) -> pass" in out
    assert said("compare", "base.txt", "new.ndjson")[0] == 0


def test_a_new_id_that_holds_is_told_and_passes(held):
    status, out = held(ALL_PASS, {**ALL_PASS, "VJP-REF[Cube-cpu]": "pass"})
    assert status == 0
    assert "VJP-REF[Cube-cpu]: absent -> pass" in out


# Baselines.


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
    assert "VJP-REF[Exp-cpu]  fail  gradient of argument 0 (x)" in rows
    assert texts[0].endswith("# end 4\n")


@pytest.fixture
def base(said, tmp_path):
    """The text of a baseline, which is in base.txt."""
    write(tmp_path / "old.ndjson", lines([result(id) for id in IDS]))
    assert said("accept", "old.ndjson", "-o", "base.txt")[0] == 0
    return (tmp_path / "base.txt").read_text()


DAMAGES = {
    "missing": (lambda _: None, "No such file"),
    "empty": (lambda _: "", "is empty"),
    "blank": (lambda _: "\n\n", "is empty"),
    "a report": (lambda _: json.dumps(HEADER) + "\n", "base.txt is a report and no baseline; make one of it with"),
    "other text": (lambda _: "hello\n", "is no baseline"),
    "half a file": (lambda text: text[: len(text) // 2], "is truncated"),
    "no end": (lambda text: text.removesuffix("# end 4\n"), "is truncated"),
    "a line less": (lambda text: text.replace("NIG-01[cpu]  pass\n", ""), "is truncated"),
    "a line twice": (lambda text: text.replace("NIG-01[cpu]  pass\n", "NIG-01[cpu]  pass\n" * 2), "is truncated"),
    "twice, counted": (
        lambda text: text.replace("NIG-01[cpu]  pass\n", "NIG-01[cpu]  pass\n" * 2).replace("end 4", "end 5"),
        "has an id twice",
    ),
    "not sorted": (lambda text: text.replace("VJP-REF[Exp-cpu]", "ZZZ-REF[Exp-cpu]"), "is not sorted"),
    "another outcome": (lambda text: text.replace("NIG-01[cpu]  pass", "NIG-01[cpu]  fail"), "changed by hand"),
    "no outcome": (lambda text: text.replace("NIG-01[cpu]  pass", "NIG-01[cpu]  great"), "cannot be read"),
    "another parameter": (lambda text: text.replace("# seed: 0", "# seed: 1"), "changed by hand"),
    "a conflict": (
        lambda text: text.replace("NIG-01[cpu]  pass\n", "<<<<<<< a\nNIG-01[cpu]  pass\n=======\n>>>>>>> b\n"),
        "merge conflict in line",
    ),
    "another format": (lambda text: text.replace("baseline: 1", "baseline: 7"), "format 7, and this suite reads 1"),
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
        ("suite is 0.1.0, and this run's is 0.2.0", {"suite": {**HEADER["suite"], "version": "0.2.0"}}),
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


# Whole reports.

WHOLE = [result(id) for id in IDS]


def doubled(found):
    return [*found[:2], *found[1:]]


BROKEN = {
    "no footer": (lambda found: found[:-1], "did not finish: 0 of"),
    "stopped before": (lambda found: found[:-2], "did not finish: 1 of"),
    "a line missing": (lambda found: [*found[:2], *found[3:]], "3 results of 4"),
    "an id twice": (doubled, "is in it twice"),
    "an id instead of another": (lambda found: [*found[:2], found[1], *found[3:]], "is in it twice"),
    "two runs": (lambda found: found * 2, "2 headers"),
    "a run behind half of one": (lambda found: found[:3] + found, "2 headers"),
    "something behind the footer": (lambda found: [*found, found[1]], "something follows"),
    "another order": (lambda found: [found[0], *found[-2:0:-1], found[-1]], "was changed"),
    "another outcome": (lambda found: changed(found, 1, outcome="emulated"), "was changed"),
    "another reason": (lambda found: changed(found, 1, reason="x"), "was changed"),
    "another seed": (lambda found: changed(found, 0, seed=1), "was changed"),
    "another verdict": (lambda found: changed(found, -1, verdict="falls short"), "was changed"),
    "another format": (lambda found: changed(found, 0, schema=1), "format 1"),
    "another expectation": (lambda found: changed(found, 0, expected=5), "4 results of 5"),
    "an unknown line": (lambda found: [*found[:2], {"kind": "x"}, *found[2:]], "4 results of 4"),
}


def changed(found, place, **fields):
    found = list(found)
    found[place] = {**found[place], **fields}
    return found


def test_a_whole_report_is_complete(tmp_path):
    found = lines(WHOLE)
    assert report.complete(found)
    assert report.complete(report.read(write(tmp_path / "r", found)))


@pytest.mark.parametrize("damage", BROKEN)
def test_what_is_not_whole_is_not_complete(said, base, tmp_path, damage):
    assert base
    damaged, reason = BROKEN[damage][0](lines(WHOLE)), BROKEN[damage][1]
    told = report.complete(damaged)
    assert not told
    assert reason in told.reason
    write(tmp_path / "new.ndjson", damaged)
    for words in (
        ("compare", "base.txt", "new.ndjson"),
        ("accept", "new.ndjson"),
        ("compare", "new.ndjson", "old.ndjson"),
    ):
        status, out = said(*words)
        assert status == 2
        assert "new.ndjson" in out
    assert not (tmp_path / baseline.DEFAULT_PATH).exists()


def test_no_part_of_a_report_is_complete(tmp_path):
    path = write(tmp_path / "r", lines(WHOLE))
    text = path.read_bytes()
    for length in range(1, len(text), 11):
        path.write_bytes(text[:length])
        try:
            found = report.read(path)
        except UsageProblem:
            assert b"\n" not in text[:length]
        else:
            assert not report.complete(found)


def test_a_garbled_letter_is_seen(tmp_path):
    path = write(tmp_path / "r", lines(WHOLE))
    text = path.read_text()
    for place in range(0, len(text), 13):
        letter = "1" if text[place] == "0" else "0"
        path.write_text(text[:place] + letter + text[place + 1 :])
        try:
            found = report.read(path)
        except UsageProblem:
            continue
        assert not report.complete(found), text[place - 20 : place + 20]


def test_messages_with_any_character_survive(tmp_path):
    odd = "line\u2028separator \x85 \x0b \x1b[0m half \udcff pair \U0001f600"
    found = lines([result(IDS[0], "vacuous", reason=odd)])
    file = report.ReportFile(tmp_path / "r")
    for line in found:
        file.write(line)
    file.close()
    assert report.read(tmp_path / "r") == found
    assert report.complete(report.read(tmp_path / "r"))


# The commands.


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("compare", "none.txt", "old.ndjson"), ("none.txt", "No such file", "accept")),
        (("compare", "base.txt", "none.ndjson"), ("none.ndjson", "No such file")),
        (("compare", "base.txt", "base.txt"), ("base.txt is not a report",)),
        (("compare", "base.txt", "old.ndjson", "--verify", "no-such-command"), ("no-such-command", "cannot be run")),
        (("compare", "base.txt", "old.ndjson", "--verify", "false"), ("--verify false", "exit status 1")),
        (("accept", "none.ndjson"), ("none.ndjson", "No such file")),
        (("accept", "old.ndjson", "-o", "old.ndjson"), ("old.ndjson is no baseline", "left as it is")),
        (("accept", "old.ndjson", "-o", "nowhere/b"), ("nowhere/b", "-o FILE")),
        (("accept", "shard.ndjson"), ("shard.ndjson is shard 1/2", "merge")),
        (("accept", "replay.ndjson"), ("profile replay",)),
        (("compare", "base.txt", "shard.ndjson"), ("shard.ndjson is shard 1/2", "merge")),
        (("run", "model", "--baseline", "none.txt"), ("none.txt", "No such file")),
        (("run", "model", "--baseline", "old.ndjson"), ("old.ndjson is a report", "accept old.ndjson")),
        (("run", "model", "--baseline", "base.txt"), ("implementation is mine, and this run's is model",)),
        (("run", "model", "--baseline", "model.txt", "--seed", "3"), ("seed is 0, and this run's is 3",)),
        (("run", "model", "--baseline", "model.txt", "--shard", "1/2"), ("--shard 1/2", "merge", "compare")),
        (("run", "model", "--baseline", "model.txt", "--report", "model.txt"), ("overwrite the baseline",)),
        (("run", "model", "--baseline", "model.txt", "--profile", "replay"), ("--profile replay",)),
    ],
)
def test_mistakes_are_told_before_anything_runs(said, base, tmp_path, monkeypatch, words, parts):
    monkeypatch.setattr(running.pytest, "main", lambda _: pytest.fail("tests were started"))
    write(tmp_path / "shard.ndjson", lines(WHOLE, shard="1/2"))
    write(tmp_path / "replay.ndjson", lines(WHOLE, profile="replay"))
    model = {**HEADER["implementation"], "name": "model"}
    write(tmp_path / "model.ndjson", lines(WHOLE, implementation=model))
    assert said("accept", "model.ndjson", "-o", "model.txt")[0] == 0
    status, out = said(*words)
    assert status == 2, out
    assert all(part in out for part in parts), out
    assert (tmp_path / "base.txt").read_text() == base


def test_a_damaged_baseline_can_be_accepted_anew(said, base, tmp_path):
    (tmp_path / "base.txt").write_text(f"<<<<<<< a\n{base}=======\n{base}>>>>>>> b\n")
    status, out = said("accept", "old.ndjson", "-o", "base.txt")
    assert status == 0
    assert "merge conflict" in out
    assert (tmp_path / "base.txt").read_text() == base


PLANTED = """
from autograd_conformance.harness.marks import holds


def reference(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected_gradients())
    return example


@holds("VJP-REF")
def test_right(subject, data):
    example = reference(subject, data)
    {right}


@holds("VJP-FD")
def test_wrong(subject, data):
    example = reference(subject, data)
    subject.assert_that({wrong}, example.call, "{what}", got="this", expected="that")


@holds("VJP-LINEAR")
def test_raising(subject, data):
    reference(subject, data)
    {raising}


@holds("{claim}")
def test_gone(subject, data):
    reference(subject, data)
"""
BEFORE = {"right": "pass", "wrong": "False", "what": "rank", "raising": "raise KeyError", "claim": "VJP-CHAIN"}

# What is planted, and what the gate says of it.
REGRESSIONS = [
    ({}, 0, "gate: holds: 4 same"),
    ({"right": "import os; os._exit(0)"}, 1, "now: error (Death: "),
    ({"right": "while True: pass"}, 1, "now: error (Hang: "),
    ({"right": 'subject.assert_that(False, example.call, "x", got=1, expected=2)'}, 1, "now: fail (x)"),
    ({"right": "subject.record.checks = 0"}, 1, "now: vacuous"),
    ({"right": "subject.record.excused += 1"}, 1, "now: vacuous"),
    ({"right": 'import pytest; pytest.skip("no")'}, 1, "unasked: VJP-REF[Square-cpu]"),
    ({"what": "size"}, 1, "other: VJP-FD[Square-cpu]"),
    ({"wrong": "True"}, 1, "VJP-FD[Square-cpu]: fail (rank) -> pass"),
    ({"raising": "raise IndexError"}, 1, "now: error (IndexError)"),
    ({"claim": "VJP-MASK"}, 1, "VJP-CHAIN[Square-cpu]: pass -> absent"),
]


@pytest.fixture(scope="module")
def accepted(command, tmp_path_factory):
    """A folder with planted tests, and the baseline of what they do."""
    folder = tmp_path_factory.mktemp("accepted")
    (folder / "planted").mkdir()
    (folder / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE))
    first = command(*RUN, folder=folder)
    assert first.status == 1
    done = CliRunner().invoke(cli.main, ["accept", str(first.path), "-o", str(folder / "base.txt")])
    assert done.exit_code == 0
    return folder


RUN = (
    "model",
    "--suite",
    "planted",
    "--functions",
    "Square",
    "-n",
    "1",
    "--time-limit",
    "20",
    "--profile",
    "quick",
    "--seed",
    "1",
)


@pytest.mark.parametrize(("change", "status", "told"), REGRESSIONS)
def test_a_run_is_held_against_its_baseline(command, accepted, change, status, told):
    (accepted / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE | change))
    run = command(*RUN, "--baseline", "base.txt", folder=accepted)
    assert run.status == status, run.out + run.err
    assert told in run.out


def test_a_run_that_does_not_end_is_no_pass(command, accepted):
    (accepted / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE))
    run = command(*RUN, "--baseline", "base.txt", "--", "-x", folder=accepted)
    assert run.status == 2
    assert "the gate cannot pass: " in run.err
    assert "did not finish" in run.out
    # The report of an earlier run is not taken for that of one which did not begin.
    assert report.complete(command(*RUN, folder=accepted).lines)
    run = command(*RUN, "--baseline", "base.txt", "--", "--no-such-option", folder=accepted)
    assert run.status == 2
    assert report.complete(run.lines)
    run = command(*RUN, "--baseline", "base.txt", "--", "--version", folder=accepted)
    assert run.status == 2
    assert "the gate cannot pass: " in run.err


def test_parameters_that_pytest_was_given_count(command, accepted):
    run = command(*RUN, "--baseline", "base.txt", "--", "--seed=99", folder=accepted)
    assert run.status == 2
    assert "its seed is 1, and this run's is 99" in run.err


def test_a_header_without_what_every_one_has_is_no_report(said, tmp_path):
    (tmp_path / "odd.ndjson").write_text('{"kind": "header"}\n')
    for words in (("export", "odd.ndjson", "--badge", "b.json"), ("compare", "odd.ndjson", "odd.ndjson")):
        status, out = said(*words)
        assert status == 2
        assert "its header lacks schema" in out


def test_the_old_implementation_is_asked_for_the_new_counterexamples(command, accepted, said):
    folder = accepted
    (folder / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE))
    old = command(*RUN, folder=folder).path.rename(folder / "old.ndjson")
    change = {"right": 'subject.assert_that(False, example.call, "x", got=1, expected=2)'}
    (folder / "planted" / "test_planted.py").write_text(PLANTED.format(**BEFORE | change))
    new = command(*RUN, folder=folder).path
    status, out = said("compare", old, new, "--verify", COMMAND)
    assert status == 1
    assert "before, with this counterexample: pass, on 0.1.0" in out


def test_the_comparison_of_large_reports_is_fast(tmp_path):
    ids = [f"VJP-REF[Function{n}-cpu]" for n in range(10_000)]
    for name in ("old", "new"):
        found = [result(id, "fail" if int(id[16:-5]) % 100 == 0 else "pass") for id in ids]
        write(tmp_path / name, lines(found))
    started = time.process_time()
    done = CliRunner().invoke(cli.main, ["compare", str(tmp_path / "old"), str(tmp_path / "new")])
    taken = time.process_time() - started
    assert done.output == "gate: holds: 10000 same\n"
    assert taken < 2


def test_an_odd_name_of_an_implementation_passes_through(command, said, tmp_path):
    source = "from autograd_conformance.implementations.model import ModelImplementation\n\n\n"
    (tmp_path / "odd.py").write_text(f"{source}class Odd(ModelImplementation):\n    name = 'möin/ä [x]: # end'\n")
    words = ("odd.py", "--functions", "Exp", "--properties", "VJP-REF", "--profile", "quick", "--seed", "1", "-n")
    path = command(*words, "0", folder=tmp_path).path
    assert said("accept", path, "-o", "base.txt")[0] == 0
    assert command(*words, "1", "--baseline", "base.txt", folder=tmp_path).status == 0
