"""Faults of custom Functions under vmap, and of batches of cotangents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._C._functorch import TransformType
from torch._functorch import autograd_function as rules
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.utils._pytree import tree_map_only

from autograd_conformance.selftests.planted_clauses.func import as_operations, generates_rules, has_rule, transforming
from autograd_conformance.selftests.planted_clauses.intercept import around_apply, replaced
from autograd_conformance.selftests.planting import Fault


def _without_rule(cls: Any, _: Any) -> bool:
    return transforming(TransformType.Vmap) and not has_rule(cls)


def _of_polynomials(cls: Any, _: Any) -> bool:
    return transforming(TransformType.Vmap) and cls.__name__ in ("Transformable", "Written")


def _averages(original: Any) -> Any:
    def reduced(gradient: Any, batched: Any, of_input: Any, size: int, *args: Any) -> Any:
        found = original(gradient, batched, of_input, size, *args)
        return found / size if found is not None and batched is not None and of_input is None else found

    return reduced


def _leaves_batch_first(original: Any) -> Any:
    def reduced(gradient: Any, batched: Any, of_input: Any, *args: Any) -> Any:
        return original(gradient, batched, of_input if of_input is None else 0, *args)

    return reduced


def _shares_tangents(original: Any) -> Any:
    return lambda in_dims, tangents: tree_map_only(int, lambda _: None, original(in_dims, tangents))


def _forgets_levels(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
    """Under two levels of vmap and nothing else a generated rule gives zeros."""
    found = original(cls, *args, **options)
    levels = [each.key() for each in retrieve_all_functorch_interpreters()]
    nested = levels == [TransformType.Vmap] * 2 and cls.generate_vmap_rule
    return tree_map_only(torch.Tensor, torch.zeros_like, found) if nested else found


def _written_wins(original: Any, cls: Any, *args: Any, **options: Any) -> Any:
    if transforming() and cls.vmap is not torch.autograd.Function.vmap and cls.generate_vmap_rule:
        cls = type(cls)(cls.__name__, (cls,), {"generate_vmap_rule": False})
    return original(cls, *args, **options)


def _around_rule(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """The call of a written batching rule is ``method(rule, info, in_dims, *args)``."""

    def change(original: Any) -> Any:
        def helper(interpreter: Any, rule: Any, *args: Any, **options: Any) -> Any:
            return original(interpreter, lambda *given, **named: method(rule, *given, **named), *args, **options)

        return helper

    return replaced(rules, "custom_function_call_vmap_helper", change)


def _dims_of_tensors(rule: Any, info: Any, in_dims: Any, *args: Any) -> Any:
    pairs = zip(in_dims, args, strict=True)
    return rule(info, tuple(dim for dim, a in pairs if isinstance(a, torch.Tensor)), *args)


def _always_called(first_alone: bool) -> AbstractContextManager[Any]:
    """The batching rule runs without a batched argument, or only if the first one is batched."""

    def change(original: Any) -> Any:
        def helper(interpreter: Any, rule: Any, cls: Any, *operands: Any) -> Any:
            unwrapped, in_dims = rules.unwrap_batched(operands, interpreter.level())
            if first_alone and cls.__name__ == "Custom" and in_dims[0] is None:
                return cls.forward(*operands)
            if first_alone or any(dim is not None for dim in in_dims):
                return original(interpreter, rule, cls, *operands)
            info = rules.VmapInfo(interpreter.batch_size(), interpreter.randomness())
            with interpreter.lower():
                return rule(info, in_dims, *unwrapped)[0]

        return helper

    return replaced(rules, "custom_function_call_vmap_helper", change)


def _zeros_for_mismatches(original: Any) -> Any:
    def flatten(dims: Any, spec: Any, *args: Any) -> Any:
        found = original(dims, spec, *args)
        return [0] * spec.num_leaves if found is None else found

    return flatten


def _zero_for_none(rule: Any, *given: Any) -> Any:
    output, dims = rule(*given)
    return output, tree_map_only(type(None), lambda _: 0, dims)


def _accepts_lists(rule: Any, *given: Any) -> Any:
    found = rule(*given)
    return tuple(found) if isinstance(found, list) else found


def _detaches(rule: Any, *given: Any) -> Any:
    return tree_map_only(torch.Tensor, torch.Tensor.detach, rule(*given))


def _batched_grad(stack: Callable[[Callable[[int], Any], int], Any]) -> AbstractContextManager[Any]:
    """A batch of cotangents gives ``stack(gradients_of, size)``; ``gradients_of`` takes a position in the batch."""

    def change(original: Any) -> Any:
        def grad(
            outputs: Any, inputs: Any, cotangents: Any = None, is_grads_batched: bool = False, **options: Any
        ) -> Any:
            if not is_grads_batched:
                return original(outputs, inputs, cotangents, **options)

            def gradients_of(member: int) -> Any:
                return original(outputs, inputs, [g[member] for g in cotangents], retain_graph=True, **options)

            return stack(gradients_of, len(cotangents[0]))

        return grad

    return replaced(torch.autograd, "grad", change)


def _first_for_all(gradients_of: Callable[[int], Any], size: int) -> Any:
    return tuple(None if g is None else g.expand(size, *g.shape) for g in gradients_of(0))


def _in_a_loop(gradients_of: Callable[[int], Any], size: int) -> Any:
    each = zip(*map(gradients_of, range(size)), strict=True)
    return tuple(None if found[0] is None else torch.stack(found) for found in each)


FAULTS = (
    Fault("VMAP-01", lambda: as_operations(_without_rule)),
    Fault("VMAP-01", lambda: around_apply(generates_rules), words="a rule is generated without a request"),
    Fault("VMAP-02", lambda: replaced(rules, "reductify_leaf", _averages), neighbours=("VMAP-08",)),
    Fault(
        "VMAP-02",
        lambda: replaced(rules, "reductify_leaf", _leaves_batch_first),
        neighbours=("VMAP-08",),
        words="gradients keep the batch dimension first",
    ),
    Fault(
        "VMAP-02",
        lambda: replaced(rules, "get_tangents_in_dims", _shares_tangents),
        neighbours=("VMAP-10",),
        words="tangents are taken as shared by all calls",
    ),
    Fault("VMAP-02", lambda: around_apply(_forgets_levels), words="nested levels give zeros"),
    Fault(
        "VMAP-03",
        lambda: replaced(
            rules, "has_overridden_vmap_rule", lambda original: lambda cls: original(cls) and not cls.generate_vmap_rule
        ),
    ),
    Fault("VMAP-03", lambda: around_apply(_written_wins), words="the written rule wins"),
    Fault("VMAP-04", lambda: _around_rule(_dims_of_tensors), neighbours=("VMAP-03", "VMAP-06", "VMAP-08")),
    Fault(
        "VMAP-04",
        lambda: _around_rule(lambda rule, info, *given: rule(info._replace(randomness="error"), *given)),
        says=("randomness",),
        words="randomness is always error",
    ),
    Fault(
        "VMAP-04",
        lambda: _around_rule(lambda rule, info, dims, *args: rule(info, list(dims), *args)),
        says=("list",),
        words="in_dims is a list",
    ),
    Fault("VMAP-05", lambda: replaced(rules, "_broadcast_to_and_flatten", _zeros_for_mismatches)),
    Fault("VMAP-05", lambda: _around_rule(_zero_for_none), words="None is taken as 0"),
    Fault("VMAP-05", lambda: _around_rule(_accepts_lists), words="a list of two is accepted"),
    Fault("VMAP-06", lambda: _always_called(first_alone=False)),
    Fault("VMAP-06", lambda: _always_called(first_alone=True), words="called only if the first argument is batched"),
    Fault("VMAP-07", lambda: _batched_grad(_first_for_all)),
    Fault("VMAP-07", lambda: _batched_grad(_in_a_loop), words="a loop over the cotangents"),
    Fault("VMAP-08", lambda: as_operations(_of_polynomials), neighbours=("VMAP-01", "VMAP-03", "VMAP-04")),
    Fault("VMAP-08", lambda: _around_rule(_detaches), words="a written rule is not differentiated"),
)
