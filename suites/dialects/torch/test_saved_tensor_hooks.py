"""Hooks on saved tensors: when they run, what they get and may return, and which of them apply."""

import gc
import weakref
from contextlib import suppress
from functools import partial

import numpy as np
import torch
from hypothesis import strategies as st
from torch.autograd import graph

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._garbage import small_garbage
from autograd_conformance.suites.dialects.torch._blocks import LEAVING, Left, leave
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, starts_of

# The origins of the arguments of a call.
ORIGINS = {
    "leaf": lambda x: x.requires_grad_(),
    "computed": lambda x: x.requires_grad_() * 1,
    "fixed": lambda x: x,
    "integers": lambda x: x.long(),
}
SHAPES = ((2,), (), (0,), (1, 3))


def _saver(subject, saved, reads=1, got=None, separate=False, note=lambda ctx, tensors: None):
    """A Function: the sum of its arguments. It saves those at these positions, its output for -1, and None for None.

    ``note(ctx, tensors)`` runs where it saves them.
    """
    record = [] if got is None else got

    def keep(ctx, tensors, output):
        ctx.count = len(tensors)
        note(ctx, tensors)
        ctx.save_for_backward(*(None if i is None else [*tensors, output][i] for i in saved))

    def backward(ctx, g):
        record.extend(ctx.saved_tensors for _ in range(reads))
        return (g,) * ctx.count

    return subject.custom(
        forward=lambda *tensors: sum(tensors), setup_context=keep, backward=backward, separate=separate
    )


def _arguments(subject, data):
    """Tensors of several origins, the first of which requires grad."""
    more = st.lists(st.sampled_from(tuple(ORIGINS)), max_size=2)
    origins = subject.draw(data, more.map(lambda others: ["leaf", *others]), "arguments")
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, subject.dtypes, "dtype")
    return [ORIGINS[origin](subject.tensor(np.full(shape, 1.0 + i), dtype)) for i, origin in enumerate(origins)]


def _saved(subject, data, tensors, *others):
    positions = st.lists(st.sampled_from((*range(len(tensors)), *others)), min_size=1, max_size=4)
    return subject.draw(data, positions, "positions of what is saved, -1 for the output")


@keeps("PACK-01")
def test_hooks_run_per_saved_tensor_and_per_access(subject, data):
    """Each saved tensor is packed once, None never, and each access unpacks again."""
    tensors = _arguments(subject, data)
    saved = _saved(subject, data, tensors, -1, None)
    reads = subject.draw(data, st.integers(0, 3), "reads of ctx.saved_tensors")
    passes = subject.draw(data, st.integers(1, 2), "passes")
    separate = subject.draw(data, st.booleans(), "separate style")
    packed, unpacked, got = [], [], []

    def pack(tensor):
        packed.append(tensor.detach())
        return len(packed) - 1

    def unpack(key):
        unpacked.append(key)
        return packed[key]

    with graph.saved_tensors_hooks(pack, unpack):
        output = _saver(subject, saved, reads, got, separate)(*tensors)
    expected = [None if i is None else [*tensors, output][i] for i in saved]
    subject.assert_all_same("tensors packed", got=packed, expected=[x for x in expected if x is not None])
    [output.sum().backward(retain_graph=True) for _ in range(passes)]
    keys = list(range(len(packed))) * reads * passes
    subject.assert_equal("what unpack was called with", got=unpacked, expected=keys)
    for tensors in got:
        subject.assert_all_same("saved tensors in backward", got=tensors, expected=expected)


