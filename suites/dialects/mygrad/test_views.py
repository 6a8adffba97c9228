"""Changes in place and views, around operations."""

import operator

import mygrad as mg
import numpy as np
from hypothesis import strategies as st
from mygrad.operation_base import Operation

from autograd_conformance.harness.testing.marks import keeps

ENTRIES = st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=2, max_size=5)
SLICES = {
    "first": slice(0, 1),
    "all": slice(None),
    "every other": slice(0, None, 2),
    "backwards": slice(None, None, -1),
}
CHANGES = {
    "filled": lambda x: operator.setitem(x, Ellipsis, 7.0),
    "doubled": lambda x: operator.imul(x, 2.0),
    "raised": lambda x: operator.iadd(x, 1.0),
}
# The derivative of each change with respect to the former values.
SLOPES = {"filled": 0.0, "doubled": 2.0, "raised": 1.0}


class _Squared(Operation):
    def __call__(self, x):
        self.variables = (x,)
        return x.data**2

    def backward_var(self, grad, index, **kwargs):
        return grad * 2 * self.variables[0].data


def _changed(values, change):
    tensor = mg.tensor(values, constant=True)
    CHANGES[change](tensor)
    return tensor.data


def _drawn(subject, data):
    """Values and a cotangent."""
    return np.transpose(subject.draw(data, ENTRIES, "values and gradient")).astype(float)


@keeps("MYGRAD-VIEW-01")
def test_a_later_change_does_not_matter(subject, data):
    """Changing a tensor, or a view of it, after an operation leaves output and gradient as they were."""
    values, g = _drawn(subject, data)
    changes = subject.draw(data, st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3), "changes")
    through = subject.draw(data, ("the tensor", "a view of it"), "changed through")
    leaf = mg.tensor(values)
    x = leaf * 1
    y = mg.execute_op(_Squared, x)
    for change in changes:
        CHANGES[change](x if through == "the tensor" else x[:])
    subject.assert_same("output", got=y, expected=values**2)
    y.backward(g)
    subject.assert_same("gradient", got=leaf.grad, expected=2 * values * g)


@keeps("MYGRAD-VIEW-02")
def test_the_gradient_of_a_view_is_a_view(subject, data):
    """The gradient of a view shares memory with its base's gradient, used or not."""
    values, g = _drawn(subject, data)
    key = SLICES[subject.draw(data, SLICES, "view")]
    used = subject.draw(data, st.booleans(), "the view takes part")
    x = mg.tensor(values)
    view = x[key]
    y = mg.execute_op(_Squared, x)
    if used:
        (y.sum() * 0 + (y * g).sum() + (mg.execute_op(_Squared, view)).sum()).backward()
    else:
        y.backward(g)
    slope = 2 * values * g
    slope[key] += 2 * values[key] * used
    subject.assert_same("gradient of the base", got=x.grad, expected=slope)
    subject.assert_same("gradient of the view", got=view.grad, expected=slope[key])
    shared = np.shares_memory(view.grad, x.grad)
    subject.assert_equal("whether the gradients share memory", got=shared, expected=True)


@keeps("MYGRAD-VIEW-03")
def test_gradients_go_back_through_a_changed_view(subject, data):
    """Changing a view changes its base, and gradients account for the change."""
    values, g = _drawn(subject, data)
    key = SLICES[subject.draw(data, SLICES, "view")]
    change = subject.draw(data, sorted(CHANGES), "change")
    leaf = mg.tensor(values)
    x = leaf * 1
    view = x[key]
    CHANGES[change](view)
    expected = values.copy()
    expected[key] = _changed(values[key], change)
    subject.assert_same("base", got=x, expected=expected)
    subject.assert_same("view", got=view, expected=expected[key])
    mg.execute_op(_Squared, x).backward(g)
    after = 2 * expected * g
    before = after.copy()
    before[key] *= SLOPES[change]
    subject.assert_same("gradient of the base", got=x.grad, expected=after)
    subject.assert_same("gradient of what it was made from", got=leaf.grad, expected=before)
