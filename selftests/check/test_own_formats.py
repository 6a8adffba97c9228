"""What `check` prints for other programs: annotations of GitHub, SARIF, JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import click
import jsonschema
import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check.report import findings, formats, places
from autograd_conformance.harness.check.session import child_session
from autograd_conformance.harness.commands.check import check as check_command
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.check import user_ops
from autograd_conformance.selftests.check.test_own_command import check

SCHEMA = json.loads(Path(ndjson.__file__).with_name("check.schema.json").read_text(encoding="utf-8"))
SARIF = json.loads(Path(__file__).with_name("sarif.schema.json").read_text(encoding="utf-8"))
FEW = ("--profile", "quick", "--seed", 1, "--properties", "VJP-FD,FWD-VALUE,FWD-DTYPE,JVP-ADJOINT")

NAMES = ("first", "second", "third")

# The faults, and the words of the line where each is.
MINE = """
import torch
print("noise at import")

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("noise in forward")
        return x * 2

    @staticmethod
    def backward(ctx, g):  # VJP-FD
        return g * FACTOR

    @staticmethod
    def jvp(ctx, t):  # JVP-ADJOINT
        return t * SLOPE

class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # FWD-DTYPE
        return x.double() if WIDE else x * 1

    @staticmethod
    def backward(ctx, g):
        return g.to(torch.get_default_dtype()) if False else g

