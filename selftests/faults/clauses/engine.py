"""Faults of the engine, of autograd.grad and of autograd.backward, and what these make of their inputs."""

from __future__ import annotations

from itertools import count

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import among, around_backward, around_engine, around_grad, leaves_of


def _make_grads(change):
    """The cotangents given to grad or backward are ``change(outputs, cotangents)``."""

    def make(original, outputs, grads, **options):
        return original(outputs, change(outputs, grads), **options)

    return plants.wrapped(torch.autograd, "_make_grads", make)


def _cotangents(change):
    """Each cotangent given to grad or backward is ``change(it, its output)``."""

    def changed(outputs, grads):
        found = [change(g, y) for g, y in zip(grads, outputs, strict=False)]
        return [*found, *grads[len(found) :]]

    return _make_grads(changed)


def _ones_where(left_out, value=1):
    """A cotangent that is left out is filled with this value for such an output."""
    return _cotangents(lambda g, y: torch.full_like(y, value) if g is None and left_out(y) else g)


def _casts_late():
    """Backward sees a cotangent of a caller in the dtype in which the caller gave it."""
    given = []

    def engine(run, outputs, cotangents, inputs, _):
        given[:] = [g.dtype for g in cotangents if g is not None]
        return run(outputs, cotangents, inputs)

    def change(_, cotangents):
        late = len(set(given)) == 1 and not given[0].is_floating_point
        return plants.of_tensors(lambda g: g.to(given[0]), cotangents) if late else cotangents

    return plants.all_of(around_engine(engine), plants.cotangents(change))


def _forgets_grad(outputs):
    for leaf in leaves_of(outputs):
        leaf.grad = None


def _overwrites(run, outputs, cotangents, inputs, accumulate):
    if accumulate and not inputs:
        _forgets_grad(outputs)
    return run(outputs, cotangents, inputs)


def _replaces_with_graph(original, outputs, cotangents, retain, create, *args, **options):
    if create and options["accumulate_grad"]:
        _forgets_grad(outputs)
    return original(outputs, cotangents, retain, create, *args, **options)


def _fills_grad(run, outputs, cotangents, inputs, accumulate):
    found = run(outputs, cotangents, inputs)
    for x, g in zip(inputs, () if accumulate else found, strict=False):
        if x.is_leaf and x.grad is None and g is not None:
            x.grad = g.detach()
    return found


def _fills_grad_in_between(run, outputs, cotangents, inputs, accumulate):
    for y in outputs if accumulate and not inputs else ():
        if not y.is_leaf:
            y.retain_grad()
    return run(outputs, cotangents, inputs)


def _floats(given):
    return [g for g in given if isinstance(g, torch.Tensor) and g.is_floating_point()]


def _in_halves(original, ctx, *given):
    halves = plants.of_tensors(lambda g: g / 2 if g.is_floating_point() else g, given)
    if ctx.name().startswith("Step") and any(g.any() for g in plants.tensors_of(given)):
        pairs = zip(original(ctx, *halves), original(ctx, *halves), strict=True)
        return tuple(a if b is None else a + b for a, b in pairs)
    return original(ctx, *given)


def _one_output_after_another(run, outputs, cotangents, inputs, accumulate):
    linear = all(y.grad_fn is not None and y.grad_fn.name().startswith("Step") for y in outputs)
    if accumulate or len(outputs) < 2 or len(cotangents) != len(outputs) or not linear:
        return run(outputs, cotangents, inputs)
    each = [run((y,), (g,), inputs, True) for y, g in zip(outputs, cotangents, strict=True)]
    columns = [[g for g in column if g is not None] for column in zip(*each, strict=True)]
    return tuple(sum(column[1:], column[0]) if column else None for column in columns)


def _first_only(run, outputs, cotangents, inputs, _):
    many = len(outputs) > 3 and all(y.grad_fn.name().startswith("Polynomial") for y in outputs)
    return run(outputs[:1], cotangents[:1], inputs) if many else run(outputs, cotangents, inputs)


def _repeated_once(run, outputs, cotangents, inputs, _):
    if len(outputs) < 4:
        return run(outputs, cotangents, inputs)
    kept = [i for i, y in enumerate(outputs) if not plants.among(outputs[:i], y)]
    return run(tuple(outputs[i] for i in kept), tuple(cotangents[i] for i in kept), inputs)


def _counted(outputs, grads):
    if len(grads) > len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    return grads


def _paired(outputs, grads):
    return [*grads, *([grads[-1]] * (len(outputs) - len(grads)))] if 0 < len(grads) < len(outputs) else grads


@plants.anew
def _numbered(order):
    """The custom nodes are numbered as the order says."""
    created = count(1)

    def note(node, cls, *_):
        if cls.__name__.startswith("Step"):
            node._set_sequence_nr(order(next(created)))

    return plants.noting_calls(note)()


@plants.anew
def _refuses(depth):
    """Passes may be nested so deep."""
    inside, noted = plants.noting(lambda method: plants.wrapped(torch.autograd, "_engine_run_backward", method))

    def engine(run, *args):
        if len(inside) >= depth:
            raise RuntimeError("backward passes are nested too deeply")
        return run(*args[:-1])

    return plants.all_of(noted, around_engine(engine))


def _skips_zeros(original, ctx, *given):
    floats = _floats(given)
    if floats and all(g.numel() and not g.any() for g in floats) and ctx.name().startswith("Step"):
        return tuple(torch.zeros_like(floats[0]) for _ in ctx.needs_input_grad)
    return original(ctx, *given)


def _skips_zero_outputs(run, outputs, cotangents, inputs, accumulate):
    zero = [g is not None and plants.is_zero(g) for g in cotangents]
    if not zero or not all(zero) or not all(y.grad_fn is not None for y in outputs):
        return run(outputs, cotangents, inputs)
    return None if accumulate else tuple(torch.zeros_like(x) for x in inputs)


