"""Faults of operators of torch.library and of the old base classes."""

from __future__ import annotations

import re
from contextlib import nullcontext

import torch
from torch._functorch import autograd_function
from torch._library import custom_ops, utils
from torch._library.custom_ops import CustomOpDef
from torch._library.fake_impl import FakeImplCtx
from torch.autograd.function import InplaceFunction
from torch.library import Library
from torch.testing._internal import optests

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

# Where an operator asks whether a tensor requires grad.
_AUTOGRAD = "torch._library.autograd"
_TRITON_OP, _INFERRED = "torch._library.triton:triton_op", "infer_schema(fn, mutates_args=mutates_args)"
_ALL_NAMES = "list(inspect.signature(fn).parameters) if mutates_args == 'unknown' else mutates_args"
_MADE, _ANY = f"{_AUTOGRAD}:make_autograd_impl", "_C.is_grad_enabled() and _C._any_requires_grad"


def _is_operator(ctx):
    return type(ctx).__name__.startswith("GeneratedBackwardFor_")


def _last_gets_none(ctx, cotangents):
    return (*cotangents[:-1], None) if _is_operator(ctx) and not cotangents[-1].any() else cotangents


def _flag_too_many(ctx, cotangents):
    """torch itself leaves out the last flag of an operator."""
    if _is_operator(ctx):
        ctx.needs_input_grad = (*ctx.needs_input_grad, False)
    return cotangents


_REFUSED_AT_ONCE = plants.where(
    lambda cls, *_: cls.__name__.startswith("GeneratedBackwardFor_autograd_conformance_no_formula"),
    plants.raising("no_formula: no formula was registered, see register_autograd"),
)


def _rounded(original, op, *args, **options):
    return original(op, *(round(each) if type(each) is float else each for each in args), **options)


def _for_all_devices(original, op, devices, *function):
    return original(op, None, *function)


def _of_all_for_none(original, op, devices, *function):
    """A second kernel for all devices is one of a device that is not here."""
    return original(op, "cuda" if devices is None and op._backend_fns else devices, *function)


def _single_alone(original, value, *rest):
    half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value if half else original(value, *rest)


def _batched_at_0(original, interpreter, rule, *rest, **options):
    def with_numbers(info, in_dims, *args):
        return rule(info, tuple(0 if each is None else each for each in in_dims), *args)

    return original(interpreter, with_numbers, *rest, **options)


def _cast_all(values, _, dtype):
    """What a rule of autocast does with arguments, for every floating dtype."""
    return tuple(x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in values)


def _with_zeros(filled):
    args, keywords = filled
    return tuple(torch.zeros(2) if each is None else each for each in args), keywords


def _opaque(original, name, *function, mutates_args, schema=None):
    return torch.library.custom_op(name, *function, mutates_args=mutates_args, schema=schema)


def _all_wrong(original, op, args, *rest, **options):
    found = original(op, args, *rest, **{**options, "raise_exception": False})
    wrong = any(said != "SUCCESS" for said in found.values())
    if wrong and options.get("raise_exception", True):
        raise RuntimeError("opcheck: it is wrong")
    return dict.fromkeys(found, "FAILURE") if wrong else found


def _all_right(original, op, args, *rest, **options):
    found = original(op, args, *rest, **{**options, "raise_exception": False})
    return dict.fromkeys(found, "SUCCESS")


def _copied(original, op, *args, **options):
    found = original(op, *args, **options)
    return found.clone() if op._is_inplace else found


def _refused_with_grad(original, op, *args, **options):
    """An operator that changes a tensor is refused where gradients are recorded: one that fills tensors is already."""
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    if op._opoverload._schema.is_mutable and torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        raise RuntimeError("it has no formula")
    return original(op, *args, **options)


class _OfOneArgument:
    """A kernel that gets its first argument alone."""

    def __init__(self, kernel):
        self.kernel = kernel

    def call_boxed(self, keys, x, *_):
        return self.kernel.call_boxed(keys, x)


