"""What `check` found, in the words of other programs: GitHub's annotations, SARIF 2.1.0 and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from autograd_conformance.harness.check.report.findings import ERROR, NOTE, WARNING
from autograd_conformance.reference.properties import PROPERTIES

TEXT = "text"

_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
# GitHub's escapes for the text of an annotation, and those for its properties.
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}
# What follows the message of a finding, with its title.
_MORE = {
    "chosen": "with",
    "hint": "hint",
    "right_with": "right with",
    "call": "call",
    "guess": "likely cause (a guess)",
    "advice": "advice",
}

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_json(document: Mapping[str, Any]) -> str:
    """The document itself."""
    return json.dumps(document, indent=2)


def as_annotations(document: Mapping[str, Any]) -> str:
    """A workflow command for each finding and problem, on the line of the method that it is about."""
    return "\n".join((*_annotations(document), *map(_problem, document["problems"])))


def _annotations(document: Mapping[str, Any]) -> Iterator[str]:
    for function, finding in _findings(document):
        title = f"{function['name']}: {_headline(finding)}"
        place = finding["location"]
        where = {"file": place["file"], "line": str(place["line"])} if place else {}
        yield _command(_COMMANDS[finding["level"]], {**where, "title": title}, _in_full(finding))


def _problem(problem: Mapping[str, str]) -> str:
    return _command("error", {"title": f"{problem['target']} was not checked"}, problem["message"])


def _command(name: str, properties: Mapping[str, str], text: str) -> str:
    listed = ",".join(f"{key}={_escaped(value, _PROPERTY)}" for key, value in properties.items())
    return f"::{name} {listed}::{_escaped(text, _DATA)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in text)


def _findings(document: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return ((function, finding) for function in document["functions"] for finding in function["findings"])


def _headline(finding: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, (finding["verdict"], finding.get("test", ""))))


def _in_full(finding: Mapping[str, Any]) -> str:
    sentence = f"must hold: {finding['sentence']}" if "sentence" in finding else ""
    more = (f"{title}: {finding[key]}" for key, title in _MORE.items() if key in finding)
    return "\n".join(filter(None, (sentence, finding.get("message", ""), *more)))


def as_sarif(document: Mapping[str, Any]) -> str:
    """A log of one run, whose rules are the properties."""
    found = list(_findings(document))
    rules = sorted({_rule(finding) for _, finding in found})
    run = {
        "tool": {
            "driver": {
                "name": "autograd-conformance",
                "version": document["version"],
                "rules": [{"id": rule, "shortDescription": {"text": _sentence(rule)}} for rule in rules],
            }
        },
        "results": [_result(function, finding, rules) for function, finding in found],
        "invocations": [
            {
                # A fault that was found is no failure of the tool.
                "executionSuccessful": not document["problems"],
                "exitCode": document["status"],
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": f"{each['target']}: {each['message']}"}}
                    for each in document["problems"]
                ],
            }
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(finding: Mapping[str, Any]) -> str:
    """The id of the rule that a finding breaks: a property, or the verdict where it is about none."""
    return str(finding.get("property") or finding["verdict"].replace(" ", "-"))


def _sentence(rule: str) -> str:
    return PROPERTIES[rule].sentence if rule in PROPERTIES else rule.replace("-", " ")


def _result(function: Mapping[str, Any], finding: Mapping[str, Any], rules: list[str]) -> dict[str, Any]:
    rule, place = _rule(finding), finding["location"]
    text = f"{function['name']}: {_headline(finding)}\n{_in_full(finding)}"
    found = {"ruleId": rule, "ruleIndex": rules.index(rule), "level": finding["level"], "message": {"text": text}}
    if place is None:
        return found
    # A URI, in which a space or a per cent sign has another form.
    file = {"uri": quote(place["file"]), "uriBaseId": "%SRCROOT%"}
    physical = {"artifactLocation": file, "region": {"startLine": place["line"]}}
    return {**found, "locations": [{"physicalLocation": physical}]}


FORMATS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "github": as_annotations,
    "sarif": as_sarif,
    "json": as_json,
}
# Formats of which stdout has nothing else.
ALONE = ("sarif", "json")
NAMES = (TEXT, *FORMATS)
