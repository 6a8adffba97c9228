"""What shows on torch that a property does not hold: for each property the lines of a script behind the call's tensors.

The last line of each ends the script with status 1 while the finding is there. Where the finding is an exception, the
script raises it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograd_conformance.implementations.scripting import Named, NoScript, Shown
from autograd_conformance.implementations.torch.demonstrations_of_relations import RELATIONS
from autograd_conformance.implementations.torch.demonstrations_of_transforms import TRANSFORMS
from autograd_conformance.implementations.torch.words import CONTIGUOUS, Words, assigned, listed, several, squared

# Why some properties have no script.
_NONE = {
    "ENV-THREADS": "it takes several threads at once, which a script meets by chance only",
    "ENV-SETTINGS": "it compares settings of the process before and after, which the finding names",
    "FWD-VALUE/averages": "it takes the average of many calls",
    "VJP-REF/averages": "it takes the average of many calls",
    "DBL-CORRECT/averages": "it takes the average of many calls",
    "VJP-CHAIN/instances": "it takes several calls in one graph",
}
_EARLIER = "it takes earlier calls, or chance: a script makes this one call alone"


def demonstrate(test: str, shown: Shown) -> str:
    """The lines that show the finding of a test. Raises NoScript where nothing is known to show it."""
    property_id = test.split("/")[0]
    if test in _NONE or property_id in _NONE:
        raise NoScript(_NONE.get(test) or _NONE[property_id])
    if not shown.aspect:
        raise NoScript("the finding does not say as data what is wrong")
    write = _DEMONSTRATIONS.get(test) or _DEMONSTRATIONS.get(property_id)
    if write is None:
        raise NoScript(f"scripts are not written for {test}")
    try:
        return write(Words(shown))
    except KeyError as missing:
        raise NoScript(f"the call failed before its test had chosen {missing}") from None


def _plain(w: Words) -> str:
    if w.shown.aspect == "equality":
        return _described(w)
    if not w.shown.literal and w.shown.aspect == "value":
        # What is right is the plain call in the most precise dtype.
        plain = ", ".join(_plainly(w, tensor) for tensor in w.shown.tensors)
        unlike = w.shown.reference or (w.partial and w.shown.kind == "gradient")
        other = w.run(name="plain", apply=w.shown.reference, full=True) if unlike else ""
        return w.run() + other + w.compare(f"run({', '.join(w.names)})", f"{'plain' if other else 'run'}({plain})")
    lines, wrong = w.results()
    return lines + w.compare(wrong)


def _plainly(w: Words, tensor: Named) -> str:
    if tensor.dtype not in _WIDE:
        return tensor.name
    dtype = _WIDE[tensor.dtype] if w.shown.wide in _WIDE.values() else tensor.dtype
    leaf = ".requires_grad_()" * (w.shown.kind == "gradient" and tensor.name in w.differentiable)
    return f"{tensor.name}.detach().{CONTIGUOUS}.to(torch.{dtype}){leaf}"


_WIDE = dict.fromkeys(("float64", "float32", "float16", "bfloat16"), "float64") | {
    "complex128": "complex128",
    "complex64": "complex128",
}


def _against_contiguous(w: Words) -> str:
    expected = f"run({w.renewed(f't.detach().{CONTIGUOUS}')})"
    return w.run() + w.compare(f"run({', '.join(w.names)})", expected)


def _mask_of_outputs(w: Words) -> str:
    run = w.run()
    lines = f"as_called = run({', '.join(w.names)})\n"
    which = w.shown.choices["inputs that require grad"]
    if which == "all, under no_grad":
        lines += f"with torch.no_grad():\n    otherwise = run({', '.join(w.names)})\n"
    else:
        flag = which == "all"
        lines += "".join(f"{name}.requires_grad_({flag})\n" for name in w.differentiable)
        lines += f"otherwise = run({', '.join(w.names)})\n"
    return run + lines + w.compare("otherwise", "as_called")


def _mask_of_gradients(w: Words) -> str:
    place = w.differentiable.index(w.names[w.shown.number])
    forward, inputs = w.forward(), f"[t for t in {listed(w.names)} if t.requires_grad]"
    option = "materialize_grads=True" if w.shown.own else "allow_unused=True"
    given = ", ".join([several(w.ends), inputs, several(g.name for g in w.cotangents if g), option])
    run = f"{w.helpers()}def run():\n    {forward}    return {w.grad_function}({given})\n\n\n"
    if w.shown.aspect == "presence":
        return run + w.compare(f"run()[{w.position}]")
    lines = f"partly = run()[{w.position}]\n"
    lines += "".join(f"{name}.requires_grad_()\n" for name in w.differentiable)
    return run + lines + w.compare("partly", f"run()[{place}]")


def _pure(w: Words) -> str:
    if w.shown.inplace:
        changed = [w.shown.slots.index(slot) for slot in w.shown.inplace]
        names = [f"changed_{n}" for n in changed]
        lines = "".join(f"{name} = {w.names[n]}.detach().clone()\n" for name, n in zip(names, changed, strict=True))
        given = list(w.names)
        for name, n in zip(names, changed, strict=True):
            given[n] = name
        call = ", ".join(w.shown.arguments).format(*given)
        lines += f"versions = [t._version for t in {listed(names)}]\n"
        lines += f"outputs = {w.shown.apply}({call})\n" + (
            "outputs = outputs if isinstance(outputs, tuple) else (outputs,)\n"
        )
        got = f"[(t._version > v, any(y is t for y in outputs)) for t, v in zip({listed(names)}, versions)]"
        return lines + w.same(got, repr([(True, True)] * len(names)))
    try:
        calls = w.results()[0]
    except NoScript:
        calls = w.forward()
    if w.shown.aspect == "raised":
        return calls
    return (
        f"tensors = {listed(w.names)}\n"
        "before = [(t.clone(), t._version, t.stride()) for t in tensors]\n"
        f"{calls}"
        "same = [torch.equal(t, v) and (t._version, t.stride()) == (n, s) for t, (v, n, s) in zip(tensors, before)]\n"
    ) + w.same("[name for name, fine in zip(" + repr(w.names) + ", same) if not fine]", "[]")


def _grad_flags(w: Words) -> str:
    outputs = listed(w.shown.outputs)
    expected = [d and bool(w.tracked) for d in w.shown.differentiable]
    lines = w.forward() + f"flags = [y.requires_grad for y in {outputs}]\n"
    lines += f"nodes = {{y.grad_fn for y in {outputs} if y.requires_grad}}\n"
    lines += "with torch.no_grad():\n    " + w.forward()
    return lines + w.same(
        f"(flags, len(nodes) < 2, [y.requires_grad for y in {outputs}])",
        repr((expected, True, [False] * len(expected))),
    )


def _described_outputs(w: Words) -> str:
    return _described(w, gradients=())


def _described(w: Words, gradients: Sequence[Named] | None = None) -> str:
    """Shape, dtype and device of the outputs, and of these or all gradients."""
    gradients = [w.shown.tensors[n] for n in w.shown.tracked] if gradients is None else gradients
    outputs = [(d.shape, d.dtype, d.device) for d in w.shown.described]
    lines, names = w.forward(), list(w.shown.outputs)
    if gradients:
        made = [f"grad_{t.name}" for t in gradients]
        lines += f"{assigned(made)} = {w.grad()}\n"
        names += made
        outputs += [(t.values.shape, t.dtype, w.shown.device) for t in gradients]
    expected = ", ".join(f'({shape}, torch.{dtype}, "{device}")' for shape, dtype, device in outputs)
    return lines + w.same(f"[(tuple(t.shape), t.dtype, t.device.type) for t in {listed(names)}]", f"[{expected}]")


def _observed(w: Words, before: str, after: str, got: str, expected: str) -> str:
    """What a subclass sees when its backward runs."""
    if not w.shown.apply.endswith(".apply"):
        raise NoScript("the Function is a callable, into which a script cannot look")
    function = w.shown.apply.removesuffix(".apply")
    lines = [f"class Observed({function}):", "    @staticmethod", "    def backward(ctx, *cotangents):"]
    lines += [f"        seen.append({before})"] if before else []
    lines += [f"        gradients = {function}.backward(ctx, *cotangents)"]
    lines += [f"        seen.append({after})"] if after else []
    lines += ["        return gradients"]
    text = "seen = []\n\n\n" + "\n".join(lines) + "\n\n\n"
    return text + w.forward(apply="Observed.apply") + w.grad() + "\n" + w.same(got, expected)


_AS_TUPLE = "gradients if isinstance(gradients, tuple) else (gradients,)"


def _needs(w: Words) -> str:
    expected = [False] * len(w.shown.arguments)
    for slot, tensor in zip(w.shown.slots, w.shown.tensors, strict=True):
        expected[slot] = tensor.track
    # As text, which distinguishes a list from a tuple and 1 from True.
    return _observed(w, "ctx.needs_input_grad", "", "repr(seen[0])", repr(repr(tuple(expected))))


def _none(w: Words) -> str:
    if w.shown.choices.get("gradients") == "as backward returned them":
        numbers = list(w.shown.undifferentiable)
        got = f"[n for n in {numbers} if n < len(seen[0]) and seen[0][n] is not None]"
        return _observed(w, "", _AS_TUPLE, got, "[]")
    lines = w.helpers() + w.forward()
    inputs = w.tracked
    found = w.grad(inputs) if w.shown.own or len(inputs) > 1 else w.grad(inputs, None, None, "allow_unused=True")
    found = found.replace("materialize_grads", "allow_unused")
    return lines + w.same(f"[g is not None for g in {found}]", repr([True] * len(inputs)))


def _nondiff(w: Words) -> str:
    marked = [n for n, d in enumerate(w.shown.differentiable) if not d]
    got = f"[g is not None and bool((g != 0).any()) for g in (seen[0][n] for n in {marked})]"
    if w.shown.aspect != "zero":
        got, expected = f"[seen[0][n] is None for n in {marked}]", repr([not w.shown.materialize] * len(marked))
        return _observed(w, "cotangents", "", got, expected)
    return _observed(w, "cotangents", "", got, repr([False] * len(marked)))


def _nondiff_flags(w: Words) -> str:
    marked = [y for y, d in zip(w.shown.outputs, w.shown.differentiable, strict=True) if not d]
    return w.forward() + w.same(f"[y.requires_grad for y in {listed(marked)}]", repr([False] * len(marked)))


def _fit(w: Words) -> str:
    slots = [w.shown.slots[n] for n in w.shown.tracked]
    tensors = [w.shown.tensors[n] for n in w.shown.tracked]
    expected = ", ".join(f"({t.values.shape}, torch.{t.dtype})" for t in tensors)
    if not w.shown.apply.endswith(".apply") or w.shown.own:
        # A missing gradient would become zeros.
        gradients = w.grad().replace("materialize_grads", "allow_unused")
        found = f"[g if g is None else (tuple(g.shape), g.dtype) for g in {gradients}]"
        return w.helpers() + w.forward() + w.same(found, f"[{expected}]")
    got = f"[(tuple(seen[0][n].shape), seen[0][n].dtype) for n in {slots}]"
    return _observed(w, "", _AS_TUPLE, got, f"[{expected}]")


def _subset(w: Words) -> str:
    wanted = [name for name, asked in zip(w.names, w.shown.choices["gradients asked for"], strict=True) if asked]
    place = wanted.index(w.names[w.shown.number]) if w.names[w.shown.number] in wanted else 0
    lines = w.forward() + f"some = {w.grad(wanted, None, None, 'retain_graph=True')}\nfull = {w.grad()}\n"
    return w.helpers() + lines + w.compare(f"some[{place}]", f"full[{w.position}]")


def _cotangent_layout(w: Words) -> str:
    if w.shown.choices.get("after the Function") == "sum()":
        kept = [y for y, d in zip(w.shown.outputs, w.shown.differentiable, strict=True) if d]
        sums = [f"{y}.sum()" for y in kept]
        ends, ones = ([f"torch.ones_like({y})" for y in each] for each in (sums, kept))
        lines = w.helpers() + w.forward() + f"summed = {w.grad(None, sums, ends, 'retain_graph=True')}\n"
        if w.shown.aspect == "raised":
            return lines
        return lines + w.compare(f"summed[{w.position}]", f"{w.grad(None, kept, ones)}[{w.position}]")
    names = [g.name for g in w.cotangents if g]
    dense = [f"{name}.{CONTIGUOUS}" for name in names]
    return w.run(names) + w.compare(f"run({', '.join(names)})", f"run({', '.join(dense)})")


def _unused(w: Words) -> str:
    if w.shown.aspect == "equality":
        rows = enumerate(zip(w.shown.differentiable, w.shown.cotangents, strict=True))
        unused = [n for n, (differentiable, g) in rows if differentiable and not g]
        expected = repr([not w.shown.materialize] * len(unused))
        return _observed(w, "cotangents", "", f"[seen[0][n] is None for n in {unused}]", expected)
    kept = [y for y, d in zip(w.shown.outputs, w.shown.differentiable, strict=True) if d]
    zeros = w.grad(None, kept, w.full(), "retain_graph=True")
    lines = w.helpers() + w.forward()
    if w.shown.aspect == "raised":
        return f"{lines}{w.grad()}\n"
    lines += f"zeros = {zeros}\nunused = {w.grad()}\n"
    return lines + w.compare(f"unused[{w.position}]", f"zeros[{w.position}]")


_SEVERED = """\
class Severed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, cotangent):
        return None


