"""Faults of custom Functions under vmap, of batches of cotangents, and of transforms within each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch._C._functorch import TransformType, _unwrap_for_grad, _wrap_for_grad
from torch._functorch import autograd_function as rules
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters, retrieve_current_functorch_interpreter
from torch._functorch.vmap import unwrap_batched
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.utils._pytree import tree_map, tree_map_only

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.clauses.func import as_operations, generates_rules, has_rule, transforming
from autograd_conformance.selftests.faults.planting import fault


def _forgets_levels(original, cls, *args, **options):
    """Under two levels of vmap and nothing else a generated rule gives zeros."""
    found = original(cls, *args, **options)
    levels = [each.key() for each in retrieve_all_functorch_interpreters()]
    nested = levels == [TransformType.Vmap] * 2 and cls.generate_vmap_rule
    return tree_map_only(torch.Tensor, torch.zeros_like, found) if nested else found


def _written_wins(original, cls, *args, **options):
    written = transforming() and plants.defines(cls, "vmap") and cls.generate_vmap_rule
    return original(plants.subclass(cls, generate_vmap_rule=False) if written else cls, *args, **options)


def _if_the_first_is_batched(original, interpreter, rule, cls, *operands):
    _, in_dims = rules.unwrap_batched(operands, interpreter.level())
    ignored = cls.__name__ == "Custom" and in_dims[0] is None
    return cls.forward(*operands) if ignored else original(interpreter, rule, cls, *operands)


def _zeros_for_mismatches(original, dims, spec, *args):
    found = original(dims, spec, *args)
    return [0] * spec.num_leaves if found is None else found


def batched_grad(stack: Callable[[Callable[[int], Any], int], Any]) -> plants.Plant:
    """A batch of cotangents gives ``stack(gradients_of, size)``; ``gradients_of`` takes a position in the batch."""

    def grad(original, outputs, inputs, cotangents, is_grads_batched=False, **options):
        if not is_grads_batched:
            return original(outputs, inputs, cotangents, **options)

        def gradients_of(member):
            return original(outputs, inputs, [g[member] for g in given], retain_graph=True, **options)

        given = [cotangents] if isinstance(cotangents, torch.Tensor) else cotangents
        return stack(gradients_of, len(given[0]))

    return plants.around_grad(grad)


def _first_for_all(gradients_of, size):
    return tuple(None if g is None else g.expand(size, *g.shape) for g in gradients_of(0))


def _in_a_loop(gradients_of, size):
    each = zip(*map(gradients_of, range(size)), strict=True)
    return tuple(None if found[0] is None else torch.stack(found) for found in each)


def _tangents(change):
    """What func.jvp gives has its tangents changed."""
    return plants.wrapped(torch.func, "jvp", plants.gives(lambda pair: (pair[0], tree_map(change, pair[1]))))


def _with_nested_forward_mode(original, interpreter, cls):
    """A Function's jvp runs one level further out, where the tangents of that level count."""
    level, single = interpreter.level(), original(interpreter, cls)

    def out(values):
        return tree_map_only(torch.Tensor, lambda x: _unwrap_for_grad(x, level), values)

    def jvp(ctx, *tangents):
        ctx = rules.CtxWithSavedTensors(ctx, out(ctx.saved_tensors))
        with _set_fwd_grad_enabled(True), interpreter.lower():
            found = cls.jvp(ctx, *out(tangents))
        return tree_map_only(torch.Tensor, lambda t: _wrap_for_grad(t, level), found)

    if interpreter.key() == TransformType.Jvp:
        single.jvp = staticmethod(jvp)
    return single


def _saved(name):
    """Under a generated rule tensors are saved with the batch dimension first, whichever call saves them."""

    def save(ctx, *tensors):
        size, level = retrieve_current_functorch_interpreter().batch_size(), ctx._pt_current_level
        pairs = zip(*unwrap_batched(tensors, level), strict=True)
        batched = [x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0) for x, dim in pairs]
        getattr(ctx._pt_inner_ctx, name)(*batched)
        ctx._pt_saved_tensors_bdims = (0,) * len(tensors)

    return plants.put(rules.CtxCustomSave, name, save)


def _marked(name):
    """Under a generated rule the tensors that the batched ones are made of are marked."""

    def mark(ctx, *tensors):
        getattr(ctx._pt_inner_ctx, name)(*unwrap_batched(tensors, ctx._pt_current_level)[0])

    return plants.put(rules.CtxCustomSave, name, mark)


def _of_each_call(original, cls, *args):
    """Under a generated rule every output is batched: to each one zeros are added that are."""

    def forward(*given):
        zero = sum(0 * torch.sum(x) for x in given)
        return tree_map(lambda y: y + zero, cls.forward(*given))

    return original(plants.subclass(cls, forward=forward), *args)


