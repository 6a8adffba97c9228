"""tf.vectorized_map and tf.map_fn of functions with a custom gradient."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._custom_rules import drawn_rule, outputs_and_gradients


def _drawn(subject, data):
    """A function of one vector with its rule, and a batch of at least two vectors; a single one is not vectorized."""
    rule = drawn_rule(subject, data, inputs=1, outputs=1, shape=(2,))
    batch = np.arange(1.0, 1 + 2 * subject.draw(data, st.integers(2, 4), "batch")).reshape(-1, 2)
    function = rule.function()
    return rule, lambda x: function(x)[0], batch


@keeps("TENSORFLOW-MAP-01", examples=0.4)
def test_gradients_of_each_element(subject, data):
    """vectorized_map of a tape gives each element's value and gradient by the custom rule."""
    rule, function, batch = _drawn(subject, data)
    outputs, (found,) = tf.vectorized_map(
        lambda x: outputs_and_gradients(lambda x: x * function(x), [x]), subject.tensor(batch, rule.dtype)
    )
    forward, backward = rule.forward[0, 0], rule.backward[0, 0]
    subject.assert_same("outputs", got=outputs, expected=forward * batch**2)
    subject.assert_same("gradients", got=found, expected=(forward + backward) * batch)


def _check_outside(subject, data, mapped):
    rule, function, batch = _drawn(subject, data)
    x = subject.tensor(batch, rule.dtype)
    outputs, (found,) = outputs_and_gradients(lambda x: mapped(function, x), [x])
    subject.assert_same("outputs", got=outputs, expected=rule.forward[0, 0] * batch)
    subject.assert_same("gradient", got=tf.convert_to_tensor(found), expected=np.full(batch.shape, rule.backward[0, 0]))


@keeps("TENSORFLOW-MAP-02", examples=0.4)
def test_a_vectorized_map_keeps_the_custom_gradient(subject, data):
    """A tape around vectorized_map uses the custom gradient."""
    _check_outside(subject, data, tf.vectorized_map)


@keeps("TENSORFLOW-MAP-02", variant="map_fn", examples=0.4)
def test_a_map_keeps_the_custom_gradient(subject, data):
    """A tape around map_fn uses the custom gradient."""
    _check_outside(subject, data, tf.map_fn)


@keeps("TENSORFLOW-MAP-03", examples=0.4)
def test_elements_without_entries(subject, data):
    """vectorized_map of a product with empty elements gives the right shape."""
    inner = subject.draw(data, st.integers(0, 2), "columns of an element")
    width = subject.draw(data, st.integers(inner + 1, 4), "columns of its product")
    elements, matrix = subject.tensor(np.zeros((2, 0, inner))), subject.tensor(np.ones((inner, width)))
    got = tf.vectorized_map(lambda x: x @ matrix, elements)
    subject.assert_equal("shape of the products of empty elements", got=tuple(got.shape), expected=(2, 0, width))
