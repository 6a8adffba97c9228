"""The files for CI that a report can be exported to: JUnit XML, Markdown, a badge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.harness.views import badge, junit, markdown

# The formats, by the name of their option.
FORMATS: Mapping[str, Callable[[Report], str]] = {"junit": junit.xml, "markdown": markdown.text, "badge": badge.text}

# The file name that stands for stdout.
STDOUT = "-"


def chosen(options: Mapping[str, str | None]) -> dict[str, str]:
    """The files that the options name, by format."""
    return {name: target for name in FORMATS if (target := options.get(name)) is not None}


def check(targets: Mapping[str, str], source: str | None, others: Mapping[str, Path | None] | None = None) -> None:
    """Raise UsageProblem for files that cannot be written; writes nothing.

    ``source`` is the report, ``others`` are files that must not be overwritten.
    """
    if not targets:
        return
    if source is None:
        raise UsageProblem(f"--{next(iter(targets))} needs a report; name one with --report FILE")
    taken = {Path(source).resolve(): "the report"}
    taken.update((path.resolve(), what) for what, path in (others or {}).items() if path is not None)
    for name, target in targets.items():
        if target == STDOUT and name == "markdown":
            continue
        path = Path(target)
        ndjson.check_path(path, what=f"the file of --{name}", option=f"--{name}")
        other = taken.setdefault(path.resolve(), f"the file of --{name}")
        if other != f"the file of --{name}":
            raise UsageProblem(f"--{name} {target} would overwrite {other}; name another file")


def write(report: Report, targets: Mapping[str, str]) -> str:
    """Write the files, and return the text for stdout. Raises UsageProblem for a file that cannot be written."""
    printed = ""
    for name, target in targets.items():
        text = FORMATS[name](report)
        if target == STDOUT:
            printed += text
            continue
        try:
            Path(target).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise UsageProblem(f"the file of --{name} cannot be written to {target}: {problem.strerror}") from None
    return printed
