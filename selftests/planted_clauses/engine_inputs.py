"""Faults of what autograd.grad and autograd.backward make of their inputs."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planting import fault
from autograd_conformance.selftests.plants import among, around_engine, around_grad, leaves_of


def _always_allows(original, *args, materialize_grads=False, **options):
    allowed = options if materialize_grads else {**options, "allow_unused": True}
    return original(*args, materialize_grads=materialize_grads, **allowed)


def _forgets_option(original, *args, **options):
    if options.get("materialize_grads") and options.get("allow_unused") is False:
        options["allow_unused"] = True
    return original(*args, **options)


def _materialized(zeros):
    """Under materialize_grads the gradients are ``zeros(outputs, inputs, what grad gave without it)``."""

    def grad(original, outputs, inputs, *args, **options):
        if not options.get("materialize_grads") or options.get("allow_unused") is False:
            return original(outputs, inputs, *args, **options)
        options = {**options, "materialize_grads": False, "allow_unused": True}
        return zeros(outputs, inputs, original(outputs, inputs, *args, **options))

    return around_grad(grad)


def _zeros_like_outputs(outputs, _, found):
    return tuple(torch.zeros_like(outputs[0]) if g is None else g for g in found)


def _keeps_none(outputs, inputs, found):
    reached, pairs = leaves_of(outputs), zip(inputs, found, strict=True)
    return tuple(torch.zeros_like(x) if g is None and not among(reached, x) else g for x, g in pairs)


def _wide_zeros(outputs, inputs, found):
    pairs = zip(inputs, _keeps_none(outputs, inputs, found), strict=True)
    return tuple(x.detach().double() * 0 if g is None else g for x, g in pairs)


def _of_leaves(inputs):
    return all(x.is_leaf and x.requires_grad for x in inputs)


def _everywhere(run, outputs, cotangents, inputs, accumulate):
    return run(outputs, cotangents, () if accumulate and inputs and _of_leaves(inputs) else inputs)


def _inputs_of_backward(change):
    """autograd.backward gets ``change(inputs)``."""

    def backward(original, *args, inputs=None, **options):
        return original(*args, inputs=change(inputs), **options)

    return plants.wrapped(torch.autograd, "backward", backward)


def _inputs_of_grad(change):
    """autograd.grad gets ``change(inputs)``."""

    def grad(original, outputs, inputs, *args, **options):
        return original(outputs, change(inputs), *args, **options)

    return around_grad(grad)


def _whole_graph(run, outputs, cotangents, inputs, accumulate):
    if accumulate or not _of_leaves(inputs):
        return run(outputs, cotangents, inputs)
    others = [x for x in leaves_of(outputs) if not among(inputs, x)]
    return run(outputs, cotangents, (*inputs, *others))[: len(inputs)]


def _whole_graph_of_backward(run, outputs, cotangents, inputs, accumulate):
    if not accumulate or not inputs or not _of_leaves(inputs):
        return run(outputs, cotangents, inputs)
    others = [x for x in leaves_of(outputs) if not among(inputs, x)]
    before = [x.grad for x in others]
    run(outputs, cotangents, (*inputs, *others))
    for x, grad in zip(others, before, strict=True):
        x.grad = grad
    return None


def _runs_makers(run, outputs, cotangents, inputs, accumulate):
    makers = [x for x in inputs if x.grad_fn is not None and x.grad_fn.name().startswith("Step")]
    if accumulate or not makers:
        return run(outputs, cotangents, inputs)
    return run(outputs, cotangents, (*inputs, *leaves_of(makers)), True)[: len(inputs)]


def _spares_makers(run, outputs, cotangents, inputs, accumulate):
    """Backward with inputs that are not leaves does what grad does."""
    if not accumulate or not inputs or any(x.is_leaf for x in inputs):
        return run(outputs, cotangents, inputs)
    found = torch.autograd.grad(outputs, inputs, cotangents, retain_graph=True, allow_unused=True)
    for x, g in zip(inputs, found, strict=True):
        x.retain_grad()
        x.grad = g if x.grad is None or g is None else x.grad + g
    return None


def _zero_for_constants(run, outputs, cotangents, inputs, accumulate):
    if accumulate or all(x.requires_grad for x in inputs):
        return run(outputs, cotangents, inputs)
    wanted = tuple(x for x in inputs if x.requires_grad)
    found = iter(run(outputs, cotangents, wanted) if wanted else ())
    return tuple(next(found) if x.requires_grad else torch.zeros_like(x) for x in inputs)


def _skips_constants(run, outputs, cotangents, inputs, accumulate):
    starts = [i for i, y in enumerate(outputs) if y.requires_grad]
    if len(cotangents) != len(outputs):
        return run(outputs, cotangents, inputs)
    if not starts:
        return None if accumulate else (None,) * len(inputs)
    return run(tuple(outputs[i] for i in starts), tuple(cotangents[i] for i in starts), inputs)


def _as_dict(inputs):
    return dict(inputs) if isinstance(inputs, Mapping) else inputs


FAULTS = (
    fault("ENG-07", around_grad(_always_allows), "an unused input"),
    fault("ENG-07: materialize_grads goes before allow_unused", around_grad(_forgets_option)),
    fault("ENG-07: the zeros are like an output", _materialized(_zeros_like_outputs)),
    fault("ENG-08", _materialized(_keeps_none), neighbours=("ENG-07",)),
    fault("ENG-08: the zeros are in double precision", _materialized(_wide_zeros), neighbours=("ENG-07",)),
    fault("ENG-09", around_engine(_everywhere), neighbours=("ENG-10", "ENG-15")),
    fault(
        "ENG-09: no inputs mean all leaves",
        _inputs_of_backward(lambda inputs: None if isinstance(inputs, list | tuple) and not inputs else inputs),
    ),
    fault("ENG-10", around_engine(_whole_graph)),
    fault("ENG-10: only backward runs the whole graph", around_engine(_whole_graph_of_backward)),
    fault("ENG-11", around_engine(_runs_makers), "steps that grad ran"),
    fault(
        "ENG-11: backward does not run what made its inputs", around_engine(_spares_makers), "steps that backward ran"
    ),
    fault("ENG-12", around_engine(_zero_for_constants)),
    fault("ENG-12: outputs without a node are skipped", around_engine(_skips_constants)),
    fault(
        "ENG-15",
        _inputs_of_grad(lambda inputs: list(inputs.values()) if type(inputs) is dict else inputs),
        "type of what grad returns",
    ),
    fault("ENG-15: grad takes any mapping", _inputs_of_grad(_as_dict)),
    fault("ENG-15: backward takes any mapping", _inputs_of_backward(_as_dict)),
)
