"""Outputs that are views as PyTorch knows them: their bases, and several of them from one call."""

from functools import partial

from autograd_conformance.harness.marks import keeps
from autograd_conformance.suites.contract._changed import (
    FULL,
    IN_PLACE,
    TEMPORARY,
    VIEWS,
    applied,
    double,
    multiplied,
    passing,
)


@keeps("VIEW-01", variant="base")
def test_the_base_of_a_returned_input_is_that_input(subject, data):
    function = passing(subject, data, "itself")
    check_bases(subject, data, function)


@keeps("VIEW-02", variant="base")
def test_so_is_that_of_one_that_requires_no_grad(subject, data):
    function = passing(subject, data, "itself", argument="fixed", others=("new", "itself"))
    check_bases(subject, data, function)


def check_bases(subject, data, function):
    """The base of each input that is returned is that input, or the base of that."""
    nested = subject.draw(data, (False, True), "arguments are views")
    run = applied(subject, function, lambda _, x: multiplied(x)[None][0] if nested else multiplied(x))
    bases = [x._base if nested else x for x in run.arguments]
    expected = [i if recipe == "itself" else None for recipe, i in function.outputs]
    got = [next((i for i, base in enumerate(bases) if y._base is base), None) for y in run.outputs]
    subject.assert_equal("arguments that are bases of the outputs", got=got, expected=expected)


@keeps("VIEW-05")
def test_none_of_several_views_may_be_changed(subject, data):
    recipes = ("itself", *VIEWS, *TEMPORARY)
    function = passing(subject, data, *recipes, others=("new", *recipes), outputs=2, shapes=FULL)
    outputs = applied(subject, function).outputs
    for y, (recipe, _) in zip(outputs, function.outputs, strict=True):
        if recipe == "new":
            subject.assert_accepted(partial(double, y), "changing an output that is no view in place")
        else:
            what = "changing one of several views in place"
            subject.assert_raises(RuntimeError, partial(double, y), what, naming=["view", "multiple", IN_PLACE])
