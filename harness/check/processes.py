"""Discovery and checks of users' Functions, in processes that may die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from autograd_conformance import implementations
from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.check.declaration import REQUESTS, Declaration
from autograd_conformance.harness.check.discovery import discover
from autograd_conformance.harness.check.facts import Facts
from autograd_conformance.harness.check.freedom import Freedom
from autograd_conformance.harness.check.loading import Plan
from autograd_conformance.harness.check.plugin import Declared
from autograd_conformance.harness.outcomes import UsageProblem, one_line
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import isolation
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.strategies.calls import Call

# Frameworks that have started threads when they are imported do not survive a fork.
_FORKABLE = ("torch", "hips", "mygrad", "model")

_PYTEST = (*isolation.ARGUMENTS, "-p", Declared.__module__, *isolation.ROOT, str(SUITES / "functions"))
_ISOLATED = ("-p", "xdist", "--numprocesses=1", "--max-worker-restart=1000")


@dataclass
class Found:
    """What discovery found: the facts in the plan; places, described arguments and problems by name."""

    plan: Plan
    places: dict[str, str] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def find_out(plan: Plan, implementation: str, *, seconds: float) -> Found:
    """Load the target and call each Function a few times. Raises UsageProblem if the target cannot be loaded.

    If a call ends the process, the Function counts as not taking the call's dtype, unless no other dtype is left.
    """
    found = Found(plan)
    without: dict[str, dict[str, str]] = {}
    while True:
        known = sorted({*found.plan.facts, *found.problems})
        messages = list(_of_process(_discover, (plan, implementation, known, without), implementation, seconds))
        for message in messages:
            _note(found, message)
        last, before = messages[-1], messages[-2] if len(messages) > 1 else {"kind": ""}
        if last["kind"] == "end":
            return found
        if before["kind"] not in ("begins", "tries"):
            raise UsageProblem(f"importing {plan.target} {last['how']}")
        name, dtype = before["name"], before.get("dtype", "")
        if dtype and not before["only"]:
            without.setdefault(name, {})[dtype] = f"{last['how']} in {before['call']}"
        else:
            what = f"the simple call {before['call']}" if dtype else "preparing the first call"
            found.problems[name] = f"{found.places[name]}: {name}: {what} {last['how']}"


def _note(found: Found, message: dict[str, Any]) -> None:
    name = message.get("name", "")
    if message["kind"] == "begins":
        found.places[name], found.described[name] = message["where"], message["described"]
    elif message["kind"] == "facts":
        facts = Facts.from_json(message["facts"])
        found.plan = replace(found.plan, facts={**found.plan.facts, name: facts})
    elif message["kind"] == "problem" and name:
        found.problems[name] = message["problem"]
    elif message["kind"] == "problem":
        raise UsageProblem(message["problem"])


def _discover(
    pipe: Any, plan: Plan, implementation: str, known: Sequence[str], without: dict[str, dict[str, str]]
) -> None:
    """Send what discovery finds out about each declaration; runs in a process of its own."""
    try:
        loaded = implementations.load(implementation)
        loaded.limit_threads()
        declared = [d for d in plan.declarations() if d.name not in known]
    except (UsageProblem, Unavailable) as problem:
        pipe.send({"kind": "problem", "problem": str(problem)})
        return
    for declaration in declared:
        place = {"where": declaration.where, "described": _described(declaration)}
        pipe.send({"kind": "begins", "name": declaration.name, **place})
        left_out = without.get(declaration.name, {})

        def note(call: Call, declaration: Declaration = declaration, left_out: dict[str, str] = left_out) -> None:
            only = len(set(declaration.candidates) - set(left_out)) < 2
            tried = {"name": declaration.name, "dtype": call.dtype, "only": only, "call": repr(call)}
            pipe.send({"kind": "tries", **tried})

        try:
            if declaration.implementation != implementation:
                mine = declaration.implementation
                raise declaration.problem(f"it is declared for {mine}; add --implementation {mine} to the command")
            facts = discover(declaration, loaded, without=left_out, note=note)
            pipe.send({"kind": "facts", "name": declaration.name, "facts": asdict(facts)})
        except UsageProblem as problem:
            pipe.send({"kind": "problem", "name": declaration.name, "problem": str(problem)})
        except Exception as raised:  # noqa: BLE001 - a user's Function may do anything
            text = str(declaration.problem(one_line(raised)))
            pipe.send({"kind": "problem", "name": declaration.name, "problem": text})
    pipe.send({"kind": "end"})


def _described(declaration: Declaration) -> str:
    described = ", ".join(a if isinstance(a, str) else type(a).__name__ for a in declaration.arguments)
    free = " and ".join(f.text if isinstance(f, Freedom) else "a canonical form" for f in declaration.up_to)
    return f"{described}; up to {free}" if free else described


def _context(implementation: str) -> Any:
    """The start method of processes."""
    return multiprocessing.get_context("fork" if implementation in _FORKABLE and hasattr(os, "fork") else "spawn")


def _of_process(
    work: Callable[..., None], arguments: Sequence[Any], implementation: str, seconds: float
) -> Iterator[dict[str, Any]]:
    """The messages of a process. The last one says so if the process hung or died."""
    context = _context(implementation)
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_quietly, args=(work, theirs, *arguments))
    process.start()
    theirs.close()
    message: dict[str, Any] = {}
    while message.get("kind") != "end":
        if not mine.poll(seconds):
            process.kill()
            process.join()
            yield {"kind": "lost", "how": f"did not end within {seconds:g} s; raise --time-limit if it is only slow"}
            return
        try:
            message = mine.recv()
        except EOFError:
            process.join()
            yield {"kind": "lost", "how": _ending(process.exitcode)}
            return
        yield message
    process.join()


def _quietly(work: Callable[..., None], pipe: Any, *arguments: Any) -> None:
    # Output of the user's module would mix with the verdicts.
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    work(pipe, *arguments)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended the process ({signal.Signals(-code).name})"
    return f"ended the process (exit status {code})"


def run(plan: Path, options: dict[str, Any], report_: Path, implementation: str) -> list[ndjson.Line]:
    """Check the Functions of a plan, and return the result lines.

    All tests run in one process. If it dies, they run again so that only the test that dies is lost.
    """
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    common = [*_PYTEST, *words, f"--implementation={implementation}", f"--declared={plan}", f"--report={report_}"]
    log = report_.with_suffix(".log")
    for parallel in ((), _ISOLATED):
        process = _context(implementation).Process(target=_pytest, args=([*common, *parallel], str(log)))
        process.start()
        process.join()
        lines = ndjson.read(report_) if report_.exists() else []
        if lines and lines[-1]["kind"] == "footer":
            break
    results = [line for line in lines if line["kind"] == "result"]
    if not results:
        if lines:
            asked = ", ".join(f"--also {word}" for word in REQUESTS)
            raise UsageProblem(f"none of the chosen properties applies; some are checked on request only: {asked}")
        raise UsageProblem(f"no test could be run; the end of pytest's output: {_tail(log)}")
    return results


def _pytest(words: Sequence[str], log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    isolation.isolate_environment()
    sys.exit(int(pytest.main(list(words))))


def _tail(log: Path) -> str:
    return " ".join(log.read_text(encoding="utf-8", errors="replace").split()[-60:]) if log.exists() else "nothing"
