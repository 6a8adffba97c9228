"""A failing call as a reproduction script shows it: where the Function comes from, names, and values."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from autograd_conformance.harness.scripts.names import Names
from autograd_conformance.harness.testing import kinks, transforms
from autograd_conformance.harness.testing.example import Example, has_setup_context
from autograd_conformance.harness.testing.expected import without_gradient
from autograd_conformance.harness.testing.relations import Related, Relation, words
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.scripting import Named, NoScript, OtherCall, Shown
from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.strategies.calls import Call, Tensor


def renamed(source: Source, names: Names) -> Source:
    """The source with words of ``names`` for what it imports."""
    lines, known = names.imported(source.lines)
    expressions: dict[str, Any] = {
        key: re.sub(r"^\w+", lambda found: known.get(found[0], found[0]), getattr(source, key))
        for key in ("apply", "declaration", "reference", "soft")
    }
    return replace(source, lines=lines, **expressions)


@dataclass
class Pieces:
    """A call on its way into a script: the call with its names, and the tensors that the script has to make."""

    implementation: Implementation
    function: Function
    cls: Any
    call: Call
    source: Source
    finding: Mapping[str, Any]
    names: Names
    prepared: list[str] = field(default_factory=list)
    tensors: list[Named] = field(default_factory=list)
    _outputs: list[str] = field(default_factory=list)

    @cached_property
    def example(self) -> Example:
        """The call on the implementation."""
        return Example(self.implementation, self.function, self.cls, self.call)

    def _tensor(self, name: str, values: Any, dtype: str, layout: str = "contiguous", track: bool = False) -> Named:
        made = Named(self.names.new(name), values, dtype, layout, track)
        self.tensors.append(made)
        return made

    def shown(self) -> Shown:
        """The call in names."""
        call, function, example = self.call, self.function, self.example
        choices, component = self.finding.get("choices", {}), self.finding.get("component", {})
        batch = None
        if transforms.AXES in choices:
            batch = transforms.Batch(example, choices[transforms.AXES], choices[transforms.SIZE])
        arguments, tensors = self._arguments(batch)
        count, own, places = len(function.outputs), self.source.call, example.expected
        self._outputs += [self.names.new(*(("y", "out", "result") if count == 1 else (f"y{n}",))) for n in range(count)]
        kind, number = self._place(component)
        return Shown(
            apply=self.source.apply,
            arguments=tuple(arguments),
            slots=example.slots,
            tensors=tuple(tensors),
            outputs=tuple(self._outputs),
            differentiable=tuple(output.differentiable for output in function.outputs),
            described=tuple(example.expected.descriptions),
            cotangents=tuple(self._cotangents(batch, choices.get(transforms.SIZE))),
            undifferentiable=tuple(places.undifferentiable if own is None else without_gradient(places)),
            device=call.device,
            inplace=function.inplace,
            separate=has_setup_context(self.implementation, self.cls),
            materialize=function.materialize,
            unpacking=self._unpacking(),
            own=own is not None,
            backward_only=self.source.backward_only,
            kind=kind,
            number=number,
            finding=self.finding,
            component=component,
            choices=choices,
            reference=self.source.reference,
            literal=self.source.call is None or (self.source.literal_outputs and kind == "output"),
            slope_of=self._slope_of(),
            wide=function.dtypes[0],
            cast=self.implementation.autocast_dtypes[0],
            more=self._more,
        )

    def _slope_of(self) -> str:
        """What finite differences are taken of, where the finding depends on the Function itself."""
        if self.source.call is None or (self.source.literal_outputs and not self.source.soft):
            return ""
        return self.source.soft or self.source.reference or self.source.apply

    def _place(self, component: Mapping[str, Any]) -> tuple[str, int]:
        """Whether an output or a gradient is wrong, and its number."""
        example, what = self.example, component.get("what")
        if what in example.output_names:
            return "output", example.output_names.index(what)
        if what in example.names:
            return "gradient", example.names.index(what)
        if "number" in component:
            return "gradient", component["number"]
        tracked = [n for n, t in enumerate(example.track) if t]
        used = any(g is not None for g in self.call.cotangents)
        return ("gradient", tracked[0]) if tracked and used else ("output", 0)

    def _arguments(self, batch: Any) -> tuple[list[str], list[Named]]:
        expressions, tensors = list[str](), list[Named]()
        pairs = zip(self.function.arguments, self.call.args, self.example.values, strict=False)
        for slot, (argument, given, values) in enumerate(pairs):
            if not isinstance(given, Tensor):
                expressions.append(self._static(slot, argument, given).replace("{", "{{").replace("}", "}}"))
                continue
            number, layout = len(tensors), given.layout
            if batch is not None:
                values, layout = batch._stacked(slot, batch.axes[number]), "contiguous"
            tensors.append(self._tensor(argument.name, values, given.dtype, layout, given.requires_grad))
            expressions.append(self._wrapped(slot, argument, number))
        return expressions, tensors

    def _wrapped(self, slot: int, argument: Any, number: int) -> str:
        if getattr(argument, "wrap", None) is None:
            return f"{{{number}}}"
        if slot < len(self.source.given) and isinstance(self.source.given[slot], str):
            return f"{{{number}}}.to_sparse()"
        return f"{self._declared()}.arguments[{slot}].wrap({{{number}}})"

    def _static(self, slot: int, argument: Any, choice: Any) -> str:
        """The expression of an argument that is not a tensor."""
        if isinstance(argument, Array) or argument.build in (None, copy.deepcopy):
            return re.sub(r"\binf\b", "float('inf')", repr(choice)) if isinstance(choice, float) else repr(choice)
        given = self.source.given[slot]
        if not hasattr(given, "make") and not hasattr(given, "build"):
            # An object that was declared as it is.
            return repr(given) if _is_literal(given) else f"{self._declared()}.arguments[{slot}]"
        method = "make" if hasattr(given, "make") else "build"
        name = self.names.new(argument.name)
        if self.implementation.script is not None:
            self.prepared.append(self.implementation.script.seed.format(seed=choice))
        self.prepared.append(f"{name} = {self._declared()}.arguments[{slot}].{method}({choice!r})")
        return name

    def _declared(self) -> str:
        if not self.source.declaration:
            raise NoScript("an argument is made by the declaration, which is not a global name of a module")
        return self.source.declaration

    def _cotangents(self, batch: Any, size: int | None) -> Iterator[Named | None]:
        example, one = self.example, len(self.function.outputs) == 1
        values = example.expected.cotangents
        if batch is not None:
            columns = zip(*(member.expected.cotangents for member in batch.members), strict=True)
            values = tuple(None if g[0] is None else np.stack(g) for g in columns)
        elif size is not None:
            values = transforms.stacked_cotangents(example, size)
        plain = batch is not None or size is not None
        for n, (value, dtype, given) in enumerate(
            zip(values, example.expected.output_dtypes, self.call.cotangents, strict=True)
        ):
            if value is None or given is None:
                yield None
            else:
                layout = "contiguous" if plain else given.layout
                yield self._tensor("g" if one else f"g{n}", value, dtype, layout)

    def _unpacking(self) -> str:
        """How the outputs come back; a user's Function is called once to see it."""
        usual = "single" if len(self.function.outputs) == 1 else "tuple"
        if self.source.call is None:
            return usual
        try:
            found = self.source.call(*self.example.merged(self.example.fresh_primals()))
        except Exception:  # noqa: BLE001 - that may be the failure
            return usual
        if self.implementation.is_tensor(found):
            return "single"
        return "tuple" if all(map(self.implementation.is_tensor, found)) else "mixed"

    # What some properties need.

    @property
    def _more(self) -> Mapping[str, Callable[[], Any]]:
        return {
            "names": self._changeable,
            "other cotangents": self._other_cotangents,
            "directions": lambda: self._along(
                self.example.expected.directions(self.example.expected.points()), "direction"
            ),
            "moved entries": self._moved_entries,
            "second directions": self._second_directions,
            "weights": lambda: self._along(transforms.drawn_weights(self.example), "weight"),
            "parts": self._parts,
            "tangents": lambda: self._along(transforms.drawn_tangents(self.example), "tangent"),
        }

    def _along(self, arrays: Sequence[Any], word: str) -> list[str]:
        """Tensors for those arguments that require grad."""
        pairs = zip(self.tensors[: len(self.example.slots)], arrays, strict=False)
        return [self._tensor(f"{word}_{t.name}", u, t.dtype).name for t, u in pairs if u is not None]

    def _parts(self) -> list[OtherCall]:
        """The calls that a relation of a user's Function makes of this one."""
        relations: Mapping[str, Relation] = self.function.relations  # type: ignore[attr-defined]
        choices = self.finding["choices"]
        relation = next(each for each in relations.values() if each.label in choices)
        parts = relation.ways(self.function, self.call)[choices[relation.label]]
        related, found = Related(self.example, relation, parts), list[OtherCall]()
        for part in parts:
            views = related.views(part, [y.shape for y in related.of(part).expected.outputs])
            statics = {slot: repr(value) for slot, value in part.statics.items()}
            tensors = tuple((number, words(view)) for number, view in part.tensors)
            found.append(OtherCall(tensors, tuple(map(words, views)), statics, part.sign))
        return found

    def _moved_entries(self) -> list[str]:
        places = [(number, tuple(entries)) for number, entries in self.finding["component"]["moved"]]
        return self._along(kinks.direction(self.example, places), "direction")

    def _second_directions(self) -> list[str]:
        example = self.example
        loss = self.finding["choices"]["loss"]
        free = [n for n, g in enumerate(example.expected.cotangents) if g is not None] if loss == "cotangents" else []
        found = example.expected.directions(
            (*example.expected.points(), *(example.expected.cotangents[n] for n in free))
        )
        count = len(example.slots)
        names = self._along(found[:count], "direction")
        rest = zip(free, found[count:], strict=True)
        return names + [self._tensor(f"direction_g{n}", u, example.expected.output_dtypes[n]).name for n, u in rest]

    def _other_cotangents(self) -> list[str]:
        rows = enumerate(
            zip(self.example.expected.other_cotangents(), self.example.expected.output_dtypes, strict=True)
        )
        one = len(self.function.outputs) == 1
        return [self._tensor("h" if one else f"h{n}", v, dtype).name for n, (v, dtype) in rows if v is not None]

    def _changeable(self) -> dict[str, str]:
        """The names in the script of what may be changed in place, by those of the suite."""
        example = self.example
        given = [t.name for t in self.tensors[: len(example.slots)]]
        return dict(zip((*example.input_names, *example.output_names), (*given, *self._outputs), strict=True))


def names_in(text: str) -> frozenset[str]:
    """The names that a program uses."""
    return frozenset(re.findall(r"\b[A-Za-z_]\w*", text))


def _is_literal(value: Any) -> bool:
    try:
        again = ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return False
    return type(again) is type(value) and bool(again == value)
