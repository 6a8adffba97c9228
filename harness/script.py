"""A script that shows a failure without this suite: the Function's own source, the call's tensors as literals, the
reference's numbers, and what goes wrong."""

from __future__ import annotations

import ast
import dis
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from autograd_conformance.harness.example import Example
from autograd_conformance.implementations.protocol import Implementation, ScriptText
from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, Tensor, parse
from autograd_conformance.strategies.layouts import place

if TYPE_CHECKING:
    from autograd_conformance.harness.subject import Subject

OUR_PACKAGE = "autograd_conformance."
WIDTH = 110
_LARGE = 64
_END = """\
print("This script shows the failure." if wrong else "All right here; the top says what the suite saw.")
sys.exit(bool(wrong))
"""


class NoScript(Exception):
    """There is no script for this failure; the message says why."""


def script_for(
    implementation: Implementation, function: Function, test: str, failure: Mapping[str, Any]
) -> tuple[str | None, str]:
    """The script for a failure as a report holds it, or None and the reason why there is none.

    ``test`` is the property's id, with the test's variant if it has one: ``VJP-PURE/leaves``.
    """
    if implementation.script is None:
        return None, f"no script for the implementation {implementation.name}"
    try:
        call = parse(failure["call"])
        parts = [
            _about(implementation, function, test.split("/")[0], failure),
            "from __future__ import annotations\n\n" + implementation.script.imports,
            *_program(implementation, implementation.script, function, call, test),
        ]
        return "\n".join(parts).strip() + "\n", ""
    except NoScript as reason:
        return None, str(reason)
    except Exception as problem:  # noqa: BLE001 - a script that cannot be written must not hide the failure
        return None, f"{type(problem).__name__} while it was written: {problem}"


def _about(implementation: Implementation, function: Function, property_id: str, failure: Mapping[str, Any]) -> str:
    sentence = PROPERTIES[property_id].sentence if property_id in PROPERTIES else ""
    version = implementation.environment().version
    seen = failure.get("message", "")
    if "what" in failure:
        seen = " ".join(f"{failure['what']} was {failure['got']}, but should be {failure['expected']}".split())
    told = [f"{property_id}: {sentence}", f"{function.name} on {implementation.name} {version}: {seen}"]
    told += [f"with {failure['chosen']}"] if failure.get("chosen") else []
    told += [failure["hint"]] if failure.get("hint") else []
    told.append(failure["call"])
    return "".join(f"# {row}\n" for text in told for line in text.splitlines() for row in textwrap.wrap(line, WIDTH))


def own_script(
    subject: Subject, test: str, failure: Mapping[str, Any], source: str, reason: str = ""
) -> tuple[str | None, str]:
    """The same for a user's Function, which ``source`` imports as ``Function``; or the ``reason`` why it cannot."""
    text, call = subject.implementation.script, failure.get("call", "")
    if text is None or not source:
        return None, reason or f"no script for the implementation {subject.implementation.name}"
    try:
        parts = [
            _about(subject.implementation, subject.function, test.split("/")[0], failure),
            "from __future__ import annotations\n\n" + text.imports,
            *_rest(Example(subject, parse(call)), text, source, {}, test),
        ]
        return "\n".join(parts).strip() + "\n", ""
    except NoScript as problem:
        return None, str(problem)
    except Exception as problem:  # noqa: BLE001 - a script that cannot be written must not hide the failure
        return None, f"{type(problem).__name__} while it was written: {problem}"


def _program(
    implementation: Implementation, text: ScriptText, function: Function, call: Call, test: str
) -> Iterator[str]:
    # Imported here because a subject asks this module for the scripts of its failures.
    from autograd_conformance.harness.subject import Subject

    example = Example(Subject(implementation, function, call.device), call)
    sources = _Sources(function.body)
    body = "\n\n".join([*sources.definitions, f"Function = {sources.name}(xp, ag)\n"])
    yield from _rest(example, text, body, sources.constants, test)


