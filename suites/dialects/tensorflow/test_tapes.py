"""tf.GradientTape over functions with a custom gradient: what it watches, gives, refuses and keeps."""

import gc
import weakref

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._custom_rules import drawn_rule, taped

NO_TENSORS = {"number": 1.0, "array": np.ones(2), "text": "text", "None": None, "object": object()}
SOURCES = {
    "tuple": tuple,
    "list": list,
    "dict": lambda xs: dict(enumerate(xs)),
    "nested": lambda xs: ({"first": xs[0]}, [list(xs[1:])]),
}


def _drawn(subject, data, **fixed):
    """A rule, its inputs as tensors, and the gradients for cotangents of ones."""
    rule = drawn_rule(subject, data, **fixed)
    return rule, subject.tensors(rule.values, rule.dtype), rule.expected_gradients(rule.ones)


@keeps("TENSORFLOW-TAPE-01")
def test_a_tape_gives_one_set_of_gradients_unless_it_is_persistent(subject, data):
    """A second gradient raises, or is the same again on a persistent tape."""
    rule, tensors, expected = _drawn(subject, data)
    persistent = subject.draw(data, (False, True), "persistent")
    tape, outputs = taped(rule.function(), tensors, persistent=persistent)
    subject.assert_all_same("gradients", got=tape.gradient(outputs, tensors), expected=expected)
    if persistent:
        subject.assert_all_same("gradients, again", got=tape.gradient(outputs, tensors), expected=expected)
    else:
        subject.assert_raises(RuntimeError, lambda: tape.gradient(outputs, tensors), "a second gradient")


@keeps("TENSORFLOW-TAPE-02")
def test_what_is_not_connected_gets_nothing(subject, data):
    """Inputs that are not watched get None, or zeros if asked for."""
    rule, tensors, expected = _drawn(subject, data, inputs=3)
    watched = subject.draw(data, st.sets(st.integers(0, 2), max_size=2), "watched inputs")
    unconnected = subject.draw(data, tuple(tf.UnconnectedGradients), "unconnected gradients")
    with tf.GradientTape() as tape:
        tape.watch([x for i, x in enumerate(tensors) if i in watched])
        outputs = rule.function()(*tensors)
    got = tape.gradient(outputs, tensors, unconnected_gradients=unconnected)
    nothing = np.zeros(rule.shape) if unconnected == tf.UnconnectedGradients.ZERO else None
    expected = [g if i in watched else nothing for i, g in enumerate(expected)]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("TENSORFLOW-TAPE-03")
def test_gradients_have_the_structure_of_the_sources(subject, data):
    """The gradients come in the nested structure of the sources."""
    rule, tensors, expected = _drawn(subject, data)
    sources = SOURCES[subject.draw(data, SOURCES, "structure")](tensors)
    tape, outputs = taped(rule.function(), tensors)
    got = tape.gradient(outputs, sources)
    subject.assert_accepted(lambda: tf.nest.assert_same_structure(got, sources), "the structure of the gradients")
    subject.assert_all_same("gradients", got=tf.nest.flatten(got), expected=expected)


@keeps("TENSORFLOW-TAPE-04")
def test_output_gradients_are_the_cotangents(subject, data):
    """output_gradients are the cotangents; without them they are ones."""
    rule, tensors, expected = _drawn(subject, data)
    given = subject.draw(data, (False, True), "output_gradients are given")
    tape, outputs = taped(rule.function(), tensors)
    cotangents = subject.tensors(rule.cotangents, rule.dtype)
    got = tape.gradient(outputs, tensors, cotangents) if given else tape.gradient(outputs, tensors)
    expected = rule.expected_gradients(rule.cotangents) if given else expected
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("TENSORFLOW-TAPE-05")
def test_what_is_computed_while_recording_is_stopped_is_no_part_of_it(subject, data):
    """Calls within stop_recording contribute no gradient, and later calls do."""
    rule, tensors, expected = _drawn(subject, data, outputs=1)
    parts = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "parts, recorded or not")
    function = rule.function()
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = 0 * tensors[0]
        for record in parts:
            if record:
                total += function(*tensors)[0]
            else:
                with tape.stop_recording():
                    part = function(*tensors)[0]
                total += part
    got = tape.gradient(total, tensors, unconnected_gradients="zero")
    subject.assert_all_same("gradients", got=got, expected=[sum(parts) * g for g in expected])