@keeps("PACK-02")
def test_pack_hooks_see_the_live_tensor_without_grad_mode(subject, data):
    """Pack hooks see the tensor's own requires_grad and grad_fn, with grad mode off."""
    tensors = _arguments(subject, data)
    saved = _saved(subject, data, tensors, -1)
    separate = subject.draw(data, st.booleans(), "separate style")
    seen = []

    def pack(tensor):
        seen.append((tensor.requires_grad, tensor.grad_fn, torch.is_grad_enabled()))
        return tensor.detach()

    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = _saver(subject, saved, separate=separate)(*tensors)
    live = [[*tensors, output][i] for i in saved]
    expected = [(tensor.requires_grad, tensor.grad_fn, False) for tensor in live]
    subject.assert_equal("requires_grad, grad_fn and grad mode seen by pack hooks", got=seen, expected=expected)


def _forms(store):
    """The objects that a tensor may be packed into, and how they are unpacked."""
    return {
        "scaled tensor": (lambda t: t * 4, lambda packed: packed / 4),
        "array": (
            lambda t: (t.cpu().double().numpy(), t.dtype, t.device),
            lambda packed: torch.from_numpy(packed[0]).to(packed[2], packed[1]),
        ),
        "key": (lambda t: (store.append(t.detach().clone()), str(len(store)))[1], lambda key: store[int(key) - 1]),
        "list": (
            lambda t: {"values": t.tolist(), "of": t.detach()},
            lambda packed: packed["of"].new_tensor(packed["values"]),
        ),
    }


@keeps("PACK-03")
def test_what_is_packed_may_be_anything_and_keeps_its_place_in_the_graph(subject, data):
    """Inputs packed into any object give right first and second derivatives."""
    polynomial = subject.polynomial(data, arguments=("tracked",), powers=(2,), separate=None)
    forms = _forms([])
    form = subject.draw(data, forms, "packed into")
    leaves, cotangents = new_leaves(subject, polynomial), polynomial.cotangents()
    with graph.saved_tensors_hooks(*forms[form]):
        call = subject.call_of(polynomial)
        outputs = subject.assert_accepted(lambda: call(*leaves), f"a pack hook that returns a {form}")
    starts, given = starts_of(subject, polynomial, outputs)
    first = torch.autograd.grad(starts, leaves, given, create_graph=True)
    expected = polynomial.vjp(cotangents)
    subject.assert_all_same("gradients", got=first, expected=expected)
    ones = [torch.ones_like(g) for g in first]
    second = subject.assert_accepted(lambda: torch.autograd.grad(first, leaves, ones), "second derivatives")
    curvature = [np.asarray(g / x) for g, x in zip(expected, polynomial.values, strict=True)]
    subject.assert_all_same("second derivatives", got=second, expected=curvature)


@keeps("PACK-03", variant="output")
def test_saved_outputs_keep_their_place_in_the_graph(subject, data):
    """Outputs packed into any object give right first and second derivatives."""
    forms = _forms([])
    form = subject.draw(data, forms, "packed into")
    powers = st.lists(st.sampled_from((1.0, -1.0, 2.0, -0.5)), max_size=3)
    x = subject.tensor(subject.draw(data, powers, "x"), subject.draw(data, subject.dtypes, "dtype"))

    reciprocal = subject.custom(
        forward=lambda x: 1 / x,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
        backward=lambda ctx, g: -g * ctx.saved_tensors[0] ** 2,
        separate=False,
    )
    leaf, ones = x.clone().requires_grad_(), torch.ones_like(x)
    with graph.saved_tensors_hooks(*forms[form]):
        y = reciprocal(leaf)
    (first,) = torch.autograd.grad(y, leaf, ones, create_graph=True)
    subject.assert_same("derivative of 1 / x", got=first, expected=-1 / x**2)
    (second,) = subject.assert_accepted(lambda: torch.autograd.grad(first, leaf, ones), "second derivatives")
    subject.assert_same("second derivative of 1 / x", got=second, expected=2 / x**3)


