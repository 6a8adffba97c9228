"""Drafts as a file of declarations, which a person reads and edits."""

from __future__ import annotations

import ast
import keyword
import os
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograd_conformance.harness.check.declaration import intentions
from autograd_conformance.harness.drafting.drafts import Draft, Import
from autograd_conformance.harness.drafting.observed import Observed

# The longest line with imports.
_WIDTH = 100

_ASKED = "; drop the range if any number is right"

RECORDED = '''\
"""The Functions that were called by: {command}

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check {path}
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""
'''
ASSUMED = '''\
"""The Functions of {command}, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of {command} writes this file anew.
"""
'''


@dataclass(frozen=True)
class Drafted:
    """The draft of a Function's declaration. ``notes`` are sentences for its comment, ``reason`` why it is left out."""

    function: Observed
    draft: Draft
    notes: tuple[str, ...] = ()
    reason: str = ""


def meant(found: Iterable[Drafted], folder: Path) -> list[Drafted]:
    """The drafts with what pyproject.toml, as seen from a folder, says of them.

    Raises UsageProblem if that cannot be read.
    """
    table = intentions.read(folder)
    return [replace(x, draft=replace(x.draft, means=intentions.of(x.function.name, table))) for x in found]


@dataclass(frozen=True)
class Source:
    """How a file imports a Function: the lines, and the expression; or the ``reason`` why it cannot."""

    lines: tuple[str, ...] = ()
    expression: str = ""
    reason: str = ""


def source(function: Observed, path: Path) -> Source:
    """How the file at this path imports a Function."""
    first, file = function.qualname.partition(".")[0], Path(function.file)
    module = file.stem if function.module == "__main__" else function.module
    if not function.operator and "<locals>" in function.qualname:
        where = function.qualname.partition(".<locals>")[0]
        return Source(reason=f"it is defined within {where}; move it to the level of its module")
    if not function.file:
        return Source(reason=f"{module} has no file from which it could be imported")
    if not all(part.isidentifier() for part in module.split(".")):
        return Source(reason=f"{file.name} is no name that Python can import")
    added = _found_in(file, module, path)
    if function.operator:
        namespace, _, name = function.operator.partition("::")
        return Source((*added, "import torch", f"import {module}"), f"torch.ops.{namespace}.{name}")
    return Source((*added, f"from {module} import {first}"), function.qualname)


def _found_in(file: Path, module: str, path: Path) -> list[str]:
    """The line without which the file at this path does not find a module."""
    depth = module.count(".") + (file.stem == "__init__")
    folder = os.path.relpath(file.resolve().parents[depth], path.resolve().parent)
    found = "site-packages" in file.parts or folder == "."
    return [] if found else [f"sys.path.insert(0, str((Path(__file__).parent / {folder!r}).resolve()))"]


def _lines(needed: Import, path: Path) -> list[str]:
    """The lines with which the file at this path imports what an argument needs."""
    if not needed.name:
        return [f"import {needed.module}"]
    added = _found_in(Path(needed.file), needed.module, path) if needed.file else []
    return [*added, f"from {needed.module} import {needed.name}"]


def runs_when_imported(function: Observed) -> bool:
    """Whether importing a Function runs the program that it is defined in, as far as can be seen."""
    if not function.main:
        return False
    try:
        with tokenize.open(function.file) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return True
    return not any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)


def text(found: Sequence[Drafted], path: Path, command: str, head: str = RECORDED) -> str:
    """The file, with ``head`` as its docstring."""
    whole = [each for each in found if not why(each, path)]
    sources = _sources(whole, path)
    imports = [line for one in sources.values() for line in one.lines]
    needed = [each for drafted in whole for part in drafted.draft.parts for each in part.imports]
    imports += [line for each in needed for line in _lines(each, path)]
    factory = any("Factory(" in part.expression for each in whole for part in each.draft.parts)
    body = "\n\n".join(_blocks(found, path, sources))
    shown = command.replace("\\", "/").replace('"', "'")
    return "\n".join([head.format(command=shown, path=path.name), *_imports(imports, factory), "", body, ""])


def _sources(found: Sequence[Drafted], path: Path) -> dict[str, Source]:
    """How the file imports each Function: those of one name, from several modules, get names that differ."""
    sources = {each.function.name: source(each.function, path) for each in found}
    modules: dict[str, set[str]] = {}
    for each in found:
        modules.setdefault(sources[each.function.name].expression.partition(".")[0], set()).add(each.function.module)
    for name, one in sources.items():
        first, dot, rest = one.expression.partition(".")
        if len(modules[first]) > 1 and first != "torch":
            other = f"{one.lines[-1].split()[1].replace('.', '_')}_{first}"
            lines = (*one.lines[:-1], f"{one.lines[-1]} as {other}")
            sources[name] = Source(lines, f"{other}{dot}{rest}")
    return sources


def _imports(lines: Sequence[str], factory: bool) -> Iterator[str]:
    paths = list(dict.fromkeys(line for line in lines if line.startswith("sys.path")))
    if paths:
        yield from ("import sys", "from pathlib import Path", "")
    if "import torch" in lines:
        yield from ("import torch", "")
    names: dict[str, set[str]] = {"autograd_conformance": {"Declaration", *["Factory"] * factory}}
    for line in lines:
        if line.startswith("from "):
            module, _, name = line.removeprefix("from ").partition(" import ")
            names.setdefault(module, set()).add(name)
    yield _import("autograd_conformance", sorted(names.pop("autograd_conformance")))
    if paths:
        yield from ("", *paths)
    # What registers operators.
    others = sorted({line for line in lines if line.startswith("import ") and line != "import torch"})
    others += [_import(module, sorted(found)) for module, found in sorted(names.items())]
    if others:
        yield from ("", *others)


