"""Which lines of PyTorch's Python layers the test ids of the gate execute."""

from __future__ import annotations

import ast
import functools
import gzip
import importlib
import json
import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import torch

from autograd_conformance.benchmarks.mutations import functions_of
from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.processes import isolation
from autograd_conformance.harness.running import pytest_arguments
from autograd_conformance.harness.running.controller import RESULT

HERE = Path(__file__).parent
TORCH = Path(torch.__file__).parent
# The file of a folder of results that has the map.
MAP = "map.json.gz"


class Scope:
    """The functions that count, by file, from engine_scope.txt.

    A line without indentation is a file below torch's folder. An indented one below it is a pattern of function names:
    "+" counts only these of the file, "-" leaves them out for the reason that follows. "~" is a pattern of statements
    that are left out, with their reason after "#": of this file, or of all files if it comes before the first one. Of
    an if it is the body.
    """

    def __init__(self, text: str) -> None:
        self.files: dict[str, list[tuple[bool, str]]] = {}
        self.reasons: dict[tuple[str, str], str] = {}
        self._statements: dict[str, list[str]] = defaultdict(list)
        path = ""
        for line in text.splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            if line.lstrip().startswith("~ "):
                pattern, _, reason = line.lstrip()[2:].partition(" # ")
                self._statements[path].append(pattern.strip())
                self.reasons[path, pattern.strip()] = reason
                continue
            if not line.startswith(" "):
                path = line.strip()
                self.files[path] = []
                continue
            sign, pattern, *words = line.split(maxsplit=2)
            self.files[path].append((sign == "+", pattern))
            self.reasons[path, pattern] = "".join(words)

    def counts(self, path: str, function: str) -> bool:
        """Whether a function of a file counts."""
        rows = self.files[path]
        added = [pattern for wanted, pattern in rows if wanted]
        wanted = not added or any(_within(function, pattern) for pattern in added)
        return wanted and not any(_within(function, pattern) for also, pattern in rows if not also)

    def left_out(self, path: str) -> set[int]:
        """The lines of the statements of a file that do not count."""
        patterns = [*self._statements[""], *self._statements[path]]
        found: set[int] = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.stmt) and any(fnmatch(_head(node), pattern) for pattern in patterns):
                parts = node.body if isinstance(node, ast.If) else [node]
                found.update(line for part in parts for line in range(part.lineno, (part.end_lineno or 0) + 1))
        return found


def _head(statement: ast.stmt) -> str:
    """The first line of a statement, written in the plainest way."""
    return ast.unparse(statement).partition("\n")[0]


def _within(function: str, pattern: str) -> bool:
    """Whether a function is one of the pattern, or is inside of it."""
    return fnmatch(function, pattern) or fnmatch(function, f"{pattern}.*")


SCOPE = Scope((HERE / "engine_scope.txt").read_text(encoding="utf-8"))
FILES = {str(TORCH / path): path for path in SCOPE.files}


@functools.cache
def tree_of(path: str) -> ast.Module:
    """The syntax tree of a file of torch."""
    return ast.parse((TORCH / path).read_text(encoding="utf-8"))


@functools.cache
def lines_of(path: str) -> dict[int, str]:
    """The lines that can be executed in functions that count, each with its innermost function."""
    filename = str(TORCH / path)
    found: dict[int, str] = {}
    for code in functions_of(compile(tree_of(path), filename, "exec", dont_inherit=True)):
        name = _name(code)
        # A class body runs when it is imported.
        if code.co_flags & 0x1 and SCOPE.counts(path, name):
            found.update({line: name for _, _, line in code.co_lines() if line and line != code.co_firstlineno})
    left_out = SCOPE.left_out(path)
    return {line: name for line, name in found.items() if line not in left_out}


def _name(code: CodeType) -> str:
    """The name of a function with those around it; a lambda or comprehension has that of its function."""
    parts = code.co_qualname.replace(".<locals>", "").split(".")
    return ".".join(part for part in parts if not part.startswith("<"))


