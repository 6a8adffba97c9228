"""What the steps of a generated program do, and what comes of a program that runs in some way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from autograd_conformance.strategies.programs import Input, Program

# The derivatives of these Functions are off by factors: so a result shows whether the own rules were used.


class Scaled(Function):
    """Twice a tensor."""

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Nothing is kept."""

    @staticmethod
    def backward(ctx, g):
        return 3 * g


class SavesInput(Function):
    """The square, with the input saved."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * g


class SavesOutput(SavesInput):
    """The square, with the output saved."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


class KeepsInput(SavesInput):
    """The square, with the input as an attribute of ctx, where nobody looks after its version."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        (ctx.x,) = inputs

    @staticmethod
    def backward(ctx, g):
        return 5 * ctx.x * g


class Product(Function):
    """The product of two tensors, with gradients for what needs them."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        of_x = (3 * g * y).sum_to_size(x.shape) if ctx.needs_input_grad[0] else None
        of_y = (5 * g * x).sum_to_size(y.shape) if ctx.needs_input_grad[1] else None
        return of_x, of_y


class Two(Scaled):
    """Twice a tensor, and three times the tensor."""

    @staticmethod
    def forward(x):
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, g, h):
        return 5 * g + 7 * h


class Marked(Two):
    """Twice a tensor, and another result that is not differentiable."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        return 5 * g


class Dirty(Scaled):
    """A tensor, doubled in place."""

    @staticmethod
    def forward(x):
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(*inputs)


@cache
def _operator() -> Any:
    """The square as an operator, defined once per process."""

    @torch.library.custom_op("autograd_conformance::square_of_programs", mutates_args=())
    def square(x: Tensor) -> Tensor:
        return x * x

    square.register_fake(torch.empty_like)
    square.register_autograd(SavesInput.backward, setup_context=SavesInput.setup_context)
    return square


def _without_grad(x):
    with torch.no_grad():
        return 5 * x


def _under_autocast(x):
    with torch.autocast(x.device.type, torch.bfloat16):
        return torch.sum((x.reshape(1, -1) @ x.new_ones(x.numel(), 2)).to(x.dtype), 0)[:1]


def _with_saved_tensors_hooks(x):
    with saved_tensors_hooks(lambda saved: 2 * saved, lambda packed: packed):
        return SavesInput.apply(x)


STEPS: dict[str, Callable[..., Any]] = {
    "double": lambda x: 2 * x,
    "multiply": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "alias": lambda x: x.view_as(x),
    "first": lambda x: x[:1],
    "detach": lambda x: x.detach(),
    "Scaled": Scaled.apply,
    "SavesInput": SavesInput.apply,
    "SavesOutput": SavesOutput.apply,
    "KeepsInput": KeepsInput.apply,
    "Product": Product.apply,
    "FirstOfTwo": lambda x: Two.apply(x)[0],
    "SumOfTwo": lambda x: sum(Two.apply(x)),
    "Marked": lambda x: Marked.apply(x)[0],
    "Dirty": Dirty.apply,
    "operator": lambda x: _operator()(x),
    "double_": lambda x: x.mul_(2),
    "add_": lambda x, y: x.add_(y),
    "no_grad": _without_grad,
    "autocast": _under_autocast,
    "checkpoint": lambda x: checkpoint(SavesInput.apply, x, use_reentrant=False),
    "saved_tensors_hooks": _with_saved_tensors_hooks,
    "vmap": lambda x: torch.func.vmap(lambda one: one * one)(x),
    "grad": lambda x: torch.func.grad(lambda y: torch.sum(SavesInput.apply(y)))(x),
}

_VALUES = ((1.0, 2.0, -1.0), (2.0, -1.0, 3.0))


@dataclass
class Outcome:
    """What comes of a program: its result, what it does to its inputs, their gradients, and what its hooks got.

    ``raised`` says in which part of it there was an exception, and which.
    """

    raised: str = ""
    value: Any = None
    tracked: bool = False
    inputs: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, bool] = field(default_factory=dict)
    gradients: dict[str, Any] = field(default_factory=dict)
    hooks: list[Any] = field(default_factory=list)


def outcome(program: Program, device: str, way: Callable[..., Any] = lambda call: call) -> Outcome:
    """Run a program on a device, in this way, and then a backward pass from its result."""
    found, seen, part = Outcome(), [], "forward"
    leaves = _leaves(program, device)
    given = {each.name: _given(each, leaves[each.name]) for each in program.inputs}
    try:
        result = way(lambda *tensors: _run(program, tensors, seen))(*given.values())
        found.value, found.tracked = result.tolist(), result.requires_grad
        found.inputs = {name: x.tolist() for name, x in given.items()}
        found.changed = {name: x._version > 0 for name, x in given.items()}
        part = "backward"
        if program.changed:
            with torch.no_grad():
                given[program.changed].add_(1)
        if result.requires_grad:
            result.sum().backward()
        found.gradients = {name: None if x.grad is None else x.grad.tolist() for name, x in leaves.items()}
        found.hooks = sorted(g.tolist() for g in seen)
    except NotImplementedError:
        raise
    except RuntimeError as raised:
        # A change of a leaf, or of what is saved. The other way raises it, too.
        found.raised = f"{part}: {type(raised).__name__}: {raised}"
    return found


def transformed(program: Program, device: str) -> Outcome:
    """The result and gradients of a program by func.vjp, for what requires grad; None where they are zeros."""
    seen: list[Any] = []
    leaves = {name: x.detach() for name, x in _leaves(program, device).items()}
    tracked = [each.name for each in program.inputs if each.kind != "untracked"]

    def call(*tensors: Tensor) -> Tensor:
        values = {**leaves, **dict(zip(tracked, tensors, strict=True))}
        return _run(program, [_given(each, values[each.name]) for each in program.inputs], seen)

    result, pullback = torch.func.vjp(call, *(leaves[name] for name in tracked))
    found = dict(zip(tracked, pullback(torch.ones_like(result)), strict=True))
    gradients = {name: found[name].tolist() if name in found and found[name].any() else None for name in leaves}
    return Outcome(value=result.tolist(), gradients=gradients, hooks=sorted(g.tolist() for g in seen))


def _leaves(program: Program, device: str) -> dict[str, Tensor]:
    made = (torch.tensor(values, device=device) for values in _VALUES)
    return {
        each.name: x.requires_grad_(each.kind != "untracked") for each, x in zip(program.inputs, made, strict=False)
    }


def _given(given: Input, leaf: Tensor) -> Tensor:
    """A tensor as the program gets it: a leaf, or the result of an operation."""
    return leaf * 1 if given.kind == "intermediate" else leaf


def _run(program: Program, tensors: Sequence[Tensor], seen: list[Any]) -> Tensor:
    values = dict(zip((each.name for each in program.inputs), tensors, strict=True))
    for step in program.steps:
        operands = [values[name] for name in step.operands]
        if step.kind == "hook":
            _hook(operands[0], _noting(seen) if step.operation == "noting_hook" else _tripled)
            continue
        result = STEPS[step.operation](*operands)
        if step.result:
            values[step.result] = result
    # What is returned is no input.
    return sum(values[name] for name in program.returned) * 1


def _hook(x: Tensor, hook: Callable[[Tensor], Tensor]) -> None:
    """Register a hook; only what requires grad may have one."""
    if not torch.compiler.is_compiling():
        # Without it the process ends if x is a view whose base was changed: pytorch#196459.
        _ = x.grad_fn
    if x.requires_grad:
        x.register_hook(hook)


# A compiler can trace this one.
def _tripled(g: Tensor) -> Tensor:
    return 3 * g


def _noting(seen: list[Any]) -> Callable[[Tensor], Tensor]:
    """A hook that notes the gradient, and doubles it."""

    def hook(g: Tensor) -> Tensor:
        seen.append(g.detach().clone())
        return 2 * g

    return hook
