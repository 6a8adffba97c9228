"""Subclasses of `mindspore._Function`: what forward and backward get, and how their results are used."""

import mindspore as ms
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mindspore._functions import FUNCTIONS, MindSporeCase, several
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.linear import Case
from autograd_conformance.suites.dialects.shared.sentences import row

# Non-tensors, as arguments or outputs.
OTHERS = {"number": 2, "fraction": 0.5, "text": "text", "none": None, "list": [1, 2], "flag": True}
# Dtypes of gradients for inputs of other dtypes.
CAST = ("float64", "float32", "int64")


def differentiated_twice(f, x):
    """The second derivative."""
    one = ms.ops.ones_like(x)
    return ms.vjp(lambda x: ms.vjp(f, x)[1](one)[0], x)[1](one)[0]


def _broadcast(g, shape, dtype):
    return ms.ops.broadcast_to(g, shape).astype(dtype)


def gradients_are_fitted(subject, data, spellings, *, change=_broadcast, dtypes=("float64",), least=0, most=2):
    """Gradients with extra leading sizes, or of another dtype, are summed and cast to their input."""
    case = Case(subject, data, spellings)
    more = subject.draw(data, st.lists(st.integers(1, 3), min_size=least, max_size=most).map(tuple), "leading sizes")
    shape, dtype = more + case.linear.shape, getattr(ms, subject.draw(data, dtypes, "dtype of the gradients"))
    _, got = case.pulled(case.custom(lambda xs, gs: tuple(change(g, shape, dtype) for g in case.rule(xs, gs))))
    case.assert_dtypes("gradients", got)
    case.assert_gradients(got, [np.prod(more, dtype=int) * g for g in case.linear.cotangents])


test_the_rule_decides = row("MINDSPORE-FUNCTION-01", sentences.the_rule_decides, FUNCTIONS)
test_number_of_gradients = row(
    "MINDSPORE-FUNCTION-02",
    sentences.another_number_of_gradients_raises,
    FUNCTIONS,
    refusal=RuntimeError,
    naming=lambda *_: ["gradients"],
    fewer=True,
    min_arguments=2,
)
test_what_is_no_gradient = row(
    "MINDSPORE-FUNCTION-04",
    sentences.what_is_no_gradient_is_refused,
    FUNCTIONS,
    values={name: value for name, value in OTHERS.items() if value is not None},
    refusal=RuntimeError,
    naming=["tensor"],
)
test_unused_outputs = row(
    "MINDSPORE-FUNCTION-08",
    sentences.unused_outputs_have_cotangents_of_zeros,
    FUNCTIONS,
    options=[{}, {"materialize": True}, {"materialize": False}],
)
test_second_derivatives = row(
    "MINDSPORE-FUNCTION-12",
    sentences.the_rule_is_differentiated,
    FUNCTIONS,
    ways={"vjp of vjp": differentiated_twice},
    shape=(2, 3),
)
test_exceptions = row(
    "MINDSPORE-FUNCTION-13", sentences.an_exception_comes_out, FUNCTIONS, methods=("forward", "backward")
)
test_gradients_are_summed = row(
    "MINDSPORE-FUNCTION-06",
    gradients_are_fitted,
    FUNCTIONS,
    change=lambda g, shape, _: g * ms.ops.ones(shape, g.dtype),
)
test_views_are_summed = row(
    "MINDSPORE-FUNCTION-06",
    gradients_are_fitted,
    FUNCTIONS,
    variant="views",
    change=lambda g, shape, _: ms.ops.broadcast_to(g, shape),
    least=1,
)
test_gradients_are_cast = row(
    "MINDSPORE-FUNCTION-06",
    gradients_are_fitted,
    FUNCTIONS,
    variant="dtype",
    dtypes=(*CAST, "float16", "int32"),
    most=0,
)


@keeps("MINDSPORE-FUNCTION-03")
def test_a_gradient_for_what_is_no_tensor_raises(subject, data):
    """A gradient for a non-tensor argument raises RuntimeError."""
    case, kind = MindSporeCase(subject, data), subject.draw(data, sorted(OTHERS), "last argument")
    cls = case.subclass(
        forward=lambda ctx, *args: case.subclass().forward(ctx, *args[:-1]),
        backward=lambda ctx, *gs: (*case.rule(ctx.saved_tensors, gs), gs[0]),
    )
    action = lambda: case.gradients(lambda *xs: cls.apply(*xs, OTHERS[kind]))  # noqa: E731
    subject.assert_raises(RuntimeError, action, "a gradient for a non-tensor argument", naming=["none"])


