"""Outputs that are views: their bases, and several of them from one call."""

from functools import partial

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._inplace_and_views import (
    IN_PLACE,
    NONEMPTY,
    TEMPORARY,
    VIEWS,
    applied,
    double_in_place,
    drawn_passing,
    with_history,
)


@keeps("VIEW-01", variant="base")
def test_the_base_of_a_returned_input_is_that_input(subject, data):
    """The _base of a returned input is that input, or the input's own base."""
    function = drawn_passing(subject, data, "itself")
    check_bases(subject, data, function)


@keeps("VIEW-02", variant="base")
def test_the_base_of_a_returned_input_that_requires_no_grad_is_that_input(subject, data):
    """The _base of a returned input that does not require grad is that input, or the input's own base."""
    function = drawn_passing(subject, data, "itself", argument="fixed", others=("new", "itself"))
    check_bases(subject, data, function)


def check_bases(subject, data, function):
    """The base of each returned input is that input, or the input's own base."""
    nested = subject.draw(data, (False, True), "arguments are views")
    run = applied(subject, function, lambda _, x: with_history(x)[None][0] if nested else with_history(x))
    bases = [x._base if nested else x for x in run.arguments]
    expected = [i if recipe == "itself" else None for recipe, i in function.outputs]
    got = [next((i for i, base in enumerate(bases) if y._base is base), None) for y in run.outputs]
    subject.assert_equal("arguments that are bases of the outputs", got=got, expected=expected)


@keeps("VIEW-05")
def test_none_of_several_views_may_be_changed(subject, data):
    """If one call returns several views, changing any of them raises; other outputs can be changed."""
    recipes = ("itself", *VIEWS, *TEMPORARY)
    function = drawn_passing(subject, data, *recipes, others=("new", *recipes), outputs=2, shapes=NONEMPTY)
    outputs = applied(subject, function).outputs
    for y, (recipe, _) in zip(outputs, function.outputs, strict=True):
        if recipe == "new":
            subject.assert_accepted(partial(double_in_place, y), "changing an output that is not a view in place")
        else:
            what = "changing one of several views in place"
            subject.assert_raises(
                RuntimeError, partial(double_in_place, y), what, naming=["view", "multiple", IN_PLACE]
            )
