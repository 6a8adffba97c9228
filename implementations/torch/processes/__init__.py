"""A function that runs in several processes of torch.distributed at once, as one differentiable function."""

from __future__ import annotations

import inspect
import math
import os
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import torch
from torch import Tensor, distributed

from autograd_conformance.implementations.classes import derives
from autograd_conformance.implementations.misbehaving import Misbehaves
from autograd_conformance.implementations.torch.processes.group import Group, each_part
from autograd_conformance.implementations.torch.processes.serving import differing


def in_processes(
    function: Callable[..., Any],
    processes: int = 2,
    *,
    replicated: Collection[int] = (),
    replicated_outputs: bool = False,
    seconds: float = 20,
) -> Callable[..., Any]:
    """A function that calls another one in several processes at once, as one differentiable function of all of them.

    The processes are the default group of torch.distributed, over gloo on the CPU, so that the function may call
    collectives in its forward and in its backward. A tensor argument and an output have one dimension more, the first:
    process r gets ``x[r]`` and returns ``y[r]``. The gradient is that of the sum over all processes, as if each had a
    loss of its own. It is the derivative of the whole, so that finite differences show a wrong one.

    Args:
        function: Takes tensors and other values, returns a tensor or a tuple of tensors.
        processes: The number of processes.
        replicated: The positions of the tensor arguments that are the same in all processes. They have no dimension
            more, and each process has to return the same gradient, that of all.
        replicated_outputs: Whether the outputs are the same in all processes, which have one loss together.
        seconds: How long a call may take. After one that took longer it is one second.

    Raises ValueError for other values of these. The processes are forked at the first call, and end with the returned
    function. They have the closures and modules of that moment; each call has the caller's tensors, state of torch's
    random numbers, and autocast. Second derivatives are refused. A call raises ValueError if a tensor has no part for
    each process, and RuntimeError if a process raises, takes too long, or disagrees with the first on what is
    replicated.
    """
    if derives(function, torch.autograd.Function):
        function = function.apply
    if type(processes) is not int or processes < 1:
        raise ValueError(f"processes must be an integer of at least 1, got {processes!r}")
    if not isinstance(replicated, Collection) or not all(type(each) is int and each >= 0 for each in replicated):
        raise ValueError(f"replicated must be positions of arguments from 0 on, such as (0,), got {replicated!r}")
    if type(replicated_outputs) is not bool:
        raise ValueError(f"replicated_outputs must be True or False, of all outputs, got {replicated_outputs!r}")
    if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be a positive number, got {seconds!r}")
    if not (hasattr(os, "fork") and distributed.is_available() and distributed.is_gloo_available()):
        raise RuntimeError(
            "in_processes must have processes that can be forked, and a torch with gloo: use Linux or macOS"
        )
    group = Group(function, processes, frozenset(replicated), replicated_outputs, seconds)

    def joint(*args: Any) -> Any:
        return _Joint.apply(group, *args)  # type: ignore[no-untyped-call]

    cls = getattr(function, "__self__", None)
    joint.__name__ = joint.__qualname__ = getattr(cls or function, "__name__", type(function).__name__)
    with suppress(TypeError, ValueError):
        # Findings name the arguments as forward does, of which ctx is none.
        signature = inspect.signature(getattr(cls, "forward", function))
        combined = getattr(cls, "setup_context", None) is torch.autograd.Function.setup_context
        taken = list(signature.parameters.values())[combined:]
        joint.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    return joint


class Disagree(Misbehaves):
    """The processes returned what does not go together."""

    cure = "let each process call the same collectives, and return what fits the results of the others"


class _Joint(torch.autograd.Function):
    """A call in all processes."""

    @staticmethod
    def forward(ctx: Any, group: Group, *args: Any) -> Any:
        ctx.call = call = _Call(group, args)
        ctx.set_materialize_grads(False)
        # So that second derivatives reach the node that refuses them.
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        outputs = call.forward(ctx.needs_input_grad[1:])
        ctx.mark_non_differentiable(*(y for y, tracked in zip(outputs, call.tracked, strict=True) if not tracked))
        return outputs[0] if call.bare else outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Any:
        gradients: Any = _Gradients.apply
        return None, *gradients(ctx.call, ctx.needs_input_grad[1:], cotangents, *cotangents, *ctx.saved_tensors)


