"""A run as JUnit XML, which Jenkins, GitLab and other CI servers show.

A test suite is an implementation on a device; a test case is a test id.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from autograd_conformance.harness.outcomes import NOT_RUN, UNCLAIMED
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.harness.views import describe

# The JUnit element of each outcome; a test id that holds has none.
_ELEMENTS = {
    "fail": "failure",
    "fixed": "failure",
    "error": "error",
    "missing": "failure",
    "vacuous": "error",
    "known": "skipped",
    "unsupported": "skipped",
    "skip": "skipped",
    **dict.fromkeys(UNCLAIMED, "skipped"),
}

_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}

_PROPERTIES = ("property", "clause", "level", "variant", "function", "device", "outcome")
_SHOWN = ("what", "got", "expected", "bound", "chosen", "hint", "call")


def xml(report: Report) -> str:
    """The document. An incomplete or damaged report adds a test case with an error that says so."""
    places = [] if "jobs" in report.header else report.header["devices"]
    by_place: dict[str, list[Line]] = {place: [] for place in places}
    for line in report.results:
        by_place.setdefault(ndjson.place_of(line), []).append(line)
    by_place = by_place or {place: [] for place in report.header["devices"]}
    suites = [_suite(report, place, lines) for place, lines in by_place.items()]
    if report.flaw:
        case = _case(suites[0], report.name, "the report is complete", 0, {"outcome": "error"})
        text = f"the run {report.verdict}: {report.flaw.reason}"
        _add(case, "error", "error", text, text)
    for suite in suites:
        _count(suite)
    root = ET.Element("testsuites", {"name": "autograd-conformance", **_total(suites)})
    root.extend(suites)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report, place: str, lines: Sequence[Line]) -> ET.Element:
    header = report.header
    suite = ET.Element("testsuite", name=f"{report.name} on {place}")
    suite.set("time", f"{sum(line['seconds'] for line in lines):.3f}")
    suite.set("timestamp", header["started"].removesuffix("+00:00"))
    facts = {
        "implementation": report.name, "version": report.version, "location": header["implementation"]["location"],
        "profile": header["profile"], "seed": header["seed"], "suite": header["suite"]["version"],
        "python": header["python"], "platform": header["platform"],
    }  # fmt: skip
    _properties(suite, facts)
    for line in lines:
        where = f"{report.name}.{place}.{ndjson.claim_of(line)}"
        facts = {key: line[key] for key in _PROPERTIES if key in line}
        case = _case(suite, where, line["id"], line["seconds"], facts)
        if line["outcome"] in _ELEMENTS:
            _add(case, _ELEMENTS[line["outcome"]], line["outcome"], describe.message(line), _body(report, line))
    return suite


def _case(suite: ET.Element, where: str, name: str, seconds: float, facts: dict[str, str]) -> ET.Element:
    case = ET.SubElement(suite, "testcase", classname=where, name=name, time=f"{seconds:.3f}")
    _properties(case, facts)
    return case


def _add(case: ET.Element, element: str, kind: str, message: str, body: str) -> None:
    ET.SubElement(case, element, type=kind, message=message).text = body


def _properties(parent: ET.Element, values: dict[str, str]) -> None:
    group = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(group, "property", name=name, value=str(value))


def _body(report: Report, line: Line) -> str:
    """Everything that the report says about a test id: CI pages show nothing else of a test case."""
    failure = line.get("failure", {})
    rows = [describe.must_hold(line), describe.message(line)]
    rows += [f"{key}: {failure[key]}" for key in _SHOWN if failure.get(key)]
    rows += failure.get("traceback", ())
    rows += [] if line["outcome"] in NOT_RUN else [f"rerun: {describe.rerun(line, report.header)}"]
    return "\n".join(rows)


def _count(suite: ET.Element) -> None:
    """Set the numbers of test cases, failures, errors and skipped test cases."""
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, element in _COUNTED.items():
        suite.set(attribute, str(sum(case.find(element) is not None for case in cases)))


def _total(suites: Sequence[ET.Element]) -> dict[str, str]:
    counts = {name: sum(int(suite.attrib[name]) for suite in suites) for name in ("tests", *_COUNTED)}
    seconds = sum(float(suite.attrib["time"]) for suite in suites)
    return {**{name: str(count) for name, count in counts.items()}, "time": f"{seconds:.3f}"}