@keeps("PACK-04", variant="nested")
def test_the_innermost_of_nested_hooks_applies(subject, data):
    """Only the innermost hooks run; after a level is left, the outer ones apply again."""
    tensors = _arguments(subject, data)
    depth = subject.draw(data, st.integers(1, 4), "levels of hooks")
    leaving = subject.draw(data, LEAVING, "levels left by")
    log, outputs = [], []

    def note(name, tensor):
        log.append(name)
        return tensor

    def call_within(level):
        outputs.append(_saver(subject, [0])(*tensors))
        if level < depth:
            hooks = graph.saved_tensors_hooks(partial(note, f"pack {level}"), partial(note, f"unpack {level}"))
            with suppress(Left), hooks:
                call_within(level + 1)
                leave(leaving)
        outputs.append(_saver(subject, [0])(*tensors))

    call_within(0)
    [output.sum().backward(inputs=tensors[:1]) for output in outputs]
    levels = [*range(depth), *reversed(range(depth))]
    expected = [f"{what} {level}" for what in ("pack", "unpack") for level in levels]
    subject.assert_equal("hooks that ran", got=log, expected=expected)


HOOKS = {
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "save_on_cpu": graph.save_on_cpu,
    "allow_mutation_on_saved_tensors": graph.allow_mutation_on_saved_tensors,
}


def _enter(hooks):
    with HOOKS[hooks]():
        pass


@keeps("PACK-04", variant="disabled")
def test_hooks_that_are_disabled_cannot_be_entered(subject, data):
    """Where hooks are disabled, entering them raises the innermost message; calls still work."""
    tensors = _arguments(subject, data)
    words = st.lists(st.sampled_from(("no", "hooks", "here", "please")), min_size=1, max_size=4).map(" ".join)
    messages = subject.draw(data, st.lists(words, min_size=1, max_size=3, unique=True), "messages, the outermost first")
    leaving = subject.draw(data, LEAVING, "levels left by")
    hooks = subject.draw(data, HOOKS, "hooks")

    def check(message):
        what = f"{hooks} where disabled"
        subject.assert_raises(RuntimeError, lambda: _enter(hooks), what, naming=[f"{message}"])
        subject.assert_accepted(lambda: _saver(subject, [0])(*tensors), "a call where hooks are disabled")

    def disable(message, *others):
        with suppress(Left), graph.disable_saved_tensors_hooks(message):
            check(message)
            if others:
                disable(*others)
                check(message)
            leave(leaving)

    disable(*messages)
    subject.assert_accepted(lambda: _enter(hooks), f"{hooks} where no longer disabled")


CHANGES = {
    "add_": lambda t: t.add_(1),
    "mul_": lambda t: t.mul_(2),
    "zero_": lambda t: t.zero_(),
    "copy_": lambda t: t.copy_(t.clone()),
    "fill_ of a view": lambda t: t.view(-1)[:1].fill_(7),
}


@keeps("PACK-05", variant="pack")
def test_pack_hooks_that_change_their_tensor_raise(subject, data):
    """A pack hook that changes its tensor raises; changing a clone does not."""
    tensors = _arguments(subject, data)
    saved = _saved(subject, data, tensors, -1)
    change = subject.draw(data, CHANGES, "in-place change")
    separate = subject.draw(data, st.booleans(), "separate style")
    saver = _saver(subject, saved, separate=separate)

    def call(given):
        with graph.saved_tensors_hooks(lambda t: CHANGES[change](given(t)), lambda t: t):
            return saver(*tensors)

    facts = [("in place", "in-place", "inplace", "modify", "modifying", "modified")]
    subject.assert_raises(RuntimeError, lambda: call(lambda t: t), "a pack hook that changes its tensor", naming=facts)
    subject.assert_accepted(lambda: call(torch.clone), "a pack hook that changes a clone")


