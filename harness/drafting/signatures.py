"""Drafts from a Function's code: its signature, defaults and annotations, and how its methods use the arguments."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograd_conformance.harness.drafting.drafts import Draft, Import, Part, Passed
from autograd_conformance.harness.drafting.uses import LABELS, Marks, Used, marks, uses
from autograd_conformance.harness.inside.arguments import named

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
    (LABELS, ("int tensor", "float tensor", "1")),
    (r"(weights?|w|bias|b|x|y|inputs?)", ("float tensor", "1 | 2", "0.5 | 2.0", "None", "2")),
    # Where a mask of numbers is refused, it is one of booleans.
    (r".*mask", ("binary tensor", "bool tensor", "float tensor", "None")),
    (r"(p|prob|.*_prob|probability|rate|.*_rate|drop.*|momentum|smoothing)", ("0.25 | 0.5", "0.5", "float tensor")),
    (r"(training|train|inplace|causal|is_.*|use_.*|return_.*|.*_flag|affine|normalize)", ("bool",)),
    (r"(reduction|mode)", ("'mean' | 'sum'", "'mean'", "'sum'")),
    (r"(alpha|beta|gamma|lambd?a?_?|scale|slope|temp|temperature|factor|threshold|k|n|num_.*|n_.*|.*_size|groups?"
     r"|stride|padding|dilation|steps?|iters?|max_iter|order|bits?)",
     ("1 | 2", "0.5 | 2.0", "1", "0.5", "2", "float tensor", "0", "4")),
)  # fmt: skip
_TENSOR = "float tensor"
_BOOLEAN = "bool tensor"
_BINARY = "binary tensor"
_INTEGER = "int tensor"
_OBJECT = "an object"
_TENSORS = (_TENSOR, _INTEGER, _BOOLEAN)
# What follows the brackets of these.
_FLOATS = {_TENSOR: "", "optional tensor": "?"}
# The most tensors that are tried with shapes that broadcast.
_MOST_BROADCAST = 3
_USUAL = (_TENSOR, "1 | 2", "0.5 | 2.0", "1", "0.5", "int tensor", "bool", "bool tensor", "None", "2", "-1")
# So many of the most likely combinations of sorts are tried.
_MOST_SORTS = 60
# The most declarations of one Function, for the values of its flags.
_MOST_CASES = 4
_JAXTYPING = re.compile(r"(Float|Int|Bool|Complex)\w*\[.*?(?P<quote>['\"])(?P<dims>.*?)(?P=quote)\]")


def flags(function: Any) -> list[dict[str, str]]:
    """The values of the flags on which depends what forward changes in place, one for each declaration."""
    try:
        taken = _taken(function)
    except (TypeError, ValueError):
        return [{}]
    used = uses(function, [p.name for p in taken])
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
    used = uses(function, [p.name for p in taken])
    known = marks(function, used, {p.name: p.default for p in taken})
    sorts = [[given[p.name]] if p.name in given else _sorts(p, used[p.name], known) for p in taken]
    dirty = tuple(n for n, p in enumerate(taken) if used[p.name].dirty)
    objects = {n: _object(p) for n, p in enumerate(taken) if sorts[n] == [_OBJECT]}
    shaped = (_shaped([p.name for p in taken], chosen) for chosen in _by_likelihood(sorts))
    uncertain = {p.name for p in taken if used[p.name].without_gradient and _is_open(p)}
    for draft in _in_turn(shaped):
        parts = tuple(objects.get(n, part) for n, part in enumerate(draft.parts))
        parts = tuple(replace(p, is_guess=True) if p.name in uncertain and not p.kind else p for p in parts)
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


def _sorts(parameter: inspect.Parameter, used: Used, marks: Marks) -> list[str]:
    """The sorts that an argument may be, the most likely first."""
    found = _unmarked(parameter, used)
    if parameter.name in marks.numbers:
        return list(dict.fromkeys([repr(marks.numbers[parameter.name]), *found]))
    mark = marks.entries.get(parameter.name)
    marked = {_INTEGER: [f"{_INTEGER} | {mark}", _INTEGER]} if mark is not None else {}
    return [each for sort in found for each in marked.get(sort, [sort])]


def _unmarked(parameter: inspect.Parameter, used: Used) -> list[str]:
    """The sorts of an argument, none of them with a mark."""
    annotated = _annotated(parameter.annotation)
    if annotated:
        return annotated
    if parameter.default is not parameter.empty:
        default = parameter.default
        kind = type(default).__name__
        if default is None:
            found = [sort for sort in map(_optional, _hinted(parameter)) if sort != "None"]
            return list(
                dict.fromkeys([*found[:2], *["optional tensor"] * (not found), "None", *found, "optional tensor"])
            )
        if kind == "bool":
            return ["bool", repr(default)]
        if kind not in ("int", "float", "str", "tuple"):
            return [_OBJECT]
        return [*_doubled(default), repr(default)]
    if used.compared:
        return [" | ".join(used.compared), *used.compared]
    hinted = _hinted(parameter)
    usual = hinted or list(_USUAL)
    if used.as_tensor or used.with_gradient:
        tensors = [sort for sort in usual if "tensor" in sort]
        return list(dict.fromkeys([*tensors, _TENSOR, _INTEGER, _BOOLEAN]))
    if hinted[:1] != [_TENSOR] and (used.without_gradient or (used.kept and not hinted)):
        return sorted(usual, key=lambda sort: sort == _TENSOR)
    return usual


def _is_open(parameter: inspect.Parameter) -> bool:
    """Whether nothing but the code says what an argument is."""
    return not _annotated(parameter.annotation) and parameter.default is parameter.empty and not _hinted(parameter)


def _hinted(parameter: inspect.Parameter) -> list[str]:
    """The sorts that the name of a parameter suggests."""
    return next((list(sorts) for pattern, sorts in _HINTS if re.fullmatch(pattern, parameter.name.lower())), [])


def _optional(sort: str) -> str:
    """The sort of an argument that may also be None."""
    if sort == _TENSOR:
        return "optional tensor"
    return f"optional {sort}" if "tensor" in sort else sort if sort == "None" else f"{sort} | None"


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
    masks = (("...", ""), ("n", ""), ("n,m", ""), ("n,m,k", ""))
    others = {_INTEGER: _INTEGERS, _BOOLEAN: masks, _BINARY: masks}
    kinds = [sort.partition(" | ")[0].removeprefix("optional ") for sort in sorts]
    integers = next((others[kind] for kind in kinds if kind in others), (("", ""),))
    shapes = [each for each in _SHAPES if len(each) <= max(floats, 1)]
    shapes = [each for each in shapes if each != ("~",) or floats <= _MOST_BROADCAST]
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
    plain = kind.removeprefix("optional ")
    if plain in (_INTEGER, _BOOLEAN, _BINARY):
        tails = (f"{tail}{'?' * (kind != plain)}{' binary' * (plain == _BINARY)}",)
        part = Part(name, plain.partition(" ")[0].replace("binary", "float"), tuple(dims.split(",")), tails)
        return replace(part.marked(int(mark)), tails=(part.marked(int(mark)).tails[0],)) if mark else part
    return Part(name, text=sort)
