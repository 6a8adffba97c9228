"""Custom Functions under vmap: generated and written batching rules."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._batches import (
    batch_loss,
    call_function,
    drawn_batch,
    moved_to_front,
    with_vmap_method,
)
from autograd_conformance.suites.dialects.torch._func_transforms import transformable
from autograd_conformance.suites.dialects.torch._powers import save_inputs

FACTORS = (1, -1, 2)


@keeps("VMAP-01")
def test_vmap_needs_a_batching_rule(subject, data):
    """vmap raises without a batching rule, names the class and both remedies, and works with one."""
    batch = drawn_batch(subject, data)
    tensors = batch.tensors(subject)

    def mapped(rule):
        cls = transformable(subject, batch.polynomial, rule=rule)
        return torch.func.vmap(call_function(batch, cls), in_dims=batch.axes)(*tensors)

    what = "vmap of a Function without a batching rule"
    facts = ["Transformable", "vmap", "generate_vmap_rule"]
    subject.assert_raises(RuntimeError, lambda: mapped(rule=False), what, naming=facts)
    got = subject.assert_accepted(lambda: mapped(rule=True), "vmap of a Function with a batching rule")
    subject.assert_all_same("outputs", got=got, expected=batch.outputs())


@keeps("VMAP-02")
def test_a_generated_rule_maps_forward(subject, data):
    """vmap with a generated rule gives the outputs of every call."""
    batch = drawn_batch(subject, data, outputs=("float", "marked", "integers"))
    f = call_function(batch, transformable(subject, batch.polynomial))
    got = torch.func.vmap(f, in_dims=batch.axes)(*batch.tensors(subject))
    subject.assert_all_same("outputs", got=got, expected=batch.outputs())


@keeps("VMAP-02", variant="each")
def test_a_generated_rule_gives_the_gradient_of_each_call(subject, data):
    """vmap of grad gives the gradients of every call."""
    batch = drawn_batch(subject, data)
    cotangents, places = batch.cotangents(), batch.floating
    loss = batch_loss(batch, transformable(subject, batch.polynomial))
    gradient = torch.func.grad(loss, argnums=tuple(place + 1 for place in places))
    mapped = torch.func.vmap(gradient, in_dims=(0, *batch.axes))
    got = mapped(subject.tensors(cotangents, batch.polynomial.dtype), *batch.tensors(subject))
    expected = batch.gradients(cotangents)
    subject.assert_all_same("gradients of each call", got=got, expected=[expected[place] for place in places])


@keeps("VMAP-02", variant="all")
def test_a_generated_rule_gives_the_gradient_of_all_calls(subject, data):
    """grad of vmap gives the gradients of all calls, summed for shared tensors."""
    batch = drawn_batch(subject, data)
    got, cotangents = _gradient_of_all(subject, data, batch, transformable(subject, batch.polynomial))
    subject.assert_all_same("gradients", got=got, expected=batch.summed(batch.gradients(cotangents)))


@keeps("VMAP-02", variant="jvp")
def test_a_generated_rule_maps_jvp(subject, data):
    """vmap of jvp and jvp of vmap give the tangents of every call."""
    batch = drawn_batch(subject, data)
    polynomial, tangents = batch.polynomial, batch.tangents()
    inside = subject.draw(data, (False, True), "vmap of jvp, not jvp of vmap")
    f = call_function(batch, transformable(subject, polynomial))
    tensors = batch.tensors(subject)
    placed = batch.placed([tangents.get(i) for i in polynomial.tensors])
    given = [x if t is None else subject.tensor(t, polynomial.dtype) for x, t in zip(tensors, placed, strict=True)]
    places = batch.floating

    def moved(call, xs, ts):
        def of_floating(*some):
            found = dict(zip(places, some, strict=True))
            return call(*(found.get(place, x) for place, x in enumerate(xs)))

        return torch.func.jvp(of_floating, tuple(xs[place] for place in places), tuple(ts[place] for place in places))[
            1
        ]

    each = torch.func.vmap(lambda *both: moved(f, both[: len(tensors)], both[len(tensors) :]), in_dims=batch.axes * 2)
    got = each(*tensors, *given) if inside else moved(torch.func.vmap(f, in_dims=batch.axes), tensors, given)
    subject.assert_all_same("tangents", got=got, expected=batch.moved(tangents))


@keeps("VMAP-02", variant="nested")
def test_a_generated_rule_works_at_several_levels(subject, data):
    """Nested vmaps give right outputs and gradients, whichever levels batch which argument."""
    level = st.sampled_from(((True, True), (True, False), (False, True)))
    levels = subject.draw(data, st.lists(level, min_size=1, max_size=3), "levels that batch x and y, outermost first")
    sizes = (2, 3, 1)[: len(levels)]
    methods = {
        "forward": lambda x, y: x * y,
        "setup_context": lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        "backward": lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
    }
    product = subject.custom(**methods, generate_vmap_rule=True)
    kept = [tuple(n if each[i] else 1 for n, each in zip(sizes, levels, strict=True)) for i in range(2)]
    arrays = [np.arange(1.0 + i, 1.0 + i + np.prod(shape)).reshape(shape) for i, shape in enumerate(kept)]
    batched = [[n for n, each in zip(sizes, levels, strict=True) if each[i]] for i in range(2)]
    tensors = subject.tensors([a.reshape(shape) for a, shape in zip(arrays, batched, strict=True)])

    def mapped(f, given=tensors):
        for each in reversed(levels):
            f = torch.func.vmap(f, in_dims=tuple(0 if batches else None for batches in each))
        return f(*given)

    x, y = (np.broadcast_to(a, sizes) for a in arrays)
    subject.assert_same("output", got=mapped(product), expected=x * y)
    got = mapped(torch.func.grad(product, argnums=(0, 1)))
    subject.assert_all_same("gradients of each call", got=got, expected=[y, x])
    leaves = [t.clone().requires_grad_() for t in tensors]
    got = torch.autograd.grad(torch.sum(mapped(product, leaves)), leaves)
    shared = [tuple(n for n, each in enumerate(levels) if not each[i]) for i in range(2)]
    expected = [np.sum(g, axis=axes) for g, axes in zip((y, x), shared, strict=True)]
    subject.assert_all_same("gradients of all calls", got=got, expected=expected)


@keeps("VMAP-02", variant="save_for_forward")
def test_a_generated_rule_maps_what_jvp_alone_saves(subject, data):
    """vmap of jvp and jvp of vmap give the tangents of every call where nothing is saved for backward."""
    axes = subject.draw(data, ((0, 0), (0, None), (None, 0)), "batched dimensions of x and y")
    inside = subject.draw(data, (False, True), "vmap of jvp, not jvp of vmap")
    product = subject.custom(
        forward=lambda x, y: x * y,
        setup_context=lambda ctx, inputs, output: ctx.save_for_forward(*inputs),
        jvp=lambda ctx, t, u: t * ctx.saved_tensors[1] + u * ctx.saved_tensors[0],
        generate_vmap_rule=True,
    )
    x, y, t, u = arrays = [n + np.arange(2 if axis is None else 6).reshape(-1, 2) for n, axis in enumerate(axes * 2)]
    given = subject.tensors([1.0 * a if len(a) > 1 else 1.0 * a[0] for a in arrays])
    if inside:
        f = lambda x, y, t, u: torch.func.jvp(product, (x, y), (t, u))[1]  # noqa: E731
        got = torch.func.vmap(f, in_dims=axes * 2)(*given)
    else:
        got = torch.func.jvp(torch.func.vmap(product, in_dims=axes), given[:2], given[2:])[1]
    subject.assert_same("tangents", got=got, expected=1.0 * (t * y + u * x))


@keeps("VMAP-02", variant="returned")
def test_a_generated_rule_takes_what_backward_returns(subject, data):
    """A gradient that no call has its own of, or that is to be summed, gives the gradients of a loop."""
    shape = subject.draw(data, ((), (3,), (2, 1)), "shape")
    lead = subject.draw(data, ((), (2,), (2, 3)), "dimensions added to the gradient")
    constant = subject.draw(data, (False, True), "the same gradient in every call")
    axis = subject.draw(data, range(len(shape) + 1), "batched dimension")
    inside = subject.draw(data, (False, True), "vmap of grad, not grad of vmap")
    shared = lambda g: torch.full(shape, 5.0, dtype=g.dtype, device=g.device)  # noqa: E731
    apply = subject.custom(
        forward=lambda x: 3 * x,
        separate=True,
        backward=lambda ctx, g: (shared(g) if constant else 3 * g).expand((*lead, *shape)),
        generate_vmap_rule=True,
    )
    weights = 1.0 + np.arange(2 * np.prod(shape, dtype=int)).reshape(2, *shape)
    x, w = subject.tensors([np.moveaxis(-weights, 0, axis), weights])
    if inside:
        loss = lambda x, w: torch.sum(apply(x) * w)  # noqa: E731
        got = torch.func.vmap(torch.func.grad(loss), in_dims=(axis, 0))(x, w)
    else:
        got = torch.func.grad(lambda x: torch.sum(torch.func.vmap(apply, in_dims=axis)(x) * w))(x)
    each = np.prod(lead, dtype=int) * (5 + 0 * weights if constant else 3 * weights)
    subject.assert_same("gradients", got=got, expected=each if inside else np.moveaxis(each, 0, axis))


@keeps("VMAP-02", variant="unused")
def test_a_generated_rule_passes_on_that_an_output_is_unused(subject, data):
    """Where gradients are not materialized, backward gets None for an unused output under vmap too."""
    used = subject.draw(data, (0, 1), "output that is used")
    inside = subject.draw(data, (False, True), "vmap of grad, not grad of vmap")
    seen = []

    def backward(ctx, *cotangents):
        seen.append([g is None for g in cotangents])
        return sum(n * g for n, g in enumerate(cotangents, 2) if g is not None)

    apply = subject.custom(
        forward=lambda x: (2 * x, 3 * x),
        setup_context=lambda ctx, inputs, output: ctx.set_materialize_grads(False),
        backward=backward,
        generate_vmap_rule=True,
    )
    x = np.arange(6.0).reshape(3, 2)
    if inside:
        f = torch.func.vmap(torch.func.grad(lambda x: torch.sum(apply(x)[used])))
    else:
        f = torch.func.grad(lambda x: torch.sum(torch.func.vmap(apply)(x)[used]))
    got = subject.assert_accepted(lambda: f(subject.tensor(x)), "a gradient where one output is not used")
    subject.assert_equal("whether backward gets None", got=seen, expected=[[used == 1, used == 0]])
    subject.assert_same("gradients", got=got, expected=used + 2 + 0 * x)


def _gradient_of_all(subject, data, batch, cls):
    """The gradients of a loss over all calls, by func.grad or autograd.grad, and the cotangents in the loss."""
    dtype, places, cotangents = batch.polynomial.dtype, batch.floating, batch.cotangents()
    mapped = torch.func.vmap(call_function(batch, cls), in_dims=batch.axes)
    weights, tensors = subject.tensors(cotangents, dtype), list(batch.tensors(subject))
    engine = subject.draw(data, ("func.grad", "autograd.grad"), "engine")

    def loss(*floating):
        given = dict(zip(places, floating, strict=True))
        outputs = mapped(*(given.get(place, x) for place, x in enumerate(tensors)))
        return sum(torch.sum(y * g) for y, g in zip(outputs, weights, strict=True))

    floating = [tensors[place].requires_grad_(engine == "autograd.grad") for place in places]
    if engine == "func.grad":
        found = torch.func.grad(loss, argnums=tuple(range(len(places))))(*floating)
    else:
        found = torch.autograd.grad(loss(*floating), floating)
    return [dict(zip(places, found, strict=True)).get(place) for place in range(len(tensors))], cotangents


@keeps("VMAP-02", variant="shared-output")
def test_an_output_that_all_calls_share_is_mapped(subject, data):
    """Where an output depends on a shared argument alone, the derivatives are those of a loop."""
    size = subject.draw(data, (2, 3), "batch size")
    shape = subject.draw(data, ((), (2,)), "shape")
    weight = subject.draw(data, (1, -1, 3), "weight")
    forward = subject.draw(data, (False, True), "tangents instead of gradients")

    def slopes(ctx):
        x, y = ctx.saved_tensors
        return (y, x), (0 * y, weight + 0 * y)

    apply = subject.custom(
        forward=lambda x, y: (x * y, weight * y),
        setup_context=save_inputs,
        backward=lambda ctx, g, h: tuple(g * a + h * b for a, b in zip(*slopes(ctx), strict=True)),
        jvp=lambda ctx, t, u: tuple(a * t + b * u for a, b in slopes(ctx)),
        generate_vmap_rule=True,
    )
    mapped = torch.func.vmap(apply, in_dims=(0, None))
    x = 1 + np.arange(size * np.prod(shape, dtype=int)).reshape(size, *shape).astype(float)
    xs = subject.tensors([x, np.full(shape, 5.0)])
    if forward:
        got = torch.func.jvp(mapped, xs, tuple(map(torch.ones_like, xs)))[1]
        expected = [x + 5, np.full_like(x, weight)]
    else:
        got = torch.func.grad(lambda *xs: sum(torch.sum(z) for z in mapped(*xs)), argnums=(0, 1))(*xs)
        expected = [np.full_like(x, 5.0), np.asarray(x.sum(axis=0) + size * weight)]
    subject.assert_all_same("derivatives where calls share an output", got=got, expected=expected)


@keeps("VMAP-03")
def test_a_rule_is_generated_or_written_not_both(subject, data):
    """A class with both kinds of rule raises; either kind alone works."""
    batch = drawn_batch(subject, data)
    generated = transformable(subject, batch.polynomial)
    by_hand = with_vmap_method(subject, generated)
    both = subject.define(by_hand, name="Both", generate_vmap_rule=True)

    def mapped(cls):
        return torch.func.vmap(call_function(batch, cls), in_dims=batch.axes)(*batch.tensors(subject))

    what = "vmap of a Function with generate_vmap_rule and a vmap method"
    subject.assert_raises(RuntimeError, lambda: mapped(both), what, naming=["Both", "generate_vmap_rule", "vmap"])
    for cls in (generated, by_hand):
        subject.assert_all_same("outputs", got=mapped(cls), expected=batch.outputs())


@keeps("VMAP-04")
def test_the_vmap_method_gets_where_the_batch_is(subject, data):
    """The vmap method gets batch size, randomness, in_dims and the tensors that in_dims describes."""
    batch = drawn_batch(subject, data)
    randomness = subject.draw(data, ("error", "same", "different"), "randomness")
    outputs = subject.tensors(batch.outputs(), batch.polynomial.dtype)
    cls, seen = with_vmap_method(subject, transformable(subject, batch.polynomial)), []

    def vmap(*given):
        seen.append(given)
        return outputs, (0,) * len(outputs)

    cls.vmap = staticmethod(vmap)
    torch.func.vmap(call_function(batch, cls), in_dims=batch.axes, randomness=randomness)(*batch.tensors(subject))
    subject.assert_equal("number of calls of the vmap method", got=len(seen), expected=1)
    info, in_dims, *args = seen[0]
    got = (info.batch_size, info.randomness)
    subject.assert_equal("info.batch_size and info.randomness", got=got, expected=(batch.size, randomness))
    axes = dict(zip(batch.polynomial.tensors, batch.axes, strict=True))
    kinds = tuple(type(None if axes.get(i) is None else 0) for i in range(len(args)))
    got = (type(in_dims), tuple(map(type, in_dims)))
    subject.assert_equal("types of in_dims and of its entries", got=got, expected=(tuple, kinds))
    expected = [batch.stacked.get(i, value) for i, value in enumerate(batch.polynomial.values)]
    subject.assert_all_same("arguments, batch dimension first", got=moved_to_front(in_dims, args), expected=expected)


# out_dims of a batching rule: one for each output, or one for all.
DIMS = st.sampled_from((None, 0, 1, 2))
OUT_DIMS = st.one_of(DIMS, st.lists(DIMS, min_size=1, max_size=3).map(tuple))


@keeps("VMAP-05")
def test_out_dims_say_where_the_batch_is(subject, data):
    """The outputs are batched along out_dims: one value for all, or one for each output."""
    out_dims = subject.draw(data, OUT_DIMS, "out_dims")
    count = subject.draw(data, (None, 1, 2), "tensors that forward returns in a tuple")
    count = len(out_dims) if isinstance(out_dims, tuple) else count
    x = np.arange(18.0).reshape(3, 2, 3)
    got = _mapped_over(subject, x, count, lambda outputs: (outputs, out_dims), out_dims)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * (count or 1)
    expected = [(np.ones_like(x) if dim is None else x) * (k + 1) for k, dim in enumerate(dims)]
    subject.assert_equal("type of the result", got=type(got), expected=tuple if count else torch.Tensor)
    subject.assert_all_same("outputs", got=got if count else [got], expected=expected)


# Wrong results of a batching rule, for a tensor and for a tuple of tensors.
WRONG = {
    "the output alone": lambda y: (y,),
    "three values": lambda y: (y, 0, 0),
    "a list": lambda y: [y, 0],
    "too many out_dims": lambda y: (y, (0,) * (len(y) + 1) if isinstance(y, tuple) else (0,)),
    "too few out_dims": lambda y: (y, (0,) * (len(y) - 1) if isinstance(y, tuple) else ()),
    "a list of out_dims": lambda y: (y, [0] * (len(y) if isinstance(y, tuple) else 1)),
    "a dict of out_dims": lambda y: (y, {"output": 0}),
}


@keeps("VMAP-05", variant="refused")
def test_out_dims_have_the_structure_of_the_output(subject, data):
    """A vmap method that returns anything but output and matching out_dims raises."""
    wrong = WRONG[subject.draw(data, WRONG, "the vmap method returns")]
    count = subject.draw(data, (None, 1, 2, 3), "tensors that forward returns in a tuple")
    x = np.ones((3, 2, 3))
    what = "what the vmap method returns instead of output and out_dims"
    action = lambda: _mapped_over(subject, x, count, wrong, 0)  # noqa: E731
    subject.assert_raises(RuntimeError, action, what, naming=["vmap", ("out_dims", "returns")])
    right = lambda: _mapped_over(subject, x, count, lambda y: (y, 0), 0)  # noqa: E731
    subject.assert_accepted(right, "output and out_dims")


def _mapped_over(subject, x, count, returned, out_dims):
    """vmap, over the first dimension, of a Function that returns 1 * x, 2 * x, ...

    Its batching rule puts batch dimensions where ``out_dims`` says (for None it uses ones instead of x), and returns
    ``returned(output)``.
    """

    def outputs_of(xs):
        outputs = tuple(factor * x for factor, x in enumerate(xs, 1))
        return outputs if count else outputs[0]

    def vmap(info, in_dims, x):
        dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * (count or 1)
        first = x.movedim(in_dims[0], 0)
        return returned(outputs_of([torch.ones_like(first[0]) if d is None else first.movedim(0, d) for d in dims]))

    def forward(x):
        return outputs_of([x] * (count or 1))

    apply = subject.custom(forward=forward, separate=True, vmap=vmap)
    return torch.func.vmap(apply)(subject.tensor(x))


@keeps("VMAP-06")
def test_the_vmap_method_runs_at_the_levels_that_batch_an_argument(subject, data):
    """The vmap method runs only at those levels that batch an argument."""
    levels = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "levels that batch x, outermost first")
    others = subject.draw(data, st.tuples(*[st.lists(st.sampled_from((1.0, None)), max_size=2)] * 2), "around x")
    sizes, seen = (2, 3, 4)[: len(levels)], []

    def vmap(info, in_dims, *args):
        seen.append(info.batch_size)
        batched = any(dim is not None for dim in in_dims)
        return apply(*moved_to_front(in_dims, args)), 0 if batched else None

    def forward(*args):
        return 2 * args[len(others[0])]

    apply = subject.custom(forward=forward, separate=True, vmap=vmap)
    before, after = ([None if a is None else subject.tensor(a) for a in each] for each in others)
    f = lambda x, y: apply(*before, x, *after) + 0 * y  # noqa: E731
    for batches in reversed(levels):
        f = torch.func.vmap(f, in_dims=(0 if batches else None, 0))
    shape = [size for size, batches in zip(sizes, levels, strict=True) if batches]
    x = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    got = f(subject.tensor(x), subject.tensor(np.zeros(sizes)))
    subject.assert_equal("batch sizes that the vmap method sees", got=seen, expected=shape[::-1])
    kept = tuple(size if batches else 1 for size, batches in zip(sizes, levels, strict=True))
    subject.assert_same("output", got=got, expected=np.broadcast_to(2 * x.reshape(kept), sizes))


@keeps("VMAP-08")
def test_vmap_keeps_the_own_backward(subject, data):
    """Gradients under vmap follow a backward that is wrong by a factor, with either kind of rule."""
    batch = drawn_batch(subject, data)
    factor = subject.draw(data, FACTORS, "factor by which backward is off")
    by_hand = subject.draw(data, (False, True), "batching rule written by hand")
    generated = transformable(subject, batch.polynomial, backward=factor)
    got, cotangents = _gradient_of_all(
        subject, data, batch, with_vmap_method(subject, generated) if by_hand else generated
    )
    subject.assert_all_same("gradients", got=got, expected=batch.summed(batch.gradients(cotangents, factor)))
