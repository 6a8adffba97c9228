"""Computations around one call, each with the result that the reference gives for it."""

from __future__ import annotations

import gc
import inspect
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.example import Example, has_setup_context
from autograd_conformance.harness.testing.observe import held_by_node, sharing_memory
from autograd_conformance.reference.rounding import PRECISION, Tracked
from autograd_conformance.strategies.compositions import After, Before, Tools

Gradients = tuple[Any, ...]
Expected = tuple[Tracked | None, ...]

# How often to look whether an accelerator has freed what a call held, and seconds between two looks.
_LOOKS, _PAUSE = 20, 0.05


def _outputs(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _differentiable(example: Example) -> list[int]:
    return [n for n, output in enumerate(example.function.outputs) if output.differentiable]


def subsets(example: Example) -> tuple[tuple[bool, ...], ...]:
    """The masks of all subsets of the tensors that require grad, the full set first."""
    ways = [(True, False) if tracked else (False,) for tracked in example.track]
    return tuple(itertools.product(*ways))


def lonely_masks(full: Sequence[bool]) -> list[tuple[bool, ...]]:
    """The masks in which a single tensor requires grad, and those in which all except one do."""
    which = [n for n, tracked in enumerate(full) if tracked]
    only = [tuple(n == one for n in range(len(full))) for one in which]
    without = [tuple(tracked and n != one for n, tracked in enumerate(full)) for one in which]
    return [mask for mask in (*only, *without) if any(mask)]


def summed(example: Example) -> tuple[Gradients, Expected]:
    """Gradients of the sum of each differentiable output, for which the engine makes an expanded cotangent."""
    implementation, kept = example.implementation, _differentiable(example)

    def f(*primals: Any) -> tuple[Any, ...]:
        outputs = _outputs(example.f(*primals))
        return tuple(implementation.xp.sum(outputs[n]) for n in kept)

    outputs, pullback = implementation.vjp(f, example.primals, track=example.track)
    ones = [example.tensor(np.ones(()), implementation.describe(y).dtype) for y in outputs]
    return pullback(ones), example.expected.gradients(example.expected.constant_cotangents(1.0))


def severed(example: Example) -> Gradients:
    """Gradients if every output is passed to a Function whose backward returns None."""
    implementation, kept = example.implementation, _differentiable(example)
    cut = _severing(example)

    def f(*primals: Any) -> tuple[Any, ...]:
        outputs = _outputs(example.f(*primals))
        return tuple(cut(outputs[n]) for n in kept)

    outputs, pullback = implementation.vjp(f, example.primals, track=example.track)
    described = map(implementation.describe, outputs)
    return pullback([example.tensor(np.ones(d.shape), d.dtype) for d in described])


def _severing(example: Example) -> Any:
    xp = example.implementation.xp
    return _neighbour(example, "Severed", lambda x: xp.copy(x), lambda _ctx, _cotangent: None)


def _squaring(example: Example) -> Any:
    xp = example.implementation.xp

    def backward(ctx: Any, cotangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * cotangent * xp.conj(x)

    return _neighbour(example, "Squared", lambda x: x * x, backward)


def _neighbour(example: Example, name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """Another Function that saves its input, in the style of the one under test."""
    combined: dict[str, Any] = {"forward": lambda ctx, x: (ctx.save_for_backward(x), forward(x))[1]}
    separate = {
        "forward": forward,
        "setup_context": lambda ctx, inputs, _output: ctx.save_for_backward(*inputs),
    }
    methods = {
        **(separate if has_setup_context(example.implementation, example.cls) else combined),
        "backward": backward,
    }
    base, function = example.implementation.ag.Function, example.implementation.function
    return function(type(name, (base,), {key: staticmethod(method) for key, method in methods.items()}))


def sharing(example: Example, first: int, second: int, relation: Before) -> tuple[Gradients, Expected]:
    """Gradients if one tensor, or an equal tensor computed from it, is passed for two arguments.

    The first gets the sum; the tensor made for the second is not used.
    """
    implementation = example.implementation
    example = example.given({second: example.values[example.slots[first]]})
    expected = list(example.expected.gradients())
    a, b = expected[first], expected[second]
    expected[first], expected[second] = None if a is None or b is None else a + b, None
    track = [tracked and n != second for n, tracked in enumerate(example.track)]

    def f(*primals: Any) -> Any:
        shared = list(primals)
        shared[second] = relation.apply(implementation.xp, shared[first])
        return example.f(*shared)

    _, pullback = implementation.vjp(f, example.primals, track=track)
    return pullback(example.cotangents), tuple(expected)


def overflows(example: Example, after: Sequence[After]) -> bool:
    """Whether the built-in operations after the Function leave the range of numbers of an output's dtype.

    Then the chain rule says nothing about gradients in that dtype: the loss, or the sum of the cotangents that the
    Function gets, is infinite or lost.
    """
    call, outputs, stages = example.call, example.function.outputs, _stages(example, after)
    kinds = [outputs[n].dtypes.get(call.dtype, call.dtype) for n in _differentiable(example)]
    return any(
        bool(np.sum(np.abs(y.value)) > PRECISION[kind].largest)
        for found in (*stages[1:], _cotangents(example, after, stages))
        for y, kind in zip(found, kinds, strict=True)
    )


def _stages(example: Example, after: Sequence[After]) -> list[list[Any]]:
    """The differentiable outputs, and what each operation makes of them."""
    stages: list[list[Any]] = [[example.expected.outputs[n] for n in _differentiable(example)]]
    for operation in after:
        stages.append([operation.forward(y) for y in stages[-1]])
    return stages


def _cotangents(example: Example, after: Sequence[After], stages: Sequence[Sequence[Any]]) -> list[Any]:
    """The cotangents that the Function gets from the operations, by the chain rule."""
    found: list[Any] = [Tracked.exact(np.ones(y.shape, y.dtype), example.expected.precision) for y in stages[-1]]
    for operation, values in zip(reversed(after), reversed(stages[:-1]), strict=True):
        found = [operation.pull(y, g) for y, g in zip(values, found, strict=True)]
    return found


def composed(example: Example, before: Before, after: Sequence[After]) -> tuple[Gradients, Expected]:
    """Gradients through built-in operations on every input and output, and those of the chain rule."""
    implementation, kept = example.implementation, _differentiable(example)
    xp = implementation.xp
    tools = Tools(xp, _squaring(example))

    def f(*primals: Any) -> tuple[Any, ...]:
        given = [before.apply(xp, x) if t else x for x, t in zip(primals, example.track, strict=True)]
        every = _outputs(example.f(*given))
        outputs = [every[n] for n in kept]
        for operation in after:
            outputs = [operation.apply(tools, y) for y in outputs]
        return tuple(outputs)

    stages = _stages(example, after)
    outputs, pullback = implementation.vjp(f, example.primals, track=example.track)
    ends = [np.ones(y.shape, y.dtype) for y in stages[-1]]
    got = pullback([example.tensor(g, implementation.describe(y).dtype) for g, y in zip(ends, outputs, strict=True)])
    placed = dict(zip(kept, _cotangents(example, after, stages), strict=True))
    return got, example.expected.gradients([placed.get(n) for n in range(len(example.function.outputs))])


def side_by_side(examples: Sequence[Example]) -> list[Gradients]:
    """Gradients of several calls in one graph, from one backward pass."""
    implementation = examples[0].implementation
    ends = list(itertools.accumulate(len(example.primals) for example in examples))
    starts = [0, *ends[:-1]]

    def f(*primals: Any) -> tuple[Any, ...]:
        parts = [primals[start:end] for start, end in zip(starts, ends, strict=True)]
        return tuple(y for example, part in zip(examples, parts, strict=True) for y in _outputs(example.f(*part)))

    primals = [x for example in examples for x in example.primals]
    track = [tracked for example in examples for tracked in example.track]
    _, pullback = implementation.vjp(f, primals, track=track)
    gradients = pullback([g for example in examples for g in example.cotangents])
    return [gradients[start:end] for start, end in zip(starts, ends, strict=True)]


def accumulated(example: Example, held: Sequence[bool]) -> tuple[Gradients, Expected]:
    """The gradients in the leaves after backward(), if some had a gradient before."""
    implementation, call = example.implementation, example.call
    _, gradients = example.run()
    values = [None if g is None else np.full(g.shape, 1.5) for g in gradients]
    initial = [v if h else None for v, h in zip(values, held, strict=True)]
    pairs = zip(initial, call.tensors, strict=True)
    given = [None if v is None else example.tensor(v, t.dtype) for v, t in pairs]
    got = implementation.backward(example.f, example.primals, example.cotangents, track=example.track, initial=given)
    expected = []
    for gradient, before in zip(gradients, initial, strict=True):
        exact = None if gradient is None else Tracked.exact(implementation.numpy(gradient), call.dtype)
        if exact is not None and before is not None and implementation.unusual(gradient):
            # The entries of a sparse tensor are added one by one, each with a rounding error: so the framework's own
            # addition is the control.
            exact = Tracked.exact(implementation.numpy(example.tensor(before, call.dtype) + gradient), call.dtype)
        elif exact is not None and before is not None:
            exact = exact + before
        expected.append(exact)
    return got, tuple(expected)


def shared_by_leaves(example: Example) -> list[str]:
    """The tensors that share memory with a gradient that backward() left in a leaf.

    The engine leaves views of one tensor in several leaves, as built-in operations show. So gradients may share the
    memory of a cotangent that backward passes on, and those of any other callable that of any tensor.
    """
    implementation, track = example.implementation, example.track
    found = implementation.backward(example.f, example.primals, example.cotangents, track=track)
    pairs: Iterable[Any] = itertools.combinations(
        [(n, g) for n, g in zip(example.names, found, strict=True) if g is not None], 2
    )
    passed_on: list[Any] = []
    if _views_are_shared(example):
        passed_on = [g for g in example.cotangents if g is not None]
        pairs = pairs if inspect.isclass(example.cls) else ()
    shared = [
        f"{a} and the {b}"
        for (a, x), (b, y) in pairs
        if implementation.shares_memory(x, y)
        and not any(implementation.shares_memory(x, g) and implementation.shares_memory(y, g) for g in passed_on)
    ]
    given = dict(zip(example.input_names, example.primals, strict=True))
    return shared + sharing_memory(implementation, dict(zip(example.names, found, strict=True)), given)


def _views_are_shared(example: Example) -> bool:
    """Whether built-in operations leave views of one cotangent in two leaves."""
    xp, ones = example.implementation.xp, example.tensor(np.ones((1, 1)), example.call.dtype)
    ends = [example.tensor(np.ones(1), example.call.dtype)]

    def flat(a: Any, b: Any) -> Any:
        return xp.reshape(a, (1,)) + xp.reshape(b, (1,))

    a, b = example.implementation.backward(flat, (ones, xp.copy(ones)), ends, track=(True, True))
    return example.implementation.shares_memory(a, b)


def by_turns(examples: Sequence[Example]) -> list[list[Gradients]]:
    """The gradients of several calls, each in its own thread and once; every forward ends before the first backward."""
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in examples]
        pairs = list(zip(threads, examples, strict=True))
        pullbacks = [thread.submit(_pullback, example).result() for thread, example in pairs]
        return [
            [thread.submit(pullback, example.cotangents).result()]
            for (thread, example), pullback in zip(pairs, pullbacks, strict=True)
        ]


def _pullback(example: Example) -> Callable[..., Gradients]:
    return example.implementation.vjp(example.f, example.primals, track=example.track)[1]


def concurrently(examples: Sequence[Example], rounds: int = 4) -> list[list[Gradients]]:
    """The gradients of several calls that run at the same time, each in its own thread and several times."""
    barrier = threading.Barrier(len(examples))

    def one(example: Example) -> list[Gradients]:
        barrier.wait()
        return [example.run()[1] for _ in range(rounds)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(_OFTEN)
    try:
        with ThreadPoolExecutor(len(examples)) as pool:
            return list(pool.map(one, examples))
    finally:
        sys.setswitchinterval(interval)


# Seconds between switches of threads: shorter than a call, so that calls interleave.
_OFTEN = 1e-6


def dtype_of(example: Example, name: str) -> str:
    """The dtype of an input or output, by its name."""
    given = dict(zip(example.input_names, example.call.tensors, strict=True))
    made = dict(zip(example.output_names, example.expected.output_dtypes, strict=True))
    return given[name].dtype if name in given else made[name]


def overwritten(
    example: Example, name: str, change: Callable[[Any], Any]
) -> tuple[list[str], Callable[[], Gradients]]:  # fmt: skip
    """A call of which an input or output is then changed in place, with what ``change`` makes of its values.

    Returns the attributes of ctx that hold tensors, and the change followed by backward.
    """
    implementation, primals = example.implementation, example.fresh_primals()
    outputs, pullback = implementation.vjp(example.f, primals, track=example.track)
    tensor = dict(zip((*example.input_names, *example.output_names), (*primals, *outputs), strict=True))[name]

    def changed() -> Gradients:
        implementation.fill_(tensor, change(implementation.numpy(tensor)))
        return pullback(example.cotangents)

    return held_by_node(implementation, outputs), changed


def left_behind(example: Example) -> list[str]:
    """The tensors of a call that are still alive after its backward, without references from the caller."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        references = _watched(example)
        alive = _alive(references)
        # The thread of an accelerator may end its work a moment after the gradients have arrived.
        for _ in range(_LOOKS if example.call.device != "cpu" else 0):
            if alive:
                example.implementation.synchronize(example.call.device)
                time.sleep(_PAUSE)
                alive = _alive(references)
        return alive
    finally:
        if collecting:
            gc.enable()


def _alive(references: dict[str, weakref.ref[Any]]) -> list[str]:
    return [name for name, reference in references.items() if reference() is not None]


def _watched(example: Example) -> dict[str, weakref.ref[Any]]:
    references: dict[str, weakref.ref[Any]] = {}

    def watch(names: Sequence[str], tensors: Sequence[Any]) -> None:
        pairs = zip(names, tensors, strict=True)
        references.update((name, weakref.ref(tensor)) for name, tensor in pairs if tensor is not None)

    def f(*primals: Any) -> Any:
        watch(example.input_names, primals)
        return example.f(*primals)

    outputs, pullback = example.implementation.vjp(f, example.fresh_primals(), track=example.track)
    watch(example.output_names, outputs)
    cotangents = example.placed(example.expected.cotangents)
    watch([f"cotangent of {name}" for name in example.output_names], cotangents)
    watch(example.names, pullback(cotangents))
    return references
