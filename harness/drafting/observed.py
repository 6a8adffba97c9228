"""What a recorder wrote about the calls of a program, read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument of a kind of call, as the recorder describes it.

    ``seen`` is that description: of a tensor its dtype, shape, layout, device and whether it requires grad; of another
    argument its value, or how to make it. ``ranges`` say what is special about all values of a floating tensor; None if
    nobody looked. ``least`` and ``most`` are the bounds of a tensor's values, ``apart`` the integers that are no part
    of these, and ``below`` the largest integer but one.
    """

    seen: Mapping[str, Any]
    ranges: frozenset[str] | None = None
    least: float | None = None
    most: float | None = None
    apart: frozenset[int] = frozenset()
    below: float | None = None

    @property
    def dtype(self) -> str:
        """The dtype of a tensor; empty for another argument."""
        return str(self.seen.get("tensor", ""))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.seen.get("shape", ()))

    @property
    def is_none(self) -> bool:
        return "value" in self.seen and self.seen["value"] is None

    def with_values(self, found: Mapping[str, Any]) -> Argument:
        """The argument after another look at its values."""
        ranges = frozenset(found["ranges"]) if "ranges" in found else None
        if ranges is not None and self.ranges is not None:
            ranges &= self.ranges
        most = max((n for n in (self.most, found.get("most")) if n is not None), default=None)
        lower = [n for n in (self.below, found.get("below"), self.most, found.get("most")) if n not in (None, most)]
        return replace(
            self,
            ranges=self.ranges if ranges is None else ranges,
            least=min((n for n in (self.least, found.get("least")) if n is not None), default=None),
            most=most,
            apart=self.apart.union({found["apart"]} if "apart" in found else ()),
            below=max(lower, default=None),
        )


@dataclass(frozen=True)
class Kind:
    """A kind of call: its arguments, how often it was made, and what it changed in place.

    ``random`` says whether the state of random numbers changed.
    """

    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]
    count: int = 1
    inplace: tuple[int, ...] = ()
    random: bool = False


@dataclass
class Observed:
    """A Function or operator that a program called, with the kinds of its calls.

    ``further`` counts the calls of kinds beyond those that are told apart.
    """

    name: str
    operator: str
    module: str
    qualname: str
    file: str
    main: bool
    parameters: tuple[str, ...]
    kinds: list[Kind] = field(default_factory=list)
    further: int = 0

    @property
    def calls(self) -> int:
        """The number of calls, or more if the program was killed."""
        return sum(kind.count for kind in self.kinds) + self.further


def observed(folder: Path) -> list[Observed]:
    """The Functions that all processes of a program called, in the order in which they did."""
    found: dict[str, Observed] = {}
    for path in sorted(folder.glob("*.ndjson"), key=lambda path: int(path.name.partition("-")[0])):
        for name, (about, kinds, further) in _of_process(_lines(path)).items():
            one = found.setdefault(name, Observed(name, **about))
            one.kinds += kinds
            one.further += further
    return list(found.values())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file; a process that is killed may leave half a line."""
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        yield json.loads(line)


def _of_process(lines: Iterable[dict[str, Any]]) -> dict[str, tuple[dict[str, Any], list[Kind], int]]:
    """What one process wrote: about each Function, its kinds of calls, and how many calls are of no kind."""
    about: dict[str, dict[str, Any]] = {}
    kinds: dict[str, dict[int, Kind]] = {}
    further: dict[str, int] = {}
    for line in lines:
        name = line.pop("function")
        if "module" in line:
            about[name] = {**line, "parameters": tuple(line["parameters"])}
        elif "further" in line:
            further[name] = line["further"]
        elif line.get("raised"):
            kinds.get(name, {}).pop(line["kind"], None)
        else:
            known = kinds.setdefault(name, {})
            known[line["kind"]] = _updated(known.get(line["kind"]), line)
    called = [name for name in about if kinds.get(name)]
    return {name: (about[name], list(kinds[name].values()), further.get(name, 0)) for name in called}


def _updated(kind: Kind | None, line: Mapping[str, Any]) -> Kind:
    if kind is None:
        return Kind(tuple(map(Argument, line["args"])), {n: Argument(x) for n, x in line["kwargs"].items()})
    values = line.get("values", {})
    args = tuple(x.with_values(values.get(str(n), {})) for n, x in enumerate(kind.args))
    inplace, random = tuple(line.get("inplace", kind.inplace)), line.get("random", kind.random)
    return replace(kind, args=args, count=line["count"], inplace=inplace, random=random)
