"""The forward-mode rule of a Function: when jvp runs, and what it gets."""

import weakref
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._derivatives import gradient_function
from autograd_conformance.suites.contract._garbage import without_collector
from autograd_conformance.suites.contract._jvp_functions import (
    drawn_jvp_function,
    drawn_tangents,
    expected_tangents,
    output_tangents,
    right_rule,
    some_tangents,
    with_jvp,
)


@keeps("JVP-01")
def test_forward_mode_calls_jvp(subject, data):
    """The tangents come from the class's jvp: a jvp that is wrong by a factor gives tangents wrong by it."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    factor = subject.draw(data, (1, -1, 2), "factor by which jvp is wrong")
    rule = right_rule(polynomial)
    cls = with_jvp(subject, polynomial, lambda *given: tuple(t if t is None else factor * t for t in rule(*given)))
    got = output_tangents(subject, polynomial, cls, tangents)
    expected = subject.returned(expected_tangents(polynomial, tangents, factor), polynomial.shape)
    subject.assert_all_same("tangents", got=got, expected=expected)


@keeps("JVP-01", variant="missing")
def test_a_tangent_needs_a_jvp(subject, data):
    """A Function without jvp raises NotImplementedError for a tangent, and works without one."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    cls = subject.body(polynomial)
    what = "forward mode of a Function without jvp"
    subject.assert_raises(
        NotImplementedError, lambda: output_tangents(subject, polynomial, cls, tangents), what, naming=["jvp"]
    )
    still = [None] * len(tangents)
    subject.assert_accepted(
        lambda: output_tangents(subject, polynomial, cls, still), f"{what}, called without tangents"
    )


@keeps("JVP-02")
def test_jvp_gets_zeros_for_floating_tensors_that_do_not_move(subject, data):
    """jvp gets zeros for floating tensors without a tangent, and None for all other arguments."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    got = _given(subject, polynomial, tangents)
    zeros = [np.zeros(polynomial.shape) if i in polynomial.floating else None for i in range(len(tangents))]
    expected = [zero if t is None else t for t, zero in zip(tangents, zeros, strict=True)]
    subject.assert_all_same("arguments of jvp", got=got, expected=expected)
    dtypes = [None if t is None else subject.implementation.describe(t).dtype for t in got]
    wanted = [None if t is None else polynomial.dtype for t in expected]
    subject.assert_equal("dtypes of the arguments of jvp", got=dtypes, expected=wanted)


@keeps("JVP-03")
def test_jvp_gets_none_for_what_does_not_move_if_asked_to(subject, data):
    """With set_materialize_grads(False) jvp gets None for every argument without a tangent."""
    polynomial = drawn_jvp_function(subject, data, materialize=False)
    tangents = drawn_tangents(subject, data, polynomial)
    got = _given(subject, polynomial, tangents)
    subject.assert_all_same("arguments of jvp", got=got, expected=tangents)


def _given(subject, polynomial, tangents):
    """What jvp gets for each argument."""
    given, rule = [], right_rule(polynomial)

    def jvp(ctx, *arguments):
        given[:] = arguments
        return rule(ctx, *arguments)

    output_tangents(subject, polynomial, with_jvp(subject, polynomial, jvp), tangents)
    return given


@keeps("JVP-04")
def test_jvp_runs_within_apply_and_only_if_an_argument_moves(subject, data):
    """jvp runs after forward and before apply returns; without any tangent it does not run."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial, least=0)
    events, rule = [], right_rule(polynomial)

    def prepare(ctx, inputs):
        events.append("forward")
        ctx.save_for_forward(*(inputs[i] for i in polynomial.floating))

    def jvp(ctx, *arguments):
        events.append("jvp")
        return rule(ctx, *arguments)

    cls = with_jvp(subject, polynomial, jvp, prepare)
    output_tangents(subject, polynomial, cls, tangents, after=lambda: events.append("apply returns"))
    called = ["jvp"] if any(t is not None for t in tangents) else []
    subject.assert_equal("what happens", got=events, expected=["forward", *called, "apply returns"])


