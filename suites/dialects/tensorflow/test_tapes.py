"""tf.GradientTape over functions with a custom gradient: what it watches, gives, refuses and keeps."""

import contextlib
import gc
import weakref

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.shared.linear import CONTAINERS, SHAPES
from autograd_conformance.suites.dialects.tensorflow._functions import (
    UNCONNECTED,
    TensorFlowCase,
    custom,
    taped,
)

NO_TENSORS = {"number": 1.0, "array": np.ones(2), "text": "text", "None": None, "object": object()}


@keeps("TENSORFLOW-TAPE-01")
def test_a_tape_gives_one_set_of_gradients_unless_it_is_persistent(subject, data):
    """A second gradient raises, or is the same again on a persistent tape."""
    case = TensorFlowCase(subject, data)
    persistent, tensors = subject.draw(data, (False, True), "persistent"), case.points
    tape, outputs = taped(case.custom(), tensors, persistent=persistent)
    case.assert_gradients_of_sum(tape.gradient(outputs, tensors))
    if persistent:
        case.assert_gradients_of_sum(tape.gradient(outputs, tensors))
    else:
        subject.assert_raises(RuntimeError, lambda: tape.gradient(outputs, tensors), "a second gradient")


@keeps("TENSORFLOW-TAPE-02")
def test_what_is_not_connected_gets_nothing(subject, data):
    """Inputs that are not watched get None, or zeros if asked for."""
    case = TensorFlowCase(subject, data, arguments=3)
    watched = subject.draw(data, st.sets(st.integers(0, 2), max_size=2), "watched inputs")
    unconnected, tensors = subject.draw(data, UNCONNECTED, "unconnected gradients"), case.points
    with tf.GradientTape() as tape:
        tape.watch([x for i, x in enumerate(tensors) if i in watched])
        outputs = case.custom()(*tensors)
    got = tape.gradient(outputs, tensors, unconnected_gradients=unconnected)
    nothing = case.linear.zeros if unconnected == tf.UnconnectedGradients.ZERO else None
    expected = [g if i in watched else nothing for i, g in enumerate(case.linear.pulled(*case.linear.ones))]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("TENSORFLOW-TAPE-03")
def test_gradients_have_the_structure_of_the_sources(subject, data):
    """The gradients come in the nested structure of the sources."""
    case = TensorFlowCase(subject, data)
    tensors, kind = case.points, subject.draw(data, CONTAINERS, "structure")
    sources = CONTAINERS[kind](tensors)
    tape, outputs = taped(case.custom(), tensors)
    got = tape.gradient(outputs, sources)
    subject.assert_accepted(lambda: tf.nest.assert_same_structure(got, sources), "the structure of the gradients")
    case.assert_gradients_of_sum(tf.nest.flatten(got))


@keeps("TENSORFLOW-TAPE-04")
def test_output_gradients_are_the_cotangents(subject, data):
    """output_gradients are the cotangents; without them they are ones."""
    case = TensorFlowCase(subject, data)
    if subject.draw(data, (False, True), "output_gradients are given"):
        case.assert_gradients(case.differentiated(case.custom(), case.cotangents)[1])
    else:
        case.assert_gradients_of_sum(case.differentiated(case.custom())[1])


@keeps("TENSORFLOW-TAPE-05")
def test_what_is_computed_while_recording_is_stopped_is_no_part_of_it(subject, data):
    """Calls within stop_recording contribute no gradient, and later calls do."""
    case = TensorFlowCase(subject, data, outputs=1)
    parts = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "parts, recorded or not")
    function, tensors = case.custom(), case.points
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = 0 * tensors[0]
        for record in parts:
            with contextlib.nullcontext() if record else tape.stop_recording():
                part = function(*tensors)[0]
            total += part
    case.assert_gradients_of_sum(tape.gradient(total, tensors, unconnected_gradients="zero"), sum(parts))


@keeps("TENSORFLOW-TAPE-06")
def test_recording_that_never_began_cannot_be_stopped(subject, data):
    """stop_recording raises on a tape that never recorded."""
    persistent = subject.draw(data, (False, True), "persistent")
    _check_stopped(subject, tf.GradientTape(persistent=persistent))