FAULTS = (
    fault(
        "LIB-01",
        plants.wrapped(utils, "fill_defaults", plants.gives(lambda filled: (filled[0], {}))),
        "keyword_only_inputs",
        neighbours=("LIB-24",),
    ),
    fault(
        "LIB-01: arguments left out stay out",
        plants.put(utils, "fill_defaults", lambda _, args, kwargs: (args, kwargs)),
        "in setup_context",
        neighbours=("LIB-14", "LIB-26"),
    ),
    fault("LIB-01: backward gets None for an unused output", plants.cotangents(_last_gets_none), "cotangents"),
    fault(
        "LIB-01: in backward there is a flag too many",
        plants.cotangents(_flag_too_many),
        "in backward",
        neighbours=("LIB-02",),
    ),
    fault(
        "LIB-02",
        plants.around_backward(plants.rescued(lambda _, g, *__: (torch.zeros_like(g), None))),
        "no error",
        neighbours=("LIB-19",),
    ),
    fault("LIB-02: a call without a formula is refused at once", plants.around_apply(_REFUSED_AT_ONCE)),
    fault(
        "LIB-02: an operator that changes an input can have a formula",
        plants.put(utils, "is_functional_schema", lambda *_, **__: True),
        "no error",
    ),
    fault(
        "LIB-02: what an operator returns in a list may be an alias",
        plants.wrapped(
            utils,
            "_c_check_aliasing_constraint",
            plants.where(lambda name, args, options, found, *_: isinstance(found, list), lambda *_: None),
        ),
        "no error",
    ),
    fault(
        "LIB-02: an operator may return an alias",
        plants.put(utils, "_c_check_aliasing_constraint", lambda *_, **__: None),
    ),
    fault(
        "LIB-03",
        plants.wrapped(torch.library, "infer_schema", plants.gives(lambda schema: re.sub(r"=[^,)]+", "", schema))),
        "leaves out what has defaults",
        neighbours=("LIB-01", "LIB-14", "LIB-24"),
    ),
    fault(
        "LIB-04",
        plants.wrapped(CustomOpDef, "__call__", _rounded),
        neighbours=("LIB-09",),
    ),
    fault(
        "LIB-04: a number that comes back is a tensor",
        plants.wrapped(
            CustomOpDef,
            "__call__",
            plants.gives(
                lambda found: (
                    [torch.tensor(x) if type(x) is int else x for x in found] if type(found) is tuple else found
                )
            ),
        ),
        "numbers",
    ),
    fault(
        "LIB-05",
        plants.put(custom_ops, "increment_version", lambda *_: None),
        "arguments that have changed",
        neighbours=("LIB-23",),
    ),
    fault(
        "LIB-06",
        plants.wrapped(CustomOpDef, "register_kernel", _for_all_devices),
        "output on cpu",
        neighbours=("LIB-07",),
    ),
    fault(
        "LIB-06: a kernel of all devices is one of a device that is not here",
        plants.wrapped(CustomOpDef, "register_kernel", _of_all_for_none),
        "output on cpu",
    ),
    fault(
        "LIB-07",
        plants.put(CustomOpDef, "set_kernel_enabled", lambda *_, **__: nullcontext()),
        "while it is disabled",
    ),
    fault(
        "LIB-08",
        plants.wrapped(CustomOpDef, "register_fake", lambda original, op, fake: original(op, op._init_fn)),
        "kernels that ran",
        neighbours=("LIB-13", "LIB-24"),
    ),
    fault(
        "LIB-09",
        plants.wrapped(autograd_function, "custom_function_call_vmap_helper", _batched_at_0),
    ),
    fault("LIB-10", plants.put(custom_ops, "_cast", lambda value, *_: value), "dtypes in the operator"),
    fault(
        "LIB-10: half precision stays as it is",
        plants.wrapped(custom_ops, "_cast", _single_alone),
        "dtypes in the operator",
    ),
    fault(
        "LIB-11",
        plants.around_backward(plants.where(lambda ctx, *_: _is_operator(ctx), plants.under(torch.no_grad))),
        "second derivative",
    ),
    fault("LIB-12", plants.wrapped(torch.library, "triton_op", _opaque), "what is in the graph"),
    fault(
        "LIB-14",
        plants.wrapped(utils, "fill_defaults", plants.gives(_with_zeros)),
        "in setup_context",
    ),
    fault("LIB-15", plants.put(utils, "has_kwarg_only_tensors", lambda *_: False), "no error"),
    fault("LIB-16", plants.wrapped(FakeImplCtx, "new_dynamic_size", lambda *_, **__: 1), "size"),
    fault("LIB-17", plants.put(torch._C, "_set_autograd_fallback_mode", lambda *_: None), "requires_grad"),
    fault("LIB-13", plants.wrapped(optests, "opcheck", _all_right)),
    fault("LIB-13: what is wrong in one way is so in all", plants.wrapped(optests, "opcheck", _all_wrong)),
    fault(
        "LEGACY-01",
        plants.around_apply(
            plants.where(lambda cls, *_: issubclass(cls, InplaceFunction), plants.gives(plants.detached))
        ),
    ),
    fault(
        "LEGACY-01: NestedIOFunction is no Function",
        plants.put(torch.autograd.function, "NestedIOFunction", type("NestedIOFunction", (), {})),
    ),
    fault(
        "LIB-18",
        edit(_MADE, f"if {_ANY}(\n                *args, **keyword_only_args\n            ):", "if False:"),
        "no error",
    ),
    fault(
        "LIB-18: an operator fills a tensor that requires grad",
        edit(_MADE, f"if {_ANY}(\n                *args, **keyword_only_args\n            ):", f"if {_ANY}(*args):"),
        "no error",
    ),
    fault("LIB-24", plants.put(utils, "can_generate_trivial_fake_impl", lambda *_: False), "without values"),
    fault("LIB-25", plants.put(Library, "_register_torch_dispatch_rule", lambda *_: None), neighbours=("LIB-20",)),
    fault(
        "LIB-26: the kernel that get_kernel gave gets its first argument alone",
        plants.wrapped(torch.library, "get_kernel", plants.gives(_OfOneArgument)),
        "output",
    ),
    fault(
        "LIB-26: an operator that is not there has no kernel, without an error",
        plants.wrapped(torch.library, "get_kernel", plants.rescued(lambda *_: None, says="does not exist")),
        "no error",
    ),
    fault(
        "LIB-19", plants.wrapped(CustomOpDef, "__call__", _copied), "the result is the argument", neighbours=("LIB-24",)
    ),
    fault(
        "LIB-02: tensors in a list are not looked at",
        edit(_MADE, f"if {_ANY}(*args):", f"if {_ANY}(*[x for x in args if not isinstance(x, list)]):"),
        "requires_grad of the results",
        neighbours=("LIB-01",),
    ),
)

FIXES = (
    # An operator with three inputs, of which the last may have been left out, has one flag for each.
    Fix(
        "LIB-01",
        plants.ctx_attribute(
            "needs_input_grad", lambda ctx, flags: (*flags[:2], False) if _is_operator(ctx) else flags
        ),
        variant="needs_input_grad",
    ),
    Fix("LIB-10", plants.put(custom_ops, "_cast", _cast_all), variant="double"),
    Fix(
        "LIB-23",
        edit(_TRITON_OP, "mutates_args=mutates_args,\n", f"mutates_args=({_ALL_NAMES}),\n"),
        variant="unknown",
    ),
    Fix("LIB-23", edit(_TRITON_OP, f"schema={_INFERRED}", f"schema=schema or {_INFERRED}"), variant="schema"),
    Fix(
        "LIB-26",
        plants.wrapped(
            torch.library, "get_kernel", lambda original, op, key: original(getattr(op, "_opoverload", op), key)
        ),
        variant="custom-op",
    ),
    Fix("LIB-19", plants.wrapped(CustomOpDef, "__call__", _refused_with_grad), variant="history"),
)
