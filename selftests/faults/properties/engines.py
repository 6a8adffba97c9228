"""Faults of implementations, shown by right Functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions.indexing import NUMPY_TAKE
from autograd_conformance.reference.functions.linear import LINEAR, QKV_PROJECTION
from autograd_conformance.reference.functions.scalars import MUL_CONSTANT
from autograd_conformance.selftests.faults.plants import of_tensors
from autograd_conformance.selftests.faults.properties.definitions import PAIR, PRODUCT, SIGNED, misbehaving
from autograd_conformance.selftests.faults.properties.values import TANH

MODEL = ModelImplementation()


def engine(name: str, method: Callable[..., Any], of: type[Any] = TorchImplementation) -> Implementation:
    """An implementation of which ``name(*args)`` is ``method(original, *args)``."""
    original = getattr(of, name)

    def changed(self, *args, **options):
        return method(partial(original, self), *args, **options)

    # An exception counts as that of an implementation if it passes through the module of its class.
    return type(of.__name__, (of,), {name: changed, "__module__": __name__})()


def pulling(method: Callable[..., Any], of: type[Any] = TorchImplementation) -> Implementation:
    """An implementation in which a pullback is ``method(original, outputs, cotangents, ...)``."""

    def vjp(original, f, primals, *, track=None):
        outputs, pullback = original(f, primals, track=track)
        return outputs, lambda *args, **options: method(pullback, outputs, *args, **options)

    return engine("vjp", vjp, of)


def calling(method: Callable[..., Any]) -> Implementation:
    """An implementation in which a call of a Function is ``method(apply, *args)``."""
    return engine("function", lambda _, cls: partial(method, cls.apply))


def pulled(change: Callable[[Any], Any]) -> Implementation:
    """An implementation in which each gradient is ``change(it)`` when the engine hands it on."""

    def pull(original, _, *args, **options):
        return tuple(None if g is None else change(g) for g in original(*args, **options))

    return pulling(pull)


def _same(value):
    return value


class Meddling(TorchImplementation):
    """Changes what passes between the engine and a Function; each parameter is the change of one thing."""

    def __init__(
        self,
        *,
        needs: Callable[[Any], Any] = _same,
        cotangent: Callable[[Any], Any] = _same,
        argument: Callable[[Any], Any] = _same,
        output: Callable[[Any], Any] = _same,
    ) -> None:
        self.needs, self.cotangent, self.argument, self.output = needs, cotangent, argument, output

    def function(self, cls: Any) -> Callable[..., Any]:
        separate = cls.setup_context is not torch.autograd.Function.setup_context
        entry = "setup_context" if separate else "forward"

        def enter(ctx, *args):
            return getattr(cls, entry)(_Ctx(ctx, self.needs), *args)

        def backward(ctx, *given):
            boxed = getattr(cls, "boxed_grads_call", False)
            changed = [self.cotangent(g) for g in (given[0] if boxed else given)]
            return cls.backward(_Ctx(ctx, self.needs), *([changed] if boxed else changed))

        methods = {entry: staticmethod(enter), "backward": staticmethod(backward)}
        apply = type(cls.__name__, (cls,), methods).apply

        def call(*args):
            found = apply(*map(self.argument, args))
            return tuple(map(self.output, found)) if isinstance(found, tuple) else self.output(found)

        return call


class _Ctx:
    """A ctx with another ``needs_input_grad``."""

    def __init__(self, ctx, needs):
        self.__dict__.update(_ctx=ctx, _needs=needs)

    def __getattr__(self, name):
        value = getattr(self._ctx, name)
        return self._needs(value) if name == "needs_input_grad" else value

    def __setattr__(self, name, value):
        setattr(self._ctx, name, value)


def _conjugate_forgotten(value):
    return value.conj() if isinstance(value, torch.Tensor) and value.is_conj() else value


def _noise(y):
    return y + 1e-12 * torch.rand(()) if y.dtype == torch.float64 else y


def _mean_of_expanded(g):
    return g / g.shape[0] if g is not None and g.ndim and g.shape[0] > 1 and g.stride(0) == 0 else g


_NARROW = engine(
    "array",
    lambda original, values, dtype, device: original(values, "float32" if dtype == "float64" else dtype, device),
)


def _drops_under_a_partial_mask(pull, _, *args, **options):
    """The last tracked input gets no gradient where another is not tracked."""
    found = list(pull(*args, **options))
    if None in found and len(found) > 1:
        found[max((n for n, g in enumerate(found) if g is not None), default=0)] = None
    return tuple(found)


def _ones_for_none(pull, outputs, cotangents, *args, **options):
    pairs = zip(cotangents, outputs, strict=True)
    return pull([torch.ones_like(y) if g is None else g for g, y in pairs], *args, **options)


def _packs(pull, _, cotangents, wrt=None, differentiable=False):
    found = pull(cotangents, wrt, differentiable)
    return found if wrt is None else tuple(sorted(found, key=lambda g: g is None))


def _accumulates_twice(original, f, primals, cotangents, *, initial=None, **options):
    found = original(f, primals, cotangents, initial=initial, **options)
    if initial is None:
        return found
    rows = zip(found, initial, original(f, primals, cotangents, **options), strict=True)
    return tuple(g if before is None or g is None else g + more for g, before, more in rows)


def _first_use_only(apply, *args):
    seen = set()
    return apply(*(x.detach() if id(x) in seen else (seen.add(id(x)), x)[1] for x in args))


def _cut(x):
    made_by = getattr(x, "grad_fn", None)
    return x.detach().requires_grad_() if isinstance(made_by, torch.autograd.function.BackwardCFunction) else x


def _first_member_only(original, *args, **options):
    return tuple(None if g is None else g[:1].expand(g.shape) for g in original(*args, **options))


def _moves_nothing(original, f, in_axes):
    """Batches along the first axis whatever axis is asked for, where the lengths allow it."""
    right, wrong = original(f, in_axes), original(f, [None if a is None else 0 for a in in_axes])

    def mapped(*args):
        pairs = [(x, a) for x, a in zip(args, in_axes, strict=True) if a is not None]
        return (wrong if all(x.shape[0] == x.shape[a] for x, a in pairs) else right)(*args)

    return mapped


def _first_tangent_only(original, f, primals, tangents):
    moving = [n for n, t in enumerate(tangents) if t is not None]
    return original(f, primals, [t if n in moving[:1] else None for n, t in enumerate(tangents)])


def _in_half(_):
    hooks = torch.autograd.graph.saved_tensors_hooks
    return hooks(lambda x: (x.dtype, x.bfloat16() if x.is_floating_point() else x), lambda p: p[1].to(p[0]))


def _cuts_the_first(original, f):
    kept = original(f)
    return lambda *primals: kept(primals[0].detach(), *primals[1:])


_graphs: list[Any] = []


def _keeping(original, f, primals, *, track=None):
    outputs, pullback = original(f, primals, track=track)
    _graphs.append(outputs)
    return outputs, pullback


def _of_the_last_call():
    """The outputs of the last call are kept in one place for all threads."""
    last = []

    def vjp(original, f, primals, *, track=None):
        outputs, pullback = original(f, primals, track=track)
        last[:] = [(pullback, len(primals))]

        def shared(*args, **options):
            ((pull, count),) = last
            return (pull if count == len(primals) else pullback)(*args, **options)

        return outputs, shared

    return engine("vjp", vjp)


def _fill_behind_the_counter(_, tensor, value):
    tensor.data[...] = value


_UNCHECKED_MODEL = engine("fill_", _fill_behind_the_counter, ModelImplementation)


def _averaged(pull, _, cotangents, *args, **options):
    """A cotangent of stride 0 is averaged over its first axis."""

    def once(g):
        if g is not None and 0 in g.data.strides and g.data.size > 1:
            return MODEL.array(g.data / g.data.shape[0], str(g.dtype), "cpu")
        return g

    return pull(list(map(once, cotangents)), *args, **options)


_AVERAGING_MODEL = pulling(_averaged, ModelImplementation)

ENGINES = (
    misbehaving(
        "VJP-NEEDS AllTrue: needs_input_grad is True throughout",
        Meddling(needs=lambda needs: (True,) * len(needs)),
        "ctx.needs_input_grad",
        of=LINEAR,
    ),
    misbehaving("VJP-NEEDS List: needs_input_grad is a list", Meddling(needs=list), "ctx.needs_input_grad", of=PRODUCT),
    misbehaving(
        "VJP-NEEDS Integers: needs_input_grad holds integers",
        Meddling(needs=lambda needs: tuple(map(int, needs))),
        "ctx.needs_input_grad",
        of=PRODUCT,
    ),
    misbehaving(
        "VJP-NEEDS OneShort: arguments that are not tensors are not counted",
        Meddling(needs=lambda needs: needs[:-1]),
        "ctx.needs_input_grad",
        of=MUL_CONSTANT,
    ),
    misbehaving(
        "VJP-NEEDS Shifted: needs_input_grad is shifted by one",
        Meddling(needs=lambda needs: (*needs[1:], needs[0])),
        "ctx.needs_input_grad",
        of=PRODUCT,
    ),
    misbehaving(
        "VJP-NEEDS TrueForIndex: True for an index tensor",
        Meddling(needs=lambda needs: (needs[0], True, *needs[2:])),
        "ctx.needs_input_grad",
        of=NUMPY_TAKE,
    ),
    misbehaving(
        "FWD-VALUE NoDoublePrecision: double precision is computed in single precision", _NARROW, "output 0", of=PRODUCT
    ),
    misbehaving("FWD-MASK Noisy: outputs carry noise", Meddling(output=_noise), "output 0"),
    misbehaving(
        "FWD-LAYOUT ConjugateBitForgotten: lazily conjugated arguments are read as they are stored",
        Meddling(argument=_conjugate_forgotten),
        "conjugated",
        of=PRODUCT,
    ),
    misbehaving(
        "FWD-GRADFLAG IgnoresNoGrad: no_grad does not stop recording",
        engine("no_grad", lambda _: nullcontext()),
        "without grad mode",
    ),
    misbehaving(
        "FWD-GRADFLAG SeveralNodes: each output has its own node",
        calling(lambda apply, *args: of_tensors(lambda y: y.view_as(y), apply(*args))),
        "several nodes",
        of=PAIR,
    ),
    misbehaving(
        "FWD-GRADFLAG OutputsDetached: the outputs have no history",
        Meddling(output=lambda y: y.detach()),
        "requires_grad of the outputs",
    ),
    misbehaving(
        "FWD-DTYPE NoDoublePrecision: single precision comes where double was given", _NARROW, "float32", "float64"
    ),
    misbehaving(
        "VJP-REF CotangentInHalf: cotangents pass through half precision",
        Meddling(cotangent=lambda g: g.half().to(g.dtype)),
        of=TANH,
    ),
    misbehaving(
        "VJP-NONE DropsUnderPartialMask: an input gets no gradient where another is frozen",
        pulling(_drops_under_a_partial_mask),
        "which tensors get a gradient",
        of=QKV_PROJECTION,
    ),
    misbehaving(
        "VJP-MASK DropsUnderPartialMask: an input gets no gradient where another is frozen",
        pulling(_drops_under_a_partial_mask),
        "gradient of argument",
        of=QKV_PROJECTION,
    ),
    misbehaving(
        "VJP-SUBSET PacksSubset: the gradients that were asked for come in the first places",
        pulling(_packs),
        "gradient of argument",
        of=PRODUCT,
    ),
    misbehaving(
        "VJP-COTANGENT-LAYOUT ExpandedAveraged: an expanded cotangent is averaged",
        Meddling(cotangent=_mean_of_expanded),
    ),
    misbehaving(
        "VJP-FIT WidensHalf: the engine hands on the gradients of half precision in single precision",
        pulled(lambda g: g.float() if g.dtype == torch.float16 else g),
        "gradients as the caller gets them",
    ),
    misbehaving(
        "VJP-COTANGENT-LAYOUT ExpandedAveragedModel: an expanded cotangent is averaged", _AVERAGING_MODEL, twin=MODEL
    ),
    misbehaving(
        "VJP-UNUSED MaterializesOnes: ones are passed for an output that is not used", pulling(_ones_for_none), of=PAIR
    ),
    misbehaving(
        "VJP-UNUSED DoesNotMaterialize: None is passed for an output that is not used",
        Meddling(cotangent=lambda g: g if bool(g.any()) else None),
        "the call raised",
        of=PAIR,
    ),
    misbehaving(
        "VJP-NONDIFF ConstantsGetCotangents: a cotangent that is not zero is passed for a non-differentiable output",
        Meddling(cotangent=lambda g: g + 1),
        "as backward received it",
        of=SIGNED,
    ),
    misbehaving(
        "VJP-ACCUMULATE Overwrites: backward() overwrites .grad",
        engine("backward", lambda original, *args, initial=None, **options: original(*args, **options)),
        ".grad of argument 0 (x)",
    ),
    misbehaving(
        "VJP-ACCUMULATE AccumulatesTwice: backward() adds twice where .grad held something",
        engine("backward", _accumulates_twice),
        ".grad of argument 0 (x)",
    ),
    misbehaving(
        "VJP-SAME-TENSOR FirstUseOnly: a tensor given twice gets the gradient of its first use",
        calling(_first_use_only),
        "gradient of argument 0 (x)",
        "unchanged",
        of=PRODUCT,
    ),
    misbehaving("VJP-INPLACE-SAFE Unchecked: saved tensors' versions are not checked", _UNCHECKED_MODEL, twin=MODEL),
    misbehaving(
        "VJP-CHAIN CutsBetweenFunctions: the history ends between two custom Functions",
        calling(lambda apply, *args: apply(*map(_cut, args))),
    ),
    misbehaving(
        "DBL-CORRECT ForgetsHistory: gradients cannot be differentiated again",
        pulled(torch.Tensor.detach),
        "silently detached",
    ),
    misbehaving(
        "JVP-REF FirstTangentOnly: only the first tensor moves",
        engine("jvp", _first_tangent_only),
        "tangent of output 0",
        of=PRODUCT,
    ),
    misbehaving(
        "BATCH-VMAP/cotangents FirstBatchOnly: every member gets the gradients of the first",
        engine("batched_vjp", _first_member_only),
    ),
    misbehaving(
        "BATCH-VMAP MovesNothing: batches along the first axis whatever axis is asked for",
        engine("vmap", _moves_nothing),
        "batched axis",
        of=PRODUCT,
    ),
    misbehaving(
        "ENV-SAVED-HOOKS OffloadsInHalf: saved tensors lose precision in packing",
        engine("offload", _in_half),
        "under saved-tensor hooks",
    ),
    misbehaving(
        "ENV-SAVED-HOOKS/checkpoint CutsCheckpoint: checkpointing cuts the first argument off",
        engine("checkpoint", _cuts_the_first),
        "under checkpointing",
    ),
    misbehaving(
        "ENV-THREADS OneGraphForAllThreads: every thread pulls through the graph that was recorded last",
        _of_the_last_call(),
        "several threads",
    ),
    misbehaving(
        "ENV-DEVICE ReportsHost: tensors of another device say that they are on the host",
        engine("describe", lambda original, x: original(x)._replace(device="cpu")),
        "device",
        device="meta",
    ),
    misbehaving("MEM-FREE KeepsGraphs: keeps the outputs of every call", engine("vjp", _keeping), "what is alive"),
)
