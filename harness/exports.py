"""What a run is written as beside its report: files that CI reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from autograd_conformance.harness import badge, junit, markdown, report
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.runs import Run

# The ways, by the name of their option.
WAYS: Mapping[str, Callable[[Run], str]] = {"junit": junit.xml, "markdown": markdown.text, "badge": badge.text}

# Where Markdown goes to be piped.
STDOUT = "-"


def chosen(options: Mapping[str, str | None]) -> dict[str, str]:
    """The files that options name, by the way that each is written."""
    return {way: target for way in WAYS if (target := options.get(way)) is not None}


def check(targets: Mapping[str, str], source: str | None, others: Mapping[str, Path | None] | None = None) -> None:
    """Raise UsageProblem for files that cannot be written, without touching them.

    ``source`` is the report, ``others`` are files that must stay as they are.
    """
    if not targets:
        return
    if source is None:
        raise UsageProblem(f"--{next(iter(targets))} needs a report; name one with --report FILE")
    taken = {Path(source).resolve(): "the report"}
    taken.update((path.resolve(), what) for what, path in (others or {}).items() if path is not None)
    for way, target in targets.items():
        if target == STDOUT and way == "markdown":
            continue
        path = Path(target)
        report.check_path(path, what=f"the file of --{way}", option=f"--{way}")
        other = taken.setdefault(path.resolve(), f"the file of --{way}")
        if other != f"the file of --{way}":
            raise UsageProblem(f"--{way} {target} would overwrite {other}; name another file")


def write(run: Run, targets: Mapping[str, str]) -> str:
    """Write the files, and give what is to go to stdout. Raises UsageProblem for one that cannot be written."""
    told = ""
    for way, target in targets.items():
        text = WAYS[way](run)
        if target == STDOUT:
            told += text
            continue
        try:
            Path(target).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise UsageProblem(f"the file of --{way} cannot be written to {target}: {problem.strerror}") from None
    return told
