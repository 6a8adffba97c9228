"""Drafts from a Function's code: its signature, defaults and annotations, and how its methods use the arguments."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from autograd_conformance.harness.drafting.drafts import Draft, Import, Part, Passed
from autograd_conformance.harness.drafting.recorder.arguments import named

_LENGTHS = (2, 3, 4, 5, 6, 7, 8)
# Shapes of one or more float tensors, likely ones first; the last stands for all further tensors.
_SHAPES: tuple[tuple[str, ...], ...] = (
    ("...",),
    ("...,n",),
    ("n,m", "k,m", "k"),
    ("n,m", "m,k", "k"),
    ("n,m",),
    ("n,m", "m"),
    ("n,m", "n"),
    ("n,m,k",),
    ("n,m,k", "k"),
    ("n,m,k", "m"),
    ("n,m,k", "n,k,l"),
    ("n,m,k,l",),
    ("n,m,k,l", "m"),
    ("n,m", "k,m", "n,k"),
    ("n,n",),
    ("n,n", "n"),
    ("n",),
    ("n", "n,n"),
    ("n", "n,m"),
    ("n", "m"),
    # Points, quaternions and other vectors of one length.
    *((f"n,{length}",) for length in _LENGTHS),
    ("n,m,3",),
    ("~",),
    *((f"n,{one}", f"n,{other}") for one in _LENGTHS for other in _LENGTHS if one != other),
)
# What follows the brackets, for all float tensors.
_DOMAINS = ("", " full_rank", " symmetric", " spd", " positive", "(0.25..0.75)")
# Those of square matrices, for a forward that refuses others.
_STRUCTURES = ("", " full_rank", " symmetric", " spd")
# What an integer tensor may be beside a float tensor: its dimensions and values.
_INTEGERS = (
    ("k", "(0..n-1)"),
    ("n", "(0..m-1)"),
    ("n,m", "(0..m-1)"),
    ("...", "(0..1)"),
    ("n", "(0..1)"),
    ("n,k", "(0..n-1)"),
)
# A number is two if it can be: with 1 alone a forgotten factor does not show.
# The sorts of arguments that are no tensors, by the type of a default or an annotation.
_NUMBERS = {
    "int": ("1 | 2", "1", "2", "0", "-1", "3", "4"),
    "float": ("0.5 | 2.0", "0.5", "1.0", "2.0"),
    "bool": ("bool", "True", "False"),
    "str": (),
}
_LABELS = r".*(idx|index|indices|ids|labels?|targets?|edges?)"
_IGNORING = re.compile("ignore|pad_|padding_i")
# The sorts that names suggest: the first that matches counts.
_HINTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(dim|dims|axis|axes)", ("-1", "0", "1")),
    (r"(eps|epsilon|tol)", ("1e-05",)),
    (r"(min|a_min|min_.*|.*_min|lower|low|lo|qmin)", ("0.0", "-1", "float tensor")),
    (r"(max|a_max|max_.*|.*_max|upper|high|hi|qmax)", ("0.5 | 2.0", "1 | 2", "float tensor")),
    (_LABELS, ("int tensor", "float tensor", "1")),
    (r".*mask", ("bool tensor", "binary tensor", "float tensor", "None")),
    (r"(training|train|inplace|causal|is_.*|use_.*|return_.*|.*_flag|affine|normalize)", ("bool",)),
    (r"(reduction|mode)", ("'mean' | 'sum'", "'mean'", "'sum'")),
    (r"(alpha|beta|gamma|lambd?a?_?|scale|slope|temp|temperature|factor|threshold|k|n|num_.*|n_.*|.*_size|groups?"
     r"|stride|padding|dilation|steps?|iters?|max_iter|order|bits?)",
     ("1 | 2", "0.5 | 2.0", "1", "0.5", "2", "float tensor", "0", "4")),
)  # fmt: skip
_TENSOR = "float tensor"
_INTEGER = "int tensor"
_OBJECT = "an object"
_TENSORS = (_TENSOR, _INTEGER, "bool tensor")
# What follows the brackets of these.
_FLOATS = {_TENSOR: "", "optional tensor": "?", "binary tensor": " binary"}
_USUAL = (_TENSOR, "1 | 2", "0.5 | 2.0", "1", "0.5", "int tensor", "bool", "bool tensor", "None", "2", "-1")
# So many of the most likely combinations of sorts are tried.
_MOST_SORTS = 60
# The most declarations of one Function, for the values of its flags.
_MOST_CASES = 4
# The mark of entries that do not count, unless something says another one.
_IGNORED = -100
# The module with the decorator that says that a backward cannot be differentiated.
_DECORATES = "torch.autograd.function"
_COMPARING = ("eq", "ne")
_JAXTYPING = re.compile(r"(Float|Int|Bool|Complex)\w*\[.*?(?P<quote>['\"])(?P<dims>.*?)(?P=quote)\]")


@dataclass
class _Used:
    """How the methods of a Function use a parameter of forward."""

    as_tensor: bool = False
    dirty: bool = False
    kept: bool = False
    compared: list[str] = field(default_factory=list)
    # The integers, and the names of parameters and attributes, that it is compared with.
    marks: list[ast.expr] = field(default_factory=list)
    decides: bool = False
    without_gradient: bool = False


def once(function: Any) -> bool:
    """Whether backward says that it cannot be differentiated."""
    method = getattr(function, "backward", None)
    while method is not None:
        if getattr(method, "__globals__", {}).get("__name__") == _DECORATES and hasattr(method, "__wrapped__"):
            return True
        method = getattr(method, "__wrapped__", None)
    return False


def flags(function: Any) -> list[dict[str, str]]:
    """The values of the flags on which depends what forward changes in place, one for each declaration."""
    try:
        taken = _taken(function)
    except (TypeError, ValueError):
        return [{}]
    used = _uses(function, [p.name for p in taken])
    if not any(each.dirty for each in used.values()):
        return [{}]
    deciding = {name: each.compared or ["True", "False"] for name, each in used.items() if each.decides}
    return [dict(zip(deciding, values, strict=True)) for values in itertools.product(*deciding.values())][:_MOST_CASES]


def drafts(function: Any, given: Mapping[str, str] | None = None) -> Iterator[Draft]:
    """The declarations that the code of a Function class or a callable suggests, the most likely first.

    Those of ``given`` flags have these values. Raises ValueError if no declaration can describe its arguments.
    """
    given = given or {}
    taken = _taken(function)
    used = _uses(function, [p.name for p in taken])
    marks = _marks(function, used, {p.name: p.default for p in taken})
    sorts = [[given[p.name]] if p.name in given else _sorts(p, used[p.name], marks) for p in taken]
    dirty = tuple(n for n, p in enumerate(taken) if used[p.name].dirty)
    objects = {n: _object(p) for n, p in enumerate(taken) if sorts[n] == [_OBJECT]}
    shaped = (_shaped([p.name for p in taken], chosen) for chosen in _by_likelihood(sorts))
    for draft in _in_turn(shaped):
        parts = tuple(objects.get(n, part) for n, part in enumerate(draft.parts))
        # Of what a flag decides, the calls tell.
        for inplace in dict.fromkeys([(), dirty] if given else [dirty]):
            yield replace(draft, parts=parts, inplace=inplace)


def _taken(function: Any) -> list[inspect.Parameter]:
    """The parameters that apply passes. Raises ValueError if there are none, or it cannot pass one."""
    parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.values())
    if isinstance(function, type) and _takes_ctx(function):
        parameters = parameters[1:]
    required = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if required:
        raise ValueError(f"forward has keyword-only arguments ({', '.join(required)}), which apply does not pass")
    if not parameters:
        raise ValueError("forward takes no arguments")
    # Of any number of arguments, two.
    several = [p.replace(name=f"{p.name}{n}") for p in parameters if p.kind is p.VAR_POSITIONAL for n in (0, 1)]
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)] + several


@dataclass(frozen=True)
class _Marks:
    """Integers that mark entries which do not count: by the parameter of the entries, and by the one that is it."""

    entries: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def marking(function: Any, draft: Draft) -> Draft:
    """The draft in which integers may also have the value that the code compares them with."""
    values = {part.name: _literal(part.text) for part in draft.parts if part.text}
    entries = _marks(function, _uses(function, [part.name for part in draft.parts]), values).entries
    return replace(draft, parts=tuple(p.marked(entries[p.name]) if p.name in entries else p for p in draft.parts))


def _literal(text: str) -> Any:
    """The value of a text; None if it is no single one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _marks(function: Any, used: Mapping[str, _Used], values: Mapping[str, Any]) -> _Marks:
    """The marks that the code compares entries with: numbers, constants of the module, or other parameters.

    ``values`` are those of the parameters that are known, or their defaults.
    """
    found = _Marks()
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
        labels = [name for name in used if re.fullmatch(_LABELS, name.lower()) and name not in found.numbers]
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


