"""Faults of what autograd.grad and autograd.backward make of their inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.engine import around_engine, given_to_grad, leaves_of
from autograd_conformance.selftests.planted_clauses.intercept import replaced
from autograd_conformance.selftests.planting import Fault


def _always_allows(original: Any, *args: Any, materialize_grads: bool = False, **options: Any) -> Any:
    allowed = options if materialize_grads else {**options, "allow_unused": True}
    return original(*args, materialize_grads=materialize_grads, **allowed)


def _forgets_option(original: Any, *args: Any, **options: Any) -> Any:
    if options.get("materialize_grads") and options.get("allow_unused") is False:
        options["allow_unused"] = True
    return original(*args, **options)


def _zeros_like_outputs(original: Any, outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    if not options.pop("materialize_grads", False) or options.get("allow_unused") is False:
        return original(outputs, inputs, *args, **options)
    found = original(outputs, inputs, *args, **{**options, "allow_unused": True})
    return tuple(torch.zeros_like(outputs[0]) if g is None else g for g in found)


def _keeps_none(original: Any, outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    if not options.get("materialize_grads") or options.get("allow_unused") is False:
        return original(outputs, inputs, *args, **options)
    options.pop("materialize_grads")
    found = original(outputs, inputs, *args, **{**options, "allow_unused": True})
    reached = leaves_of(outputs)
    return tuple(
        torch.zeros_like(x) if g is None and not any(x is y for y in reached) else g
        for x, g in zip(inputs, found, strict=True)
    )


def _wide_zeros(original: Any, outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    found = _keeps_none(original, outputs, inputs, *args, **options)
    if not options.get("materialize_grads"):
        return found
    return tuple(x.detach().double() * 0 if g is None else g for x, g in zip(inputs, found, strict=True))


def _everywhere(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    leaves_alone = accumulate and inputs and all(x.is_leaf and x.requires_grad for x in inputs)
    return run(outputs, cotangents, () if leaves_alone else inputs)


@contextmanager
def _empty_means_all() -> Iterator[None]:
    def wrap(original: Any) -> Any:
        def backward(*args: Any, inputs: Any = None, **options: Any) -> Any:
            return original(
                *args, inputs=None if isinstance(inputs, list | tuple) and not inputs else inputs, **options
            )

        return backward

    with replaced(torch.autograd, "backward", wrap):
        yield


def _whole_graph(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if accumulate or not all(x.is_leaf and x.requires_grad for x in inputs):
        return run(outputs, cotangents, inputs)
    others = [x for x in leaves_of(outputs) if not any(x is y for y in inputs)]
    return run(outputs, cotangents, (*inputs, *others))[: len(inputs)]


def _whole_graph_of_backward(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if not accumulate or not inputs or not all(x.is_leaf and x.requires_grad for x in inputs):
        return run(outputs, cotangents, inputs)
    others = [x for x in leaves_of(outputs) if not any(x is y for y in inputs)]
    before = [x.grad for x in others]
    run(outputs, cotangents, (*inputs, *others))
    for x, grad in zip(others, before, strict=True):
        x.grad = grad
    return None


def _runs_makers(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    makers = [x for x in inputs if x.grad_fn is not None and x.grad_fn.name().startswith("Step")]
    if accumulate or not makers:
        return run(outputs, cotangents, inputs)
    return run(outputs, cotangents, (*inputs, *leaves_of(makers)), True)[: len(inputs)]


def _spares_makers(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    """Backward with inputs that are not leaves does what grad does."""
    if not accumulate or not inputs or any(x.is_leaf for x in inputs):
        return run(outputs, cotangents, inputs)
    found = torch.autograd.grad(outputs, inputs, cotangents, retain_graph=True, allow_unused=True)
    for x, g in zip(inputs, found, strict=True):
        x.retain_grad()
        x.grad = g if x.grad is None or g is None else x.grad + g
    return None


def _zero_for_constants(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    if accumulate or all(x.requires_grad for x in inputs):
        return run(outputs, cotangents, inputs)
    wanted = tuple(x for x in inputs if x.requires_grad)
    found = iter(run(outputs, cotangents, wanted) if wanted else ())
    return tuple(next(found) if x.requires_grad else torch.zeros_like(x) for x in inputs)


def _skips_constants(run: Any, outputs: Any, cotangents: Any, inputs: Any, accumulate: bool) -> Any:
    starts = [i for i, y in enumerate(outputs) if y.requires_grad]
    if len(cotangents) != len(outputs):
        return run(outputs, cotangents, inputs)
    if not starts:
        return None if accumulate else (None,) * len(inputs)
    return run(tuple(outputs[i] for i in starts), tuple(cotangents[i] for i in starts), inputs)


def _flattens(original: Any, outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    plain = list(inputs.values()) if type(inputs) is dict else inputs
    return original(outputs, plain, *args, **options)


def _takes_any_mapping(original: Any, outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    return original(outputs, dict(inputs) if isinstance(inputs, Mapping) else inputs, *args, **options)


def _takes_any_mapping_in_backward(original: Any) -> Any:
    def backward(*args: Any, inputs: Any = None, **options: Any) -> Any:
        return original(*args, inputs=dict(inputs) if isinstance(inputs, Mapping) else inputs, **options)

    return backward


FAULTS = (
    Fault("ENG-07", lambda: given_to_grad(_always_allows), says=("an unused input",)),
    Fault("ENG-07", lambda: given_to_grad(_forgets_option), words="materialize_grads goes before allow_unused"),
    Fault("ENG-07", lambda: given_to_grad(_zeros_like_outputs), words="the zeros are like an output"),
    Fault("ENG-08", lambda: given_to_grad(_keeps_none)),
    Fault("ENG-08", lambda: given_to_grad(_wide_zeros), words="the zeros are in double precision"),
    Fault("ENG-09", lambda: around_engine(_everywhere), neighbours=("ENG-10", "ENG-15")),
    Fault("ENG-09", _empty_means_all, words="no inputs mean all leaves"),
    Fault("ENG-10", lambda: around_engine(_whole_graph)),
    Fault("ENG-10", lambda: around_engine(_whole_graph_of_backward), words="only backward runs the whole graph"),
    Fault("ENG-11", lambda: around_engine(_runs_makers), says=("steps that grad ran",)),
    Fault(
        "ENG-11",
        lambda: around_engine(_spares_makers),
        says=("steps that backward ran",),
        words="backward does not run what made its inputs",
    ),
    Fault("ENG-12", lambda: around_engine(_zero_for_constants)),
    Fault("ENG-12", lambda: around_engine(_skips_constants), words="outputs without a node are skipped"),
    Fault("ENG-15", lambda: given_to_grad(_flattens), says=("type of what grad returns",)),
    Fault("ENG-15", lambda: given_to_grad(_takes_any_mapping), words="grad takes any mapping"),
    Fault(
        "ENG-15",
        lambda: replaced(torch.autograd, "backward", _takes_any_mapping_in_backward),
        words="backward takes any mapping",
    ),
)
