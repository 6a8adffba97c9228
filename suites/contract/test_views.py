"""Outputs that are arguments of the call, views of them, or views of tensors made in forward."""

import operator
from functools import partial

from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._inplace_and_views import (
    IN_PLACE,
    NONEMPTY,
    TEMPORARY,
    VIEWS,
    applied,
    double_in_place,
    drawn_passing,
    drawn_preparation,
)


def returned(function):
    """For each output, the position of the argument that it is or that it is a view of, None for another tensor."""
    return tuple(i if recipe in ("itself", *VIEWS) else None for recipe, i in function.outputs)


@keeps("VIEW-01")
def test_a_returned_input_comes_back_as_a_view(subject, data):
    """A returned input comes back as a view with the call's node; the input keeps its own."""
    function = drawn_passing(subject, data, "itself", shapes=NONEMPTY)
    prepare = drawn_preparation(subject, data)
    run = applied(subject, function, lambda _, x: prepare(x))
    subject.assert_equal("arguments among the outputs", got=run.identities, expected=(None,) * len(run.outputs))
    what = "arguments whose memory the outputs share"
    subject.assert_equal(what, got=run.sharing, expected=returned(function))
    nodes = [subject.implementation.node(y) is run.ctx for y in run.outputs]
    subject.assert_equal("outputs whose node is that of the call", got=nodes, expected=[True] * len(nodes))
    subject.assert_equal("arguments that kept their node", got=run.kept, expected=(True,) * len(run.kept))
    subject.assert_all_same("outputs", got=run.outputs, expected=function.forward())
    cotangents = function.cotangents()
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=function.vjp(cotangents))


@keeps("VIEW-02", needs="tuples")
def test_a_returned_input_that_requires_no_grad_comes_back_as_a_view(subject, data):
    """A returned input that does not require grad comes back as a view too, never as the same object."""
    function = drawn_passing(subject, data, "itself", argument="fixed", others=("new", "itself"), shapes=NONEMPTY)
    run = applied(subject, function)
    subject.assert_equal("arguments among the outputs", got=run.identities, expected=(None,) * len(run.outputs))
    what = "arguments whose memory the outputs share"
    subject.assert_equal(what, got=run.sharing, expected=returned(function))
    subject.assert_all_same("outputs", got=run.outputs, expected=function.forward())
    flags = [subject.implementation.requires_grad(x) for x in (*run.arguments, *run.outputs)]
    expected = [*function.track, *[any(function.track)] * len(run.outputs)]
    subject.assert_equal("requires_grad of arguments and outputs", got=flags, expected=expected)


@keeps("VIEW-03")
def test_a_view_of_an_input_must_not_be_changed(subject, data):
    """Changing an output that is a view of an input raises; changing a copy of it does not."""
    check_no_change_in_place(subject, drawn_passing(subject, data, *VIEWS, shapes=NONEMPTY), VIEWS)


@keeps("VIEW-03", variant="base")
def test_a_view_of_an_input_cannot_be_used_after_its_base_was_changed(subject, data):
    """Using an output that is a view of an input raises once that input was changed."""
    function = drawn_passing(subject, data, *VIEWS, shapes=NONEMPTY)
    recorded = subject.draw(data, st.booleans(), "the change of the base is recorded")
    run = applied(subject, function)
    pairs = zip(function.outputs, run.outputs, strict=True)
    position, output = next((i, y) for (recipe, i), y in pairs if recipe in VIEWS)
    use = partial(operator.mul, output, 2)
    subject.assert_accepted(use, "use of a view before its base was changed")
    alter = double_in_place if recorded else partial(subject.implementation.fill_, value=2.0)
    alter(run.arguments[position])
    what = "use of a view after its base was changed"
    subject.assert_raises(subject.implementation.refusals, use, what, naming=["view", IN_PLACE])


@keeps("VIEW-04")
def test_a_view_of_a_temporary_must_not_be_changed(subject, data):
    """Changing an output that is a view of a tensor made in forward raises."""
    check_no_change_in_place(subject, drawn_passing(subject, data, *TEMPORARY, shapes=NONEMPTY), TEMPORARY)


def check_no_change_in_place(subject, function, recipes):
    """Outputs by these recipes cannot be changed in place, but copies of them and other outputs can."""
    outputs, refusals = applied(subject, function).outputs, subject.implementation.refusals
    views = [y for (recipe, _), y in zip(function.outputs, outputs, strict=True) if recipe in recipes]
    others = [y for (recipe, _), y in zip(function.outputs, outputs, strict=True) if recipe not in recipes]
    what = "changing the view in place"
    for y in views:
        subject.assert_raises(refusals, partial(double_in_place, y), what, naming=["view", IN_PLACE])
    for y in (*map(subject.implementation.xp.copy, views), *others):
        subject.assert_accepted(partial(double_in_place, y), "changing a copy of it or another output in place")
