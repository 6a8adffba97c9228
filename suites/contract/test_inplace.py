"""Functions that change their arguments in place: which objects come back, with what history and version."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.changes import combination, integers
from autograd_conformance.strategies.generated_functions import SHAPES, views
from autograd_conformance.suites.contract._inplace_and_views import NONEMPTY, applied, drawn_change, with_history

# Ways to change a tensor, and how many changes autograd sees.
SEEN = {"not at all": 0, "unseen": 0, "once": 1, "twice": 2}


def alter(xp, x, how):
    """Change a tensor in place."""
    for _ in range(SEEN[how]):
        x *= 2
    if how == "unseen":
        xp.to_numpy(x)[...] = 2


@keeps("DIRTY-01")
def test_a_dirty_input_comes_back_as_itself(subject, data):
    """A dirty input comes back as the same object, with the node of the call and the right gradients."""
    change = drawn_change(subject, data)
    run = applied(subject, change)
    what = "arguments among the outputs"
    subject.assert_equal(what, got=run.identities, expected=change.returned)
    nodes = tuple(subject.implementation.node(y) is run.ctx for y in run.outputs)
    subject.assert_equal("outputs whose node is that of the call", got=nodes, expected=(True,) * len(run.outputs))
    subject.assert_all_same("outputs", got=run.outputs, expected=change.forward())
    cotangents = change.cotangents()
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=change.vjp(cotangents))


@keeps("DIRTY-02")
def test_the_version_goes_up_by_one(subject, data):
    """mark_dirty raises the version by one, in addition to the changes that autograd sees itself."""
    kinds = st.tuples(st.sampled_from(list(SEEN)), st.booleans())
    arguments = subject.draw(data, st.lists(kinds, min_size=1, max_size=3), "arguments: how changed, and if marked")
    early, recorded = (subject.draw(data, st.booleans(), label) for label in ("marked before the change", "recorded"))
    shape = subject.draw(data, SHAPES, "shape")
    apply = altering(subject, arguments, early)
    versions = []

    def f(*leaves):
        inputs = [with_history(x) for x in leaves]
        versions.extend(subject.implementation.version(x) for x in inputs)
        apply(*inputs)
        return tuple(inputs)

    leaves = subject.tensors([np.ones(shape)] * len(arguments))
    outputs, _ = subject.implementation.vjp(f, leaves, track=[recorded] * len(arguments))
    rises = [subject.implementation.version(y) - before for y, before in zip(outputs, versions, strict=True)]
    expected = [SEEN[how] + marked for how, marked in arguments]
    subject.assert_equal("rises of the version counters", got=rises, expected=expected)


def altering(subject, arguments, early):
    """A Function that changes its arguments and marks some of them dirty, before or after the change."""

    def forward(ctx, *args):
        dirty = [x for x, (_, marked) in zip(args, arguments, strict=True) if marked]
        early and ctx.mark_dirty(*dirty)
        for x, (how, _) in zip(args, arguments, strict=True):
            alter(subject.implementation.xp, x, how)
        early or ctx.mark_dirty(*dirty)
        return args

    return subject.custom(forward=forward, backward=lambda ctx, *cotangents: cotangents)


@keeps("DIRTY-06")
def test_a_dirty_view_enters_the_history_of_its_base(subject, data):
    """A change of a view as the first argument shows in the base and other views: values and gradients."""
    check_history_of_base(subject, data, arguments=("tracked", "fixed"), before=0)


@keeps("DIRTY-06", variant="behind-others")
def test_a_dirty_view_after_other_arguments_enters_the_history_of_its_base(subject, data):
    """A change of a view as a later argument shows in the base and other views: values and gradients."""
    check_history_of_base(subject, data, arguments=("tracked",), before=1)


def check_history_of_base(subject, data, **restrictions):
    """A Function changes a view: the base and another view of it have the new values and the right gradients."""
    shape = subject.draw(data, ((3,), (2, 3), (3, 1, 2)), "shape of the base")
    view, other = (subject.draw(data, views(shape, empty=False), label) for label in ("changed view", "other view"))
    change = drawn_change(subject, data, new_outputs=0, shapes=[view(np.zeros(shape)).shape], **restrictions)
    base, given = (integers((change.seed, salt), shape) for salt in (9, 10))
    (position,) = change.changed
    wholes = []

    def prepare(i, leaf):
        wholes.extend([with_history(leaf)] if i == position else [])
        return view(wholes[0]) if i == position else leaf

    run = applied(subject, change, prepare, also=lambda _: (*wholes, other(*wholes)), values={position: base})
    whole, reached = base.copy(), given.copy()
    values = [view(base) if i == position else x for i, x in enumerate(change.values)]
    view(whole)[...] = combination(change.factors[position], values, change.shape)
    subject.assert_all_same("the base and the other view", got=run.more, expected=(whole, other(whole)))
    other(reached)[...] += other(given)
    pairs = zip(change.factors[position], change.track, strict=True)
    expected = [np.asarray(factor * view(reached)) if need else None for factor, need in pairs]
    view(reached)[...] = expected[position]
    expected[position] = reached
    got = run.gradients([given, other(given), None])
    subject.assert_all_same("gradients of the arguments, for the view of its base", got=got, expected=expected)


@keeps("DIRTY-10")
def test_a_change_that_is_not_marked_goes_unnoticed(subject, data):
    """An unmarked change leaves the input's node alone, and gradients flow as if the output were a new tensor."""
    change = replace(drawn_change(subject, data, shapes=NONEMPTY), silent=True)
    run = applied(subject, change, also=tuple)
    subject.assert_all_same("arguments after the call", got=run.arguments, expected=change.changes())
    subject.assert_equal("arguments that kept their node", got=run.kept, expected=(True,) * len(run.kept))
    subject.assert_equal("arguments among the outputs", got=run.identities, expected=(None,) * len(run.outputs))
    what = "arguments whose memory the outputs share"
    subject.assert_equal(what, got=run.sharing, expected=change.returned)
    cotangents = change.cotangents()
    expected = change.vjp(cotangents)
    got = run.gradients([*[None] * len(run.arguments), *cotangents])
    subject.assert_all_same("gradients through the outputs", got=got, expected=expected)
    got = run.gradients([*change.values, *[None] * len(cotangents)])
    expected = [x if need else None for x, need in zip(change.values, change.track, strict=True)]
    subject.assert_all_same("gradients through the arguments", got=got, expected=expected)


