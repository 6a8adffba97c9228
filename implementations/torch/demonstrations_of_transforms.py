"""What shows on torch that a property of derivatives, precision, transforms, environments or memory does not hold.

See `torch_demonstrations`, of which this is a part.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Sequence

from autograd_conformance.implementations.torch.words import Words, assigned, listed


def _slope(w: Words) -> str:
    """The gradients along a direction, against the slope that finite differences of the reference have."""
    if w.shown.aspect == "raised":
        return w.results()[0]
    along = w.shown.more["directions"]()
    lines = w.helpers() + w.forward() + f"gradients = {w.grad()}\n"
    got = f"sum((g.conj() * u).real.sum() for g, u in zip(gradients, {listed(along)}) if g is not None)"
    if w.shown.slope_of:
        return _LOSS.format(**_loss(w, along)) + lines + w.compare(got, "torch.tensor(slope, dtype=torch.float64)")
    return lines + w.compare(got)


def _slope_at_kink(w: Words) -> str:
    """The gradients along the direction that moves special or equal entries, against the slopes nearby."""
    if w.shown.aspect == "raised":
        return w.results()[0]
    along, found = w.shown.more["moved entries"](), w.shown.component
    got = f"sum((g.conj() * u).real.sum() for g, u in zip(gradients, {listed(along)}) if g is not None)"
    # The zeros of a sparse tensor stay.
    near = [f" + near[{place}]" + f" * ({x} != 0)" * (x in w.sparse) for place, x in enumerate(w.tracked)]
    tensors = listed(w.tracked)
    apart, step, bent = _NEAR[found["precision"]]
    lines = _NEARBY.format(tensors=tensors, **_loss(w, along, near), apart=apart, step=step) + w.helpers() + w.forward()
    lines += f"gradients = {w.grad()}\ngot = float({got})\n"
    # Points apart have slopes that are a little apart.
    lines += f"low, high, bound = min(slopes), max(slopes), {found['bound'] + bent}\n"
    lines += 'print(f"slope: got {got}, expected {low} to {high}, bound {bound}")\n'
    return lines + "sys.exit(not low - bound <= got <= high + bound)\n"


# How far the points nearby are apart, the step of differences, and how much their slopes may differ because of that.
_NEAR = {"float64": ("2**-20", "2**-26", 2.0**-14), "float32": ("2**-9", "2**-13", 2.0**-6)}

# The slopes of the forward at points nearby, where it has no kink.
_NEARBY = """\
def loss(near, t):
    with torch.no_grad():
        {forward}    return {sum}.item()


def slope(seed):
    torch.manual_seed(seed)
    near = [{apart} * (2 * torch.rand_like(x) - 1) for x in {tensors}]
    h = {step}
    return (loss(near, h) - loss(near, -h)) / (2 * h)


slopes = [slope(seed) for seed in range(64)]
"""


# The slope of the forward by central differences, of an error in the fourth power of the step.
_LOSS = """\
def loss(t):
    with torch.no_grad():
        {forward}    return {sum}.item()


