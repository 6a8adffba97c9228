"""Discovery of users' Functions, in processes that may die."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from autograd_conformance import implementations
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.described import described
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.refusals.empty_tensors import has_empty
from autograd_conformance.harness.outcomes import UsageProblem, one_line
from autograd_conformance.harness.running.smoke import FORKABLE
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.strategies.calls import Call


@dataclass
class Found:
    """What discovery found: the facts in the plan; by name the places, with and without it, arguments and problems."""

    plan: Plan
    places: dict[str, str] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def of(self, names: Collection[str]) -> Found:
        """What it found about these Functions."""
        facts = {name: facts for name, facts in self.plan.facts.items() if name in names}
        problems = {name: problem for name, problem in self.problems.items() if name in names}
        return replace(self, plan=replace(self.plan, facts=facts), problems=problems)


# The message that the Function is called again: a slow one does not hang.
_GOES_ON = "goes on"


def find_out(
    plan: Plan, implementation: str, *, seconds: float, called: Callable[[str], None] = lambda _: None
) -> Found:
    """Load the target and call each Function a few times. Raises UsageProblem if the target cannot be loaded.

    ``called`` gets the name of the Function whenever it is called. If a call ends the process, the Function counts as
    not taking the call's dtype, unless no other dtype is left.
    """
    found = Found(plan)
    without: dict[str, dict[str, str]] = {}
    # Functions whose calls without elements end the process: their tests find that, too.
    whole = set[str]()
    while True:
        known = sorted({*found.plan.facts, *found.problems})
        messages = []
        for message in _of_process(_discover, (plan, implementation, known, without, whole), implementation, seconds):
            messages.append(message)
            _note(found, message)
            called(message.get("name", ""))
        last, before = messages[-1], messages[-2] if len(messages) > 1 else {"kind": ""}
        if last["kind"] == "end":
            return found
        if before["kind"] not in ("begins", "tries"):
            raise UsageProblem(f"importing {plan.target} {last['how']}")
        name, dtype = before["name"], before.get("dtype", "")
        if before.get("empty") and name not in whole:
            whole.add(name)
        elif dtype and not before["only"]:
            without.setdefault(name, {})[dtype] = f"{last['how']} in {before['call']}"
        else:
            what = f"the simple call {before['call']}" if dtype else "preparing the first call"
            found.problems[name] = f"{found.placed[name]}: {what} {last['how']}"


def _note(found: Found, message: dict[str, Any]) -> None:
    name = message.get("name", "")
    if message["kind"] == "begins":
        found.places[name], found.placed[name] = message["where"], message["placed"]
        found.described[name] = message["described"]
    elif message["kind"] == "facts":
        facts = Facts.from_json(message["facts"])
        found.plan = replace(found.plan, facts={**found.plan.facts, name: facts})
    elif message["kind"] == "problem" and name:
        found.problems[name] = message["problem"]
    elif message["kind"] == "problem":
        raise UsageProblem(message["problem"])


def _discover(
    pipe: Any, plan: Plan, implementation: str, known: Sequence[str], without: dict[str, dict[str, str]],
    whole: Collection[str],
) -> None:  # fmt: skip
    """Send what discovery finds out about each declaration; runs in a process of its own."""
    try:
        loaded = implementations.load(implementation)
        loaded.limit_threads()
        declared = [d for d in plan.declarations() if d.name not in known]
    except (UsageProblem, Unavailable) as problem:
        pipe.send({"kind": "problem", "problem": str(problem)})
        return
    loaded.on_call = lambda: pipe.send({"kind": _GOES_ON})  # type: ignore[attr-defined]
    for declaration in declared:
        place = {"where": declaration.where, "placed": declaration.placed, "described": described(declaration)}
        pipe.send({"kind": "begins", "name": declaration.name, **place})
        left_out = without.get(declaration.name, {})

        def note(call: Call, declaration: Declaration = declaration, left_out: dict[str, str] = left_out) -> None:
            only = len(set(declaration.candidates) - set(left_out)) < 2
            tried = {"name": declaration.name, "dtype": call.dtype, "only": only, "call": repr(call)}
            pipe.send({"kind": "tries", "empty": has_empty(call), **tried})

        try:
            if declaration.implementation != implementation:
                mine = declaration.implementation
                raise declaration.problem(f"it is declared for {mine}; add --implementation {mine} to the command")
            facts = discover(declaration, loaded, without=left_out, note=note, empty=declaration.name not in whole)
            pipe.send({"kind": "facts", "name": declaration.name, "facts": asdict(facts)})
        except UsageProblem as problem:
            pipe.send({"kind": "problem", "name": declaration.name, "problem": str(problem)})
        except Exception as raised:  # noqa: BLE001 - a user's Function may do anything
            text = str(declaration.problem(one_line(raised)))
            pipe.send({"kind": "problem", "name": declaration.name, "problem": text})
    pipe.send({"kind": "end"})


def context(implementation: str) -> Any:
    """The start method of processes that import an implementation."""
    forks = implementation in FORKABLE and hasattr(os, "fork")
    # A forked process cannot use the driver of an accelerator.
    forks = forks and not implementations.load(implementation).accelerators()
    return multiprocessing.get_context("fork" if forks else "spawn")


def _of_process(
    work: Callable[..., None], arguments: Sequence[Any], implementation: str, seconds: float
) -> Iterator[dict[str, Any]]:
    """The messages of a process. The last one says so if the process hung or died.

    The process ends with the generator.
    """
    start = context(implementation)
    mine, theirs = start.Pipe(duplex=False)
    process = start.Process(target=_quietly, args=(work, theirs, *arguments))
    process.start()
    theirs.close()
    message: dict[str, Any] = {}
    try:
        while message.get("kind") not in ("end", "lost"):
            message = _next(mine, process, seconds)
            if message["kind"] != _GOES_ON:
                yield message
    finally:
        process.kill()
        process.join()


def _next(pipe: Any, process: Any, seconds: float) -> dict[str, Any]:
    """The next message of a process, or that it hung or died."""
    if not pipe.poll(seconds):
        return {"kind": "lost", "how": f"did not end within {seconds:g} s; raise --time-limit if it is only slow"}
    try:
        return dict(pipe.recv())
    except EOFError:
        process.join()
        return {"kind": "lost", "how": _ending(process.exitcode)}


# The option of Linux that sends a process a signal when the one that started it ends.
_PR_SET_PDEATHSIG = 1


def heed_parent() -> None:
    """Let only the process that started this one end it, on Linux also by being killed.

    An interrupt at a terminal reaches both.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _quietly(work: Callable[..., None], pipe: Any, *arguments: Any) -> None:
    heed_parent()
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