@keeps("DIRTY-11")
def test_a_fixed_tensor_becomes_part_of_the_graph(subject, data):
    """A dirty tensor that did not require grad does so afterwards if another argument does."""
    change = drawn_change(subject, data, arguments=("changed fixed", "tracked", "fixed"), needed="changed fixed")
    run = applied(subject, change)
    flags = [subject.implementation.requires_grad(run.arguments[i]) for i in change.changed]
    expected = ["tracked" in change.arguments] * len(flags)
    subject.assert_equal("requires_grad of the changed arguments", got=flags, expected=expected)
    what = "arguments among the outputs"
    subject.assert_equal(what, got=run.identities, expected=change.returned)
    cotangents = change.cotangents()
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=change.vjp(cotangents))


@keeps("DIRTY-12")
def test_under_no_grad_a_leaf_may_be_dirty(subject, data):
    """Under no_grad a dirty leaf is changed, keeps its node, and apply returns a detached alias of it."""
    change = drawn_change(subject, data, shapes=NONEMPTY)
    kind = subject.draw(data, ("leaves", "with a history"), "arguments")
    prepare = {"leaves": lambda x: x, "with a history": with_history}[kind]
    run = applied(subject, change, prepare=lambda _, x: prepare(x), under=subject.implementation.no_grad)
    subject.assert_all_same("arguments after the call", got=run.arguments, expected=change.changes())
    subject.assert_equal("arguments that kept their node", got=run.kept, expected=(True,) * len(run.kept))
    expected = tuple(None if i is None or change.track[i] else i for i in change.returned)
    subject.assert_equal("arguments among the outputs", got=run.identities, expected=expected)
    what = "arguments whose memory the outputs share"
    subject.assert_equal(what, got=run.sharing, expected=change.returned)
    flags = [subject.implementation.requires_grad(y) for y in run.outputs]
    subject.assert_equal("requires_grad of the outputs", got=flags, expected=[False] * len(flags))


@keeps("DIRTY-14")
def test_what_is_dirty_and_constant_keeps_its_history(subject, data):
    """A dirty input that is marked non-differentiable keeps its node, and apply returns a detached alias of it."""
    whole = drawn_change(subject, data, arguments=("changed", "tracked", "fixed"), shapes=NONEMPTY)
    some = st.sets(st.sampled_from(whole.changed), min_size=1).map(sorted).map(tuple)
    constant = subject.draw(data, some, "dirty arguments that are marked non-differentiable too")
    change = replace(whole, constant=constant)
    run = applied(subject, change)
    kept = tuple(i for i, same in enumerate(run.kept) if same and i in change.changed)
    subject.assert_equal("changed arguments that kept their node", got=kept, expected=constant)
    expected = tuple(None if i in constant else i for i in change.returned)
    subject.assert_equal("arguments among the outputs", got=run.identities, expected=expected)
    what = "arguments whose memory the outputs share"
    subject.assert_equal(what, got=run.sharing, expected=change.returned)
    flags = [subject.implementation.requires_grad(y) for y in run.outputs]
    expected = [i not in constant for i in change.returned]
    subject.assert_equal("requires_grad of the outputs", got=flags, expected=expected)
    subject.assert_all_same("outputs", got=run.outputs, expected=change.forward())


@keeps("DIRTY-15")
def test_setup_context_marks_and_saves_what_forward_changed(subject, data):
    """setup_context can mark a changed input as dirty and save it as an output."""
    change = drawn_change(subject, data, separate=True)
    read = []

    def saving(plain):
        def setup_context(ctx, inputs, output):
            plain.setup_context(ctx, inputs, output)
            ctx.save_for_backward(*output)

        def backward(ctx, *cotangents):
            read[:] = ctx.saved_tensors
            return plain.backward(ctx, *cotangents)

        return subject.define(plain, setup_context=setup_context, backward=backward)

    run = applied(subject, change, wrap=saving)
    subject.assert_equal("arguments among the outputs", got=run.identities, expected=change.returned)
    nodes = tuple(subject.implementation.node(y) is run.ctx for y in run.outputs)
    subject.assert_equal("outputs whose node is that of the call", got=nodes, expected=(True,) * len(run.outputs))
    cotangents = change.cotangents()
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=change.vjp(cotangents))
    subject.assert_all_same("saved outputs", got=read, expected=change.forward())
