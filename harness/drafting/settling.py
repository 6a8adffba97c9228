"""Which alternative of each draft forward takes, found out in a process that may die."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from autograd_conformance import implementations
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.drafting.drafts import Draft
from autograd_conformance.harness.drafting.trying import Fit, best
from autograd_conformance.harness.drafting.writing import Drafted, runs_when_imported, source, text
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.processes import child
from autograd_conformance.implementations.protocol import Implementation

# Seconds for the alternatives of one draft, and the most of them.
_SECONDS, _MOST = 4.0, 64
_UNTRIED = "Forward was not called to see which lengths and values it takes: {why}."


def settled(found: Sequence[Drafted], path: Path, implementation: str, *, seconds: float) -> list[Drafted]:
    """The drafts, each with the most general alternative of which forward takes every simple call."""
    results = list(found)
    left = [n for n, each in enumerate(found) if _can_be_tried(each, path)]
    for n, each in enumerate(found):
        if n not in left and not (each.draft.missing or source(each.function, path).reason):
            results[n] = _untried(each, "importing it runs the program, which has no if __name__ == '__main__'")
    while left:
        last = left[0]
        for message in child.messages(
            _settle, found, left, path, implementation, fork=child.forks(implementation), seconds=seconds
        ):
            if isinstance(message, child.Ended):
                results[last] = _untried(found[last], f"a simple call {message.how}")
            elif "begins" in message:
                last = message["begins"]
            else:
                results[message["of"]] = _chosen(found[message["of"]], message)
        left = [n for n in left if n > last]
    return results


def _can_be_tried(drafted: Drafted, path: Path) -> bool:
    known = not (drafted.reason or drafted.draft.missing or source(drafted.function, path).reason)
    return known and not runs_when_imported(drafted.function)


def _untried(drafted: Drafted, why: str) -> Drafted:
    draft = drafted.draft.fixing(list(drafted.draft.lengths))
    return replace(drafted, draft=draft, notes=(*drafted.notes, _UNTRIED.format(why=why)))


def _chosen(drafted: Drafted, message: child.Message) -> Drafted:
    if "problem" in message:
        return replace(drafted, reason=f"its declaration cannot be made: {message['problem']}")
    chosen, fit = message["draft"], message["fit"]
    special = [f"{part.name} is a {' or '.join(part.classes)}" for part in chosen.parts if part.classes]
    if not fit.taken and special:
        return replace(drafted, reason=f"{', '.join(special)}, and forward refuses other tensors: {fit.why}")
    if not fit.taken:
        return _untried(drafted, f"forward refuses simple calls, one of them with {fit.why}")
    # What a program never differentiated may have no gradient on purpose.
    untracked = [n for n in fit.constant if chosen.parts[n].untracked]
    parts = tuple(part.without_gradient() if n in untracked else part for n, part in enumerate(chosen.parts))
    chosen = replace(chosen, parts=parts, surrogate=fit.surrogate, stochastic=fit.stochastic)
    return replace(drafted, draft=chosen, notes=(*drafted.notes, *_notes(chosen, fit)))


def _notes(chosen: Draft, fit: Fit) -> list[str]:
    guessed = [f"{name} was always {length}" for name, length in chosen.lengths.items()]
    notes = []
    if chosen.observed:
        notes.append(f"Guess, of which forward takes others, too: the shape was always {chosen.observed}.")
    if guessed:
        notes.append(f"Guess, of which forward takes others, too: {', '.join(guessed)}.")
    if chosen.fixed:
        notes.append("Lengths that are numbers never varied, and forward refuses others.")
    if fit.taken < fit.tried:
        refused = f"{fit.tried - fit.taken} of {fit.tried}"
        notes.append(f"Forward refuses {refused} simple calls, one of them with: {fit.why}")
    return notes


def _settle(
    send: Callable[[child.Message], None], found: Sequence[Drafted], left: Collection[int], path: Path,
    implementation: str,
) -> None:  # fmt: skip
    """Send which alternative of each draft fits; runs in a process of its own."""
    loaded = implementations.load(implementation)
    loaded.limit_threads()
    # As where the file is checked: its folder hides the module test of the standard library, for instance.
    sys.path.insert(0, str(path.resolve().parent))
    for n in left:
        send({"begins": n})
        try:
            draft, fit = _best(found[n], path, loaded)
        except Exception as raised:  # noqa: BLE001 - importing a user's module may raise anything
            send({"of": n, "problem": one_line(raised)})
            continue
        send({"of": n, "draft": draft, "fit": fit} if fit.tried else {"of": n, "problem": fit.why})


def _best(drafted: Drafted, path: Path, implementation: Implementation) -> tuple[Draft, Fit]:
    """The alternative that fits best, and what became of its calls.

    Forward may refuse tensors that require grad where the program's never did: if it took none, they are constants.
    """
    drafts = [drafted.draft]
    if len({part.untracked for part in drafted.draft.parts if part.kind in ("float", "complex")}) == 2:
        drafts.append(drafted.draft.with_constants())
    for draft in drafts:
        alternatives = list(islice(draft.alternatives(), _MOST))
        made = (partial(_made, replace(drafted, draft=each), path) for each in alternatives)
        choice, fit = best(made, implementation, seconds=_SECONDS)
        if fit.taken:
            break
    return alternatives[choice], fit


def _made(drafted: Drafted, path: Path) -> Declaration:
    """The declaration that a file with this draft alone has."""
    names = {"__file__": str(path), "__name__": "drafted"}
    exec(compile(text([drafted], path, ""), str(path), "exec"), names)
    return next(value for value in names.values() if isinstance(value, Declaration))
