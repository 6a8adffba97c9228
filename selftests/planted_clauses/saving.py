"""Faults of saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.inplace import after_forward, among, tensors_of
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_backward,
    ctx_attribute,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def saving(change: Callable[[Any, Any], Any]) -> AbstractContextManager[Any]:
    """What is saved is ``change(ctx, object)`` of each object passed to save_for_backward."""
    return ctx_method("save_for_backward", lambda save, ctx, *objects: save(ctx, *(change(ctx, x) for x in objects)))


@contextmanager
def reading(change: Callable[[Any, int, Any], Any]) -> Iterator[None]:
    """Each of ctx.saved_tensors is ``change(ctx, position, saved tensor)``."""

    def read(ctx: Any, saved: Any) -> Any:
        return tuple(change(ctx, i, x) for i, x in enumerate(saved))

    with ctx_attribute("saved_tensors", read):
        yield


@contextmanager
def readable_after(words: str, where: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Where reading ctx.saved_tensors raises an error with these words, the objects that were saved are read."""
    known: dict[int, tuple[Any, Sequence[Any]]] = {}
    inherited = torch.autograd.function.BackwardCFunction.saved_tensors

    def note(save: Any, ctx: Any, *tensors: Any) -> None:
        known[id(ctx)] = ctx, tensors
        save(ctx, *tensors)

    def read(ctx: Any) -> Any:
        try:
            return inherited.__get__(ctx, type(ctx))
        except RuntimeError as error:
            if words in str(error) and where():
                return tuple(known[id(ctx)][1])
            raise

    kind = torch.autograd.function.BackwardCFunction
    with ExitStack() as stack:
        stack.enter_context(ctx_method("save_for_backward", note))
        stack.enter_context(replaced_property(kind, "saved_tensors", read))
        yield


@contextmanager
def replaced_property(kind: Any, name: str, read: Callable[[Any], Any]) -> Iterator[None]:
    """Reading an attribute of every ctx is a call."""
    setattr(kind, name, property(read))
    try:
        yield
    finally:
        delattr(kind, name)


# --- what is read ----------------------------------------------------------------------------------------------------


def _without_none(_: Any, saved: Any) -> Any:
    return tuple(x for x in saved if x is not None)


def _backwards(_: Any, saved: Any) -> Any:
    return tuple(reversed(saved)) if any(x is None for x in saved) else saved


def _only_tensors(_: Any, x: Any) -> Any:
    return x if isinstance(x, torch.Tensor) else None


def _vague(save: Any, ctx: Any, *objects: Any) -> None:
    if any(not (x is None or isinstance(x, torch.Tensor)) for x in objects):
        raise TypeError("save_for_backward saves tensors only")
    save(ctx, *objects)


def _output_copied(ctx: Any, _: int, x: Any) -> Any:
    return x.clone() if x is not None and x.grad_fn is ctx else x


def _output_without_history(ctx: Any, _: int, x: Any) -> Any:
    return x.detach() if x is not None and x.grad_fn is ctx else x


def _result_without_history(ctx: Any, _: int, x: Any) -> Any:
    return x.detach() if x is not None and x.grad_fn not in (None, ctx) else x


def _input_as_view(ctx: Any, _: int, x: Any) -> Any:
    return x.view_as(x) if x is not None and x.grad_fn is not ctx else x


# --- the check -------------------------------------------------------------------------------------------------------


def _other_counter(original: Any) -> Any:
    return lambda x: x.data


@contextmanager
def _compares_values() -> Iterator[None]:
    """Reading saved tensors raises an error if their values are not those that were saved."""
    copies: dict[int, tuple[Any, Sequence[Any]]] = {}

    def note(ctx: Any, _: Any, __: Any) -> None:
        copies[id(ctx)] = ctx, [t.clone() if isinstance(t, torch.Tensor) else t for t in ctx.to_save or ()]

    def check(ctx: Any, saved: Any) -> Any:
        before = copies[id(ctx)][1] if id(ctx) in copies else saved
        if any(isinstance(x, torch.Tensor) and not torch.equal(x, y) for x, y in zip(saved, before, strict=True)):
            raise RuntimeError("a saved tensor has been modified by an inplace operation")
        return saved

    with after_forward(note), ctx_attribute("saved_tensors", check):
        yield


def _reads_anyway(original: Any, ctx: Any, *cotangents: Any) -> Any:
    _ = ctx.saved_tensors
    return original(ctx, *cotangents)


@contextmanager
def _checks_attributes() -> Iterator[None]:
    """Backward raises an error if a tensor attribute of ctx was changed in place since forward."""
    versions: dict[int, Any] = {}

    def note(ctx: Any, _: Any, __: Any) -> None:
        versions[id(ctx)] = ctx, {name: x._version for name, x in vars(ctx).items() if isinstance(x, torch.Tensor)}

    def check(original: Any, ctx: Any, *cotangents: Any) -> Any:
        known = versions[id(ctx)][1] if id(ctx) in versions else {}
        if any(getattr(ctx, name)._version != version for name, version in known.items()):
            raise RuntimeError("an attribute of ctx has been modified by an inplace operation")
        return original(ctx, *cotangents)

    with after_forward(note), around_backward(check):
        yield


def _attributes_copied(ctx: Any, _: Any, __: Any) -> None:
    for name, x in list(vars(ctx).items()):
        if isinstance(x, torch.Tensor):
            setattr(ctx, name, x.clone())