def _rest(example: Example, text: ScriptText, body: str, constants: Mapping[str, str], test: str) -> Iterator[str]:
    """The program behind its imports, given the source of the Function."""
    call = example.call
    arguments = _arguments(example, text)
    demonstration = _demonstration(text, test)
    tools = _needed(text.tools, demonstration)
    missing = [line for line in constants.values() if line not in text.imports.splitlines()]
    yield "".join(f"{line}\n" for line in missing)
    yield text.devices.get(call.device, "")
    yield _namespace(text, body + arguments)
    yield f"ag = {text.ag}\n\n"
    yield body
    yield arguments
    yield _reference(example, tools + demonstration)
    yield tools
    yield demonstration
    yield _END


def _namespace(text: ScriptText, source: str) -> str:
    """Those names of the array namespace that the source uses."""
    names = sorted(set(re.findall(r"\bxp\.([a-z_0-9]+)", source)))
    rows = "".join(f"    {name}={text.names.get(name) or text.name.format(name)},\n" for name in names)
    return f"xp = SimpleNamespace(\n{rows}\n)".replace("\n\n)", "\n)")


def _demonstration(text: ScriptText, test: str) -> str:
    """What shows that the property does not hold; where nothing is wrong with that, the plain call may be."""
    plain = text.demonstrations[""]
    special = text.demonstrations.get(test) or text.demonstrations.get(test.split("/")[0])
    if special is None:
        return plain
    return f"{special}\nif not wrong:  # the plain call, against the reference\n{textwrap.indent(plain, '    ')}"


def _needed(tools: str, demonstration: str) -> str:
    """The statements of ``tools``, without the functions that are not used."""
    lines = tools.splitlines(keepends=True)
    statements = [("".join(lines[s.lineno - 1 : s.end_lineno]), getattr(s, "name", "")) for s in ast.parse(tools).body]
    kept, used = [], demonstration
    for source, name in reversed(statements):
        if not name or re.search(rf"\b{name}\b", used):
            used += source
            kept.append(f"\n\n{source}" if name else source)
    return "".join(reversed(kept)) + "\n"


# The Function.


class _Sources:
    """The source of a body factory and of all that it uses of its own modules."""

    def __init__(self, body: Any) -> None:
        if not isinstance(body, FunctionType) or body.__name__ == "<lambda>":
            raise NoScript(f"the body {body!r} is not a plain function with a source of its own")
        self.name = body.__name__
        self.definitions: list[str] = []
        self.constants: dict[str, str] = {}
        self._objects: dict[str, Any] = {}
        self._add(body.__name__, body)

    def _add(self, name: str, value: Any) -> None:
        if name in self._objects:
            if self._objects[name] is not value:
                raise NoScript(f"two different things are called {name} in the modules of the Function")
            return
        self._objects[name] = value
        if isinstance(value, ModuleType):
            self.constants[name] = f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
        elif isinstance(value, FunctionType) and not _ours(value):
            self.constants[name] = f"from {value.__module__} import {value.__name__} as {name}"
        elif isinstance(value, FunctionType):
            for other, used in _used(value).items():
                self._add(other, used)
            self.definitions.append(_source(value))
        elif getattr(value, "__module__", None) != "typing":
            self.constants[name] = f"{name} = {value!r}"


def _ours(function: FunctionType) -> bool:
    """Whether a script must carry the function's source, because it cannot be imported without this suite."""
    return function.__module__.startswith(OUR_PACKAGE) or "<locals>" in function.__qualname__


