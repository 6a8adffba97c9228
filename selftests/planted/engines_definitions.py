"""Implementations that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Description
from autograd_conformance.implementations.torch import TorchImplementation

MODEL = ModelImplementation()


def _same(value: Any) -> Any:
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
        gradients: Callable[[Any], Any] = _same,
    ) -> None:
        self.needs, self.cotangent, self.argument, self.output, self.gradients = (
            needs,
            cotangent,
            argument,
            output,
            gradients,
        )

    def function(self, cls: Any) -> Callable[..., Any]:
        separate = cls.setup_context is not torch.autograd.Function.setup_context
        entry = "setup_context" if separate else "forward"

        def enter(ctx: Any, *args: Any) -> Any:
            return getattr(cls, entry)(_Ctx(ctx, self.needs), *args)

        def backward(ctx: Any, *given: Any) -> Any:
            boxed = getattr(cls, "boxed_grads_call", False)
            changed = [self.cotangent(g) for g in (given[0] if boxed else given)]
            found = cls.backward(_Ctx(ctx, self.needs), *([changed] if boxed else changed))
            return self.gradients(found)

        methods = {entry: staticmethod(enter), "backward": staticmethod(backward)}
        apply = type(cls.__name__, (cls,), methods).apply

        def call(*args: Any) -> Any:
            found = apply(*map(self.argument, args))
            return tuple(map(self.output, found)) if isinstance(found, tuple) else self.output(found)

        return call


class _Ctx:
    """A ctx with another ``needs_input_grad``."""

    def __init__(self, ctx: Any, needs: Callable[[Any], Any]) -> None:
        self.__dict__.update(_ctx=ctx, _needs=needs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._ctx, name)
        return self._needs(value) if name == "needs_input_grad" else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def conjugate_forgotten(value: Any) -> Any:
    return value.conj() if isinstance(value, torch.Tensor) and value.is_conj() else value


def noise(y: Any) -> Any:
    return y + 1e-12 * torch.rand(()) if y.dtype == torch.float64 else y


def mean_of_expanded(g: Any) -> Any:
    return g / g.shape[0] if g is not None and g.ndim and g.shape[0] > 1 and g.stride(0) == 0 else g


class DropsUnderPartialMask(TorchImplementation):
    """Gives the last tracked input no gradient where another is not tracked."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def dropping(*args: Any, **options: Any) -> Any:
            found = list(pullback(*args, **options))
            if None in found and len(found) > 1:
                found[max((n for n, g in enumerate(found) if g is not None), default=0)] = None
            return tuple(found)

        return outputs, dropping


class MaterializesOnes(TorchImplementation):
    """An output that is not used gets ones for its cotangent."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def filled(cotangents: Any, *args: Any, **options: Any) -> Any:
            pairs = zip(cotangents, outputs, strict=True)
            return pullback([torch.ones_like(y) if g is None else g for g, y in pairs], *args, **options)

        return outputs, filled


class WidensHalf(TorchImplementation):
    """The engine hands on the gradients of half precision in single precision."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def widened(*given: Any, **options: Any) -> Any:
            found = pullback(*given, **options)
            return tuple(g.float() if g is not None and g.dtype == torch.float16 else g for g in found)

        return outputs, widened