def _in_turn(groups: Iterator[Iterator[Draft]]) -> Iterator[Draft]:
    """The drafts of all groups, of likely groups more and earlier.

    The first group has a turn each time, the second every second time, and so on. A group begins once the first has had
    four more turns.
    """
    begun: dict[int, Iterator[Draft]] = {}
    for turn in itertools.count(1):
        if turn % 4 == 1 or not begun:
            begun.update((len(begun) + 1, group) for group in itertools.islice(groups, 1))
        if not begun:
            return
        for number, group in list(begun.items()):
            if turn % number == 0:
                drafts = list(itertools.islice(group, 1))
                yield from drafts
                if not drafts:
                    del begun[number]


def _takes_ctx(cls: Any) -> bool:
    """Whether forward has ctx as its first parameter: it has, unless there is a setup_context of the class's own."""
    return not any("setup_context" in vars(base) for base in cls.__mro__ if not base.__module__.startswith("torch."))


def _sorts(parameter: inspect.Parameter, used: _Used, marks: _Marks) -> list[str]:
    """The sorts that an argument may be, the most likely first."""
    found = _unmarked(parameter, used)
    if parameter.name in marks.numbers:
        return list(dict.fromkeys([repr(marks.numbers[parameter.name]), *found]))
    mark = marks.entries.get(parameter.name)
    marked = {_INTEGER: [f"{_INTEGER} | {mark}", _INTEGER]} if mark is not None else {}
    return [each for sort in found for each in marked.get(sort, [sort])]