@keeps("JVP-04", variant="modes")
def test_jvp_runs_in_the_grad_mode_of_the_call_and_with_forward_mode_off(subject, data):
    """In jvp, operations are recorded if the call was, and a Function without jvp can be called."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    recording = subject.draw(data, (True, False), "call is recorded")
    under = nullcontext if recording else subject.implementation.no_grad
    plain = subject.implementation.function(subject.body(polynomial))
    recorded, rule = [], right_rule(polynomial)

    def jvp(ctx, *given):
        saved = dict(zip(polynomial.floating, ctx.saved_tensors, strict=True))
        x = saved[polynomial.arguments.index("tracked")]
        recorded.append(subject.implementation.requires_grad(x * x))
        arguments = [saved.get(i, value) for i, value in enumerate(polynomial.values)]
        subject.assert_accepted(lambda: plain(*arguments), "a call in jvp of a Function without jvp")
        return rule(ctx, *given)

    def outputs(*tensors):
        with under():
            return output_tangents(subject, polynomial, with_jvp(subject, polynomial, jvp), tangents, at=tensors)

    subject.implementation.vjp(outputs, subject.primals(polynomial), track=polynomial.track)
    subject.assert_equal("whether an operation in jvp is recorded", got=recorded, expected=[recording])


@keeps("JVP-12")
def test_jvp_gets_what_was_saved_for_it(subject, data):
    """ctx.saved_tensors in jvp is exactly what save_for_forward got: arguments, new tensors and None."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    things = st.lists(st.sampled_from(("None", "a new tensor", *polynomial.floating)), max_size=4)
    saved = subject.draw(data, things, "saved for jvp, arguments by position")
    found, expected, rule = [], [], _constant_rule(polynomial)

    def prepare(ctx, inputs):
        named = {"None": None, "a new tensor": subject.tensor([1.0, 2.0], polynomial.dtype)}
        expected[:] = [named[thing] if thing in named else inputs[thing] for thing in saved]
        ctx.save_for_forward(*expected)

    def jvp(ctx, *given):
        found[:] = ctx.saved_tensors
        return rule(ctx, *given)

    output_tangents(subject, polynomial, with_jvp(subject, polynomial, jvp, prepare), tangents)
    subject.assert_all_same("ctx.saved_tensors in jvp", got=found, expected=expected)


@keeps("JVP-12", variant="refused")
def test_save_for_forward_takes_tensors_and_none_alone(subject, data):
    """save_for_forward raises for anything but tensors and None, at any position."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial, least=0)
    others = {"number": 5, "text": "text", "list": [subject.tensor(1.0)], "array": np.ones(3)}
    other = others[subject.draw(data, others, "saved for jvp")]
    before, after = subject.draw(
        data, st.tuples(st.integers(0, 2), st.integers(0, 2)), "None saved before and after it"
    )

    def call(thing):
        def prepare(ctx, inputs):
            ctx.save_for_forward(*[None] * before, thing, *[None] * after)

        return output_tangents(
            subject, polynomial, with_jvp(subject, polynomial, _constant_rule(polynomial), prepare), tangents
        )

    kinds = (AssertionError, *subject.implementation.refusals)
    what = "save_for_forward of a non-tensor"
    subject.assert_raises(kinds, lambda: call(other), what, naming=["save_for_forward"])
    subject.assert_accepted(lambda: call(subject.tensor(1.0)), "save_for_forward of a tensor")
    subject.assert_accepted(lambda: call(None), "save_for_forward of None")


@keeps("JVP-12", variant="released", needs="memory")
def test_what_was_saved_for_jvp_is_released_after_the_call(subject, data):
    """A tensor saved for jvp is freed by the time apply returns, without the garbage collector."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial, least=0)
    held, saved = [], []

    def prepare(ctx, inputs):
        kept = subject.tensor([1.0, 2.0], polynomial.dtype)
        ctx.save_for_forward(kept)
        held.append(ctx)
        saved.append(weakref.ref(kept))

    cls = with_jvp(subject, polynomial, _constant_rule(polynomial), prepare)
    with without_collector():
        output_tangents(subject, polynomial, cls, tangents, after=lambda: held.append(saved[0]() is None))
    subject.assert_equal("whether a tensor saved for jvp is gone when apply returns", got=held[1], expected=True)


def _constant_rule(polynomial):
    """A jvp that reads nothing from ctx."""

    def jvp(ctx, *given):
        some = next(t for t in given if t is not None)
        return tuple(0.0 * some if kind == "float" else None for kind in polynomial.outputs)

    return jvp


