"""Every listed deviation has a script that shows it, and the page of findings has each."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autograd_conformance import implementations
from autograd_conformance.benchmarks import unclaimed as recording
from autograd_conformance.harness.cli import main
from autograd_conformance.harness.views import findings
from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.selftests.support.reports import FINDING, HEADER, lines, result, write

ROOT = Path(__file__).resolve().parents[2]
LISTED = findings.listed()
DEVIATIONS = [(name, deviation) for name, deviations in LISTED.items() for deviation in deviations]
SCRIPTS = [(name, script) for name, deviations in LISTED.items() for script in findings.by_script(deviations)]
QUOTING = {findings.folder(name) / d.cause.script for name, d in DEVIATIONS if d.cause.grade.quotes}
FILES = sorted(findings.FOLDER.glob("*/*.py"))
# Folders that an installed framework or this project lies in on somebody's machine.
LOCAL_PATH = re.compile(r"(?<![\w./])/(home|root|tmp|work|usr|opt|mnt|var|Users)/")
SECONDS = 120
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Ran = dict[str, Any]


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[[Path, Path], Ran]]:
    """Runs a script in a folder, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "selftests" / "support" / "forking.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what frameworks say as they are imported
        env={**os.environ, **THREADS},
        text=True,
    )
    assert process.stdin
    assert process.stdout

    def run(script: Path, folder: Path) -> Ran:
        print(json.dumps([str(script), str(folder), SECONDS]), file=process.stdin, flush=True)
        ran: Ran = json.loads(process.stdout.readline())
        return ran

    with process:
        yield run
        process.stdin.close()


def here(name: str) -> tuple[Deviation, ...]:
    """The deviations of what is installed; skips the test if it is not."""
    if name not in implementations.ADAPTERS:
        pytest.importorskip(name)
        return implementations.of_device(name)
    try:
        return implementations.load(name).deviations
    except Unavailable as problem:
        pytest.skip(f"skip: {problem}")


@pytest.mark.parametrize(("name", "script"), SCRIPTS)
def test_a_script_shows_what_is_listed(
    name: str, script: str, run: Callable[[Path, Path], Ran], tmp_path: Path
) -> None:
    deviations = here(name)
    expected = int(any(deviation.cause.script == script for deviation in deviations))
    ran = run(findings.folder(name) / script, tmp_path)
    assert "Traceback" not in ran["err"], ran["err"]
    assert ran["status"] == expected, ran
    assert ran["out"].strip(), "a script prints what came and what should have come"
    assert expected or "holds" in ran["out"]


@pytest.mark.parametrize(
    ("name", "deviation"), DEVIATIONS, ids=[f"{name}-{deviation.ids[0]}" for name, deviation in DEVIATIONS]
)
def test_a_deviation_is_well_formed(name: str, deviation: Deviation) -> None:
    cause = deviation.cause
    assert (findings.folder(name) / cause.script).is_file(), f"there is no script {cause.script!r}"
    assert cause.script.endswith(".py")
    assert cause.reason
    assert cause.link
    assert cause.seen
    assert cause.promise == " ".join(cause.promise.split())
    assert bool(cause.promise) == cause.grade.quotes
    if cause.grade in (Grade.WRONG, Grade.BROKEN):
        assert promises(cause.promise), "the quote does not say what happens: find a sentence that does, or regrade"
    if cause.grade is Grade.BROKEN:
        observed = [id for id in deviation.ids if level(id) == "observed"]
        assert not observed, "what is only observed breaks no promise"
    assert not LOCAL_PATH.search(repr(deviation))
    assert deviation.ids
    assert deviation.shows


# What instructs, describes a parameter or announces an example, instead of saying what happens.
NO_PROMISE = (
    r"^(Override|Apply|Use|Call|Set|Wrap|See|Instead|Example|For example|Note)\b",
    r"^(the|an?) ",
    r":$",
    r">>>",
)
# The verbs of the quoted sentences: one of them says what happens.
HAPPENS = (
    r"\b(will|is|are|be|can|has|was|returns|computes?|accepts|reduce|executes|check|give|work|receives|packs|fails)\b"
    r"|\b(preserve|infer)\b"
)


def promises(quote: str) -> bool:
    """Whether the quote may be a promise: it says what happens, and does not only instruct or announce an example."""
    return re.search(HAPPENS, quote, re.IGNORECASE) is not None and not any(re.search(no, quote) for no in NO_PROMISE)


def level(id: str) -> str:
    """Where the sentence of this test comes from; that of a property comes from mathematics."""
    clause = CLAUSES.get(id.partition("/")[0])
    return clause.level if clause else ""


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("In this mode, the result of every computation will have requires_grad=False.", True),
        ("TypeError: If the `hook_fn` is not a function of python.", True),
        ("Sum reduce the array over the given axes.", True),
        ("Override forward with the signature forward(ctx, *args, **kwargs).", False),
        ("Instead, wrap nested `@tf.custom_gradients` in another function:", False),
        ("the Tensors whose gradients are not needed to compute", False),
        ("The api refers to the following files from pytorch", False),
        ("inputs (Sequence[Tensor] or Tensor, optional)", False),
        ("", False),
    ],
)
def test_an_example_an_instruction_or_a_signature_is_no_promise(quote: str, expected: bool) -> None:
    assert promises(quote) == expected


