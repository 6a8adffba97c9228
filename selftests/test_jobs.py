"""Jobs on several platforms: one report, one baseline, and nothing of one hidden by another."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from autograd_conformance.harness import cli
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import corpus, jobs
from autograd_conformance.harness.views import matrix
from autograd_conformance.selftests.reports import HEADER, IDS, lines, result, write
from autograd_conformance.selftests.test_report import LINES

TORCH = {**HEADER["implementation"], "name": "torch", "named": "torch"}
RUN = {"id": "github 7", "host": "h"}
FORK = {"name": "mine", "version": "2.14.0+cu130", "url": "", "modules": 1, "total": 1, "others": 0}
PLACES = {
    "linux": {"platform": "Linux", "implementation": {**TORCH, "version": "2.14.0+cpu", "build": "1" * 64}},
    "mac": {
        "platform": "macOS",
        "implementation": {**TORCH, "version": "2.14.0", "build": "2" * 64, "location": "/mac"},
        "python": "3.12",
    },
    "cuda": {
        "platform": "Linux",
        "implementation": {**TORCH, "version": "2.14.0+cu130", "build": "3" * 64, "fork": FORK},
        "devices": ["cpu", "cuda:0"],
    },
}
# The names of all jobs, and those of the first two.
ALL, TWO = ("--jobs", "linux,mac,cuda"), ("--jobs", "linux,mac")
CUDA = [id.replace("cpu", "cuda:0") for id in IDS[:2]]


def report(job, outcomes=(), /, **changed):
    """The report of a job; ``outcomes`` are those that are no passes."""
    ids = [*IDS, *(CUDA if job == "cuda" else ())]
    found = [result(id, dict(outcomes).get(id, "pass")) for id in ids]
    header = {"run": RUN, "job": job, **PLACES[job], **changed}
    return lines(found, **{name: value for name, value in header.items() if value is not None})


def written(tmp_path, *given):
    return [write(tmp_path / f"{n}.ndjson", one) for n, one in enumerate(given)]


def test_jobs_become_one_report(said, tmp_path):
    paths = written(tmp_path, report("linux"), report("mac", {IDS[0]: "fail"}), report("cuda"))
    assert said("merge", *paths, *ALL, "-o", "all.ndjson")[0] == 0
    found = ndjson.read(tmp_path / "all.ndjson")
    assert not ndjson.flaw(found)
    for line in found:
        LINES.validate(line)
    head, results = found[0], {line["id"]: line for line in found[1:-1]}
    assert len(results) == 3 * len(IDS) + len(CUDA) == head["expected"]
    assert (results[f"{IDS[0]}@mac"]["outcome"], results[f"{IDS[0]}@linux"]["outcome"]) == ("fail", "pass")
    assert head["job"] == "cuda, linux, mac"
    assert head["jobs"]["mac"] == {
        "version": "2.14.0", "location": "/mac", "devices": ["cpu"], "python": "3.12", "platform": "macOS",
    }  # fmt: skip
    assert head["jobs"]["cuda"]["fork"] == FORK
    assert head["implementation"].keys() == TORCH.keys()
    assert head["implementation"]["location"] == "/x, /mac"
    assert head["devices"] == ["cpu", "cuda:0"]
    assert found[-1]["verdict"] == "fails"
    # In whatever order they are named.
    assert said("merge", *paths[::-1], *ALL, "-o", "other.ndjson")[0] == 0
    assert ndjson.read(tmp_path / "other.ndjson")[-1]["digest"] == found[-1]["digest"]


def test_the_shards_of_each_job_are_merged_too(tmp_path):
    shards = [
        lines(
            [result(id) for id in IDS[n::2]], all_ids=IDS, shard=f"{n + 1}/2", run=RUN, job=job,
            **PLACES[job],
        )
        for job in ("mac", "linux")
        for n in (0, 1)
    ]  # fmt: skip
    reports = {tmp_path / str(n): one for n, one in enumerate(shards)}
    found = jobs.merged(reports, "mac, linux")
    assert not ndjson.flaw(found)
    assert len(found) == 2 + 2 * len(IDS)
    assert found[0]["shard"] is None
    one = dict(list(reports.items())[:2])
    assert jobs.merged(one, "mac")[0]["job"] == "mac"
    assert {line["id"] for line in jobs.merged(one, "mac")[1:-1]} == set(IDS)


@pytest.mark.parametrize("job", ["linux", "mac", "cuda"])
def test_one_baseline_holds_all_jobs(said, tmp_path, job):
    def merged(name, **changed):
        paths = written(tmp_path, *(report(each, changed.get(each, ())) for each in PLACES))
        assert said("merge", *paths, *ALL, "-o", name)[0] == 0

    merged("old.ndjson")
    assert said("accept", "old.ndjson", "-o", "base.txt")[0] == 0
    assert said("compare", "base.txt", "old.ndjson")[0] == 0
    merged("new.ndjson", **{job: {IDS[1]: "fail"}})
    status, out = said("compare", "base.txt", "new.ndjson")
    assert status == 1
    assert f"broken: {IDS[1]}@{job} no longer holds" in out
    assert out.count("broken: ") == 1
    # What fails on one of them hides nothing on another.
    assert said("accept", "new.ndjson", "-o", "base.txt")[0] == 0
    other = next(each for each in PLACES if each != job)
    merged("newer.ndjson", **{job: {IDS[1]: "fail"}, other: {IDS[1]: "fail"}})
    assert said("compare", "base.txt", "newer.ndjson")[0] == 1


def test_a_job_that_is_lost_is_seen(said, tmp_path):
    paths = written(tmp_path, *map(report, PLACES))
    assert said("merge", *paths, *ALL, "-o", "old.ndjson")[0] == 0
    assert said("accept", "old.ndjson", "-o", "base.txt")[0] == 0
    for given, reason in (
        ((*paths[:2], *ALL), "there is no report of the job cuda"),
        ((paths[0], *ALL), "there is no report of the job cuda, mac"),
        ((*paths, *TWO), "--jobs does not name the job cuda"),
        (
            paths[:2],
            "name all jobs of your workflow, also those without a report: --jobs linux,mac,...",
        ),
        (
            paths[:1],
            "name all jobs of your workflow, also those without a report: --jobs linux,...",
        ),
    ):
        status, out = said("merge", *given, "-o", "new.ndjson")
        assert (status, reason in out) == (2, True), out
        assert not (tmp_path / "new.ndjson").exists()
    assert said("merge", *paths[:2], *TWO, "-o", "new.ndjson")[0] == 0
    status, out = said("compare", "base.txt", "new.ndjson")
    assert status == 2
    assert "its job is cuda, linux, mac, and this run's is linux, mac" in out
    assert said("compare", "base.txt", paths[0])[0] == 2


def test_a_kept_counterexample_needs_a_test_in_each_job_that_keeps_it(said, tmp_path):
    paths = written(tmp_path, *map(report, PLACES))
    assert said("merge", *paths, *ALL, "-o", "a.ndjson")[0] == 0
    kept = [report(job, kept=[IDS[0], *(["NIG-99[cpu]"] if job == "mac" else [])]) for job in PLACES]
    status, out = said("merge", *written(tmp_path, *kept), *ALL, "-o", "b.ndjson")
    assert status == 2
    assert "1 of the kept counterexamples have no test in this run: NIG-99[cpu]; take" in out
    assert "kept" not in ndjson.read(tmp_path / "b.ndjson")[0]


def test_a_claim_that_one_job_drops_is_seen(said, tmp_path):
    paths = written(tmp_path, report("linux"), report("mac"))
    assert said("merge", *paths, *TWO, "-o", "old.ndjson")[0] == 0
    write(paths[1], report("mac", claims=["double_backward", "float64"]))
    assert said("merge", *paths, *TWO, "-o", "new.ndjson")[0] == 0
    status, out = said("compare", "old.ndjson", "new.ndjson")
    assert status == 1
    assert "the adapter does not claim float32@mac any more" in out


OTHER = {
    "another run": ({"run": {"id": "github 8", "host": "h"}}, "run id is github 7 in the first and github 8"),
    "another seed": ({"seed": 3}, "seed is"),
    "another profile": ({"profile": "quick"}, "profile is"),
    "another release": ({"implementation": {**TORCH, "version": "2.13.0"}}, "version is 2.14.0 in the first and 2.13"),
    "another corpus": ({"counterexamples": "1" * 64}, "counterexamples is None in the first and 11"),
    "another choice": ({"options": {**HEADER["options"], "functions": "Exp"}}, "option functions is"),
    "another suite": (
        {"suite": {**HEADER["suite"], "sources": {**HEADER["suite"]["sources"], "suites": "1" * 16}}},
        "suite's suites is",
    ),
    "another Hypothesis": ({"packages": {**HEADER["packages"], "hypothesis": "5"}}, "hypothesis is"),
    "another day": ({"started": "2026-01-03T00:00:00+00:00"}, "started at"),
    "no job": ({"job": None}, "is of a run without --job"),
    "no run id": ({"run": {"id": None, "host": "h"}}, "has no run id, so that its job may be of another run"),
}


@pytest.mark.parametrize("what", OTHER)
def test_what_is_not_a_job_of_this_run_is_not_merged(said, tmp_path, what):
    changed, reason = OTHER[what]
    status, out = said("merge", *written(tmp_path, report("linux"), report("mac", **changed)), *TWO, "-o", "all.ndjson")
    assert status == 2
    assert reason in out
    assert not (tmp_path / "all.ndjson").exists()


def test_jobs_may_have_a_device_each(said, tmp_path):
    options = {**HEADER["options"], "device": "cuda:0"}
    paths = written(tmp_path, report("linux"), report("cuda", options=options))
    assert said("merge", *paths, "--jobs", "linux,cuda", "-o", "all.ndjson")[0] == 0
    assert ndjson.read(tmp_path / "all.ndjson")[0]["options"]["device"] == "cuda: cuda:0"
    assert said("accept", "all.ndjson", "-o", "base.txt")[0] == 0
    assert "# device: cuda: cuda:0\n# functions: all\n" in (tmp_path / "base.txt").read_text()
    assert said("compare", "base.txt", "all.ndjson")[0] == 0


def test_other_mistakes(said, tmp_path):
    paths = written(tmp_path, report("linux"), report("linux"), report("mac")[:-1])
    assert "is not a shard" in said("merge", *paths[:2], "--jobs", "linux", "-o", "all.ndjson")[1]
    assert "the run did not finish" in said("merge", *paths[1:], *TWO, "-o", "all.ndjson")[1]
    assert said("merge", paths[0], write(paths[2], report("mac")), *TWO, "-o", "all.ndjson")[0] == 0
    assert "is merged from several jobs already" in said("merge", "all.ndjson", paths[1], "-o", "more.ndjson")[1]
    for name in ("two words", "a@b", "-x", "x" * 50):
        assert "is no name" in said("run", "model", f"--job={name}")[1]


def test_readers_know_the_jobs(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    found = jobs.merged(dict(zip(paths, (report("linux"), report("mac", {IDS[0]: "fail"})), strict=True)), "linux,mac")
    path = write(tmp_path / "all.ndjson", found)
    # The counterexample is that of the test id, on whatever platform.
    assert [one.id for one in corpus.read(path)] == [IDS[0]]
    shown = matrix.matrices(found[1:-1], ["VJP-REF"], ["Exp", "Sort"])
    assert [each.device for each in shown] == ["cpu of linux", "cpu of mac"]


def test_jobs_of_real_runs_are_one(command, tmp_path):
    words = ("model", "--functions", "Exp", "--properties", "VJP-REF,FWD-VALUE", "-n", "0", "--run-id", "x")
    for job in ("one", "two"):
        run = command(*words, "--job", job, "--report", f"{job}.ndjson", folder=tmp_path)
        assert run.status == 0, run.out + run.err
    whole, parts = str(tmp_path / "all.ndjson"), [str(tmp_path / f"{job}.ndjson") for job in ("one", "two")]
    done = CliRunner().invoke(cli.main, ["merge", *parts, "--jobs", "one,two", "-o", whole])
    assert done.exit_code == 0, done.output
    for line in ndjson.read(tmp_path / "all.ndjson"):
        LINES.validate(line)
    assert CliRunner().invoke(cli.main, ["compare", whole, whole]).output.startswith("gate: holds: 12 same")