def _with_boxed(pack, boxed):
    """Under transforms the cotangents of a boxed backward are ``pack(*cotangents)``; ``boxed`` is then the flag."""

    def packing(cls):
        if not cls.boxed_grads_call or (boxed and hasattr(cls, "packed")):
            return cls
        mine = cls.backward
        packed = {"boxed_grads_call": boxed, "packed": True}
        return plants.subclass(cls, backward=lambda ctx, *given: mine(ctx, pack(*given)), **packed)

    def generate(original, interpreter, cls):
        return original(interpreter, packing(cls))

    def vmapify(original, cls, *args):
        return original(packing(cls), *args)

    return lambda: plants.all_of(
        plants.wrapped(rules, "generate_single_level_function", generate),
        plants.wrapped(rules, "vmapify_autograd_function", vmapify),
    )


def _state_of_the_last_forward():
    """custom_bwd runs backward in the state that the last custom_fwd noted, if its ctx has none."""
    state = {}

    def noting(run, ctx, *args):
        output = run(ctx, *args)
        state.update({name: getattr(ctx, name) for name in ("_dtype", "_fwd_used_autocast")})
        return output

    def taking(run, ctx, *cotangents):
        for name, value in state.items():
            setattr(ctx, name, value)
        return run(ctx, *cotangents)

    def decorator(name, method):
        def custom(original, **options):
            decorate = original(**options)

            def decorated(f):
                run = decorate(f)
                return lambda *args: method(run, *args)

            return decorated

        return plants.wrapped(torch.amp, name, custom)

    return plants.all_of(decorator("custom_fwd", noting), decorator("custom_bwd", taking))


def _inner_checkpoints_detach():
    within = []

    def checkpoint(original, f, *args, **options):
        def inside(*given, **named):
            within.append(f)
            try:
                return f(*given, **named)
            finally:
                within.pop()

        output = original(inside, *args, **options)
        return output.detach() if within else output

    return plants.wrapped(torch.utils.checkpoint, "checkpoint", checkpoint)()


def _each_by_itself(gradients_of, size):
    return tuple(map(torch.stack, zip(*map(gradients_of, range(size)), strict=True)))


FAULTS = (
    fault("VMAP-01", as_operations(lambda cls, *_: transforming(TransformType.Vmap) and not has_rule(cls))),
    fault("VMAP-01: a rule is generated without a request", plants.around_apply(generates_rules)),
    fault("VMAP-02: nested levels give zeros", plants.around_apply(_forgets_levels)),
    fault("VMAP-03: the written rule wins", plants.around_apply(_written_wins)),
    fault("VMAP-05", plants.wrapped(rules, "_broadcast_to_and_flatten", _zeros_for_mismatches)),
    fault(
        "VMAP-06: called only if the first argument is batched",
        plants.wrapped(rules, "custom_function_call_vmap_helper", _if_the_first_is_batched),
    ),
    fault("VMAP-07", batched_grad(_first_for_all)),
    fault("VMAP-07: a loop over the cotangents", batched_grad(_in_a_loop)),
    fault(
        "VMAP-08",
        as_operations(
            lambda cls, *_: transforming(TransformType.Vmap) and cls.__name__ in ("Transformable", "Written")
        ),
        neighbours=("VMAP-01", "VMAP-03", "VMAP-04"),
    ),
    fault("CKPT-14", _inner_checkpoints_detach, neighbours=("CKPT-26",)),
    fault("FUNC-14", _tangents(torch.Tensor.detach)),
    fault("ONCE-08", _tangents(lambda t: 2 * t)),
    fault("BOX-05", _with_boxed(lambda cotangents: tuple(cotangents), boxed=True), "tuple"),
    fault(
        "AMP-05",
        edit("torch.amp.autocast_mode:custom_bwd", "args[0]._fwd_used_autocast", "False"),
        neighbours=("AMP-01",),
    ),
    fault(
        "VMAP-09",
        edit("torch._functorch.autograd_function:vmapify_autograd_function", "(in_dims, out_dims)", "(None, None)"),
        neighbours=("VMAP-02", "VMAP-08", "VMAP-10", "VMAP-11"),
    ),
)

FIXES = (
    Fix("VMAP-07", batched_grad(_each_by_itself), variant="calling"),
    Fix(
        "FUNC-14", plants.wrapped(rules, "generate_single_level_function", _with_nested_forward_mode), variant="forward"
    ),
    Fix("BOX-05", _with_boxed(lambda *cotangents: list(cotangents), boxed=False)),
    Fix("AMP-05", _state_of_the_last_forward),
    Fix("VMAP-09", lambda: plants.all_of(_saved("save_for_backward"), _saved("save_for_forward")), variant="saved"),
    Fix("VMAP-02", plants.wrapped(rules, "vmapify_autograd_function", _of_each_call), variant="shared-output"),
    Fix("VMAP-09", _marked("mark_non_differentiable"), variant="marked"),
    Fix("VMAP-09", _marked("mark_dirty"), variant="dirty"),
)
