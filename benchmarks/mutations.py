"""Mutants of Python source, made by machine: one small edit of one function each, in a fixed order.

What is only said, and not done, is left as it is: messages, logs, annotations, assertions. So are default values and
decorators, which run when the module is imported.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

# An edit of a node: its kind, and what stands there instead.
Edits = Iterator[tuple[str, ast.AST]]

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OFF_BY_ONE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip

# Methods that give the same numbers, and another place in the graph or in memory.
_SAME_NUMBERS = ("detach", "clone", "contiguous", "requires_grad_", "view_as", "resolve_conj", "resolve_neg")

# Functions of which the arguments are words for a reader, or for a type checker.
_WORDS = (
    "warn", "warning", "warn_once", "debug", "info", "error", "log", "print", "cast", "unimplemented", "_check",
    "trace_structured", "deprecated", "record_function", "_log_api_usage_once",
)  # fmt: skip
_TESTS_OF_TYPE = ("isinstance", "issubclass", "pytree_any_isinstance")


def _negated(test: ast.expr) -> Edits:
    """The opposite of a condition; that of a comparison and of a `not` is made where these are found."""
    if not isinstance(test, ast.Compare | ast.Constant) and not _is_not(test):
        yield "negated", ast.UnaryOp(ast.Not(), test)


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _of_unary(node: ast.UnaryOp) -> Edits:
    if _is_not(node):
        yield "negated", node.operand


def _of_boolean(node: ast.BoolOp) -> Edits:
    for n in range(len(node.values)):
        rest = node.values[:n] + node.values[n + 1 :]
        yield "weakened", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _of_comparison(node: ast.Compare) -> Edits:
    for kind, other in (("negated", _OPPOSITE), ("off by one", _OFF_BY_ONE)):
        changed = other.get(type(node.ops[0]))
        if changed is not None:
            yield kind, ast.Compare(node.left, [changed(), *node.ops[1:]], node.comparators)
    if type(node.ops[0]) in _OFF_BY_ONE:
        yield "negated", ast.UnaryOp(ast.Not(), node)


def _of_constant(node: ast.Constant) -> Edits:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)


def _of_call(node: ast.Call) -> Edits:
    if _called(node) in _WORDS:
        return
    for n, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            rest = node.keywords[:n] + node.keywords[n + 1 :]
            yield f"{keyword.arg}= dropped", ast.Call(node.func, node.args, rest)
    plain = not any(isinstance(each, ast.Starred) for each in node.args)
    if plain and len(node.args) > 1 and _called(node) not in _TESTS_OF_TYPE:
        first, second, *rest = node.args
        yield "swapped", ast.Call(node.func, [second, first, *rest], node.keywords)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_NUMBERS:
        yield "forgotten", node.func.value


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _of_elements(node: ast.Tuple | ast.List) -> Edits:
    if isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        first, second, *rest = node.elts
        yield "swapped", type(node)([second, first, *rest], ast.Load())
        yield "element dropped", type(node)(node.elts[:-1], ast.Load())


def _of_arithmetic(node: ast.BinOp) -> Edits:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None and not any(_is_text(side) for side in (node.left, node.right)):
        yield "arithmetic", ast.BinOp(node.left, other(), node.right)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _of_statement(kind: str) -> Callable[[ast.stmt], Edits]:
    def edits(_: ast.stmt) -> Edits:
        yield kind, ast.Pass()

    return edits


def _of_expression(node: ast.Expr) -> Edits:
    if isinstance(node.value, ast.Call) and _called(node.value) not in _WORDS[1:]:
        yield "call dropped", ast.Pass()


def _of_assignment(node: ast.Assign) -> Edits:
    if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
        yield "assignment dropped", ast.Pass()


def _of_return(node: ast.Return) -> Edits:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield "returns None", ast.Return(ast.Constant(None))


def _of_try(node: ast.Try) -> Edits:
    if node.finalbody:
        yield "finally dropped", ast.Try(node.body, node.handlers, node.orelse, [ast.Pass()])


def _of_handler(node: ast.ExceptHandler) -> Edits:
    yield "not handled", ast.ExceptHandler(node.type, node.name, [ast.Raise()])


def _of_with(node: ast.With) -> Edits:
    for n, item in enumerate(node.items):
        if item.optional_vars is None:
            rest = node.items[:n] + node.items[n + 1 :]
            yield "without", ast.With(rest, node.body) if rest else ast.If(ast.Constant(True), node.body, [])


def _of_loop(node: ast.For) -> Edits:
    yield "no iteration", ast.For(node.target, ast.Tuple([], ast.Load()), node.body, node.orelse)


def _of_continue(_: ast.Continue) -> Edits:
    yield "continue dropped", ast.Pass()
    yield "continue", ast.Break()


_RULES: dict[type[ast.AST], Callable[..., Edits]] = {
    ast.UnaryOp: _of_unary,
    ast.BoolOp: _of_boolean,
    ast.Compare: _of_comparison,
    ast.Constant: _of_constant,
    ast.Call: _of_call,
    ast.Tuple: _of_elements,
    ast.List: _of_elements,
    ast.BinOp: _of_arithmetic,
    ast.Expr: _of_expression,
    ast.Assign: _of_assignment,
    ast.AugAssign: _of_statement("assignment dropped"),
    ast.Delete: _of_statement("deletion dropped"),
    ast.Raise: _of_statement("not raised"),
    ast.Return: _of_return,
    ast.Try: _of_try,
    ast.ExceptHandler: _of_handler,
    ast.With: _of_with,
    ast.For: _of_loop,
    ast.Continue: _of_continue,
}


@dataclass(frozen=True)
class Mutant:
    """One edit: where it is, of which kind, and what stands there before and after.

    ``nth`` tells equal edits of one function apart. The text of a mutant is its key in files: it does not change with
    what stands elsewhere in the module.
    """

    path: str
    function: str
    line: int
    kind: str
    before: str
    after: str
    nth: int
    place: tuple[ast.AST, str, int | None]
    replacement: ast.AST

    def __str__(self) -> str:
        again = f" ({self.nth})" if self.nth else ""
        return f"{self.path} {self.function} | {self.kind}: {self.before} -> {self.after}{again}"

    def code(self, tree: ast.Module, filename: str) -> CodeType:
        """The module with this edit, compiled. It changes the tree, of which the mutant is a part."""
        parent, field, index = self.place
        new = ast.copy_location(copy.deepcopy(self.replacement), self._old())
        if index is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[index] = new
        return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)

    def _old(self) -> ast.AST:
        parent, field, index = self.place
        found = getattr(parent, field)
        return found if index is None else found[index]


def mutants(path: str, tree: ast.Module) -> Iterator[Mutant]:
    """All mutants of a module's functions, in the order of their places."""
    seen: Counter[tuple[str, ...]] = Counter()
    for function, place, line in _places(tree):
        parent, field, index = place
        node = getattr(parent, field) if index is None else getattr(parent, field)[index]
        for kind, new in _edits(parent, field, node):
            before, after = _text(node), _text(new)
            key = (function, kind, before, after)
            yield Mutant(path, function, line, kind, before, after, seen[key], place, new)
            seen[key] += 1