# --- the graph's life ------------------------------------------------------------------------------------------------


def _free_by_default(original: Any) -> Any:
    def differentiate(*args: Any, retain_graph: Any = None, **options: Any) -> Any:
        return original(*args, retain_graph=bool(retain_graph), **options)

    return differentiate


@contextmanager
def _never_twice() -> Iterator[None]:
    """A node that ran in a pass that does not retain the graph cannot run again."""
    retained = [True]
    done: dict[int, Any] = {}

    def noting(original: Any) -> Any:
        def differentiate(*args: Any, retain_graph: Any = None, create_graph: bool = False, **options: Any) -> Any:
            retained[0] = create_graph if retain_graph is None else retain_graph
            return original(*args, retain_graph=retain_graph, create_graph=create_graph, **options)

        return differentiate

    def once(original: Any, ctx: Any, *cotangents: Any) -> Any:
        if id(ctx) in done:
            raise RuntimeError("Trying to backward through the graph a second time")
        if not retained[0]:
            done[id(ctx)] = ctx
        return original(ctx, *cotangents)

    with ExitStack() as stack:
        for name in ("grad", "backward"):
            stack.enter_context(replaced(torch.autograd, name, noting))
        stack.enter_context(around_backward(once))
        yield


@contextmanager
def _saves_in_backward() -> Iterator[None]:
    """What save_for_backward is called with in backward is what later passes read."""
    running: list[Any] = []
    later: dict[int, Any] = {}

    def save(original: Any, ctx: Any, *tensors: Any) -> None:
        if among(running, ctx):
            later[id(ctx)] = ctx, tensors
        original(ctx, *tensors)

    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        running.append(ctx)
        try:
            return original(ctx, *cotangents)
        finally:
            running.pop()

    def read(ctx: Any, saved: Any) -> Any:
        return later[id(ctx)][1] if id(ctx) in later else saved

    with ctx_method("save_for_backward", save), around_backward(run), ctx_attribute("saved_tensors", read):
        yield


def _refused_in_backward() -> AbstractContextManager[Any]:
    def run(original: Any, ctx: Any, *cotangents: Any) -> Any:
        def refuse(_: Any, __: Any, *tensors: Any) -> None:
            raise RuntimeError("save_for_backward was called in backward")

        with ctx_method("save_for_backward", refuse):
            return original(ctx, *cotangents)

    return around_backward(run)


def _cloned(_: Any, x: Any) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) and x.is_inference() else x


def _refused(save: Any, ctx: Any, *tensors: Any) -> None:
    if any(x.is_inference() for x in tensors_of(tensors)):
        raise RuntimeError("Inference tensors cannot be saved")
    save(ctx, *tensors)


FAULTS = (
    Fault("SAVE-01", lambda: ctx_attribute("saved_tensors", _without_none), neighbours=("SAVE-12",)),
    Fault(
        "SAVE-01",
        lambda: ctx_attribute("saved_tensors", _backwards),
        neighbours=("SAVE-12",),
        words="with None among them saved tensors come back in reverse",
    ),
    Fault("SAVE-02", lambda: saving(_only_tensors)),
    Fault("SAVE-02", lambda: ctx_method("save_for_backward", _vague), words="the error does not say which argument"),
    Fault("SAVE-03", lambda: ctx_attribute("saved_tensors", lambda _, saved: saved or None)),
    Fault("SAVE-03", lambda: ctx_attribute("saved_tensors", lambda _, saved: list(saved)), words="a list"),
    Fault("SAVE-04", lambda: reading(_output_copied)),
    Fault("SAVE-04", lambda: reading(_output_without_history), words="a saved output comes back without its node"),
    Fault("SAVE-04", lambda: reading(_input_as_view), words="a saved input comes back as a view of it"),
    Fault("SAVE-04", lambda: reading(_result_without_history), words="an input with a history comes back detached"),
    Fault("SAVE-05", lambda: readable_after("modified by an inplace operation")),
    Fault(
        "SAVE-05",
        lambda: readable_after("modified by an inplace operation", torch.is_grad_enabled),
        words="nothing is checked under create_graph",
    ),
    Fault(
        "SAVE-05",
        lambda: replaced(torch.Tensor, "detach", _other_counter),
        words="changes through detached aliases are not seen",
    ),
    Fault("SAVE-06", _compares_values),
    Fault("SAVE-07", lambda: around_backward(_reads_anyway), neighbours=("SAVE-11",)),
    Fault("SAVE-08", _checks_attributes),
    Fault("SAVE-08", lambda: after_forward(_attributes_copied), words="attributes of ctx are copies"),
    Fault("SAVE-09", lambda: readable_after("backward through the graph a second time")),
    Fault("SAVE-10", lambda: replaced(torch.autograd, "grad", _free_by_default), neighbours=("SAVE-09",)),
    Fault("SAVE-11", _never_twice),
    Fault("SAVE-12", _saves_in_backward),
    Fault("SAVE-12", _refused_in_backward, words="save_for_backward in backward is an error"),
    Fault("SAVE-13", lambda: saving(_cloned)),
    Fault(
        "SAVE-13",
        lambda: ctx_method("save_for_backward", _refused),
        words="inference tensors are refused in calls that are not recorded",
    ),
)
