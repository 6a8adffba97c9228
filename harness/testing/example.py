"""A call on an implementation: its tensors, and runs of the Function under test on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.harness.testing.observe import Observation, changes, observed, state
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import Function, as_given
from autograd_conformance.reference.rounding import Tracked
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.layouts import place, storage, suitable


class Example:
    """A call on an implementation, with the ``expected`` result."""

    def __init__(
        self, implementation: Implementation, function: Function, cls: Any, call: Call, *,
        expected: Expected | None = None,
    ) -> None:  # fmt: skip
        self.implementation, self.function, self.cls, self.call = implementation, function, cls, call
        self.expected = expected or Expected(function, call)
        self.values, self.slots, self.track = self.expected.values, self.expected.slots, self.expected.track
        self.arguments = self.expected.arguments
        self.input_names = tuple(f"argument {i} ({function.arguments[i].name})" for i in self.slots)
        self.names = tuple(f"gradient of {name}" for name in self.input_names)
        self.output_names = tuple(f"output {i} ({o.name})" for i, o in enumerate(function.outputs))
        self.result_names = (*self.output_names, *self.names)

    def of(self, call: Call, *, expected: Expected | None = None) -> Example:
        """Another call of the same Function."""
        return Example(self.implementation, self.function, self.cls, call, expected=expected)

    def in_precision(self, dtype: str) -> Example:
        """The same call, with the error bounds of a computation in this dtype."""
        return self.of(self.call, expected=Expected(self.function, self.call, values=self.values, precision=dtype))

    def given(self, values: dict[int, Any]) -> Example:
        """The same call with other values of some tensor arguments, by their number among the tensors."""
        changed = list(self.values)
        for number, array in values.items():
            changed[self.slots[number]] = array
        return self.of(self.call, expected=Expected(self.function, self.call, values=tuple(changed)))

    def tensor(self, values: Any, dtype: str, layout: str = "contiguous") -> Any:
        """A tensor on the call's device; contiguous if the implementation lacks the dtype that the layout needs."""
        implementation, device = self.implementation, self.call.device
        layout = layout if storage(dtype, layout) in implementation.dtypes else "contiguous"
        return place(implementation.xp, lambda a, d: implementation.array(a, d, device), values, dtype, layout)

    @cached_property
    def primals(self) -> tuple[Any, ...]:
        """The tensor arguments, created once."""
        return self.fresh_primals()

    def fresh_primals(self, layout: str | None = None) -> tuple[Any, ...]:
        """New tensor arguments, each in its own layout or all in ``layout``."""
        return tuple(
            self.tensor(self.values[i], t.dtype, layout or t.layout)
            for i, t in zip(self.slots, self.call.tensors, strict=True)
        )

    def f(self, *primals: Any) -> Any:
        """The Function under test as a function of its tensor arguments; those that it changes are copied first."""
        return self.call_with(self.implementation.function(self.cls), *primals)

    def in_place(self, *primals: Any) -> Any:
        """The Function under test as a function of its tensor arguments, which it may change."""
        return self.implementation.function(self.cls)(*self.merged(primals))

    def unrecorded(self, *primals: Any) -> Any:
        """The Function under test as `f`, called with grad mode off."""
        with self.implementation.no_grad():
            return self.f(*primals)

    def call_with(self, apply: Callable[..., Any], *primals: Any) -> Any:
        """``apply`` on all arguments, with these tensors; those that the Function changes are copied."""
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
        """The call's cotangents as tensors, None for unused outputs."""
        dtypes = self.expected.output_dtypes
        layouts = ["contiguous" if c is None else c.layout for c in self.call.cotangents]
        return tuple(
            None if v is None else self.tensor(v, d, layout)
            for v, d, layout in zip(self.expected.cotangents, dtypes, layouts, strict=True)
        )

    def observed(self) -> tuple[Callable[..., Any], Observation]:
        """The Function under test as `f`, with what is observed inside it."""
        implementation = self.implementation
        needs = "needs_input_grad" in implementation.capabilities
        cls, seen = observed(self.cls, implementation.ag.Function, needs=needs)
        return lambda *primals: self.call_with(implementation.function(cls), *primals), seen

    def outputs_unrecorded(self) -> tuple[Any, ...]:
        """The outputs, with the call's mask, of a call with grad mode off."""
        return self.implementation.vjp(self.unrecorded, self.primals, track=self.track)[0]

    def outputs(self) -> tuple[Any, ...]:
        """The outputs, with the call's mask."""
        return self.implementation.vjp(self.f, self.primals, track=self.track)[0]

    def run(self, **options: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Outputs and gradients: one per tensor argument, None where it does not require grad."""
        outputs, pullback = self.implementation.vjp(self.f, self.primals, track=self.track)
        # Copies: backward may free the outputs.
        kept = tuple(map(self.implementation.xp.copy, outputs))
        return kept, pullback(self.cotangents, **options)

    def results(self, layout: str | None = None, times: int = 1) -> tuple[Any, ...]:
        """Outputs and then gradients, for inputs in their own layouts or all in ``layout``.

        The gradients are those of the last backward of so many over the same graph, each with cotangents of its own.
        """
        outputs, pullback = self.implementation.vjp(self.f, self.fresh_primals(layout), track=self.track)
        kept = tuple(map(self.implementation.xp.copy, outputs))
        given = [self.of(self.call, expected=self.expected).cotangents for _ in range(times)]
        gradients = [pullback(cotangents) for cotangents in given]
        return (*kept, *gradients[-1])

    def changed_inputs(self) -> list[str]:
        """What a call changed in the input tensors, before any backward."""
        # What an implementation passes to a function may have no values, as a tracer.
        inside = "inplace" in self.implementation.capabilities
        given = [] if inside else list(self.primals)
        before = [state(self.implementation, x) for x in given]

        def f(*primals: Any) -> Any:
            if inside:
                given.extend(primals)
                before.extend(state(self.implementation, x) for x in primals)
            return self.f(*primals)

        self.implementation.vjp(f, self.primals, track=self.track)
        rows = zip(self.input_names, before, given, strict=True)
        return [f"{name}: {each}" for name, old, x in rows for each in changes(old, state(self.implementation, x))]

    def run_in_place(self) -> tuple[tuple[Any, ...], list[Any], list[int]]:
        """The outputs of a call that changes its in-place arguments, the changed copies, and their versions before."""
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

    def near(self, tensors: Sequence[Any], expected: Sequence[Tracked | None]) -> tuple[Tracked | None, ...]:
        """The results of one run with the reference's error bounds, to compare another run with."""
        return tuple(
            None if x is None or e is None else e.around(self.implementation.numpy(x))
            for x, e in zip(tensors, expected, strict=True)
        )

    def pulled(self, pullback: Callable[..., Any], cotangents: Sequence[Any]) -> tuple[Tracked | None, ...]:
        """The gradients that a pullback returns for cotangents in NumPy, with the reference's error bounds.

        The bounds include the effect of rounding the cotangents to their dtypes.
        """
        pairs = zip(cotangents, self.expected.output_dtypes, strict=True)
        given = [None if g is None else self.expected.rounded(g, dtype) for g, dtype in pairs]
        return self.near(pullback(self.placed(cotangents)), self.expected.gradients(given))

    def placed(self, cotangents: Sequence[Any], layout: str = "contiguous") -> tuple[Any, ...]:
        """Cotangents as tensors, all in one layout."""
        pairs = zip(cotangents, self.expected.output_dtypes, strict=True)
        return tuple(None if g is None else self.tensor(g, dtype, layout) for g, dtype in pairs)

    @property
    def input_layouts(self) -> tuple[str, ...]:
        """The non-contiguous layouts in which the inputs can be stored without changing their values."""
        found = (name for t in self.call.tensors for name in suitable(t.shape, t.dtype))
        return tuple(name for name in dict.fromkeys(found) if name not in ("contiguous", "expanded"))

    @property
    def cotangent_layouts(self) -> tuple[str, ...]:
        """The non-contiguous layouts in which the cotangents can be stored without changing their values."""
        pairs = zip(self.expected.outputs, self.expected.output_dtypes, strict=True)
        found = (name for y, dtype in pairs for name in suitable(y.shape, dtype))
        return tuple(name for name in dict.fromkeys(found) if name not in ("contiguous", "expanded"))


def has_setup_context(implementation: Implementation, cls: Any) -> bool:
    """Whether a Function class defines setup_context."""
    inherited = getattr(implementation.ag.Function, "setup_context", None)
    return getattr(cls, "setup_context", None) is not inherited
