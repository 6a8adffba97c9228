"""A call made concrete: values in NumPy, tensors on the implementation, and what the reference says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from autograd_conformance.harness.observe import Observation, observed
from autograd_conformance.implementations.protocol import Description
from autograd_conformance.reference.definitions import FLOATING, Array, as_given
from autograd_conformance.reference.ladder import directions
from autograd_conformance.reference.rounding import PRECISION, Tracked, round_to
from autograd_conformance.strategies.calls import Call, Tensor, cotangent_values, tensor_values
from autograd_conformance.strategies.layouts import place, storage, suitable
from autograd_conformance.strategies.values import DOMAINS

if TYPE_CHECKING:
    from autograd_conformance.harness.subject import Subject

_REAL_OF = {"complex128": "float64", "complex64": "float32"}
_COMPLEX_OF = {real: dtype for dtype, real in _REAL_OF.items()}


class Example:
    """A call made concrete: values in NumPy, tensors on the implementation, and what the reference says."""

    def __init__(self, subject: Subject, call: Call) -> None:
        self.subject, self.call = subject, call
        self.implementation, self.function = subject.implementation, subject.function
        self.values = tensor_values(call, subject.function)
        self.slots = tuple(i for i, given in enumerate(call.args) if isinstance(given, Tensor))
        arrays = (self.function.arguments[i] for i in self.slots)
        self.arguments = tuple(a for a in arrays if isinstance(a, Array))
        self.track = tuple(t.requires_grad for t in call.tensors)
        self.precision = call.dtype
        self.input_names = tuple(f"argument {i} ({self.function.arguments[i].name})" for i in self.slots)
        self.names = tuple(f"gradient of {name}" for name in self.input_names)
        self.output_names = tuple(f"output {i} ({o.name})" for i, o in enumerate(self.function.outputs))

    @property
    def undifferentiable(self) -> list[int]:
        """The arguments that are not tensors, or not differentiable ones."""
        given = enumerate(zip(self.function.arguments, self.call.args, strict=False))
        return [n for n, (argument, value) in given if not (argument.differentiable and isinstance(value, Tensor))]

    def expected_needs(self, count: int) -> tuple[bool, ...]:
        """The call's mask, with False for the defaults of arguments that were omitted, if they are counted."""
        return self.call.mask + (False,) * (min(count, len(self.function.arguments)) - len(self.call.args))

    def lowered(self, dtype: str) -> Example:
        """The same call, with the reference bounding a computation in a lower precision."""
        other = Example(self.subject, self.call)
        other.values, other.precision = self.values, dtype
        return other

    # On the implementation.

    def tensor(self, values: Any, dtype: str, layout: str = "contiguous") -> Any:
        """A tensor on the call's device, contiguous where the implementation lacks the dtype that the layout needs."""
        implementation, device = self.implementation, self.call.device
        layout = layout if storage(dtype, layout) in implementation.dtypes else "contiguous"
        return place(implementation.xp, lambda a, d: implementation.array(a, d, device), values, dtype, layout)

    @cached_property
    def primals(self) -> tuple[Any, ...]:
        """The tensor arguments, made once."""
        return self.fresh_primals()

    def fresh_primals(self, layout: str | None = None) -> tuple[Any, ...]:
        """The tensor arguments, made anew, each in its own layout or all in the one given."""
        return tuple(
            self.tensor(self.values[i], t.dtype, layout or t.layout)
            for i, t in zip(self.slots, self.call.tensors, strict=True)
        )

    def f(self, *primals: Any) -> Any:
        """The Function under test, of its tensor arguments alone; in-place ones are copied first."""
        return self.call_with(self.implementation.function(self.subject.cls), *primals)

    def in_place(self, *primals: Any) -> Any:
        """The Function under test, of tensors that it may change."""
        return self.implementation.function(self.subject.cls)(*self.merged(primals))

    def unrecorded(self, *primals: Any) -> Any:
        """The Function under test, called while grad mode is off."""
        with self.implementation.no_grad():
            return self.f(*primals)

    def call_with(self, apply: Callable[..., Any], *primals: Any) -> Any:
        """``apply`` on all arguments, the tensors among them replaced and the in-place ones copied."""
        copy, dirty = self.implementation.xp.copy, self.function.inplace
        args = self.merged(primals)
        return apply(*(copy(x) if slot in dirty else x for slot, x in enumerate(args)))

    def merged(self, primals: Sequence[Any]) -> list[Any]:
        """All arguments of the call, with these tensors."""
        args = list(self.call.args)
        for slot, primal in zip(self.slots, primals, strict=True):
            args[slot] = primal
        return as_given(self.function.arguments, args)

    @cached_property
    def cotangents(self) -> tuple[Any, ...]:
        """The call's cotangents as tensors, None for outputs that are not used."""
        dtypes = self.output_dtypes
        layouts = ["contiguous" if c is None else c.layout for c in self.call.cotangents]
        return tuple(
            None if v is None else self.tensor(v, d, layout)
            for v, d, layout in zip(self.cotangent_values, dtypes, layouts, strict=True)
        )

    def give(self, number: int, values: Any) -> None:
        """Replace the values of a tensor argument, for the reference and for primals made from now on."""
        changed = list(self.values)
        changed[self.slots[number]] = values
        self.values = tuple(changed)
        for name in ("primals", "expected_outputs", "cotangent_values", "cotangents"):
            self.__dict__.pop(name, None)

    def observed(self) -> tuple[Callable[..., Any], Observation]:
        """The Function under test as `f`, with what it sees inside."""
        implementation = self.implementation
        needs = "needs_input_grad" in implementation.capabilities
        cls, seen = observed(self.subject.cls, implementation.ag.Function, needs=needs)
        return lambda *primals: self.call_with(implementation.function(cls), *primals), seen

    def outputs_unrecorded(self) -> tuple[Any, ...]:
        """The outputs, with the call's mask, while grad mode is off."""
        return self.implementation.vjp(self.unrecorded, self.primals, track=self.track)[0]

    def may_be_view(self, output: Any) -> bool:
        """Whether an output lies in the memory of an input, as one without elements may."""
        i = self.implementation
        if "views" not in i.capabilities:
            return False
        return 0 in i.describe(output).shape or any(i.shares_memory(output, x) for x in self.primals)

    def outputs(self) -> tuple[Any, ...]:
        """The outputs, with the call's mask."""
        return self.implementation.vjp(self.f, self.primals, track=self.track)[0]

    def run(self, **options: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Outputs and gradients: one per tensor argument, None where it does not require grad."""
        outputs, pullback = self.implementation.vjp(self.f, self.primals, track=self.track)
        return outputs, pullback(self.cotangents, **options)

    def results(self, layout: str | None = None) -> tuple[Any, ...]:
        """Outputs, and then gradients, of inputs in their own layouts or all in the one given."""
        outputs, pullback = self.implementation.vjp(self.f, self.fresh_primals(layout), track=self.track)
        return (*outputs, *pullback(self.cotangents))

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the outputs and of the gradients."""
        return (*self.output_names, *self.names)

    def run_watching(self) -> tuple[list[Any], list[Any]]:
        """The states of the tensors that the Function was given, before the call and after its backward."""
        given, before = list[Any](), list[Any]()

        def f(*primals: Any) -> Any:
            given.extend(primals)
            before.extend(map(self.state, primals))
            return self.f(*primals)

        _, pullback = self.implementation.vjp(f, self.primals, track=self.track)
        pullback(self.cotangents)
        return before, [self.state(x) for x in given]

    @property
    def unused(self) -> list[int]:
        """The differentiable outputs without a cotangent, of a call that has a backward."""
        runs = any(self.track) and any(g is not None for g in self.cotangent_values)
        rows = enumerate(zip(self.function.outputs, self.cotangent_values, strict=True))
        return [n for n, (output, g) in rows if runs and output.differentiable and g is None]

    def run_in_place(self) -> tuple[tuple[Any, ...], list[Any], list[int]]:
        """Outputs of a call that changes copies of the in-place arguments, those copies, and the versions that they
        had before."""
        implementation, dirty = self.implementation, list[Any]()
        versions: list[int] = []

        changed = [self.slots.index(slot) for slot in self.function.inplace]

        def f(*primals: Any) -> Any:
            copies = [implementation.xp.copy(x) if i in changed else x for i, x in enumerate(primals)]
            dirty.extend(copies[i] for i in changed)
            versions.extend(map(implementation.version, dirty))
            return self.in_place(*copies)

        outputs, _ = implementation.vjp(f, self.primals, track=self.track)
        return outputs, dirty, versions

    def sharing_memory(self, gradients: Sequence[Any], others: Sequence[Any]) -> list[str]:
        """The inputs and outputs whose memory a gradient uses, named with it."""
        named = list(zip((*self.input_names, *self.output_names), others, strict=False))
        shares = self.implementation.shares_memory
        return [
            f"{other} and the {name}"
            for name, gradient in zip(self.names, gradients, strict=True)
            for other, tensor in named
            if gradient is not None and shares(gradient, tensor)
        ]

    def copied(self, tensors: Sequence[Any]) -> list[Any]:
        """The values of the tensors, in NumPy; None for None."""
        return [None if x is None else self.implementation.numpy(x) for x in tensors]

    def other_value(self, tensor: Any) -> float:
        """A value to overwrite a tensor with: one that is not drawn, or an index that is always valid."""
        return 7 if self.implementation.describe(tensor).dtype in FLOATING else 0

    def state(self, tensor: Any) -> Any:
        """All that an untouched tensor keeps: values, version, shape, dtype, device, strides, requires_grad."""
        i = self.implementation
        if tensor is None:
            return None
        values = i.numpy(tensor).tobytes()
        return (*i.describe(tensor), i.version(tensor), i.strides(tensor), i.requires_grad(tensor), values)

    # According to the reference.

    def reference_arguments(self, *, exact: bool = False) -> list[Any]:
        """All arguments for the reference, errors tracked unless ``exact``; None for omitted tensors."""
        found = []
        for number, argument in enumerate(self.function.arguments):
            given = number < len(self.values)
            if not given:
                found.append(None if isinstance(argument, Array) else argument.default)
                continue
            value = self.values[number]
            floating = isinstance(self.call.args[number], Tensor) and argument.differentiable and not exact
            found.append(self._start(value) if floating else value)
        return found

    def _start(self, value: Any) -> Tracked:
        """An input of the reference, off by a rounding if the computation starts in a lower precision."""
        start = Tracked.exact(value, self.precision)
        if self.precision != self.call.dtype:
            start.error = start.precision.unit * np.abs(value)
        return start

    @cached_property
    def expected_outputs(self) -> tuple[Tracked, ...]:
        """The reference outputs, errors tracked; of integer outputs the values, exact."""
        outputs = self.function.forward(*self.reference_arguments())
        return tuple(y if isinstance(y, Tracked) else Tracked.exact(y, self.precision) for y in outputs)

    @cached_property
    def output_dtypes(self) -> tuple[str, ...]:
        dtype = self.call.dtype
        pairs = zip(self.expected_outputs, self.function.outputs, strict=True)
        return tuple(output.dtypes.get(dtype) or _dtype_of(y.value, dtype) for y, output in pairs)

    @property
    def output_descriptions(self) -> list[Description]:
        """Shape, dtype and device that the outputs should have."""
        device, usual = self.call.device, self.call.dtype
        rows = zip(self.expected_outputs, self.function.outputs, self.output_dtypes, strict=True)
        return [Description(y.shape, d if o.casts else _dtype_of(y.value, usual), device) for y, o, d in rows]

    @cached_property
    def cotangent_values(self) -> tuple[Any, ...]:
        """The call's cotangents in NumPy, None for outputs that are not used."""
        return cotangent_values(self.call, [y.shape for y in self.expected_outputs], self.output_dtypes)

    def near(self, tensors: Sequence[Any], expected: Sequence[Tracked | None]) -> tuple[Tracked | None, ...]:
        """What the implementation gave once, with the reference's error bounds, to compare another run with."""
        return tuple(
            None if x is None or e is None else e.around(self.implementation.numpy(x))
            for x, e in zip(tensors, expected, strict=True)
        )

    def pulled(self, pullback: Callable[..., Any], cotangents: Sequence[Any]) -> tuple[Tracked | None, ...]:
        """The gradients that a pullback gives for cotangents in NumPy, with the reference's error bounds.

        They cover what rounding the cotangents to their dtypes does to the gradients.
        """
        pairs = zip(cotangents, self.output_dtypes, strict=True)
        given = [None if g is None else self._rounded(g, dtype) for g, dtype in pairs]
        return self.near(pullback(self.placed(cotangents)), self.expected_gradients(given))

    def _rounded(self, values: Any, dtype: str) -> Tracked:
        """Values that were computed in double precision, off by that and by being rounded to a dtype."""
        error = np.abs(values - round_to(values, dtype)) + PRECISION["float64"].unit * np.abs(values)
        return Tracked(values, error, PRECISION[self.precision])

    def placed(self, cotangents: Sequence[Any], layout: str = "contiguous") -> tuple[Any, ...]:
        """Cotangents as tensors, all in one layout."""
        pairs = zip(cotangents, self.output_dtypes, strict=True)
        return tuple(None if g is None else self.tensor(g, dtype, layout) for g, dtype in pairs)

    @property
    def input_layouts(self) -> tuple[str, ...]:
        """The layouts in which the inputs can lie without change of value, but for the contiguous one."""
        found = (name for t in self.call.tensors for name in suitable(t.shape, t.dtype))
        return tuple(name for name in dict.fromkeys(found) if name not in ("contiguous", "expanded"))

    @property
    def cotangent_layouts(self) -> tuple[str, ...]:
        """The layouts in which the cotangents can lie without change of value, but for the contiguous one."""
        pairs = zip(self.expected_outputs, self.output_dtypes, strict=True)
        found = (name for y, dtype in pairs for name in suitable(y.shape, dtype))
        return tuple(name for name in dict.fromkeys(found) if name not in ("contiguous", "expanded"))

    def dense(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """Cotangents with zeros for the differentiable outputs that are not used."""
        rows = zip(cotangents, self.function.outputs, self.expected_outputs, strict=True)
        return tuple(np.zeros(y.shape, y.dtype) if g is None and o.differentiable else g for g, o, y in rows)

    def constant_cotangents(self, value: float) -> tuple[Any, ...]:
        """The same number for every element of every differentiable output."""
        rows = zip(self.function.outputs, self.expected_outputs, strict=True)
        return tuple(np.full(y.shape, value, y.dtype) if o.differentiable else None for o, y in rows)

    def other_cotangent_values(self) -> tuple[Any, ...]:
        """More cotangents for the same outputs."""
        other = replace(self.call, seed=self.call.seed + 2, cotangents=self.call.cotangents)
        other = replace(other, cotangents=tuple(c and replace(c, fill="normal") for c in other.cotangents))
        return cotangent_values(other, [y.shape for y in self.expected_outputs], self.output_dtypes)

    @staticmethod
    def blended(first: Sequence[Any], second: Sequence[Any], weight: float = 2.0) -> tuple[Any, ...]:
        """``weight * first + second``, in double precision."""
        pairs = zip(first, second, strict=True)
        return tuple(None if a is None or b is None else weight * a + b for a, b in pairs)

    def points(self) -> tuple[Any, ...]:
        """The tensor arguments that require grad, in NumPy; None for the others."""
        return tuple(self.values[i] if t else None for i, t in zip(self.slots, self.track, strict=True))

    def at(self, points: Sequence[Any]) -> list[Any]:
        """All arguments for the reference, those that require grad replaced."""
        arguments = self.reference_arguments(exact=True)
        for slot, point in zip(self.slots, points, strict=True):
            if point is not None:
                arguments[slot] = point
        return arguments

    def reference_outputs(self, points: Sequence[Any]) -> tuple[Any, ...]:
        """The reference forward, whose derivative is wanted, as a function of the arguments that require grad."""
        return tuple((self.function.soft or self.function.forward)(*self.at(points)))

    def directions(self, points: Sequence[Any]) -> tuple[Any, ...]:
        """Directions in which points may move within their arguments' domains; see `reference.ladder.directions`.

        The points are those of the tensor arguments, and may be followed by others.
        """
        found = directions(tuple(points), seed=self.call.seed)
        return (*self.within(found[: len(self.slots)]), *found[len(self.slots) :])

    def within(self, moves: Sequence[Any]) -> tuple[Any, ...]:
        """What is left of moves of the tensor arguments in their domains: of those of a symmetric matrix, say."""
        pairs = zip(self.arguments, moves, strict=True)
        return tuple(None if u is None else _within(a, u) for a, u in pairs)

    def all_finite(self, tensors: Sequence[Any]) -> bool:
        """Whether every element of every tensor is finite."""
        return all(bool(np.all(np.isfinite(self.implementation.numpy(x)))) for x in tensors)

    def expected_gradients(self, cotangents: Sequence[Any] | None = None) -> tuple[Tracked | None, ...]:
        """The reference VJP for each tensor argument, None where the argument does not require grad."""
        full = self.reference_gradients(self.cotangent_values if cotangents is None else cotangents)
        return tuple(g if tracked else None for g, tracked in zip(full, self.track, strict=True))

    def expected_results(self) -> tuple[Tracked | None, ...]:
        """The reference outputs, and then its VJP for each tensor argument."""
        return (*self.expected_outputs, *self.expected_gradients())

    def reference_gradients(self, cotangents: Sequence[Any], *, exact: bool = False) -> tuple[Any, ...]:
        """The reference VJP for each tensor argument; a cotangent None counts as zero."""
        dense = [
            self._dense(g, output.differentiable, y, exact)
            for g, output, y in zip(cotangents, self.function.outputs, self.expected_outputs, strict=True)
        ]
        gradients = self.function.vjp(tuple(dense), *self.reference_arguments(exact=exact))
        return tuple(self._lift(gradients[i], exact) for i in self.slots)

    def _dense(self, cotangent: Any, differentiable: bool, output: Tracked, exact: bool) -> Any:
        if not differentiable:
            return None
        if isinstance(cotangent, Tracked):
            return cotangent
        values = np.zeros(output.shape, output.dtype) if cotangent is None else cotangent
        return values if exact else Tracked.exact(values, self.precision)

    def _lift(self, gradient: Any, exact: bool) -> Any:
        if gradient is None or exact or isinstance(gradient, Tracked):
            return gradient
        return Tracked.exact(gradient, self.precision)


def _within(argument: Array, move: Any) -> Any:
    move = DOMAINS[argument.values].tangent(move)
    if argument.bounds is None or not move.size:
        return move
    low, high = argument.bounds
    # By a power of two, which rounds nothing.
    return move * 2.0 ** min(0.0, np.floor(np.log2((high - low) / np.max(np.abs(move)))))


def _dtype_of(value: Any, dtype: str) -> str:
    """The dtype that an output has when the call's is ``dtype`` and the reference gives ``value``."""
    if value.dtype.kind == "c":
        return _COMPLEX_OF.get(dtype, dtype)
    return _REAL_OF.get(dtype, dtype) if value.dtype.kind == "f" else value.dtype.name