def test_every_list_belongs_to_an_implementation() -> None:
    written = {path.stem for path in ROOT.glob("implementations/deviations/[a-z]*.py")}
    packages = {path.stem for path in ROOT.glob("implementations/deviations/devices/[a-z]*.py")}
    assert {findings.folder(name).name for name in LISTED} == written | packages


def test_every_script_is_named_by_a_deviation() -> None:
    assert {findings.folder(name) / script for name, script in SCRIPTS} == set(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_script_is_short_and_says_what_is_wrong(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    shown = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")
    assert shown[0].endswith("."), "its docstring says in a line what is wrong"
    assert "\n" not in shown[0]
    assert shown[1:] or path not in QUOTING, "and then what the documentation says"
    assert not LOCAL_PATH.search(text)
    assert "autograd_conformance" not in text


def test_the_lists_need_no_framework() -> None:
    code = (
        "import sys; from autograd_conformance.harness.views import findings; findings.markdown(); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"autograd", *(name.partition("-")[0] for name in implementations.ADAPTERS)} & set(loaded)


def test_the_page_is_up_to_date() -> None:
    command = "autograd-conformance list findings > docs/findings.md"
    page = ROOT / "docs" / "findings.md"
    assert page.is_file(), f"run: {command}"
    assert page.read_text() == findings.markdown(), f"run: {command}"


def test_the_command_prints_the_page() -> None:
    done = CliRunner().invoke(main, ["list", "findings"])
    assert done.exit_code == 0
    assert done.output == findings.markdown()


def test_the_page_counts_each_grade() -> None:
    page = findings.markdown()
    for name, deviations in LISTED.items():
        graded = findings.by_grade(deviations)
        assert sum(map(len, graded.values())) == len(deviations)
        assert not graded.pop(Grade.UNCLAIMED)
        numbers = " | ".join(str(len(findings.by_script(part))) for part in graded.values())
        recorded = findings.unclaimed(name)
        last = "not recorded" if recorded is None else len(recorded.tests)
        assert f"\n| [{name}](#{name}) | {numbers} | {last} |\n" in page
    for grade in Grade:
        assert f"* **{grade.words.capitalize()}**: {grade.applies[:40]}" in page


def test_a_part_of_the_page() -> None:
    cause = Cause(
        grade=Grade.BROKEN,
        reason="forward returns *args",
        link="source.py, _forward; https://example.org/a_b.html, Step 1",
        seen=("1.0", "1.1"),
        held=("2.0",),
        releases="<2",
        promise="It returns a_tensor and __this__.",
        script="missing_one.py",
    )
    several = Deviation(("FN-01", "FN-02/x"), (Found("output"),), cause, functions=("Exp", "Sort"))
    another = Deviation(("FN-03",), (Found("input"),), cause)
    assert list(findings._section("torch", [several, another]))[1:] == [
        "### torch: broken promise",
        "",
        "#### missing one",
        "",
        "> It returns a_tensor and \\_\\_this\\_\\_.",
        ">",
        "> source.py, \\_forward; <https://example.org/a_b.html>, Step 1",
        "",
        "* `FN-01`, `FN-02/x` of Exp, Sort; `FN-03`: forward returns \\*args (seen on 1.0 and 1.1; held on 2.0, listed "
        "for <2)",
        "",
        "[missing_one.py](../implementations/findings/torch/missing_one.py)",
    ]


def test_what_is_not_claimed_is_recorded_from_a_report_and_counts(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(findings, "RECORDED", tmp_path)
    monkeypatch.setattr(recording, "RECORDED", tmp_path)
    about = {"implementation": {**HEADER["implementation"], "name": "hips", "version": "1.9"}}
    died = {"type": "Death", "message": "the process ended", "traceback": []}
    found = [
        result("VJP-REF[Exp-cpu]", "silent", failure={**FINDING, "what": "gradient of x"}),
        result("VJP-REF[Sort-cpu]", "dies", failure=died),
        result("VJP-REF[Square-cpu]", "silent", failure={**FINDING, "component": {"what": "gradient"}}),
        result("NIG-01[cpu]", "refuses", reason="so"),
        result("FN-12/keyword-only[cpu]", "silent", failure=FINDING),
    ]
    report = write(tmp_path / "r", lines(found, **about))
    assert recording.main([str(report)]) == 0
    assert (tmp_path / "hips.txt").read_text().splitlines()[0] == "# hips 1.9"
    recorded = findings.unclaimed("hips")
    assert recorded is not None
    assert recorded.tests == {
        ("VJP-REF", "silent"): (["Exp", "Square"], "gradient of x"),
        ("VJP-REF", "dies"): (["Sort"], "the process ended"),
        ("FN-12/keyword-only", "silent"): ([], FINDING["what"]),
    }
    assert list(findings._section("hips", ()))[1:] == [
        "### hips: not claimed",
        "",
        "* `VJP-REF` of Exp, Square: silent, gradient of x (seen on 1.9)",
        "* `VJP-REF` of Sort: dies, the process ended (seen on 1.9)",
        "* `FN-12/keyword-only`: silent, gradient of argument 0 (x) (seen on 1.9)",
    ]
    # Not from a part of a run.
    part = write(tmp_path / "part", lines(found[:1], options={**HEADER["options"], "properties": "VJP-REF"}, **about))
    assert recording.main([str(part)]) == 2


def test_nothing_that_is_not_claimed_is_listed() -> None:
    with pytest.raises(ValueError, match="nothing of it is listed as a deviation"):
        Cause(grade=Grade.UNCLAIMED, reason="r", link="l", seen=("1.0",))
