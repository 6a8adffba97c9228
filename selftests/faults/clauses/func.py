"""Faults of custom Functions under torch.func."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch._C._functorch import TransformType, is_functorch_wrapped_tensor
from torch._functorch import autograd_function as rules
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch.autograd import Function, functional
from torch.utils._pytree import tree_map, tree_map_only

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import Plant, fault
from autograd_conformance.selftests.faults.plants import separate, tupled


def transforming(*kinds: Any) -> bool:
    """Whether the innermost transform is one of these, by default any."""
    if not torch._C._are_functorch_transforms_active():
        return False
    return not kinds or retrieve_current_functorch_interpreter().key() in kinds


def in_each_level(change: Callable[[Any], dict[str, Any]]) -> Plant:
    """Below func.grad, func.vjp and func.jvp a Function has the methods ``change(cls)`` instead of its own."""

    def generated(original, interpreter, cls):
        changed = cls if hasattr(cls, "changed") else plants.subclass(cls, changed=True, **change(cls))
        return original(interpreter, changed)

    return plants.wrapped(rules, "generate_single_level_function", generated)


def _changed_backward(method):
    """Below a transform backward is ``method(original, ctx, *cotangents)``."""
    return in_each_level(lambda cls: {"backward": partial(method, cls.backward)})


def _changed_setup(method):
    """Below a transform setup_context is ``method(original, ctx, inputs, output)``."""
    return in_each_level(lambda cls: {"setup_context": partial(method, cls.setup_context)})


def has_rule(cls: Any) -> bool:
    return cls.generate_vmap_rule or cls.vmap is not Function.vmap


class Forgetful:
    """A ctx that takes anything and keeps attributes alone."""

    def _take(self, *_):
        pass

    save_for_backward = save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = _take


def its_forward(_: Any, cls: Any, *args: Any, **options: Any) -> Any:
    """What forward computes, recorded operation by operation."""
    return cls.forward(*(() if separate(cls) else (Forgetful(),)), *args, **options)


def as_operations(when: Callable[..., bool]) -> Plant:
    """Where ``when(cls, *args)``, a call is its forward's operations."""
    return plants.around_apply(plants.where(when, its_forward))


def _on_constants(cls, *args):
    plain = not any(is_functorch_wrapped_tensor(x) for x in plants.tensors_of(args))
    return transforming() and not separate(cls) and plain


def _zero_tangents(cls):
    if cls.jvp is not Function.jvp:
        return {}

    def setup_context(ctx, inputs, output):
        cls.setup_context(ctx, inputs, output)
        ctx.likes = [y if isinstance(y, torch.Tensor) and y.is_floating_point() else None for y in tupled(output)]
        ctx.marked = [y is not None and plants.among(ctx.non_differentiable or (), y) for y in ctx.likes]

    def jvp(ctx, *_):
        pairs = zip(ctx.likes, ctx.marked, strict=True)
        return tuple(None if y is None or marked else torch.zeros_like(y) for y, marked in pairs)

    return {"setup_context": setup_context, "jvp": jvp}


def _twice_backwards(f, primals, tangents):
    outputs, pullback = torch.func.vjp(f, *primals)
    return outputs, torch.func.vjp(pullback, tree_map(torch.zeros_like, outputs))[1](tuple(tangents))[0]


def _around_made(name, method):
    """The function that ``torch.func.name`` makes is ``method(original, *args)``."""
    return plants.wrapped(torch.func, name, plants.gives(lambda made: partial(method, made)))


def _jacrev_asks_for_a_rule():
    within, noted = plants.noting(lambda method: _around_made("jacrev", method))

    def apply(original, cls, *args, **options):
        if within and not has_rule(cls):
            raise RuntimeError(f"{cls.__name__} has no vmap support")
        return original(cls, *args, **options)

    return plants.all_of(noted, plants.around_apply(apply))


