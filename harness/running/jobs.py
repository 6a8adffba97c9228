"""Jobs: one run on several platforms, devices or interpreters, whose reports become one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.running import shards

# The fields of the header that are equal in all jobs of a run.
_SAME = ("profile", "examples", "seed", "counterexamples", "dtype")

# What the header of the whole says about each job.
_OWN = ("devices", "python", "platform")
_OF_IMPLEMENTATION = ("version", "location", "fork")

_Reports = Mapping[Path, Sequence[Line]]


def merged(reports: _Reports, named: str | None = None, run_id: str | None = None) -> list[Line]:
    """The report of a run, merged from those of its jobs and their shards. Raises UsageProblem if one is missing.

    ``named`` has the names of all jobs, comma-separated. All reports must be of ``run_id``, if it is given.
    """
    _verify_run(reports, run_id)
    by_job: dict[str | None, dict[Path, Sequence[Line]]] = {}
    for path, lines in reports.items():
        if "jobs" in lines[0]:
            raise UsageProblem(f"{path} is merged from several jobs already; give the reports that it was made of")
        by_job.setdefault(lines[0].get("job"), {})[path] = lines
    _verify_all_there(by_job, named)
    if len(by_job) == 1:
        return shards.merged(reports)
    for path, lines in reports.items():
        if lines[0]["run"]["id"] is None:
            raise UsageProblem(
                f"{path} has no run id, so that its job may be of another run; give all jobs one --run-id"
            )
    # In an order that does not depend on the command line.
    wholes = {str(job): _whole(by_job[job]) for job in sorted(by_job, key=str)}
    firsts = {path: wholes[str(job)] for job, found in by_job.items() for path in list(found)[:1]}
    _verify_alike(firsts)
    shards.verify_one_day(firsts)
    return _together(wholes)


def _verify_run(reports: _Reports, wanted: str | None) -> None:
    for path, lines in reports.items():
        found = lines[0]["run"]["id"]
        if wanted is not None and found != wanted:
            raise UsageProblem(
                f"{path} is not of the run {wanted!r}: its run id is {found!r}; give the reports of that run"
            )


def _verify_all_there(by_job: Mapping[str | None, _Reports], named: str | None) -> None:
    """Raise UsageProblem unless these are the named jobs: one that was lost has no report that would say so."""
    given = {job for job in by_job if job is not None}
    wanted = {name for each in (named or "").split(",") if (name := each.strip())}
    if given and None in by_job:
        raise UsageProblem(
            f"{next(iter(by_job[None]))} is of a run without --job, but others have one; give each job its name"
        )
    if given and not wanted:
        raise UsageProblem(
            f"these are reports of the jobs {', '.join(sorted(given))}, and a lost one leaves none; name all jobs of "
            f"your workflow, also those without a report: --jobs {','.join(sorted(given))},..."
        )
    for what, names in (("there is no report of", wanted - given), ("--jobs does not name", given - wanted)):
        if names:
            raise UsageProblem(f"{what} the job {', '.join(sorted(names))}; give the reports and the names of all jobs")


def _whole(reports: _Reports) -> list[Line]:
    """The report of one job."""
    ((path, lines), *others) = reports.items()
    if others or lines[0]["shard"] is not None:
        return shards.merged(reports)
    shards.verify_complete(path, lines)
    return [*lines]


def _verify_alike(reports: _Reports) -> None:
    # Another platform may need other modules. Those that all have are the same.
    shared = set.intersection(*(set(shards.imports_of(lines[0])) for lines in reports.values()))
    modules = {name for name in shared if name.startswith("module ")}
    (first, theirs), *others = [(path, _parameters(lines[0], modules)) for path, lines in reports.items()]
    for path, mine in others:
        shards.verify_alike((first, theirs), (path, mine))


def _parameters(head: Line, modules: Collection[str]) -> Line:
    """The parameters that are equal in all jobs: builds, devices, and what depends on them may differ."""
    implementation = head["implementation"]
    options = {f"option {name}": value for name, value in head["options"].items() if name != "device"}
    return {
        "run id": head["run"]["id"],
        "name": implementation["name"],
        # Without the local part, as in 2.13.0+cu130.
        "version": implementation["version"].partition("+")[0],
        **shards.suite_of(head),
        **{name: digest for name, digest in shards.imports_of(head).items() if name in modules},
        **{what: head[what] for what in _SAME},
        **options,
        "hypothesis": head["packages"]["hypothesis"],
    }


def _together(wholes: Mapping[str, Sequence[Line]]) -> list[Line]:
    """One report of those of all jobs: the ids say which job a result is of."""
    results = [_of_job(line, job) for job, lines in wholes.items() for line in lines[1:-1]]
    header = {**_header({job: lines[0] for job, lines in wholes.items()}), "expected": len(results)}
    seconds = max(lines[-1]["seconds"] for lines in wholes.values())
    return [header, *results, ndjson.footer([header, *results], ndjson.census(r["id"] for r in results), seconds)]


def _of_job(line: Line, job: str) -> Line:
    return {**shards.without_link(line), "id": f"{line['id']}@{job}", "job": job}


def _own(head: Line) -> Line:
    """What the header of the whole says about a job."""
    implementation = {
        what: head["implementation"][what] for what in _OF_IMPLEMENTATION if what in head["implementation"]
    }
    return {**implementation, **{what: head[what] for what in _OWN}}


def _header(headers: Mapping[str, Line]) -> Line:
    whole = shards.together([*headers.values()])
    implementation = {what: value for what, value in whole["implementation"].items() if what != "fork"}
    devices = [f"{job}: {head['options']['device']}" for job, head in headers.items() if head["options"]["device"]]
    return {
        **{what: value for what, value in whole.items() if what != "kept"},
        "implementation": {
            **implementation,
            "version": ", ".join(dict.fromkeys(head["implementation"]["version"] for head in headers.values())),
            "build": ndjson.digest(head["implementation"]["build"] for head in headers.values()),
        },
        "job": ", ".join(headers),
        "jobs": {job: _own(head) for job, head in headers.items()},
        "claims": sorted(f"{claim}@{job}" for job, head in headers.items() for claim in head["claims"]),
        **{
            what: list(dict.fromkeys(name for head in headers.values() for name in head[what]))
            for what in ("devices", "functions", "properties", "clauses")
        },
        "options": {**whole["options"], "device": ", ".join(devices) or None},
    }
