"""The ways to put a fault into this process: changes of torch, and of what passes between it and custom Functions.

`planting` says what a plant and a method are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction, FunctionCtx

from autograd_conformance.selftests.faults.planting import Method, Plant, all_of, put, wrapped


def anew(make: Callable[..., AbstractContextManager[Any]]) -> Callable[..., Plant]:
    """A function of a fault with a memory, called each time that the fault is planted, gives a plant."""
    return lambda *args, **options: lambda: make(*args, **options)


# --- what stands in an attribute -------------------------------------------------------------------------------------


def ctx_attribute(name: str, read: Callable[[Any, Any], Any]) -> Plant:
    """Reading ``ctx.name`` gives ``read(ctx, what it is)``."""
    return ctx_property(name, lambda original, ctx: read(ctx, original(ctx)))


def ctx_property(name: str, read: Method, write: Method | None = None) -> Plant:
    """Reading ``ctx.name`` is ``read(original, ctx)``, and setting it ``write(original, ctx, value)``."""

    def plant() -> AbstractContextManager[Any]:
        inherited = next(vars(kind)[name] for kind in BackwardCFunction.__mro__ if name in vars(kind))

        def get(ctx: Any) -> Any:
            return read(lambda c: inherited.__get__(c, type(c)), ctx)

        def assign(ctx: Any, value: Any) -> None:
            if write is None:
                inherited.__set__(ctx, value)
            else:
                write(inherited.__set__, ctx, value)

        changed = property(get, assign, lambda ctx: inherited.__delete__(ctx))
        return patch.object(BackwardCFunction, name, changed, create=True)

    return plant


def ctx_method(name: str, method: Method) -> Plant:
    """``ctx.name(*args)`` is ``method(original, ctx, *args)``."""
    return wrapped(BackwardCFunction, name, method)


def set_on_ctx(method: Method) -> Plant:
    """An assignment to an attribute of ctx is ``method(assign, ctx, name, value)``."""
    return put(BackwardCFunction, "__setattr__", lambda ctx, *pair: method(object.__setattr__, ctx, *pair))


# --- what a call of a Function goes through --------------------------------------------------------------------------


def around_apply(method: Method) -> Plant:
    """``F.apply(*args)`` is ``method(original, F, *args)``."""

    def plant() -> AbstractContextManager[Any]:
        # A class method of Python, or from 2.14 on one of C++.
        inherited = Function.__dict__["apply"]

        def original(c: Any, /, *args: Any, **options: Any) -> Any:
            return inherited.__get__(None, c)(*args, **options)

        def apply(cls: Any, *args: Any, **options: Any) -> Any:
            return method(original, cls, *args, **options)

        return patch.object(Function, "apply", classmethod(apply))

    return plant


def around_static(name: str, method: Method) -> Plant:
    """A Function's static method is ``method(original, *args)`` while apply runs on a class that defines it."""

    def apply(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
        mine = getattr(cls, name)
        if mine is getattr(Function, name):
            return original(cls, *args, **options)
        with patch.object(cls, name, staticmethod(wraps(mine)(lambda *a, **k: method(mine, *a, **k)))):
            return original(cls, *args, **options)

    return around_apply(apply)


def after_forward(action: Callable[[Any, Sequence[Any], Any], Any]) -> Plant:
    """``action(ctx, arguments, outputs)`` follows the forward, or the setup_context, of every call."""

    def forward(original: Any, ctx: Any, *args: Any, **options: Any) -> Any:
        outputs = original(ctx, *args, **options)
        action(ctx, args, outputs)
        return outputs

    def setup_context(original: Any, ctx: Any, inputs: Any, output: Any) -> None:
        original(ctx, inputs, output)
        action(ctx, inputs, output)

    combined = where(lambda *args: bool(args) and isinstance(args[0], FunctionCtx), forward)
    return lambda: all_of(around_static("setup_context", setup_context), around_static("forward", combined))


def noting_calls(note: Callable[[Any, Any, Sequence[Any], Sequence[Any]], Any]) -> Plant:
    """``note(node, cls, arguments, outputs)`` follows each call that makes a node."""

    def apply(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
        found = original(cls, *args, **options)
        nodes = [y.grad_fn for y in tupled(found) if getattr(y, "grad_fn", None) is not None]
        if nodes:
            note(nodes[0], cls, args, tupled(found))
        return found

    return around_apply(apply)


def called_with(change: Callable[[Sequence[Any]], Sequence[Any]]) -> Plant:
    """apply gets ``change(its arguments)``."""
    return around_apply(lambda original, cls, *args, **options: original(cls, *change(args), **options))


def outputs(change: Callable[[Any], Any]) -> Plant:
    """apply gives ``change(what it gives)``."""
    return around_apply(gives(change))


def each_output(change: Callable[[Any], Any]) -> Plant:
    """apply gives ``change(it)`` for each of its tensors."""
    return outputs(lambda found: of_tensors(change, found))


def around_backward(method: Method) -> Plant:
    """The engine's call of a Function's backward is ``method(original, ctx, *cotangents)``."""
    return wrapped(BackwardCFunction, "apply", method)


def cotangents(change: Callable[[Any, Sequence[Any]], Sequence[Any]]) -> Plant:
    """Backward gets ``change(ctx, its cotangents)``."""
    return around_backward(lambda original, ctx, *given: original(ctx, *change(ctx, given)))


def each_cotangent(change: Callable[[Any], Any]) -> Plant:
    """Backward gets ``change(it)`` for each cotangent that is a tensor."""
    return cotangents(lambda _, given: of_tensors(change, given))


def gradients(change: Callable[[Any, Sequence[Any]], Any]) -> Plant:
    """What backward returned, as a tuple, is ``change(ctx, it)``."""
    return around_backward(lambda original, ctx, *given: change(ctx, tupled(original(ctx, *given))))


def around_engine(method: Method) -> Plant:
    """A pass is ``method(run, outputs, cotangents, inputs, accumulate)``, and ``run`` takes the last but one."""

    def engine(
        original: Any, outputs: Any, cotangents: Any, retain: Any, create: Any, inputs: Any, *unused: Any,
        accumulate_grad: bool, **options: Any,
    ) -> Any:  # fmt: skip
        def run(outputs: Any, cotangents: Any, inputs: Any, allow_unused: bool | None = None) -> Any:
            rest = unused if allow_unused is None or not unused else (allow_unused,)
            return original(
                outputs, cotangents, retain, create, inputs, *rest, accumulate_grad=accumulate_grad, **options
            )

        return method(run, tuple(outputs), tuple(cotangents), tuple(inputs), accumulate_grad)

    return wrapped(torch.autograd, "_engine_run_backward", engine)


def around_grad(method: Method) -> Plant:
    """``autograd.grad(outputs, inputs, cotangents)`` is ``method(original, outputs, inputs, cotangents)``."""

    def grad(original: Any, outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **options: Any) -> Any:
        return method(original, outputs, inputs, grad_outputs, *args, **options)

    return wrapped(torch.autograd, "grad", grad)


# --- methods ---------------------------------------------------------------------------------------------------------


def gives(change: Callable[[Any], Any]) -> Method:
    """A method whose result is ``change(the original's)``."""
    return lambda original, *args, **options: change(original(*args, **options))


def options(**changed: Any) -> Method:
    """The original with these keyword arguments, whatever the caller asks for."""
    return lambda original, *args, **given: original(*args, **{**given, **changed})


def under(mode: Callable[..., AbstractContextManager[Any]]) -> Method:
    """The original within ``mode()``."""

    def method(original: Any, *args: Any, **options: Any) -> Any:
        with mode():
            return original(*args, **options)

    return method


def where(holds: Callable[..., Any], method: Method) -> Method:
    """The method where ``holds(*args)``, the original elsewhere."""

    def chosen(original: Any, *args: Any, **options: Any) -> Any:
        return method(original, *args, **options) if holds(*args) else original(*args, **options)

    return chosen


def recorded(method: Method) -> Method:
    """The method where grad mode is on, as it is in a pass that builds a graph; the original elsewhere."""
    return where(lambda *_: torch.is_grad_enabled(), method)


def rescued(instead: Callable[..., Any], *kinds: type[Exception], says: str = "") -> Method:
    """``instead(*args)`` where the original raises an error, by default a RuntimeError, with these words."""

    def method(original: Any, *args: Any, **options: Any) -> Any:
        try:
            return original(*args, **options)
        except Exception as raised:
            if not isinstance(raised, kinds or RuntimeError) or says not in str(raised):
                raise
        return instead(*args)

    return method


def raising(words: str, error: type[Exception] = RuntimeError) -> Method:
    """An error with these words."""

    def method(*_: Any, **__: Any) -> Any:
        raise error(words)

    return method


def refused(wrong: Callable[..., Any], words: str, error: type[Exception] = RuntimeError) -> Method:
    """What the original gives; an error with these words where ``wrong(it, *args)``."""

    def method(original: Any, *args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        if wrong(found, *args):
            raise error(words)
        return found

    return method


def first(action: Callable[..., Any]) -> Method:
    """``action(*args)``, and then the original."""
    return lambda original, *args, **options: (action(*args), original(*args, **options))[1]


def last(around: Callable[[Method], Plant]) -> tuple[list[Any], Plant]:
    """The arguments of the call that began last; the list is right within the plant."""
    known: list[Any] = []
    return known, around(first(lambda *args: known.__setitem__(slice(None), args)))


def noting(around: Callable[[Method], Plant]) -> tuple[list[Any], Plant]:
    """The first arguments of the calls that are running, the outermost first; the list is right within the plant."""
    running: list[Any] = []

    def method(original: Any, *args: Any, **options: Any) -> Any:
        running.append(args[0])
        try:
            return original(*args, **options)
        finally:
            running.pop()

    return running, around(method)


@contextmanager
def silence() -> Iterator[None]:
    """Without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def recording_if(on: Callable[[], Any]) -> Callable[[], AbstractContextManager[Any]]:
    """For `under`: grad mode is ``on()``."""
    return lambda: torch.set_grad_enabled(bool(on()))


# --- values ----------------------------------------------------------------------------------------------------------


def tupled(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def of_tensors(change: Callable[[Any], Any], value: Any) -> Any:
    """The value, or each of a tuple of them, changed where it is a tensor."""
    if isinstance(value, tuple):
        return tuple(change(x) if isinstance(x, torch.Tensor) else x for x in value)
    return change(value) if isinstance(value, torch.Tensor) else value


def detached(value: Any) -> Any:
    return of_tensors(torch.Tensor.detach, value)


def tensors_of(values: Sequence[Any]) -> list[Any]:
    return [x for x in values if isinstance(x, torch.Tensor)]


def among(values: Sequence[Any], value: Any) -> bool:
    """Whether it is one of these very objects."""
    return any(x is value for x in values)


def is_zero(g: Any) -> bool:
    """Whether a cotangent is missing, or has elements that are all zero."""
    return g is None or (g.numel() > 0 and not g.any())


def tracked(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


def defines(cls: Any, name: str) -> bool:
    """Whether a Function, or a class that it inherits from, defines this method."""
    return getattr(cls, name) is not getattr(Function, name)


def separate(cls: Any) -> bool:
    """Whether a Function has a setup_context."""
    return defines(cls, "setup_context")


def subclass(cls: Any, **methods: Any) -> Any:
    """A Function of the same name with some static methods, or attributes, replaced."""
    bound = {name: staticmethod(m) if callable(m) else m for name, m in methods.items()}
    return type(cls)(cls.__name__, (cls,), bound)


def leaves_of(outputs: Sequence[Any]) -> list[Any]:
    """The leaves of a graph, each once."""
    found, stack, seen = [], [y.grad_fn for y in outputs], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found.extend([node.variable] if hasattr(node, "variable") else [])
        stack.extend(edge for edge, _ in node.next_functions)
    return found


def numbers(group: str, *these: int) -> tuple[str, ...]:
    """The ids of these clauses of a group."""
    return tuple(f"{group}-{number:02}" for number in these)
