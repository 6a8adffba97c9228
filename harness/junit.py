"""A run as JUnit XML, for pages that show the tests of a CI job: Jenkins, GitLab, and what reads the same files.

A test suite is an implementation on a device, a test case a test id.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from autograd_conformance.harness import report, runs
from autograd_conformance.harness.outcomes import UNASKED
from autograd_conformance.harness.runs import Line, Run

# What each outcome is in JUnit's terms. What holds has no element.
_ELEMENTS = {
    "fail": "failure",
    "fixed": "failure",
    "error": "error",
    "vacuous": "error",
    "known": "skipped",
    "unsupported": "skipped",
    "skip": "skipped",
}

_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}

_PROPERTIES = ("property", "clause", "level", "variant", "function", "device", "outcome")
_TOLD = ("what", "got", "expected", "bound", "chosen", "hint", "call")


def xml(run: Run) -> str:
    """The document. A run that did not finish has a test case more, an error that says so."""
    devices = dict.fromkeys([*run.header["devices"], *(line["device"] for line in run.results)])
    suites = [_suite(run, device, [line for line in run.results if line["device"] == device]) for device in devices]
    if run.flaw:
        case = _case(suites[0], run.name, "the report is whole", 0, {"outcome": "error"})
        told = f"the run {run.verdict}: {run.flaw}"
        _tell(case, "error", "error", told, told)
    for suite in suites:
        _count(suite)
    root = ET.Element("testsuites", {"name": "autograd-conformance", **_total(suites)})
    root.extend(suites)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(run: Run, device: str, lines: Sequence[Line]) -> ET.Element:
    header = run.header
    suite = ET.Element("testsuite", name=f"{run.name} on {device}")
    suite.set("time", f"{sum(line['seconds'] for line in lines):.3f}")
    suite.set("timestamp", header["started"].removesuffix("+00:00"))
    facts = {
        "implementation": run.name, "version": run.version, "location": header["implementation"]["location"],
        "profile": header["profile"], "seed": header["seed"], "suite": header["suite"]["version"],
        "python": header["python"], "platform": header["platform"],
    }  # fmt: skip
    _properties(suite, facts)
    for line in lines:
        where = f"{run.name}.{device}.{report.claim_of(dict(line))}"
        facts = {key: line[key] for key in _PROPERTIES if key in line}
        case = _case(suite, where, line["id"], line["seconds"], facts)
        if line["outcome"] in _ELEMENTS:
            _tell(case, _ELEMENTS[line["outcome"]], line["outcome"], runs.message(line), _body(run, line))
    return suite


def _case(suite: ET.Element, where: str, name: str, seconds: float, facts: dict[str, str]) -> ET.Element:
    case = ET.SubElement(suite, "testcase", classname=where, name=name, time=f"{seconds:.3f}")
    _properties(case, facts)
    return case


def _tell(case: ET.Element, element: str, kind: str, message: str, body: str) -> None:
    ET.SubElement(case, element, type=kind, message=message).text = body


def _properties(parent: ET.Element, values: dict[str, str]) -> None:
    group = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(group, "property", name=name, value=str(value))


def _body(run: Run, line: Line) -> str:
    """All that is known of it: pages show nothing else of a test case."""
    failure = line.get("failure", {})
    rows = [runs.sentence(report.claim_of(dict(line))), runs.message(line)]
    rows += [f"{key}: {failure[key]}" for key in _TOLD if failure.get(key)]
    rows += failure.get("traceback", ())
    rows += [] if line["outcome"] in UNASKED else [f"again: {run.again(line)}"]
    return "\n".join(rows)


def _count(suite: ET.Element) -> None:
    """Say how many test cases there are, and of how many of them something is to be told."""
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, element in _COUNTED.items():
        suite.set(attribute, str(sum(case.find(element) is not None for case in cases)))


def _total(suites: Sequence[ET.Element]) -> dict[str, str]:
    counts = {name: sum(int(suite.attrib[name]) for suite in suites) for name in ("tests", *_COUNTED)}
    seconds = sum(float(suite.attrib["time"]) for suite in suites)
    return {**{name: str(count) for name, count in counts.items()}, "time": f"{seconds:.3f}"}
