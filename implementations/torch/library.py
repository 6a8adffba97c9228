"""PyTorch with every custom Function as an operator: `torch.library.custom_op` with `register_autograd`."""

from __future__ import annotations

import inspect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.autograd import function as torch_ag
from torch.utils._python_dispatch import _disable_current_modes

from autograd_conformance.implementations.adapting.lowering import Context
from autograd_conformance.implementations.protocol import CAPABILITIES, as_tuple
from autograd_conformance.implementations.torch import TorchImplementation, applies
from autograd_conformance.implementations.torch.operator_deviations import DEVIATIONS

SPACE = "autograd_conformance_bodies"

# How many operators stay registered. One that is needed again is made again.
_KEPT = 128

# The types of a schema for the types of Python. A list has those of its elements.
_SCALARS = {bool: "bool", int: "int", float: "float", str: "str"}

# The bodies that read the values of their arguments. The shapes of their outputs do not depend on these.
_READING = ("NumpyTake", "NumpySort", "ScipyConv2d", "SpecialSpmm")

# The bodies that change their input.
_IN_PLACE = ("Inplace", "ReciprocalInplace")

# What a ctx of torch has itself, or gets by a method.
_OWN = ("saved_tensors", "marked", "needs_input_grad")

_numbers = itertools.count()


class _Handed(threading.local):
    """What goes around the operators of a thread: which arguments of the call require grad, and what forward left.

    torch calls setup_context next to forward. A kernel may get copies of the arguments, which require no grad.
    """

    needs: tuple[bool, ...] = ()
    left: _Left | None = None


_handed = _Handed()


@dataclass(frozen=True)
class _Left:
    """A ctx after forward. Its tensors are numbers of the tensors of a call: first its arguments, then its outputs."""

    saved: tuple[int | None, ...]
    marked: tuple[int, ...]
    tensors: dict[str, int]
    others: dict[str, Any]


def schema_type(value: Any) -> str:
    """The type in a schema of an argument with this value. Raises TypeError if an operator takes no such argument."""
    if value is None or isinstance(value, torch.Tensor):
        return "Tensor?" if value is None else "Tensor"
    if isinstance(value, tuple | list):
        (inner,) = {*map(schema_type, value)} or {"int"}
        return f"{inner}[]"
    if type(value) not in _SCALARS:
        raise TypeError(f"an operator takes no argument of the type {type(value).__name__}")
    return _SCALARS[type(value)]


def _literal(value: Any) -> str:
    """A default in a schema."""
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple | list) else str(value)