def _source(function: FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip() + "\n"
    except OSError:
        raise NoScript(f"the source of {function.__name__} cannot be found") from None


def _used(function: FunctionType) -> dict[str, Any]:
    """The globals and enclosing variables that a function and the functions within it use."""
    names = set(_names(function.__code__))
    closure = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    found = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    return {**found, **closure}


def _names(code: CodeType) -> Iterator[str]:
    loads = (step for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    yield from (str(step.argval) for step in loads if step.argval != "__name__")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


# The call.


def _arguments(example: Example, text: ScriptText) -> str:
    call, function = example.call, example.function
    rows = []
    for argument, given, value in zip(function.arguments, call.args, example.values, strict=False):
        if getattr(argument, "build", None) or getattr(argument, "wrap", None):
            raise NoScript(f"argument {argument.name} is made by the declaration, and is no literal")
        shown = repr(given)
        if isinstance(given, Tensor):
            shown = _tensor(text, value, given.dtype, given.layout, call.device)
        rows.append(f"    {shown},  # {argument.name}")
    cotangents = [
        "None" if value is None else _tensor(text, value, dtype, given.layout if given else "contiguous", call.device)
        for value, dtype, given in zip(example.cotangent_values, example.output_dtypes, call.cotangents, strict=True)
    ]
    inplace = tuple(slot for slot in function.inplace if slot in example.slots)
    lines = [
        "arguments = [", *rows, "]",
        f"slots = {example.slots}  # which of them are tensors",
        f"inplace = {inplace}  # which of them the Function changes",
        f"mask = {example.track}  # which tensors require grad",
        "cotangents = [", *(f"    {shown}," for shown in cotangents), "]",
        f"differentiable = {tuple(output.differentiable for output in function.outputs)}",
        f"output_dtypes = {example.output_dtypes}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


class _Text:
    """An array in the script, as text; takes the place of one where a layout makes its view."""

    def __init__(self, text: str, ndim: int) -> None:
        self.text, self.ndim = text, ndim

    def __getitem__(self, index: Any) -> _Text:
        parts = index if isinstance(index, tuple) else (index,)
        return _Text(f"{self.text}[{', '.join(map(_index, parts))}]", self.ndim)


def _index(part: Any) -> str:
    if part is ...:
        return "..."
    bounds = [part.start, part.stop] if part.step is None else [part.start, part.stop, part.step]
    return ":".join("" if bound is None else str(bound) for bound in bounds)


class _TextNamespace:
    """The array namespace, as text."""

    def __getattr__(self, name: str) -> Any:
        def write(array: _Text, *others: Any) -> _Text:
            return _Text(f"xp.{name}({', '.join([array.text, *map(repr, others)])})", array.ndim)

        return write


def _tensor(text: ScriptText, values: Any, dtype: str, layout: str, device: str) -> str:
    """The expression that makes a tensor in its layout."""
    where = "" if device == "cpu" else f', device="{device}"'

    def array(buffer: Any, kind: str) -> _Text:
        return _Text(text.tensor.format(values=literal(buffer), dtype=kind, device=where), buffer.ndim)

    made: _Text = place(_TextNamespace(), array, values, dtype, layout)
    return made.text


def _reference(example: Example, used_by: str) -> str:
    """What the reference gives, with the bounds, as far as it is used."""
    given = {"expected_outputs": example.expected_outputs, "expected_gradients": example.expected_gradients()}
    rows = {name: "".join(f"    {_expected(each)},\n" for each in values) for name, values in given.items()}
    lists = "".join(f"{name} = [\n{row}]\n" for name, row in rows.items() if name in used_by)
    return f"# What the reference gives, and how far off rounding may put it.\n{lists}" if lists else ""


def _expected(value: Tracked | None) -> str:
    if value is None:
        return "None"
    with np.errstate(over="ignore"):
        bound = SAFETY * value.error
    # Four digits are enough, if they are never too few.
    short = np.array([float(f"{1.001 * b:.4g}") for b in bound.reshape(-1)]).reshape(bound.shape)
    return f"({literal(value.value)}, {literal(short)})"


def literal(values: Any) -> str:
    """An expression for an array, exact: NaN, infinity and the sign of zero included."""
    array = np.asarray(values)
    if array.size == 0:
        return f"np.zeros({array.shape}, {array.dtype.name!r})"
    if array.size > 1 and array.dtype.kind in "fc" and np.all(array == 1):
        return f"np.ones({array.shape}, {array.dtype.name!r})"
    if array.size <= _LARGE:
        return f"np.array({_nested(array.tolist())})"
    flat = textwrap.fill(", ".join(map(_number, array.reshape(-1).tolist())), WIDTH, subsequent_indent=" " * 8)
    return f"np.array([\n        {flat}\n    ]).reshape({array.shape})"


def _nested(value: Any) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else _number(value)


def _number(value: Any) -> str:
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)
