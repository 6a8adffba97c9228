"""``--shard auto``: which part a job runs, as its scheduler numbers it."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.running.schedulers import SCHEDULERS, resolved

SLURM = {"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "5"}
JOBS = [
    ("auto", {"STRATEGY_JOB_INDEX": "0", "STRATEGY_JOB_TOTAL": "4"}, "1/4"),
    ("auto", {"CI_NODE_INDEX": "4", "CI_NODE_TOTAL": "4"}, "4/4"),
    ("auto", {"CIRCLE_NODE_INDEX": "3", "CIRCLE_NODE_TOTAL": "4"}, "4/4"),
    ("auto", {"BUILDKITE_PARALLEL_JOB": "0", "BUILDKITE_PARALLEL_JOB_COUNT": "2"}, "1/2"),
    ("auto", {"SYSTEM_JOBPOSITIONINPHASE": "2", "SYSTEM_TOTALJOBSINPHASE": "2"}, "2/2"),
    ("auto", {"AWS_BATCH_JOB_ARRAY_INDEX": "9", "AWS_BATCH_JOB_ARRAY_SIZE": "10"}, "10/10"),
    ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "10"}, "1/3"),
    ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "20"}, "3/3"),
    ("auto/8", {"JOB_COMPLETION_INDEX": "0"}, "1/8"),
    ("auto/4", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"}, "1/4"),
    # A job that is not parallel is the whole run. GitLab sets the number of jobs also where it sets no index.
    ("auto", {"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "1", "CI_NODE_TOTAL": "1"}, "1/1"),
    ("2/3", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"}, "2/3"),
    (None, {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"}, None),
]


@pytest.mark.parametrize(("text", "environment", "expected"), JOBS)
def test_the_scheduler_says_which_part(text, environment, expected):
    assert resolved(text, environment) == expected


def test_every_scheduler_is_tried():
    tried = set().union(*(environment for _, environment, _ in JOBS))
    assert {each.index for each in SCHEDULERS} <= tried


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("auto", {}, ("none of STRATEGY_JOB_INDEX, ", "give --shard I/N")),
        ("auto", {"CI_NODE_TOTAL": "4"}, ("none of",)),
        ("auto", {"CI_NODE_INDEX": "", "CI_NODE_TOTAL": "4"}, ("none of",)),
        ("auto", {"JOB_COMPLETION_INDEX": "1"}, ("a Kubernetes Indexed Job does not say", "--shard auto/N")),
        ("auto/3", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"}, ("GitLab has 4 jobs (CI_NODE_TOTAL)",)),
        (
            "auto",
            {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4", "JOB_COMPLETION_INDEX": "1"},
            ("GitLab and a Kubernetes Indexed Job are set",),
        ),
        ("auto", {"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "4"}, ("CI_NODE_INDEX is 0", "one of 4 jobs")),
        ("auto", {"CIRCLE_NODE_INDEX": "4", "CIRCLE_NODE_TOTAL": "4"}, ("CIRCLE_NODE_INDEX is 4",)),
        ("auto", {"CI_NODE_INDEX": "one", "CI_NODE_TOTAL": "4"}, ("CI_NODE_INDEX is one",)),
        ("auto/many", {"JOB_COMPLETION_INDEX": "1"}, ("JOB_COMPLETION_INDEX is 1", "one of many jobs")),
        # An array of the tasks 10, 13 and 20 has no part for the task 13.
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "13"}, ("SLURM_ARRAY_TASK_ID is 13", "start at 10 in steps of 5")),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "10", "SLURM_ARRAY_TASK_STEP": "0"}, ("in steps of 0",)),
    ],
)
def test_a_part_that_nobody_names_is_a_mistake(text, environment, words):
    with pytest.raises(UsageProblem) as raised:
        resolved(text, environment)
    assert all(word in str(raised.value) for word in words), raised.value


def test_the_command_runs_that_part(said, monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "7")
    status, out = said("run", "model", "--shard", "auto/5")
    assert status == 2
    assert "JOB_COMPLETION_INDEX is 7, which is not the number of one of 5 jobs" in out