h = 2**-11
slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
"""


def _loss(w: Words, along: list[str], near: Sequence[str] = ()) -> dict[str, str]:
    ends = itertools.zip_longest(along, near, fillvalue="")
    moved = [f"{x} + t * {''.join(next(ends))}" if n in w.shown.tracked else x for n, x in enumerate(w.names)]
    terms = [f"({g.name}.conj() * {y}).real.sum()" for g, y in zip(w.cotangents, w.ends, strict=True) if g]
    total = terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"
    return {"forward": w.forward(moved, apply=w.shown.slope_of), "sum": total}


def _second(w: Words) -> str:
    free = [g.name for g in w.cotangents if g] if w.shown.choices["loss"] == "cotangents" else []
    used = [g.name for g in w.cotangents if g] if free else w.ends
    weights, along = w.shown.more["weights"](), w.shown.more["second directions"]()
    lines = w.helpers() + "".join(f"{g}.requires_grad_()\n" for g in free) + w.forward()
    lines += f"first = {w.grad(None, None, used, 'create_graph=True')}\n"
    variables = [*w.tracked, *free]
    recorded = f"[(g, u) for g, u in zip(first, {listed(weights)}) if g is not None and g.requires_grad]"
    refused = w.shown.aspect in ("raised", "refused")
    if w.shown.choices["through"] == "backward":
        if refused:
            return lines + f"torch.autograd.backward(first, {listed(weights)})\n"
        lines += f"ends = {recorded}\nif ends:\n    torch.autograd.backward(*zip(*ends))\n"
        lines += f"second = {listed(f'{x}.grad' for x in variables)}\n"
    elif refused:
        return lines + f"torch.autograd.grad(first, {listed(variables)}, {listed(weights)}, allow_unused=True)\n"
    else:
        found = f"torch.autograd.grad(ends, {listed(variables)}, weights, allow_unused=True)"
        lines += f"pairs = {recorded}\nends, weights = zip(*pairs) if pairs else ([], [])\n"
        lines += f"second = {found} if pairs else [None] * {len(variables)}\n"
    if w.shown.aspect == "detached":
        return lines + w.same("any(g is not None for g in second)", "True")
    total = f"sum((g.conj() * u).real.sum() for g, u in zip(second, {listed(along)}) if g is not None)"
    return lines + w.compare(f"torch.as_tensor({total})")


def _once(w: Words) -> str:
    weights = w.shown.more["weights"]()
    free = w.shown.choices.get("loss") == "cotangents"
    names = [g.name for g in w.cotangents if g]
    if w.shown.aspect != "equality":
        lines = w.forward() + f"gradients = {w.grad(None, None, None, 'create_graph=True')}\n"
        return lines + w.compare(f"gradients[{w.position}]")
    lines = "".join(f"{g}.requires_grad_()\n" for g in names if free) + w.forward()
    lines += f"first = {w.grad(None, None, names if free else w.ends, 'create_graph=True')}\n"
    lines += f"try:\n    torch.autograd.backward(first, {listed(weights)})\n    refused = False\n"
    lines += "except RuntimeError as refusal:\n    refused = True\n"
    return lines + w.same("refused", "True")


def _duals(w: Words) -> str:
    tangents = w.shown.more["tangents"]()
    duals = [f"{x}.detach()" for x in w.names]
    for n, tangent in zip(w.shown.tracked, tangents, strict=True):
        duals[n] = f"fwAD.make_dual({w.names[n]}.detach(), {tangent})"
    forward = w.forward(duals).replace(".clone()", "")
    unpacked = ", ".join(f"fwAD.unpack_dual({y}).tangent" for y in w.shown.outputs)
    return f"with fwAD.dual_level():\n    {forward}    tangents = [{unpacked}]\n"


def _tangent(w: Words) -> str:
    return _duals(w) + w.compare(f"tangents[{w.shown.component.get('number', 0)}]")


def _adjoint(w: Words) -> str:
    lines = _duals(w) + w.helpers() + w.forward() + f"gradients = {w.grad()}\n"
    if w.shown.aspect == "raised":
        return lines
    cotangents = listed(g.name for g in w.cotangents if g)
    ends = listed(f"tangents[{n}]" for n in w.shown.used)
    pairs = f"zip({cotangents}, {ends})"
    lines += f"forward = sum((g.conj() * t).real.double().sum() for g, t in {pairs} if t is not None)\n"
    pairs = f"zip(gradients, {listed(w.shown.more['tangents']())})"
    lines += f"reverse = sum((t.conj() * g).real.double().sum() for g, t in {pairs} if g is not None)\n"
    return lines + w.compare("torch.as_tensor(forward)", "torch.as_tensor(reverse)")


def _vmap(w: Words) -> str:
    """The call batched: the tensors are the stacked ones."""
    axes = w.shown.choices["batched axis of each tensor"]
    parameters = ", ".join(w.names)
    lines = f"batched = torch.func.vmap(lambda {parameters}: {w.call()}, in_dims={tuple(axes)})\n"
    lines += f"{w.target} = batched({parameters})\n"
    if w.shown.aspect == "raised":
        return lines + f"{w.grad()}\n"
    if w.shown.kind == "output":
        return lines + w.compare(w.shown.outputs[w.shown.number])
    return lines + w.compare(f"{w.grad()}[{w.position}]")


def _batched_cotangents(w: Words) -> str:
    gradients = w.grad(None, None, None, "is_grads_batched=True")
    return w.forward() + w.compare(f"{gradients}[{w.position}]")


def _compiled(w: Words) -> str:
    call = w.shown.apply
    lines = f'compiled = torch.compile({call}, backend="aot_eager", dynamic=False)\n'
    if w.shown.kind == "output":
        return lines + w.forward(apply="compiled") + w.compare(w.shown.outputs[w.shown.number])
    return lines + w.forward(apply="compiled") + w.compare(f"{w.grad()}[{w.position}]")


def _autocast(w: Words) -> str:
    lines = f'with torch.autocast("{w.shown.device}", dtype=torch.{w.shown.cast}):\n    {w.forward()}'
    if w.shown.kind == "output":
        return lines + w.compare(w.shown.outputs[w.shown.number])
    cast = [f"{g.name}.to({y}.dtype)" for g, y in zip(w.cotangents, w.ends, strict=True) if g]
    return w.helpers() + lines + w.compare(f"{w.grad(None, None, cast)}[{w.position}]")


def _saved_hooks(w: Words) -> str:
    run = w.run()
    call = f"run({', '.join(w.names)})"
    hooks = "torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x)"
    if w.shown.aspect == "raised":
        return run + f"with {hooks}:\n    {call}\n"
    return run + f"plain = {call}\nwith {hooks}:\n    hooked = {call}\n" + w.compare("hooked", "plain")


def _checkpoint(w: Words) -> str:
    parameters = ", ".join(w.names)
    lines = w.helpers() + w.forward() + (f"plain = {w.grad()}\n" if w.shown.aspect != "raised" else "")
    lines += f"{w.target} = checkpoint(lambda {parameters}: {w.call()}, {parameters}, use_reentrant=False)\n"
    if w.shown.aspect == "raised":
        return lines + f"{w.grad()}\n"
    return lines + w.compare(f"{w.grad()}[{w.position}]", f"plain[{w.position}]")


def _random(w: Words) -> str:
    call = f"run({', '.join(w.names)})"
    return f"{w.run()}torch.manual_seed(1)\nfirst = {call}\ntorch.manual_seed(2)\n" + w.compare(call, "first")


def _new_memory(w: Words) -> str:
    lines = "# Fills new memory with NaN.\ntorch.use_deterministic_algorithms(True, warn_only=True)\n"
    made, wrong = w.results()
    return lines + made + ("" if w.shown.aspect == "raised" else w.same(f"{wrong}.isnan().any().item()", "False"))


def _memory(w: Words) -> str:
    if w.shown.aspect == "raised":
        return w.results()[0]
    names = [f"grad_{x}" for x in w.tracked]
    watched = [*w.names, *w.shown.outputs, *(g.name for g in w.cotangents if g), *names]
    return (
        "gc.disable()\n"
        + w.helpers()
        + w.forward()
        + f"{assigned(names)} = {w.grad()}\n"
        + f"alive = {{name: weakref.ref(globals()[name]) for name in {watched}}}\n"
        + f"del {', '.join(watched)}\n"
        + w.same("[name for name, tensor in alive.items() if tensor() is not None]", "[]")
    )


def _precise(w: Words) -> str:
    """The wrong result, rounded to single precision."""
    lines, wrong = w.results()
    if w.shown.aspect == "raised":
        return lines
    lines += f"single = {wrong}.to(torch.complex64 if {wrong}.is_complex() else torch.float32)\n"
    return lines + w.same(f"torch.equal({wrong}, single.to({wrong}.dtype))", "False")


_LAID = """\
def laid(outputs):
    return [(*t.shape, t.dtype, *(step for step, side in zip(t.stride(), t.shape) if side > 1)) for t in outputs]