def _zeros(value: Any, device: str = "") -> Any:
    """Zeros like a tensor, which may be one of a transform without memory; any other value as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.zeros(value.shape, dtype=value.dtype, device=device or value.device)


@dataclass
class _Operator:
    """A body as an operator, for arguments of these types: the kernel, the fake kernel, and the autograd formula.

    What forward saves beside arguments and outputs becomes further outputs, as torch's documentation advises. What it
    leaves on ctx that is no tensor is handed to setup_context.
    """

    cls: Any
    types: tuple[str, ...]
    outputs: int = field(init=False, default=0)
    bare: bool = field(init=False, default=False)

    @cached_property
    def separate(self) -> bool:
        return hasattr(self.cls, "setup_context")

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        return _parameters(self.cls, len(self.types))

    def made(self, args: Sequence[Any]) -> Any:
        """The operator, registered. Zeros instead of these arguments show how many outputs it has."""
        with _disable_current_modes(), torch.no_grad(), np.errstate(all="ignore"):
            found = self._found(inspect.unwrap(self.cls.forward), [_zeros(x) for x in self.complete(args)])
        name = f"{SPACE}::{self.cls.__name__}_{next(_numbers)}"
        op = torch.library.custom_op(name, self.kernel, mutates_args=(), schema=self._schema(len(found)))
        op.register_fake(self.kernel_of_zeros if self.cls.__name__ in _READING else self.kernel)
        op.register_autograd(self.backward, setup_context=self.setup_context)
        if self.separate and hasattr(self.cls, "vmap"):
            op.register_vmap(lambda info, in_dims, *args: self.cls.vmap(info, in_dims, *self.complete(args)))
        return op

    def kernel(self, *args: Any) -> Any:
        """What the operator computes, also on tensors without values."""
        found = self._found(self.cls.forward, self.complete(args))
        return found[0] if len(found) == 1 else found

    def kernel_of_zeros(self, *args: Any) -> Any:
        """Tensors without values, like what the operator computes of zeros."""
        with _disable_current_modes(), np.errstate(all="ignore"):
            found = as_tuple(self.kernel(*(_zeros(x, "cpu") for x in args)))
        device = next(x.device for x in args if isinstance(x, torch.Tensor))
        like = tuple(torch.empty(x.shape, dtype=x.dtype, device=device) for x in found)
        return like[0] if len(like) == 1 else like

    def setup_context(self, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """The body's own setup_context, or what its forward left on its ctx."""
        args, outputs = self.complete(inputs), as_tuple(output)
        if self.separate:
            self.cls.setup_context(ctx, args, output)
            return
        left, _handed.left = _handed.left, None
        assert left is not None
        tensors = [*args, *outputs]
        ctx.save_for_backward(*(None if n is None else tensors[n] for n in left.saved))
        ctx.mark_non_differentiable(*(tensors[n] for n in left.marked), *outputs[self.outputs :])
        ctx.set_materialize_grads(left.others.pop("materialize_grads"))
        for name, value in (*left.others.items(), *((name, tensors[n]) for name, n in left.tensors.items())):
            setattr(ctx, name, value)

    def backward(self, ctx: Any, *cotangents: Any) -> Any:
        """The body's backward, which knows nothing of the further outputs."""
        return self.cls.backward(ctx, *cotangents[: self.outputs])

    def _found(self, forward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of a forward, and the further ones."""
        ctx = Context(_handed.needs)
        returned = forward(*args) if self.separate else forward(ctx, *args)
        outputs = as_tuple(returned)
        self.outputs, self.bare = len(outputs), not isinstance(returned, tuple)
        if self.separate:
            return outputs
        tensors = [*args, *outputs]
        attributes = {k: v for k, v in vars(ctx).items() if k not in _OWN}
        held = {k: v for k, v in attributes.items() if isinstance(v, torch.Tensor)}
        for value in (*ctx.saved_tensors, *held.values()):
            if value is not None and not any(value is each for each in tensors):
                tensors.append(value)

        def number(value: Any) -> int:
            return next(n for n, each in enumerate(tensors) if each is value)

        _handed.left = _Left(
            tuple(None if x is None else number(x) for x in ctx.saved_tensors),
            tuple(map(number, ctx.marked)),
            {name: number(value) for name, value in held.items()},
            {name: value for name, value in attributes.items() if name not in held},
        )
        return tuple(tensors[len(args) :])

    def complete(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments as the body has them: the dispatcher leaves out defaults, and has lists instead of tuples."""
        given = (*args, *(p.default for p in self.parameters[len(args) :]))
        return tuple(tuple(x) if isinstance(x, list) else x for x in given)

    def _schema(self, outputs: int) -> str:
        arguments = []
        for number, (p, kind) in enumerate(zip(self.parameters, self.types, strict=True)):
            rest = zip(self.parameters[number:], self.types[number:], strict=True)
            fits = all(q.default is not q.empty and _fits(schema_type(q.default), k) for q, k in rest)
            arguments.append(f"{kind} {p.name}{f'={_literal(p.default)}' if fits else ''}")
        returned = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        return f"({', '.join(arguments)}) -> {returned}"


def _fits(kind: str, wanted: str) -> bool:
    """Whether a default of one type of a schema can be one of an argument of another."""
    return kind == wanted or (kind == "int" and wanted == "float")


def _parameters(cls: Any, count: int) -> list[inspect.Parameter]:
    """The parameters of a body's forward, without ctx; as many as there are arguments if it takes any number."""
    found = list(inspect.signature(cls.forward).parameters.values())
    named = [p for p in found if p.kind is not p.VAR_POSITIONAL][not hasattr(cls, "setup_context") :]
    more = range(len(named), count if any(p.kind is p.VAR_POSITIONAL for p in found) else 0)
    return [*named, *(inspect.Parameter(f"argument{n}", inspect.Parameter.POSITIONAL_ONLY) for n in more)]


_operators: OrderedDict[Any, tuple[_Operator, Any]] = OrderedDict()
_lock = threading.RLock()


def _types(cls: Any, args: Sequence[Any]) -> tuple[str, ...]:
    """The types of the arguments of a call in the operator's schema. Those that are left out have their defaults."""
    parameters = _parameters(cls, len(args))
    given = (*args, *(p.default for p in parameters[len(args) :]))
    return tuple("Tensor?" if p.default is None else schema_type(x) for p, x in zip(parameters, given, strict=True))


def _operator(cls: Any, args: Sequence[Any]) -> tuple[_Operator, Any]:
    """The operator for a call of a body, which is made once for each body and types of arguments."""
    key = (cls, _types(cls, args))
    with _lock:
        if key not in _operators:
            mine = _Operator(*key)
            _operators[key] = mine, mine.made(args)
            if len(_operators) > _KEPT:
                _operators.popitem(last=False)[1][1]._lib._destroy()
        _operators.move_to_end(key)
        return _operators[key]


class _Function:
    """The base class of a body."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the operator that is made of the body."""
        mine, op = _operator(cls, args)
        _handed.needs = tuple(isinstance(x, torch.Tensor) and x.requires_grad for x in mine.complete(args))
        found = as_tuple(op(*args))
        return found[0] if mine.bare else found[: mine.outputs]


class TorchLibraryImplementation(TorchImplementation):
    """The same bodies as for torch, each an operator of torch.library.

    An operator with a formula changes no argument, and has no rule for forward mode. Each body has one operator for
    each choice of types of its arguments: a schema has one type for each.
    """

    name = "torch-library"
    capabilities = frozenset(CAPABILITIES) - {"objects", "inplace", "jvp"}
    # A kernel does not know which arguments require grad; in the combined form the adapter tells forward.
    emulated = frozenset({"needs_input_grad"})
    deviations = tuple(d for d in DEVIATIONS if applies(d.cause.releases))
    limits = MappingProxyType({
        **{(name, ""): "it changes its input, and an operator that does so can have no formula" for name in _IN_PLACE},
        ("Select", ""): "it returns a view of its input, and outputs of an operator are no aliases",
        ("ScipyConv2d", "ENV-COMPILE"): "its backward computes with NumPy, and that of an operator must be traceable",
    })  # fmt: skip
    ag: Any = SimpleNamespace(Function=_Function, once_differentiable=torch_ag.once_differentiable)
    dialect = ""
    script = None
    keeps_contract = False
    # A body that is watched is another body in each example, of which an operator is made in a few milliseconds.
    share_of_examples = 0.3

    def simulated_devices(self) -> tuple[str, ...]:
        # Within a kernel lazy tensors have no views.
        return ()
