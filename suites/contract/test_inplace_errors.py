"""In-place changes that raise: of leaves, of saved tensors, and those that are declared wrongly."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._inplace_and_views import (
    IN_PLACE,
    NONEMPTY,
    SAME_SHAPE,
    applied,
    drawn_change,
    with_history,
)


@keeps("DIRTY-03")
def test_backward_of_an_earlier_operation_raises_after_the_change(subject, data):
    """The backward of an operation that saved a tensor raises once a Function has changed that tensor."""
    change = drawn_change(subject, data, arguments=("changed", "tracked"), new_outputs=0)
    differentiated = subject.draw(data, change.changed, "earlier operation that is differentiated")
    run = applied(subject, change, also=lambda arguments: tuple(x * x for x in arguments))
    ones = [np.ones(change.shape)] * len(change.arguments)
    kept = [None if i in change.changed else g for i, g in enumerate(ones)]
    unused = [None] * len(run.outputs)
    got = subject.assert_accepted(partial(run.gradients, [*kept, *unused]), "backward of operations on other tensors")
    expected = [None if g is None else np.asarray(2 * x) for x, g in zip(change.values, kept, strict=True)]
    subject.assert_all_same("gradients", got=got, expected=expected)
    cotangents = [g if i == differentiated else None for i, g in enumerate(ones)]
    what = "backward of an earlier operation that saved what was changed"
    action = partial(run.gradients, [*cotangents, *unused])
    subject.assert_raises(subject.implementation.refusals, action, what, naming=[IN_PLACE])


@keeps("DIRTY-04")
def test_a_leaf_that_requires_grad_is_refused(subject, data):
    """Marking a leaf that requires grad as dirty raises, except under no_grad."""
    change = drawn_change(subject, data)
    tracked = [i for i in change.changed if change.track[i]]
    position = subject.draw(data, tracked, "argument that is a leaf")

    def prepare(i, x):
        return x if i == position else with_history(x)

    what = "marking a leaf that requires grad as dirty"
    call = partial(applied, subject, change)
    refusals = subject.implementation.refusals
    subject.assert_raises(refusals, partial(call, prepare), what, naming=["leaf"])
    subject.assert_accepted(call, "marking tensors with a history as dirty")
    subject.assert_accepted(partial(call, prepare, subject.implementation.no_grad), f"{what} under no_grad")


@keeps("DIRTY-07")
def test_a_dirty_view_has_to_be_the_only_output(subject, data):
    """A Function that changes a view and returns several tensors raises."""
    change = drawn_change(subject, data, outputs=2, shapes=NONEMPTY)
    position = subject.draw(data, change.changed, "argument that is a view")
    view = subject.draw(data, SAME_SHAPE, "view")

    def prepare(i, x):
        return view(with_history(x)) if i == position else with_history(x)

    what = "a Function that changes a view in place and has several outputs"
    call = partial(applied, subject, change)
    subject.assert_raises(subject.implementation.refusals, partial(call, prepare), what, naming=["view"])
    subject.assert_accepted(call, "a Function that changes a tensor that is not a view and has several outputs")


@keeps("DIRTY-08")
def test_what_is_dirty_has_to_be_returned(subject, data):
    """A dirty tensor that is not returned raises, also under no_grad."""
    change = drawn_change(subject, data)
    kept = subject.draw(data, change.changed, "dirty argument that is not returned")
    recorded = subject.draw(data, st.booleans(), "recorded")
    call = partial(applied, subject, under=nullcontext if recorded else subject.implementation.no_grad)
    lacking = replace(change, returned=(*(i for i in change.returned if i != kept), None))
    facts = ["dirty", ("output", "returned")]
    what = "a dirty argument that is not returned"
    subject.assert_raises(subject.implementation.refusals, partial(call, lacking), what, naming=facts)
    subject.assert_accepted(partial(call, change), "dirty arguments that are all returned")


@keeps("DIRTY-09")
def test_a_dirty_tensor_that_is_no_input_gives_a_warning(subject, data):
    """mark_dirty of a new output warns, and the values come out all the same."""
    polynomial = subject.polynomial(data, outputs=("float",))
    position = subject.draw(data, range(len(polynomial.outputs)), "output that is marked dirty")
    plain = subject.body(polynomial)
    entry = "setup_context" if polynomial.separate else "forward"

    def marking(ctx, *args):
        outputs = getattr(plain, entry)(ctx, *args)
        ctx.mark_dirty((args[1] if polynomial.separate else outputs)[position])
        return outputs

    call = partial(subject.run, polynomial, cls=subject.define(plain, **{entry: marking}))
    run = subject.assert_warns(UserWarning, call, "mark_dirty of a new tensor", naming=["mark_dirty", "input"])
    subject.assert_all_same("outputs", got=run.outputs, expected=polynomial.forward())


@keeps("DIRTY-09", variant="no-tensor")
def test_marking_what_is_no_tensor_is_an_error(subject, data):
    """mark_dirty of a non-tensor raises, at any position."""
    count = subject.draw(data, st.integers(1, 3), "number of arguments")
    position = subject.draw(data, range(count + 1), "position in mark_dirty")
    wrong = subject.draw(data, (3, 0.5, "text", None, [], ()), "what is passed there")

    def forward(ctx, also, *args):
        ctx.mark_dirty(*args[:position], *also, *args[position:])
        return args

    apply = subject.custom(forward=forward, backward=lambda ctx, *cotangents: (None, *cotangents))

    def call(*also):
        def f(*leaves):
            return apply(also, *map(with_history, leaves))

        return subject.implementation.vjp(f, subject.tensors([np.ones(2)] * count))[0]

    refusals = subject.implementation.refusals
    subject.assert_raises(refusals, partial(call, wrong), "mark_dirty of a non-tensor", naming=["mark_dirty"])
    subject.assert_accepted(call, "mark_dirty of all arguments")


@keeps("DIRTY-13")
def test_saving_what_the_same_forward_changes_later_is_an_error(subject, data):
    """Saving an input before changing it makes backward raise; saving it afterwards does not."""
    count = subject.draw(data, st.integers(1, 3), "number of arguments")
    position = subject.draw(data, range(count), "argument that is saved and changed")
    marked = subject.draw(data, st.booleans(), "mark_dirty comes before the change")

    def forward(ctx, early, *args):
        early and ctx.save_for_backward(*args)
        marked and ctx.mark_dirty(args[position])
        x = args[position]
        x *= 2
        marked or ctx.mark_dirty(x)
        early or ctx.save_for_backward(*args)
        return x

    apply = subject.custom(
        forward=forward, backward=lambda ctx, cotangent: (None, *(cotangent * x for x in ctx.saved_tensors))
    )

    def gradients(early):
        def f(*leaves):
            return apply(early, *map(with_history, leaves))

        pullback = subject.implementation.vjp(f, subject.tensors([np.ones(2)] * count))[1]
        return pullback(subject.tensors([np.ones(2)]))

    subject.assert_accepted(partial(gradients, False), "backward of a Function that saves what it has changed")
    what = "backward of a Function that changes what it has saved"
    subject.assert_raises(subject.implementation.refusals, partial(gradients, True), what, naming=[IN_PLACE])
