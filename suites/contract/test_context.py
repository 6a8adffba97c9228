"""ctx: one object in all methods of a call, and what the methods of ctx leave on it."""

import operator
from itertools import accumulate

from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._ctx_observers import (
    THREE,
    doubled,
    observing_ctx,
    run_forward_mode,
    three_tensors,
)

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text("xyz", max_size=3), st.lists(st.integers(0, 9), max_size=3)
)
ATTRIBUTES = st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, min_size=1, max_size=3)

# Several calls of one method of ctx: the positions of the tensors that each gets.
CALLS = st.lists(st.lists(st.integers(0, 2), unique=True, max_size=3), min_size=2, max_size=3)


def _store(ctx, attributes):
    for name, value in attributes.items():
        setattr(ctx, name, value)


def _read(ctx, attributes):
    return {name: getattr(ctx, name, "missing") for name in attributes}


def _run_backward(subject, polynomial, cls):
    subject.run(polynomial, cls=cls).gradients(polynomial.cotangents())


# How to run each of the methods that read ctx.
RUNS = {"backward": _run_backward, "jvp": run_forward_mode}


@keeps("CTX-01")
def test_one_ctx_carries_any_attribute(subject, data):
    """An attribute stored on ctx is the same object in backward or jvp, and ctx itself is the same object."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed"), separate=None)
    attributes = subject.draw(data, ATTRIBUTES, "stored on ctx")
    method = subject.draw(data, tuple(RUNS), "read in")
    given, taken, read = [], [], []

    def enter(ctx, *_):
        given.append(ctx)
        _store(ctx, attributes)

    def leave(ctx):
        taken.append(ctx)
        found = _read(ctx, attributes)
        read.append([(found[name], found[name] is value) for name, value in attributes.items()])

    RUNS[method](subject, polynomial, observing_ctx(subject, polynomial, enter, leave))
    what = f"attributes of ctx in {method}, and whether they are the objects stored"
    subject.assert_equal(what, got=read, expected=[[(value, True) for value in attributes.values()]])
    subject.assert_that(all(map(operator.is_, given, taken)), f"ctx of {method}", got=taken[0], expected=given[0])


@keeps("CTX-02", needs="context")
def test_ctx_is_the_node(subject, data):
    """ctx is the grad_fn of every output, in forward and in backward, and not an instance of the class."""
    polynomial = subject.polynomial(data, separate=None)
    seen = []
    cls = observing_ctx(subject, polynomial, lambda ctx, *_: seen.append(ctx), seen.append)
    run = subject.run(polynomial, cls=cls)
    run.gradients(polynomial.cotangents())
    pairs = zip(polynomial.outputs, run.outputs, strict=True)
    nodes = [subject.implementation.node(y) for kind, y in pairs if kind == "float"]
    got = [(type(ctx).__name__, isinstance(ctx, cls), [ctx is node for node in nodes]) for ctx in seen]
    expected = [(type(nodes[0]).__name__, False, [True] * len(nodes))] * 2
    what = "ctx of forward and of backward: type, whether it is a Watched, and whether it is each output's grad_fn"
    subject.assert_equal(what, got=got, expected=expected)


@keeps("CTX-03")
def test_attributes_survive_backward(subject, data):
    """Each further backward reads the attributes as the backward before it left them."""
    polynomial = subject.polynomial(data, separate=None)
    attributes = subject.draw(data, ATTRIBUTES, "stored in forward")
    changes = subject.draw(data, st.lists(ATTRIBUTES, min_size=1, max_size=3), "stored in each backward")
    read, coming = [], iter(changes)

    def leave(ctx):
        read.append(_read(ctx, attributes))
        _store(ctx, next(coming))

    run = subject.run(
        polynomial, cls=observing_ctx(subject, polynomial, lambda ctx, *_: _store(ctx, attributes), leave)
    )
    for _ in changes:
        run.gradients(polynomial.cotangents())
    held = accumulate(changes[:-1], operator.or_, initial=attributes)
    expected = [{name: values[name] for name in attributes} for values in held]
    subject.assert_equal("attributes of ctx in each backward", got=read, expected=expected)


@keeps("CTX-04")
def test_the_last_save_counts(subject, data):
    """After several calls of a save method, saved_tensors holds what the last call saved."""
    name = subject.draw(data, ("save_for_backward", "save_for_forward"), "method of ctx")
    calls = subject.draw(data, CALLS, "tensors of each call")
    separate = subject.draw(data, st.booleans(), "separate style")
    saved = []

    def mark(ctx, inputs, _):
        for positions in calls:
            getattr(ctx, name)(*(inputs[i] for i in positions))

    f = three_tensors(subject, doubled, mark, lambda ctx: saved.extend(ctx.saved_tensors), separate)
    tensors = subject.tensors(THREE)
    if name == "save_for_forward":
        subject.implementation.jvp(f, tensors, tensors)
    else:
        subject.implementation.vjp(f, tensors)[1](tensors)
    subject.assert_all_same("ctx.saved_tensors", got=saved, expected=[THREE[i] for i in calls[-1]])


@keeps("CTX-04", variant="marked", needs="requires_grad")
def test_the_last_mark_of_outputs_counts(subject, data):
    """After several calls of mark_non_differentiable, only the outputs of the last call do not require grad."""
    calls = subject.draw(data, CALLS, "outputs of each call of mark_non_differentiable")
    separate = subject.draw(data, st.booleans(), "separate style")

    def mark(ctx, _, outputs):
        for positions in calls:
            ctx.mark_non_differentiable(*(outputs[i] for i in positions))

    outputs, _ = subject.implementation.vjp(
        three_tensors(subject, doubled, mark, separate=separate), subject.tensors(THREE)
    )
    got = [subject.implementation.requires_grad(y) for y in outputs]
    expected = [i not in calls[-1] for i in range(3)]
    subject.assert_equal("requires_grad of the outputs", got=got, expected=expected)


@keeps("CTX-04", variant="dirty")
def test_the_last_mark_of_inputs_counts(subject, data):
    """After several calls of mark_dirty, only the inputs of the last call have a higher version."""
    calls = subject.draw(data, CALLS, "inputs of each call of mark_dirty")
    separate = subject.draw(data, st.booleans(), "separate style")
    tensors = subject.tensors(THREE)

    def mark(ctx, inputs, _):
        for positions in calls:
            ctx.mark_dirty(*(inputs[i] for i in positions))

    before = [subject.implementation.version(x) for x in tensors]
    three_tensors(subject, tuple, mark, separate=separate)(*tensors)
    after = [subject.implementation.version(x) for x in tensors]
    expected = [version + (i in calls[-1]) for i, version in enumerate(before)]
    subject.assert_equal("versions of the inputs", got=after, expected=expected)


@keeps("CTX-06")
def test_saved_tensors_is_empty_where_they_are_saved(subject, data):
    """ctx.saved_tensors is empty right after save_for_backward, in forward or setup_context."""
    polynomial = subject.polynomial(data, separate=None)
    seen = []
    subject.run(polynomial, cls=observing_ctx(subject, polynomial, lambda ctx, *_: seen.append(ctx.saved_tensors)))
    subject.assert_equal("ctx.saved_tensors right after save_for_backward", got=seen, expected=[()])
