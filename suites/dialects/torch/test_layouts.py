"""Memory layouts: of the cotangents that backward sees, of what grad returns, and of .grad."""

from functools import partial

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._engine_entries import BACKWARD, ENTRIES, GRAD, METHOD, run_pass
from autograd_conformance.suites.dialects.torch._warnings import every_warning, warned

DTYPES = ("float64", "float32", "float16", "bfloat16")
SHAPES = ((2, 3), (3, 2, 4), (4,))


def _permuted(x):
    return x.permute(*range(1, x.dim()), 0).contiguous().permute(x.dim() - 1, *range(x.dim() - 1))


def _sliced(x):
    return x.new_zeros((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2].copy_(x)


# Ways to store a tensor, and whether its strides are dense and do not overlap.
LAYOUTS = {
    "row-major": (lambda x: x.contiguous(), True),
    "column-major": (lambda x: x.transpose(0, -1).contiguous().transpose(0, -1), True),
    "permuted": (_permuted, True),
    "sliced": (_sliced, False),
    "expanded": (lambda x: x[..., :1].expand(x.shape), False),
    "all one element": (lambda x: x[(0,) * x.dim()].expand(x.shape), False),
}


def _made(subject, shape, dtype, layout, factor=1.0):
    x = subject.tensor(factor * np.resize([1.0, -2.0, 3.0, 2.0], shape), dtype)
    return LAYOUTS[layout][0](x)


def _row_major(shape):
    return torch.empty(shape, device="meta").stride()


@keeps("LAYOUT-01", examples=2)
def test_backward_sees_cotangents_as_they_lie(subject, data):
    """backward sees the strides and values of the caller's cotangent."""
    entry = subject.draw(data, ENTRIES, "entry")
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, DTYPES, "dtype")
    layout = subject.draw(data, LAYOUTS, "layout of the cotangent")
    create = subject.draw(data, st.booleans(), "create_graph")
    seen = []
    double = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: (seen.append(g), g * 2)[1])
    g = _made(subject, shape, dtype, layout)
    x = _made(subject, shape, dtype, "row-major").requires_grad_()
    run_pass(entry, [double(x)], [x], [g], create_graph=create)
    x.grad = None
    subject.assert_equal("strides that backward sees", got=seen[0].stride(), expected=g.stride())
    subject.assert_same("values that backward sees", got=seen[0], expected=g)


@keeps("LAYOUT-01", variant="empty")
def test_backward_sees_empty_cotangents(subject, data):
    """backward runs for empty cotangents, also transposed ones."""
    entry = subject.draw(data, ENTRIES, "entry")
    shape = subject.draw(data, ((0,), (0, 3), (2, 0), (0, 0)), "shape")
    turned = subject.draw(data, st.booleans(), "whether the cotangent is transposed")
    seen = []
    double = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: (seen.append(g), g * 2)[1])
    x = subject.tensor(np.zeros(shape)).requires_grad_()
    g = subject.tensor(np.zeros(shape[::-1])).permute(*range(len(shape))[::-1]) if turned else torch.zeros_like(x)
    run_pass(entry, [double(x)], [x], [g])
    subject.assert_equal(
        "shapes of the cotangents that backward sees", got=[tuple(s.shape) for s in seen], expected=[shape]
    )


@keeps("LAYOUT-01", variant="consumers")
def test_built_in_consumers_hand_on_views(subject, data):
    """After sum, transpose or a partial sum, backward sees expanded or transposed strides."""
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, DTYPES, "dtype")
    consumers = {
        "sum": (lambda y: y.sum(), (0,) * len(shape)),
        "transposed": (lambda y: y.transpose(0, -1), _made(subject, shape, dtype, "column-major").stride()),
        "broadcast": (lambda y: y.sum(0), (0, *_row_major(shape[1:]))),
    }
    name = subject.draw(data, consumers, "consumer")
    consume, strides = consumers[name]
    seen = []
    double = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: (seen.append(g), g * 2)[1])
    x = _made(subject, shape, dtype, "row-major").requires_grad_()
    y = consume(double(x))
    y.backward(torch.ones(y.shape, dtype=y.dtype, device=y.device))
    subject.assert_equal("strides that backward sees", got=seen[0].stride(), expected=tuple(strides))
    subject.assert_same("values that backward sees", got=seen[0], expected=np.ones(shape))


@keeps("LAYOUT-03", examples=2)
def test_grad_lies_like_its_leaf_and_is_added_to_in_place(subject, data):
    """.grad has its leaf's strides if these are dense, and later passes add to the same tensor."""
    entries = subject.draw(data, st.lists(st.sampled_from((BACKWARD, METHOD)), min_size=1, max_size=3), "entries")
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, DTYPES, "dtype")
    lies, returned = subject.draw(data, LAYOUTS, "leaf"), subject.draw(data, LAYOUTS, "gradient")
    leaf = _made(subject, shape, dtype, lies).requires_grad_()
    expected = leaf.stride() if LAYOUTS[lies][1] else _row_major(shape)
    call = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: _made(subject, shape, dtype, returned))
    grads = []
    for entry in entries:
        run_pass(entry, [call(leaf)], [leaf], [torch.ones_like(leaf)])
        grads.append(leaf.grad)
        subject.assert_equal("strides of .grad", got=leaf.grad.stride(), expected=expected)
    kept = [g is grads[0] for g in grads]
    subject.assert_equal("whether .grad is the first one, after each pass", got=kept, expected=[True] * len(entries))
    once = subject.implementation.numpy(_made(subject, shape, dtype, returned))
    subject.assert_same(".grad", got=leaf.grad, expected=once * len(entries))