"""


def _severed(w: Words) -> str:
    kept = [y for y, d in zip(w.shown.outputs, w.shown.differentiable, strict=True) if d]
    cut = [f"Severed.apply({y})" for y in kept]
    ones = [f"torch.ones_like({y})" for y in kept]
    inputs = w.tracked
    options = () if w.shown.own or len(inputs) > 1 else ("allow_unused=True",)
    found = w.grad(inputs, cut, ones, *options)
    return _SEVERED + w.helpers() + w.forward() + w.compare(f"{found}[{w.position}]")


def _linear(w: Words) -> str:
    first = [g.name for g in w.cotangents if g]
    if w.shown.aspect == "zero":
        return w.run(first) + w.compare(f"run({', '.join(f'0 * {g}' for g in first)})")
    second = w.shown.more["other cotangents"]()
    both = [f"2 * {g} + {h}" for g, h in zip(first, second, strict=True)]
    if w.shown.aspect == "raised":
        return w.run(first) + w.compare(f"run({', '.join(both)})")
    end = w.number_of
    lines = f"total = 2 * run({', '.join(first)}){end} + run({', '.join(second)}){end}\n"
    return w.run(first) + lines + w.compare(f"run({', '.join(both)})", "total")


def _pure_backward(w: Words) -> str:
    if w.shown.aspect == "raised":
        return w.helpers() + w.forward() + w.grad() + "\n"
    kept = [*w.names, *w.shown.outputs, *(g.name for g in w.cotangents if g)]
    lines = w.helpers() + w.forward() + f"kept = {listed(kept)}\n"
    lines += "before = [(t.detach().clone(), t._version) for t in kept]\n"
    lines += f"gradients = {w.grad()}\n"
    lines += "same = [torch.equal(t, v) and t._version == n for t, (v, n) in zip(kept, before)]\n"
    changed = f"[name for name, fine in zip({kept}, same) if not fine]"
    held = f"[t.untyped_storage().data_ptr() for t in {listed([*w.names, *w.shown.outputs])} if t.numel()]"
    lines += f"held = {held}\n"
    shared = "[g.untyped_storage().data_ptr() in held for g in gradients if g is not None]"
    return lines + f"changed = {changed}\n" + w.same(f"(changed, any({shared}))", "([], False)")


def _pure_leaves(w: Words) -> str:
    names = [g.name for g in w.cotangents if g]
    lines = w.forward() + f"torch.autograd.backward({several(w.ends)}, {several(names)})\n"
    grads = listed(f"{x}.grad" for x in w.tracked)
    lines += f"held = [t.untyped_storage().data_ptr() for t in (*{grads}, *{listed(w.names)}) if t is not None]\n"
    return lines + w.same("len(held) - len(set(held))", "0")


def _pure_owned(w: Words) -> str:
    others = w.shown.more["other cotangents"]()
    place = f"[{w.position}]"
    first = w.grad(None, None, None, "retain_graph=True")
    lines = w.forward() + f"first = {first}{place}\nkept = first.clone()\n"
    lines += f"{w.grad(None, None, others, 'retain_graph=True')}\n"
    if w.shown.choices.get("gradients") != "of the first backward, after a second":
        lines += f"after_another = first.clone()\nfirst.fill_(7)\nagain = {w.grad()}{place}\n"
        return lines + w.compare("again", "kept")
    return lines + w.compare("first", "kept")


def _repeat(w: Words) -> str:
    if w.shown.choices.get("repeated") != "backward" or w.shown.backward_only:
        raise NoScript(_EARLIER)
    place = f"[{w.position}]"
    first = w.grad(None, None, None, "retain_graph=True")
    return w.forward() + f"first = {first}{place}.clone()\n" + w.compare(f"{w.grad()}{place}", "first")


# How a tensor is overwritten with its own values; see `harness.testing.observe`.
_OVERWRITING = {"its negative": "neg_()", "its reverse": "copy_({tensor}.flatten().flip(0).reshape({tensor}.shape))"}


def _inplace_safe(w: Words) -> str:
    changed = w.shown.choices["changed in place before backward"]
    victim, words = w.shown.more["names"]()[changed], w.shown.choices["changed to"]
    change = _OVERWRITING.get(words, "fill_({words})").format(tensor=victim, words=words)
    lines = w.helpers() + w.forward() + f"with torch.no_grad():\n    {victim}.{change}\n"
    lines += f"try:\n    gradients = {w.grad()}\n"
    lines += 'except RuntimeError as refused:\n    print("refused, as it should be:", refused)\n    sys.exit(0)\n'
    return lines + w.compare(f"gradients[{w.position}]")


# How a tensor is handed on without change of value; see `strategies.compositions.BEFORE`.
_BEFORE: dict[str, Callable[[str, int], str]] = {
    "unchanged": lambda x, _: x,
    "scaled": lambda x, _: f"({x} * 2) * 0.5",
    "halves added": lambda x, _: f"{x} * 0.5 + {x} * 0.5",
    "flattened": lambda x, rank: f"{x}.reshape(-1).reshape({x}.shape)" if rank else f"{x} * 1",
    "transposed": lambda x, rank: f"{x}.permute{_turned(rank)}.permute{_turned(rank)}",
    "copied": lambda x, _: f"{x}.clone()",
}


def _turned(rank: int) -> str:
    return str(tuple(range(rank))[::-1])


# What follows on an output; see `strategies.compositions.AFTER`.
_AFTER = {
    "sum": "{y}.sum()",
    "square": "{y} * {y}",
    "custom square": "Squared.apply({y})",
    "scaled": "{y} * -1.5",
    "transposed": "{y}.permute(*range({y}.ndim)[::-1])",
    "negated and added": "{y} + (-{y}) * 0.5",
    "broadcast": "torch.broadcast_to({y}, (3, *{y}.shape))",
}


def _before(w: Words, relation: str, n: int) -> str:
    return _BEFORE[relation](w.names[n], w.shown.tensors[n].values.ndim)


def _chain(w: Words) -> str:
    before, after = w.shown.choices["before"], w.shown.choices["after"]
    given = [_before(w, before, n) if n in w.shown.tracked else name for n, name in enumerate(w.names)]
    kept = [y for y, d in zip(w.shown.outputs, w.shown.differentiable, strict=True) if d]
    lines = squared(w.shown.separate) if "custom square" in after else ""
    lines += w.helpers() + w.forward(given)
    for each in after:
        lines += "".join(f"{y} = {_AFTER[each].format(y=y)}\n" for y in kept)
    gradients = w.grad(None, kept, [f"torch.ones_like({y})" for y in kept])
    return lines + w.compare(f"{gradients}[{w.position}]")


def _same_tensor(w: Words) -> str:
    first, second = w.shown.choices["tensors given the same tensor"]
    given = list(w.names)
    given[second] = _before(w, w.shown.choices["how the second comes from the first"], first)
    inputs = [name for n, name in enumerate(w.names) if n in w.shown.tracked and n != second]
    place = inputs.index(w.names[w.shown.number]) if w.names[w.shown.number] in inputs else 0
    return w.helpers() + w.forward(given) + w.compare(f"{w.grad(inputs)}[{place}]")


def _accumulate(w: Words) -> str:
    held = w.shown.choices["leaves that hold a gradient before"]
    name = w.names[w.shown.number]
    lines = w.forward() + f"plain = {w.grad()}[{w.position}]\n"
    lines += "".join(f"{x}.grad = torch.full_like({x}, 1.5)\n" for x, h in zip(w.names, held, strict=True) if h)
    lines += w.forward() + f"torch.autograd.backward({several(w.ends)}, {several(g.name for g in w.cotangents if g)})\n"
    # A sparse tensor can only be added to a dense one.
    total = f"torch.full_like({name}, 1.5) + plain" if held[w.shown.number] else "plain"
    return lines + w.compare(f"{name}.grad", f"({total})")


_DEMONSTRATIONS: dict[str, Callable[[Words], str]] = {
    "FWD-VALUE": _plain,
    "FWD-MASK": _mask_of_outputs,
    "FWD-LAYOUT": _against_contiguous,
    "FWD-EMPTY": _plain,
    "FWD-PURE": _pure,
    "FWD-GRADFLAG": _grad_flags,
    "FWD-DTYPE": _described_outputs,
    "VJP-REF": _plain,
    "VJP-NEEDS": _needs,
    "VJP-NONE": _none,
    "VJP-MASK": _mask_of_gradients,
    "VJP-SUBSET": _subset,
    "VJP-COTANGENT-LAYOUT": _cotangent_layout,
    "VJP-UNUSED": _unused,
    "VJP-UNUSED/severed": _severed,
    "VJP-NONDIFF": _nondiff,
    "VJP-NONDIFF/flags": _nondiff_flags,
    "VJP-LINEAR": _linear,
    "VJP-FIT": _fit,
    "VJP-PURE": _pure_backward,
    "VJP-PURE/leaves": _pure_leaves,
    "VJP-PURE/owned": _pure_owned,
    "VJP-REPEAT": _repeat,
    "VJP-ACCUMULATE": _accumulate,
    "VJP-SAME-TENSOR": _same_tensor,
    "VJP-INPLACE-SAFE": _inplace_safe,
    "VJP-CHAIN": _chain,
    "VJP-FINITE": _plain,
    "ENV-DEVICE": _plain,
    **TRANSFORMS,
    **RELATIONS,
}