from autograd_conformance import Declaration
double = Declaration(Double, "float[n]", once=True)
wide = Declaration(Wide, "float[n]", once=True)
"""


def written(folder, factor=2, slope=2, wide=False, name="my ops,50%.py"):
    text = MINE.replace("FACTOR", str(factor)).replace("SLOPE", str(slope)).replace("WIDE", str(wide))
    (folder / name).write_text(text)
    return text.splitlines()


def line_of(rows, words):
    return next(number for number, row in enumerate(rows, 1) if row.endswith(f"# {words}"))


def test_a_right_function_has_no_findings(tmp_path):
    written(tmp_path)
    status, out, err = check("my ops,50%.py", *FEW, "--format", "json", "--functions", "Double", folder=tmp_path)
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert (status, found["status"], found["problems"]) == (0, 0, [])
    (function,) = found["functions"]
    assert (function["name"], function["findings"]) == ("Double", [])
    assert function["checks"]["hold"] > 0
    assert "checks hold, 0 do not" in err


def test_json_names_the_line_of_the_method(tmp_path):
    rows = written(tmp_path, factor=3, wide=True)
    status, out, _ = check("my ops,50%.py", *FEW, "--format", "json", folder=tmp_path)
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert (status, found["status"]) == (1, 1)
    at = {(f["name"], each["property"]): each["location"] for f in found["functions"] for each in f["findings"]}
    file = "my ops,50%.py"
    assert at["Double", "VJP-FD"] == {"of": "backward", "file": file, "line": line_of(rows, "VJP-FD")}
    assert at["Wide", "FWD-DTYPE"] == {"of": "forward", "file": file, "line": line_of(rows, "FWD-DTYPE")}
    scripts = [each["script"] for f in found["functions"] for each in f["findings"] if "script" in each]
    assert scripts
    assert all((tmp_path / path).is_file() for path in scripts)


def test_a_wrong_jvp_is_at_jvp(tmp_path):
    rows = written(tmp_path, slope=5)
    status, out, _ = check("my ops,50%.py", *FEW, "--format", "json", "--functions", "Double", folder=tmp_path)
    (finding,) = json.loads(out)["functions"][0]["findings"]
    assert status == 1
    assert finding["location"] == {"of": "jvp", "file": "my ops,50%.py", "line": line_of(rows, "JVP-ADJOINT")}


def test_github_gets_an_annotation_on_the_line_of_backward(tmp_path):
    rows = written(tmp_path, factor=3)
    words = ("my ops,50%.py", *FEW[:-1], "VJP-FD", "--functions", "Double")
    status, out, err = check(*words, "--format", "github", folder=tmp_path)
    assert (status, err) == (1, "")
    (command,) = [row for row in out.splitlines() if row.startswith("::")]
    head, _, text = command.removeprefix("::").partition("::")
    assert head == (f"error file=my ops%2C50%25.py,line={line_of(rows, 'VJP-FD')},title=Double%3A wrong%3A VJP-FD")
    assert "must hold: gradients agree with finite differences%0Aslope of the drawn direction" in text
    # The log is for people as well.
    assert "  WRONG: VJP-FD" in out
    assert "::" not in check(*words, folder=tmp_path)[1]


def test_sarif_has_rules_results_and_uris(tmp_path):
    rows = written(tmp_path, factor=3)
    words = ("my ops,50%.py", *FEW[:-1], "VJP-FD", "--functions", "Double", "--format", "sarif")
    status, out, _ = check(*words, folder=tmp_path)
    log = json.loads(out)
    jsonschema.validate(log, SARIF)
    assert status == 1
    (run,) = log["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "VJP-FD"
    place = result["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == "my ops,50%.py"
    assert place["region"] == {"startLine": line_of(rows, "VJP-FD")}
    assert run["invocations"][0] == {"executionSuccessful": True, "exitCode": 1, "toolExecutionNotifications": []}


@pytest.mark.parametrize("form", formats.FORMATS)
def test_what_cannot_be_checked_is_a_problem(tmp_path, form):
    (tmp_path / "broken.py").write_text("import torch\nraise ValueError('50%,\\n::error::x')\n")
    status, out, err = check("broken.py", "--format", form, folder=tmp_path)
    assert status == 2
    assert "broken.py cannot be imported: ValueError" in err
    if form == "github":
        (command,) = out.splitlines()
        assert command.startswith("::error title=broken.py was not checked::broken.py cannot be imported")
        assert "50%25," in command
    elif form == "json":
        jsonschema.validate(json.loads(out), SCHEMA)
        assert [each["target"] for each in json.loads(out)["problems"]] == ["broken.py"]
    else:
        jsonschema.validate(json.loads(out), SARIF)
        assert not json.loads(out)["runs"][0]["invocations"][0]["executionSuccessful"]


def test_what_an_imported_package_prints_is_not_in_the_results(tmp_path):
    words = ("user_ops:Kept", "--arg", "float[n]", *FEW, "--import", "this")
    status, out, _ = check(*words, "--format", "json", folder=tmp_path, fresh=True)
    assert status == json.loads(out)["status"] == 0


def test_what_is_known_of_an_interrupted_check_is_told(monkeypatch, capsys, tmp_path):
    """A Function whose checks were all made, one with some of them, and one with none."""

    def lines(following, *_):
        following.header = {"expected": 9}
        for name in ("first", "second"):
            following.results.append({"id": f"FWD-VALUE[{name}-cpu]"})
            yield {"function": name, "property": "FWD-VALUE", "outcome": "pass", "examples": 3, "excused": 0}
        raise KeyboardInterrupt("terminated")

    monkeypatch.setattr(child_session.Following, "lines", lines)
    monkeypatch.setattr(child_session.Following, "rest", lambda _: iter(()))
    declared = "".join(f"{name} = Declaration(torch.sin, 'float[2]', name={name!r})\n" for name in NAMES)
    path = tmp_path / "mine.py"
    path.write_text(f"import torch\nfrom autograd_conformance import Declaration\n{declared}")
    words = [str(path), "--format", "json", "--scripts", str(tmp_path / "scripts")]
    with pytest.raises(click.ClickException, match="terminated"):
        check_command.main(words, standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert {f["name"]: f["status"] for f in found["functions"]} == {"first": 0, "second": 2}
    assert [each["target"] for each in found["problems"]] == ["third", "check"]


def test_another_format_is_refused_with_the_choices(tmp_path):
    status, out, err = check("user_ops:Kept", "--arg", "float[n]", "--format", "gitlab", folder=tmp_path)
    assert (status, out) == (2, "")
    assert "unknown format 'gitlab'; choose from: text, github, sarif, json" in err


def test_every_letter_that_github_reads_is_escaped():
    finding = {"level": "warning", "verdict": "a,b:c%", "message": "x\r\ny%,:", "location": None}
    document = findings.document(2, "torch", [{"name": "F", "findings": [finding]}], [])
    assert formats.as_annotations(document) == "::warning title=F%3A a%2Cb%3Ac%25::x%0D%0Ay%25,:"


def test_places_outside_the_folder_are_not_named(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    lines = places.lines_of(user_ops.Wrong, "")
    assert set(lines) >= {"forward", "backward"}
    assert places.place_of("VJP-FD", {}, lines) is None
    # A job may work in a folder of its checkout.
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path(user_ops.__file__).parents[1]))
    of, file, number = places.place_of("VJP-FD", {}, lines)
    assert (of, file) == ("backward", "check/user_ops.py")
    row = Path(user_ops.__file__).read_text().splitlines()[number - 1]
    assert re.match(r"    def backward\(ctx", row)
    assert places.place_of("VJP-FD", {"what": "output"}, lines)[0] == "forward"
    assert places.place_of("JVP-REF", {}, lines)[0] == "backward"


@pytest.mark.parametrize("fault", [{"status": 3}, {"more": 1}, {"problems": [{"target": "x"}]}, {"format": 2}])
def test_another_form_of_the_document_is_found(fault):
    document = findings.document(0, "torch", [], [])
    jsonschema.validate(document, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, **fault}, SCHEMA)
