"""`mindspore.grad`, `value_and_grad`, `vjp`, `jvp` and the Jacobians, of custom Functions."""

import mindspore as ms
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mindspore._functions import FUNCTIONS, MindSporeCase, several
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

test_stopped_arguments = row(
    "MINDSPORE-STOP-01",
    sentences.no_gradient_flows_through_stopped_arguments,
    FUNCTIONS,
    stop=lambda: ms.ops.stop_gradient,
)


def _positions(subject, data, case):
    """Two positions or more, in any order."""
    every = range(case.linear.arguments)
    orders = st.lists(st.sampled_from(every), min_size=2, max_size=len(every), unique=True).map(tuple)
    return subject.draw(data, orders, "grad_position")


@keeps("MINDSPORE-GRAD-01")
def test_gradients_come_in_the_order_of_the_positions(subject, data):
    """grad gives a tuple of gradients in the order of grad_position."""
    case = MindSporeCase(subject, data, min_arguments=2, max_arguments=4)
    positions = _positions(subject, data, case)
    got, found = ms.grad(case.apply, positions)(*case.points), case.expected(case.linear.ones)
    subject.assert_all_same("gradients", got=got, expected=[found[i] for i in positions])


@keeps("MINDSPORE-GRAD-01", variant="single")
def test_a_single_position_gives_a_single_gradient(subject, data):
    """grad gives one bare gradient for an integer grad_position."""
    case = MindSporeCase(subject, data)
    position = subject.draw(data, range(case.linear.arguments), "grad_position")
    got = ms.grad(case.apply, position)(*case.points)
    subject.assert_same("gradient", got=got, expected=case.expected(case.linear.ones)[position])


# Wrong positions, and what they raise.
WRONG = {
    "twice the same": ((0, 0), ValueError),
    "negative": (-1, ValueError),
    "no position": (None, ValueError),
    "text": ("0", TypeError),
    "a list": ([0], TypeError),
    "text in a tuple": (("0",), TypeError),
}


@keeps("MINDSPORE-GRAD-02")
def test_positions_that_are_none_raise(subject, data):
    """Repeated, negative or missing positions raise ValueError; other types raise TypeError."""
    case = MindSporeCase(subject, data)
    positions, kind = WRONG[subject.draw(data, sorted(WRONG), "grad_position")]
    action = getattr(ms, subject.draw(data, ("grad", "value_and_grad"), "function"))
    what = f"{positions!r} as grad_position"
    subject.assert_raises(kind, lambda: action(case.apply, positions)(*case.points), what)


def _first_alone(case):
    """The cotangents of a function whose first output alone is differentiated."""
    return [case.linear.ones[0], *[case.linear.zeros] * (case.linear.outputs - 1)]


@keeps("MINDSPORE-GRAD-03")
def test_has_aux_leaves_the_other_outputs_alone(subject, data):
    """With has_aux, only the first output is differentiated; the others are returned next to the gradients."""
    case = MindSporeCase(subject, data, min_outputs=2)
    every = tuple(range(case.linear.arguments))
    got, aux = ms.grad(case.apply, every, has_aux=True)(*case.points)
    case.assert_gradients(several(got), _first_alone(case))
    subject.assert_all_same("other outputs", got=aux, expected=case.linear.primal(*case.linear.points)[1:])


@keeps("MINDSPORE-GRAD-03", variant="single")
def test_has_aux_asks_for_several_outputs(subject, data):
    """has_aux raises ValueError for a function with a single output."""
    case = MindSporeCase(subject, data, outputs=1)
    action = lambda: ms.grad(case.apply, has_aux=True)(*case.points)  # noqa: E731
    subject.assert_raises(ValueError, action, "has_aux of one output", naming=["outputs"])