@keeps("TENSORFLOW-TAPE-06")
def test_recording_that_never_began_cannot_be_stopped(subject, data):
    """stop_recording raises on a tape that never recorded."""
    persistent = subject.draw(data, (False, True), "persistent")
    _check_stopped(subject, tf.GradientTape(persistent=persistent))


@keeps("TENSORFLOW-TAPE-06", variant="left")
def test_recording_that_is_over_cannot_be_stopped(subject, data):
    """stop_recording raises on a tape whose context was left."""
    rule, tensors, _ = _drawn(subject, data)
    _check_stopped(subject, taped(rule.function(), tensors)[0])


def _check_stopped(subject, tape):
    def stop():
        with tape.stop_recording():
            pass

    subject.assert_raises(RuntimeError, stop, "stop_recording of a tape that is not recording")


@keeps("TENSORFLOW-TAPE-07")
def test_reset_forgets_what_was_recorded(subject, data):
    """After reset only later calls contribute a gradient."""
    rule, tensors, expected = _drawn(subject, data, outputs=1)
    before, after = subject.draw(data, st.tuples(st.integers(0, 2), st.integers(0, 2)), "calls before and after")
    function = rule.function()
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = sum((function(*tensors)[0] for _ in range(before)), 0 * tensors[0])
        tape.reset()
        tape.watch(tensors)
        total += sum((function(*tensors)[0] for _ in range(after)), 0 * tensors[0])
    got = tape.gradient(total, tensors, unconnected_gradients="zero")
    subject.assert_all_same("gradients", got=got, expected=[after * g for g in expected])


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
    rule, tensors, _ = _drawn(subject, data)
    tape, outputs = taped(rule.function(), tensors, persistent=True)
    subject.assert_raises(TypeError, lambda: tape.gradient(None, tensors), "the gradient of None")
    unknown = subject.draw(data, ("nothing", "Zero", 0, True), "unconnected_gradients")
    subject.assert_raises(
        ValueError,
        lambda: tape.gradient(outputs, tensors, unconnected_gradients=unknown),
        "an unknown value for unconnected gradients",
        naming=["unconnected_gradients"],
    )


@keeps("TENSORFLOW-TAPE-10")
def test_a_variable_is_no_target(subject, data):
    """gradient raises ValueError for a variable as the target."""
    rule, tensors, _ = _drawn(subject, data)
    variable = tf.Variable(tensors[0])
    tape, _ = taped(lambda x: rule.compute([x + variable] * rule.inputs), tensors[:1])
    subject.assert_raises(ValueError, lambda: tape.gradient(variable, variable), "the gradient of a variable")


@keeps("TENSORFLOW-TAPE-11")
def test_no_gradient_within_the_context(subject, data):
    """gradient raises RuntimeError within the tape's own context."""
    rule, tensors, _ = _drawn(subject, data)
    with tf.GradientTape(persistent=subject.draw(data, (False, True), "persistent")) as tape:
        tape.watch(tensors)
        outputs = rule.function()(*tensors)
        subject.assert_raises(RuntimeError, lambda: tape.gradient(outputs, tensors), "gradient within the context")