@keeps("TENSORFLOW-TAPE-06", variant="left")
def test_recording_that_is_over_cannot_be_stopped(subject, data):
    """stop_recording raises on a tape whose context was left."""
    case = TensorFlowCase(subject, data)
    _check_stopped(subject, taped(case.custom(), case.points)[0])


def _check_stopped(subject, tape):
    def stop():
        with tape.stop_recording():
            pass

    subject.assert_raises(RuntimeError, stop, "stop_recording of a tape that is not recording")


@keeps("TENSORFLOW-TAPE-07")
def test_reset_forgets_what_was_recorded(subject, data):
    """After reset only later calls contribute a gradient."""
    case = TensorFlowCase(subject, data, outputs=1)
    before, after = subject.draw(data, st.tuples(st.integers(0, 2), st.integers(0, 2)), "calls before and after")
    function, tensors = case.custom(), case.points
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = sum((function(*tensors)[0] for _ in range(before)), 0 * tensors[0])
        tape.reset()
        tape.watch(tensors)
        total += sum((function(*tensors)[0] for _ in range(after)), 0 * tensors[0])
    case.assert_gradients_of_sum(tape.gradient(total, tensors, unconnected_gradients="zero"), after)


@keeps("TENSORFLOW-TAPE-08")
def test_what_is_no_tensor_cannot_be_watched(subject, data):
    """watch raises ValueError for a non-tensor, alone or in a list."""
    value = NO_TENSORS[subject.draw(data, NO_TENSORS, "watched")]
    alongside = subject.draw(data, st.integers(0, 2), "tensors next to it")
    tape = tf.GradientTape()
    with tape:
        subject.assert_raises(
            ValueError,
            lambda: tape.watch([*subject.tensors([np.ones(2)] * alongside), value] if alongside else value),
            "watching a non-tensor",
            naming=["tensor"],
        )


@keeps("TENSORFLOW-TAPE-09")
def test_wrong_arguments_of_gradient(subject, data):
    """gradient raises TypeError for the target None and ValueError for an unknown unconnected_gradients."""
    case = TensorFlowCase(subject, data)
    tensors, unknown = case.points, subject.draw(data, ("nothing", "Zero", 0, True), "unconnected_gradients")
    tape, outputs = taped(case.custom(), tensors, persistent=True)
    subject.assert_raises(TypeError, lambda: tape.gradient(None, tensors), "the gradient of None")
    what = "an unknown value for unconnected gradients"
    action = lambda: tape.gradient(outputs, tensors, unconnected_gradients=unknown)  # noqa: E731
    subject.assert_raises(ValueError, action, what, naming=["unconnected_gradients"])


@keeps("TENSORFLOW-TAPE-10")
def test_a_variable_is_no_target(subject, data):
    """gradient raises ValueError for a variable as the target."""
    x = subject.tensor(np.full(subject.draw(data, SHAPES, "shape"), 2.0))
    variable = tf.Variable(x)
    tape, _ = taped(lambda x: x + variable, [x])
    subject.assert_raises(ValueError, lambda: tape.gradient(variable, variable), "the gradient of a variable")


@keeps("TENSORFLOW-TAPE-11")
def test_no_gradient_within_the_context(subject, data):
    """gradient raises RuntimeError within the tape's own context."""
    case = TensorFlowCase(subject, data)
    tensors = case.points
    with tf.GradientTape(persistent=subject.draw(data, (False, True), "persistent")) as tape:
        tape.watch(tensors)
        outputs = case.custom()(*tensors)
        subject.assert_raises(RuntimeError, lambda: tape.gradient(outputs, tensors), "gradient within the context")


@keeps("TENSORFLOW-TAPE-12")
def test_variables_that_a_tape_watches(subject, data):
    """A tape watches trainable variables by itself if allowed to, and others if asked to."""
    case = TensorFlowCase(subject, data, arguments=3)
    trained = subject.draw(data, st.tuples(*[st.booleans()] * 3), "variables that can be trained")
    asked = subject.draw(data, st.sets(st.integers(0, 2)), "variables watched explicitly")
    automatic = subject.draw(data, (True, False), "watch_accessed_variables")
    variables = [tf.Variable(x, trainable=flag) for x, flag in zip(case.points, trained, strict=True)]
    with tf.GradientTape(watch_accessed_variables=automatic) as tape:
        tape.watch([variables[i] for i in sorted(asked)])
        outputs = case.custom()(*(v.read_value() for v in variables))
    watched = [i in asked or (automatic and flag) for i, flag in enumerate(trained)]
    pairs = zip(case.linear.pulled(*case.linear.ones), watched, strict=True)
    expected = [g if flag else None for g, flag in pairs]
    subject.assert_all_same("gradients of the variables", got=tape.gradient(outputs, variables), expected=expected)


