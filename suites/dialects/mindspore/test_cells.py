"""Cells with a ``bprop``, in PyNative mode and compiled."""

import mindspore as ms
import numpy as np
from hypothesis import strategies as st
from mindspore import nn

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.mindspore._weighted_functions import drawn, gradients

PAIR = {"min_arguments": 2, "max_arguments": 2, "max_outputs": 1}


class Pair(nn.Cell):
    """A product whose gradients are ``factor`` times too large; a class, because compilers read its source."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return self.factor * dout * y, self.factor * dout * x


class PairWithout(Pair):
    """The same without a gradient for the second argument."""

    def bprop(self, x, y, out, dout):
        return self.factor * dout * y, None


def _compiled(cell):
    @ms.jit
    def call(x, y):
        return cell(x, y)

    return call


@keeps("MINDSPORE-CELL-01")
def test_gradients_are_what_bprop_returns(subject, data):
    """The gradients of a cell are what its bprop returns, even if that is not the derivative."""
    case, xs = drawn(subject, data)
    got = gradients(subject, case, case.cell(), *xs)
    subject.assert_all_same("gradients", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-CELL-01", variant="within")
def test_bprop_counts_within_other_operations(subject, data):
    """The bprop also applies if the cell is called within other operations."""
    case, xs = drawn(subject, data)
    scale = subject.draw(data, (2, -3), "what the arguments are multiplied with")
    cell = case.cell()
    got = gradients(subject, case, lambda *xs: cell(*(scale * x for x in xs)), *xs)
    expected = case.backward([scale * x for x in case.arrays], case.cotangents())
    subject.assert_all_same("gradients", got=got, expected=[scale * g for g in expected])


@keeps("MINDSPORE-CELL-02")
def test_bprop_gets_arguments_output_and_gradient(subject, data):
    """bprop gets the arguments, the output and its gradient: bare for one output, tuples for several."""
    case, xs = drawn(subject, data)
    seen = []

    def bprop(*given):
        seen.append(given)
        return given[: case.count]

    gradients(subject, case, case.cell(bprop), *xs)
    *args, out, dout = seen[0]
    subject.assert_all_same("arguments in bprop", got=args, expected=case.arrays)
    several = len(case.weights) > 1
    subject.assert_equal("whether out and dout are tuples", got=(type(out) is tuple, type(dout) is tuple),
                         expected=(several, several))  # fmt: skip
    outs, douts = (out, dout) if several else ((out,), (dout,))
    subject.assert_all_same("out", got=outs, expected=case.forward(case.arrays))
    subject.assert_all_same("dout", got=douts, expected=case.cotangents())


@keeps("MINDSPORE-CELL-03")
def test_fewer_gradients_than_inputs_raise(subject, data):
    """A bprop that returns too few gradients raises, and the error names both numbers."""
    case, xs = drawn(subject, data, min_arguments=2)
    kept = subject.draw(data, range(1, case.count), "number of gradients returned")
    short = case.cell(lambda *given: given[:kept])
    what = f"a bprop that returns {kept} of {case.count} gradients"
    subject.assert_raises(RuntimeError, lambda: gradients(subject, case, short, *xs), what, naming=[kept, case.count])


@keeps("MINDSPORE-CELL-04")
def test_none_stands_for_no_gradient(subject, data):
    """None from bprop gives a gradient of zeros."""
    case, xs = drawn(subject, data)
    absent = subject.draw(data, st.sets(st.sampled_from(range(case.count)), min_size=1), "positions that get None")

    def without(found):
        return tuple(None if i in absent else g for i, g in enumerate(found))

    cell = case.cell(lambda *given: without(given[: case.count]))
    got = gradients(subject, case, cell, *xs)
    expected = [np.zeros(case.shape) if g is None else g for g in without(case.arrays)]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("MINDSPORE-CELL-04", variant="compiled", examples=0.2)
def test_none_stands_for_no_gradient_where_it_is_compiled(subject, data):
    """None from bprop gives a gradient of zeros in a compiled cell too."""
    case, xs = drawn(subject, data, **PAIR)
    cell = PairWithout(case.factor)
    got = gradients(subject, case, _compiled(cell), *xs)
    (g,), (_, y) = case.cotangents(), case.arrays
    subject.assert_all_same("gradients", got=got, expected=[case.factor * g * y, np.zeros(case.shape)])


@keeps("MINDSPORE-CELL-05", examples=0.2)
def test_bprop_is_compiled_with_its_cell(subject, data):
    """The bprop applies if the call of the cell is compiled."""
    case, xs = drawn(subject, data, **PAIR)
    (g,), (x, y) = case.cotangents(), case.arrays
    got = gradients(subject, case, _compiled(Pair(case.factor)), *xs)
    subject.assert_all_same("gradients", got=got, expected=[case.factor * g * y, case.factor * g * x])


@keeps("MINDSPORE-CELL-05", variant="inside", examples=0.2)
def test_bprop_counts_where_the_gradient_is_compiled(subject, data):
    """The bprop applies if the function that takes the gradient is compiled."""
    case, xs = drawn(subject, data, **PAIR)
    cell = Pair(case.factor)

    @ms.jit
    def differentiated(x, y):
        return ms.grad(cell, (0, 1))(x, y)

    x, y = case.arrays
    subject.assert_all_same("gradients", got=differentiated(*xs), expected=[case.factor * y, case.factor * x])


@keeps("MINDSPORE-CELL-06")
def test_bprop_is_differentiated_in_its_turn(subject, data):
    """Second derivatives differentiate the operations of bprop."""
    case, xs = drawn(subject, data)
    cell, other = case.cell(), case.cotangents(salt=2)[0]
    got = ms.vjp(lambda *xs: gradients(subject, case, cell, *xs), *xs)[1](
        *subject.tensors([other] * case.count, case.dtype)
    )
    expected = case.backward([other] * case.count, case.cotangents())
    subject.assert_all_same("second derivatives", got=got, expected=expected)


@keeps("MINDSPORE-CELL-07")
def test_gradients_are_summed_and_cast_to_their_input(subject, data):
    """Gradients with extra leading sizes or another dtype are summed and cast to their input."""
    case, xs = drawn(subject, data)
    more = subject.draw(data, st.lists(st.integers(1, 3), max_size=2).map(tuple), "leading sizes of the gradients")
    dtype = subject.draw(data, ("float64", "float32", "int64"), "their dtype")

    def bprop(*given):
        return tuple(ms.ops.broadcast_to(x, more + case.shape).astype(getattr(ms, dtype)) for x in given[: case.count])

    got = gradients(subject, case, case.cell(bprop), *xs)
    subject.assert_equal("dtypes of the gradients", got=[g.dtype for g in got], expected=[x.dtype for x in xs])
    subject.assert_all_same("gradients", got=got, expected=[np.prod(more, dtype=int) * x for x in case.arrays])


@keeps("MINDSPORE-CELL-08")
def test_parameters_get_the_gradients_that_bprop_returns_for_them(subject, data):
    """Parameters in internal_params get the gradients that bprop returns for them."""
    case, xs = drawn(subject, data, max_arguments=1, max_outputs=1)
    scale = subject.draw(data, (2, -3), "what the gradient of the parameter is multiplied with")

    class Weighing(nn.Cell):
        def __init__(self, weight):
            super().__init__()
            self.weight = ms.Parameter(weight, name="weight")
            self.internal_params = [self.weight]

        def construct(self, x):
            return self.weight * x

        def bprop(self, x, out, dout):
            return (self.weight * dout,), {self.weight: scale * x * dout}

    (value,) = subject.tensors([case.cotangents(salt=2)[0]], case.dtype)
    cell = Weighing(value)
    ((gradient,), (of_weight,)) = ms.vjp(cell, *xs, weights=cell.trainable_params())[1](
        *subject.tensors(case.cotangents(), case.dtype)
    )
    (x,), (g,), w = case.arrays, case.cotangents(), case.cotangents(salt=2)[0]
    got = [gradient, of_weight]
    subject.assert_all_same("gradients of argument and parameter", got=got, expected=[w * g, scale * x * g])