@keeps("MINDSPORE-GRAD-04")
def test_get_grad_finds_the_gradient_of_a_position(subject, data):
    """With return_ids every gradient comes with its position, and get_grad finds it by that."""
    case = MindSporeCase(subject, data, min_arguments=2, max_arguments=4)
    positions = _positions(subject, data, case)
    wanted = subject.draw(data, positions, "identifier")
    found = ms.grad(case.apply, positions, return_ids=True)(*case.points)
    subject.assert_equal("positions with the gradients", got=tuple(i for i, _ in found), expected=positions)
    expected = case.expected(case.linear.ones)[wanted]
    subject.assert_same("gradient", got=ms.get_grad(found, wanted), expected=expected)


@keeps("MINDSPORE-GRAD-04", variant="absent")
def test_get_grad_raises_where_there_is_none(subject, data):
    """get_grad raises RuntimeError for a position without a gradient."""
    case = MindSporeCase(subject, data, min_arguments=2)
    count = case.linear.arguments
    absent = subject.draw(data, range(count, count + 3), "identifier")
    found = ms.grad(case.apply, (0, 1), return_ids=True)(*case.points)
    subject.assert_raises(RuntimeError, lambda: ms.get_grad(found, absent), "an absent gradient", naming=[absent])


@keeps("MINDSPORE-GRAD-05")
def test_the_sensitivity_is_the_cotangent(subject, data):
    """With sens_param, the last argument or the keyword sens is the cotangent."""
    case = MindSporeCase(subject, data, outputs=1)
    keyword = subject.draw(data, st.booleans(), "sens by keyword")
    (sens,) = case.cotangents
    f = ms.grad(case.apply, tuple(range(case.linear.arguments)), sens_param=True)
    case.assert_gradients(several(f(*case.points, sens=sens) if keyword else f(*case.points, sens)))


@keeps("MINDSPORE-GRAD-06")
def test_value_and_grad_gives_the_outputs_too(subject, data):
    """value_and_grad gives the outputs and the gradient."""
    case = MindSporeCase(subject, data)
    outputs, got = ms.value_and_grad(case.apply, 0)(*case.points)
    case.assert_outputs(several(outputs))
    subject.assert_same("gradient", got=got, expected=case.expected(case.linear.ones)[0])


@keeps("MINDSPORE-GRAD-07")
def test_weights_get_gradients_through_custom_functions(subject, data):
    """Parameters get gradients through a custom Function, with those of the input or alone."""
    case, alongside = MindSporeCase(subject, data, min_arguments=2), subject.draw(data, st.booleans(), "inputs too")
    x, *others = case.points
    weights = [ms.Parameter(x, name=f"weight{i}") for i, x in enumerate(others)]
    apply = case.apply
    got = ms.grad(lambda x: apply(x, *weights), 0 if alongside else None, weights)(x)
    first, *others = case.expected(case.linear.ones)
    if alongside:
        of_input, got = got
        subject.assert_same("gradient of the input", got=of_input, expected=first)
    subject.assert_all_same("gradients of the weights", got=got, expected=others)


@keeps("MINDSPORE-GRAD-08")
def test_an_input_that_is_not_used_gets_zeros(subject, data):
    """An input that the function does not use gets a gradient of zeros."""
    case = MindSporeCase(subject, data)
    apply, unused = case.apply, case.cotangents[0]
    *got, last = ms.vjp(lambda *given: apply(*given[:-1]), *case.points, unused)[1](*case.cotangents)
    case.assert_gradients(got)
    subject.assert_same("gradients, that of the unused input,", got=last, expected=case.linear.zeros)


@keeps("MINDSPORE-VJP-01")
def test_a_product_is_formed_for_each_vector(subject, data):
    """The function from vjp gives the right product for each of several vectors."""
    case = MindSporeCase(subject, data)
    outputs, pullback = ms.vjp(case.apply, *case.points)
    case.assert_outputs(several(outputs))
    for number in range(subject.draw(data, st.integers(2, 4), "number of vectors")):
        vectors = case.linear.arrays(case.linear.outputs, 10 + number)
        got = pullback(*case.tensors(vectors))
        subject.assert_all_same(f"product {number}", got=got, expected=case.expected(vectors))