"""


def _faked(w: Words) -> str:
    """What an operator says of tensors without values, and what comes of tensors with them."""
    lines = textwrap.indent(f"{w.forward()}return {listed(w.shown.outputs)}\n", "    ")
    return (
        f"{_LAID}def run({', '.join(w.names)}):\n{lines}\n\n"
        + "with FakeTensorMode() as mode:\n"
        + f"    said = run(*map(mode.from_tensor, {listed(w.names)}))\n"
        + w.same("laid(said)", f"laid(run({', '.join(w.names)}))")
    )


TRANSFORMS: dict[str, Callable[[Words], str]] = {
    "VJP-FD": _slope,
    "VJP-FD/kinks": _slope_at_kink,
    "FWD-DTYPE/precision": _precise,
    "VJP-FIT/precision": _precise,
    "DBL-CORRECT": _second,
    "DBL-ONCE": _once,
    "JVP-REF": _tangent,
    "JVP-ADJOINT": _adjoint,
    "BATCH-VMAP": _vmap,
    "BATCH-VMAP/cotangents": _batched_cotangents,
    "ENV-COMPILE": _compiled,
    "ENV-DEVICE/fake": _faked,
    "ENV-AUTOCAST": _autocast,
    "ENV-SAVED-HOOKS": _saved_hooks,
    "ENV-SAVED-HOOKS/checkpoint": _checkpoint,
    "ENV-RANDOM": _random,
    "MEM-WRITTEN": _new_memory,
    "MEM-FREE": _memory,
}