@keeps("JVP-13")
def test_jvp_and_backward_see_their_own_saved_tensors_alone(subject, data):
    """jvp reads what save_for_forward kept and backward what save_for_backward kept, in either order of saving."""
    dtype = subject.draw(data, subject.dtypes, "dtype")
    saved = st.lists(st.integers(0, 2), max_size=3)
    for_jvp, for_backward = subject.draw(data, st.tuples(saved, saved), "arguments saved for jvp, for backward")
    order = subject.draw(data, st.permutations(("forward", "backward")), "order in which they are saved")
    separate = subject.draw(data, st.booleans(), "separate")
    arrays = [np.array([3.0 * i, 3.0 * i + 1.0]) for i in range(3)]
    saved_for, seen = {"forward": for_jvp, "backward": for_backward}, {}

    def save(ctx, inputs, output):
        for use in filter(saved_for.get, order):
            getattr(ctx, f"save_for_{use}")(*(inputs[i] for i in saved_for[use]))

    def jvp(ctx, *ts):
        seen["jvp"] = ctx.saved_tensors
        return 2 * ts[0]

    def backward(ctx, g):
        seen["backward"] = ctx.saved_tensors
        return 2 * g, None, None

    methods = {"setup_context": save, "jvp": jvp, "backward": backward}
    apply = subject.custom(forward=lambda *xs: 2 * xs[0], **methods, separate=separate)
    xs, ts = ([subject.tensor(a, dtype) for a in arrays] for _ in range(2))
    _, pullback = subject.implementation.vjp(lambda *xs: subject.implementation.jvp(apply, xs, ts)[0], xs)
    pullback([subject.tensor([1.0, 1.0], dtype)])
    subject.assert_all_same("ctx.saved_tensors in jvp", got=seen["jvp"], expected=[arrays[i] for i in for_jvp])
    expected = [arrays[i] for i in for_backward]
    subject.assert_all_same("ctx.saved_tensors in backward", got=seen["backward"], expected=expected)


@keeps("JVP-14")
def test_a_jvp_can_be_differentiated_in_reverse(subject, data):
    """Reverse mode through jvp gives the derivatives of the output tangents by primals and by tangents."""
    polynomial = drawn_jvp_function(subject, data, arguments=("tracked", "None", "text"))
    cls, positions, power = with_jvp(subject, polynomial), polynomial.tensors, polynomial.power
    tangents, cotangents = some_tangents(polynomial, positions), polynomial.cotangents()

    def f(*variables):
        at, moves = variables[: len(positions)], iter(variables[len(positions) :])
        given = [None if t is None else next(moves) for t in tangents]
        return tuple(t for t in output_tangents(subject, polynomial, cls, given, at=at) if t is not None)

    ts = subject.tensors([tangents[i] for i in positions], polynomial.dtype)
    given = subject.tensors([g for g in cotangents if g is not None], polynomial.dtype)
    found = gradient_function(subject, f, given)(*subject.primals(polynomial), *ts)
    by_primal, by_tangent = replace(polynomial, power=1).vjp(cotangents), polynomial.vjp(cotangents)
    expected = [power * (power - 1) * tangents[i] * by_primal[i] for i in positions]
    what = "gradients of the tangents of the outputs, by primals and by tangents"
    subject.assert_all_same(what, got=found, expected=[*map(np.asarray, expected), *(by_tangent[i] for i in positions)])


@keeps("JVP-15")
def test_jvp_may_delete_attributes_of_ctx(subject, data):
    """jvp can delete attributes of ctx; the others stay."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    names = ("factor", "kept", "mask", "shape")
    some = st.sets(st.sampled_from(names), min_size=1).map(sorted)
    deleted = subject.draw(data, some, "attributes that jvp deletes")
    values = {"factor": 2.0, "kept": subject.tensor([1.0]), "mask": None, "shape": (2, 3)}
    left, rule = [], _constant_rule(polynomial)

    def prepare(ctx, inputs):
        ctx.save_for_forward(None)
        for name, value in values.items():
            setattr(ctx, name, value)

    def jvp(ctx, *given):
        for name in deleted:
            delattr(ctx, name)
        left.extend(name for name in names if hasattr(ctx, name))
        return rule(ctx, *given)

    cls = with_jvp(subject, polynomial, jvp, prepare)
    subject.assert_accepted(
        lambda: output_tangents(subject, polynomial, cls, tangents), "deleting attributes of ctx in jvp"
    )
    subject.assert_equal("attributes that are left", got=left, expected=[name for name in names if name not in deleted])
