"""How to show on torch that a property does not hold: for each a few lines over the tools of torch_script.

The lines have ``call``, ``vjp``, ``same``, ``check``, ``check_outputs`` and ``check_gradients``, and the call's
``tensors``, ``slots``, ``mask``, ``cotangents``, ``expected_outputs``, ``expected_gradients`` and ``differentiable``.
"""

from __future__ import annotations

_WIDE = """\
wide = [t.to(torch.complex128 if t.is_complex() else torch.float64) if t.is_floating_point() or t.is_complex() else t
        for t in tensors]
random = np.random.default_rng(0)
along = [torch.tensor(random.standard_normal(t.shape)).to(t) if m else torch.zeros_like(t) for t, m in zip(wide, mask)]
step = 1e-6
ahead, behind = ([t + s * u if m else t for t, u, m in zip(wide, along, mask)] for s in (step, -step))
"""

_TANGENTS = f"""{_WIDE}
with torch.autograd.forward_ad.dual_level():
    duals = [torch.autograd.forward_ad.make_dual(t, u) if m else t for t, u, m in zip(wide, along, mask)]
    unpacked = [torch.autograd.forward_ad.unpack_dual(y) for y in call(*duals)]
for n, (dual, y1, y0) in enumerate(zip(unpacked, call(*ahead), call(*behind))):
    if dual.tangent is not None:
        difference = (y1 - y0) / (2 * step)
        size = np.max(np.abs(numbers(difference)), initial=0)
        check(f"tangent of output {{n}}", dual.tangent, difference, 1e-5 * (1 + size))
"""

_SECOND = f"""{_WIDE}
weights = [torch.tensor(random.standard_normal(t.shape)).to(t) for t in wide]
turns = [None if g is None else torch.tensor(random.standard_normal(g.shape)).to(g) for g in cotangents]


def paired(gradients, others):
    terms = [(g * w.conj()).real.sum() for g, w in zip(gradients, others) if g is not None]
    return sum(terms) if terms else torch.zeros(())


def turned(step):
    return [None if g is None else g + step * u for g, u in zip(cotangents, turns)]


leaves = [t.detach().requires_grad_(m) for t, m in zip(wide, mask)]
free = [None if g is None else g.detach().requires_grad_() for g in cotangents]
h = paired(vjp(tensors=leaves, cotangents=free, create_graph=True)[1], weights)
pairs = [(x, u) for x, u in zip([*leaves, *free], [*along, *turns]) if x is not None and x.requires_grad]
variables, directions = zip(*pairs)
second = torch.autograd.grad(h, variables, allow_unused=True) if h.requires_grad else []
y1, y0 = (paired(vjp(tensors=xs, cotangents=turned(s))[1], weights) for xs, s in ((ahead, step), (behind, -step)))
difference = (y1 - y0) / (2 * step)
check("slope of the gradients", paired(second, directions), difference, 1e-5 * (1 + abs(float(difference))))
"""

_VALUES = """\
outputs, gradients = vjp()
check_outputs(outputs)
if any(g is not None for g in cotangents):
    check_gradients(gradients)
"""
_PLAIN = "plain = vjp()[1]\n"
# Two backward passes through one call.
_PLAIN_TWICE = "plain = vjp(times=2)[1]\n"

