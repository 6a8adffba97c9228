"""The options of the pytest plugin."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.testing import profiles

# Seconds.
TIME_LIMIT = 300.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograd-conformance", "what to check, and with how many examples")
    group.addoption("--implementation", default="torch", metavar="NAME", help="implementation to check")
    group.addoption("--functions", metavar="PATTERN", help="Functions to check: names or globs, comma-separated")
    group.addoption("--properties", metavar="PATTERN", help="properties to check: ids or globs, comma-separated")
    group.addoption("--profile", default="gate", metavar="NAME", help=profiles.described())
    group.addoption("--seed", type=int, metavar="N", help="seed of the examples")
    group.addoption("--device", metavar="D", help="the only device to run on")
    group.addoption("--dtype", metavar="T", help="the only dtype of floating tensors")
    group.addoption("--report", metavar="FILE", help="NDJSON file to write each result to at once")
    group.addoption("--resume", metavar="FILE", help="report of an interrupted run, which goes on")
    group.addoption("--replay", metavar="FILE", help="report or corpus whose counterexamples the profile replay runs")
    group.addoption("--corpus", metavar="FILE", help="corpus of counterexamples to run before the drawn examples")
    group.addoption("--expect", metavar="FORK", help="distribution that the implementation must come from")
    group.addoption("--shard", metavar="I/N", help="run only part I of N of the test ids")
    group.addoption("--run-id", metavar="TEXT", help="id of the run that all its shards have")
    group.addoption("--balance", metavar="FILE", help="report whose durations balance the shards")
    group.addoption("--progress", action="store_true", help="show the progress of the run instead of pytest's dots")
    group.addoption("--verified", action="store_true", help="skip the smoke stage: the adapter has already passed it")
    group.addoption(
        "--pytest-arguments", metavar="TEXT", help="what the command run was given for pytest, for the report"
    )
    group.addoption("--suite-of-run", metavar="PATH", help="tests of run, which has no other plugins")
    group.addoption("--time-limit", type=float, default=TIME_LIMIT, metavar="S", help="time limit of a test in seconds")
    group.addoption("--memory-limit", type=float, metavar="GIB", help="memory limit of a worker in GiB")
    group.addoption("--box", metavar="FILE", help="black box of a run without workers: what runs, for who follows it")
