"""Discovery: the facts about a user's Function that a few calls show, so that nobody has to declare them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.bounds.sweeping import largest_errors, maps_entries
from autograd_conformance.harness.check.declaration.calling import Native, adapted
from autograd_conformance.harness.check.declaration.classes import batches, has_jvp, overrides
from autograd_conformance.harness.check.declaration.declaration import REQUESTS, Declaration, Own
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.interpreted import kernels
from autograd_conformance.harness.check.declaration.naming import arity
from autograd_conformance.harness.check.discovery.coarseness import coarse
from autograd_conformance.harness.check.discovery.interpreter import BFLOAT16, GARBLED, garbled
from autograd_conformance.harness.check.discovery.nondeterminism import draws, reads_new_memory
from autograd_conformance.harness.check.discovery.references import composite_reference, refers_in
from autograd_conformance.harness.check.discovery.resizing import resizes
from autograd_conformance.harness.check.discovery.returned import (
    differentiable,
    least_precise,
    left_alone,
    ones,
    returned,
    strange,
    unreadable,
)
from autograd_conformance.harness.check.discovery.staleness import stale
from autograd_conformance.harness.check.oracle.oracle import Oracle
from autograd_conformance.harness.check.refusals import cost
from autograd_conformance.harness.check.refusals.declined import declined
from autograd_conformance.harness.check.refusals.exceptions import mistake
from autograd_conformance.harness.check.refusals.layouts import refused_layouts
from autograd_conformance.harness.check.refusals.long_tensors import long_shapes, simple_call
from autograd_conformance.harness.check.refusals.refused import emptied
from autograd_conformance.harness.outcomes import AlwaysWrong, one_line
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed, taken
from autograd_conformance.harness.testing.relations import Related, Unfit
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.misbehaving import Misbehaves
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import FLOATING, REAL_OF, Output
from autograd_conformance.strategies.calls import Call, Cotangent, recast
from autograd_conformance.strategies.shapes import MAX_FIXED, shape_tuples

# The most calls to try, and to use.
_TRIED = 24

# Calls to try in each dtype.
_SAMPLES = 3

_DOUBLE = ("float64", "complex128")


def discover(
    declaration: Declaration,
    implementation: Implementation,
    *,
    without: Mapping[str, str] | None = None,
    note: Callable[[Call], None] = lambda _: None,
    errors: bool = True,
    empty: bool = True,
    timed: bool = False,
) -> Facts:
    """Call the Function on a few simple arguments. Raises UsageProblem if it does not fit its declaration.

    ``without`` has the dtypes that it is known not to take, with the reason. ``note`` gets each call before it runs.
    With ``empty`` tensors without elements are tried. With ``errors`` the largest errors over all numbers of half
    precision are measured, too: they are only shown. If it is ``timed``, a slow Function gets fewer examples.
    """
    with kept(implementation):
        found = _discovered(declaration, implementation, dict(without or {}), note, errors, empty, timed)
    return replace(found, own_faults=tuple(taken()))


def _discovered(
    declaration: Declaration, implementation: Implementation, refused: dict[str, str], note: Callable[[Call], None],
    errors: bool, empty: bool, timed: bool,
) -> Facts:  # fmt: skip
    before = kernels()
    function = declaration.sketch(implementation)
    function = replace(function, dtypes=tuple(d for d in function.dtypes if d not in refused))
    cls, canonical = function.body(None, None), declaration.up_to
    mine = adapted(implementation, declaration.treatment, cls, canonical=canonical)
    subject = Subject(mine, function, implementation.devices()[0])
    working, failures = _working(subject, note)
    uncheckable = [why for _, why in failures if isinstance(why, _Uncheckable)]
    if uncheckable:
        raise declaration.problem(uncheckable[0])
    if not working and not failures:
        raise declaration.problem(
            "no call is possible: each that was tried has a length below 0, "
            f"or a tensor of more than {MAX_FIXED} elements"
        )
    if not working:
        call, why = failures[0]
        if all(isinstance(each, _Misbehaviour) for _, each in failures):
            raise AlwaysWrong(f"{declaration.placed}: wrong in every simple call; the first is {call}: {why}")
        raise declaration.problem(
            f"{_miscounted(declaration, cls, implementation)}every simple call that the declaration describes raises; "
            f"the first is {call}, with {why}{_hint(why)}"
        )
    tried = {
        d: [_tried(subject, recast(call, d, function), note) for call in working[:_SAMPLES]] for d in function.dtypes
    }
    # What forward does not refuse is a fault for the tests to report: a mistake there, and an exception of backward.
    kinds: dict[str, _Found] = {}
    mistaken: list[str] = []
    for dtype, found in tried.items():
        wrong = [each for each in found if isinstance(each, str)]
        if any(isinstance(why, _Mistake) for why in wrong):
            mistaken.append(dtype)
        elif wrong:
            refused[dtype] = wrong[0]
        else:
            kinds[dtype] = min((each for each in found if isinstance(each, _Found)), key=lambda each: each.seconds)
    interpreted = kernels() > before
    if interpreted and {BFLOAT16, "float32"} <= kinds.keys() and garbled(subject, working[:_SAMPLES]):
        del kinds[BFLOAT16]
        refused[BFLOAT16] = GARBLED
    dtypes = (*kinds, *mistaken)
    if not kinds:
        raise declaration.problem(
            f"it raises in every dtype of {', '.join(function.dtypes)}; the first error is "
            f"{next(each for found in tried.values() for each in found if isinstance(each, str))}"
        )
    simple = [recast(call, dtypes[0], function) for call in working[:_TRIED]]
    if not declaration.stochastic and any(draws(subject.made(call)) for call in simple):
        drawing = _discovered(declaration.drawing(), implementation, refused, note, errors, empty, timed)
        return replace(drawing, draws=True)
    outputs = _outputs(declaration, kinds[dtypes[0]], kinds)
    first = recast(working[0], dtypes[0], function)
    untreated = Subject(
        adapted(implementation, declaration.untreated, cls, canonical=canonical), function, subject.device
    )
    oracle = Oracle(
        mine, mine.function(subject.cls), function.arguments, outputs=[o.differentiable for o in outputs],
        dtype=dtypes[0], device=subject.device,
    )  # fmt: skip
    _verify_soft(declaration, subject.made(first))
    _verify_inplace(declaration, list(map(subject.made, simple)))
    composite = composite_reference(declaration, subject, simple, len(outputs))
    examples = [untreated.made(call) for call in simple]
    so_far = Facts(outputs, dtypes, composite=composite)
    own = replace(function, forward=oracle.forward, vjp=oracle.vjp, outputs=outputs, dtypes=dtypes, facts=so_far)
    known = replace(subject, function=own)
    _verify_relations(declaration, list(map(known.made, simple)))
    narrow = _coarse(declaration, known, working, dtypes)
    forward = least_precise(dtypes[0], [o.dtypes.get(dtypes[0], "") for o in outputs if o.differentiable])
    if set(narrow) & set(known.made(first).output_names):
        forward = least_precise(forward, ["float32"])
    back = {dtype: returned(untreated, recast(first, dtype, function), outputs) for dtype in dtypes}
    wide = {dtype: ["float32"] if narrow and dtype in _DOUBLE else [] for dtype in dtypes}
    least = {dtype: least_precise(dtype, [*back[dtype].dtypes, *wide[dtype]]) for dtype in dtypes}
    new_memory = "new_memory" in implementation.capabilities
    reads = new_memory and any(reads_new_memory(subject.made(call)) for call in simple)
    refusals, some_tried = declined(known, dtypes[0], note)
    # Chance numbers say nothing about a map, nor about a length.
    maps, some_numbers = (False, "") if declaration.stochastic or reads else maps_entries(known)
    paced = timed and declaration.examples is None and min(each.seconds for each in kinds.values()) > cost.FAST
    share = declaration.examples or 1.0
    usual = cost.typical(list(map(known.made, simple))) if paced or share < 1 else 0.0
    share = cost.share(usual) if paced else share
    long, some_lengths = ((), "") if reads else long_shapes(known, usual)
    # A slow kernel may forget the end of a block.
    reads |= new_memory and usual > 0 and any(reads_new_memory(subject.made(simple_call(own, each))) for each in long)
    ends = tuple(Cotangent() if output.differentiable else None for output in outputs)
    whole = [replace(call, cotangents=ends) for call in working[:_TRIED]]
    half = [known.made(recast(call, "float16", own)) for call in whole if "float16" in dtypes]
    return Facts(
        outputs,
        dtypes,
        _materializes(subject, first, outputs),
        composite,
        refused,
        refers_in=refers_in(declaration, subject, first, composite=composite),
        refused_layouts=() if declaration.stochastic else tuple(refused_layouts(subject, simple)),
        is_class=not isinstance(subject.cls, Native),
        foretells=implementation.foretells(declaration.function),
        unpassed=tuple(implementation.keywords_of(declaration.function)),
        stale=tuple(stale(declaration, examples, oracle)),
        holds_others=_holds_others(examples[0]),
        any_gradient=declaration.surrogate and declaration.soft is None,
        compared=declaration.reference is not None and composite,
        batches=batches(subject.cls, implementation),
        jvp=has_jvp(subject.cls, implementation),
        reads_new_memory=reads,
        coarse=tuple(narrow),
        comes_back={dtype: other for dtype, other in least.items() if other != dtype},
        computes_in=REAL_OF.get(forward, forward),
        sparse=any(each.sparse for each in back.values()),
        resizes=not declaration.stochastic and not reads and resizes(list(map(known.made, simple))),
        maps_entries=maps,
        has_formula=bool(half) and not declaration.stochastic and None not in map(gradients_of_formula, half),
        sweeps=tuple(largest_errors(known)) if maps and errors else (),
        long_shapes=long,
        share=share,
        paced=paced and share < 1,
        interpreted=interpreted,
        emptied=emptied(known, note) if empty else (),
        declined=refusals,
        tried_all=not some_tried,
        cut=tuple(filter(None, (some_lengths, some_numbers, some_tried))),
        asked=tuple(test for word in declaration.also for test in REQUESTS[word]),
    )


def _coarse(declaration: Declaration, subject: Subject, calls: Sequence[Call], dtypes: Sequence[str]) -> list[str]:
    wide = next((d for d in dtypes if d in _DOUBLE), None)
    if wide is None or declaration.surrogate:
        return []
    return coarse([subject.made(recast(call, wide, subject.function)) for call in calls[:_TRIED]])


def _miscounted(declaration: Declaration, cls: object, implementation: Implementation) -> str:
    """How many arguments forward takes, if fewer or more are declared, as the beginning of a sentence."""
    is_class = not isinstance(cls, Native)
    called = getattr(cls, "forward", None) if is_class else declaration.function
    taken = arity(called, int(is_class and not overrides(cls, implementation, "setup_context")))
    count = len(declaration.arguments)
    if taken is None or taken[0] <= count <= taken[1]:
        return ""
    least, most = taken
    takes = f"{least}" if least == most else f"at least {least}" if count < least else f"at most {most}"
    return f"{'forward' if is_class else 'it'} takes {takes}, {count} {'is' if count == 1 else 'are'} declared; "


def _hint(why: str) -> str:
    return "; if it changes an argument on purpose, declare inplace=(its position,)" if "in-place" in why else ""


def _simple_calls(function: Own) -> Iterator[Call]:
    """Calls that no Function has a good reason to refuse: contiguous tensors with elements, in double precision."""
    shapes = [s for s in shape_tuples(function) if all(0 not in shape for shape in s)]
    others = shapes[4 :: max(1, len(shapes) // _TRIED)]
    # The first half of all, which often suffices, has shapes of every size.
    spread = (shape for start in range(3) for shape in others[start::3])
    for number, sides in enumerate(islice((*shapes[:4], *spread), 2 * _TRIED)):
        yield simple_call(function, sides, number)


def _working(subject: Subject, note: Callable[[Call], None]) -> tuple[list[Call], list[tuple[Call, str]]]:
    """Some calls that the Function takes, and the calls that it refuses, with the reason.

    If backward raises for all calls that forward takes, these calls are used. Raises UsageProblem if some calls return
    more outputs than others.
    """
    working, raising, failures = [], [], []
    assert isinstance(subject.function, Own)
    # The first call that returned so many outputs.
    counts: dict[int, Call] = {}
    for call in _simple_calls(subject.function):
        found: list[_Found | str] = []
        for dtype in subject.function.dtypes:
            found.append(_tried(subject, recast(call, dtype, subject.function), note))
            if isinstance(found[-1], _Found):
                counts.setdefault(len(found[-1].dtypes), call)
            if _works(found[-1]):
                break
        if _works(found[-1]):
            working.append(call)
        elif any(isinstance(each, _Found) for each in found):
            raising.append(call)
        else:
            first = [each for each in found if isinstance(each, _Uncheckable | _Misbehaviour)]
            failures.append((call, [*first, "; with ".join(dict.fromkeys(str(each) for each in found))][0]))
        if len(working) >= _TRIED // 2:
            break
    if len(counts) > 1:
        several = " and ".join(f"{count} in {call}" for count, call in islice(counts.items(), 2))
        raise subject.function.declaration.problem(
            f"it must return the same number of tensors in every call, but returns {several}; declare calls of one kind"
        )
    return working or raising, failures


class _Mistake(str):
    """The words of an exception that is not a refusal."""

    __slots__ = ()


class _Misbehaviour(_Mistake):
    """What the suite saw the Function do that no Function may, and what to do about it."""

    __slots__ = ()


class _Uncheckable(str):
    """Why what the Function returns cannot be checked at all."""

    __slots__ = ()


def _works(found: _Found | str) -> bool:
    return isinstance(found, _Found) and not found.raised


@dataclass(frozen=True)
class _Found:
    """The result of a call: whether each output is differentiable, its dtype, and the exception of backward, if any."""

    differentiable: tuple[bool, ...]
    dtypes: tuple[str, ...]
    raised: str = ""
    # How long it took.
    seconds: float = math.inf


def _tried(subject: Subject, call: Call, note: Callable[[Call], None]) -> _Found | str:
    """The result of a call, or the exception that it raises."""
    note(call)
    implementation = subject.implementation
    example, watch = subject.made(call), cost.Watch()
    try:
        outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
        why = strange(implementation, outputs)
        if why:
            return _Uncheckable(why)
        kinds = [implementation.describe(y) for y in outputs]
        flags = tuple(differentiable(implementation, y, kind.dtype) for y, kind in zip(outputs, kinds, strict=True))
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        noticed(raised)
        if isinstance(raised, Misbehaves):
            return _Misbehaviour(f"{_said(raised)}; {raised.cure}")
        return _Mistake(_said(raised)) if mistake(raised) else _said(raised)
    found = _Found(flags, tuple(kind.dtype for kind in kinds))
    unknown = [kind.dtype for kind, flag in zip(kinds, flags, strict=True) if flag and kind.dtype not in FLOATING]
    if unknown:
        return f"it returns {unknown[0]}, which cannot be checked"
    try:
        ends = [example.tensor(ones(kind), kind.dtype) if f else None for f, kind in zip(flags, kinds, strict=True)]
        gradients = pullback(ends) if any(flags) else ()
    except Exception as raised:  # noqa: BLE001
        noticed(raised)
        return replace(found, raised=_said(raised))
    found = replace(found, seconds=watch.seconds)
    unread = unreadable(implementation, gradients)
    return _Uncheckable(f"it returns a gradient that cannot be checked: {unread}") if unread else found


def _said(raised: Exception) -> str:
    return one_line(raised)[:300]


def _outputs(declaration: Declaration, first: _Found, found: dict[str, _Found]) -> tuple[Output, ...]:
    if not any(first.differentiable):
        raise declaration.problem(
            "it returns nothing differentiable: every tensor argument requires grad, but no output does; call it "
            "through apply, and return a floating-point output that is not detached"
        )
    if len({len(each.dtypes) for each in found.values()}) > 1:
        raise declaration.problem(
            "the number of outputs depends on the dtype; declare the dtypes of one kind with dtypes="
        )
    return tuple(
        Output(
            name="output" if len(first.dtypes) == 1 else f"output{n}",
            differentiable=differentiable,
            dtypes={dtype: each.dtypes[n] for dtype, each in found.items()},
            # Statistics that are kept beside a result in half precision usually have single precision.
            casts=declaration.casts or not differentiable,
        )
        for n, differentiable in enumerate(first.differentiable)
    )


def _materializes(subject: Subject, call: Call, outputs: Sequence[Output]) -> bool:
    """Whether backward gets zeros, not None, for an unused output."""
    if "materialize" not in subject.implementation.capabilities or isinstance(subject.cls, Native):
        return True
    function = replace(subject.function, outputs=tuple(outputs))
    example = Example(subject.implementation, function, subject.cls, call)
    f, seen = example.observed()
    implementation = subject.implementation
    try:
        found, pullback = implementation.vjp(f, example.primals, track=example.track)
        kinds = [implementation.describe(y) for y in found]
        used = next(n for n, o in enumerate(outputs) if o.differentiable)
        pullback([example.tensor(ones(k), k.dtype) if n == used else None for n, k in enumerate(kinds)])
    except Exception as raised:  # noqa: BLE001 - the tests will report it
        noticed(raised)
    return all(g is not None for g in seen.cotangents_of_tensors)


def _verify_inplace(declaration: Declaration, examples: Sequence[Example]) -> None:
    """Raise UsageProblem for an argument that is declared to be changed in place, but never is."""
    slot = next(iter(left_alone(examples)), None)
    if slot is not None:
        raise declaration.problem(
            f"{declaration.notation.said('inplace', declaration.inplace)}: in all of {len(examples)} calls forward "
            f"neither changes argument {slot} ({declaration.parsed.found[slot].name}) nor returns it; declare the "
            "position of one that it does"
        )


def _verify_soft(declaration: Declaration, example: Example) -> None:
    """Raise UsageProblem for a soft function that cannot replace the forward."""
    soft = declaration.soft
    if soft is None:
        return
    try:
        outputs, _ = example.implementation.vjp(
            lambda *xs: soft(*example.merged(xs)), example.primals, track=example.track
        )
        shapes = [example.implementation.describe(y).shape for y in outputs]
    except Exception as raised:  # noqa: BLE001 - a user's function may raise anything
        noticed(raised)
        raise declaration.problem(
            f"soft= must take the arguments of the Function, but raised {_said(raised)}"
        ) from None
    wanted = [example.implementation.describe(y).shape for y in example.outputs()]
    if shapes != wanted:
        raise declaration.problem(
            f"soft= must return the shapes of the Function's outputs, {wanted}, but returns {shapes}"
        )


def _verify_relations(declaration: Declaration, examples: Sequence[Example]) -> None:
    """Raise UsageProblem for a promise about other calls that does not fit the shapes, or that nothing can show."""
    for relation in declaration.relations.values():
        function = examples[0].function
        if not any(relation.suits(function, shapes) for shapes in shape_tuples(function)):
            raise declaration.problem(f"{relation.promise}: there is only one index to slice; declare longer sizes=")
        # Of several outputs the tests say which one does not fit.
        for example in examples if len(function.outputs) == 1 else ():
            way, parts = next(iter(relation.ways(function, example.call).items()), ("", ()))
            try:
                Related(example, relation, parts).run(lambda _: False)
            except Unfit as unfit:
                where = f"{relation.label} {way}: {unfit}"
                raise declaration.problem(f"{relation.promise} does not fit this Function: {where}") from None
            except Exception as raised:  # noqa: BLE001 - the tests will report it
                noticed(raised)
                continue


def _holds_others(example: Example) -> bool:
    """Whether an output requires grad though no argument does."""
    implementation = example.implementation
    if "requires_grad" not in implementation.capabilities:
        return False
    outputs, _ = implementation.vjp(example.f, example.primals, track=[False] * len(example.track))
    return any(map(implementation.requires_grad, outputs))
