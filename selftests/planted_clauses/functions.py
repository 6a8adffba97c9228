"""Faults of how a Function is called: its arguments, its outputs, and what is recorded of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import Function
from torch.autograd.function import FunctionCtx

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_apply, around_backward
from autograd_conformance.selftests.planting import Fault


def _each(change: Callable[[Any], Any], result: Any) -> Any:
    """What apply gives with each of its tensors changed."""

    def changed(y: Any) -> Any:
        return change(y) if isinstance(y, torch.Tensor) else y

    return tuple(map(changed, result)) if isinstance(result, tuple) else changed(result)


def _results(change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """apply gives ``change(what it gives)``."""
    return around_apply(lambda original, cls, *args, **kwargs: change(original(cls, *args, **kwargs)))


def _results_of(name: str, change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """`_results` for Functions of this name alone, so that the tests that have others go on working."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(cls, *args, **kwargs)
        return change(result) if cls.__name__ == name else result

    return around_apply(apply)


def _returned(change: Callable[[Any], Any], then: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """apply gives ``then(kept, what it gives)``, where ``kept`` is ``change(what forward returned)``."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        kept, mine = [], cls.forward

        @wraps(mine)
        def forward(*a: Any, **k: Any) -> Any:
            returned = mine(*a, **k)
            kept.append(change(returned))
            return returned

        with patch.object(cls, "forward", staticmethod(forward)):
            result = original(cls, *args, **kwargs)
        return then(kept[-1], result)

    return around_apply(apply)


def _around_forward(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """A Function's forward is ``method(original, *args)``, and keeps its signature."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        mine = cls.forward
        with patch.object(cls, "forward", staticmethod(wraps(mine)(lambda *a, **k: method(mine, *a, **k)))):
            return original(cls, *args, **kwargs)

    return around_apply(apply)


def _arguments(change: Callable[..., tuple[Any, Any]]) -> AbstractContextManager[Any]:
    """apply gets ``args, kwargs = change(parameters, args, kwargs)``, with forward's parameters but ctx."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        parameters = list(inspect.signature(cls.forward).parameters.values())
        separate = cls.setup_context is not Function.setup_context
        args, kwargs = change(parameters if separate else parameters[1:], args, kwargs)
        return original(cls, *args, **kwargs)

    return around_apply(apply)


def _detached(y: Any) -> Any:
    return y.detach() if isinstance(y, torch.Tensor) else y


def _last_apart(result: Any) -> Any:
    several = isinstance(result, tuple) and len(result) > 1 and getattr(result[-1], "requires_grad", False)
    return (*result[:-1], result[-1] * 1) if several else result


@contextmanager
def _none_after_a_static() -> Iterator[None]:
    statics: dict[Any, int] = {}

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        kinds = (torch.Tensor, list, tuple, dict)
        statics[cls] = next((i for i, a in enumerate(args) if not isinstance(a, kinds)), len(args))
        return original(cls, *args, **kwargs)

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        found, first = original(ctx, *cotangents), statics[ctx._forward_cls]
        return tuple(None if i > first else g for i, g in enumerate(found)) if isinstance(found, tuple) else found

    with around_apply(apply), around_backward(backward):
        yield


def _only_32_gradients(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    return tuple(g if i < 32 else None for i, g in enumerate(found)) if isinstance(found, tuple) else found


def _copied_lists(parameters: Any, args: Any, kwargs: Any) -> Any:
    return tuple(list(a) if isinstance(a, list) else a for a in args), kwargs


def _tracks_lists(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    tracked = [t for a in args if isinstance(a, list) for t in a if getattr(t, "requires_grad", False)]
    result = original(cls, *args, **kwargs)
    return _each(torch.Tensor.requires_grad_, result) if tracked and torch.is_grad_enabled() else result


def _tracks_dicts(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    zeros = [0 * t for a in args if isinstance(a, dict) for t in a.values() if getattr(t, "requires_grad", False)]
    return _each(lambda y: sum(zeros, y), original(cls, *args, **kwargs))


def _on_detached(original: Any, *args: Any, **kwargs: Any) -> Any:
    return original(*map(_detached, args), **kwargs)


def _recorded_forward(original: Any, *args: Any, **kwargs: Any) -> Any:
    with torch.enable_grad():
        return original(*args, **kwargs)


def _recorded_without_ctx(original: Any, *args: Any, **kwargs: Any) -> Any:
    takes_ctx = args and isinstance(args[0], FunctionCtx)
    with torch.set_grad_enabled(torch.is_grad_enabled() or not takes_ctx):
        return original(*args, **kwargs)


def _bare(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) and len(result) == 1 else result


def _tuple_for_list(original: Any, *args: Any, **kwargs: Any) -> Any:
    returned = original(*args, **kwargs)
    return tuple(returned) if isinstance(returned, list) else returned


def _tracked_in_place(result: Any) -> Any:
    if isinstance(result, list):
        result[:] = [y.requires_grad_() if isinstance(y, torch.Tensor) else y for y in result]
    return result


def _field_names(returned: Any) -> Any:
    return type(returned) if hasattr(returned, "_fields") else tuple


def _renamed(kind: Any, result: Any) -> Any:
    return result if kind is tuple else kind(*result)


def _no_numbers(result: Any) -> Any:
    return tuple(None if type(y) is int else y for y in result) if isinstance(result, tuple) else result


def _zeros_for_none(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *(torch.zeros(()) if g is None else g for g in cotangents))


def _counts_gradients(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    if isinstance(found, tuple) and len(found) != len(ctx.needs_input_grad):
        raise RuntimeError("backward returned an incorrect number of gradients")
    return found


def _none_for_defaults(parameters: Any, args: Any, kwargs: Any) -> Any:
    left_out = [] if kwargs else [p for p in parameters[len(args) :] if p.default is not p.empty]
    return (*args, *(None for _ in left_out)), kwargs


def _in_the_order_given(parameters: Any, args: Any, kwargs: Any) -> Any:
    return (*args, *kwargs.values()), {}


def _detached_keywords(parameters: Any, args: Any, kwargs: Any) -> Any:
    return args, {name: _detached(value) for name, value in kwargs.items()}


def _known_keywords(parameters: Any, args: Any, kwargs: Any) -> Any:
    return args, {name: value for name, value in kwargs.items() if name in {p.name for p in parameters}}


def _keyword_wins(parameters: Any, args: Any, kwargs: Any) -> Any:
    if not kwargs:
        return args, kwargs
    names = [p.name for p in parameters[: len(args)]]
    others = {name: value for name, value in kwargs.items() if name not in names}
    return tuple(kwargs.get(name, a) for name, a in zip(names, args, strict=True)), others


@contextmanager
def _first_statics() -> Iterator[None]:
    first: dict[Any, Any] = {}

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        known = first.setdefault((cls, len(args)), args)
        pairs = zip(args, known, strict=True)
        return original(cls, *(a if isinstance(a, torch.Tensor) else k for a, k in pairs), **kwargs)

    with around_apply(apply):
        yield


def _captures_too(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    result = original(cls, *args, **kwargs)
    if cls.__name__ != "Capturing":
        return result
    separate = cls.setup_context is not Function.setup_context
    again = cls.forward(*(() if separate else (None,)), *map(_detached, args))
    return result + (again - again.detach())


def _recorded_anyway(result: Any) -> Any:
    def recorded(y: Any) -> Any:
        return y.detach().requires_grad_() * 1 if y.is_floating_point() and not y.requires_grad else y

    return _each(recorded, result)


def _leaves_without_tensors(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    result = original(cls, *args, **kwargs)
    given = any(isinstance(a, torch.Tensor) for a in args)
    return result if given else _each(torch.Tensor.requires_grad_, result)


def _aliases(returned: Any) -> Any:
    with torch.enable_grad():
        return _each(lambda y: y * 1 if y.requires_grad else y, returned)


def _own_graph(kept: Any, result: Any) -> Any:
    recorded = [y for y in (kept if isinstance(kept, tuple) else (kept,)) if getattr(y, "requires_grad", False)]
    return kept if recorded else result


def _own_graph_unrecorded(kept: Any, result: Any) -> Any:
    outputs = result if isinstance(result, tuple) else (result,)
    return result if any(getattr(y, "requires_grad", False) for y in outputs) else _own_graph(kept, result)


def _numpy(allowed: Callable[[Any], bool]) -> AbstractContextManager[Any]:
    """``x.numpy()`` of a tensor that requires grad is allowed or not, whatever the mode."""
    inherited = torch.Tensor.numpy

    def numpy(x: Any, **options: Any) -> Any:
        if x.requires_grad and not allowed(x):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return inherited(x.detach(), **options)

    return patch.object(torch.Tensor, "numpy", numpy, create=True)


FAULTS = (
    Fault("FN-01", lambda: _results_of("Polynomial", lambda it: _each(_detached, it)), neighbours=("FN-02", "FN-03")),
    Fault(
        "FN-01",
        lambda: _results_of("Polynomial", lambda it: _each(lambda y: y.double() if y.requires_grad else y, it)),
        says=("dtypes of the outputs",),
        neighbours=("FN-02",),
        words="outputs are given in double precision",
    ),
    Fault("FN-02", lambda: _results(_last_apart), says=("one call",)),
    Fault(
        "FN-02",
        lambda: patch.object(torch.Tensor, "output_nr", property(lambda y: 0), create=True),
        says=("output_nr",),
        words="output_nr is always 0",
    ),
    Fault("FN-03", _none_after_a_static, says=("gradients, position",)),
    Fault("FN-03", lambda: around_backward(_only_32_gradients), words="only 32 arguments are differentiated"),
    Fault("FN-03", lambda: _arguments(_copied_lists), says=("the very objects",), words="lists are copied"),
    Fault("FN-04", lambda: around_apply(_tracks_lists), says=("requires_grad of the output",)),
    Fault("FN-04", lambda: around_apply(_tracks_dicts), words="tensors in a dict get gradients of zero"),
    Fault("FN-06", lambda: _around_forward(_recorded_forward), neighbours=("FN-08", "FN-26", "FN-31")),
    Fault(
        "FN-06",
        lambda: _around_forward(_recorded_without_ctx),
        neighbours=("FN-08", "FN-26", "FN-31"),
        words="only a forward that takes ctx runs with grad mode off",
    ),
    Fault("FN-07", lambda: _results(_bare), neighbours=("FN-09", "FN-25")),
    Fault("FN-07", lambda: _results(lambda it: None if it == () else it), words="an empty tuple becomes None"),
    Fault("FN-08", lambda: _around_forward(_tuple_for_list), says=("the very list",)),
    Fault("FN-08", lambda: _results(_tracked_in_place), words="tensors in a list are made to require grad"),
    Fault(
        "FN-08",
        lambda: _results(lambda it: dict(it) if isinstance(it, dict) else it),
        words="a copy of a dict is handed on",
    ),
    Fault("FN-09", lambda: _returned(_field_names, _renamed), says=("Record",)),
    Fault(
        "FN-09",
        lambda: _returned(_field_names, lambda kind, it: it if kind is tuple else _each(_detached, it)),
        says=("requires_grad",),
        words="the tensors of a named tuple are detached",
    ),
    Fault("FN-10", lambda: _results(_no_numbers), says=("outputs that are not tensors",)),
    Fault(
        "FN-10",
        lambda: around_backward(_zeros_for_none),
        says=("cotangents",),
        words="backward gets zeros for outputs that are not tensors",
    ),
    Fault("FN-11", lambda: around_backward(_counts_gradients)),
    Fault(
        "FN-11",
        lambda: _arguments(_none_for_defaults),
        neighbours=("FN-12", "FN-13"),
        words="parameters that are left out are None",
    ),
    Fault("FN-12", lambda: _arguments(lambda parameters, args, kwargs: (args, {})), neighbours=("FN-13",)),
    Fault(
        "FN-12",
        lambda: _arguments(_in_the_order_given),
        neighbours=("FN-13",),
        words="keywords fill parameters in the order in which they are given",
    ),
    Fault("FN-12", lambda: _arguments(_detached_keywords), words="tensors given by keyword are not tracked"),
    Fault("FN-13", lambda: _arguments(_known_keywords), says=("no error",)),
    Fault("FN-13", lambda: _arguments(_keyword_wins), says=("no error",), words="of two values the keyword's counts"),
    Fault("FN-14", _first_statics),
    Fault("FN-23", lambda: around_apply(_captures_too)),
    Fault("FN-24", lambda: _results_of("Polynomial", _recorded_anyway)),
    Fault("FN-24", lambda: around_apply(_leaves_without_tensors), words="a call without tensors gives leaves"),
    Fault("FN-25", lambda: _returned(_aliases, _own_graph)),
    Fault("FN-25", lambda: _returned(_aliases, _own_graph_unrecorded), words="an unrecorded call keeps the graph"),
    Fault("FN-31", lambda: _numpy(lambda x: False), says=("in forward",)),
    Fault("FN-31", lambda: _numpy(lambda x: True), says=("outside",), words="numpy() is allowed everywhere"),
)

FIXES = (
    Fix("FN-05", lambda: _around_forward(_on_detached)),
    Fix("FN-12", variant="skipped"),
    Fix("FN-12", variant="keyword-only"),
    Fix("FN-12", variant="kwargs"),
)