class Suite:
    """A pytest plugin that collects the gate for torch, and gives its items to `work` in place of pytest's loop."""

    def __init__(self, work: Callable[[Suite, list[Any]], None]) -> None:
        self._work = work
        self.results: dict[str, dict[str, Any]] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        self._work(self, [item for item in session.items if "subject" in item.callspec.params])
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        for name, value in report.user_properties:
            if name == RESULT:
                self.results[value["id"]] = value

    def run(self, item: Any) -> dict[str, Any]:
        """The result line of one item."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.results[id_of(item)]

    def start(self) -> None:
        """Collect, and work."""
        isolation.isolate_environment()
        arguments = [a for a in pytest_arguments.ARGUMENTS if a != "--verified"]
        pytest.main([*arguments, *pytest_arguments.ROOT, "--implementation=torch", str(SUITES)], plugins=[self])


def id_of(item: Any) -> str:
    """The test id of an item."""
    return item.callspec.params["subject"].key["id"]


class Tracer:
    """Records pairs of lines that follow each other in a frame of torch's files; 0 is the start or end of a frame."""

    def __init__(self) -> None:
        self.pairs: set[tuple[str, int, int]] = set()

    def __call__(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        path = FILES.get(frame.f_code.co_filename)
        if path is None:
            return None
        before, add = 0, self.pairs.add

        def local(frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
            nonlocal before
            if event == "line":
                add((path, before, frame.f_lineno))
                before = frame.f_lineno
            elif event == "return":
                add((path, before, 0))
            return local

        return local

    def start(self) -> None:
        """Trace this thread and those that begin."""
        threading.settrace(self)
        sys.settrace(self)

    def stop(self) -> None:
        """Trace no more."""
        threading.settrace(None)  # type: ignore[arg-type]
        sys.settrace(None)


def make_map(folder: Path) -> None:
    """Run every id once, and write what it executes."""
    tracer = Tracer()
    _also_what_dynamo_reads(tracer)
    spool = folder / "children"
    _also_of_children(tracer, spool)

    def work(suite: Suite, items: list[Any]) -> None:
        preload()
        ids = {}
        for item in items:
            tracer.pairs.clear()
            spool.write_text("")
            tracer.start()
            try:
                line = suite.run(item)
            finally:
                tracer.stop()
            pairs = {*tracer.pairs, *(tuple(json.loads(row)) for row in spool.read_text().splitlines())}
            ids[line["id"]] = {"outcome": line["outcome"], "seconds": line["seconds"], "pairs": sorted(pairs)}
        with gzip.open(folder / MAP, "wt") as file:
            json.dump({"torch": torch.__version__, "ids": ids}, file)

    Suite(work).start()


def _also_what_dynamo_reads(tracer: Tracer) -> None:
    """Count a line that dynamo reads, and does not execute, as executed."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Translator

    starts_line = Translator.starts_line

    def starting(self: Any, line: int) -> None:
        path = FILES.get(self.f_code.co_filename)
        if path is not None:
            tracer.pairs.add((path, 0, line))
        starts_line(self, line)

    Translator.starts_line = starting


def _also_of_children(tracer: Tracer, spool: Path) -> None:
    """Let forked processes leave their lines in a file."""
    leave, here = os._exit, os.getpid()

    def leaving(status: int) -> None:
        if os.getpid() != here:
            with open(spool, "a") as file:
                file.write("".join(json.dumps(pair) + "\n" for pair in tracer.pairs))
        leave(status)

    os._exit = leaving  # type: ignore[assignment]


def preload() -> None:
    """Import every file, so that a fork has it."""
    for path in SCOPE.files:
        importlib.import_module("torch." + path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


class Map:
    """The map that `make_map` wrote: the ids by line, and what each costs."""

    def __init__(self, folder: Path) -> None:
        with gzip.open(folder / MAP, "rt") as file:
            ids = json.load(file)["ids"]
        self.outcomes = {name: row["outcome"] for name, row in ids.items()}
        self.seconds = {name: row["seconds"] for name, row in ids.items()}
        self.ids: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.pairs: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self.sizes: Counter[str] = Counter()
        for name, row in ids.items():
            for path, before, line in row["pairs"]:
                self.ids[path, line].add(name)
                self.pairs[path].add((before, line))
                self.sizes[name] += 1

    def ifs(self, path: str) -> Iterator[bool]:
        """Whether each condition of executed statements was both true and false."""
        after: dict[int, set[int]] = defaultdict(set)
        for before, line in self.pairs[path]:
            after[before].add(line)
        lines = lines_of(path)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.If) and node.test.lineno in lines and (path, node.test.lineno) in self.ids:
                test = range(node.test.lineno, (node.test.end_lineno or 0) + 1)
                follows = set[int]().union(*(after[line] for line in test)) - set(test)
                yield node.body[0].lineno in follows and len(follows) > 1

    def ordered(self, path: str, line: int) -> list[str]:
        """The ids that execute a line: first those that are quick, and execute little else."""
        found = self.ids.get((path, line), set())
        return sorted(found, key=lambda name: (self.seconds[name] * self.sizes[name], name))
