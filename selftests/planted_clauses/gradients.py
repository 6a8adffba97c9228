"""Faults of the gradients that backward gets and returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    around_backward_with_graph,
    replaced,
)
from autograd_conformance.selftests.planting import Fault

# Generated Functions have tensors of one shape, so that a cotangent has the shape, dtype and device of the inputs.


def _cotangent(given: Any) -> Any:
    return next(g for g in given if isinstance(g, torch.Tensor) and g.is_floating_point())


def _changed(change: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """Each value that backward returned for an input that requires grad is ``change(it, a cotangent)``."""

    def backward(original: Any, ctx: Any, *given: Any) -> Any:
        found = original(ctx, *given)
        if not isinstance(found, tuple):
            return change(found, _cotangent(given))
        # Values that are too many or too few are left to the checks of torch.
        needs = (*ctx.needs_input_grad, *(False for _ in found))
        return tuple(change(g, _cotangent(given)) if need else g for g, need in zip(found, needs, strict=False))

    return around_backward(backward)


def _tensors(change: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    return _changed(lambda g, like: change(g, like) if isinstance(g, torch.Tensor) else g)


def _packs_many(original: Any, ctx: Any, *given: Any) -> Any:
    return original(ctx, given) if len(given) > 3 else original(ctx, *given)


def _first_of_a_bare_one(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    count = len(ctx.needs_input_grad)
    return found if isinstance(found, tuple | list) or count == 1 else (found, *(None for _ in range(count - 1)))


def _reverses_many(original: Any, ctx: Any, *given: Any) -> Any:
    return original(ctx, *(given[::-1] if len(given) > 3 else given))


def _pads(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    missing = len(ctx.needs_input_grad) - len(found) if isinstance(found, tuple) else 0
    return (*found, *(None for _ in range(missing))) if missing > 0 else found


def _pads_what_is_not_needed(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    absent = ctx.needs_input_grad[len(found) :] if isinstance(found, tuple) else ()
    return (*found, *(None for _ in absent)) if absent and not any(absent) else found


def _drops_extra(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    return found[: len(ctx.needs_input_grad)] if isinstance(found, tuple) else found


def _drops_false(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    count = len(ctx.needs_input_grad)
    return found[:count] if isinstance(found, tuple) and all(g is None or g is False for g in found[count:]) else found


def _drops_empty(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    count = len(ctx.needs_input_grad)
    extra = found[count:] if isinstance(found, tuple) else ()
    empty = all(g is None or (isinstance(g, torch.Tensor) and not g.numel()) for g in extra)
    return found[:count] if extra and empty else found


def _drops_unneeded(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    count = len(ctx.needs_input_grad)
    if not isinstance(found, tuple) or len(found) < count:
        return found
    return (*(g if need else None for g, need in zip(found, ctx.needs_input_grad, strict=False)), *found[count:])


def _drops_zeros(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    return tuple(None if isinstance(g, int) and g == 0 else g for g in found) if _full(ctx, found) else found


def _full(ctx: Any, found: Any) -> bool:
    return isinstance(found, tuple) and len(found) == len(ctx.needs_input_grad)


def _checks_unneeded(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    if _full(ctx, found):
        for g, need in zip(found, ctx.needs_input_grad, strict=True):
            if isinstance(g, torch.Tensor) and not need and g.shape != _cotangent(given).shape:
                raise RuntimeError("a gradient has the wrong shape")
    return found


def _checks_unneeded_dtypes(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    if _full(ctx, found):
        for g, need in zip(found, ctx.needs_input_grad, strict=True):
            if isinstance(g, torch.Tensor) and not need and not g.is_floating_point():
                raise RuntimeError("a gradient has the wrong dtype")
    return found


def _tuple_of_list(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    return tuple(found) if isinstance(found, list) else found


def _bare_of_list(original: Any, ctx: Any, *given: Any) -> Any:
    found = original(ctx, *given)
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def _first_slice(g: Any, like: Any) -> Any:
    while g.dim() > like.dim() and g.numel():
        g = g[0]
    for axis in range(like.dim() if g.dim() == like.dim() and g.numel() else 0):
        g = g.narrow(axis, 0, 1) if like.shape[axis] == 1 < g.shape[axis] else g
    return g


def _sums_leading_alone(g: Any, like: Any) -> Any:
    return _first_slice(g.sum_to_size(g.shape[-like.dim() :]), like) if g.dim() > like.dim() > 0 else g


def _expanded(g: Any, like: Any) -> Any:
    return g.expand(like.shape) if g.shape != like.shape and _broadcasts(g.shape, like.shape) else g


def _broadcasts(shape: Any, target: Any) -> bool:
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(n in (1, m) for n, m in pairs)


def _of_arrays(g: Any, like: Any) -> Any:
    fits = isinstance(g, np.ndarray) and g.shape == tuple(like.shape)
    return torch.as_tensor(g, dtype=like.dtype) if fits else g


def _flattened(g: Any, like: Any) -> Any:
    fits = g.numel() == like.numel() and g.dim() <= like.dim() and g.shape != like.shape
    return g.reshape(like.shape) if fits else g


@contextmanager
def _keeps_dtypes() -> Iterator[None]:
    returned: list[Any] = []

    def note(g: Any, _: Any) -> Any:
        returned.append(g.dtype)
        return g

    def grad(original: Any) -> Any:
        def uncast(*args: Any, **options: Any) -> Any:
            returned.clear()
            found = original(*args, **options)
            some = [g for g in found if g is not None]
            if len(returned) != len(some):
                return found
            kinds = iter(returned)
            return tuple(g if g is None else g.to(next(kinds)) for g in found)

        return uncast

    with _tensors(note), replaced(torch.autograd, "grad", grad):
        yield


def _bounded(g: Any, like: Any) -> Any:
    if g.dtype == torch.bool:
        raise RuntimeError("bool gradients are not supported")
    return g


def _real(g: Any, like: Any) -> Any:
    return g.real if g.is_complex() and not like.is_complex() else g


def _real_where_it_is_real(g: Any, like: Any) -> Any:
    return g.real if g.is_complex() and not like.is_complex() and not g.imag.any() else g


def _none_elsewhere(g: Any, like: Any) -> Any:
    return g if g.device == like.device else None


def _moved(g: Any, like: Any) -> Any:
    return g if g.device == like.device else torch.zeros_like(g, device=like.device)


def _after(names: tuple[str, ...], change: Callable[[Any, Any], None]) -> AbstractContextManager[Any]:
    """``change(outputs, cotangents)`` once the engine has run."""

    def engine(original: Any) -> Any:
        def run(outputs: Any, cotangents: Any, *args: Any, accumulate_grad: bool, **options: Any) -> Any:
            found = original(outputs, cotangents, *args, accumulate_grad=accumulate_grad, **options)
            if ("backward" if accumulate_grad else "grad") in names:
                with torch.no_grad():
                    change(outputs, cotangents)
            return found

        return run

    return replaced(torch.autograd, "_engine_run_backward", engine)


def _added(_: Any, cotangents: Any) -> None:
    for i, g in enumerate(cotangents):
        if any(g is other for other in cotangents[:i]):
            g += 1


def _summed_in_place(outputs: Any, cotangents: Any) -> None:
    for i, y in enumerate(outputs):
        for j in [j for j, other in enumerate(outputs) if j > i and other is y]:
            cotangents[i] += cotangents[j]


def _leaves(outputs: Any) -> list[Any]:
    """The leaves of a graph, each once."""
    found, stack, seen = [], [y.grad_fn for y in outputs], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        stack.extend(edge for edge, _ in node.next_functions)
    return found


def _shared(outputs: Any, _: Any) -> None:
    leaves = [x for x in _leaves(outputs) if x.grad is not None]
    for a, b in pairwise(leaves):
        if _alike(a.grad, b.grad):
            b.grad = a.grad


def _shared_scalars(outputs: Any, _: Any) -> None:
    leaves = [x for x in _leaves(outputs) if x.grad is not None and not x.dim()]
    for a, b in pairwise(leaves):
        if _alike(a.grad, b.grad):
            b.grad = a.grad


def _kept_as_grad(outputs: Any, cotangents: Any) -> None:
    for x in _leaves(outputs):
        for g in cotangents:
            if x.grad is not None and _alike(x.grad, g):
                x.grad = g


def _alike(a: Any, b: Any) -> bool:
    strided = a.layout == b.layout == torch.strided
    return strided and a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def _last_counts(original: Any, cls: Any, *args: Any) -> Any:
    later = [args[i + 1 :] for i in range(len(args))]
    again = [isinstance(a, torch.Tensor) and any(a is b for b in rest) for a, rest in zip(args, later, strict=True)]
    return original(cls, *(a.detach() if twice else a for a, twice in zip(args, again, strict=True)))


def _first_two_count(original: Any, cls: Any, *args: Any) -> Any:
    earlier = [args[:i] for i in range(len(args))]
    uses = [
        sum(a is b for b in before) if isinstance(a, torch.Tensor) else 0
        for a, before in zip(args, earlier, strict=True)
    ]
    return original(cls, *(a.detach() if n > 1 else a for a, n in zip(args, uses, strict=True)))


@contextmanager
def _none_for_one_is_none_for_all() -> Iterator[None]:
    uses: dict[Any, Any] = {}

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        uses[cls] = args
        return original(cls, *args)

    def backward(original: Any, ctx: Any, *given: Any) -> Any:
        found, args = original(ctx, *given), uses[ctx._forward_cls]
        if not _full(ctx, found):
            return found
        withheld = [a for a, g in zip(args, found, strict=True) if isinstance(a, torch.Tensor) and g is None]
        return tuple(None if any(a is w for w in withheld) else g for a, g in zip(args, found, strict=True))

    with around_apply(apply), around_backward(backward):
        yield


@contextmanager
def _resets_what_gets_none() -> Iterator[None]:
    def engine(original: Any) -> Any:
        def run(outputs: Any, *args: Any, **options: Any) -> Any:
            before = [(x, x.grad, x.grad._version) for x in _leaves(outputs) if x.grad is not None]
            found = original(outputs, *args, **options)
            for x, grad, version in before:
                if x.grad is grad and grad._version == version:
                    x.grad = None
            return found

        return run

    with replaced(torch.autograd, "_engine_run_backward", engine):
        yield


def _densified_in_rows(g: Any, _: Any) -> Any:
    return g.to_dense() if g.is_sparse and g.dense_dim() else g


@contextmanager
def _forgets_sparse() -> Iterator[None]:
    def densify(outputs: Any, _: Any) -> None:
        for x in _leaves(outputs):
            if x.grad is not None and x.grad.is_sparse:
                x.grad = x.grad.to_dense()

    with _after(("backward",), densify):
        yield


def _unaliased(g: Any, like: Any) -> Any:
    return g.clone() if g._is_view() else g


FAULTS = (
    Fault("GRAD-01", lambda: around_backward(_packs_many), says=("number of gradients that backward gets",)),
    Fault("GRAD-01", lambda: around_backward(_reverses_many), words="the gradients come in the wrong order"),
    Fault("GRAD-02", lambda: around_backward(_pads), says=("no error",)),
    Fault(
        "GRAD-02",
        lambda: around_backward(_pads_what_is_not_needed),
        words="missing gradients that are not needed count as None",
    ),
    Fault("GRAD-02", lambda: around_backward(_first_of_a_bare_one), words="a bare gradient is that of the first"),
    Fault("GRAD-02", lambda: around_backward_with_graph(_pads), words="missing gradients are None under create_graph"),
    Fault("GRAD-03", lambda: around_backward(_drops_extra)),
    Fault("GRAD-03", lambda: around_backward(_drops_empty), words="extra tensors without elements are dropped"),
    Fault("GRAD-03", lambda: around_backward(_drops_false), words="extra values that are False are dropped"),
    Fault("GRAD-04", lambda: around_backward(_drops_unneeded)),
    Fault("GRAD-04", lambda: around_backward(_drops_zeros), words="a zero counts as None"),
    Fault("GRAD-05", lambda: around_backward(_checks_unneeded), says=("wrong shape",)),
    Fault("GRAD-05", lambda: around_backward(_checks_unneeded_dtypes), words="its dtype is checked"),
    Fault(
        "GRAD-05", lambda: around_backward_with_graph(_checks_unneeded), words="its shape is checked under create_graph"
    ),
    Fault("GRAD-06", _resets_what_gets_none, words="None empties .grad"),
    Fault(
        "GRAD-06",
        lambda: _changed(lambda g, like: torch.zeros_like(like) if g is None else g),
        neighbours=("GRAD-16",),
    ),
    Fault("GRAD-07", lambda: around_backward(_tuple_of_list)),
    Fault("GRAD-07", lambda: around_backward(_bare_of_list), words="a list of one is taken as its gradient"),
    Fault("GRAD-08", lambda: _changed(lambda g, like: torch.full_like(like, g) if isinstance(g, float) else g)),
    Fault("GRAD-07", lambda: around_backward_with_graph(_tuple_of_list), words="a list is taken under create_graph"),
    Fault("GRAD-08", lambda: _changed(_of_arrays), words="an array of the right shape is turned into a tensor"),
    Fault(
        "GRAD-08",
        lambda: _changed(lambda g, like: None if g is False else g),
        words="False counts as no gradient",
    ),
    Fault("GRAD-09", lambda: _tensors(_first_slice)),
    Fault("GRAD-09", lambda: _tensors(_sums_leading_alone), words="only leading dimensions are summed"),
    Fault("GRAD-10", lambda: _tensors(_expanded)),
    Fault("GRAD-10", lambda: _tensors(_flattened), words="a gradient of as many elements is reshaped"),
    Fault("GRAD-11", _keeps_dtypes, says=("dtypes of the gradients",)),
    Fault("GRAD-11", lambda: _tensors(_bounded), words="a bool gradient is refused"),
    Fault("GRAD-12", lambda: _tensors(_real)),
    Fault(
        "GRAD-12", lambda: _tensors(_real_where_it_is_real), words="a complex gradient without imaginary part passes"
    ),
    Fault("GRAD-13", lambda: _tensors(_moved)),
    Fault("GRAD-13", lambda: _tensors(_none_elsewhere), words="a gradient on another device counts as None"),
    Fault("GRAD-14", lambda: _after(("grad", "backward"), _added), says=("cotangents after the pass",)),
    Fault(
        "GRAD-14",
        lambda: _after(("grad", "backward"), _summed_in_place),
        words="cotangents of an output that is given twice are summed in place",
    ),
    Fault(
        "GRAD-14",
        lambda: _after(("backward",), _kept_as_grad),
        words="grad is the caller's cotangent itself",
        neighbours=("GRAD-15",),
    ),
    Fault("GRAD-15", lambda: _after(("backward",), _shared), says=("number of pairs",)),
    Fault(
        "GRAD-15",
        lambda: _after(("backward",), _kept_as_grad),
        words="grad is the caller's cotangent itself",
        neighbours=("GRAD-14",),
    ),
    Fault("GRAD-15", lambda: _after(("backward",), _shared_scalars), words="scalars that get the same share it"),
    Fault("GRAD-16", lambda: around_apply(_last_counts)),
    Fault("GRAD-16", _none_for_one_is_none_for_all, words="None for one use is None for all", neighbours=("GRAD-06",)),
    Fault("GRAD-16", lambda: around_apply(_first_two_count), words="a third use does not count"),
    Fault("GRAD-17", lambda: _tensors(lambda g, _: g.to_dense() if g.is_sparse else g)),
    Fault("GRAD-17", lambda: _tensors(_densified_in_rows), words="a gradient with dense dimensions is made dense"),
    Fault("GRAD-17", _forgets_sparse, words="only grad gives sparse gradients"),
)

FIXES = (
    Fix("GRAD-14", lambda: _tensors(_unaliased), variant="views"),
    Fix("GRAD-15", lambda: _tensors(_unaliased), variant="views"),
)
