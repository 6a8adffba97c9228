"""Faults of the kinds of tensors: complex ones, devices, memory layouts, kinks and NaN, and grad modes."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from torch.autograd import forward_ad

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import leaves_of, tensors_of, tracked


def _knowing_inputs(change):
    """Each gradient is ``change(gradient, dtype of the input, whether a cotangent is complex)``."""

    def note(node, _, args, __):
        node.kinds = [x.dtype if isinstance(x, torch.Tensor) else None for x in args]

    def backward(original, ctx, *cotangents):
        found = plants.tupled(original(ctx, *cotangents))
        kinds = getattr(ctx, "kinds", [None] * len(found))
        crossed = any(c is not None and c.is_complex() for c in cotangents)
        pairs = zip(found, kinds, strict=True)
        return tuple(g if g is None or kind is None else change(g, kind, crossed) for g, kind in pairs)

    return lambda: plants.all_of(plants.noting_calls(note), plants.around_backward(backward))


def _real_part(g, dtype, _):
    return g.real if g.is_complex() and not dtype.is_complex else g


def _refused_unless_complex(g, dtype, _):
    if dtype.is_complex and not g.is_complex():
        raise RuntimeError("a real gradient for a complex input")
    return g


def _left_where_they_are():
    returned = []

    def note(_, found):
        returned[:] = found
        return found

    given_back = plants.wrapped(torch.autograd, "grad", plants.gives(lambda _: tuple(returned)))
    return plants.all_of(plants.gradients(note), given_back)


def _moves_everything(original, ctx, *cotangents):
    (g,) = plants.tupled(original(ctx, *cotangents))
    return g.to(cotangents[0].device)


HALF = (torch.float16, torch.bfloat16)


def _seen(change):
    """Backward sees ``change(it)`` of each cotangent that is not sparse."""
    return plants.each_cotangent(lambda g: change(g) if g.layout == torch.strided else g)


def _copied_if(which):
    return _seen(lambda g: g.contiguous() if which(g) else g)


def _copied_like(g, like):
    return torch.empty_strided(g.shape, like.stride(), dtype=g.dtype, device=g.device).copy_(g)


def _grads(before=lambda x: x.grad, after=lambda x, _: x.grad):
    """``.grad`` of each leaf x is ``before(x)`` when backward starts, and ``after(x, .grad before)`` when it ends."""

    def engine(run, outputs, cotangents, inputs, accumulate):
        leaves = [(x, x.grad) for x in leaves_of(outputs)] if accumulate else []
        for x, _ in leaves:
            x.grad = before(x)
        found = run(outputs, cotangents, inputs)
        for x, grad in leaves:
            x.grad = after(x, grad)
        return found

    return plants.around_engine(engine)


def _always_row_major(x, grad):
    return x.grad.contiguous() if grad is None and x.grad is not None else x.grad


def _like_the_leaf(x, grad):
    """Leaves that are not dense keep their strides too, where no two elements of them lie in one place."""
    return _copied_like(x.grad, x) if grad is None and x.grad is not None and 0 not in x.stride() else x.grad


def _in_place(x, grad):
    return x.grad if grad is None or x.grad is grad else grad.copy_(x.grad)


def _returned(change):
    """What grad gives is ``change(gradient, input)``."""

    def engine(run, outputs, cotangents, inputs, accumulate):
        found = run(outputs, cotangents, inputs)
        pairs = zip(found or (), inputs, strict=False)
        return found if accumulate else tuple(g if g is None else change(g, x) for g, x in pairs)

    return plants.around_engine(engine)


def _nan_everywhere(original, ctx, *cotangents):
    found = original(ctx, *cotangents)
    corrupted = any(g is not None and bool(g.isnan().any()) for g in cotangents)
    return found * torch.nan if corrupted else found


_LEAST_SLOPES_OF_CLAMP = {
    "clamp": F.hardtanh,
    "clamp_min": lambda x, least: torch.relu(x - least) + least,
    "clamp_max": lambda x, most: most - torch.relu(most - x),
}


def _between(x, least=None, max=None):
    larger = x if least is None else torch.maximum(x, least)
    return larger if max is None else torch.minimum(larger, max)


# Functions whose bounds are tensors, and share the gradient of a tie.
_SHARING_CLAMPS = {"clamp": _between, "clamp_min": torch.maximum, "clamp_max": torch.minimum}


def _ties_shared():
    sharing = {**_SHARING_CLAMPS, "fmax": torch.maximum, "fmin": torch.minimum}
    in_place = plants.put(torch.Tensor, "clamp_", lambda x, least: torch.maximum(x, least))
    return plants.all_of(in_place, *(plants.put(torch, *pair) for pair in sharing.items()))


def _without_a_bound(original, x, *bounds, **named):
    """A function that clamps, whose bounds get a gradient of zeros if they are tensors."""
    given = [*bounds, *named.values()]
    if not all(isinstance(bound, torch.Tensor) for bound in given):
        return original(x, *bounds, **named)
    fixed = {name: bound.detach() for name, bound in named.items()}
    return original(x, *map(plants.detached, bounds), **fixed) + 0 * sum(given)


def _recording_if(on):
    """A call is recorded where ``on(its tensors)``."""

    def apply(original, cls, *args, **options):
        with torch.set_grad_enabled(bool(on(tensors_of(args)))):
            return original(cls, *args, **options)

    return plants.around_apply(apply)


def _flags_outputs(original, cls, *args, **options):
    """Outputs under no_grad require grad if an argument does, though they have no node."""
    outputs = original(cls, *args, **options)
    for y in tensors_of(plants.tupled(outputs)) if any(map(tracked, args)) else ():
        if y.is_floating_point() and not y.is_inference():
            y.requires_grad_()
    return outputs


def _leaves_inference_mode(original, cls, *args, **options):
    grad_mode = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(grad_mode):
        return original(cls, *args, **options)


def _refuses_inference_tensors(original, cls, *args, **options):
    recorded = torch.is_grad_enabled() and any(map(tracked, args))
    if recorded and any(x.is_inference() for x in tensors_of(args)):
        raise RuntimeError("inference tensors cannot be used in a recorded call")
    return original(cls, *args, **options)


def _moving(_, *args):
    if forward_ad._current_level < 0:
        return False
    with torch.inference_mode(False):
        return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors_of(args))


_SAMPLERS = ("bernoulli", "poisson", "normal")
_unrecorded = plants.under(torch.no_grad)

FAULTS = (
    fault(
        "CPLX-01",
        _knowing_inputs(lambda g, dtype, _: g.conj() if g.is_complex() and dtype.is_complex else g),
        neighbours=("CPLX-03",),
    ),
    fault(
        "CPLX-01: cotangents of complex outputs arrive conjugated",
        plants.each_cotangent(torch.conj),
        neighbours=("CPLX-02", "CPLX-03"),
    ),
    fault("CPLX-02", _knowing_inputs(_real_part)),
    fault(
        "CPLX-02: a complex gradient with real values is accepted",
        _knowing_inputs(lambda g, dtype, _: g if g.is_complex() and g.imag.any() else _real_part(g, dtype, _)),
    ),
    fault("CPLX-02: real gradients are refused", _knowing_inputs(_refused_unless_complex)),
    fault(
        "CPLX-03",
        _knowing_inputs(lambda g, dtype, crossed: g / 2 if dtype.is_complex and g.is_complex() and not crossed else g),
    ),
    fault(
        "CPLX-03: gradients from complex outputs to real inputs are doubled",
        _knowing_inputs(
            lambda g, dtype, crossed: g * 2 if crossed and not dtype.is_complex and not g.is_complex() else g
        ),
        neighbours=("CPLX-02",),
    ),
    fault("DEV-01", _left_where_they_are, "device of a gradient"),
    fault(
        "DEV-01: gradients of any shape move to another device",
        plants.around_backward(_moves_everything),
        "not a scalar",
    ),
    fault("LAYOUT-01", _copied_if(lambda _: True), "strides that backward sees"),
    fault("LAYOUT-01: expanded ones are copied", _copied_if(lambda g: 0 in g.stride())),
    fault("LAYOUT-01: vectors are copied", _copied_if(lambda g: g.dim() == 1)),
    fault("LAYOUT-01: copied in half precision alone", _copied_if(lambda g: g.dtype in HALF)),
    fault("LAYOUT-01: copied under create_graph", _copied_if(lambda _: torch.is_grad_enabled())),
    fault(
        "LAYOUT-02",
        _seen(lambda g: g.double() if g.dtype in HALF else g),
        "shape, dtype and device of the cotangents",
        neighbours=("LAYOUT-01",),
    ),
    fault(
        "LAYOUT-02: scalars come with one dimension",
        _seen(lambda g: g.reshape(1) if g.shape == () else g),
        neighbours=("LAYOUT-01",),
    ),
    fault("LAYOUT-03", _grads(after=_always_row_major), "strides of .grad"),
    fault("LAYOUT-03: leaves with gaps give gradients with gaps", _grads(after=_like_the_leaf)),
    fault(
        "LAYOUT-03: each pass replaces .grad",
        _grads(before=lambda x: None if x.grad is None else x.grad.clone()),
        neighbours=("LAYOUT-04",),
    ),
    fault("LAYOUT-04", _grads(after=_in_place), "identity of .grad"),
    fault(
        "LAYOUT-04: the new .grad has no history",
        _grads(after=lambda x, _: x.grad.detach() if plants.tracked(x.grad) else x.grad),
    ),
    fault(
        "LAYOUT-05",
        _returned(lambda g, x: g if 0 in x.stride() else _copied_like(g, x)),
        "strides of what grad returns",
    ),
    fault("LAYOUT-05: expanded gradients are copied", _returned(lambda g, _: g.contiguous() if 0 in g.stride() else g)),
    fault("KINK-01", plants.wrapped(torch, "relu", lambda relu, x: (relu(x) + torch.where(x >= 0, x, 0.0)) / 2)),
    fault(
        "KINK-01: a bound that is a tensor gets no gradient",
        lambda: plants.all_of(*(plants.wrapped(torch, name, _without_a_bound) for name in _SHARING_CLAMPS)),
        "gradient, position 1",
    ),
    fault(
        "KINK-01: forward mode takes the first tangent for both",
        plants.wrapped(torch.func, "jvp", lambda jvp, f, primals, tangents: jvp(f, primals, (tangents[0],) * 2)),
        "tangent",
    ),
    fault("KINK-01: amax gives its gradient to one entry", plants.put(torch, "amax", lambda x: torch.max(x, 0).values)),
    fault(
        "KINK-01: a norm at zero has gradient one",
        plants.wrapped(torch.linalg, "vector_norm", lambda norm, x, order: norm(x + 1e-300, order)),
    ),
    fault(
        "KINK-01: the slope of sqrt at zero is finite",
        plants.wrapped(torch, "sqrt", lambda sqrt, x: torch.where(x > 0, sqrt(torch.where(x > 0, x, 1.0)), 0 * x)),
    ),
    fault(
        "KINK-01: a tensor without dimensions has no share",
        plants.wrapped(torch, "maximum", lambda maximum, x, y: maximum(x, y if y.dim() else y.detach() + 0 * y)),
    ),
    fault("KINK-02", plants.each_cotangent(torch.nan_to_num), "nan"),
    fault("KINK-02: one NaN spoils all entries", plants.around_backward(_nan_everywhere), "nan"),
    fault("KINK-02: relu multiplies its cotangent with a mask", plants.put(torch, "relu", lambda x: x * (x > 0))),
    fault("KINK-03", plants.wrapped(torch, "rand_like", lambda random, x: random(x) + x - x.detach()), "rand_like"),
    fault(
        "KINK-03: multinomial has a gradient of zero",
        plants.wrapped(torch, "multinomial", lambda chosen, p, n: chosen(p, n) + 0 * p.sum()),
    ),
    fault("MODE-01", _recording_if(lambda _: True), neighbours=plants.numbers("MODE", 2, 5, 6, 7)),
    fault(
        "MODE-01: outputs under no_grad keep the flag",
        plants.around_apply(_flags_outputs),
        neighbours=plants.numbers("MODE", 5, 6, 7),
    ),
    fault(
        "MODE-01: what has a history is recorded anyway",
        _recording_if(lambda given: torch.is_grad_enabled() or any(x.grad_fn is not None for x in given)),
    ),
    fault("MODE-02", plants.around_apply(_leaves_inference_mode), neighbours=("MODE-04", "MODE-06")),
    fault(
        "MODE-02: calls without an input that requires grad leave inference mode",
        plants.around_apply(plants.where(lambda _, *args: not any(map(tracked, args)), _leaves_inference_mode)),
        neighbours=("MODE-04",),
    ),
    fault("MODE-03", plants.around_apply(_refuses_inference_tensors)),
    fault(
        "MODE-03: a call with an inference tensor is not recorded",
        _recording_if(lambda given: torch.is_grad_enabled() and not any(x.is_inference() for x in given)),
    ),
    fault(
        "MODE-04", plants.around_apply(plants.under(lambda: forward_ad._set_fwd_grad_enabled(torch.is_grad_enabled())))
    ),
    fault(
        "MODE-04: forward mode works under inference_mode",
        plants.around_apply(plants.where(_moving, _leaves_inference_mode)),
    ),
)

FIXES = (
    Fix(
        "LAYOUT-06",
        plants.gradients(lambda _, found: plants.of_tensors(torch.Tensor.contiguous, found)),
        variant="overlapping",
    ),
    Fix(
        "KINK-01",
        lambda: plants.all_of(*(plants.put(torch, *pair) for pair in _LEAST_SLOPES_OF_CLAMP.items())),
        variant="clamp",
    ),
    Fix("KINK-01", _ties_shared, variant="bounds"),
    Fix("KINK-01", _ties_shared, variant="bound-tangents"),
    Fix(
        "KINK-01",
        lambda: plants.all_of(plants.put(torch, "fmax", torch.maximum), plants.put(torch, "fmin", torch.minimum)),
        variant="fmax",
    ),
    Fix(
        "KINK-03",
        lambda: plants.all_of(*(plants.wrapped(torch, name, _unrecorded) for name in _SAMPLERS)),
        variant="samples",
    ),
    Fix(
        "MODE-02",
        _recording_if(lambda _: torch.is_grad_enabled() and not torch.is_inference_mode_enabled()),
        variant="enable_grad",
    ),
)