@keeps("MINDSPORE-FUNCTION-05")
def test_needs_input_grad_has_a_flag_for_each_argument(subject, data):
    """needs_input_grad has one flag for each argument, the same in forward and backward."""
    case, seen = MindSporeCase(subject, data, max_arguments=5), []
    flags = subject.draw(data, st.tuples(*[st.booleans()] * case.linear.arguments).filter(any), "differentiated")

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return case.subclass().forward(ctx, *args[:-1])

    def backward(ctx, *gs):
        seen.append(ctx.needs_input_grad)
        return (*case.rule(ctx.saved_tensors, gs), None)

    def f(*moving):
        given = iter(moving)
        args = (next(given) if flag else x for x, flag in zip(case.points, flags, strict=True))
        return case.subclass(forward=forward, backward=backward).apply(*args, 2)

    ms.vjp(f, *(x for x, flag in zip(case.points, flags, strict=True) if flag))[1](*case.cotangents)
    subject.assert_equal("needs_input_grad in forward and backward", got=seen, expected=[(*flags, False)] * 2)


@keeps("MINDSPORE-FUNCTION-07")
def test_outputs_that_are_no_tensors_come_as_they_are(subject, data):
    """A non-tensor output comes back as it is, and backward gets None for it."""
    case, seen = MindSporeCase(subject, data), []
    kind = subject.draw(data, sorted(OTHERS), "output")
    position = subject.draw(data, range(case.linear.outputs + 1), "its position")

    def forward(ctx, *xs):
        outputs = several(case.subclass().forward(ctx, *xs))
        return (*outputs[:position], OTHERS[kind], *outputs[position:])

    def backward(ctx, *gs):
        seen.append(gs[position])
        return case.rule(ctx.saved_tensors, (*gs[:position], *gs[position + 1 :]))

    def f(*xs):
        outputs = case.subclass(forward=forward, backward=backward).apply(*xs)
        seen.append(outputs[position])
        tensors = (*outputs[:position], *outputs[position + 1 :])
        return tensors if len(tensors) > 1 else tensors[0]

    got = case.gradients(f)
    subject.assert_equal("the output and its cotangent", got=seen, expected=[OTHERS[kind], None])
    case.assert_gradients(got)


def _marked(subject, data, positions):
    case = MindSporeCase(subject, data, min_outputs=2)
    marked = subject.draw(data, positions(case.linear.outputs), "position of the marked output")

    def forward(ctx, *xs):
        outputs = case.subclass().forward(ctx, *xs)
        ctx.mark_non_differentiable(outputs[marked])
        return outputs

    got = case.gradients(case.subclass(forward=forward).apply)
    case.assert_gradients(got, [g * (o != marked) for o, g in enumerate(case.linear.cotangents)])


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
    case, seen = MindSporeCase(subject, data, arguments=1, outputs=1), []
    given = subject.draw(data, st.dictionaries(st.sampled_from(("a", "b")), st.integers(5, 9)), "keywords given")

    def setup(ctx, inputs, output):
        seen.extend(inputs[1:])
        ctx.save_for_backward(inputs[0])

    cls = case.subclass(
        forward=lambda x, a=1, b=2: case.linear.primal(x)[0],
        setup_context=setup,
        backward=lambda ctx, *gs: (*case.rule(ctx.saved_tensors, gs), None, None),
    )
    got = case.gradients(lambda x: cls.apply(x, **given))
    subject.assert_equal("arguments in setup_context", got=seen, expected=[given.get("a", 1), given.get("b", 2)])
    case.assert_gradients(got)


@keeps("MINDSPORE-FUNCTION-11")
def test_an_argument_that_is_returned_gets_the_gradient_of_backward(subject, data):
    """An argument that forward returns unchanged gets backward's gradient."""
    case = MindSporeCase(subject, data, arguments=1, outputs=1)
    scale = subject.draw(data, (1, 2, -3), "what backward multiplies with")
    cls = case.subclass(forward=lambda ctx, x: x, backward=lambda ctx, g: scale * g)
    got = case.gradients(lambda x: cls.apply(x + x))
    subject.assert_all_same("gradients", got=got, expected=[2 * scale * g for g in case.linear.cotangents])
