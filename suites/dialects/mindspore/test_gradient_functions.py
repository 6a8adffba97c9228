"""`mindspore.grad`, `value_and_grad`, `vjp`, `jvp` and the Jacobians, of custom Functions."""

import mindspore as ms
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.mindspore._weighted_functions import drawn, gradients

PASSES = st.integers(2, 4)


def _ones(case):
    return (np.ones(case.shape),) * len(case.weights)


def _orders(case):
    return st.permutations(range(case.count)).flatmap(lambda p: st.integers(1, case.count).map(lambda n: tuple(p[:n])))


@keeps("MINDSPORE-GRAD-01")
def test_gradients_come_in_the_order_of_the_positions(subject, data):
    """grad gives a tuple of gradients in the order of grad_position."""
    case, xs = drawn(subject, data, min_arguments=2)
    positions = subject.draw(data, _orders(case).filter(lambda p: len(p) > 1), "grad_position")
    got = ms.grad(case.function().apply, positions)(*xs)
    found = case.expected(_ones(case))
    subject.assert_all_same("gradients", got=got, expected=[found[i] for i in positions])


@keeps("MINDSPORE-GRAD-01", variant="single")
def test_a_single_position_gives_a_single_gradient(subject, data):
    """grad gives one bare gradient for an integer grad_position."""
    case, xs = drawn(subject, data)
    position = subject.draw(data, range(case.count), "grad_position")
    got = ms.grad(case.function().apply, position)(*xs)
    subject.assert_same("gradient", got=got, expected=case.expected(_ones(case))[position])


@keeps("MINDSPORE-GRAD-02")
def test_positions_that_are_none_raise(subject, data):
    """Repeated, negative or missing positions raise ValueError; other types raise TypeError."""
    case, xs = drawn(subject, data)
    wrong = {
        "twice the same": ((0, 0), ValueError),
        "negative": (-1, ValueError),
        "no position": (None, ValueError),
        "text": ("0", TypeError),
        "a list": ([0], TypeError),
        "text in a tuple": (("0",), TypeError),
    }
    positions, kind = wrong[subject.draw(data, sorted(wrong), "grad_position")]
    way = subject.draw(data, ("grad", "value_and_grad"), "function")
    action = getattr(ms, way)
    subject.assert_raises(
        kind, lambda: action(case.function().apply, positions)(*xs), f"{positions!r} as grad_position"
    )


@keeps("MINDSPORE-GRAD-03")
def test_has_aux_leaves_the_other_outputs_alone(subject, data):
    """With has_aux, only the first output is differentiated; the others are returned next to the gradients."""
    case, xs = drawn(subject, data, min_outputs=2)
    got, aux = ms.grad(case.function().apply, tuple(range(case.count)), has_aux=True)(*xs)
    outputs = case.forward(case.arrays)
    only = [np.ones(case.shape), *[np.zeros(case.shape)] * (len(outputs) - 1)]
    got = got if case.count > 1 else (got,)
    subject.assert_all_same("gradients", got=got, expected=case.expected(only))
    subject.assert_all_same("other outputs", got=aux, expected=outputs[1:])


@keeps("MINDSPORE-GRAD-03", variant="single")
def test_has_aux_asks_for_several_outputs(subject, data):
    """has_aux raises ValueError for a function with a single output."""
    case, xs = drawn(subject, data, max_outputs=1)
    f = case.function().apply
    subject.assert_raises(
        ValueError, lambda: ms.grad(f, has_aux=True)(*xs), "has_aux of one output", naming=["outputs"]
    )


@keeps("MINDSPORE-GRAD-04")
def test_get_grad_finds_the_gradient_of_a_position(subject, data):
    """With return_ids every gradient comes with its position, and get_grad finds it by that."""
    case, xs = drawn(subject, data, min_arguments=2)
    positions = subject.draw(data, _orders(case).filter(lambda p: len(p) > 1), "grad_position")
    wanted = subject.draw(data, positions, "identifier")
    found = ms.grad(case.function().apply, positions, return_ids=True)(*xs)
    subject.assert_equal("positions with the gradients", got=tuple(i for i, _ in found), expected=positions)
    got = ms.get_grad(found, wanted)
    subject.assert_same("gradient", got=got, expected=case.expected(_ones(case))[wanted])