@keeps("PACK-05", variant="unpack")
def test_unpack_hooks_that_return_no_tensor_raise(subject, data):
    """An unpack hook that returns a non-tensor raises."""
    tensors = _arguments(subject, data)
    wrong = {"None": None, "number": 2.0, "text": "text", "array": np.ones(2), "tuple of tensors": (tensors[0],)}
    kind = subject.draw(data, wrong, "unpacked")

    def run(unpacked):
        with graph.saved_tensors_hooks(lambda t: t, unpacked):
            output = _saver(subject, [0])(*tensors)
        return output.sum().backward()

    what = f"an unpack hook that returns {kind}"
    kinds = (TypeError, RuntimeError)
    subject.assert_raises(kinds, lambda: run(lambda t: wrong[kind]), what, naming=["Tensor"])
    subject.assert_accepted(lambda: run(lambda t: t), "an unpack hook that returns a tensor")


@keeps("PACK-06")
def test_hooks_see_neither_attributes_nor_calls_that_are_not_recorded(subject, data):
    """Pack hooks get the saved tensors of recorded calls only, and no attributes of ctx."""
    tensors = _arguments(subject, data)
    saved = _saved(subject, data, tensors)
    recorded = subject.draw(data, ("recorded", "without grad mode", "of tensors that require no grad"), "call")
    packed = []

    def note(ctx, tensors):
        ctx.first, ctx.others = tensors[0], list(tensors)

    given = [t.detach() for t in tensors] if recorded.startswith("of") else tensors
    hooks = graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t)
    with hooks, torch.set_grad_enabled(recorded != "without grad mode"):
        _saver(subject, saved, note=note)(*given)
    expected = [given[i] for i in saved] if recorded == "recorded" else []
    subject.assert_all_same("tensors packed", got=packed, expected=expected)


@keeps("PACK-07")
def test_changes_of_saved_tensors_are_noticed_under_hooks(subject, data):
    """Under hooks too, backward raises after a saved tensor was changed, whatever was packed."""
    polynomial = subject.polynomial(data, powers=(2,), separate=None)
    packs = {"the tensor": lambda t: t, "the detached tensor": lambda t: t.detach(), "a clone": lambda t: t.clone()}
    pack = subject.draw(data, packs, "packed")
    changed = subject.draw(data, polynomial.floating, "argument changed after the call")
    run = subject.run(polynomial, under=lambda: graph.saved_tensors_hooks(packs[pack], lambda t: t))
    run.primals[polynomial.tensors.index(changed)].fill_(5.0)
    what = "access to a saved tensor that was changed, under hooks"
    subject.assert_raises(RuntimeError, lambda: run.gradients(polynomial.cotangents()), what)


@keeps("PACK-08", variant="mutation")
def test_saved_tensors_may_be_changed_where_that_is_allowed(subject, data):
    """Under allow_mutation_on_saved_tensors, gradients are right after saved tensors were changed."""
    polynomial = subject.polynomial(data, powers=(2,), separate=None)
    cotangents = polynomial.cotangents()
    changed = subject.draw(data, st.sets(st.sampled_from(polynomial.floating)), "arguments changed after the call")
    change = subject.draw(data, CHANGES, "in-place change")
    with graph.allow_mutation_on_saved_tensors():
        run = subject.run(polynomial)
        [CHANGES[change](run.primals[polynomial.tensors.index(i)]) for i in changed]
        got = run.gradients(cotangents)
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))


@keeps("PACK-08", variant="calls")
def test_each_call_gets_back_what_it_saved(subject, data):
    """Several calls between changes each get back the values that they saved."""
    several = st.lists(st.sampled_from(("call", *CHANGES)), max_size=6).map(lambda steps: ["call", *steps])
    steps = subject.draw(data, several, "calls and in-place changes")
    x = subject.tensor(np.full(subject.draw(data, SHAPES, "shape"), 3.0))
    leaf = x.detach().requires_grad_()

    square = subject.custom(
        forward=lambda x: x * x,
        setup_context=lambda ctx, inputs, _: ctx.save_for_backward(*inputs),
        backward=lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
        separate=False,
    )
    calls = []
    with graph.allow_mutation_on_saved_tensors():
        for step in steps:
            if step == "call":
                calls.append((square(leaf), subject.implementation.numpy(2 * x)))
            else:
                CHANGES[step](x)
        got = [torch.autograd.grad(y, leaf, torch.ones_like(y))[0] for y, _ in calls]
    subject.assert_all_same("gradient of each call", got=got, expected=[slope for _, slope in calls])


