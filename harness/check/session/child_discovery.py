"""Discovery of users' Functions, in processes that may die."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from autograd_conformance import implementations
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.declaration.described import described
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.loading import Plan, Undeclared
from autograd_conformance.harness.check.declaration.served import serving
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import places
from autograd_conformance.harness.outcomes import AlwaysWrong, UsageProblem, one_line
from autograd_conformance.harness.processes import child
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.empty_tensors import has_empty


@dataclass
class Found:
    """What discovery found: the facts in the plan; by name the places, with and without it, arguments and problems.

    ``code`` has the lines of each Function's methods, ``wrong`` the names of those whose problem is a fault.
    """

    plan: Plan
    places: dict[str, str] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    code: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)

    def of(self, names: Collection[str]) -> Found:
        """What it found about these Functions."""
        facts = {name: facts for name, facts in self.plan.facts.items() if name in names}
        problems = {name: problem for name, problem in self.problems.items() if name in names}
        return replace(self, plan=replace(self.plan, facts=facts), problems=problems)


# The message that the Function is called again: a slow one does not hang.
_GOES_ON = "goes on"
_SLOW = "; raise --time-limit if it is only slow"
# The signals that end a process which wrote or read where it must not.
_OF_MEMORY = ("SIGABRT", "SIGSEGV", "SIGBUS")
_BEYOND = "; does it write beyond the memory of a tensor?"


def find_out(
    plan: Plan, implementation: str, *, seconds: float, called: Callable[[str], None] = lambda _: None
) -> Found:
    """Load the target and call each Function a few times. Raises UsageProblem if that is not possible.

    ``called`` gets the name of the Function whenever it is called. If a call ends the process, the Function counts as
    not taking the call's dtype, unless no other dtype is left.
    """
    found = Found(plan)
    without: dict[str, dict[str, str]] = {}
    # Functions whose calls without elements end the process: their tests find that, too.
    whole = set[str]()
    while True:
        known = sorted({*found.plan.facts, *found.problems})
        last: dict[str, Any] = {"kind": ""}
        how = ""
        work = plan, implementation, known, without, whole
        for message in child.messages(_discover, *work, fork=child.forks(implementation), seconds=seconds):
            if isinstance(message, child.Ended):
                beyond = any(name in message.how for name in _OF_MEMORY)
                how = f"{message.how}{_SLOW * message.late}{_BEYOND * beyond}"
            elif message["kind"] != _GOES_ON:
                last = message
                _note(found, message)
                called(message.get("name", ""))
        if not how:
            return found
        if last["kind"] not in ("begins", "tries"):
            raise UsageProblem(f"importing {plan.target} {how}")
        name, dtype = last["name"], last.get("dtype", "")
        if last.get("empty") and name not in whole:
            whole.add(name)
        elif dtype and not last["only"]:
            without.setdefault(name, {})[dtype] = f"{how} in {last['call']}"
        else:
            what = f"the simple call {last['call']}" if dtype else "preparing the first call"
            found.problems[name] = f"{found.placed[name]}: {what} {how}"


def _note(found: Found, message: dict[str, Any]) -> None:
    name = message.get("name", "")
    if message["kind"] == "begins":
        found.places[name], found.placed[name] = message["where"], message["placed"]
        found.described[name] = message["described"]
        found.code[name] = {method: (path, line) for method, (path, line) in message["code"].items()}
    elif message["kind"] == "facts":
        facts = Facts.from_json(message["facts"])
        found.plan = replace(found.plan, facts={**found.plan.facts, name: facts})
    elif message["kind"] == "problem" and name:
        found.problems[name] = message["problem"]
        found.wrong |= {name} if message.get("wrong") else set()
    elif message["kind"] == "problem":
        raise (Undeclared if message["undeclared"] else UsageProblem)(message["problem"])


def _discover(
    send: Callable[[child.Message], None], plan: Plan, implementation: str, known: Sequence[str],
    without: dict[str, dict[str, str]], whole: Collection[str],
) -> None:  # fmt: skip
    """Send what discovery finds out about each declaration; runs in a process of its own."""
    try:
        loaded = implementations.load(implementation)
        loaded.limit_threads()
        declared = [d for d in plan.declarations(loaded) if d.name not in known]
    except (UsageProblem, Unavailable) as problem:
        send({"kind": "problem", "problem": str(problem), "undeclared": isinstance(problem, Undeclared)})
        return
    loaded.on_call = lambda: send({"kind": _GOES_ON})  # type: ignore[attr-defined]
    for declaration in declared:
        place: dict[str, Any] = {
            "where": places.shown(declaration.function, declaration.where),
            "placed": declaration.placed,
            "described": described(declaration),
        }
        place["code"] = places.lines_of(declaration.function, declaration.where)
        send({"kind": "begins", "name": declaration.name, **place})
        left_out = without.get(declaration.name, {})

        def note(call: Call, declaration: Declaration = declaration, left_out: dict[str, str] = left_out) -> None:
            only = len(set(declaration.candidates) - set(left_out)) < 2
            tried = {"name": declaration.name, "dtype": call.dtype, "only": only, "call": repr(call)}
            send({"kind": "tries", "empty": has_empty(call), **tried})

        try:
            if declaration.implementation not in (implementation, loaded.name):
                raise declaration.problem(_instead(declaration.implementation))
            facts = discover(
                declaration, loaded, without=left_out, note=note, empty=declaration.name not in whole, timed=True
            )
            send({"kind": "facts", "name": declaration.name, "facts": asdict(facts)})
        except UsageProblem as problem:
            wrong = isinstance(problem, AlwaysWrong)
            send({"kind": "problem", "name": declaration.name, "problem": str(problem), "wrong": wrong})
        except Exception as raised:  # noqa: BLE001 - a user's Function may do anything
            text = str(declaration.problem(one_line(raised)))
            send({"kind": "problem", "name": declaration.name, "problem": text})


def _instead(implementation: str) -> str:
    """What to do with a declaration for another implementation than that of the command."""
    try:
        serving(implementation)
    except (UsageProblem, Unavailable) as problem:
        return str(problem)
    return f"it is declared for {implementation}; add --implementation {implementation} to the command"