@keeps("TENSORFLOW-TAPE-12")
def test_variables_that_a_tape_watches(subject, data):
    """A tape watches trainable variables by itself if allowed to, and others if asked to."""
    rule, tensors, expected = _drawn(subject, data, inputs=3)
    trained = subject.draw(data, st.tuples(*[st.booleans()] * 3), "variables that can be trained")
    asked = subject.draw(data, st.sets(st.integers(0, 2)), "variables watched explicitly")
    automatic = subject.draw(data, (True, False), "watch_accessed_variables")
    variables = [tf.Variable(x, trainable=flag) for x, flag in zip(tensors, trained, strict=True)]
    with tf.GradientTape(watch_accessed_variables=automatic) as tape:
        tape.watch([variables[i] for i in sorted(asked)])
        outputs = rule.function()(*(v.read_value() for v in variables))
    watched = [i in asked or (automatic and flag) for i, flag in enumerate(trained)]
    got = tape.gradient(outputs, variables)
    expected = [g if flag else None for g, flag in zip(expected, watched, strict=True)]
    subject.assert_all_same("gradients of the variables", got=got, expected=expected)


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


def _keeping(rule, kept):
    @tf.custom_gradient
    def function(*xs):
        return rule.compute(xs), lambda *gs: (kept, rule.pull(gs))[1]

    return function


@keeps("TENSORFLOW-TAPE-14")
def test_what_a_tape_holds_is_released(subject, data):
    """Objects that grad_fn holds are freed after the first gradient, or with a persistent tape."""
    rule, tensors, _ = _drawn(subject, data)
    persistent = subject.draw(data, (False, True), "persistent")
    kept = [_Kept()]
    reference = weakref.ref(kept[0])
    tape, outputs = taped(_keeping(rule, kept.pop()), tensors, persistent=persistent)
    alive = []

    def note():
        gc.collect(1)
        alive.append(reference() is not None)

    note()
    tape.gradient(outputs, tensors)
    note()
    del tape
    note()
    subject.assert_equal(
        "whether what grad_fn keeps is there, before and after a gradient, and without the tape",
        got=alive,
        expected=[True, persistent, False],
    )


@keeps("TENSORFLOW-TAPE-15", examples=0.4)
def test_the_jacobian_is_made_of_the_custom_rows(subject, data):
    """The Jacobian's rows are what grad_fn gives for unit cotangents, vectorized or not."""
    shape = subject.draw(data, ((1,), (3,), (2, 2)), "shape")
    factors = subject.draw(data, st.lists(st.sampled_from((2.0, 3.0)), min_size=1, max_size=2), "factors")
    vectorized = subject.draw(data, (True, False), "experimental_use_pfor")

    @tf.custom_gradient
    def function(*xs):
        return sum(xs), lambda g: [w * tf.cumsum(g, axis=0) for w in factors]

    tensors = subject.tensors([np.ones(shape)] * len(factors))
    tape, y = taped(lambda *xs: function(*xs), tensors, persistent=True)
    got = tape.jacobian(y, tensors, experimental_use_pfor=vectorized)
    rows = np.cumsum(np.eye(int(np.prod(shape))).reshape(*shape, *shape), axis=len(shape))
    subject.assert_all_same("Jacobians", got=got, expected=[w * rows for w in factors])


@keeps("TENSORFLOW-TAPE-16", examples=0.4)
def test_the_batch_jacobian_is_the_stack_of_those_of_the_examples(subject, data):
    """The batch Jacobian stacks the examples' Jacobians by the custom gradient."""
    batch, size = subject.draw(data, st.tuples(st.integers(1, 3), st.integers(1, 3)), "batch and size")
    vectorized = subject.draw(data, (True, False), "experimental_use_pfor")
    x = np.arange(1.0, 1 + batch * size).reshape(batch, size)

    @tf.custom_gradient
    def function(x):
        return x, lambda g: 5 * g * x

    source = subject.tensor(x)
    tape, y = taped(function, [source], persistent=True)
    got = tape.batch_jacobian(y, source, experimental_use_pfor=vectorized)
    subject.assert_same("batch Jacobian", got=got, expected=np.stack([5 * np.diag(row) for row in x]))
