"""Checks the calls of a program's custom Functions where they are made: each check in a process that is forked there.

Where none can be, copies of the call can be checked in the program, if that is asked for.
Of each Function the first call is checked, each new kind of call, and calls whose number is a power of two, as far as
the budget goes. What is found is a line of JSON.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from time import perf_counter
from typing import Any

from . import applying, copies, following, in_hypothesis, snapshot
from .arguments import PACKAGE, is_tensor, key_of
from .lines import Lines

# Kinds of calls of one Function that are told apart; calls of others count as the last.
_MOST_KINDS = 50
# The part of the program's time in which the kinds of calls are looked at, after so many calls of a Function, and that
# in which it is seen what becomes of them.
_LOOKS, _FIRST, _FOLLOWS = 0.005, 16, 0.003
# How many times as much as others a Function may take of what checks may take.
_UNEVEN = 3
# The least seconds for which it is worth to fork, and the part of those of a Function that one check may take.
_LEAST, _PART = 0.25, 1 / 3
# The stages of the checks of a kind of call, in double precision and, if the Function does not take that, in its own.
_STAGES = {False: ("first numbers", "numbers", "conduct", "beyond"), True: ("first narrow", "narrow", "conduct")}
# The stage with second derivatives.
_BEYOND = _STAGES[False][-1]
# The seconds beyond the budget that the first checks of Functions may take.
_FREE = 10.0
# So often a process of a Function may be lost.
_LOST = 2
# The kind of calls that are not told apart any more.
_OTHERS = "others"
# The module that checks a call.
_SUITE = "autograd_conformance.suites.watched"


# The options unless others are given.
USUAL: dict[str, Any] = {"share": 0.2, "limit": 30.0, "only": (), "skip": (), "keep": "", "in_process": False}


def start(folder: str, **options: Any) -> None:
    """Check calls, and write what is found into this folder.

    ``share`` is the part of the program's time that checks may take, and ``limit`` the seconds that they may take for
    one Function. ``only`` and ``skip`` are patterns of names; ``means`` has what is meant by pattern. ``keep`` is the
    folder for calls that show a fault, or empty. ``in_process`` says whether copies may be checked in the program.
    """
    _WATCHES.append(_Watch(folder, **options))
    applying.through(_WATCHES[0].made)


def stop() -> None:
    """Write what is known at the end; later calls are not checked."""
    _WATCHES[0].lines.end()


# The watch of this process.
_WATCHES: list[_Watch] = []


class _Watch:
    """The Functions of this process, and what their checks have cost."""

    def __init__(
        self, folder: str, *, share: float, limit: float, only: Sequence[str], skip: Sequence[str], keep: str,
        in_process: bool, means: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.share, self.limit, self.keep, self.in_process = share, limit, keep, in_process
        self._only, self._skip, self._means = only, skip, means
        self.lines = Lines(folder, end=self._end, forget=self._begin)
        self._checking = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        # The Functions by class; those that are defined within a function are made anew again and again.
        self.known: dict[Any, _Function | None] = {}
        self.began, self.spent, self.looked, self.followed = perf_counter(), 0.0, 0.0, 0.0
        # The Functions that are watched.
        self.count = 0
        # What the first checks of Functions took that were not in the budget.
        self.given = 0.0
        self._checking = threading.Lock()

    def _end(self) -> None:
        for function in self._functions():
            function.end()
        if self._functions():
            self.lines.write(elapsed=perf_counter() - self.began, spent=self.spent)

    def _functions(self) -> list[_Function]:
        """The Functions, each once: those that are made anew are one."""
        return list(dict.fromkeys(filter(None, list(self.known.values()))))

    def made(self, inner: Callable[..., Any], cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call, and check it before if it is due."""
        if snapshot.IN_SNAPSHOT or self.lines.ended:
            return inner(cls, *args, **kwargs)
        function = self.known[cls] if cls in self.known else self._added(cls)
        if function is None:
            return inner(cls, *args, **kwargs)
        function.calls = next(function.counter)
        followed = function.is_looked_at() and self._look(function, cls, args, kwargs)
        outputs = inner(cls, *args, **kwargs)
        if followed and self.followed < _FOLLOWS * (perf_counter() - self.began):
            self._follow(function, cls, args, outputs)
        return outputs

    def _added(self, cls: Any) -> _Function | None:
        key = f"{cls.__module__}:{cls.__qualname__}" if "<locals>" in cls.__qualname__ else cls
        with self.lines.lock:
            if key not in self.known:
                self.known[key] = self._function(cls)
        return self.known[key]

    def _function(self, cls: Any) -> _Function | None:
        name, called, backward = applying.operator(cls)
        if not name and str(cls.__module__).partition(".")[0] in (PACKAGE, _SUITE.partition(".")[0]):
            return None
        found = _Function(self, name or f"{cls.__module__}:{cls.__qualname__}", called, _place(backward or cls))
        found.means = {w: v for p, words in self._means.items() if fnmatchcase(found.name, p) for w, v in words.items()}
        names = (found.name, found.name.rpartition(":")[2])
        if self._only and not _matches(names, self._only):
            return None
        if _matches(names, self._skip):
            return None
        found.say(where=found.where)
        self.count += 1
        return found

    def _follow(self, function: _Function, cls: Any, args: tuple[Any, ...], outputs: Any) -> None:
        """See what becomes of the outputs of a call; what goes wrong in that is no matter of the program."""

        def spent(seconds: float) -> None:
            self.followed += seconds

        slots, number = [n for n, x in enumerate(args) if is_tensor(x)], function.calls
        with contextlib.suppress(Exception):
            following.follow(
                cls,
                args,
                outputs,
                function.note_use,
                lambda n, value: function.note_value(number, slots[n], value),
                spent,
            )

    def _look(self, function: _Function, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Check a call if it is due; what goes wrong in that is no matter of the program.

        Returns whether autograd records the call.
        """
        start, work, recorded = perf_counter(), None, False
        try:
            call = function.bound(cls, args, kwargs)
            if call is not None and _is_ordinary(call):
                recorded = any(map(_requires_grad, call[1]))
                work = function.due(call, recorded)
        except Exception:  # noqa: BLE001 - arguments may be anything
            work = None
        self.looked += perf_counter() - start
        if work is not None:
            with _handlers_wait():
                self._check(function, work)
        return recorded

    def _check(self, function: _Function, work: Callable[[], None]) -> None:
        """Do the work of a check, unless another thread does one."""
        if not self._checking.acquire(blocking=False):
            return
        try:
            work()
        except Exception as raised:  # noqa: BLE001 - it is said in the report
            function.leave_out(snapshot.own_fault(raised))
        finally:
            self._checking.release()

    @property
    def left(self) -> float:
        """The seconds that checks may take now."""
        own = perf_counter() - self.began - self.spent
        return self.share * own - self.spent


class _Kind:
    """A kind of call, which autograd records or not, with the tests that were asked about it."""

    def __init__(self, number: int, recorded: bool) -> None:
        self.number, self.recorded, self.calls, self.is_narrow = number, recorded, 0, False
        self.stages = list(_STAGES[False])
        self.done: list[str] = []

    def note(self, message: Mapping[str, Any]) -> None:
        """What a process has sent is known now."""
        if "test" in message:
            self.done.append(message["test"])
        elif "narrow" in message:
            self.is_narrow, self.stages = True, list(_STAGES[True])
        elif "finished" in message:
            self.stages.pop(0)
            self.done = []
        elif not {"facts", "scripts", "kept", "unkept"} & message.keys():
            self.stages.clear()

    def prefer(self, second: bool) -> None:
        """Ask about second derivatives next, after the first ones, if the program takes any."""
        if second and _BEYOND in self.stages and not self.begins:
            self.stages.sort(key=lambda stage: stage != _BEYOND)

    @property
    def begins(self) -> bool:
        """Whether it is at a stage that is the first."""
        return bool(self.stages) and self.stages[0] in (_STAGES[False][0], _STAGES[True][0])

    def again(self) -> None:
        """Ask about other values of this kind."""
        self.stages, self.done = [_STAGES[self.is_narrow][1]], []


class _Function:
    """A Function of the program, or an operator, which is ``called`` itself."""

    def __init__(self, watch: _Watch, name: str, called: Any, where: str) -> None:
        self._watch, self.name, self._called, self.where = watch, name, called, where
        # Threads count together.
        self.counter, self.calls = itertools.count(1), 0
        self.spent, self._lost = 0.0, 0
        # Checks of calls that autograd records, and of others.
        self._checks = {True: 0, False: 0}
        # What the program does with its calls, and of which arguments a gradient was not finite.
        self.uses: set[str] = set()
        self._values: set[tuple[int, str]] = set()
        # Whether a first derivative was found to be another: then nothing is said of second ones.
        self._differs = False
        # The tests that a script shows to fail.
        self._scripted: set[str] = set()
        self.kinds: dict[Any, _Kind] = {}
        self.means: dict[str, Any] = {}
        self._out, self._waits = False, False

    def end(self) -> None:
        """Write what is known at the end."""
        self.say(calls=next(self.counter) - 1, kinds=len(self.kinds), spent=self.spent)
        if self._waits and not any(self._checks.values()) and not self._out:
            self.say(left_out="there was no time for it; --budget gives more")

    def say(self, **what: Any) -> None:
        """Write a line about it."""
        self._watch.lines.write(function=self.name, **what)

    def is_looked_at(self) -> bool:
        """Whether it is worth looking whether this call is due."""
        if self._out:
            return False
        watch = self._watch
        # Of a Function that was not checked yet calls are looked at for longer.
        most = _LOOKS * (1 if self._checks[True] else 2)
        return self.calls <= _FIRST or watch.looked < most * (perf_counter() - watch.began)

    def bound(self, cls: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]] | None:
        """What a check calls, and with which arguments, all by position; None for what is no call of its own."""
        if self._called is not None:
            named = args[-1].keyword_only_args
            return (functools.partial(self._called, **named) if named else self._called), args[:-1]
        if not kwargs:
            return cls, args
        parameters = inspect.signature(cls.forward)
        found = parameters.bind(*args, **kwargs)
        found.apply_defaults()
        return None if found.kwargs else (cls, found.args)

    def note_use(self, word: str) -> None:
        """The program does something with a call."""
        if word not in self.uses:
            self.uses.add(word)
            self.say(does=word)

    def note_value(self, call: int, slot: int, value: str) -> None:
        """A gradient of the program's has NaN or infinity in it."""
        if (slot, value) not in self._values:
            self._values.add((slot, value))
            self.say(call=call, slot=slot, not_finite=value)

    def due(self, call: tuple[Any, tuple[Any, ...]], recorded: bool) -> Callable[[], None] | None:
        """What checks this call, which autograd records or not, if that is due."""
        key: Any = tuple(map(_key, call[1]))
        if len(self.kinds) >= _MOST_KINDS and key not in self.kinds:
            key = _OTHERS
        kind = self.kinds.setdefault(key, _Kind(len(self.kinds), recorded))
        kind.calls += 1
        if not kind.stages and kind.calls & (kind.calls - 1) == 0:
            kind.again()
        free = recorded and not self._checks[recorded] and self._watch.given < _FREE
        if kind.stages and self._left < _LEAST and not free:
            self._waits = True
            return None
        if not kind.stages:
            return None
        return functools.partial(self._check, kind, call)

    @property
    def _left(self) -> float:
        """The seconds that its checks may take now."""
        watch = self._watch
        even = (watch.spent + watch.left) / max(1, watch.count)
        return min(watch.left, watch.limit - self.spent, _UNEVEN * even - self.spent)

    def _check(self, kind: _Kind, call: tuple[Any, tuple[Any, ...]]) -> None:
        """Go through the stages of a kind of call, as long as there is time."""
        why = snapshot.too_large(call[1]) or copies.impossible(call[1], self._watch.in_process)
        if why:
            # Another kind of call may be possible.
            kind.stages.clear()
            self.say(left_out=why)
            return
        self._checks[kind.recorded] += 1
        stage = ""
        while kind.stages and kind.stages[0] != stage and not self._out:
            kind.prefer(following.SECOND in self.uses)
            stage = kind.stages[0]
            # One that did not end gets more time once.
            self._ask(kind, call, min(max(self._left, 0.0), _PART * self._watch.limit * (1 + self._lost)))
            self._out = self._lost >= _LOST
            # Another first stage is begun whatever the time is.
            if self._left < _LEAST and not kind.begins:
                return

    def _ask(self, kind: _Kind, call: tuple[Any, tuple[Any, ...]], seconds: float) -> None:
        """Ask about a call in a process of its own, or where that cannot be, about copies of its arguments."""
        start, copied = perf_counter(), bool(snapshot.unforkable(call[1]))
        try:
            about = {"kind": kind.number, "call": self.calls, "stage": kind.stages[0], "recorded": kind.recorded}
            check = functools.partial(
                _suite().check, *call, name=self.name.rpartition(":")[2], where=self.where, done=kind.done,
                stage=kind.stages[0], seconds=seconds, means=self.means, uses=sorted(self.uses),
                scripted=sorted(self._scripted), copied=copied, keep=self._watch.keep, differs=self._differs,
            )  # fmt: skip
            run = functools.partial(copies.messages, _suite().kept) if copied else snapshot.messages
            for message in run(check, seconds):
                kind.note(message)
                self._scripted |= {test.partition("[")[0] for test in message.get("scripts", ())}
                self._lost += "lost" in message
                self._differs |= kind.recorded and message.get("differs", False)
                self.say(**about, **message)
        finally:
            taken = perf_counter() - start
            self._watch.given += taken if self._left < _LEAST else 0.0
            self.spent += taken
            self._watch.spent += taken
            in_hypothesis.leave_out_of_deadlines(lambda: self._watch.spent)

    def leave_out(self, why: str) -> None:
        """Check no call of it any more."""
        self._out = True
        self.say(left_out=why)


def _suite() -> Any:
    """What checks a call: imported in the program, once for all processes that are forked from it."""
    if _SUITE not in sys.modules:
        collects, tests = gc.isenabled(), "pytest" in sys.modules
        # A collection would look at all objects of the program.
        gc.disable()
        try:
            with in_hypothesis.outside_of_tests():
                importlib.import_module(_SUITE).prepare()
        finally:
            (gc.enable if collects else gc.disable)()
            # A program may ask by this whether it is under test.
            if not tests:
                sys.modules.pop("pytest", None)
    return sys.modules[_SUITE]


def _key(value: Any) -> Any:
    """What tells kinds of arguments apart: of a number that may be any, no more than whether it is 0 or below.

    Of objects that can be called, such as modules, it is their type.
    """
    if type(value) is float:
        return float, value > 0, value == 0
    return type(value) if callable(value) and not hasattr(value, "__qualname__") else key_of(value)


@contextlib.contextmanager
def _handlers_wait() -> Iterator[None]:
    """Let the program's handlers of signals wait until a check is over, but for an interrupt.

    To block the signals is not enough: another thread may take one, and its handler would run in this one.
    """
    # Handlers run in no other thread.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {n: found for n in signal.valid_signals() if callable(found := signal.getsignal(n))}
    if handlers.get(signal.SIGINT) is signal.default_int_handler:
        del handlers[signal.SIGINT]
    # Of a signal that came often there is one, as of one that is blocked.
    came: dict[int, Any] = {}
    with contextlib.ExitStack() as after:
        # They are called, for a second signal would wake an event loop twice. If one raises, the next run nevertheless.
        after.callback(lambda: [after.callback(handlers[each[0]], *each) for each in reversed(came.items())])
        for number, handler in handlers.items():
            after.callback(signal.signal, number, handler)
            signal.signal(number, came.__setitem__)
        yield


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _place(thing: Any) -> str:
    """The file and line of a Function class, or of an operator's backward."""
    try:
        return f"{inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]}"
    except (TypeError, OSError):
        return str(getattr(thing, "__module__", ""))


def _is_ordinary(call: tuple[Any, tuple[Any, ...]]) -> bool:
    """Whether autograd would record the call as a call of ordinary tensors: there is nothing to check in others."""
    torch = sys.modules[PACKAGE]
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled() or not any(map(is_tensor, call[1])):
        return False
    native = torch._C
    return not (
        (snapshot.unforkable(call[1]) and copies.would_meet())
        or native._functorch.peek_interpreter_stack() is not None
        or native._len_torch_dispatch_stack()
        or native._get_tracing_state() is not None
    )


def _requires_grad(value: Any) -> bool:
    return is_tensor(value) and value.requires_grad
