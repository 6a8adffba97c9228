"""A standalone script that shows a failure: the Function, the call's tensors as literals, and one comparison."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from autograd_conformance.harness.outcomes import in_words
from autograd_conformance.harness.scripts.call import Pieces, names_in, renamed
from autograd_conformance.harness.scripts.definitions import Sources
from autograd_conformance.harness.scripts.names import Names
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.implementations import statements
from autograd_conformance.implementations.protocol import Implementation, ScriptText
from autograd_conformance.implementations.scripting import Named, NoScript
from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import parse
from autograd_conformance.strategies.layouts import place, storage

WIDTH = 116

# The verbs of an adapter that decide what a call computes. A script calls the package and not the adapter.
_DEFINITIONS = ("class ", "def ", "@")

_VERBS = frozenset(
    [
        "accumulate",
        "array",
        "autocast",
        "backward",
        "batched_vjp",
        "checkpoint",
        "compile",
        "describe",
        "fill_",
        "function",
        "grad",
        "jvp",
        "leaf",
        "no_grad",
        "offload",
        "recording",
        "vjp",
        "vmap",
        "version",
        "shares_memory",
    ]
)


def script_for(
    implementation: Implementation,
    function: Function,
    test: str,
    failure: Mapping[str, Any],
    source: Source | str | None = None,
) -> tuple[str | None, str]:
    """The script for a failure as a report holds it, or None and the reason why there is none.

    ``test`` is the property's id, with the test's variant if it has one: ``VJP-PURE/leaves``. ``source`` says where a
    user's Function comes from, or why a script cannot import it; a documented Function is written out.
    """
    try:
        # The Function is called, which may leave settings changed.
        with kept(implementation):
            return _written(implementation, function, test, failure, source), ""
    except NoScript as reason:
        return None, str(reason)
    except Exception as problem:  # noqa: BLE001 - a script that cannot be written must not hide the failure
        return None, f"{type(problem).__name__} while it was written: {problem}"


def _written(
    implementation: Implementation,
    function: Function,
    test: str,
    failure: Mapping[str, Any],
    source: Source | str | None,
) -> str:
    text, names = _text(implementation), Names()
    if isinstance(source, str):
        raise NoScript(source)
    if failure.get("flaky"):
        raise NoScript("the same call fails only sometimes")
    if "what" not in failure:
        raise NoScript("the check itself ended with an error, which this call alone may not show")
    if source is None:
        found = Sources(function.body, text)
        lines = "".join(f"{line}\n" for line in found.imports) + "\n\n" * bool(found.imports)
        lines += "\n\n".join(found.definitions)
        source, cls = Source(lines, f"{found.name}.apply"), function.body(implementation.xp, implementation.ag)
    else:
        source, cls = renamed(source, names), function.body(implementation.xp, implementation.ag)
    call = parse(failure["call"])
    pieces = Pieces(implementation, function, cls, call, source, failure, names)
    body = text.demonstrate(test, pieces.shown())
    header = _header(implementation, function, test.split("/")[0], failure)
    return header + "\n" + names.settled(_program(text, source, pieces, body))


def _text(implementation: Implementation) -> ScriptText:
    """How the implementation writes scripts."""
    if implementation.script is None:
        raise NoScript(f"scripts are not written for the implementation {implementation.name}")
    kinds = type(implementation).__mro__
    own = next(n for n, kind in enumerate(kinds) if "script" in vars(kind) or "script" in vars(implementation))
    opaque = [kind for kind in kinds[:own] if not vars(kind).get("transparent")]
    changed = sorted({name for kind in opaque for name in vars(kind)} & _VERBS)
    if changed:
        raise NoScript(f"the adapter {kinds[0].__name__} has its own {changed[0]}(), which a script does not have")
    return implementation.script


def _header(implementation: Implementation, function: Function, property_id: str, failure: Mapping[str, Any]) -> str:
    """What is wrong, as comments."""
    sentence = PROPERTIES[property_id].sentence if property_id in PROPERTIES else ""
    version = implementation.environment().version
    seen = " ".join(in_words(failure).split())
    said = [
        f"{property_id}: {sentence}",
        f"{function.name} on {implementation.name} {version}: {textwrap.shorten(seen, 4 * WIDTH)}",
    ]
    if failure.get("chosen"):
        said.append(f"with {textwrap.shorten(failure['chosen'], 2 * WIDTH)}")
    return "".join(f"# {row}\n" for line in said for row in textwrap.wrap(line, WIDTH))


def _program(text: ScriptText, source: Source, pieces: Pieces, body: str) -> str:
    prepared = "".join(f"{line}\n" for line in pieces.prepared)
    tensors = "".join(_tensors(text, pieces, body + prepared))
    body = re.sub(r"\n{3,}", "\n\n\n", body)
    program = prepared + tensors + _spaced(body)
    lines = [*_imports(text, source.lines + program), _prelude(text, pieces), source.lines, program]
    parts = [part.strip("\n") for part in lines if part.strip()]
    # A definition has two blank lines before it and behind it.
    spaced = [
        "\n\n" if part.startswith(_DEFINITIONS) or before.startswith(_DEFINITIONS) else "\n"
        for before, part in itertools.pairwise(parts)
    ]
    return "\n".join(p + s for p, s in zip(parts, [*spaced, ""], strict=True)) + "\n"


def _prelude(text: ScriptText, pieces: Pieces) -> str:
    """The lines that prepare the device: what it needs itself, or the imports that register it."""
    device, implementation = pieces.call.device, pieces.implementation
    added = implementation.added if device != "cpu" else ()
    return text.prelude.get(device, "") or "".join(map(statements, added))


def _spaced(body: str) -> str:
    """The body with blank lines before a definition at its start."""
    return f"\n\n{body}" if body.startswith(("def ", "class ")) else body


def _imports(text: ScriptText, program: str) -> list[str]:
    """The imports that the program uses and lacks, those of the standard library first."""
    used = names_in(program)
    lines = [line for name, line in text.imports.items() if name in used and line not in program.splitlines()]
    grouped = [[line for line in lines if _standard(line) is wanted] for wanted in (True, False)]
    return ["".join(f"{line}\n" for line in group) for group in grouped]


def _standard(line: str) -> bool:
    """Whether an import is one of the standard library."""
    return line.split()[1] in ("functools", "gc", "sys", "weakref")


def _tensors(text: ScriptText, pieces: Pieces, body: str) -> Iterator[str]:
    """The lines that make the tensors that are used."""
    used = names_in(body)
    for named in pieces.tensors:
        if named.name in used:
            yield f"{named.name} = {_expression(text, pieces, named)}\n"


def _expression(text: ScriptText, pieces: Pieces, named: Named) -> str:
    # As `Example.tensor`: contiguous where the implementation lacks the dtype that the layout needs.
    fits = storage(named.dtype, named.layout) in pieces.implementation.dtypes
    return text.tensor(named if fits else replace(named, layout="contiguous"), pieces.call.device, place)
