"""The source of a documented Function in an implementation's own words: ``xp.exp(x)`` becomes ``torch.exp(x)``."""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from autograd_conformance.implementations.protocol import ScriptText
from autograd_conformance.implementations.scripting import NoScript

OUR_PACKAGE = "autograd_conformance."
# The parameters by which a body gets its array namespace and its autograd namespace.
_NAMESPACES = ("xp", "ag")


class Sources:
    """The source of a body factory and of all that it uses of its own modules.

    ``imports`` and ``definitions`` are lines of the script, ``name`` is what the script calls the Function.
    """

    def __init__(self, body: Any, text: ScriptText) -> None:
        if not isinstance(body, FunctionType) or body.__name__ == "<lambda>":
            raise NoScript(f"the body {body!r} is not a plain function with a source of its own")
        self.imports: list[str] = []
        self.definitions: list[str] = []
        self.name = body.__name__
        self._text, self._body = text, body
        self._objects: dict[str, Any] = {}
        self._add(body.__name__, body)

    def _add(self, name: str, value: Any) -> None:
        if name in self._objects:
            if self._objects[name] is not value:
                raise NoScript(f"two different things are called {name} in the modules of the Function")
            return
        self._objects[name] = value
        if isinstance(value, ModuleType):
            self.imports.append(f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}"))
        elif isinstance(value, FunctionType) and not _ours(value):
            self.imports.append(f"from {value.__module__} import {value.__name__} as {name}")
        elif isinstance(value, FunctionType):
            for other, used in _used(value).items():
                self._add(other, used)
            self.definitions += self._defined(value)
        elif getattr(value, "__module__", None) != "typing":
            self.definitions.append(f"{name} = {value!r}")

    def _defined(self, function: FunctionType) -> list[str]:
        (tree,) = ast.parse(_source(function)).body
        assert isinstance(tree, ast.FunctionDef)
        tree = _Translation(self._text).visit(tree)
        *statements, last = tree.body
        made = isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id
        if function is not self._body:
            return [_unparsed(tree)]
        if made and not tree.args.args and all(isinstance(s, ast.ClassDef | ast.FunctionDef) for s in statements):
            # The class stands at the top of the script, without the factory around it.
            self.name = str(made)
            return [_unparsed(statement) for statement in statements]
        self.name = "Function"
        return [_unparsed(tree), f"Function = {tree.name}()\n"]


def _unparsed(tree: ast.stmt) -> str:
    # No blank line behind the head of a class.
    return re.sub(r"(class [^\n]*:\n)\n", r"\1", ast.unparse(tree)) + "\n"


class _Translation(ast.NodeTransformer):
    """Names of the namespaces become the package's, and annotations and docstrings go."""

    def __init__(self, text: ScriptText) -> None:
        self._text = text

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        node.args.args = [a for a in node.args.args if a.arg not in _NAMESPACES]
        for argument in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs):
            argument.annotation = None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        named = _attribute_of("xp", node.func)
        node.args = [self.visit(a) for a in node.args if not (isinstance(a, ast.Name) and a.id in _NAMESPACES)]
        node.keywords = [self.visit(k) for k in node.keywords]
        if named is None:
            node.func = self.visit(node.func)
            return node
        other = ast.parse(self._text.names.get(named, f"{self._text.package}.{named}"), mode="eval").body
        if isinstance(other, ast.Lambda):
            return _inlined(other, node)
        node.func = other
        for keyword in node.keywords:
            keyword.arg = self._text.keywords.get(str(keyword.arg), keyword.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        for space, names in (("xp", self._text.names), ("ag", self._text.ag)):
            named = _attribute_of(space, node)
            if named is not None:
                return ast.parse(names.get(named, f"{self._text.package}.{named}"), mode="eval").body
        return self.generic_visit(node)


def _attribute_of(space: str, node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == space:
        return node.attr
    return None


def _inlined(function: ast.Lambda, call: ast.Call) -> ast.expr:
    """The body of a lambda with a call's arguments in the place of its parameters."""
    given = dict(zip((a.arg for a in function.args.args), call.args, strict=False))
    given.update({str(keyword.arg): keyword.value for keyword in call.keywords})

    class Substitution(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(given[node.id]) if node.id in given else node

    found: ast.expr = Substitution().visit(copy.deepcopy(function.body))
    return found


def _ours(function: FunctionType) -> bool:
    """Whether a script must carry the function's source, because a standalone script cannot import it."""
    return function.__module__.startswith(OUR_PACKAGE) or "<locals>" in function.__qualname__


def _source(function: FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip() + "\n"
    except OSError:
        raise NoScript(f"the source of {function.__name__} cannot be found") from None


def _used(function: FunctionType) -> Mapping[str, Any]:
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
