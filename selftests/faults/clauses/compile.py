"""Faults of compilers and tracers: of one call, of transforms and of repeated runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef
from torch.fx.experimental import proxy_tensor

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.clauses.func import as_operations, its_forward
from autograd_conformance.selftests.faults.planting import fault


def compiled_as(under: plants.Plant = nullcontext, **how: Any) -> AbstractContextManager[Any]:
    """torch.compile runs the function as it is, within ``under()``: a compiler with these mistakes only.

    ``times`` is the number of graphs that it takes for it, ``full_only`` restricts ``under`` to full graphs, and
    ``on_copies`` gives the function copies of its arguments.
    """

    def compile(function, backend=None, fullgraph=False, **_):
        def run(*args):
            given = [x.clone() for x in args] if how.get("on_copies") else args
            with under() if fullgraph or not how.get("full_only") else nullcontext():
                return function(*given)

        def running(*args):
            graphs = [backend(run, args) if callable(backend) else run for _ in range(how.get("times", 1))]
            return [graph(*args) for graph in graphs][-1]

        return running

    found = plants.put(torch._dynamo, "lookup_backend", lambda _: lambda graph, __: graph)
    return plants.all_of(plants.put(torch, "compile", compile), found)


def compiled(under: plants.Plant = nullcontext, **how: Any) -> plants.Plant:
    """`compiled_as`, as a plant."""
    return partial(compiled_as, under, **how)


COMPOSITE = plants.around_apply(its_forward)


def _detached_if(chosen):
    """The outputs of some Functions are detached."""
    return plants.around_apply(plants.where(lambda cls, *_: chosen(cls), plants.gives(plants.detached)))


def _repeated_once(args):
    return tuple(x.detach() if plants.among(args[:i], x) else x for i, x in enumerate(args))


def _backward_gives(change):
    """In compiled code every gradient that a Function's backward returns is ``change(what it was)``."""
    return lambda: plants.all_of(
        compiled_as, plants.gradients(lambda _, found: tuple(None if g is None else change(g) for g in found))
    )


def _constants(make_fx, function, **options):
    def trace(*args):
        outputs = tuple(y.detach() for y in function(*args))
        return make_fx(lambda *_: outputs, **options)(*args)

    return trace