def _edits(parent: ast.AST, field: str, node: ast.AST) -> Edits:
    # That a type is looked for among others is no order.
    order = not (isinstance(parent, ast.Call) and _called(parent) in _TESTS_OF_TYPE)
    for kind, new in _RULES.get(type(node), _none)(node):
        if order or kind != "swapped":
            yield kind, new
    if field == "test" or (field == "ifs" and isinstance(parent, ast.comprehension)):
        yield from _negated(node)  # type: ignore[arg-type]


def _none(_: ast.AST) -> Edits:
    yield from ()


# So much of an edit is shown.
_SHOWN = 90


def _text(node: ast.AST) -> str:
    header = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).strip().split("\n")[0]
    return header if len(header) <= _SHOWN else f"{header[:_SHOWN]}..."


# What is found in a tree: the name of the function, the place of a node, and its line.
Place = tuple[str, tuple[ast.AST, str, int | None], int]


def _places(tree: ast.AST, names: tuple[str, ...] = (), inside: bool = False, line: int = 0) -> Iterator[Place]:
    """Every node inside a function that does something, with the name of the function."""
    for field, index, child in _children(tree):
        if _only_says(tree, field, child):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_function = inside or not isinstance(child, ast.ClassDef)
            yield from _places(child, (*names, child.name), is_function, line)
            continue
        at = getattr(child, "lineno", line)
        if inside:
            yield ".".join(names), (tree, field, index), at
        yield from _places(child, names, inside, at)


def _children(node: ast.AST) -> Iterable[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            yield from ((field, n, each) for n, each in enumerate(value) if isinstance(each, ast.AST))


# Fields that hold no work, or that are worked off when the module is imported.
_NO_WORK = ("annotation", "returns", "decorator_list", "args_of_def", "msg", "exc", "cause", "type_comment")


def _only_says(parent: ast.AST, field: str, child: ast.AST) -> bool:
    definition = isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and field == "args"
    words = isinstance(parent, ast.Call) and _called(parent) in _WORDS
    return definition or words or field in _NO_WORK or isinstance(child, ast.Assert | ast.JoinedStr)


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """The code of every function, lambda and comprehension in a module or function."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from functions_of(constant)