class _Gradients(torch.autograd.Function):
    """The gradients of a call, for these cotangents. The tensors that come last are what they depend on."""

    @staticmethod
    def forward(_: Any, call: _Call, needs: Sequence[bool], cotangents: Sequence[Tensor | None], *__: Any) -> Any:
        return tuple(call.backward(cotangents, needs))

    @staticmethod
    def backward(_: Any, *__: Any) -> NoReturn:
        raise NotImplementedError("in_processes computes first derivatives only, got a second backward through them")


class _Call:
    """A call that the processes keep for backward, as long as this object lives."""

    def __init__(self, group: Group, args: Sequence[Any]) -> None:
        self.group, self.args, self.number = group, args, next(group.numbers)
        self.tracked: list[bool] = []
        self.bare = False

    def forward(self, needs: Sequence[bool]) -> tuple[Tensor, ...]:
        """The outputs of all processes. Sets which require grad in any of them, and whether it is one output alone."""
        group = self.group
        for position in sorted(group.replicated)[-1:]:
            if position >= len(self.args):
                raise ValueError(f"replicated must be positions of the {len(self.args)} arguments, got {position}")
        parts = [group.parts(number, x) for number, x in enumerate(self.args)]
        kinds = group.answers("forward", self.number, parts, needs)
        weakref.finalize(self, group.done.append, self.number)
        forms = {(bare, len(outputs)) for bare, outputs, _ in kinds}
        if len(forms) > 1:
            raise Disagree("the outputs must be as many in all processes, a tensor alone or a tuple in all of them")
        ((self.bare, _),) = forms
        outputs = [outputs for _, outputs, _ in kinds]
        self.tracked = [any(flags) for flags in zip(*(flags for *_, flags in kinds), strict=True)]
        whole = group.replicated_outputs
        return tuple(_together(f"output {n}", ys, whole) for n, ys in enumerate(zip(*outputs, strict=True)))

    def backward(self, cotangents: Sequence[Tensor | None], needs: Sequence[bool]) -> list[Tensor | None]:
        """The gradients of all arguments, None where they are not needed, or where every process has None."""
        group = self.group
        parts = [each_part(g, group.size, whole=group.replicated_outputs) for g in cotangents]
        found = group.answers("backward", self.number, parts, needs)
        return [
            _gradient(f"the gradient of argument {number}", gradients, x, number in group.replicated)
            for number, (x, gradients) in enumerate(zip(self.args, zip(*found, strict=True), strict=True))
        ]


def _together(what: str, parts: Sequence[Tensor], replicated: bool) -> Tensor:
    """What all processes have. Raises Disagree if it is not the same where it should be."""
    forms = {f"{str(part.dtype).removeprefix('torch.')}{list(part.shape)}" for part in parts}
    if len(forms) > 1:
        raise Disagree(f"{what} must have one dtype and shape in all processes, got {', '.join(sorted(forms))}")
    if not replicated:
        return torch.stack(list(parts))
    for rank, part in enumerate(parts):
        apart = differing(part, parts[0])
        if part.is_floating_point() or part.is_complex():
            # Another order of a sum is no disagreement.
            bound = torch.finfo(part.dtype).eps ** 0.5 * parts[0].abs().max() if part.numel() else 0
            apart &= ~((part - parts[0]).abs() <= bound)
        for index in map(tuple, apart.nonzero()[:1].tolist()):
            raise Disagree(
                f"{what} must be the same in all processes, since it is replicated: at {index} process {rank} has "
                f"{part[index].item()}, process 0 has {parts[0][index].item()}; is an all_reduce missing?"
            )
    return parts[0]


def _gradient(what: str, parts: Sequence[Tensor | None], x: Any, replicated: bool) -> Tensor | None:
    """The gradient of an argument. None in some of the processes stands for zeros."""
    if all(part is None for part in parts):
        return None
    shape = x.shape if replicated else x.shape[1:]
    filled = [torch.zeros(shape, dtype=x.dtype) if part is None else part for part in parts]
    return _together(what, filled, replicated).to(x.device)