def _opaque(function):
    """A graph with one node, the call of the function."""
    graph = torch.fx.Graph()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    graph.output(graph.call_function(function, tuple(graph.placeholder(name) for name in names)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _has_jvp(cls):
    return plants.defines(cls, "jvp")


def _keeps_one_cotangent():
    """Of several cotangents backward gets the first, and zeros for the others."""
    zeros = plants.cotangents(lambda _, given: (given[0], *map(torch.zeros_like, given[1:])))
    return plants.all_of(compiled_as, zeros)


def _shares_what_is_saved():
    """Every ctx has the saved tensors of the last one."""
    saved, noted = plants.last(lambda method: plants.ctx_method("save_for_backward", method))
    return plants.all_of(compiled_as, noted, plants.ctx_attribute("saved_tensors", lambda *_: tuple(saved[1:])))


def _packaged_as(change):
    """A package calls its program, and gives ``change(its outputs, input)``: AOTInductor with this mistake only."""
    programs = []
    inductor = torch._inductor
    return plants.all_of(
        plants.put(inductor, "aoti_compile_and_package", lambda program, **_: programs.append(program)),
        plants.put(inductor, "aoti_load_package", lambda _: lambda x: change(programs[-1].module()(x), x)),
    )


def _looks_into(original, op, *args):
    return op._init_fn(*args) if torch.compiler.is_exporting() else original(op, *args)


def _last_detached(program):
    """What stands for a program, of which one output has no history."""
    module = program.module()
    module.register_forward_hook(lambda _, __, outputs: (*outputs[:-1], outputs[-1].detach()))
    return SimpleNamespace(module=lambda: module)


def _copied_attribute(assign, ctx, name, value):
    assign(ctx, name, value if hasattr(type(ctx), name) else plants.of_tensors(torch.Tensor.clone, value))


def _memory_of_negated(x):
    return torch._neg_view(x) if x.is_neg() else x


FAULTS = (
    fault("COMPILE-01", compiled(COMPOSITE), "gradients"),
    fault("COMPILE-01: two graphs for one Function", compiled(times=2), "number of graphs"),
    fault("COMPILE-02", compiled(plants.ctx_method("mark_non_differentiable", lambda *_: None)), "requires_grad"),
    fault("COMPILE-02: compiled code changes copies of its arguments", compiled(on_copies=True), "after the call"),
    fault(
        "COMPILE-02: compiled code ignores mark_dirty",
        compiled(plants.ctx_method("mark_dirty", lambda *_: None)),
        "gradients of compiled code",
    ),
    fault(
        "COMPILE-02: compiled code copies attributes of ctx",
        compiled(plants.set_on_ctx(_copied_attribute)),
        "after a change of an attribute",
    ),
    fault("COMPILE-03", compiled(plants.called_with(_repeated_once)), "passed twice"),
    fault("COMPILE-04", compiled(_detached_if(_has_jvp))),
    fault(
        "COMPILE-04: a full graph differentiates the operations of a Function that defines jvp",
        compiled(as_operations(lambda cls, *_: _has_jvp(cls)), full_only=True),
        "gradients",
    ),
    fault("COMPILE-05", compiled(as_operations(lambda cls, *_: plants.defines(cls, "vjp"))), "gradients"),
    fault("COMPILE-06", compiled(_detached_if(lambda cls: getattr(cls, "boxed_grads_call", False)))),
    fault("COMPILE-07", _backward_gives(torch.Tensor.detach), "second derivatives"),
    fault("COMPILE-08", _backward_gives(lambda g: g + (g - g.detach())), "second derivatives"),
    fault("COMPILE-09", plants.wrapped(proxy_tensor, "make_fx", _constants), "outputs"),
    fault("COMPILE-09: symbolic_trace does not look into a Function", plants.put(torch.fx, "symbolic_trace", _opaque)),
    fault(
        "COMPILE-10",
        plants.wrapped(torch.jit, "trace", lambda _, function, __: partial(plants.under(COMPOSITE), function)),
        "gradients",
    ),
    fault("COMPILE-11", compiled(COMPOSITE)),
    fault("COMPILE-12", compiled(plants.put(torch.Tensor, "__iadd__", lambda x, _: x))),
    fault("COMPILE-13", _keeps_one_cotangent, "share memory"),
    fault("COMPILE-14", compiled(plants.ctx_method("set_materialize_grads", lambda *_: None)), "unused"),
    fault("COMPILE-15", _shares_what_is_saved),
    fault(
        "COMPILE-15: compiled code drops hooks",
        compiled(plants.put(torch.Tensor, "register_hook", lambda *_: None)),
        "gradient of compiled code",
    ),
    fault(
        "COMPILE-15: a hook in compiled code sees the uses after it alone",
        edit(
            "torch._higher_order_ops.register_hook:RegisterHookOp.__call__",
            "        tensor.register_hook(hook)",
            "        tensor = tensor.view_as(tensor)\n        tensor.register_hook(hook)",
        ),
        "gradient of compiled code",
    ),
    fault("COMPILE-16", plants.wrapped(CustomOpDef, "__call__", _looks_into), "nodes of the operator"),
    fault(
        "COMPILE-16: torch.export takes every size for a constant",
        plants.wrapped(torch.export, "export", plants.options(dynamic_shapes=None)),
        "another input",
    ),
    fault("COMPILE-17", plants.wrapped(torch.export, "load", plants.gives(_last_detached)), "gradients"),
    fault(
        "COMPILE-18",
        lambda: _packaged_as(lambda outputs, x: [y.detach() + 0 * x.sum() for y in outputs]),
        "gradients",
    ),
    fault(
        "COMPILE-18: a compiled package gives the outputs in another order",
        lambda: _packaged_as(lambda outputs, _: outputs[::-1]),
        "outputs of the program",
    ),
    fault("COMPILE-19", compiled(plants.called_with(lambda args: map(_memory_of_negated, args)))),
)

FIXES = (
    Fix("COMPILE-01", compiled_as, variant="parent"),
    Fix("COMPILE-02", compiled_as, variant="argument"),
    Fix("COMPILE-04", compiled_as, variant="forward"),
    Fix("COMPILE-06", compiled_as, variant="one"),
    Fix("COMPILE-08", compiled_as),
    Fix("COMPILE-09", plants.wrapped(torch.export, "export", plants.options(strict=False)), variant="strict"),
    *(Fix("COMPILE-11", compiled_as, variant=variant) for variant in ("grad", "jvp", "mapped")),
    *(Fix("COMPILE-12", compiled_as, variant=variant) for variant in ("saved", "later")),
    *(Fix("COMPILE-13", compiled_as, variant=variant) for variant in ("twice", "view")),
    Fix("COMPILE-14", compiled_as),
    Fix("COMPILE-17", plants.wrapped(torch.export, "export", plants.options(strict=False)), variant="strict"),
    Fix("COMPILE-19", compiled_as),
    *(Fix("PROG-01", compiled_as, variant=variant) for variant in ("hooked", "unused", "none", "saved")),
)