def _drops_constant_outputs():
    def starts(outputs, cotangents):
        pairs = [p for p in zip(outputs, cotangents, strict=True) if p[0].requires_grad or p[1] is not None]
        return [y for y, _ in pairs], [g for _, g in pairs]

    def grad(original, outputs, inputs, cotangents, **options):
        kept, given = starts(outputs, cotangents)
        return original(kept, inputs, given, **options)

    def backward(original, outputs, cotangents, **options):
        return original(*starts(outputs, cotangents), **options)

    return plants.all_of(plants.around_grad(grad), plants.wrapped(torch.autograd, "backward", backward))


def _keeps_none(original, outputs, inputs, *args, **options):
    """Under materialize_grads None stays None for a leaf that the graph reaches."""
    if not options.get("materialize_grads") or options.get("allow_unused") is False:
        return original(outputs, inputs, *args, **options)
    found = original(outputs, inputs, *args, **{**options, "materialize_grads": False, "allow_unused": True})
    reached, pairs = leaves_of(outputs), zip(inputs, found, strict=True)
    return tuple(torch.zeros_like(x) if g is None and not among(reached, x) else g for x, g in pairs)


def _of_leaves(inputs):
    return all(x.is_leaf and x.requires_grad for x in inputs)


def _everywhere(run, outputs, cotangents, inputs, accumulate):
    return run(outputs, cotangents, () if accumulate and inputs and _of_leaves(inputs) else inputs)


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


def _with_others(run, outputs, inputs, cotangents=None, *args, only_inputs=True, **options):
    """With only_inputs=False other leaves get a .grad."""
    if not only_inputs:
        torch.autograd.backward(outputs, cotangents, retain_graph=True)
    return run(outputs, inputs, cotangents, *args, only_inputs=only_inputs, **options)


FAULTS = (
    fault("ENG-01", _ones_where(lambda y: not y.is_complex()), "a cotangent left out"),
    fault("ENG-01: empty outputs need no cotangent", _ones_where(lambda y: y.numel() == 0)),
    fault("ENG-01: complex scalars need no cotangent", _ones_where(torch.is_complex)),
    fault(
        "ENG-01: it is not one where the output has dimensions",
        _ones_where(torch.Tensor.dim, value=2),
        neighbours=("ENG-05",),
    ),
    fault("ENG-02: backward sees integer cotangents", _casts_late),
    fault("ENG-03", around_engine(_overwrites), neighbours=("ENG-05",)),
    fault("ENG-03: grad fills .grad as well", around_engine(_fills_grad), neighbours=("ENG-11", "ENG-17")),
    fault("ENG-03: outputs get a .grad", around_engine(_fills_grad_in_between), neighbours=("ENG-11",)),
    fault(
        "ENG-03: backward with create_graph replaces .grad",
        plants.wrapped(torch.autograd, "_engine_run_backward", _replaces_with_graph),
    ),
    fault("ENG-04", around_backward(_in_halves), neighbours=plants.numbers("ENG", 10, 11, 13)),
    fault(
        "ENG-04: it runs twice under create_graph", around_backward(plants.recorded(_in_halves)), neighbours=("ENG-10",)
    ),
    fault(
        "ENG-04: grad runs the graph once for each output",
        around_engine(_one_output_after_another),
        neighbours=plants.numbers("ENG", 10, 11, 13, 16),
    ),
    fault("ENG-05", around_engine(_first_only)),
    fault(
        "ENG-05: of many outputs one that is given twice counts once",
        around_engine(_repeated_once),
        neighbours=("ENG-04",),
    ),
    fault("ENG-06", _make_grads(lambda y, g: [*g, *map(torch.ones_like, y[len(g) :])]), "fewer"),
    fault("ENG-06: the last cotangent is used for all further outputs", _make_grads(_paired), "fewer"),
    fault("ENG-13", _numbered(lambda _: 0)),
    fault("ENG-13: the first created runs first", _numbered(lambda n: 2**40 - n)),
    fault("ENG-14", _refuses(1)),
    fault("ENG-14: a hundred levels are too many", _refuses(100)),
    fault("ENG-16", around_backward(_skips_zeros), "steps that ran", neighbours=("ENG-04",)),
    fault("ENG-16: a pass from zeros runs nothing", around_engine(_skips_zero_outputs), neighbours=("ENG-04",)),
    fault("ENG-08", around_grad(_keeps_none), neighbours=("ENG-07",)),
    fault("ENG-09", around_engine(_everywhere), neighbours=("ENG-10", "ENG-15")),
    fault("ENG-10", around_engine(_whole_graph)),
    fault("ENG-10: only backward runs the whole graph", around_engine(_whole_graph_of_backward)),
    fault("ENG-11", around_engine(_runs_makers), "steps that grad ran"),
    fault(
        "ENG-11: backward does not run what made its inputs", around_engine(_spares_makers), "steps that backward ran"
    ),
    fault("ENG-12", around_engine(_zero_for_constants)),
    fault("ENG-12: outputs without a node are skipped", around_engine(_skips_constants)),
    fault("ENG-17", plants.wrapped(torch.autograd, "grad", _with_others), ".grad", neighbours=("ENG-03",)),
    fault(
        "ENG-17: there is no warning",
        plants.wrapped(torch.autograd, "grad", lambda grad, *args, only_inputs=True, **options: grad(*args, **options)),
        "no warning",
    ),
)

FIXES = (
    Fix("ENG-01", _drops_constant_outputs, variant="constant"),
    Fix("ENG-02", variant="later-message"),
    Fix("ENG-06", _make_grads(_counted)),
)
