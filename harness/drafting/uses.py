"""How the code of a Function uses the parameters of forward, and what it says of them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from autograd_conformance.harness.drafting.drafts import Draft

LABELS = r".*(idx|index|indices|ids|labels?|targets?|edges?)"
_IGNORING = re.compile("ignore|pad_|padding_i")
# The mark of entries that do not count, unless something says another one.
_IGNORED = -100
# The module with the decorator that says that a backward cannot be differentiated.
_DECORATES = "torch.autograd.function"
_COMPARING = ("eq", "ne")


@dataclass
class Used:
    """How the methods of a Function use a parameter of forward."""

    as_tensor: bool = False
    dirty: bool = False
    kept: bool = False
    compared: list[str] = field(default_factory=list)
    # The integers, and the names of parameters and attributes, that it is compared with.
    marks: list[ast.expr] = field(default_factory=list)
    decides: bool = False
    without_gradient: bool = False
    with_gradient: bool = False


def once(function: Any) -> bool:
    """Whether backward says that it cannot be differentiated."""
    method = getattr(function, "backward", None)
    while method is not None:
        if getattr(method, "__globals__", {}).get("__name__") == _DECORATES and hasattr(method, "__wrapped__"):
            return True
        method = getattr(method, "__wrapped__", None)
    return False


@dataclass(frozen=True)
class Marks:
    """Integers that mark entries which do not count: by the parameter of the entries, and by the one that is it."""

    entries: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def marking(function: Any, draft: Draft) -> Draft:
    """The draft in which integers may also have the value that the code compares them with."""
    values = {part.name: _literal(part.text) for part in draft.parts if part.text}
    entries = marks(function, uses(function, [part.name for part in draft.parts]), values).entries
    return replace(draft, parts=tuple(p.marked(entries[p.name]) if p.name in entries else p for p in draft.parts))


def _literal(text: str) -> Any:
    """The value of a text; None if it is no single one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def marks(function: Any, used: Mapping[str, Used], values: Mapping[str, Any]) -> Marks:
    """The marks that the code compares entries with: numbers, constants of the module, or other parameters.

    ``values`` are those of the parameters that are known, or their defaults.
    """
    found = Marks()
    for name, each in used.items():
        for node in each.marks:
            other = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if other in used:
                found.numbers.update(_number(other, values))
                found.entries.update({name: found.numbers[other]} if other in found.numbers else {})
            elif _is_mark(value := _constant(node, function)) and value not in (0, 1):
                found.entries[name] = value
    # What is not compared here is passed on.
    passed = {name: value for other in used for name, value in _number(other, values).items() if _IGNORING.search(name)}
    found.numbers.update(passed)
    for value in passed.values():
        labels = [name for name in used if re.fullmatch(LABELS, name.lower()) and name not in found.numbers]
        found.entries.update(dict.fromkeys([name for name in labels if name not in found.entries], value))
    return found


def _number(name: str, values: Mapping[str, Any]) -> dict[str, int]:
    """The integer that a parameter is, by its name; empty if nothing says that it is one."""
    value = values.get(name)
    usual = {name: _IGNORED} if _IGNORING.search(name) else {}
    return {name: value} if _is_mark(value) else usual


def _is_mark(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _constant(node: ast.expr, function: Any) -> Any:
    """The value of a number, or of a constant that the module of a Function has; None if it has no such."""
    names = getattr(inspect.unwrap(getattr(function, "forward", function)), "__globals__", {})
    parts = ast.unparse(node).split(".")
    if not all(map(str.isidentifier, parts)):
        return _literal(ast.unparse(node))
    value = {**names, "self": function, "cls": function}.get(parts[0])
    for part in parts[1:]:
        value = getattr(value, part, None)
    return value


def uses(function: Any, names: Sequence[str]) -> dict[str, Used]:
    """How the code uses the parameters of forward, as far as its source can be read."""
    used = {name: Used() for name in names}
    methods = ("forward", "setup_context", "backward") if isinstance(function, type) else ()
    for method in methods:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(function, method))))
        except (OSError, TypeError, SyntaxError):
            continue
        if method == "backward":
            _note_gradients(tree, list(used.values()))
        else:
            for node in ast.walk(tree):
                _note(node, used)
    return used


def _note(node: ast.AST, used: dict[str, Used]) -> None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in used:
        used[node.value.id].as_tensor = True
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in used:
        used[node.value.id].as_tensor |= isinstance(node.slice, ast.Tuple)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("save_for_backward", "mark_dirty"):
        for each in node.args:
            if isinstance(each, ast.Name) and each.id in used:
                used[each.id].as_tensor = True
                used[each.id].dirty |= getattr(node.func, "attr", "") == "mark_dirty"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        for side in (node.left, node.right):
            if isinstance(side, ast.Name) and side.id in used:
                used[side.id].as_tensor = True
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in used:
        used[node.value.id].kept = any(isinstance(target, ast.Attribute) for target in node.targets)
    elif isinstance(node, ast.Compare):
        for operator, other in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                _note_comparison(node.left, other, used)
                _note_comparison(other, node.left, used)
    elif isinstance(node, ast.If | ast.IfExp):
        for inner in ast.walk(node.test):
            if isinstance(inner, ast.Name) and inner.id in used and _is_flag(node.test, used[inner.id]):
                used[inner.id].decides = True
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _COMPARING and node.args:
        _note_comparison(getattr(node.func, "value", node.func), node.args[-1], used)


def _is_flag(test: ast.expr, used: Used) -> bool:
    """Whether a condition is a parameter itself, its contrary, or compares it with texts."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(inner, ast.Name) or (isinstance(inner, ast.Compare) and bool(used.compared))


def _note_comparison(one: ast.expr, other: ast.expr, used: dict[str, Used]) -> None:
    if isinstance(one, ast.Name) and one.id in used:
        if isinstance(other, ast.Constant) and isinstance(other.value, str):
            used[one.id].compared.append(repr(other.value))
        elif not isinstance(other, ast.Call):
            used[one.id].marks.append(other)


def _note_gradients(tree: ast.AST, used: Sequence[Used]) -> None:
    """The parameters for which backward always returns None, and those for which it never does."""
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    tuples = [each.elts for each in returned if isinstance(each, ast.Tuple) and len(each.elts) == len(used)]
    if tuples and len(tuples) == len(returned):
        for each, column in zip(used, zip(*tuples, strict=True), strict=True):
            nothing = [isinstance(node, ast.Constant) and node.value is None for node in column]
            each.without_gradient, each.with_gradient = all(nothing), not any(nothing)