def generates_rules(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
    """An apply that generates a rule without a request."""
    if transforming() and not has_rule(cls):
        cls = plants.subclass(cls, generate_vmap_rule=True)
    return original(cls, *args, **options)


def _leaves_none():
    """None comes out of func.grad where backward returned it."""
    missing = []

    def backward(original, ctx, *cotangents):
        found = tupled(original(ctx, *cotangents))
        missing.append(any(g is None and need for g, need in zip(found, ctx.needs_input_grad, strict=True)))
        return found

    def gradients(original, *xs):
        missing.clear()
        zeros = original(*xs)
        return tuple(None if not g.any() else g for g in zeros) if any(missing) else zeros

    return plants.all_of(_changed_backward(backward), _around_made("grad", gradients))


def _refuses_expanded(cls):
    def setup_context(ctx, inputs, output):
        cls.setup_context(ctx, inputs, output)
        ctx.shapes = [x.shape if isinstance(x, torch.Tensor) else None for x in inputs]

    def backward(ctx, *cotangents):
        found = cls.backward(ctx, *cotangents)
        if any(g is not None and g.shape != shape for g, shape in zip(tupled(found), ctx.shapes, strict=True)):
            raise RuntimeError("a gradient has another shape than its input")
        return found

    return {"setup_context": setup_context, "backward": backward}


def _detached(value):
    return tree_map_only(torch.Tensor, torch.Tensor.detach, value)


def _untracked(original, ctx, inputs, output):
    original(ctx, inputs, output)
    vars(ctx).update({name: _detached(value) for name, value in vars(ctx).items() if name == "kept"})


def _set_up_twice(original, ctx, inputs, output):
    original(ctx, inputs, output)
    if transforming():
        original(ctx, inputs, output)


def _doubles_dirty_outputs():
    def mark(original, ctx, *tensors):
        ctx.is_dirty = True
        original(ctx, *tensors)

    def backward(original, ctx, *cotangents):
        return original(ctx, *((2 * g for g in cotangents) if getattr(ctx, "is_dirty", False) else cotangents))

    return plants.all_of(plants.ctx_method("mark_dirty", mark), _changed_backward(backward))


def _vjp_for_backward(change):
    def methods(cls):
        if cls.vjp is Function.vjp:
            return {}
        return {"backward": lambda ctx, *given: tuple(map(change, tupled(cls.vjp(ctx, *given))))}

    return in_each_level(methods)


def _drops_keywords(original, cls, *args, **options):
    return original(cls, *args, **{name: value for name, value in options.items() if name == "x" or not transforming()})


def _drops_keyword_only(original, cls, *args, **options):
    parameters = inspect.signature(cls.forward).parameters.values()
    if transforming() and any(p.kind is p.KEYWORD_ONLY for p in parameters):
        return original(plants.subclass(cls, forward=lambda *given: cls.forward(*given)), *args)
    return original(cls, *args, **options)


def _refuses_keywords(original, cls, *args, **options):
    if options:
        raise TypeError(f"{cls.__name__} got an unexpected keyword argument {next(iter(options))!r}")
    return original(cls, *args)


def _negates_vectorized(original, *args, vectorize=False, **options):
    found = original(*args, vectorize=vectorize, **options)
    return tree_map(torch.neg, found) if vectorize else found


def _pair(owner, name, change):
    """A function that returns two things returns ``change`` of them."""
    return plants.wrapped(owner, name, plants.gives(lambda pair: change(*pair)))


def _zero_outputs(outputs, values):
    return tree_map(torch.zeros_like, outputs), values


def _pulls_once(outputs, pullback):
    calls = []

    def pull(*cotangents):
        calls.append(cotangents)
        return pullback(*calls[0])

    return outputs, pull


FAULTS = (
    fault("FUNC-01", as_operations(lambda cls, *_: transforming() and not separate(cls))),
    fault(
        "FUNC-01: vmap alone refuses",
        as_operations(lambda cls, *_: transforming(TransformType.Grad, TransformType.Jvp) and not separate(cls)),
    ),
    fault("FUNC-01: accepted on constants", as_operations(_on_constants)),
    fault(
        "FUNC-02",
        as_operations(lambda cls, *_: transforming(TransformType.Grad) and separate(cls)),
        neighbours=plants.numbers("FUNC", 4, 5, 6, 10, 12, 13, 15, 17, 21),
    ),
    fault(
        "FUNC-02: backward is not differentiated again",
        _changed_backward(plants.gives(lambda found: plants.detached(tupled(found)))),
        neighbours=("FUNC-04", "FUNC-22"),
    ),
    fault(
        "FUNC-02: a pullback gives its first result again",
        _pair(torch.func, "vjp", _pulls_once),
        neighbours=("FUNC-19",),
    ),
    fault("FUNC-02: the outputs of vjp are zero", _pair(torch.func, "vjp", _zero_outputs), neighbours=("FUNC-19",)),
    fault(
        "FUNC-02: pullbacks are not differentiated",
        _pair(torch.func, "vjp", lambda y, pullback: (y, lambda *given: _detached(pullback(*given)))),
    ),
    fault("FUNC-03", in_each_level(_zero_tangents)),
    fault("FUNC-03: the outputs of jvp are zero", _pair(torch.func, "jvp", _zero_outputs)),
    fault(
        "FUNC-03: backward twice instead of jvp",
        plants.put(torch.func, "jvp", _twice_backwards),
        neighbours=("FUNC-12", "FUNC-18"),
    ),
    fault("FUNC-04", _jacrev_asks_for_a_rule, neighbours=("FUNC-06", "FUNC-17")),
    fault("FUNC-04: rules are generated without a request", plants.around_apply(generates_rules)),
    fault("FUNC-05", _leaves_none),
    fault("FUNC-05: an expanded gradient is refused", in_each_level(_refuses_expanded)),
    fault("FUNC-05: zeros instead of None", plants.ctx_method("set_materialize_grads", lambda *_: None)),
    fault("FUNC-06", as_operations(lambda cls, *_: transforming() and cls.__name__ == "Capturing")),
    fault("FUNC-08", _doubles_dirty_outputs),
    fault(
        "FUNC-08: the changed tensor is wrapped again",
        plants.wrapped(
            rules,
            "wrap_outputs_maintaining_identity",
            lambda original, outputs, _, __, *args, **options: original(outputs, (), (), *args, **options),
        ),
    ),
    fault("FUNC-09", _vjp_for_backward(torch.zeros_like), "gradients, position"),
    fault("FUNC-10", plants.around_apply(_drops_keywords)),
    fault("FUNC-10: keyword-only arguments are dropped", plants.around_apply(_drops_keyword_only)),
    fault("FUNC-11", _pair(functional, "jvp", lambda y, found: (y, tree_map(torch.zeros_like, found)))),
    fault("FUNC-11: vectorized ones are negated", plants.wrapped(functional, "jacobian", _negates_vectorized)),
    fault("FUNC-11: the outputs of vjp are zero", _pair(functional, "vjp", _zero_outputs)),
    fault("FUNC-11: the outputs of jvp are zero", _pair(functional, "jvp", _zero_outputs)),
    fault("FUNC-12", _changed_setup(_set_up_twice)),
    fault(
        "FUNC-12: every argument needs a gradient if one does",
        plants.ctx_attribute("needs_input_grad", lambda _, flags: (any(flags),) * len(flags)),
    ),
)

FIXES = (
    Fix("FUNC-07", _changed_setup(_untracked)),
    Fix("FUNC-09", _vjp_for_backward(lambda g: g)),
    Fix("FUNC-10", plants.wrapped(torch.autograd.function, "custom_function_call", _refuses_keywords), variant="vmap"),
)