class PacksSubset(TorchImplementation):
    """Puts the gradients that were asked for in the first places."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def packed(cotangents: Any, wrt: Any = None, differentiable: bool = False) -> Any:
            found = pullback(cotangents, wrt, differentiable)
            return found if wrt is None else tuple(sorted(found, key=lambda g: g is None))

        return outputs, packed


class Overwrites(TorchImplementation):
    """backward() replaces what .grad held."""

    def backward(self, *args: Any, initial: Sequence[Any] | None = None, **options: Any) -> Any:  # noqa: ARG002
        return super().backward(*args, **options)


class AccumulatesTwice(TorchImplementation):
    """backward() adds the gradient twice where .grad held something."""

    def backward(self, f: Any, primals: Any, cotangents: Any, *, initial: Any = None, **options: Any) -> Any:
        found = super().backward(f, primals, cotangents, initial=initial, **options)
        if initial is None:
            return found
        again = super().backward(f, primals, cotangents, **options)
        return tuple(
            g if before is None or g is None else g + more
            for g, before, more in zip(found, initial, again, strict=True)
        )


class IgnoresNoGrad(TorchImplementation):
    """no_grad does not switch recording off."""

    def no_grad(self) -> AbstractContextManager[Any]:
        return nullcontext()


class SeveralNodes(TorchImplementation):
    """Each output gets a node of its own."""

    def function(self, cls: Any) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            found = cls.apply(*args)
            return tuple(y.view_as(y) for y in found) if isinstance(found, tuple) else found

        return call


class DescribesNarrow(TorchImplementation):
    """Tensors of double precision are kept in single precision."""

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return super().array(values, "float32" if dtype == "float64" else dtype, device)


class FirstUseOnly(TorchImplementation):
    """A tensor that is given twice gets the gradient of its first use alone."""

    def function(self, cls: Any) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            seen: set[int] = set()
            return cls.apply(*(x.detach() if id(x) in seen else (seen.add(id(x)), x)[1] for x in args))

        return call


class CutsBetweenFunctions(TorchImplementation):
    """What one custom Function hands to another arrives without history."""

    def function(self, cls: Any) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            return cls.apply(*(self._cut(x) for x in args))

        return call

    @staticmethod
    def _cut(x: Any) -> Any:
        made_by = getattr(x, "grad_fn", None)
        return x.detach().requires_grad_() if isinstance(made_by, torch.autograd.function.BackwardCFunction) else x


class FirstBatchOnly(TorchImplementation):
    """Every member of a batch of cotangents gets the gradients of the first."""

    def batched_vjp(self, f: Any, primals: Any, cotangents: Any, *, track: Any) -> Any:
        found = super().batched_vjp(f, primals, cotangents, track=track)
        return tuple(None if g is None else g[:1].expand(g.shape) for g in found)


class MovesNothing(TorchImplementation):
    """Batches along the first axis whatever axis is asked for, where the lengths allow it."""

    def vmap(self, f: Any, in_axes: Any) -> Any:
        right = super().vmap(f, in_axes)
        wrong = super().vmap(f, [None if a is None else 0 for a in in_axes])

        def mapped(*args: Any) -> Any:
            pairs = [(x, a) for x, a in zip(args, in_axes, strict=True) if a is not None]
            same = all(x.shape[0] == x.shape[a] for x, a in pairs)
            return (wrong if same else right)(*args)

        return mapped


class FirstTangentOnly(TorchImplementation):
    """Only the first tensor moves in forward mode."""

    def jvp(self, f: Any, primals: Any, tangents: Any) -> Any:
        moving = [n for n, t in enumerate(tangents) if t is not None]
        return super().jvp(f, primals, [t if n in moving[:1] else None for n, t in enumerate(tangents)])


class ForgetsHistory(TorchImplementation):
    """Gradients cannot be differentiated again, and nothing says so."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def detached(*args: Any, **options: Any) -> Any:
            return tuple(None if g is None else g.detach() for g in pullback(*args, **options))

        return outputs, detached


class OffloadsInHalf(TorchImplementation):
    """Saved tensors are packed in bfloat16."""

    def offload(self) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks
        return hooks(lambda x: (x.dtype, x.bfloat16() if x.is_floating_point() else x), lambda p: p[1].to(p[0]))


class CutsCheckpoint(TorchImplementation):
    """A checkpointed call drops its first argument's history."""

    def checkpoint(self, f: Any) -> Any:
        kept = super().checkpoint(f)
        return lambda *primals: kept(primals[0].detach(), *primals[1:])


class KeepsGraphs(TorchImplementation):
    """Keeps the outputs of every call."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)
        self.kept.append(outputs)
        return outputs, pullback


class OneGraphForAllThreads(TorchImplementation):
    """The outputs of the last call are kept in one place for all threads."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)
        self.last = pullback, len(primals)

        def shared(*args: Any, **options: Any) -> Any:
            last, count = self.last
            return last(*args, **options) if count == len(primals) else pullback(*args, **options)

        return outputs, shared


class UncheckedModel(ModelImplementation):
    """In-place changes do not raise the version."""

    def fill_(self, tensor: Any, value: Any) -> None:
        tensor.data[...] = value


class ExpandedAveragedModel(ModelImplementation):
    """A cotangent of stride 0 is averaged over its first axis."""

    def vjp(self, f: Any, primals: Any, *, track: Any = None) -> Any:
        outputs, pullback = super().vjp(f, primals, track=track)

        def narrowed(cotangents: Any, *args: Any, **options: Any) -> Any:
            changed = [None if g is None else self._once(g) for g in cotangents]
            return pullback(changed, *args, **options)

        return outputs, narrowed

    def _once(self, g: Any) -> Any:
        if 0 in g.data.strides and g.data.size > 1:
            return self.array(g.data / g.data.shape[0], str(g.dtype), "cpu")
        return g


class ReportsHost(TorchImplementation):
    """Tensors of a simulated device say that they are on the host."""

    def describe(self, tensor: Any) -> Description:
        return super().describe(tensor)._replace(device="cpu")
