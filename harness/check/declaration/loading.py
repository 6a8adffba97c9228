"""Loading: the declarations that a target names, and the Functions of a run."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pkgutil
import re
import shutil
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from autograd_conformance.harness.check.declaration.declaration import Declaration, Own
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.naming import Options, importing, name_of
from autograd_conformance.harness.outcomes import UsageProblem, choose_from, one_line
from autograd_conformance.implementations import statements, to_import
from autograd_conformance.implementations.protocol import Implementation

# The folder of this suite's own frames.
_OURS = str(Path(__file__).resolve().parents[1])

# How torch says that it cannot build an extension; the commands and all that they print follow.
_UNBUILT = re.compile(r"Error building extension '(\w+)'")


class Undeclared(UsageProblem):
    """Raised for a module without declarations."""


class _Described(Declaration):
    """A Function that is described on the command line. ``named`` are the lines that import it, and its name there."""

    notation = Options()
    named: tuple[str, str] | None = None

    def located(self) -> tuple[str, str] | None:
        return self.named


@dataclass(frozen=True)
class Plan:
    """What to check, as data that `write` and `read` pass to another process.

    ``target``, ``arguments`` and ``options`` come from the command line; the options are those of a `Declaration`.
    ``facts`` holds, by name, the facts about each Function that is checked, and ``examples`` the share of the examples
    of those that declare none.
    """

    target: str
    arguments: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    examples: float | None = None

    def write(self, path: Path) -> None:
        """Write the plan to a file."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Plan:
        """The plan in a file that `write` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        facts = {name: Facts.from_json(each) for name, each in found["facts"].items()}
        return cls(found["target"], tuple(found["arguments"]), found["options"], facts, found["examples"])

    def declarations(self, implementation: Implementation) -> list[Declaration]:
        """The declarations of the target. Raises UsageProblem if there are none."""
        found = declarations(self.target, self.arguments, self.options, implementation)
        for each in found:
            each.examples = each.examples or self.examples
        return found

    def functions(self, implementation: Implementation) -> dict[str, Own]:
        """The Functions to check, by name."""
        declared = self.declarations(implementation)
        return {d.name: d.own(implementation, self.facts[d.name]) for d in declared if d.name in self.facts}


def declarations(
    target: str,
    arguments: Sequence[str] = (),
    options: dict[str, Any] | None = None,
    implementation: Implementation | None = None,
) -> list[Declaration]:
    """The declarations of a target: ``module:attribute``, a module, a .py file, or an operator ``space::name``.

    If the attribute is a callable, its declaration is made from ``arguments`` and ``options``. Raises UsageProblem if
    the target declares nothing.
    """
    if "::" in target:
        return [_operator(target, arguments, options or {}, implementation)]
    place, _, attribute = target.rpartition(":") if ":" in target else (target, "", "")
    module = imported(place)
    if not attribute:
        if arguments or options:
            raise UsageProblem(f"--arg and options such as --once apply to one Function; name it: {place}:NAME")
        return _unique(_members(module, place))
    thing: Any = module
    for part in attribute.split("."):
        if not hasattr(thing, part):
            own = [
                name for name in dir(thing) if not name.startswith("_") and _is_own(getattr(thing, name, None), module)
            ]
            advice = choose_from(part, own, command=f"help({module.__name__!r})") if own else "it has nothing to check"
            raise UsageProblem(f"{place} has no {attribute!r}; {advice}")
        thing = getattr(thing, part)
    if isinstance(thing, Declaration):
        if arguments:
            raise UsageProblem(f"{target} is a declaration and already has arguments; remove --arg")
        return [thing]
    # A callable without a name of its own has that of the attribute.
    name = "" if hasattr(thing, "__name__") and name_of(thing) != "lambda" else attribute.rpartition(".")[2]
    found = _described(target, thing, arguments, {"name": name, **(options or {})}, implementation)
    found.named = importing(module, attribute.partition(".")[0]), attribute
    return [found]


def _described(
    target: str, thing: Any, arguments: Sequence[str], options: dict[str, Any], implementation: Implementation | None
) -> _Described:
    if not arguments:
        place = "" if "::" in target else target.rpartition(":")[0]
        raise UsageProblem(
            f"{target} is not a declaration; describe its arguments in order, as in "
            "--arg 'float[n,m]' --arg 'int(0..3)'"
            + (f"; or check {place} as a whole: if it declares nothing, arguments are assumed" if place else "")
        )
    found = _Described(thing, *arguments, where=target, **options)
    if implementation is not None:
        # The command says it.
        found.implementation = implementation.name
    return found


def _operator(
    target: str, arguments: Sequence[str], options: dict[str, Any], implementation: Implementation | None
) -> _Described:
    """The declaration of a registered operator."""
    known = None if implementation is None else implementation.operator(target)
    if known is None:
        space, listed = target.partition("::")[0], () if implementation is None else implementation.operators()
        near = sorted(name for name in listed if name.startswith(f"{space}::"))
        advice = f"; {choose_from(target, near)}" if near else ""
        name = "this framework" if implementation is None else implementation.name
        raise UsageProblem(
            f"{target} is not an operator that {name} has registered; --import PACKAGE imports what registers it; "
            f"for a file write FILE.py:NAME{advice}"
        )
    thing, text = known
    found = _described(target, thing, arguments, options, implementation)
    found.named = "".join(map(statements, to_import())), text
    return found


def _is_own(value: Any, module: ModuleType) -> bool:
    """Whether a value can be checked and is the module's own; a class or function of another package is not."""
    owner = getattr(value, "__self__", value)
    if isinstance(owner, type | FunctionType | BuiltinFunctionType):
        return str(owner.__module__).partition(".")[0] == module.__name__.partition(".")[0]
    return callable(value) or isinstance(value, Declaration)


