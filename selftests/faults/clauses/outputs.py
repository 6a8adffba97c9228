"""Faults of outputs: which of them require grad, which are views, and what backward gets for the others."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.inplace import with_outputs
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import among, ctx_method, each_output, is_zero, tensors_of, tupled


def _each_cotangent(change):
    """What backward gets is ``change(ctx, position, cotangent)``."""
    return plants.cotangents(lambda ctx, given: tuple(change(ctx, i, g) for i, g in enumerate(given)))


def _as_floats(y):
    return y if y.is_floating_point() or y.is_complex() else y.double().requires_grad_()


def _split_duplicates(found):
    return tuple(y.view_as(y) if plants.among(found[:i], y) else y for i, y in enumerate(found))


def _first_position_counts():
    def note(node, _, __, outputs):
        first = {id(y): i for i, y in reversed(list(enumerate(outputs)))}
        node.swaps = {y.output_nr: first[id(y)] for y in outputs}

    def swapped(ctx, cotangents):
        given = list(cotangents)
        for late, early in ctx.swaps.items():
            given[late], given[early] = given[early], given[late]
        return given

    return plants.all_of(plants.noting_calls(note), plants.cotangents(swapped))


def _cannot_be_changed(original, cls, *args):
    outputs = original(cls, *args)
    return tuple(y.unsqueeze(0).unbind()[0] for y in outputs) if cls.__name__ == "Polynomial" else outputs


def _changes_unrecorded(x, factor):
    with torch.no_grad():
        return x.mul_(factor)


def _parameters_for_parameters(original, cls, *args):
    outputs = original(cls, *args)
    wraps = any(isinstance(x, torch.nn.Parameter) for x in args)
    return tuple(torch.nn.Parameter(y.detach()) for y in outputs) if wraps else outputs


@plants.anew
def _with_marks(change):
    """What apply gives is ``change(args, outputs, marked)``."""
    marked = []

    def mark(original, ctx, *tensors):
        marked.extend(tensors)
        original(ctx, *tensors)

    def apply(original, cls, *args):
        marked.clear()
        return change(args, original(cls, *args), marked)

    return plants.all_of(ctx_method("mark_non_differentiable", mark), plants.around_apply(apply))


def _is_returned(x, outputs):
    return any(x.data_ptr() == y.data_ptr() for y in outputs)


def _marks_spread(_, outputs, marked):
    return plants.detached(outputs) if any(_is_returned(x, outputs) for x in marked) else outputs


def _refuses_others(_, outputs, marked):
    if not all(_is_returned(x, outputs) for x in marked):
        raise RuntimeError("mark_non_differentiable: a tensor is not returned")
    return outputs


def _marks_the_input(args, outputs, marked):
    for x in args:
        if plants.among(marked, x) and _is_returned(x, outputs) and x.is_leaf:
            x.requires_grad_(False)
    return outputs


def _for_constants(change):
    """What backward gets for an output that does not require grad is ``change(output, cotangent)``."""

    def note(node, _, __, outputs):
        node.constants = {i: y for i, y in enumerate(outputs) if not y.requires_grad}

    def given(ctx, position, g):
        return change(ctx.constants[position], g) if position in ctx.constants else g

    return lambda: plants.all_of(plants.noting_calls(note), _each_cotangent(given))


def _leaves_if_all_are_marked(outputs):
    if not any(y.requires_grad for y in outputs):
        for y in outputs:
            y.requires_grad_(y.is_floating_point())
    return outputs


def _setting_non_diff(change):
    name = "_materialize_non_diff_grads"
    return plants.put(plants.BackwardCFunction, name, property(lambda _: True, change))


def _none_by_default():
    """Backward gets None for zeros unless set_materialize_grads was called."""

    def note(original, ctx, value):
        ctx.was_set = True
        original(ctx, value)

    def given(ctx, _, g):
        return g if hasattr(ctx, "was_set") or g is None or g.any() else None

    return plants.all_of(ctx_method("set_materialize_grads", note), _each_cotangent(given))


def _none_for_zero(original, ctx, *cotangents):
    return original(ctx, *(None if is_zero(g) else g for g in cotangents))


def _none_once_it_ran(original, ctx, *cotangents):
    again, ctx.ran = hasattr(ctx, "ran"), True
    return _none_for_zero(original, ctx, *cotangents) if again else original(ctx, *cotangents)


def _first_setting_counts(original, ctx, value):
    if not hasattr(ctx, "was_set"):
        original(ctx, value)
    ctx.was_set = True


_SKIPS_ZEROS = plants.where(lambda _, *cotangents: all(map(is_zero, cotangents)), lambda *_: None)


def _filled(cotangents):
    return tuple(torch.zeros(()) if g is None else g for g in cotangents)


@plants.anew
def _with_returned(change):
    """Each output becomes ``change(output, the argument that forward returned as it, arguments)``."""
    returned = []

    def note(_, arguments, outputs):
        known = tensors_of(arguments)
        returned.append([next((x for x in known if x is y), None) for y in tupled(outputs)])

    def changed(output, position, arguments):
        return change(output, returned[-1][position], arguments)

    return plants.all_of(plants.after_forward(note), with_outputs(changed))


def _of_returned(change):
    """An output that is an argument becomes ``change(output, argument)``."""
    return _with_returned(lambda y, source, _: y if source is None else change(y, source))


def _of_views(change):
    """An output that is a view of an argument, but not the argument, becomes ``change(output, argument)``."""

    def changed(output, source, arguments):
        seen = _seen(output, arguments)
        return output if source is not None or not seen else change(output, seen[0])

    return _with_returned(changed)


def _seen(output, arguments):
    """The arguments that the output is a view of."""
    return [x for x in arguments if output._is_view() and output._base is (x._base if x._is_view() else x)]


class _Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()[...]

    @staticmethod
    def backward(ctx, cotangent):
        return cotangent


def _protects_the_first(outputs):
    views = [y for y in tensors_of(tupled(outputs)) if y._is_view()]
    return tuple(y.clone() if among(views[1:], y) else y for y in outputs) if len(views) > 1 else outputs


FAULTS = (
    fault("OUT-01", each_output(lambda y: y.detach() if y.is_complex() else y), "complex"),
    fault(
        "OUT-01: outputs without elements do not require grad",
        each_output(lambda y: y if y.numel() else y.detach()),
        neighbours=("OUT-02", "OUT-04"),
    ),
    fault(
        "OUT-01: 8-bit outputs do not require grad",
        each_output(lambda y: y.detach() if y.element_size() == 1 else y),
        "float8",
    ),
    fault("OUT-02", each_output(_as_floats), "int"),
    fault("OUT-03", plants.outputs(_split_duplicates), "same object"),
    fault("OUT-03: its gradient arrives at the first position", _first_position_counts, "cotangents"),
    fault("OUT-04", plants.around_apply(_cannot_be_changed)),
    fault(
        "OUT-04: an in-place change is not recorded",
        plants.put(torch.Tensor, "__imul__", _changes_unrecorded),
        "gradients",
    ),
    fault("OUT-05", each_output(lambda y: y if type(y) is torch.Tensor else y.as_subclass(torch.Tensor)), "Marked"),
    fault(
        "OUT-05: a call on a Parameter gives Parameters", plants.around_apply(_parameters_for_parameters), "Parameter"
    ),
    fault("ND-01", _with_marks(_marks_spread), neighbours=plants.numbers("ND", 2, 3, 6, 7)),
    fault(
        "ND-02",
        _for_constants(lambda y, g: None if g is None else y.new_zeros(())),
        "cotangents",
        neighbours=("ND-07",),
    ),
    fault(
        "ND-02: the zeros are float32",
        _for_constants(lambda y, g: None if g is None else torch.zeros(y.shape)),
        "dtypes",
        neighbours=("ND-07",),
    ),
    fault("ND-03", _for_constants(lambda y, g: torch.zeros_like(y) if g is None else g), "None", neighbours=("ND-07",)),
    fault("ND-04: a tensor that is not returned is an error", _with_marks(_refuses_others)),
    fault(
        "ND-05: the outputs become leaves that require grad",
        plants.outputs(_leaves_if_all_are_marked),
        neighbours=("ND-06",),
    ),
    fault("ND-06", _with_marks(_marks_the_input), "inputs"),
    fault(
        "ND-06: a returned input that is marked comes back as a copy",
        each_output(lambda y: y if y.requires_grad else y.clone()),
        "memory",
    ),
    fault("ND-07", _setting_non_diff(lambda *_: None), "cotangents"),
    fault(
        "ND-07: it switches materialization off for all outputs",
        _setting_non_diff(lambda ctx, flag: ctx.set_materialize_grads(flag)),
        "cotangents",
    ),
    fault("MAT-01", _none_by_default, "None", neighbours=("MAT-05",)),
    fault(
        "MAT-01: the zeros are one expanded number",
        plants.each_cotangent(lambda g: g.new_zeros(()).expand(g.shape) if is_zero(g) else g),
        "strides",
    ),
    fault(
        "MAT-01: it is None under create_graph",
        plants.around_backward(plants.recorded(_none_for_zero)),
        neighbours=("MAT-02", "MAT-04"),
    ),
    fault("MAT-01: it is None in later passes", plants.around_backward(_none_once_it_ran)),
    fault("MAT-02: the first call counts", ctx_method("set_materialize_grads", _first_setting_counts)),
    fault("MAT-04", plants.around_backward(_SKIPS_ZEROS), "number of calls"),
    fault("MAT-04: it is skipped under create_graph", plants.around_backward(plants.recorded(_SKIPS_ZEROS))),
    fault(
        "MAT-04: it gets None whatever was set",
        plants.cotangents(lambda _, given: (None,) * len(given) if all(map(is_zero, given)) else given),
        "None",
    ),
    fault(
        "MAT-05",
        ctx_method(
            "register_hook",
            lambda original, ctx, hook: original(ctx, lambda gradients, given: hook(gradients, _filled(given))),
        ),
        "in the hook",
    ),
    fault(
        "MAT-05: prehooks on a node see zeros",
        ctx_method("register_prehook", lambda original, ctx, hook: original(ctx, lambda given: hook(_filled(given)))),
        "in the prehook",
    ),
    fault("VIEW-01", _of_returned(lambda y, x: x if x.requires_grad else y), neighbours=("VIEW-02", "VIEW-05")),
    fault("VIEW-01: a leaf comes back as itself", _of_returned(lambda y, x: x if x.requires_grad and x.is_leaf else y)),
    fault(
        "VIEW-01: a returned input comes back as an ordinary view",
        _of_returned(lambda y, x: x.view_as(x) if x.requires_grad else y),
        neighbours=("VIEW-05",),
    ),
    fault("VIEW-02", _of_returned(lambda y, x: y if x.requires_grad else x), neighbours=("VIEW-05",)),
    fault(
        "VIEW-02: a returned input comes back as a copy",
        _of_returned(lambda y, x: y if x.requires_grad else y.clone()),
        neighbours=("VIEW-05",),
    ),
    fault(
        "VIEW-03",
        _of_views(lambda y, x: x.as_strided(y.size(), y.stride(), y.storage_offset())),
        neighbours=("VIEW-05",),
    ),
    fault(
        "VIEW-03: changes of the base go unnoticed",
        _of_views(lambda y, _: super(torch.autograd.Function, _Copied).apply(y)),
        neighbours=("VIEW-05",),
    ),
    fault(
        "VIEW-04",
        with_outputs(lambda y, _, arguments: y.clone() if y._is_view() and not _seen(y, arguments) else y),
        neighbours=("VIEW-05",),
    ),
    fault("VIEW-05", plants.outputs(_protects_the_first), neighbours=("VIEW-02",)),
)