DEMONSTRATIONS = {
    "": _VALUES,
    "FWD-VALUE": "check_outputs(call(*tensors))\n",
    "FWD-MASK": """\
plain = call(*tensors)
tracked = vjp(mask=[x.is_floating_point() or x.is_complex() for x in tensors])[0]
with torch.no_grad():
    unrecorded = call(*tensors)
for n, y in enumerate(plain):
    check(f"output {n}, all tensors requiring grad", tracked[n], y)
    check(f"output {n}, under no_grad", unrecorded[n], y)
    same(f"signs of output {n}", np.signbit(numbers(tracked[n]).real).tolist(), np.signbit(numbers(y).real).tolist())
""",
    "FWD-LAYOUT": """\
outputs, gradients = vjp()
others, plain = vjp(tensors=[t.contiguous() for t in tensors])
for n, (got, expected) in enumerate(zip(outputs, others)):
    check(f"output {n}, against contiguous inputs", got, expected, expected_outputs[n][1])
check_gradients(gradients, plain, ", against contiguous inputs")
""",
    "FWD-PURE": """\
before = [(t.clone(), t._version) for t in tensors]
vjp()
for n, (t, (values, version)) in enumerate(zip(tensors, before)):
    check(f"argument {slots[n]} after the call", t, values)
    same(f"version of argument {slots[n]}", t._version, version)
for slot in inplace:
    changed = arguments[slot].clone()
    version = changed._version
    Function.apply(*(changed if n == slot else a for n, a in enumerate(arguments)))
    same("the version of the argument that is changed in place was raised", changed._version > version, True)
""",
    "FWD-GRADFLAG": """\
outputs = vjp()[0]
same("requires_grad of the outputs", [y.requires_grad for y in outputs], [d and any(mask) for d in differentiable])
leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
with torch.no_grad():
    same("requires_grad under no_grad", [y.requires_grad for y in call(*leaves)], [False] * len(outputs))
same("one node for all outputs", len({id(y.grad_fn) for y in outputs if y.requires_grad}) < 2, True)
""",
    "FWD-DTYPE": """\
for n, y in enumerate(vjp()[0]):
    same(f"shape of output {n}", tuple(y.shape), np.shape(expected_outputs[n][0]))
    same(f"dtype of output {n}", str(y.dtype), f"torch.{output_dtypes[n]}")
""",
    "VJP-FD": f"""\
{_WIDE}

def total(outputs):
    terms = [(y * g.to(y).conj()).real.sum() for y, g in zip(outputs, cotangents) if g is not None]
    return float(sum(terms).detach())


gradients = vjp(tensors=wide)[1]
slope = sum(float((g.conj() * u).real.sum()) for g, u in zip(gradients, along) if g is not None)
difference = (total(call(*ahead)) - total(call(*behind))) / (2 * step)
check("slope along a random direction", slope, difference, 1e-5 * (1 + abs(difference)))
""",
    "VJP-NEEDS": """\
seen = []
backward = Function.backward


def observing(ctx, *cotangents):
    seen.append(ctx.needs_input_grad)
    return backward(ctx, *cotangents)


Function.backward = staticmethod(observing)
vjp()
needs = [False] * len(seen[0])
for slot, m in zip(slots, mask):
    needs[slot] = m
same("ctx.needs_input_grad in backward", seen[0], tuple(needs))
""",
    "VJP-NONE": "gradients = vjp()[1]\n"
    'same("which tensors get a gradient", [g is not None for g in gradients], list(mask))\n',
    "VJP-MASK": "gradients = vjp()[1]\n"
    "full = vjp(mask=[x.is_floating_point() or x.is_complex() for x in tensors])[1]\n"
    'check_gradients(gradients, [g if m else None for g, m in zip(full, mask)], ", against all requiring grad")\n',
    "VJP-SUBSET": f"""\
{_PLAIN}for n in range(len(tensors)):
    pick = [m and k == n for k, m in enumerate(mask)]
    expected = [g if p else None for g, p in zip(plain, pick)]
    check_gradients(vjp(pick=pick)[1], expected, f", asking for tensor {{n}} only")
""",
    "VJP-COTANGENT-LAYOUT": """\
plain = vjp(cotangents=[None if g is None else g.contiguous() for g in cotangents])[1]
check_gradients(vjp(times=2)[1], plain, ", against contiguous cotangents")
outputs = vjp()[0]
kept = [n for n, d in enumerate(differentiable) if d]
ones = [torch.ones_like(y) if d else None for y, d in zip(outputs, differentiable)]
single = [ones[n].new_ones(()) for n in kept]
summed = vjp(lambda *t: [call(*t)[n].sum() for n in kept], cotangents=single)[1]
check_gradients(summed, vjp(cotangents=ones)[1], " of the sum of the outputs")
""",
    "VJP-UNUSED": """\
outputs, gradients = vjp(times=2)
zeros = [torch.zeros_like(y) if d and g is None else g for y, g, d in zip(outputs, cotangents, differentiable)]
check_gradients(gradients, vjp(cotangents=zeros)[1], ", against zero cotangents for unused outputs")


class Severed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return None


kept = [n for n, d in enumerate(differentiable) if d]
ones = [torch.ones_like(outputs[n]) for n in kept]
cut = vjp(lambda *t: [Severed.apply(call(*t)[n]) for n in kept], cotangents=ones)[1]
for n, g in enumerate(cut):
    check(f"gradient of argument {slots[n]} behind an undefined cotangent", 0.0 if g is None else g.abs().sum(), 0.0)
""",
    "VJP-NONDIFF": """\
flags = [y.requires_grad for y in vjp()[0]]
same("requires_grad of the outputs", flags, [d and any(mask) for d in differentiable])
""",
    "VJP-LINEAR": f"""\
{_PLAIN_TWICE}twice = vjp(cotangents=[None if g is None else 2 * g for g in cotangents])[1]
check_gradients(twice, [None if g is None else 2 * g for g in plain], " for twice the cotangent")
zero = vjp(cotangents=[None if g is None else 0 * g for g in cotangents])[1]
for n, g in enumerate(zero):
    check(f"gradient of argument {{slots[n]}} for a zero cotangent", 0.0 if g is None else g.abs().sum(), 0.0)
""",
    "VJP-FIT": """\
backward, seen = Function.backward, []


def observing(ctx, *cotangents):
    gradients = backward(ctx, *cotangents)
    seen.extend(gradients if isinstance(gradients, tuple) else (gradients,))
    return gradients


Function.backward = staticmethod(observing)
vjp()
for n, (slot, m) in enumerate(zip(slots, mask)):
    if m and seen[slot] is not None:
        got, x = seen[slot], tensors[n]
        same(f"gradient of argument {slot}, as backward returned it",
             (tuple(got.shape), got.dtype), (tuple(x.shape), x.dtype))
""",
    "VJP-PURE": """\
kept = [*tensors, *(g for g in cotangents if g is not None)]
before = [(t.clone(), t._version) for t in kept]
leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
outputs, gradients = vjp(tensors=leaves)
for n, (t, (values, version)) in enumerate(zip(kept, before)):
    check(f"tensor {n} after backward", t, values)
    same(f"version of tensor {n}", t._version, version)
pointer = lambda t: t.untyped_storage().data_ptr() if t.numel() else None  # noqa: E731
mine = [pointer(g) for g in gradients if g is not None and g.numel()]
same("gradients that share memory with each other", len(mine) - len(set(mine)), 0)
held = {pointer(t) for t in (*tensors, *outputs)}
same("gradients that share memory with an input or an output", sum(p in held for p in mine), 0)
""",
    "VJP-PURE/leaves": """\
pointer = lambda t: t.untyped_storage().data_ptr() if t.numel() else None  # noqa: E731
leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
ends = [(y, g) for y, g in zip(call(*leaves), cotangents) if g is not None and y.requires_grad]
torch.autograd.backward(*map(list, zip(*ends)))
left = [pointer(x.grad) for x in leaves if x.grad is not None and x.grad.numel()]
same("leaves whose .grad share memory", len(left) - len(set(left)), 0)
same("leaves whose .grad shares memory with an input", sum(p in [pointer(t) for t in tensors] for p in left), 0)
""",
    "VJP-REPEAT": f"""\
{_PLAIN}for n, (first, again) in enumerate(zip(plain, vjp()[1])):
    check(f"gradient of argument {{slots[n]}}, an identical second call", again, first)
vjp(tensors=[0.5 * t if m else t for t, m in zip(tensors, mask)])
for n, (first, again) in enumerate(zip(plain, vjp()[1])):
    check(f"gradient of argument {{slots[n]}}, after another call", again, first)
leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
ends = [(y, g) for y, g in zip(call(*leaves), cotangents) if g is not None and y.requires_grad]
for attempt in ("first", "second"):
    ys, gs = zip(*ends)
    inputs = [x for x in leaves if x.requires_grad]
    found = iter(torch.autograd.grad(ys, inputs, gs, retain_graph=True, allow_unused=True))
    for n, (m, first) in enumerate(zip(mask, plain)):
        check(f"gradient of argument {{slots[n]}}, {{attempt}} backward of one call", next(found) if m else None, first)
""",
    "VJP-ACCUMULATE": f"""\
{_PLAIN}leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
for leaf, g in zip(leaves, plain):
    leaf.grad = None if g is None else torch.full_like(leaf, 1.5)
ends = [(y, g) for y, g in zip(call(*leaves), cotangents) if g is not None and y.requires_grad]
torch.autograd.backward(*map(list, zip(*ends)))
expected = [None if g is None else g + 1.5 for g in plain]
for n, (leaf, total) in enumerate(zip(leaves, expected)):
    check(f".grad of argument {{slots[n]}}", leaf.grad, total, 0 if total is None else 1e-2 * numbers(total.abs()))
""",
    "VJP-SAME-TENSOR": """\
for a in range(len(tensors)):
    for b in range(a + 1, len(tensors)):
        if tensors[a].shape == tensors[b].shape and tensors[a].dtype == tensors[b].dtype and mask[a] and mask[b]:
            twins = [tensors[a] if n == b else t for n, t in enumerate(tensors)]
            apart = vjp(tensors=twins)[1]
            together = vjp(lambda *t: call(*(t[a] if n == b else x for n, x in enumerate(t))), tensors=twins)[1]
            if apart[a] is None or apart[b] is None:
                continue
            total = apart[a] + apart[b]
            check(f"gradient of the tensor given for {slots[a]} and {slots[b]}", together[a], total,
                  1e-2 * numbers(total.abs()))
""",
    "VJP-INPLACE-SAFE": """\
plain = vjp()[1]
for n in range(len(tensors) + len(expected_outputs)):
    changed = [t.clone().requires_grad_(m) for t, m in zip(tensors, mask)]
    outputs = call(*changed)
    victim = [*changed, *outputs][n]
    name = f"argument {slots[n]}" if n < len(tensors) else f"output {n - len(tensors)}"
    if not (victim.is_floating_point() or victim.is_complex()):
        continue
    ends = [(y, g) for y, g in zip(outputs, cotangents) if g is not None and y.requires_grad]
    with torch.no_grad():
        victim.fill_(7)
    ys, gs = zip(*ends)
    try:
        found = iter(torch.autograd.grad(ys, [x for x in changed if x.requires_grad], gs, allow_unused=True))
    except RuntimeError as refused:
        print(f"{name} changed in place: refused, {type(refused).__name__}")
        continue
    check_gradients([next(found) if m else None for m in mask], plain, f", {name} changed in place")
""",
    "VJP-CHAIN": """\
kept = [n for n, d in enumerate(differentiable) if d]
outputs = vjp()[0]
ones = [torch.ones_like(y) if d else None for y, d in zip(outputs, differentiable)]
plain = vjp(cotangents=ones)[1]
chained = vjp(lambda *t: [(3 * call(*(x if not m else -(-x) for x, m in zip(t, mask)))[n]).sum() for n in kept],
              cotangents=[ones[n].new_ones(()) for n in kept])[1]
check_gradients(chained, [None if g is None else 3 * g for g in plain], " of three times the sum")
""",
    "DBL-CORRECT": _SECOND,
    "DBL-ONCE": """\
leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
free = [None if g is None else g.detach().requires_grad_() for g in cotangents]
first = [g for g in vjp(tensors=leaves, cotangents=free, create_graph=True)[1] if g is not None]
try:
    torch.autograd.backward(first, [torch.ones_like(g) for g in first])
    refused = False
except RuntimeError as refusal:
    print(refusal)
    refused = True
same("the second derivative is refused", refused, True)
""",
    "JVP-REF": _TANGENTS,
    "JVP-ADJOINT": _TANGENTS,
    "BATCH-VMAP": """\
tracked = [n for n, m in enumerate(mask) if m]
half = [0.5 * t if m else t for t, m in zip(tensors, mask)]
double = [None if g is None else torch.stack([g, g]) for g in cotangents]
ways = [[axis if n == k else None for n in range(len(tensors))] for k in tracked for axis in (0, -1)]
for axes in [[0] * len(tensors), *ways]:
    pairs = [(t, h) if axis is not None else (t, t) for t, h, axis in zip(tensors, half, axes)]
    stacked = [torch.stack(pair, dim=axis) if axis is not None else pair[0] for pair, axis in zip(pairs, axes)]
    outputs, gradients = vjp(torch.func.vmap(call, in_dims=tuple(axes)), tensors=stacked, cotangents=double)
    loop = [vjp(tensors=each) for each in zip(*pairs)]
    for n in range(len(outputs)):
        expected = torch.stack([loop[0][0][n], loop[1][0][n]])
        check(f"output {n}, batched along {axes}", outputs[n], expected, 1e-2 * np.abs(numbers(expected)))
    for n, (g, axis) in enumerate(zip(gradients, axes)):
        each = [one[1][n] for one in loop]
        if g is not None and each[0] is not None:
            expected = each[0] + each[1] if axis is None else torch.stack(each, dim=axis)
            what = f"gradient of argument {slots[n]}, batched along {axes}"
            check(what, g, expected, 1e-2 * np.abs(numbers(expected)))
""",
    "BATCH-VMAP/cotangents": """\
leaves = [t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
ends = [(y, g) for y, g in zip(call(*leaves), cotangents) if g is not None and y.requires_grad]
ys, gs = zip(*ends)
inputs = [x for x in leaves if x.requires_grad]
try:
    batched = torch.autograd.grad(ys, inputs, [torch.stack([g, 2 * g]) for g in gs], is_grads_batched=True,
                                  retain_graph=True, allow_unused=True)
except RuntimeError as refused:
    print(f"refused: {refused}")
else:
    for n, (g, one) in enumerate(zip(batched, torch.autograd.grad(ys, inputs, gs, allow_unused=True))):
        expected = None if one is None else torch.stack([one, 2 * one])
        bound = 0 if one is None else 1e-2 * np.abs(numbers(expected))
        check(f"gradient {n} for a batch of cotangents", g, expected, bound)
""",
    "ENV-COMPILE": 'outputs, gradients = vjp(torch.compile(call, backend="aot_eager", dynamic=False))\n'
    "check_outputs(outputs)\ncheck_gradients(gradients)\n",
    "ENV-AUTOCAST": """\
with torch.autocast(tensors[0].device.type, dtype=torch.bfloat16):
    outputs = vjp()[0]
    gradients = vjp(cotangents=[None if g is None else g.to(y.dtype) for g, y in zip(cotangents, outputs)])[1]
for n, (y, (value, _)) in enumerate(zip(outputs, expected_outputs)):
    check(f"output {n}", y, value, 0.05 * (1 + np.max(np.abs(value), initial=0)))
for n, (g, expected) in enumerate(zip(gradients, expected_gradients)):
    if expected is not None:
        check(f"gradient of argument {slots[n]}", g, expected[0], 0.05 * (1 + np.max(np.abs(expected[0]), initial=0)))
""",
    "ENV-SAVED-HOOKS": f"""\
from torch.utils.checkpoint import checkpoint

{_PLAIN}with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
    hooked = vjp()[1]
again = vjp(lambda *t: checkpoint(call, *t, use_reentrant=False))[1]
for n, g in enumerate(plain):
    check(f"gradient of argument {{slots[n]}} under saved-tensor hooks", hooked[n], g)
    check(f"gradient of argument {{slots[n]}} under checkpointing", again[n], g)
""",
    "ENV-THREADS": f"""\
from concurrent.futures import ThreadPoolExecutor

{_PLAIN}with ThreadPoolExecutor(4) as pool:
    for attempt in pool.map(lambda _: vjp()[1], range(64)):
        if any(a is not None and not torch.equal(a, b) for a, b in zip(attempt, plain)):
            check_gradients(attempt, plain, ", several threads at once")
""",
    "ENV-DEVICE": """\
outputs, gradients = vjp()
for n, y in enumerate(outputs):
    same(f"shape, dtype and device of output {n}", (tuple(y.shape), str(y.dtype), y.device.type),
         (np.shape(expected_outputs[n][0]), f"torch.{output_dtypes[n]}", tensors[0].device.type))
for n, (g, t, m) in enumerate(zip(gradients, tensors, mask)):
    same(f"shape, dtype and device of the gradient of argument {slots[n]}",
         None if g is None else (g.shape, g.dtype, g.device.type), (t.shape, t.dtype, t.device.type) if m else None)
""",
    "MEM-FREE": """\
import gc
import weakref

gc.disable()
alive = {}


def watched():
    leaves = [t.detach().clone().requires_grad_(m) for t, m in zip(tensors, mask)]
    outputs, gradients = vjp(tensors=leaves, cotangents=[None if g is None else g.clone() for g in cotangents])
    named = {"input": leaves, "output": outputs, "gradient": gradients}
    alive.update({f"{k} {n}": weakref.ref(t) for k, ts in named.items() for n, t in enumerate(ts) if t is not None})


watched()
same("what is alive after the call", [name for name, found in alive.items() if found() is not None], [])
""",
}
