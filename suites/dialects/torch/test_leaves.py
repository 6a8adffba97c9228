"""What makes a tensor a leaf: its flags, detach, and what hooks of a leaf may do to it."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch.autograd import forward_ad

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._jvp_functions import (
    drawn_jvp_function,
    drawn_tangents,
    expected_tangents,
    with_jvp,
)
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, right_gradients, starts_of

MODES = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "enable_grad": torch.enable_grad}
# What a hook makes of the .grad of its leaf, as a function of the leaf, and of the value in NumPy.
ACTIONS = {
    "doubled in place": (lambda x: x.grad.mul_(2), lambda g: 2 * g),
    "replaced": (lambda x: setattr(x, "grad", -x.grad), lambda g: -g),
    "removed": (lambda x: setattr(x, "grad", None), lambda g: None),
    "read": (lambda x: x.grad, lambda g: g),
}


@keeps("HOOK-12")
def test_post_accumulate_hooks_change_the_grad(subject, data):
    """What a hook makes of .grad is what the next pass adds to; its grad mode is that of create_graph."""
    polynomial = subject.polynomial(data, max_arguments=3)
    count = len(polynomial.tracked)
    actions = subject.draw(data, st.lists(st.sampled_from(tuple(ACTIONS)), min_size=count, max_size=count), "actions")
    create = subject.draw(data, st.booleans(), "create_graph")
    passes = subject.draw(data, (1, 2), "passes")
    enabled = subject.draw(data, (False, True), "enable_grad within the hook")
    leaves = new_leaves(subject, polynomial)
    tracked = [x for x in leaves if x.requires_grad]
    modes = []

    def hook(x, act):
        modes.append(torch.is_grad_enabled())
        with torch.enable_grad() if enabled else torch.set_grad_enabled(create):
            modes.append(torch.is_grad_enabled())
            act(x)

    for x, action in zip(tracked, actions, strict=True):
        x.register_post_accumulate_grad_hook(lambda x, act=ACTIONS[action][0]: hook(x, act))
    starts, given = starts_of(subject, polynomial, subject.call_of(polynomial)(*leaves))
    expected = [None] * count
    for _ in range(passes):
        torch.autograd.backward(starts, given, retain_graph=True, create_graph=create)
        pairs = zip(expected, right_gradients(polynomial), actions, strict=True)
        expected = [ACTIONS[action][1](g if so_far is None else so_far + g) for so_far, g, action in pairs]
    got = [None if x.grad is None else x.grad.detach() for x in tracked]
    subject.assert_all_same(".grad", got=got, expected=[None if g is None else np.asarray(g) for g in expected])
    what = "grad mode in the hooks, and within a block of them"
    subject.assert_equal(what, got=modes, expected=[create, enabled or create] * count * passes)


@keeps("HOOK-12", variant="step")
def test_post_accumulate_hooks_change_the_leaf(subject, data):
    """A hook may change its leaf in place, as an optimizer does, and remove .grad."""
    polynomial = subject.polynomial(data, max_arguments=3, powers=(1,))
    rate = subject.draw(data, (1, -2), "rate")
    leaves = new_leaves(subject, polynomial)

    def step(x):
        x.sub_(x.grad, alpha=rate)
        x.grad = None

    [x.register_post_accumulate_grad_hook(step) for x in leaves if x.requires_grad]
    starts, given = starts_of(subject, polynomial, subject.call_of(polynomial)(*leaves))
    subject.assert_accepted(lambda: torch.autograd.backward(starts, given), "a hook that changes its leaf in place")
    pairs = zip(polynomial.tracked, right_gradients(polynomial), strict=True)
    expected = [np.asarray(polynomial.values[i] - rate * g) for i, g in pairs]
    got = [x for x in leaves if x.requires_grad]
    subject.assert_all_same("leaves after a step", got=[x.detach() for x in got], expected=expected)
    subject.assert_equal(".grad after a step", got=[x.grad for x in got], expected=[None] * len(got))


@keeps("LEAF-01")
def test_outputs_of_a_recorded_call_are_no_leaves(subject, data):
    """is_leaf is False, and grad_fn a node, for differentiable outputs of a recorded call alone."""
    polynomial = subject.polynomial(data, separate=None)
    mode = subject.draw(data, MODES, "mode of the call")
    leaves = new_leaves(subject, polynomial)
    with MODES[mode]():
        outputs = subject.call_of(polynomial)(*leaves)
    recorded = mode == "enable_grad"
    tensors = [*leaves, *(y for y in outputs if isinstance(y, torch.Tensor))]
    kinds = ["leaf"] * len(leaves) + [kind for kind in polynomial.outputs if kind != "static"]
    expected = [not (recorded and kind == "float") for kind in kinds]
    subject.assert_equal("is_leaf of arguments and outputs", got=[x.is_leaf for x in tensors], expected=expected)
    got = [x.grad_fn is None for x in tensors]
    subject.assert_equal("arguments and outputs without a grad_fn", got=got, expected=expected)
    if recorded:
        starts, given = starts_of(subject, polynomial, outputs)
        torch.autograd.backward(starts, given)
        got = [x.grad is not None for x in tensors]
        wanted = [leaf and x.requires_grad for x, leaf in zip(tensors, expected, strict=True)]
        subject.assert_equal("arguments and outputs with a .grad", got=got, expected=wanted)


@keeps("LEAF-02")
def test_requires_grad_is_set_of_leaves_alone(subject, data):
    """requires_grad_ returns its tensor and sets the flag of a leaf; that of an output can be set to True alone."""
    polynomial = subject.polynomial(data, separate=None)
    leaves = new_leaves(subject, polynomial)
    outputs = subject.call_of(polynomial)(*leaves)
    floats = {f"argument {i}": leaves[polynomial.tensors.index(i)] for i in polynomial.floating}
    made = {f"output {o}": outputs[o] for o in polynomial.float_outputs}
    name = subject.draw(data, {**floats, **made}, "tensor")
    flag = subject.draw(data, (True, False, None), "flag, None for the default")
    assignable = flag is False or (flag is True and name in floats)
    assigned = subject.draw(data, (False, assignable), "requires_grad is assigned")
    x = {**floats, **made}[name]
    node = x.grad_fn

    def act():
        if assigned:
            x.requires_grad = flag
            return x
        return x.requires_grad_() if flag is None else x.requires_grad_(flag)

    if name in made and flag is False:
        subject.assert_raises(RuntimeError, act, "requires_grad=False of an output", naming=[("leaf", "leaves")])
        subject.assert_equal("requires_grad of the output", got=x.requires_grad, expected=True)
    else:
        got = subject.assert_accepted(act, "setting requires_grad")
        subject.assert_equal("whether requires_grad_ returns its tensor", got=got is x, expected=True)
        subject.assert_equal("requires_grad", got=x.requires_grad, expected=flag is not False)
    subject.assert_equal("whether grad_fn is as before", got=x.grad_fn is node, expected=True)


@keeps("LEAF-03")
def test_retains_grad_is_of_tensors_that_are_no_leaves(subject, data):
    """retain_grad sets retains_grad of outputs, does nothing to a leaf, and raises without requires_grad."""
    polynomial = subject.polynomial(data, separate=None)
    leaves = new_leaves(subject, polynomial)
    outputs = subject.call_of(polynomial)(*leaves)
    tensors = [*leaves, *(outputs[o] for o in polynomial.float_outputs)]
    kept = subject.draw(data, st.sets(st.sampled_from(range(len(tensors)))), "tensors that retain their grad")
    times = subject.draw(data, (1, 2), "calls of retain_grad")
    for x in [x for i, x in enumerate(tensors) if i in kept for _ in range(times)]:
        if x.requires_grad:
            subject.assert_accepted(x.retain_grad, "retain_grad")
        else:
            what = "retain_grad of what does not require grad"
            subject.assert_raises(RuntimeError, x.retain_grad, what, naming=["requires_grad"])
    expected = [i in kept and i >= len(leaves) for i in range(len(tensors))]
    subject.assert_equal("retains_grad", got=[x.retains_grad for x in tensors], expected=expected)
    starts, given = starts_of(subject, polynomial, outputs)
    torch.autograd.backward(starts, given)
    got = [x.grad for x in tensors if x.requires_grad]
    cotangents = [g for g in polynomial.cotangents() if g is not None]
    retained = [g if i + len(leaves) in kept else None for i, g in enumerate(cotangents)]
    subject.assert_all_same(".grad", got=got, expected=[*right_gradients(polynomial), *retained])


def _moving(subject, data, check):
    """``check(polynomial, leaves, outputs, tangents)`` of a call that is recorded, in forward mode or not."""
    polynomial = drawn_jvp_function(subject, data)
    moves = subject.draw(data, st.booleans(), "forward mode")
    leaves = new_leaves(subject, polynomial)
    function = subject.call_of(polynomial, with_jvp(subject, polynomial))
    if not moves:
        return check(polynomial, leaves, function(*leaves), None)
    tangents = drawn_tangents(subject, data, polynomial)
    given = subject.tensors([tangents[i] for i in polynomial.tensors], polynomial.dtype)
    with forward_ad.dual_level():
        pairs = zip(leaves, given, strict=True)
        duals = [x if t is None else forward_ad.make_dual(x, t) for x, t in pairs]
        return check(polynomial, leaves, function(*duals), expected_tangents(polynomial, tangents))


def _tangent(x):
    return forward_ad.unpack_dual(x).tangent if forward_ad._current_level >= 0 else None


@keeps("LEAF-04")
def test_what_is_detached_has_neither_history_nor_tangent(subject, data):
    """detach gives a leaf with the memory of its tensor, which counts as a constant and leaves the tensor alone."""

    def check(polynomial, leaves, outputs, tangents):
        output = subject.draw(data, polynomial.float_outputs, "output")
        y = outputs[output]
        got = y.detach()
        subject.assert_same("what detach gives", got=got, expected=polynomial.forward()[output])
        facts = (got.requires_grad, got.grad_fn, got.is_leaf, _tangent(got))
        what = "requires_grad, grad_fn, is_leaf and tangent of what detach gives"
        subject.assert_equal(what, got=facts, expected=(False, None, True, None))
        shared = got.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
        subject.assert_equal("whether it shares the memory of its tensor", got=shared, expected=True)
        if tangents:
            subject.assert_same("tangent of the tensor", got=_tangent(y), expected=tangents[output])
        tracked = [x for x in leaves if x.requires_grad]
        weights = polynomial.cotangents([o == output for o in range(len(outputs))])
        found = torch.autograd.grad(y + got, tracked, subject.tensors(weights, polynomial.dtype)[output])
        subject.assert_all_same("gradients", got=found, expected=right_gradients(polynomial, weights))

    _moving(subject, data, check)


@keeps("LEAF-05")
def test_detach_in_place_makes_an_output_a_leaf(subject, data):
    """detach_ takes history and tangent from its tensor, and from no other output of the call."""

    def check(polynomial, leaves, outputs, tangents):
        output = subject.draw(data, polynomial.float_outputs, "output")
        y = outputs[output]
        got = subject.assert_accepted(y.detach_, "detach_ of an output")
        subject.assert_equal("whether detach_ returns its tensor", got=got is y, expected=True)
        facts = (y.requires_grad, y.grad_fn, y.is_leaf, _tangent(y))
        what = "requires_grad, grad_fn, is_leaf and tangent of the output"
        subject.assert_equal(what, got=facts, expected=(False, None, True, None))
        subject.assert_same("the output", got=y, expected=polynomial.forward()[output])
        others = [o for o in polynomial.float_outputs if o != output]
        if tangents:
            got = [_tangent(outputs[o]) for o in others]
            subject.assert_all_same("tangents of other outputs", got=got, expected=[tangents[o] for o in others])
        if others:
            weights = polynomial.cotangents([o in others for o in range(len(outputs))])
            starts, given = starts_of(subject, polynomial, outputs, weights)
            found = torch.autograd.grad(starts, [x for x in leaves if x.requires_grad], given)
            subject.assert_all_same("gradients", got=found, expected=right_gradients(polynomial, weights))

    _moving(subject, data, check)


VIEWS = {
    "view_as": lambda y: y.view_as(y),
    "indexed": lambda y: y[...],
    "expanded": lambda y: y.expand(2, *y.shape),
    "flattened": lambda y: y.reshape(-1),
}


@keeps("LEAF-05", variant="views")
def test_views_cannot_be_detached_in_place(subject, data):
    """detach_ of a view raises, whether forward returned it or it was made of an output."""
    inside = subject.draw(data, (False, True), "forward returns the view")
    view = subject.draw(data, VIEWS, "view")
    polynomial = subject.polynomial(data, arguments=("tracked",), max_arguments=1, max_outputs=1)
    (x,) = new_leaves(subject, polynomial)
    if inside:
        y = subject.custom(forward=lambda ctx, x: VIEWS[view](x), backward=lambda ctx, g: g.reshape(x.shape))(x)
    else:
        y = VIEWS[view](subject.call_of(polynomial)(x)[0])
    subject.assert_raises(RuntimeError, y.detach_, "detach_ of a view", naming=[("view", "views")])
    subject.assert_equal("whether it still requires grad", got=y.requires_grad, expected=True)
