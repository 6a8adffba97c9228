"""Cells with a ``bprop``, in PyNative mode and compiled."""

import mindspore as ms
from mindspore import nn

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mindspore._functions import CELLS, MindSporeCase, several
from autograd_conformance.suites.dialects.mindspore.test_functions import (
    CAST,
    differentiated_twice,
    gradients_are_fitted,
)
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

test_the_rule_decides = row("MINDSPORE-CELL-01", sentences.the_rule_decides, CELLS)
test_none = row("MINDSPORE-CELL-04", sentences.none_is_a_gradient_of_zeros, CELLS)
test_number_of_gradients = row(
    "MINDSPORE-CELL-03",
    sentences.another_number_of_gradients_raises,
    CELLS,
    refusal=RuntimeError,
    fewer=True,
    least=1,
    min_arguments=2,
)
test_second_derivatives = row(
    "MINDSPORE-CELL-06",
    sentences.the_rule_is_differentiated,
    CELLS,
    ways={"vjp of vjp": differentiated_twice},
    shape=(2, 3),
)
test_gradients_are_summed_and_cast = row("MINDSPORE-CELL-07", gradients_are_fitted, CELLS, dtypes=CAST)


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


def _pair(subject, data):
    """A case of two arguments and one output, a factor, and the arrays."""
    case = MindSporeCase(subject, data, arguments=2, outputs=1)
    return case, subject.draw(data, (1, 3, -1), "factor"), case.linear.points


@keeps("MINDSPORE-CELL-01", variant="within")
def test_bprop_counts_within_other_operations(subject, data):
    """The bprop also applies if the cell is called within other operations."""
    case, scale = MindSporeCase(subject, data), subject.draw(data, (2, -3), "what the arguments are multiplied with")
    cell = case.cell
    got = case.gradients(lambda *xs: cell(*(scale * x for x in xs)))
    case.assert_gradients(got, xs=[scale * scale * x for x in case.linear.points])


@keeps("MINDSPORE-CELL-02")
def test_bprop_gets_arguments_output_and_gradient(subject, data):
    """bprop gets the arguments, the output and its gradient: bare for one output, tuples for several."""
    case, seen = MindSporeCase(subject, data), []
    cell = case.cell
    bprop = cell.bprop

    def noting(*given):
        seen.append(given)
        return bprop(*given)

    object.__setattr__(cell, "bprop", noting)
    case.gradients(cell)
    *args, out, dout = seen[0]
    subject.assert_all_same("arguments in bprop", got=args, expected=case.linear.points)
    tuples = type(out) is tuple, type(dout) is tuple
    subject.assert_equal("whether out and dout are tuples", got=tuples, expected=(case.linear.outputs > 1,) * 2)
    subject.assert_all_same("out", got=several(out), expected=case.linear.primal(*case.linear.points))
    subject.assert_all_same("dout", got=several(dout), expected=case.linear.cotangents)


@keeps("MINDSPORE-CELL-04", variant="compiled", examples=0.2)
def test_none_stands_for_no_gradient_where_it_is_compiled(subject, data):
    """None from bprop gives a gradient of zeros in a compiled cell too."""
    case, factor, (_, y) = _pair(subject, data)
    got, (g,) = case.gradients(_compiled(PairWithout(factor))), case.linear.cotangents
    subject.assert_all_same("gradients", got=got, expected=[factor * g * y, case.linear.zeros])


@keeps("MINDSPORE-CELL-05", examples=0.2)
def test_bprop_is_compiled_with_its_cell(subject, data):
    """The bprop applies if the call of the cell is compiled."""
    case, factor, (x, y) = _pair(subject, data)
    got, (g,) = case.gradients(_compiled(Pair(factor))), case.linear.cotangents
    subject.assert_all_same("gradients", got=got, expected=[factor * g * y, factor * g * x])


@keeps("MINDSPORE-CELL-05", variant="inside", examples=0.2)
def test_bprop_counts_where_the_gradient_is_compiled(subject, data):
    """The bprop applies if the function that takes the gradient is compiled."""
    case, factor, (x, y) = _pair(subject, data)
    cell = Pair(factor)

    @ms.jit
    def differentiated(x, y):
        return ms.grad(cell, (0, 1))(x, y)

    subject.assert_all_same("gradients", got=differentiated(*case.points), expected=[factor * y, factor * x])


@keeps("MINDSPORE-CELL-08")
def test_parameters_get_the_gradients_that_bprop_returns_for_them(subject, data):
    """Parameters in internal_params get the gradients that bprop returns for them."""
    case = MindSporeCase(subject, data, arguments=1, outputs=1)
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

    (x,), (g,), (w,) = case.linear.points, case.linear.cotangents, case.linear.arrays(1, 3)
    cell = Weighing(*case.tensors([w]))
    _, pullback = ms.vjp(cell, *case.points, weights=cell.trainable_params())
    ((gradient,), (of_weight,)) = pullback(*case.cotangents)
    got = [gradient, of_weight]
    subject.assert_all_same("gradients of argument and parameter", got=got, expected=[w * g, scale * x * g])
