"""Outputs that are arguments of the call, views of them, or views of what forward made."""

import operator
from functools import partial

from hypothesis import strategies as st

from autograd_conformance.harness.marks import keeps
from autograd_conformance.suites.contract._changed import (
    FULL,
    IN_PLACE,
    TEMPORARY,
    VIEWS,
    applied,
    arriving,
    double,
    passing,
)


def returned(function):
    """For each output the position of the argument that it is or whose view it is, None for another tensor."""
    return tuple(i if recipe in ("itself", *VIEWS) else None for recipe, i in function.outputs)


@keeps("VIEW-01")
def test_a_returned_input_comes_back_as_a_view(subject, data):
    function = passing(subject, data, "itself", shapes=FULL)
    prepare = arriving(subject, data)
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
def test_so_does_an_input_that_requires_no_grad(subject, data):
    function = passing(subject, data, "itself", argument="fixed", others=("new", "itself"), shapes=FULL)
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
    check_no_change_in_place(subject, passing(subject, data, *VIEWS, shapes=FULL), VIEWS)


@keeps("VIEW-03", variant="base")
def test_nor_may_its_base_before_it_is_used(subject, data):
    function = passing(subject, data, *VIEWS, shapes=FULL)
    recorded = subject.draw(data, st.booleans(), "the change of the base is recorded")
    run = applied(subject, function)
    pairs = zip(function.outputs, run.outputs, strict=True)
    position, output = next((i, y) for (recipe, i), y in pairs if recipe in VIEWS)
    use = partial(operator.mul, output, 2)
    subject.assert_accepted(use, "use of a view before its base was changed")
    alter = double if recorded else partial(subject.implementation.fill_, value=2.0)
    alter(run.arguments[position])
    what = "use of a view after its base was changed"
    subject.assert_raises(subject.implementation.refusals, use, what, naming=["view", IN_PLACE])


@keeps("VIEW-04")
def test_a_view_of_a_temporary_must_not_be_changed(subject, data):
    check_no_change_in_place(subject, passing(subject, data, *TEMPORARY, shapes=FULL), TEMPORARY)


def check_no_change_in_place(subject, function, recipes):
    """Outputs by these recipes cannot be changed in place, but copies of them and other outputs can."""
    outputs, refusals = applied(subject, function).outputs, subject.implementation.refusals
    views = [y for (recipe, _), y in zip(function.outputs, outputs, strict=True) if recipe in recipes]
    others = [y for (recipe, _), y in zip(function.outputs, outputs, strict=True) if recipe not in recipes]
    what = "changing the view in place"
    for y in views:
        subject.assert_raises(refusals, partial(double, y), what, naming=["view", IN_PLACE])
    for y in (*map(subject.implementation.xp.copy, views), *others):
        subject.assert_accepted(partial(double, y), "changing a copy of it or another output in place")
