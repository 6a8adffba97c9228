"""Drafts from a Function's code: its signature, defaults and annotations, and how its methods use the arguments."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
# The sorts that names suggest: the first that matches counts.
_HINTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(dim|dims|axis|axes)", ("-1", "0", "1")),
    (r"(eps|epsilon|tol)", ("1e-05",)),
    (r"(min|a_min|min_.*|.*_min|lower|low|lo|qmin)", ("0.0", "-1", "float tensor")),
    (r"(max|a_max|max_.*|.*_max|upper|high|hi|qmax)", ("0.5 | 2.0", "1 | 2", "float tensor")),
    (r".*(idx|index|indices|ids|labels?|targets?|edges?)", ("int tensor", "float tensor", "1")),
    (r".*mask", ("bool tensor", "binary tensor", "float tensor", "None")),
    (r"(training|train|inplace|causal|is_.*|use_.*|return_.*|.*_flag|affine|normalize)", ("bool",)),
    (r"(reduction|mode)", ("'mean' | 'sum'", "'mean'", "'sum'")),
    (r"(alpha|beta|gamma|lambd?a?_?|scale|slope|temp|temperature|factor|threshold|k|n|num_.*|n_.*|.*_size|groups?"
     r"|stride|padding|dilation|steps?|iters?|max_iter|order|bits?)",
     ("1 | 2", "0.5 | 2.0", "1", "0.5", "2", "float tensor", "0", "4")),
)  # fmt: skip
_TENSOR = "float tensor"
_OBJECT = "an object"
_TENSORS = (_TENSOR, "int tensor", "bool tensor")
# What follows the brackets of these.
_FLOATS = {_TENSOR: "", "optional tensor": "?", "binary tensor": " binary"}
_USUAL = (_TENSOR, "1 | 2", "0.5 | 2.0", "1", "0.5", "int tensor", "bool", "bool tensor", "None", "2", "-1")
# So many of the most likely combinations of sorts are tried.
_MOST_SORTS = 60
_JAXTYPING = re.compile(r"(Float|Int|Bool|Complex)\w*\[.*?(?P<quote>['\"])(?P<dims>.*?)(?P=quote)\]")


@dataclass
class _Used:
    """How the methods of a Function use a parameter of forward."""

    as_tensor: bool = False
    dirty: bool = False
    kept: bool = False
    compared: list[str] = field(default_factory=list)
    without_gradient: bool = False


def drafts(function: Any) -> Iterator[Draft]:
    """The declarations that the code of a Function class or a callable suggests, the most likely first.

    Raises ValueError if no declaration can describe its arguments.
    """
    forward = getattr(function, "forward", function)
    parameters = list(inspect.signature(forward).parameters.values())
    if isinstance(function, type) and _takes_ctx(function):
        parameters = parameters[1:]
    required = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if required:
        raise ValueError(f"forward has keyword-only arguments ({', '.join(required)}), which apply does not pass")
    if not parameters:
        raise ValueError("forward takes no arguments")
    # Of any number of arguments, two.
    several = [p.replace(name=f"{p.name}{n}") for p in parameters if p.kind is p.VAR_POSITIONAL for n in (0, 1)]
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)] + several
    used = _uses(function, [p.name for p in taken])
    sorts = [_sorts(p, used[p.name]) for p in taken]
    inplace = tuple(n for n, p in enumerate(taken) if used[p.name].dirty)
    objects = {n: _object(p) for n, p in enumerate(taken) if sorts[n] == [_OBJECT]}
    shaped = (_shaped([p.name for p in taken], chosen) for chosen in _by_likelihood(sorts))
    for draft in _in_turn(shaped):
        parts = tuple(objects.get(n, part) for n, part in enumerate(draft.parts))
        yield replace(draft, parts=parts, inplace=inplace)


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


def _sorts(parameter: inspect.Parameter, used: _Used) -> list[str]:
    """The sorts that an argument may be, the most likely first."""
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
        return list(dict.fromkeys([*tensors, _TENSOR, "int tensor", "bool tensor"]))
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
    elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id in used:
        used[node.left.id].compared += [
            repr(each.value)
            for each in node.comparators
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]


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
    others = {"int tensor": _INTEGERS, "bool tensor": (("...", ""), ("n", ""), ("n,m", ""))}
    integers = next((others[sort] for sort in sorts if sort in others), (("", ""),))
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
    if sort in ("int tensor", "bool tensor"):
        return Part(name, sort.partition(" ")[0], tuple(dims.split(",")), (tail,))
    return Part(name, text=sort)