@keeps("MINDSPORE-VJP-01", variant="warning")
def test_a_second_product_warns_that_forward_runs_again(subject, data):
    """The second product runs forward again, and warns of it."""
    case, ran = MindSporeCase(subject, data), []
    forward = case.linear.primal
    _, pullback = ms.vjp(case.custom(forward=lambda *xs: (ran.append(1), forward(*xs))[1]), *case.points)
    pullback(*case.cotangents)
    subject.assert_equal("number of calls of forward for one product", got=len(ran), expected=1)
    again = lambda: pullback(*case.cotangents)  # noqa: E731
    subject.assert_warns(RuntimeWarning, again, "a second product", naming=["recomputed"])
    subject.assert_equal("number of calls of forward for two products", got=len(ran), expected=2)


@keeps("MINDSPORE-VJP-02")
def test_two_products_do_not_disturb_each_other(subject, data):
    """The pullbacks of two calls of vjp are right in either order."""
    cases = [MindSporeCase(subject, data) for _ in range(2)]
    order = subject.draw(data, ((0, 1), (1, 0)), "order of the products")
    pullbacks = [ms.vjp(case.apply, *case.points)[1] for case in cases]
    for i in order:
        got = pullbacks[i](*cases[i].cotangents)
        subject.assert_all_same(f"product {i}", got=got, expected=cases[i].expected())


@keeps("MINDSPORE-VJP-03")
def test_aux_outputs_take_no_part(subject, data):
    """With has_aux, vjp differentiates the first output only and returns the others as they are."""
    case = MindSporeCase(subject, data, min_outputs=2)
    output, pullback, aux = ms.vjp(case.apply, *case.points, has_aux=True)
    first, *others = case.linear.primal(*case.linear.points)
    subject.assert_same("output", got=output, expected=first)
    subject.assert_all_same("other outputs", got=several(aux), expected=others)
    case.assert_gradients(pullback(subject.tensor(case.linear.ones[0], case.linear.dtype)), _first_alone(case))


@keeps("MINDSPORE-VJP-04")
def test_a_vector_has_the_shape_and_dtype_of_the_output(subject, data):
    """A vector of another shape or dtype raises, and so does another number of vectors."""
    # A vector for an output without dimensions is summed, whatever its shape.
    case = MindSporeCase(subject, data, shapes=((1,), (3,), (2, 3)))
    position = subject.draw(data, range(case.linear.outputs), "position of the wrong vector")
    wrong = subject.draw(data, ("shape", "dtype", "number"), "what is wrong")
    other = {"float64": "float32"}.get(case.linear.dtype, "float64")
    fine = case.cotangents
    bad = {
        "shape": [subject.tensor(np.ones((*case.linear.shape, 4)), case.linear.dtype)],
        "dtype": [subject.tensor(case.linear.cotangents[position], other)],
        "number": [fine[position]] * 2,
    }[wrong]
    _, pullback = ms.vjp(case.apply, *case.points)
    action = lambda: pullback(*fine[:position], *bad, *fine[position + 1 :])  # noqa: E731
    subject.assert_raises((RuntimeError, TypeError, ValueError), action, f"a vector of another {wrong}")


@keeps("MINDSPORE-VJP-05")
def test_inputs_have_to_be_tensors(subject, data):
    """vjp raises TypeError for a non-tensor input, at any position."""
    case = MindSporeCase(subject, data)
    position = subject.draw(data, range(case.linear.arguments + 1), "position")
    xs = [*case.points[:position], subject.draw(data, (2.0, None, "text"), "input"), *case.points[position:]]
    subject.assert_raises(TypeError, lambda: ms.vjp(case.apply, *xs), "a non-tensor input", naming=["Tensor"])