@keeps("LAYOUT-04")
def test_create_graph_replaces_grad(subject, data):
    """With create_graph .grad is a new tensor that requires grad, and the old one keeps its values."""
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, DTYPES, "dtype")
    lies = subject.draw(data, LAYOUTS, "leaf")
    leaf = _made(subject, shape, dtype, lies).requires_grad_()
    square = subject.custom(forward=lambda ctx, x: x * x, backward=lambda ctx, g: 2 * leaf * g)
    before = leaf.grad = _made(subject, shape, dtype, "row-major", factor=3.0)
    held = subject.implementation.numpy(before)
    passes = subject.draw(data, st.integers(1, 2), "passes")
    for _ in range(passes):
        run_pass(entry, [square(leaf)], [leaf], [torch.ones_like(leaf)], create_graph=True)
    after, leaf.grad = leaf.grad, None
    subject.assert_that(after is not before, "identity of .grad", got="the tensor that it was", expected="a new one")
    subject.assert_same("what .grad was before", got=before, expected=held)
    added = passes * 2 * subject.implementation.numpy(leaf)
    subject.assert_same(".grad", got=after, expected=held + added)
    subject.assert_equal("requires_grad of .grad", got=after.requires_grad, expected=True)


@keeps("LAYOUT-05", examples=2)
def test_gradients_keep_the_layout_that_backward_gave_them(subject, data):
    """grad returns a gradient with the strides that backward gave it."""
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, DTYPES, "dtype")
    lies, returned = subject.draw(data, LAYOUTS, "input"), subject.draw(data, LAYOUTS, "gradient")
    x = _made(subject, shape, dtype, lies).requires_grad_()
    gradient = _made(subject, shape, dtype, returned)
    y = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: gradient)(x)
    got = run_pass(GRAD, [y], [x], [torch.ones_like(y)])[0]
    subject.assert_equal("strides of what grad returns", got=got.stride(), expected=gradient.stride())
    subject.assert_same("gradient", got=got, expected=gradient)


def _policy(enforced):
    return torch.autograd.grad_mode.enforce_grad_layout_policy(enforced)


OVERLAPPING = ("expanded", "all one element")


def _assert_added(subject, data, layouts):
    """With the policy on or off, .grad has the right strides and, after several passes, the right values."""
    enforced = subject.draw(data, (False, True), "the policy is enforced")
    held = subject.draw(data, (False, True), "backward keeps what it returns")
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, DTYPES, "dtype")
    lies, returned = subject.draw(data, LAYOUTS, "leaf"), subject.draw(data, layouts, "gradient")
    passes = subject.draw(data, (2, 1), "passes")
    leaf, kept = _made(subject, shape, dtype, lies).requires_grad_(), []

    def backward(ctx, g):
        gradient = _made(subject, shape, dtype, returned)
        kept.extend([gradient] if held else [])
        return gradient

    call = subject.custom(forward=lambda ctx, x: x * 2, backward=backward)
    made = _made(subject, shape, dtype, returned)
    with _policy(enforced):
        for _ in range(passes):
            again = partial(run_pass, BACKWARD, [call(leaf)], [leaf], [torch.ones_like(leaf)])
            subject.assert_accepted(again, "a pass that adds to .grad")
    imposed = leaf.stride() if LAYOUTS[lies][1] else _row_major(shape)
    expected = imposed if enforced or held else made.stride()
    if returned not in OVERLAPPING:
        subject.assert_equal("strides of .grad", got=leaf.grad.stride(), expected=expected)
    subject.assert_same(".grad", got=leaf.grad, expected=passes * subject.implementation.numpy(made))


@keeps("LAYOUT-06")
def test_a_gradient_may_keep_its_strides_where_that_is_allowed(subject, data):
    """Without the policy a gradient that nobody else has becomes .grad as it lies; a copy lies like the leaf."""
    _assert_added(subject, data, [layout for layout in LAYOUTS if layout not in OVERLAPPING])


@keeps("LAYOUT-06", variant="overlapping", examples=0.6)
def test_a_gradient_of_shared_elements_can_be_added_to(subject, data):
    """With or without the policy a later pass adds to a .grad whose gradient was expanded."""
    _assert_added(subject, data, OVERLAPPING)


@keeps("LAYOUT-06", variant="warning", examples=0.4)
def test_a_sum_that_lies_otherwise_gives_a_warning(subject, data):
    """A new .grad that does not lie like its leaf gives a warning under the policy alone."""
    enforced = subject.draw(data, (False, True), "the policy is enforced")
    shape, dtype = subject.draw(data, SHAPES[:2], "shape"), subject.draw(data, DTYPES, "dtype")
    leaf = _made(subject, shape, dtype, "row-major").requires_grad_()
    double = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: 2 * g)
    leaf.grad = _made(subject, shape, dtype, "column-major")
    y, ones = double(leaf), _made(subject, shape, dtype, "column-major")
    with every_warning(), _policy(enforced):
        found = warned(partial(y.backward, ones, create_graph=True), "layout")
    # With create_graph a leaf is part of a cycle with its .grad.
    leaf.grad = None
    subject.assert_equal("whether it warns of the layout", got=bool(found), expected=enforced)