@keeps("TENSORFLOW-TAPE-13")
def test_watched_variables_come_in_the_order_of_their_construction(subject, data):
    """watched_variables lists the variables that were read, in construction order."""
    count = subject.draw(data, st.integers(1, 4), "variables")
    read = subject.draw(data, st.lists(st.integers(0, count - 1)), "read, in this order")
    variables = [tf.Variable(float(i)) for i in range(count)]
    with tf.GradientTape() as tape:
        for i in read:
            variables[i].read_value()
    got = [int(v.numpy()) for v in tape.watched_variables()]
    subject.assert_equal("watched variables", got=got, expected=sorted(set(read)))


class _Kept:
    """An object that a grad_fn keeps."""


def _keeping(case, kept):
    return case.custom(lambda xs, gs: (kept, case.rule(xs, gs))[1])


@keeps("TENSORFLOW-TAPE-14")
def test_what_a_tape_holds_is_released(subject, data):
    """Objects that grad_fn holds are freed after the first gradient, or with a persistent tape."""
    case = TensorFlowCase(subject, data)
    persistent, tensors = subject.draw(data, (False, True), "persistent"), case.points
    kept = [_Kept()]
    reference = weakref.ref(kept[0])
    tape, outputs = taped(_keeping(case, kept.pop()), tensors, persistent=persistent)
    alive = []

    def note():
        gc.collect(1)
        alive.append(reference() is not None)

    note()
    tape.gradient(outputs, tensors)
    note()
    del tape
    note()
    what = "whether what grad_fn keeps is there, before and after a gradient, and without the tape"
    subject.assert_equal(what, got=alive, expected=[True, persistent, False])


@keeps("TENSORFLOW-TAPE-15", examples=0.4)
def test_the_jacobian_is_made_of_the_custom_rows(subject, data):
    """The Jacobian's rows are what grad_fn gives for unit cotangents, vectorized or not."""
    shape = subject.draw(data, ((1,), (3,), (2, 2)), "shape")
    factors = subject.draw(data, st.lists(st.sampled_from((2.0, 3.0)), min_size=1, max_size=2), "factors")
    vectorized = subject.draw(data, (True, False), "experimental_use_pfor")
    tensors = subject.tensors([np.ones(shape)] * len(factors))
    function = custom(lambda *xs: sum(xs), lambda _, gs: [w * tf.cumsum(gs[0], axis=0) for w in factors])
    tape, y = taped(function, tensors, persistent=True)
    got = tape.jacobian(y, tensors, experimental_use_pfor=vectorized)
    rows = np.cumsum(np.eye(int(np.prod(shape))).reshape(*shape, *shape), axis=len(shape))
    subject.assert_all_same("Jacobians", got=got, expected=[w * rows for w in factors])


@keeps("TENSORFLOW-TAPE-16", examples=0.4)
def test_the_batch_jacobian_is_the_stack_of_those_of_the_examples(subject, data):
    """The batch Jacobian stacks the examples' Jacobians by the custom gradient."""
    batch, size = subject.draw(data, st.tuples(st.integers(1, 3), st.integers(1, 3)), "batch and size")
    vectorized = subject.draw(data, (True, False), "experimental_use_pfor")
    x = np.arange(1.0, 1 + batch * size).reshape(batch, size)
    source = subject.tensor(x)
    tape, y = taped(custom(lambda x: x, lambda xs, gs: 5 * gs[0] * xs[0]), [source], persistent=True)
    got = tape.batch_jacobian(y, source, experimental_use_pfor=vectorized)
    subject.assert_same("batch Jacobian", got=got, expected=np.stack([5 * np.diag(row) for row in x]))