def _members(module: ModuleType, place: str) -> list[Declaration]:
    found = [value for value in vars(module).values() if isinstance(value, Declaration)]
    if not found:
        raise Undeclared(
            f"{place} has no declarations; add NAME = Declaration(FUNCTION, 'float[n]', ...) to it, or check one of "
            f"its Functions with {place}:NAME --arg 'float[n]'"
        )
    return found


def _unique(found: Iterable[Declaration]) -> list[Declaration]:
    by_name: dict[str, Declaration] = {}
    for one in dict.fromkeys(found):
        other = by_name.setdefault(one.name, one)
        if other is not one:
            raise one.problem(f"the declaration at {other.where} has the same name; give one of them name='...'")
    return list(by_name.values())


def _said(raised: BaseException) -> str:
    """What an exception says; of an extension that cannot be built the reason alone, and not the commands."""
    message = str(raised)
    extension = _UNBUILT.match(message)
    if extension is None:
        return one_line(raised)
    compiler = os.environ.get("CXX", "cl" if os.name == "nt" else "c++").split()[0]
    if shutil.which(compiler) is None:
        reason = f"there is no C++ compiler {compiler}; install one, or name another one in CXX"
    else:
        reason = next((line.strip() for line in message.splitlines() if "error" in line[1:]), one_line(raised))
    return f"the extension {extension[1]} cannot be built: {reason}"


def imported(place: str) -> ModuleType:
    """The module with this name, or from this file. Raises UsageProblem with the line that fails."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if not place.endswith(".py") and ("/" in place or place.startswith(".")):
        raise _no_module(place)
    try:
        module = _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except UsageProblem:
        raise
    except (Exception, SystemExit) as raised:
        if isinstance(raised, ModuleNotFoundError) and not place.endswith(".py") and Path(place).is_file():
            raise _no_module(place) from None
        frames = traceback.extract_tb(raised.__traceback__)
        own = [f for f in frames if "importlib" not in f.filename and not f.filename.startswith(_OURS)]
        where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
        meant = _meant(place, raised)
        raise UsageProblem(f"{place} cannot be imported: {_said(raised)}{where}{meant}") from raised
    # A folder without __init__.py can be imported, but has no code.
    if getattr(module, "__file__", None) is None and hasattr(module, "__path__"):
        raise _no_module(place)
    return module


def _meant(place: str, raised: BaseException) -> str:
    """What is like the name of a module that is not there: one nearby, or with a colon before its last word."""
    missing = raised.name or "" if isinstance(raised, ModuleNotFoundError) else ""
    if not missing or not f"{place}.".startswith(f"{missing}."):
        return ""
    first, dot, rest = place.partition(".")
    nearby = [module.name for module in pkgutil.iter_modules([str(Path.cwd())])]
    first = first if first != missing else next(iter(get_close_matches(first, nearby, 1)), "")
    parent, _, name = f"{first}{dot}{rest}".rpartition(".")
    try:
        named = bool(parent) and hasattr(importlib.import_module(parent), name)
    except Exception:  # noqa: BLE001 - a module may raise anything when it is imported
        return ""
    meant = f"{parent}:{name}" if named else first if not dot else ""
    return f"; did you mean {meant}?" if meant else ""


def _no_module(place: str) -> UsageProblem:
    path = Path(place)
    if path.is_dir():
        return UsageProblem(f"{place} is a folder without code of its own; name a .py file or a module in it")
    near = path.with_name(f"{path.name}.py")
    asked = f" (did you mean {near}?)" if near.is_file() else ""
    return UsageProblem(f"{place} is not a .py file or a module; name one of these{asked}")


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageProblem(f"file not found: {path}")
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and Path(str(getattr(known, "__file__", ""))).resolve() == path.resolve():
        return known
    sys.path.insert(0, str(path.resolve().parent))
    # Another name if a module with the file's name is already imported.
    spec = importlib.util.spec_from_file_location(name if known is None else f"{name}_checked", path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
