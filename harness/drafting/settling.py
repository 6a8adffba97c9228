"""Which alternative of each draft forward takes, found out in a process that may die."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from autograd_conformance import implementations
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.drafting.drafts import Draft
from autograd_conformance.harness.drafting.loosening import loosened
from autograd_conformance.harness.drafting.trying import Fit, best, fits, takes
from autograd_conformance.harness.drafting.uses import marking, once
from autograd_conformance.harness.drafting.writing import Drafted, runs_when_imported, source, text
from autograd_conformance.harness.outcomes import UsageProblem, one_line
from autograd_conformance.harness.processes import child
from autograd_conformance.implementations.protocol import Implementation

# Seconds for the alternatives of one draft, and the most of them.
_SECONDS, _MOST = 4.0, 64
_REFUSED = "Calls with others raise."
_UNASKED = "Whether forward takes others was not tried."
_UNTRIED = "Forward was not called to see which lengths and values it takes: {why}."


@dataclass(frozen=True)
class _Settled:
    """The draft that was chosen, what became of its calls, and whether forward was ``asked`` for all other lengths."""

    draft: Draft
    fit: Fit
    asked: bool


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
    draft = drafted.draft.as_seen()
    return replace(drafted, draft=draft, notes=(*drafted.notes, _UNTRIED.format(why=why)))


def _chosen(drafted: Drafted, message: child.Message) -> Drafted:
    if "problem" in message:
        return replace(drafted, reason=f"its declaration cannot be made: {message['problem']}")
    settled: _Settled = message["settled"]
    chosen, fit = settled.draft, settled.fit
    special = [f"{part.name} is a {' or '.join(part.classes)}" for part in chosen.parts if part.classes]
    if not fit.taken and special:
        return replace(drafted, reason=f"{', '.join(special)}, and forward refuses other tensors: {fit.why}")
    if not fit.taken:
        return _untried(drafted, f"forward refuses simple calls, one of them with {fit.why}")
    # What a program never differentiated may have no gradient on purpose.
    untracked = [n for n in fit.constant if chosen.parts[n].untracked]
    parts = tuple(part.without_gradient() if n in untracked else part for n, part in enumerate(chosen.parts))
    stochastic = fit.stochastic or drafted.draft.stochastic
    chosen = replace(chosen, parts=parts, surrogate=fit.surrogate, stochastic=stochastic)
    return replace(drafted, draft=chosen, notes=(*drafted.notes, *_notes(replace(settled, draft=chosen))))


def _notes(settled: _Settled) -> list[str]:
    chosen, fit = settled.draft, settled.fit
    guessed = [f"{name} was always {length}" for name, length in chosen.lengths.items()]
    notes = []
    if chosen.observed:
        notes.append(f"Guess, of which forward takes others, too: the shape was always {chosen.observed}.")
    if guessed:
        notes.append(f"Guess, of which forward takes others, too: {', '.join(guessed)}.")
    limited = [f"{name} was {' or '.join(map(str, lengths))}" for name, lengths in chosen.sizes.items()]
    if chosen.has_numbers:
        limited.append("numbers never varied")
    if limited:
        notes.append(f"Lengths: {'; '.join(limited)}. {_REFUSED if settled.asked else _UNASKED}")
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
            settled = _best(found[n], path, loaded)
        except Exception as raised:  # noqa: BLE001 - importing a user's module may raise anything
            send({"of": n, "problem": one_line(raised)})
            continue
        send({"of": n, "settled": settled} if settled.fit.tried else {"of": n, "problem": settled.fit.why})


def _best(drafted: Drafted, path: Path, implementation: Implementation) -> _Settled:
    """The alternative that fits best, with the lengths that forward takes, and what became of its calls.

    Forward may refuse tensors that require grad where the program's never did: if it took none, they are constants.
    """
    function = _made(replace(drafted, draft=drafted.draft.as_seen()), path).function
    drafts = [replace(marking(function, drafted.draft), once=once(function))]
    if len({part.untracked for part in drafted.draft.parts if part.kind in ("float", "complex")}) == 2:
        drafts.append(drafts[0].with_constants())
    asking = _Asking(drafted, path, implementation)
    # Of masks that are drawn some hide all, which no program's do.
    for infinite, draft in itertools.product((False, True), drafts):
        taken = partial(asking.taken, infinite=infinite)
        fitting = next(filter(taken, islice(draft.alternatives(), _MOST)), None)
        if fitting is not None:
            found = loosened(fitting, taken)
            return _Settled(found, fits(asking.made(found), implementation), asked=asking.left > 0)
    for draft in drafts:
        alternatives = list(islice(draft.alternatives(), _MOST))
        choice, fit = best([partial(asking.made, each) for each in alternatives], implementation, seconds=asking.left)
        if fit.taken:
            break
    return _Settled(alternatives[choice], fit, asked=False)


class _Asking:
    """Asks forward which drafts of one Function it takes, for some seconds."""

    def __init__(self, drafted: Drafted, path: Path, implementation: Implementation) -> None:
        self._drafted, self._path, self._implementation = drafted, path, implementation
        self._until = time.monotonic() + _SECONDS

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._until - time.monotonic()

    def taken(self, draft: Draft, *, infinite: bool) -> bool:
        """Whether forward takes what the draft declares; no once the time is over."""
        try:
            return self.left > 0 and takes(self.made(draft), self._implementation, infinite=infinite)
        except UsageProblem:
            return False

    def made(self, draft: Draft) -> Declaration:
        """The declaration that a file with this draft alone has."""
        return _made(replace(self._drafted, draft=draft), self._path)


def _made(drafted: Drafted, path: Path) -> Declaration:
    """The declaration that a file with this draft alone has."""
    names = {"__file__": str(path), "__name__": "drafted"}
    exec(compile(text([drafted], path, ""), str(path), "exec"), names)
    return next(value for value in names.values() if isinstance(value, Declaration))