CONTAINERS = {
    "add, out=": lambda t: torch.add(t, 1, out=t),
    "_foreach_add_": lambda t: torch._foreach_add_([torch.zeros_like(t), t], 1),
}


@keeps("PACK-08", variant="containers")
def test_changes_by_out_and_in_lists_are_changes(subject, data):
    """A call gets back what it saved if that was changed by the keyword out, or as one tensor of a list."""
    change = subject.draw(data, CONTAINERS, "change")
    x = subject.tensor(np.full(subject.draw(data, SHAPES, "shape"), 3.0))
    leaf = subject.tensor(1.0).requires_grad_()
    with graph.allow_mutation_on_saved_tensors():
        output = (leaf * x).sum()
        CONTAINERS[change](x)
        (got,) = torch.autograd.grad(output, leaf)
    subject.assert_same("gradient", got=got, expected=np.asarray(3.0 * x.numel()))


@keeps("PACK-10")
def test_saved_tensors_are_let_go_where_mutation_ends(subject, data):
    """What was saved under allow_mutation_on_saved_tensors does not live on after its block."""
    x = subject.tensor(np.full(subject.draw(data, SHAPES, "shape"), 3.0)).requires_grad_()
    leaving = subject.draw(data, LEAVING, "block left by")
    refs = []

    def forward(ctx, x):
        saved = 3 * x
        refs.append(weakref.ref(saved))
        ctx.save_for_backward(saved)
        return x * 3

    tripled = subject.custom(forward=forward, backward=lambda ctx, g: 3 * g)
    with small_garbage():
        with suppress(Left), graph.allow_mutation_on_saved_tensors() as state:
            output = tripled(x)
            leave(leaving)
        kept = (state, output.grad_fn)
        subject.assert_accepted(lambda: _enter("allow_mutation_on_saved_tensors"), "a block after it")
        gc.collect()
    subject.assert_equal("whether it lives after the block", got=refs[0]() is not None, expected=False)
    del kept


@keeps("PACK-09")
def test_nodes_list_saved_tensors_that_take_one_pair_of_hooks(subject, data):
    """register_hooks on a raw saved tensor packs at once, applies in backward, and raises twice."""
    tensors = _arguments(subject, data)
    saved = _saved(subject, data, tensors)
    chosen = subject.draw(data, range(len(saved)), "index of the saved tensor with hooks")
    packed, unpacked, got = [], [], []
    output = _saver(subject, saved, got=got)(*tensors)
    node = output.grad_fn

    def pack(tensor):
        packed.append(tensor.clone())
        return len(packed)

    def unpack(key):
        unpacked.append(key)
        return packed[key - 1]

    def register():
        node._raw_saved_tensors[chosen].register_hooks(pack, unpack)

    subject.assert_equal("number of _raw_saved_tensors", got=len(node._raw_saved_tensors), expected=len(saved))
    register()
    subject.assert_all_same("tensors packed when hooks are registered", got=packed, expected=[tensors[saved[chosen]]])
    subject.assert_raises(RuntimeError, register, "a second pair of hooks", naming=["hooks"])
    output.sum().backward()
    subject.assert_all_same("saved tensors in backward", got=got[0], expected=[tensors[i] for i in saved])
    subject.assert_equal("what unpack was called with", got=unpacked, expected=[1])
    subject.assert_raises(RuntimeError, lambda: node._raw_saved_tensors, "_raw_saved_tensors after a pass")
    product = tensors[0] * tensors[0]
    released = product.grad_fn._raw_saved_self
    product.sum().backward()
    late = lambda: released.register_hooks(pack, unpack)  # noqa: E731
    subject.assert_raises(RuntimeError, late, "hooks on a saved tensor that was released")
