"""What can be found out about a user's Function by calling it: nothing of this has to be declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.example import Example
from autograd_conformance.harness.outcomes import told
from autograd_conformance.harness.own.declaration import Declaration, Own, batches
from autograd_conformance.harness.own.native import Native, adapted
from autograd_conformance.harness.own.oracle import Oracle
from autograd_conformance.harness.own.staleness import stale
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.definitions import FLOATING, Array, Output, Shape
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, recast
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.values import DOMAINS

# Calls that are tried before the declaration is said not to fit.
_TRIED = 24

# Calls with which a dtype is tried.
_SAMPLES = 3


@dataclass(frozen=True)
class Facts:
    """What was found out: outputs, dtypes, whether backward gets None for unused outputs, whether it batches.

    ``refused`` says, for what the Function does not take, how it says so; ``composite`` whether the reference is of
    built-in operations.
    """

    outputs: tuple[Output, ...]
    dtypes: tuple[str, ...]
    materialize: bool = True
    composite: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    is_class: bool = True
    stale: tuple[str, ...] = ()
    holds_others: bool = False
    batches: bool = False

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Facts:
        """The facts, of what `dataclasses.asdict` makes of them."""
        outputs, dtypes, stale = tuple(Output(**y) for y in found["outputs"]), tuple(found["dtypes"]), found["stale"]
        return cls(**{**found, "outputs": outputs, "dtypes": dtypes, "stale": tuple(stale)})

    def lines(self) -> Iterator[str]:
        """The facts for people."""
        several = f"{len(self.outputs)} outputs" if len(self.outputs) > 1 else "one output"
        constant = [str(n) for n, output in enumerate(self.outputs) if not output.differentiable]
        yield several + (f", of which {', '.join(constant)} not differentiable" if constant else "")
        yield f"takes {', '.join(self.dtypes)}"
        for what, why in self.refused.items():
            yield f"does not take {what}: {why}"
        if self.holds_others:
            yield "holds tensors that require grad beside its arguments, whose gradients are not looked at"
        if self.batches:
            yield "has a rule for vmap"
        if not self.materialize:
            yield "backward gets None for outputs that are not used"
        if not self.is_class:
            yield "no Function class, so that what ctx holds and what backward returns cannot be looked at"


def discover(
    declaration: Declaration,
    implementation: Implementation,
    *,
    without: Mapping[str, str] | None = None,
    note: Callable[[Call], None] = lambda _: None,
) -> Facts:
    """Call the Function on a few simple arguments. Raises UsageProblem if it does not fit its declaration.

    ``without`` are dtypes that it is known not to take, with the reason; ``note`` is told of each call before it runs.
    """
    refused = dict(without or {})
    function = declaration.sketch(implementation)
    function = replace(function, dtypes=tuple(d for d in function.dtypes if d not in refused))
    mine = adapted(implementation, declaration)
    subject = Subject(mine, function, implementation.devices()[0])
    working, failures = _working(subject, note)
    if not working:
        call, why = failures[0]
        raise declaration.problem(
            f"it refuses every call that the declaration describes; the first, {call}, with {why}{_hint(why)}"
        )
    tried = {d: [_tried(subject, recast(call, d), note) for call in working[:_SAMPLES]] for d in function.dtypes}
    # That backward raises is a fault, unless it does so in some dtypes only.
    spoilt = all(not isinstance(each, _Found) or each.raised for found in tried.values() for each in found)
    dtypes: list[str] = []
    kinds: list[_Found] = []
    for dtype, found in tried.items():
        wrong = [each if isinstance(each, str) else each.raised for each in found]
        wrong = [
            why for each, why in zip(found, wrong, strict=True) if why and not (spoilt and isinstance(each, _Found))
        ]
        if wrong:
            refused[dtype] = wrong[0]
        else:
            dtypes.append(dtype)
            kinds.append(next(each for each in found if isinstance(each, _Found)))
    if not dtypes:
        raise declaration.problem(
            f"it takes none of the dtypes {', '.join(function.dtypes)}: {next(iter(refused.values()))}"
        )
    outputs = _outputs(declaration, kinds[0], dict(zip(dtypes, kinds, strict=True)))
    first = recast(working[0], dtypes[0])
    untreated = Subject(adapted(implementation, declaration, as_declared=False), function, subject.device)
    oracle = Oracle(
        mine, mine.function(subject.cls), function.arguments, outputs=[o.differentiable for o in outputs],
        dtype=dtypes[0], device=subject.device,
    )  # fmt: skip
    _verify_soft(declaration, Example(subject, first))
    examples = [Example(untreated, recast(call, dtypes[0])) for call in working[:_TRIED]]
    return Facts(
        outputs,
        tuple(dtypes),
        _materializes(subject, first, outputs),
        _composite(declaration, subject, first),
        refused,
        not isinstance(subject.cls, Native),
        tuple(stale(declaration, examples, oracle)),
        _holds_others(examples[0]),
        batches(subject.cls, implementation),
    )


def _hint(why: str) -> str:
    return "; if it changes an argument on purpose, declare inplace=(its position,)" if "in-place" in why else ""


def _simple_calls(function: Own) -> Iterator[Call]:
    """Calls without what may be refused for a good reason: tensors that have elements, contiguous, double precision."""
    shapes = [s for s in shape_tuples(function) if all(0 not in shape for shape in s)]
    step = max(1, len(shapes) // _TRIED)
    statics = [a for a in function.arguments if not isinstance(a, Array)]
    for number, sides in enumerate([*shapes[:4], *shapes[4::step]][: 2 * _TRIED]):
        given = iter(sides)
        choices = [a.choices(sides) for a in statics]
        drawn = iter([c[number % len(c)] for c in choices])
        args = [
            _simple_tensor(a, next(given), function.dtypes[0]) if isinstance(a, Array) else next(drawn)
            for a in function.arguments
        ]
        yield Call(function.name, tuple(args), (Cotangent(),), seed=number)


def _simple_tensor(argument: Array, shape: Shape, dtype: str) -> Tensor:
    fill = "ones" if argument.dtype is not None else DOMAINS[argument.values].fills[-1]
    return Tensor(shape, argument.dtype or dtype, argument.differentiable, fill=fill)


def _working(subject: Subject, note: Callable[[Call], None]) -> tuple[list[Call], list[tuple[Call, str]]]:
    """Some of the calls that the Function takes, and those that it refuses, with the reason.

    Calls of which backward raises are taken if there are no others.
    """
    working, raising, failures = [], [], []
    assert isinstance(subject.function, Own)
    for call in _simple_calls(subject.function):
        found = [_tried(subject, recast(call, dtype), note) for dtype in subject.function.dtypes[:2]]
        if any(isinstance(each, _Found) and not each.raised for each in found):
            working.append(call)
        elif any(isinstance(each, _Found) for each in found):
            raising.append(call)
        else:
            failures.append((call, "; with ".join(dict.fromkeys(str(each) for each in found))))
        if len(working) >= _TRIED // 2:
            break
    return working or raising, failures


@dataclass(frozen=True)
class _Found:
    """What one call gave: for each output whether it is differentiable and its dtype, and how backward raised if so."""

    differentiable: tuple[bool, ...]
    dtypes: tuple[str, ...]
    raised: str = ""


def _tried(subject: Subject, call: Call, note: Callable[[Call], None]) -> _Found | str:
    """What a call gives, or how it is refused."""
    note(call)
    implementation = subject.implementation
    example = Example(subject, call)
    try:
        outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
        kinds = [implementation.describe(y) for y in outputs]
        flags = tuple(_differentiable(implementation, y, kind.dtype) for y, kind in zip(outputs, kinds, strict=True))
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        return _said(raised)
    found = _Found(flags, tuple(kind.dtype for kind in kinds))
    try:
        ones = [example.tensor(_ones(kind), kind.dtype) if f else None for f, kind in zip(flags, kinds, strict=True)]
        if any(flags):
            pullback(ones)
    except Exception as raised:  # noqa: BLE001
        return replace(found, raised=_said(raised))
    return found


def _said(raised: Exception) -> str:
    return told(raised)[:300]


def _ones(kind: Any) -> Any:
    return np.ones(kind.shape)


def _differentiable(implementation: Implementation, tensor: Any, dtype: str) -> bool:
    if "requires_grad" in implementation.capabilities:
        return implementation.requires_grad(tensor)
    return dtype in FLOATING


def _outputs(declaration: Declaration, first: _Found, found: dict[str, _Found]) -> tuple[Output, ...]:
    if not any(first.differentiable):
        raise declaration.problem(
            "it returns nothing differentiable: no output requires grad though every tensor argument does; is it "
            "called through apply, and is its output neither detached nor an integer?"
        )
    if len({len(each.dtypes) for each in found.values()}) > 1:
        raise declaration.problem("how many outputs it returns depends on the dtype")
    return tuple(
        Output(
            name="output" if len(first.dtypes) == 1 else f"output{n}",
            differentiable=differentiable,
            dtypes={dtype: each.dtypes[n] for dtype, each in found.items()},
            casts=declaration.casts,
        )
        for n, differentiable in enumerate(first.differentiable)
    )


def _materializes(subject: Subject, call: Call, outputs: Sequence[Output]) -> bool:
    """Whether backward gets zeros, not None, for an output that is not used."""
    if "materialize" not in subject.implementation.capabilities or isinstance(subject.cls, Native):
        return True
    function = replace(subject.function, outputs=tuple(outputs))
    example = Example(Subject(subject.implementation, function, subject.device), call)
    f, seen = example.observed()
    implementation = subject.implementation
    try:
        found, pullback = implementation.vjp(f, example.primals, track=example.track)
        kinds = [implementation.describe(y) for y in found]
        used = next(n for n, o in enumerate(outputs) if o.differentiable)
        pullback([example.tensor(_ones(k), k.dtype) if n == used else None for n, k in enumerate(kinds)])
    except Exception:  # noqa: BLE001 - the tests will say what is wrong
        pass
    return all(g is not None for g in seen.cotangents)


def _verify_soft(declaration: Declaration, example: Example) -> None:
    """Raise UsageProblem for a soft function that cannot take the place of the forward."""
    soft = declaration.soft
    if soft is None:
        return
    try:
        outputs, _ = example.implementation.vjp(
            lambda *xs: soft(*example.merged(xs)), example.primals, track=example.track
        )
        shapes = [example.implementation.describe(y).shape for y in outputs]
    except Exception as raised:  # noqa: BLE001 - a user's function may raise anything
        raise declaration.problem(f"soft= does not take what the Function takes: {_said(raised)}") from None
    wanted = [example.implementation.describe(y).shape for y in example.outputs()]
    if shapes != wanted:
        raise declaration.problem(f"soft= returns shapes {shapes}, where the Function returns {wanted}")


def _holds_others(example: Example) -> bool:
    """Whether an output requires grad though no argument does."""
    implementation = example.implementation
    if "requires_grad" not in implementation.capabilities:
        return False
    outputs, _ = implementation.vjp(example.f, example.primals, track=[False] * len(example.track))
    return any(map(implementation.requires_grad, outputs))


def _composite(declaration: Declaration, subject: Subject, call: Call) -> bool:
    """Whether the reference is made of built-in operations on tensors; else it is NumPy."""
    reference = declaration.reference
    if reference is None:
        return True
    example = Example(subject, call)
    errors = []
    keep = subject.implementation.is_tensor
    try:
        outputs, _ = subject.implementation.vjp(
            lambda *xs: reference(*example.merged(xs)), example.primals, track=example.track
        )
        if all(map(keep, outputs)):
            return True
        errors.append("of tensors it returned no tensors")
    except Exception as raised:  # noqa: BLE001
        errors.append(f"of tensors it raised {told(raised)}")
    try:
        values = as_tuple(reference(*example.reference_arguments(exact=True)))
        if not any(map(keep, values)) and all(hasattr(y, "shape") for y in values):
            return False
        errors.append("of NumPy arrays it returned no arrays")
    except Exception as raised:  # noqa: BLE001
        errors.append(f"of NumPy arrays it raised {told(raised)}")
    raise declaration.problem(f"its reference takes neither tensors nor arrays: {'; '.join(errors)}")