def _import(module: str, names: Sequence[str]) -> str:
    """The import of these names, in several lines if they are too many for one."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])


def why(drafted: Drafted, path: Path) -> str:
    """Why a draft is left out of the file at this path; empty if it is not."""
    return drafted.reason or source(drafted.function, path).reason or drafted.draft.missing


def _blocks(found: Sequence[Drafted], path: Path, sources: Mapping[str, Source]) -> Iterator[str]:
    taken = {"sys", "torch", *(one.expression.partition(".")[0] for one in sources.values())}
    taken |= {needed.name or needed.module for each in found for part in each.draft.parts for needed in part.imports}
    for drafted, name, again in _numbered(found, taken):
        yield _block(drafted, path, sources, name, again)


def _numbered(found: Iterable[Drafted], taken: Collection[str] = ()) -> Iterator[tuple[Drafted, str, str]]:
    """The drafts, each with the name of its declaration, and what tells it from an earlier one of that name."""
    names: dict[str, int] = {}
    for drafted in found:
        name = _name(drafted.function)
        name += "_" * (name in taken)
        names[name] = names.get(name, 0) + 1
        yield drafted, name, f"_{names[name]}" if names[name] > 1 else ""


def _name(function: Observed) -> str:
    """The name of a declaration: that of the Function, in small letters."""
    words = function.operator.partition("::")[2] or function.qualname.rpartition(".")[2]
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def _block(drafted: Drafted, path: Path, sources: Mapping[str, Source], name: str, again: str) -> str:
    draft, reason = drafted.draft, why(drafted, path)
    expression = drafted.function.qualname if reason else sources[drafted.function.name].expression
    constants = [f"{unchecked(draft)}.".capitalize()] if draft.unchecked and not reason else []
    lines = [f"# {sentence}" for sentence in (_counted(drafted), *constants, *drafted.notes)]
    if reason:
        lines.append(f"# Left out: {reason}.")
    code = [
        f"{name}{again} = Declaration(",
        f"    {expression},",
    ]
    for part in draft.parts:
        shown = "..." if part.missing else part.code
        seen = part.seen + _ASKED * part.is_limited
        code.append(f"    {shown},{f'  # {part.name}: {seen}' * bool(seen)}")
    if again:
        code.append(f'    name="{drafted.function.qualname.rpartition(".")[2]}{again}",')
    said = {
        "surrogate": f"a guess: {draft.surrogate}",
        "stochastic": "it draws random numbers",
        "once": "backward is decorated so",
    }
    for option in _options(draft):
        word = option.partition("=")[0]
        about = f"{intentions.FILE} says so" if word in draft.means else said.get(word, "")
        code.append(f"    {option},{f'  # {about}' * bool(about)}")
    code.append(")")
    return "\n".join([*lines, *([f"# {line}" for line in code] if reason else code)])


def _sizes(draft: Draft) -> str:
    return repr(dict(draft.sizes)).replace("'", '"')


def lines_of(found: Sequence[Drafted], path: Path) -> Iterator[str]:
    """A line for each declaration, and what is not checked in it."""
    for drafted, name, again in _numbered(found):
        draft = drafted.draft
        arguments = [source(drafted.function, path).expression, *(part.code for part in draft.parts), *_options(draft)]
        yield f"{name}{again} = Declaration({', '.join(arguments)})"
        if draft.unchecked:
            yield f"  {unchecked(draft)}"
        taken = [part.name for part in draft.parts if part.is_guess]
        if taken:
            yield f"  a guess, for backward returns None: {', '.join(taken)} is no tensor"


def full_names(found: Sequence[Drafted]) -> dict[str, str]:
    """The names of Functions with their modules, by those that their declarations give them."""
    rows = ((drafted.function, again) for drafted, _, again in _numbered(found))
    return {f"{f.operator or f.qualname.rpartition('.')[2]}{again}": f.name for f, again in rows}


def unchecked(draft: Draft) -> str:
    """Which tensors have no gradient that is checked; empty if all have one."""
    return f"no gradient is checked for: {', '.join(draft.unchecked)}" if draft.unchecked else ""


def _options(draft: Draft) -> Iterator[str]:
    """What a declaration says beside its arguments."""
    if draft.sizes:
        yield f"sizes={_sizes(draft)}"
    if draft.inplace:
        yield f"inplace={draft.inplace!r}"
    seen = {word: True for word in ("surrogate", "stochastic", "once") if getattr(draft, word)}
    yield from (f"{word}={value!r}" for word, value in {**seen, **draft.means}.items() if value)


def _counted(drafted: Drafted) -> str:
    calls, kinds = drafted.draft.calls, drafted.draft.kinds
    if not calls:
        return f"{drafted.function.name}."
    if calls == 1:
        return f"{drafted.function.name}: called once."
    once = "all of one kind: nothing shows what may vary" if kinds == 1 else f"of {kinds} kinds"
    return f"{drafted.function.name}: {calls} calls, {once}."
