"""tf.vectorized_map and tf.map_fn of functions with a custom gradient."""

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.tensorflow._functions import TensorFlowCase, outputs_and_gradients


def _drawn(subject, data):
    """A function of a vector, its weight and that of its rule, and a batch of vectors; one is not vectorized."""
    case = TensorFlowCase(subject, data, arguments=1, outputs=1, shapes=((2,),))
    batch = np.arange(1.0, 1 + 2 * subject.draw(data, st.integers(2, 4), "batch")).reshape(-1, 2)
    function, ((weight,),), ((slope,),) = case.custom(), case.linear.weights, case.linear.rule
    return lambda x: function(x)[0], weight, slope, batch, subject.tensor(batch, case.linear.dtype)


@keeps("TENSORFLOW-MAP-01", examples=0.4)
def test_gradients_of_each_element(subject, data):
    """vectorized_map of a tape gives each element's value and gradient by the custom rule."""
    function, weight, slope, batch, x = _drawn(subject, data)
    outputs, (found,) = tf.vectorized_map(lambda x: outputs_and_gradients(lambda x: x * function(x), [x]), x)
    subject.assert_same("outputs", got=outputs, expected=weight * batch**2)
    subject.assert_same("gradients", got=found, expected=(weight + slope) * batch)


def _check_outside(subject, data, mapped):
    function, weight, slope, batch, x = _drawn(subject, data)
    outputs, (found,) = outputs_and_gradients(lambda x: mapped(function, x), [x])
    subject.assert_same("outputs", got=outputs, expected=weight * batch)
    subject.assert_same("gradient", got=tf.convert_to_tensor(found), expected=np.full(batch.shape, float(slope)))


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