def _unmarked(parameter: inspect.Parameter, used: _Used) -> list[str]:
    """The sorts of an argument, none of them with a mark."""
    annotated = _annotated(parameter.annotation)
    if annotated:
        return annotated
    if parameter.default is not parameter.empty:
        default = parameter.default
        kind = type(default).__name__
        if default is None:
            return ["optional tensor", "None"]
        if kind == "bool":
            return ["bool", repr(default)]
        if kind not in ("int", "float", "str", "tuple"):
            return [_OBJECT]
        return [*_doubled(default), repr(default)]
    if used.compared:
        return [" | ".join(used.compared), *used.compared]
    hinted = next((list(sorts) for pattern, sorts in _HINTS if re.fullmatch(pattern, parameter.name.lower())), None)
    usual = hinted or list(_USUAL)
    if used.as_tensor:
        tensors = [sort for sort in usual if "tensor" in sort]
        return list(dict.fromkeys([*tensors, _TENSOR, _INTEGER, "bool tensor"]))
    if used.without_gradient or (used.kept and not hinted):
        return sorted(usual, key=lambda sort: sort == _TENSOR)
    return usual


def _object(parameter: inspect.Parameter) -> Part:
    """An argument that is its default, which is no plain value."""
    words = named(parameter.default)
    missing = "" if words else f"nothing says how to make the default of {parameter.name} again"
    imports = tuple(Import(*each) for each in words.get("imports", ()))
    expression = words.get("expression", "")
    made = f"Factory(lambda seed: {expression})" if words.get("made") else expression
    value = Passed(parameter.default)
    return Part(parameter.name, expression=made, imports=imports, missing=missing, seen="its default", value=value)


def _doubled(default: Any) -> list[str]:
    """A number or its double."""
    return [f"{default!r} | {2 * default!r}"] if isinstance(default, int | float) and default else []


def _annotated(annotation: Any) -> list[str]:
    """The sorts that an annotation allows; empty if it says nothing."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") or str(annotation)
    text = text if isinstance(annotation, type) else str(annotation)
    shaped = _JAXTYPING.search(text)
    if shaped is not None:
        kind = {"Float": "float", "Int": "int", "Bool": "bool", "Complex": "complex"}[shaped[1]]
        return [f"{kind}[{','.join(shaped['dims'].split())}]"]
    optional = ["None"] if "None" in text or "Optional" in text else []
    if "Tensor" in text:
        return ["optional tensor", *optional, *_TENSORS] if optional else list(_TENSORS)
    name = annotation.__name__ if isinstance(annotation, type) else text.replace("Optional[", "").strip("[]'\" |None")
    return [*_NUMBERS.get(name, ()), *optional] if name in _NUMBERS and name != "str" else []


def _uses(function: Any, names: Sequence[str]) -> dict[str, _Used]:
    """How the code uses the parameters of forward, as far as its source can be read."""
    used = {name: _Used() for name in names}
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


def _note(node: ast.AST, used: dict[str, _Used]) -> None:
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


def _is_flag(test: ast.expr, used: _Used) -> bool:
    """Whether a condition is a parameter itself, its contrary, or compares it with texts."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(inner, ast.Name) or (isinstance(inner, ast.Compare) and bool(used.compared))