@keeps("MINDSPORE-GRAD-04", variant="absent")
def test_get_grad_raises_where_there_is_none(subject, data):
    """get_grad raises RuntimeError for a position without a gradient."""
    case, xs = drawn(subject, data, min_arguments=2)
    absent = subject.draw(data, range(case.count, case.count + 3), "identifier")
    found = ms.grad(case.function().apply, (0, 1), return_ids=True)(*xs)
    subject.assert_raises(RuntimeError, lambda: ms.get_grad(found, absent), "an absent gradient", naming=[absent])


@keeps("MINDSPORE-GRAD-05")
def test_the_sensitivity_is_the_cotangent(subject, data):
    """With sens_param, the last argument or the keyword sens is the cotangent."""
    case, xs = drawn(subject, data, max_outputs=1)
    keyword = subject.draw(data, st.booleans(), "sens by keyword")
    (sens,) = subject.tensors(case.cotangents(), case.dtype)
    f = ms.grad(case.function().apply, tuple(range(case.count)), sens_param=True)
    got = f(*xs, sens=sens) if keyword else f(*xs, sens)
    got = got if case.count > 1 else (got,)
    subject.assert_all_same("gradients", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-GRAD-06")
def test_value_and_grad_gives_the_outputs_too(subject, data):
    """value_and_grad gives the outputs and the gradient."""
    case, xs = drawn(subject, data)
    outputs, got = ms.value_and_grad(case.function().apply, 0)(*xs)
    outputs = outputs if len(case.weights) > 1 else (outputs,)
    subject.assert_all_same("outputs", got=outputs, expected=case.forward(case.arrays))
    subject.assert_same("gradient", got=got, expected=case.expected(_ones(case))[0])


@keeps("MINDSPORE-GRAD-07")
def test_weights_get_gradients_through_custom_functions(subject, data):
    """Parameters get gradients through a custom Function, with those of the input or alone."""
    case, xs = drawn(subject, data, min_arguments=2)
    alongside = subject.draw(data, st.booleans(), "inputs too")
    weights = [ms.Parameter(x, name=f"weight{i}") for i, x in enumerate(xs[1:])]
    apply = case.function().apply
    got = ms.grad(lambda x: apply(x, *weights), 0 if alongside else None, weights)(xs[0])
    first, *others = case.expected(_ones(case))
    of_input, of_weights = got if alongside else (xs[0], got)
    subject.assert_same("gradient of the input", got=of_input, expected=first if alongside else case.arrays[0])
    subject.assert_all_same("gradients of the weights", got=of_weights, expected=others)


@keeps("MINDSPORE-GRAD-08")
def test_an_input_that_is_not_used_gets_zeros(subject, data):
    """An input that the function does not use gets a gradient of zeros."""
    case, xs = drawn(subject, data)
    (unused,) = subject.tensors(case.cotangents()[:1], case.dtype)
    apply = case.function().apply
    got = gradients(subject, case, lambda *given: apply(*given[:-1]), *xs, unused)
    expected = [*case.expected(case.cotangents()), np.zeros(case.shape)]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("MINDSPORE-VJP-01")
def test_a_product_is_formed_for_each_vector(subject, data):
    """The function from vjp gives the right product for each of several vectors."""
    case, xs = drawn(subject, data)
    outputs, pullback = ms.vjp(case.function().apply, *xs)
    outputs = outputs if len(case.weights) > 1 else (outputs,)
    subject.assert_all_same("outputs", got=outputs, expected=case.forward(case.arrays))
    for salt in range(subject.draw(data, PASSES, "number of vectors")):
        got = pullback(*subject.tensors(case.cotangents(salt), case.dtype))
        subject.assert_all_same(f"product {salt}", got=got, expected=case.expected(case.cotangents(salt)))


@keeps("MINDSPORE-VJP-01", variant="warning")
def test_a_second_product_warns_that_forward_runs_again(subject, data):
    """The second product runs forward again, and warns of it."""
    case, xs = drawn(subject, data)
    ran = []

    def forward(ctx, *xs):
        ran.append(1)
        ctx.save_for_backward(*xs)
        return case.returned(case.forward(xs))

    _, pullback = ms.vjp(case.function(forward=forward).apply, *xs)
    given = subject.tensors(case.cotangents(), case.dtype)
    pullback(*given)
    subject.assert_equal("number of calls of forward for one product", got=len(ran), expected=1)
    subject.assert_warns(RuntimeWarning, lambda: pullback(*given), "a second product", naming=["recomputed"])
    subject.assert_equal("number of calls of forward for two products", got=len(ran), expected=2)


@keeps("MINDSPORE-VJP-02")
def test_two_products_do_not_disturb_each_other(subject, data):
    """The pullbacks of two calls of vjp are right in either order."""
    cases = [drawn(subject, data) for _ in range(2)]
    order = subject.draw(data, ((0, 1), (1, 0)), "order of the products")
    pullbacks = [ms.vjp(case.function().apply, *xs)[1] for case, xs in cases]
    for i in order:
        case, _ = cases[i]
        got = pullbacks[i](*subject.tensors(case.cotangents(), case.dtype))
        subject.assert_all_same(f"product {i}", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-VJP-03")
def test_aux_outputs_take_no_part(subject, data):
    """With has_aux, vjp differentiates the first output only and returns the others as they are."""
    case, xs = drawn(subject, data, min_outputs=2)
    output, pullback, aux = ms.vjp(case.function().apply, *xs, has_aux=True)
    got = pullback(*subject.tensors(case.cotangents()[:1], case.dtype))
    first, *others = case.forward(case.arrays)
    only = [case.cotangents()[0], *[np.zeros(case.shape)] * len(others)]
    aux = aux if len(others) > 1 else (aux,)
    subject.assert_same("output", got=output, expected=first)
    subject.assert_all_same("other outputs", got=aux, expected=others)
    subject.assert_all_same("gradients", got=got, expected=case.expected(only))


@keeps("MINDSPORE-VJP-04")
def test_a_vector_has_the_shape_and_dtype_of_the_output(subject, data):
    """A vector of another shape or dtype raises, and so does another number of vectors."""
    # A vector for an output without dimensions is summed, whatever its shape.
    case, xs = drawn(subject, data, shapes=((1,), (3,), (2, 3)))
    position = subject.draw(data, range(len(case.weights)), "position of the wrong vector")
    wrong = subject.draw(data, ("shape", "dtype", "number"), "what is wrong")
    other = {"float64": "float32"}.get(case.dtype, "float64")
    fine = subject.tensors(case.cotangents(), case.dtype)
    bad = {
        "shape": [subject.tensor(np.ones((*case.shape, 4)), case.dtype)],
        "dtype": [subject.tensor(case.cotangents()[position], other)],
        "number": [fine[position]] * 2,
    }[wrong]
    _, pullback = ms.vjp(case.function().apply, *xs)
    subject.assert_raises(
        (RuntimeError, TypeError, ValueError),
        lambda: pullback(*fine[:position], *bad, *fine[position + 1 :]),
        f"a vector of another {wrong}",
    )


@keeps("MINDSPORE-VJP-05")
def test_inputs_have_to_be_tensors(subject, data):
    """vjp raises TypeError for a non-tensor input, at any position."""
    case, xs = drawn(subject, data)
    position = subject.draw(data, range(case.count + 1), "position")
    value = subject.draw(data, (2.0, None, "text"), "input")
    f = case.function().apply
    subject.assert_raises(
        TypeError,
        lambda: ms.vjp(f, *xs[:position], value, *xs[position:]),
        "a non-tensor input",
        naming=["Tensor"],
    )


@keeps("MINDSPORE-STOP-01")
def test_stop_gradient_ends_the_gradient_and_keeps_the_value(subject, data):
    """Stopped arguments keep the value of the output and get gradients of zeros."""
    case, xs = drawn(subject, data)
    stopped = subject.draw(data, st.sets(st.sampled_from(range(case.count))), "arguments that are stopped")
    apply = case.function().apply

    def f(*xs):
        return apply(*(ms.ops.stop_gradient(x) if i in stopped else x for i, x in enumerate(xs)))

    outputs, pullback = ms.vjp(f, *xs)
    got = pullback(*subject.tensors(case.cotangents(), case.dtype))
    outputs = outputs if len(case.weights) > 1 else (outputs,)
    expected = [np.zeros(case.shape) if i in stopped else g for i, g in enumerate(case.expected(case.cotangents()))]
    subject.assert_all_same("outputs", got=outputs, expected=case.forward(case.arrays))
    subject.assert_all_same("gradients", got=got, expected=expected)
