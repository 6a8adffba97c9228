"""Transforms of torch.func within each other, on a custom Function with all its rules."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._func_transforms import (
    FORWARD,
    REVERSE,
    VALUES,
    assert_hessians,
    drawn_function,
    float_primals,
    some_positions,
    transformable,
    weighted_loss,
)
from autograd_conformance.suites.dialects.torch._powers import power_function

LEVELS = {**REVERSE, **FORWARD, **VALUES, "vmap": torch.func.vmap}
JACOBIANS = {"jacfwd": torch.func.jacfwd, "jacrev": torch.func.jacrev}

# The number of calls in a row, and the factor by which backward and jvp are off.
CALLS = ((1, 1), (1, -1), (1, 3), (2, 1))
DERIVATIVES = (*REVERSE, *FORWARD, "vmap")
NAMES = st.sampled_from(DERIVATIVES)


def _order(names):
    return sum(name in REVERSE or name in FORWARD for name in names)


def _forwards(names):
    return sum(name in FORWARD for name in names)


@keeps("FUNC-14")
def test_nested_transforms_use_the_own_rules(subject, data):
    """Up to three derivatives, one at most in forward mode, and vmaps in between are right."""
    drawn = st.lists(NAMES, min_size=2, max_size=4).filter(lambda names: _order(names) in (1, 2, 3))
    _assert_derivative_right(subject, data, drawn.filter(lambda names: _forwards(names) < 2))


@keeps("FUNC-14", variant="forward")
def test_forward_mode_nests(subject, data):
    """Forward mode of forward mode, with other transforms around and in between, is right."""
    innermost = st.sampled_from(tuple(FORWARD))
    drawn = st.builds(lambda names, last: [*names, last], st.lists(NAMES, min_size=1, max_size=3), innermost)
    drawn = drawn.filter(lambda names: _order(names) in (2, 3))
    _assert_derivative_right(subject, data, drawn.filter(lambda names: _forwards(names) > 1))


def _assert_derivative_right(subject, data, drawn):
    """The nested transforms give the derivative of a power of a number."""
    names = subject.draw(data, drawn, "transforms, the outermost first")
    exponent = subject.draw(data, (2, 3), "power")
    calls, factor = subject.draw(data, CALLS, "calls in a row, and the factor by which the rules are off")
    written = subject.draw(data, (False, True), "batching rule written by hand")
    calling = subject.draw(data, (False, True), "the rules call another Function")
    more = subject.draw(data, ((), (1,), (3,)), "dimensions that are not mapped")
    cls = power_function(subject, exponent, factor, written, calling)

    def f(x):
        for _ in range(calls):
            x = cls.apply(x)
        return x

    for name in reversed(names):
        f = LEVELS[name](f)
    x = np.resize((2.0, -3.0, 1.0), (2,) * names.count("vmap") + more)
    got = f(subject.tensor(x))
    order, power = _order(names), exponent**calls
    falling = np.prod([power - n for n in range(order)], dtype=float)
    expected = factor * falling * x ** max(power - order, 0)
    subject.assert_same("derivative by nested transforms", got=got, expected=expected)


@keeps("FUNC-14", variant="values")
def test_what_a_transform_returns_is_differentiated(subject, data):
    """Where a transform is asked for the output itself, transforms around it give its derivatives."""
    outer = st.lists(NAMES, min_size=1, max_size=2).filter(lambda names: _order(names) and _forwards(names) < 2)
    value, within = st.sampled_from(tuple(VALUES)), st.lists(NAMES, max_size=1)
    drawn = st.builds(lambda around, name, inner: [*around, name, *inner], outer, value, within)
    drawn = drawn.filter(lambda names: _forwards(names) + sum("jvp" in name for name in names) < 2)
    _assert_derivative_right(subject, data, drawn)


@keeps("FUNC-14", variant="hessian", examples=0.4)
def test_hessians_are_right_either_way(subject, data):
    """Hessians forward over reverse, reverse over forward and reverse over reverse are right."""
    polynomial = drawn_function(subject, data, shapes=((), (1,), (2,), (2, 1)), max_outputs=2)
    ways = [(outer, inner) for outer in JACOBIANS for inner in JACOBIANS if "jacrev" in (outer, inner)]
    outer, inner = subject.draw(data, ways, "outer and inner transform")
    wanted = subject.draw(data, some_positions(polynomial), "argnums")
    cotangents = polynomial.cotangents()
    loss = weighted_loss(subject, polynomial, transformable(subject, polynomial), cotangents)
    gradients = JACOBIANS[inner](loss, argnums=wanted)
    got = JACOBIANS[outer](gradients, argnums=wanted)(*float_primals(subject, polynomial))
    assert_hessians(subject, polynomial, wanted, cotangents, got)


# Batched dimensions of two vectors.
AXES = ((0, 0), (0, None), (None, 0))


def _pairs(axes):
    """Two vectors, with a batch of two where there is an axis."""
    return [np.arange(1.0 + 10 * n, 1 + 10 * n + (2 if a is None else 4)).reshape(-1, 2) for n, a in enumerate(axes)]


def _as_drawn(subject, arrays):
    return subject.tensors([a if len(a) > 1 else a[0] for a in arrays])


@keeps("VMAP-09")
def test_setup_context_gets_the_tensors_of_one_call(subject, data):
    """Under vmap setup_context gets the shapes of one call, and backward what it put on ctx."""
    shape = subject.draw(data, ((), (3,), (2, 1)), "shape")
    axis = subject.draw(data, range(len(shape) + 1), "batched dimension")
    inside = subject.draw(data, (False, True), "vmap of grad, not grad of vmap")
    number = subject.draw(data, (2, 5), "number on ctx")
    seen = []

    def setup_context(ctx, inputs, output):
        ctx.shape, ctx.number = inputs[0].shape, number
        seen.append((tuple(inputs[0].shape), tuple(output.shape), ctx.needs_input_grad))

    apply = subject.custom(
        forward=lambda x: torch.sum(x),
        setup_context=setup_context,
        backward=lambda ctx, g: ctx.number * g.expand(ctx.shape),
        generate_vmap_rule=True,
    )
    x = subject.tensor(np.ones((*shape[:axis], 2, *shape[axis:])))
    if inside:
        got = torch.func.vmap(torch.func.grad(apply), in_dims=axis, out_dims=axis)(x)
    else:
        got = torch.func.grad(lambda x: torch.sum(torch.func.vmap(apply, in_dims=axis)(x)))(x)
    subject.assert_equal("shapes in setup_context, and flags", got=seen[-1], expected=(shape, (), (True,)))
    subject.assert_same("gradients", got=got, expected=np.full(x.shape, float(number)))


@keeps("VMAP-09", variant="saved")
def test_other_tensors_may_be_saved_for_jvp_under_vmap(subject, data):
    """With other tensors saved for jvp than for backward, derivatives of a vmap are those of a loop."""
    axes = subject.draw(data, AXES, "batched dimensions of x and y")
    swapped = subject.draw(data, (False, True), "saved for jvp in another order")
    last = subject.draw(data, ("save_for_forward", "save_for_backward"), "called last")
    forward = subject.draw(data, (False, True), "tangents instead of gradients")

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*(inputs[::-1] if swapped else inputs))
        if last == "save_for_backward":
            ctx.save_for_backward(*inputs)

    def jvp(ctx, t, u):
        x, y = ctx.saved_tensors[::-1] if swapped else ctx.saved_tensors
        return t * y + u * x

    product = subject.custom(
        forward=lambda x, y: x * y,
        setup_context=setup_context,
        backward=lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        jvp=jvp,
        generate_vmap_rule=True,
    )
    arrays = _pairs(axes)
    xs, mapped = _as_drawn(subject, arrays), torch.func.vmap(product, in_dims=axes)

    def derivatives():
        if forward:
            return torch.func.jvp(mapped, xs, tuple(map(torch.ones_like, xs)))[1:]
        return torch.func.grad(lambda *xs: torch.sum(mapped(*xs)), argnums=(0, 1))(*xs)

    what = "derivatives of a vmap"
    got = subject.assert_accepted(derivatives, what)
    x, y = (np.broadcast_to(a, (2, 2)) for a in arrays)
    pairs = zip((y, x), axes, strict=True)
    expected = [x + y] if forward else [g if axis == 0 else g.sum(axis=0) for g, axis in pairs]
    subject.assert_all_same(what, got=got, expected=expected)


@keeps("VMAP-09", variant="marked")
def test_outputs_are_marked_under_vmap(subject, data):
    """An output marked as not differentiable is that under vmap too, and has no tangent."""
    shape = subject.draw(data, ((2,), (2, 3)), "shape")
    first = subject.draw(data, (False, True), "the marked output comes first")
    forward = subject.draw(data, (False, True), "forward mode")

    def ordered(plain, marked):
        return (marked, plain) if first else (plain, marked)

    apply = subject.custom(
        forward=lambda x: ordered(3 * x, torch.sign(x)),
        setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(output[not first]),
        backward=lambda ctx, *cotangents: 3 * cotangents[first],
        jvp=lambda ctx, t: ordered(3 * t, None),
        generate_vmap_rule=True,
    )
    x, mapped = subject.tensor(np.ones(shape)), torch.func.vmap(apply)
    if forward:
        tangents = lambda: torch.func.jvp(mapped, (x,), (torch.ones_like(x),))[1]  # noqa: E731
        got = subject.assert_accepted(tangents, "forward mode of a vmap with a marked output")
        subject.assert_all_same("tangents", got=got, expected=ordered(np.full(shape, 3.0), np.zeros(shape)))
    else:
        got = [y.requires_grad for y in mapped(x.requires_grad_())]
        subject.assert_equal("requires_grad of the outputs of a vmap", got=got, expected=list(ordered(True, False)))


@keeps("VMAP-09", variant="dirty")
def test_inputs_are_changed_in_place_under_vmap(subject, data):
    """A Function that changes its input in place has right derivatives under vmap."""
    factor = subject.draw(data, (2, -1), "factor")
    returned = subject.draw(data, (True, False), "the output is used, not the tensor that was changed")
    level = {**REVERSE, "jvp": FORWARD["jvp"]}
    name = subject.draw(data, tuple(level), "transform of the vmap")
    shape = subject.draw(data, ((2,), (2, 3)), "shape")

    def changed(x):
        x *= factor
        return x

    apply = subject.custom(
        forward=lambda x: changed(x),
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(*inputs),
        backward=lambda ctx, g: factor * g,
        jvp=lambda ctx, t: changed(t),
        generate_vmap_rule=True,
    )

    def f(x):
        square = x * x
        output = apply(square)
        return output if returned else square

    x = np.resize((2.0, -3.0, 1.0), shape)
    derivative = level[name](torch.func.vmap(f))
    what = "derivative of a vmap with a change in place"
    got = subject.assert_accepted(lambda: derivative(subject.tensor(x)), what)
    subject.assert_same(what, got=got, expected=2 * factor * x)


@keeps("BOX-05")
def test_transforms_give_backward_a_list(subject, data):
    """Under a transform a boxed backward gets a list with all cotangents."""
    count = subject.draw(data, (1, 2, 3), "outputs")
    name = subject.draw(data, (*REVERSE, "vmap"), "transform")
    shape, seen = subject.draw(data, ((2,), (2, 3)), "shape"), []

    def forward(x):
        outputs = tuple(n * x for n in range(1, count + 1))
        return outputs if count > 1 else outputs[0]

    def backward(ctx, *given):
        seen.append([type(argument) for argument in given])
        return sum(n * g for n, g in enumerate(given[0], 1))

    cls = subject.define(forward=forward, separate=True, backward=backward)
    cls.boxed_grads_call = cls.generate_vmap_rule = True

    def total(x):
        outputs = cls.apply(x)
        return sum(n * y for n, y in enumerate(outputs, 1)) if count > 1 else outputs

    x, what = subject.tensor(np.ones(shape)), "backward with boxed_grads_call under a transform"
    f = REVERSE["grad"](torch.func.vmap(total)) if name == "vmap" else REVERSE[name](total)
    got = subject.assert_accepted(lambda: f(x), what)
    subject.assert_equal(what, got=seen[-1], expected=[list])
    slope = sum(n * n for n in range(1, count + 1))
    subject.assert_same(what, got=got, expected=np.full(shape, float(slope)))