def _note_comparison(one: ast.expr, other: ast.expr, used: dict[str, _Used]) -> None:
    if isinstance(one, ast.Name) and one.id in used:
        if isinstance(other, ast.Constant) and isinstance(other.value, str):
            used[one.id].compared.append(repr(other.value))
        elif not isinstance(other, ast.Call):
            used[one.id].marks.append(other)


def _note_gradients(tree: ast.AST, used: Sequence[_Used]) -> None:
    """The parameters for which backward always returns None."""
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    tuples = [each.elts for each in returned if isinstance(each, ast.Tuple) and len(each.elts) == len(used)]
    if tuples and len(tuples) == len(returned):
        for each, column in zip(used, zip(*tuples, strict=True), strict=True):
            each.without_gradient = all(isinstance(node, ast.Constant) and node.value is None for node in column)


def _by_likelihood(sorts: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Combinations of sorts that have a float tensor, the most likely first."""
    choices = itertools.product(*(range(len(each)) for each in sorts))
    likely = sorted(itertools.islice(choices, 20_000), key=sum)
    combined = (tuple(each[n] for each, n in zip(sorts, chosen, strict=True)) for chosen in likely)
    differentiable = (
        each for each in combined if any(s == _TENSOR or s.startswith(("float[", "complex[")) for s in each)
    )
    yield from itertools.islice(differentiable, _MOST_SORTS)


def _shaped(names: Sequence[str], sorts: Sequence[str]) -> Iterator[Draft]:
    """The drafts of these sorts, with each choice of shapes and domains that has as many tensors."""
    floats = sum(sort in _FLOATS for sort in sorts)
    others = {_INTEGER: _INTEGERS, "bool tensor": (("...", ""), ("n", ""), ("n,m", ""))}
    kinds = [sort.partition(" | ")[0] for sort in sorts]
    integers = next((others[kind] for kind in kinds if kind in others), (("", ""),))
    shapes = [each for each in _SHAPES if len(each) <= max(floats, 1)]
    for domain, shape, (dims, tail) in itertools.product(_DOMAINS, shapes, integers):
        given = _dimensions(shape, floats)
        if _goes_together(shape, dims, tail, domain):
            parts = tuple(_part(n, s, given, domain, dims, tail) for n, s in zip(names, sorts, strict=True))
            yield Draft(parts)


def _dimensions(shape: tuple[str, ...], count: int) -> Iterator[str]:
    return iter([*shape, *[shape[-1]] * count])


def _goes_together(shape: tuple[str, ...], dims: str, tail: str, domain: str) -> bool:
    known = set(re.findall("[a-z]", "".join(shape)))
    bounded = set(re.findall(r"[a-z]", tail))
    ragged = ("..." in shape[0] or "~" in shape[0]) and bool(bounded or set(re.findall("[a-z]", dims)))
    square = domain not in _STRUCTURES[1:] or "n,n" in shape
    return not ragged and bounded <= known and square and not ("~" in shape[0] and dims)


def _part(name: str, sort: str, shapes: Iterator[str], domain: str, dims: str, tail: str) -> Part:
    if sort == _TENSOR:
        shape = next(shapes)
        fitting = "" if domain in _STRUCTURES and shape != "n,n" else domain
        structured = fitting in _STRUCTURES[1:]
        seen = "forward refuses other matrices" if structured else ""
        return Part(name, "float", tuple(shape.split(",")), (fitting,), seen=seen)
    if sort in _FLOATS:
        return Part(name, "float", tuple(next(shapes).split(",")), (_FLOATS[sort],))
    kind, _, mark = sort.partition(" | ")
    if kind in (_INTEGER, "bool tensor"):
        part = Part(name, kind.partition(" ")[0], tuple(dims.split(",")), (tail,))
        return replace(part.marked(int(mark)), tails=(part.marked(int(mark)).tails[0],)) if mark else part
    return Part(name, text=sort)
