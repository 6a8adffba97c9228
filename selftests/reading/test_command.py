"""The command line: what it refuses, what it lists, what it repeats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from autograd_conformance import implementations
from autograd_conformance.harness import cli
from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.check.report.verdicts import MEANINGS
from autograd_conformance.harness.check.session.child_session import Following
from autograd_conformance.harness.commands import Number
from autograd_conformance.harness.commands import run as run_command
from autograd_conformance.harness.outcomes import UsageProblem, choose_from
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running.selection import Selection
from autograd_conformance.harness.views import matrix
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.support.reports import HEADER, lines, result, write

BAD = [
    (("run", "torhc"), ("torhc", "model", "torch")),
    (("run", "model", "--functions", "Foo"), ("Foo", "Exp", "Sort")),
    (("run", "model", "--functions", ","), ("Function", "Exp")),
    (("run", "model", "--functions", "exq"), ("did you mean Exp?",)),
    (("run", "model", "--properties", "VJP"), ("'VJP'", "did you mean VJP-REF", "list properties")),
    (("run", "model", "--properties", "VJP-MSK"), ("did you mean VJP-MASK",)),
    (("run", "model", "--profile", "fast"), ("fast", "quick, gate, nightly, replay")),
    (("run", "model", "--dtype", "int8"), ("int8", "float64, float32")),
    (("run", "model", "--device", "cuda"), ("cuda", "choose from: cpu")),
    (("run", "model", "--seed", "x"), ("--seed", "x is not a whole number of at least 0")),
    (("run", "model", "--seed", "-1"), ("--seed", "-1")),
    (("run", "model", "-n", "many"), ("-n", "many is not a whole number of at least 0")),
    (("run", "model", "-n", "-2"), ("-n", "-2")),
    (("run", "model", "--time-limit", "0"), ("--time-limit", "0")),
    (("run", "model", "--memory-limit", "0"), ("--memory-limit", "0")),
    (("run", "mine.py"), ("there is no file mine.py",)),
    (("run", "no_such_module:Mine"), ("no_such_module:Mine cannot be imported",)),
    (("run", "model", "--suite", "nowhere"), ("nowhere", "functions")),
    (("run", "model", "--suite", "small.ndjson"), ("small.ndjson is no Python file with a function test_", "@holds")),
    (("run", "model", "--suite", "empty.py"), ("empty.py is no Python file with a function test_", "@keeps")),
    (("run", "model", "--replay", "old.ndjson"), ("--profile replay",)),
    (("run", "model", "--profile", "replay"), ("autograd-conformance.ndjson", "No such file")),
    (("run", "model", "--profile", "replay", "--replay", "a", "--report", "a"), ("overwrite",)),
    (("run", "model", "--report", "nowhere/r.ndjson"), ("no folder nowhere", "--report")),
    (("run", "model", "--report", "."), ("it is a folder", "--report")),
    (("run", "model", "--bogus"), ("--bogus",)),
    (("run", "model", "--device", "gpu9"), ("model has no device 'gpu9' on this machine",)),
    (("check", "mine.py", "--properties", "FN-12"), ("FN-12 is a clause, which only run checks", "list properties")),
    (("check", "mine.py", "--properties", "VJP-REF,FN-*"), ("is a clause", "run --properties FN-*")),
    (("check", "mine.py", "--properties", "XX-*"), ("no property matches 'XX-*'",)),
    (
        ("check", "mine.py", "--scripts", "old/scripts"),
        ("cannot be written to old/scripts", "not a folder", "--scripts"),
    ),
    (("list", "clauses", "--report", "begun.ndjson"), ("begun.ndjson has no results", "before the first test")),
    (("list", "clauses", "--report", "small.ndjson"), ("no results of clauses", "without --functions")),
    (("rum",), ("did you mean run?",)),
    (("frobnicate",), ("frobnicate", "run, check, record, watch, compare, accept, merge, report")),
    (("list", "clauses", "--report", "none.ndjson"), ("none.ndjson", "No such file")),
    (("list", "clauses", "--report", "x", "--coverage"), ("--coverage", "--report", "one of them")),
    (("list", "things"), ("things", "functions, properties, clauses, sentences, verdicts, findings, implementations")),
]


@pytest.fixture
def said(monkeypatch, tmp_path, one_process):  # noqa: ARG001
    """Exit status, stdout and stderr of the command, started in an empty folder."""
    monkeypatch.chdir(tmp_path)
    # A mistake must be noticed before anything runs.
    monkeypatch.setattr(run_command.pytest, "main", lambda _: pytest.fail("tests were started"))
    # A process that imports the framework for every mistake would take minutes.
    monkeypatch.setattr(run_command.smoke, "verify", lambda _, **__: "")
    (tmp_path / "old").write_text("a file")
    (tmp_path / "empty.py").write_text("def check():\n    pass\n")
    write(tmp_path / "begun.ndjson", lines([])[:1])
    write(tmp_path / "small.ndjson", lines([result("VJP-REF[Exp-cpu]")]))

    def call(*words):
        done = CliRunner().invoke(cli.main, words)
        return done.exit_code, done.stdout, done.stderr

    return call


@pytest.mark.parametrize(("words", "parts"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_a_mistake_is_one_sentence_with_what_is_valid(said, words, parts):
    status, out, err = said(*words)
    assert (status, out) == (2, "")
    (message,) = err.splitlines()
    assert message.startswith("Error: ")
    assert all(part in message for part in parts)


COMMANDS = [
    *(((name,), cli.main.get_command(None, name)) for name in cli.main.list_commands(None)),
    *((("list", name), each) for name, each in cli.main.get_command(None, "list").commands.items()),
]
OPTIONS = [(words, each) for words, command in COMMANDS for each in command.params if isinstance(each, click.Option)]
WITH_VALUE = [((*words, each.opts[-1]), each) for words, each in OPTIONS if not each.is_flag]

# What click itself refuses.
MISUSED = [
    *((*words, "--bogus") for words, _ in [((), None), *COMMANDS]),
    *(words for words, _ in WITH_VALUE),
    *((*words, "x") for words, each in WITH_VALUE if isinstance(each.type, Number)),
    *((*words, f"{each.opts[-1]}=x") for words, each in OPTIONS if each.is_flag and each.opts[-1].startswith("--")),
    ("check",), ("compare", "a"), ("accept",), ("new-adapter",), ("accept", "a", "b"), ("list", "functions", "x"),
]  # fmt: skip


@pytest.mark.parametrize("words", MISUSED, ids=" ".join)
def test_a_misuse_is_one_line_that_names_the_help(said, words):
    status, out, err = said(*words)
    assert (status, out) == (2, "")
    (message,) = err.splitlines()
    assert re.fullmatch(rf"Error: [a-z].*; see (main {words[0]}|main).* --help", message), message


# Every option with a value, and every argument, as a variable that is not set leaves them.
EMPTY = [(*words, "") for words, _ in WITH_VALUE]


@pytest.mark.parametrize("words", [*EMPTY, ("run", ""), ("check", ""), ("compare", "", "b")], ids=" ".join)
def test_what_is_empty_is_not_taken_for_what_is_left_out(said, words):
    status, out, err = said(*words)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith("Error: ")
    assert "is empty; give it a value, or leave it out" in err


def test_pytest_may_be_given_what_is_empty(said, monkeypatch):
    monkeypatch.setattr(run_command.pytest, "main", lambda _: 0)
    assert "wrote no report" in said("run", "model", "--functions", "Exp", "--", "-k", "")[2]


@pytest.mark.parametrize("option", ["functions", "properties"])
def test_a_list_of_pytest_itself_cannot_be_empty_either(option, request):
    given = {**vars(request.config.option), "profile": "quick", "implementation": "model", option: ""}
    with pytest.raises(UsageProblem, match="'' names no"):
        Selection.from_options(SimpleNamespace(**given))


def test_a_missing_framework_says_what_to_install(said, monkeypatch):
    def missing(_):
        raise Unavailable("torch cannot be imported; install it with: pip install torch==2.13.0")

    monkeypatch.setattr(implementations, "load", missing)
    status, _, err = said("run")
    assert status == 2
    assert "pip install torch==2.13.0" in err
    assert "not installed: " in said("list", "implementations")[1]


def test_a_report_that_cannot_be_written_leaves_the_old_one(said, tmp_path):
    old = tmp_path / "autograd-conformance.ndjson"
    old.write_text("old")
    assert said("run", "model", "--suite", "nowhere")[0] == 2
    assert old.read_text() == "old"


def test_a_check_that_cannot_start_leaves_the_old_report(monkeypatch, tmp_path):
    """Otherwise the results of an earlier check could be taken for its own."""
    kept = tmp_path / "kept.ndjson"
    kept.write_text("old")
    following = Following(tmp_path, {}, "torch", ())
    monkeypatch.setattr(Following, "_made", lambda *_: iter(()))
    assert list(following.lines(Path("plan.json"), kept)) == []
    assert kept.read_text() == "old"


def test_lists(said):
    def rows(what):
        """The rows of what is not a terminal: a line each, whole, with tabs between the cells."""
        return [tuple(line.split("\t")) for line in said("list", what)[1].splitlines()[1:]]

    assert [name for name, *_ in rows("functions")] == list(FUNCTIONS)
    assert rows("properties") == [(p.id, p.sentence) for p in PROPERTIES.values()]
    assert [row[:4] for row in rows("clauses")] == [(c.id, c.level, c.sentence, c.document) for c in CLAUSES.values()]
    assert rows("verdicts") == list(MEANINGS.items())
    assert [name for name, _ in rows("implementations")] == list(implementations.ADAPTERS)


def test_version_and_help(said):
    assert said("--version")[0] == 0
    status, out, _ = said("run", "--help")
    assert status == 0
    assert "quick|gate|nightly|replay" in out


def test_what_follows_the_dashes_goes_to_pytest(said, monkeypatch):
    given = []
    monkeypatch.setattr(run_command.pytest, "main", lambda words: given.extend(words) or 0)
    anything = SimpleNamespace(from_options=lambda *_, **__: SimpleNamespace(replays=False))
    monkeypatch.setattr(run_command, "Selection", anything)
    for words in (("run", "torch", "--", "-k", "x"), ("run", "--", "-k", "x")):
        given.clear()
        assert "wrote no report" in said(*words)[2]
        assert given[given.index("-k") + 1] == "x"
        assert "--implementation=torch" in given


SMALL = ("model", "--functions", "Exp,LinearFunction", "--properties", "FWD-VALUE,VJP-REF", "--profile", "quick")


def figures(run):
    names = ("outcome", "examples", "checks", "worst")
    return {id: tuple(line[name] for name in names) for id, line in run.results.items()}


def test_the_number_of_workers_changes_nothing(command):
    alone, two = (command(*SMALL, "--seed", "7", "-n", n) for n in ("0", "2"))
    assert alone.status == two.status == 0
    assert figures(alone) == figures(two)
    assert "12 of 12 test ids hold" in alone.out


def test_a_random_profile_says_how_to_repeat_it(command):
    first = command(*SMALL, "-n", "0")
    seed = str(first.header["seed"])
    assert f"(repeat with --seed {seed})" in first.out
    assert figures(command(*SMALL, "-n", "0", "--seed", seed)) == figures(first)


def test_nothing_counts_the_tests_otherwise_than_the_verdict(command):
    done = command("model", "-n", "0", "--functions", "Exp", "--properties", "VJP-REF,BATCH-VMAP", "--profile", "quick")
    verdict, _, took = done.out.splitlines()[-3:]
    assert "test ids hold; " in verdict
    assert re.fullmatch(r"took \d+:\d\d", took)
    assert not re.search(r"\d (passed|skipped)", done.out)


def test_nothing_to_check(command):
    empty = command("model", "--functions", "Exp", "--properties", "VJP-MASK", "-n", "0")
    assert empty.status == 2
    assert "nothing was checked" in empty.out


def test_a_choice_that_pytest_leaves_nothing_of_is_named(command):
    empty = command(*SMALL, "-n", "0", "--", "-k", "nothing", "--deselect", "x")
    assert empty.status == 2
    assert "Functions, properties and device, with pytest's -k nothing --deselect x" in empty.out
    assert str(ndjson.flaw(empty.lines)) == "the run did not finish: it ended before the first test"


def test_names_that_differ_only_in_case_are_all_told():
    assert choose_from("scald", ["Scaled", "scaled"]).startswith("choose from: Scaled, scaled (did you mean ")


def test_a_run_of_which_every_test_is_skipped_is_no_success(command):
    words = ("--functions", "ReLU", "--dtype", "complex64", "-n", "0", "--profile", "quick", "--seed", "1")
    run = command("torch", *words)
    assert run.status == 2
    assert set(run.outcomes.values()) == {"skip"}
    assert "nothing was checked: every test of this choice was skipped, is unsupported, or is not claimed" in run.out


def test_a_suite_that_cannot_be_imported(command, tmp_path):
    (tmp_path / "test_broken.py").write_text("import nothing_of_that_name\n")
    for workers in ("0", "1"):
        broken = command("model", "--suite", str(tmp_path), "-n", workers)
        assert broken.status == 2
        assert "nothing_of_that_name" in broken.out


def test_one_id_cannot_have_two_tests(command, suite, tmp_path):
    source = (suite / "test_planted.py").read_text()
    (tmp_path / "test_a.py").write_text(source)
    (tmp_path / "test_b.py").write_text(source)
    twice = command("model", "--suite", str(tmp_path), "--functions", "Square", "-n", "0")
    assert twice.status == 2
    assert "VJP-REF[Square-cpu]" in twice.out + twice.err
    assert "variant" in twice.out + twice.err


def test_replay_runs_the_failures_and_nothing_else(command, suite):
    first = command("model", "--suite", str(suite), "--functions", "Square", "-n", "0")
    folder = first.path.parent
    before = first.path.read_text()
    again = command("model", "--suite", str(suite), "--profile", "replay", "-n", "0", "--report", "new", folder=folder)
    lines = [json.loads(line) for line in (folder / "new").read_text().splitlines()]
    replayed = {line["id"]: line for line in lines if line["kind"] == "result"}
    assert again.status == 1
    assert set(replayed) == {"VJP-FD[Square-cpu]", "VJP-LINEAR[Square-cpu]"}
    for id, line in replayed.items():
        assert line["failure"]["call"] == first.results[id]["failure"]["call"]
    assert first.path.read_text() == before


def test_replay_knows_the_functions_of_the_report(command):
    words = ("--functions", "LinearSqueezedBias", "--properties", "VJP-REF", "-n", "0")
    failed = command("torch", *words)
    assert failed.status == 1
    again = command("torch", "--profile", "replay", "-n", "0", "--report", "new", folder=failed.path.parent)
    assert again.status == 1
    assert "fail: VJP-REF[LinearSqueezedBias-cpu]" in again.out


def test_replay_of_a_clause_runs_its_test(command):
    lines = [
        HEADER,
        {"kind": "result", "id": "NIG-01[cpu]", "clause": "NIG-01", "failure": {"what": "x"}},
    ]
    folder = command("model", "--properties", "NIG-01", "-n", "0").path.parent
    (folder / "old.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = command(
        "model", "--profile", "replay", "--replay", "old.ndjson", "--report", "new", "-n", "0", folder=folder
    )
    assert again.status == 0
    replayed = [json.loads(line) for line in (folder / "new").read_text().splitlines()]
    assert [line["id"] for line in replayed if line["kind"] == "result"] == ["NIG-01[cpu]"]


def test_replay_of_a_report_without_failures(command):
    held = command(*SMALL, "--seed", "1", "-n", "0")
    again = command("model", "--profile", "replay", "-n", "0", folder=held.path.parent)
    assert again.status == 2
    assert again.err == "Error: nothing was checked: autograd-conformance.ndjson has no counterexamples to replay\n"


def test_the_users_own_pytest_configuration_takes_no_part(command, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise SystemExit\n")
    assert command(*SMALL, "--seed", "1", "-n", "0", folder=tmp_path).status == 0


def lines_of(functions, outcome="pass"):
    return [{"property": "VJP-REF", "function": f, "device": "cpu", "outcome": outcome} for f in functions]


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("count", [1, 19, 36, 150])
def test_the_matrix_fits_the_terminal(width, count):
    functions = [f"Function{n}" for n in range(count)]
    (found,) = matrix.matrices(lines_of(functions, "known"), list(PROPERTIES), functions)
    lines = matrix.text(found, width)
    assert max(map(len, [*lines, *matrix.columns(found, width)])) <= width
    assert sum(line.count("k") for line in lines) == count
    names = " ".join(matrix.columns(found, width)).split()
    assert all(function in names for function in functions)


def test_a_cell_shows_the_worst_of_several_results():
    lines = lines_of(["Exp"]) + lines_of(["Exp"], "fail") + lines_of(["Exp"])
    (found,) = matrix.matrices(lines, list(PROPERTIES), ["Exp"])
    assert found.row("VJP-REF") == ["F"]
    assert "F fail" in matrix.legend([found])


def test_a_column_is_under_its_number():
    functions = [f"F{n}" for n in range(36)]
    lines = lines_of(functions[:30]) + lines_of(functions[30:31], "fail") + lines_of(functions[31:])
    (found,) = matrix.matrices(lines, ["VJP-REF"], functions)
    tens, ones, row, _ = matrix.text(found, 80)
    place = row.rindex("F")
    assert tens[place] + ones[place] == "31"


def test_the_package_is_where_the_suites_are():
    assert (PACKAGE / "suites" / "functions").is_dir()
    assert Path(cli.__file__).parent.parent == PACKAGE


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "model", "--time-limit", "nan"], "nan is not a finite number"),
        (["run", "model", "--time-limit", "inf"], "inf is not a finite number"),
        (["run", "model", "--memory-limit", "inf"], "inf is not a finite number"),
        (["check", "mine:F", "--time-limit", "nan"], "nan is not a finite number"),
        (["run", "model", "--seed", "abc"], "abc is not a whole number of at least 0"),
        (["run", "model", "-n", "-1"], "-1 is not a whole number of at least 0"),
        (["run", "model", "--other-suite"], "--other-suite is about --baseline FILE"),
    ],
)
def test_an_option_that_would_do_nothing_or_harm_is_refused(said, words, text):
    status, *printed = said(*words)
    assert status == 2
    assert text in "".join(printed)
    assert "Traceback" not in "".join(printed)


def test_a_session_of_other_tests_ends_as_they_do(tmp_path):
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n\n\ndef test_wrong():\n    assert False\n")
    plugin = ("-p", "autograd_conformance.harness.running.plugin", "-p", "no:cacheprovider")
    words = [sys.executable, "-m", "pytest", *plugin, "--implementation", "model", "test_other.py"]
    for more, status in ((["-k", "other and not wrong"], 0), ([], 1)):
        done = subprocess.run([*words, *more], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


def test_a_folder_without_tests_of_the_suite_is_no_success(command, tmp_path):
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    done = command("model", "--suite", ".", "-n", "0", "--profile", "quick", "--seed", "1", folder=tmp_path)
    assert done.status == 2
    assert "nothing was checked: no test in " in done.out
    assert done.footer is None


def test_python_runs_the_command_and_nothing_of_the_working_folder(tmp_path):
    for name in ("click", "numpy", "select"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(0)\n")
    words = [sys.executable, "-m", "autograd_conformance", "run", "nope"]
    done = subprocess.run(words, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown implementation 'nope'" in done.stderr
