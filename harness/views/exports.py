"""The files for CI that a report can be exported to: JUnit XML, Markdown, a badge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import files
from autograd_conformance.harness.reports.files import Kind, Output
from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.harness.views import badge, junit, markdown

# The formats, by the name of their option.
FORMATS: Mapping[str, Callable[[Report], str]] = {"junit": junit.xml, "markdown": markdown.text, "badge": badge.text}

_KINDS: Mapping[str, Kind] = {"junit": files.JUNIT, "markdown": files.MARKDOWN, "badge": files.BADGE}

# The file name that stands for stdout.
STDOUT = "-"


def chosen(options: Mapping[str, str | None]) -> dict[str, str]:
    """The files that the options name, by format. Raises UsageProblem for stdout if the format is not meant for it."""
    found = {name: target for name in FORMATS if (target := options.get(name)) is not None}
    for name, target in found.items():
        if target == STDOUT and name != "markdown":
            raise UsageProblem(f"--{name} needs a file; only --markdown can be {STDOUT}, which is stdout")
    return found


def outputs(targets: Mapping[str, str]) -> list[Output]:
    """The files to export to."""
    return [_output(name, target) for name, target in targets.items() if (name, target) != ("markdown", STDOUT)]


def _output(name: str, target: str) -> Output:
    return Output(Path(target), _KINDS[name], f"the file of --{name}", f"--{name}")


def write(report: Report, targets: Mapping[str, str]) -> str:
    """Write the files, and return the text for stdout. Raises UsageProblem for a file that cannot be written."""
    printed = ""
    for name, target in targets.items():
        text = FORMATS[name](report)
        if (name, target) == ("markdown", STDOUT):
            printed += text
        else:
            _output(name, target).write(text)
    return printed
