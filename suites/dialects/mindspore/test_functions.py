"""Subclasses of `mindspore._Function`: what forward and backward get, and how their results are used."""

import mindspore as ms
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.mindspore._weighted_functions import drawn, gradients

# Non-tensors, as arguments or outputs.
OTHERS = {"number": 2, "fraction": 0.5, "text": "text", "none": None, "list": [1, 2], "flag": True}
FEW = {"min_outputs": 2, "max_outputs": 3}


class Failed(Exception):
    """What a method raises."""


@keeps("MINDSPORE-FUNCTION-01")
def test_gradients_are_what_backward_returns(subject, data):
    """The gradients are what backward returns, even if that is not the derivative."""
    case, xs = drawn(subject, data)
    got = gradients(subject, case, case.function().apply, *xs)
    subject.assert_all_same("gradients", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-FUNCTION-02")
def test_fewer_gradients_than_arguments_raise(subject, data):
    """A backward that returns too few gradients raises RuntimeError."""
    case, xs = drawn(subject, data, min_arguments=2)
    kept = subject.draw(data, range(case.count), "number of gradients returned")
    short = case.function(backward=lambda ctx, *gs: case.backward(ctx.saved_tensors, gs)[:kept])
    what = f"a backward that returns {kept} of {case.count} gradients"
    subject.assert_raises(RuntimeError, lambda: gradients(subject, case, short.apply, *xs), what, naming=["gradients"])


@keeps("MINDSPORE-FUNCTION-03")
def test_a_gradient_for_what_is_no_tensor_raises(subject, data):
    """A gradient for a non-tensor argument raises RuntimeError."""
    case, xs = drawn(subject, data)
    kind = subject.draw(data, sorted(OTHERS), "last argument")
    cls = case.function(
        forward=lambda ctx, *args: case.function().forward(ctx, *args[:-1]),
        backward=lambda ctx, *gs: (*case.backward(ctx.saved_tensors, gs), gs[0]),
    )
    subject.assert_raises(
        RuntimeError,
        lambda: gradients(subject, case, lambda *xs: cls.apply(*xs, OTHERS[kind]), *xs),
        "a gradient for a non-tensor argument",
        naming=["none"],
    )


@keeps("MINDSPORE-FUNCTION-04")
def test_a_gradient_that_is_no_tensor_raises(subject, data):
    """A gradient that is a non-tensor other than None raises RuntimeError."""
    case, xs = drawn(subject, data)
    position = subject.draw(data, range(case.count), "position of the gradient")
    kind = subject.draw(data, sorted(OTHERS.keys() - {"none"}), "gradient")

    def backward(ctx, *gs):
        found = case.backward(ctx.saved_tensors, gs)
        return (*found[:position], OTHERS[kind], *found[position + 1 :])

    subject.assert_raises(
        RuntimeError,
        lambda: gradients(subject, case, case.function(backward=backward).apply, *xs),
        "a gradient that is not a tensor",
        naming=["tensor"],
    )


@keeps("MINDSPORE-FUNCTION-05")
def test_needs_input_grad_has_a_flag_for_each_argument(subject, data):
    """needs_input_grad has one flag for each argument, the same in forward and backward."""
    case, xs = drawn(subject, data, max_arguments=5)
    flags = subject.draw(data, st.tuples(*[st.booleans()] * case.count).filter(any), "differentiated")
    moving = [x for x, flag in zip(xs, flags, strict=True) if flag]
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return case.function().forward(ctx, *args[:-1])

    def backward(ctx, *gs):
        seen.append(ctx.needs_input_grad)
        return (*case.backward(ctx.saved_tensors, gs), None)

    def f(*moving):
        given = iter(moving)
        return case.function(forward=forward, backward=backward).apply(
            *(next(given) if flag else x for x, flag in zip(xs, flags, strict=True)), 2
        )

    gradients(subject, case, f, *moving)
    subject.assert_equal("needs_input_grad in forward and backward", got=seen, expected=[(*flags, False)] * 2)


def _summed(subject, data, least, expanded):
    case, xs = drawn(subject, data)
    more = subject.draw(data, st.lists(st.integers(2, 3), min_size=least, max_size=2).map(tuple), "leading sizes")

    def backward(ctx, *gs):
        return tuple(expanded(g, more + case.shape) for g in case.backward(ctx.saved_tensors, gs))

    got = gradients(subject, case, case.function(backward=backward).apply, *xs)
    expected = [np.prod(more, dtype=int) * g for g in case.expected(case.cotangents())]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("MINDSPORE-FUNCTION-06")
def test_gradients_are_summed_to_the_shape_of_their_input(subject, data):
    """Gradients with extra leading sizes are summed to the shape of their input."""
    _summed(subject, data, 0, lambda g, shape: g * ms.ops.ones(shape, g.dtype))


@keeps("MINDSPORE-FUNCTION-06", variant="views")
def test_gradients_that_are_views_are_summed_to_the_shape_of_their_input(subject, data):
    """Gradients made by broadcast_to are summed to the shape of their input."""
    _summed(subject, data, 1, ms.ops.broadcast_to)


@keeps("MINDSPORE-FUNCTION-06", variant="dtype")
def test_gradients_are_cast_to_the_dtype_of_their_input(subject, data):
    """Gradients of another dtype are cast to the dtype of their input."""
    case, xs = drawn(subject, data)
    dtype = subject.draw(data, ("float64", "float32", "float16", "int64", "int32"), "dtype of the gradients")

    def backward(ctx, *gs):
        return tuple(g.astype(getattr(ms, dtype)) for g in case.backward(ctx.saved_tensors, gs))

    got = gradients(subject, case, case.function(backward=backward).apply, *xs)
    subject.assert_equal("dtypes of the gradients", got=[g.dtype for g in got], expected=[x.dtype for x in xs])
    subject.assert_all_same("gradients", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-FUNCTION-07")
def test_outputs_that_are_no_tensors_come_as_they_are(subject, data):
    """A non-tensor output comes back as it is, and backward gets None for it."""
    case, xs = drawn(subject, data)
    kind = subject.draw(data, sorted(OTHERS), "output")
    position = subject.draw(data, range(len(case.weights) + 1), "its position")
    seen = []

    def forward(ctx, *xs):
        ctx.save_for_backward(*xs)
        outputs = case.forward(xs)
        return (*outputs[:position], OTHERS[kind], *outputs[position:])

    def backward(ctx, *gs):
        seen.append(gs[position])
        return case.backward(ctx.saved_tensors, (*gs[:position], *gs[position + 1 :]))

    def f(*xs):
        outputs = case.function(forward=forward, backward=backward).apply(*xs)
        seen.append(outputs[position])
        return case.returned((*outputs[:position], *outputs[position + 1 :]))

    got = gradients(subject, case, f, *xs)
    subject.assert_equal("the output and its cotangent", got=seen, expected=[OTHERS[kind], None])
    subject.assert_all_same("gradients", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-FUNCTION-08")
def test_cotangents_of_unused_outputs_are_zeros_or_none(subject, data):
    """backward gets zeros for unused outputs, and None after set_materialize_grads(False)."""
    case, xs = drawn(subject, data, **FEW)
    materialize = subject.draw(data, (None, True, False), "set_materialize_grads")
    used = subject.draw(data, range(len(case.weights)), "position of the output that is used")
    seen = []

    def forward(ctx, *xs):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return case.forward(xs)

    def backward(ctx, *gs):
        seen.append(gs)
        return tuple(xs)

    f = case.function(forward=forward, backward=backward).apply
    (cotangent,) = subject.tensors(case.cotangents()[:1], case.dtype)
    ms.vjp(lambda *xs: f(*xs)[used], *xs)[1](cotangent)
    nothing = None if materialize is False else np.zeros(case.shape)
    expected = [case.cotangents()[0] if o == used else nothing for o in range(len(case.weights))]
    subject.assert_all_same("cotangents in backward", got=seen[0], expected=expected)


def _marked(subject, data, positions):
    case, xs = drawn(subject, data, **FEW)
    marked = subject.draw(data, positions(len(case.weights)), "position of the marked output")

    def forward(ctx, *xs):
        ctx.save_for_backward(*xs)
        outputs = case.forward(xs)
        ctx.mark_non_differentiable(outputs[marked])
        return outputs

    got = gradients(subject, case, case.function(forward=forward).apply, *xs)
    cotangents = [np.zeros(case.shape) if o == marked else g for o, g in enumerate(case.cotangents())]
    subject.assert_all_same("gradients", got=got, expected=case.expected(cotangents))


@keeps("MINDSPORE-FUNCTION-09")
def test_the_last_output_may_be_marked_non_differentiable(subject, data):
    """A marked output takes no part in gradients if it is the last one."""
    _marked(subject, data, lambda count: (count - 1,))


@keeps("MINDSPORE-FUNCTION-09", variant="before")
def test_an_output_before_others_may_be_marked_non_differentiable(subject, data):
    """A marked output takes no part in gradients if others follow it."""
    _marked(subject, data, lambda count: range(count - 1))


@keeps("MINDSPORE-FUNCTION-10")
def test_setup_context_gets_every_parameter(subject, data):
    """setup_context gets parameters that were given by keyword or left at their defaults."""
    case, xs = drawn(subject, data, max_arguments=1)
    given = subject.draw(data, st.dictionaries(st.sampled_from(("a", "b")), st.integers(5, 9)), "keywords given")
    seen = []

    def setup(ctx, inputs, output):
        seen.extend(inputs[1:])
        ctx.save_for_backward(inputs[0])

    cls = case.function(
        forward=lambda x, a=1, b=2: case.returned(case.forward((x,))),
        setup_context=setup,
        backward=lambda ctx, *gs: (*case.backward(ctx.saved_tensors, gs), None, None),
    )
    got = gradients(subject, case, lambda x: cls.apply(x, **given), *xs)
    subject.assert_equal("arguments in setup_context", got=seen, expected=[given.get("a", 1), given.get("b", 2)])
    subject.assert_all_same("gradients", got=got, expected=case.expected(case.cotangents()))


@keeps("MINDSPORE-FUNCTION-11")
def test_an_argument_that_is_returned_gets_the_gradient_of_backward(subject, data):
    """An argument that forward returns unchanged gets backward's gradient."""
    case, xs = drawn(subject, data, max_arguments=1, max_outputs=1)
    scale = subject.draw(data, (1, 2, -3), "what backward multiplies with")
    cls = case.function(forward=lambda ctx, x: x, backward=lambda ctx, g: scale * g)
    got = gradients(subject, case, lambda x: cls.apply(x + x), *xs)
    subject.assert_all_same("gradients", got=got, expected=[2 * scale * case.cotangents()[0]])


@keeps("MINDSPORE-FUNCTION-12")
def test_backward_is_differentiated_in_its_turn(subject, data):
    """Second derivatives differentiate the operations of backward."""
    case, xs = drawn(subject, data)
    cotangents, others = case.cotangents(), [case.cotangents(salt=2)[0]] * case.count

    def first(*xs):
        return gradients(subject, case, case.function().apply, *xs)

    got = ms.vjp(first, *xs)[1](*subject.tensors(others, case.dtype))
    expected = [case.backward([h] * case.count, cotangents)[i] for i, h in enumerate(others)]
    subject.assert_all_same("second derivatives", got=got, expected=expected)


@keeps("MINDSPORE-FUNCTION-13")
def test_exceptions_arrive_and_leave_nothing_behind(subject, data):
    """An exception of forward or backward reaches the caller, and a later call works."""
    case, xs = drawn(subject, data)
    method = subject.draw(data, ("forward", "backward"), "method that raises")

    def fail(ctx, *args):
        raise Failed(method)

    broken = case.function(**{method: fail})
    subject.assert_raises(
        Failed, lambda: gradients(subject, case, broken.apply, *xs), f"a {method} that raises", naming=[method]
    )
    got = gradients(subject, case, case.function().apply, *xs)
    subject.assert_all_same("gradients of a later call", got=got, expected=case.expected(case.cotangents()))
