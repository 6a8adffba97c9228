"""The command as its users meet it, and a small suite of tests that go wrong in every way."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autograd_conformance.harness import cli
from autograd_conformance.harness.commands import run as run_command
from autograd_conformance.harness.testing import own_faults
from autograd_conformance.selftests import costs, drawn_digest, tiers
from autograd_conformance.selftests.support import warm
from autograd_conformance.selftests.support.reports import IDS, lines, result, write
from autograd_conformance.selftests.support.warm import COMMAND, OUTSIDE  # noqa: F401

pytest_collection_modifyitems = tiers.leave_out
pytest_xdist_make_scheduler = tiers.make_scheduler


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_option(parser)
    parser.addoption("--costs", metavar="FILE", help="write the CPU seconds of each selftest to this file")
    parser.addoption("--examples", metavar="FILE", help="write the digests of each selftest's examples to this file")


def pytest_configure(config: pytest.Config) -> None:
    tiers.configure(config)
    config.pluginmanager.register(costs.Costs(config))
    config.pluginmanager.register(drawn_digest.Examples(config))


def outside_with(folder: Path) -> dict[str, str]:
    """The environment of what these tests start, with a folder on Python's path."""
    return {**OUTSIDE, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), OUTSIDE.get("PYTHONPATH"))))}


@dataclass(frozen=True)
class Run:
    """What a run of the command left: exit status, output, and its report."""

    status: int
    out: str
    err: str
    path: Path

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    @property
    def header(self) -> dict[str, Any]:
        return self.lines[0]

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        return {line["id"]: line for line in self.lines if line["kind"] == "result"}

    @property
    def footer(self) -> dict[str, Any] | None:
        last = self.lines[-1]
        return last if last["kind"] == "footer" else None

    @property
    def outcomes(self) -> dict[str, str]:
        return {id: line["outcome"] for id, line in self.results.items()}


@contextmanager
def unchanged_settings() -> Iterator[None]:
    """Fails a test that leaves a setting of torch or NumPy changed within this context, and sets it back."""
    torch_settings = sys.modules.get("autograd_conformance.implementations.torch.settings")
    settings = torch_settings.SETTINGS if torch_settings else ()
    before = [setting.get() for setting in settings]
    yield
    after = [setting.get() for setting in settings]
    if before == after:
        return
    changed = [row for row in zip(settings, before, after, strict=True) if row[1] != row[2]]
    for setting, value, _ in changed:
        setting.set(value)
    pytest.fail(f"the test leaves changed: {'; '.join(f'{s.name}: {old} became {new}' for s, old, new in changed)}")


@pytest.fixture(autouse=True)
def settings_stay() -> Iterator[None]:
    """No test may leave a setting changed, for the next ones to find."""
    with unchanged_settings():
        yield


@pytest.fixture(autouse=True)
def no_fault_is_our_own() -> Iterator[None]:
    """No test may meet an exception of the suite itself where it looks into what a Function did."""
    before = len(own_faults.ALL)
    yield
    assert own_faults.ALL[before:] == []


@pytest.fixture(scope="session")
def fast(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that stands for the command, for tests that start it with files and limits of their own."""
    return warm.command(tmp_path_factory.mktemp("fast") / "autograd-conformance")


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Runs ``autograd-conformance run`` with these words, in a folder of its own."""

    def run(*words: str, folder: Path | None = None, fresh: bool = False) -> Run:
        where = folder or tmp_path_factory.mktemp("run")
        done = warm.started("run", *words, folder=where, seconds=900, fresh=fresh)
        return Run(done.returncode, done.stdout, done.stderr, where / "autograd-conformance.ndjson")

    return run


SUITE = """
import ctypes
import os
import time

from autograd_conformance.harness.testing.marks import holds


def reference(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())
    return example


@holds("VJP-REF")
def test_right(subject, data):
    reference(subject, data)


@holds("VJP-FD")
def test_wrong(subject, data):
    example = reference(subject, data)
    size = example.call.tensors[0].shape
    subject.assert_that(len(size) < 2, example.call, "rank", got=len(size), expected="less", hint="it is planted")


@holds("VJP-LINEAR")
def test_raising(subject, data):
    reference(subject, data)
    raise KeyError("planted")


@holds("VJP-UNUSED")
def test_vacuous(subject, data):
    pass


@holds("VJP-MASK", needs="compile")
def test_unsupported(subject, data):
    reference(subject, data)


@holds("VJP-SUBSET", where=lambda f: f.name == "Exp")
def test_hanging(subject, data):
    reference(subject, data)
    while True:
        time.sleep(1)


@holds("VJP-FIT", where=lambda f: f.name == "Exp")
def test_hanging_natively(subject, data):
    reference(subject, data)
    ctypes.PyDLL(None).pause()  # holds the interpreter


@holds("VJP-PURE", where=lambda f: f.name == "Exp")
def test_leaving(subject, data):
    reference(subject, data)
    os._exit(0)


@holds("VJP-REPEAT", where=lambda f: f.name == "Exp")
def test_crashing(subject, data):
    reference(subject, data)
    ctypes.string_at(0)


calls = []


@holds("VJP-CHAIN", where=lambda f: f.name == "Exp")
def test_flaky(subject, data):
    example = reference(subject, data)
    calls.append(1)
    subject.assert_that(len(calls) % 3 > 0, example.call, "luck", got="bad", expected="good")


@holds("VJP-NONE", where=lambda f: f.name == "Exp")
def test_slow(subject, data):
    reference(subject, data)
    time.sleep(0.06)
"""


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tests that hold, fail, raise, hang, crash, and check nothing."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_planted.py").write_text(SUITE)
    return folder


@pytest.fixture(scope="session")
def eventful(command: Callable[..., Run], suite: Path) -> Run:
    """A run of all of that suite, on workers."""
    words: Sequence[str] = ("--suite", str(suite), "--functions", "Exp,Square", "--time-limit", "3", "-n", "2")
    return command("model", *words)


@pytest.fixture
def one_process(monkeypatch):
    """Let the command run in this process, so that a test sees what it prints and can replace its parts."""
    monkeypatch.setattr(run_command, "supervised", lambda action: action())


@pytest.fixture
def said(monkeypatch, tmp_path, one_process):  # noqa: ARG001
    """Exit status and output of the command, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        done = CliRunner().invoke(cli.main, [str(word) for word in words])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return call


@pytest.fixture
def held(said, tmp_path):
    """Hold a run with these results (id to outcome, or to a line) against a baseline or report of others."""

    def call(old, new, *, of_report=False, **header):
        for name, results in (("old.ndjson", old), ("new.ndjson", new)):
            found = [r if isinstance(r, dict) else result(id, r) for id, r in results.items()]
            write(tmp_path / name, lines(found, **(header if name == "new.ndjson" else {})))
        assert said("accept", "old.ndjson", "-o", "base.txt")[0] == 0
        return said("compare", "old.ndjson" if of_report else "base.txt", "new.ndjson")

    return call


@pytest.fixture
def base(said, tmp_path):
    """The text of a baseline, which is in base.txt."""
    write(tmp_path / "old.ndjson", lines([result(id) for id in IDS]))
    assert said("accept", "old.ndjson", "-o", "base.txt")[0] == 0
    return (tmp_path / "base.txt").read_text()
