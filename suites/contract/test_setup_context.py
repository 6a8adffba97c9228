"""setup_context: when it runs, what it gets and what it may save."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._derivatives import (
    ENTRIES,
    FACTORS,
    arguments,
    gradient_function,
)

RETURNED = (None, False, 5, "text", (1, 2), [])
KINDS = st.lists(st.sampled_from(("tracked", "fixed", "integers", "number")), max_size=3)
VALUES = {"tracked": [1.0, 2.0], "fixed": [3.0], "integers": [1, 2], "number": 2}


def _call(subject, polynomial, seen, given, bare=False):
    """Call the Function on leaves and put its arguments into ``given``; its methods note in ``seen`` what they get.

    A ``bare`` output is the first one, not in a tuple.
    """
    cls = subject.body(polynomial)

    def forward(*args):
        outputs = cls.forward(*args)
        seen.append(("forward", args, outputs[0] if bare else outputs))
        return seen[-1][-1]

    def setup_context(ctx, inputs, output):
        seen.append(("setup_context", inputs, output))

    apply = subject.custom(cls, forward=forward, setup_context=setup_context)

    def f(*tensors):
        given[:] = arguments(polynomial, tensors)
        return apply(*given)

    subject.implementation.vjp(f, subject.primals(polynomial), track=polynomial.track)


def _shared(got, expected):
    """Type and length of a sequence, and which of its entries are the expected objects themselves."""
    return type(got), len(got), tuple(a is b for a, b in zip(got, expected, strict=False))


@keeps("SETUP-01")
def test_setup_context_runs_after_forward_with_its_arguments(subject, data):
    """setup_context runs once, after forward, and its inputs are a tuple of the very arguments."""
    polynomial = subject.polynomial(data, separate=True)
    seen, given = [], []
    _call(subject, polynomial, seen, given)
    subject.assert_equal("methods that ran", got=[name for name, *_ in seen], expected=["forward", "setup_context"])
    expected = (tuple, len(given), (True,) * len(given))
    what = "type, length and identity of the entries of the inputs of setup_context"
    subject.assert_equal(what, got=_shared(seen[1][1], given), expected=expected)
    reached = [len(args) for _, args, _ in seen]
    subject.assert_equal("number of arguments of forward and of inputs", got=reached, expected=[len(given)] * 2)


@keeps("SETUP-02")
def test_setup_context_gets_what_forward_returned(subject, data):
    """The output of setup_context has the type and the very entries of what forward returned."""
    polynomial = subject.polynomial(data, separate=True)
    bare = subject.draw(data, (True, False) if len(polynomial.outputs) == 1 else (False,), "a bare output")
    seen = []
    _call(subject, polynomial, seen, [], bare)
    returned, output = seen[0][2], seen[1][2]
    subject.assert_equal("type of output in setup_context", got=type(output), expected=type(returned))
    pairs = ([output], [returned]) if bare else (output, returned)
    what = "type, length and identity of the entries of output"
    subject.assert_equal(what, got=_shared(*pairs), expected=_shared(pairs[1], pairs[1]))


@keeps("SETUP-03")
def test_setup_context_is_not_recorded(subject, data):
    """setup_context records nothing, sees outputs without a node, and its return value changes nothing."""
    polynomial = subject.polynomial(data, separate=True)
    returned = subject.draw(data, RETURNED, "returned by setup_context")
    requires_grad, node = subject.implementation.requires_grad, subject.implementation.node
    body, seen = subject.body(polynomial), []

    def setup_context(ctx, inputs, output):
        seen.extend(requires_grad(inputs[i] * 2) for i in polynomial.floating)
        seen.extend(node(y) is not None for y in output if subject.implementation.is_tensor(y))
        body.setup_context(ctx, inputs, output)
        return returned

    run = subject.run(polynomial, cls=subject.define(body, setup_context=setup_context))
    cotangents = polynomial.cotangents()
    what = "recording of products of inputs and of outputs in setup_context"
    subject.assert_equal(what, got=seen, expected=[False] * len(seen))
    subject.assert_all_same("outputs", got=run.outputs, expected=polynomial.forward())
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=polynomial.vjp(cotangents))


@keeps("SETUP-04")
def test_setup_context_runs_whether_recorded_or_not(subject, data):
    """setup_context runs once, also under no_grad and without inputs that require grad."""
    kinds = subject.draw(data, KINDS, "arguments")
    recording = subject.draw(data, (True, False), "grad mode")
    seen = []
    apply = subject.custom(
        forward=lambda *args: subject.tensor(1.0),
        setup_context=lambda ctx, inputs, output: seen.append(len(inputs)),
    )
    tensors = [subject.tensor(VALUES[kind]) for kind in kinds if kind != "number"]

    def f(*leaves):
        given = iter(leaves)
        with nullcontext() if recording else subject.implementation.no_grad():
            return apply(*(VALUES[kind] if kind == "number" else next(given) for kind in kinds))

    subject.implementation.vjp(f, tensors, track=[kind == "tracked" for kind in kinds if kind != "number"])
    subject.assert_equal("number of inputs in each call of setup_context", got=seen, expected=[len(kinds)])


@keeps("SETUP-05", needs="tuples")
def test_a_returned_intermediate_can_be_saved(subject, data):
    """An intermediate that is returned and saved gives right first and second derivatives."""
    xs = subject.draw(data, ENTRIES, "x")
    a, b = subject.draw(data, FACTORS, "a"), subject.draw(data, FACTORS, "b")
    gy, gt = subject.draw(data, ((1, None), (-2, None), (None, 1), (None, -2), (2, 1), (-1, 2)), "cotangents")
    dtype = subject.draw(data, subject.dtypes, "dtype")

    def forward(x):
        t = a * x * x
        return b * t * x, t

    def backward(ctx, gy, gt):
        x, t = ctx.saved_tensors
        return gy * (3 * b) * t + gt * (2 * a) * x

    cube = subject.custom(
        forward=forward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs, output[1]),
        backward=backward,
    )
    x = np.array(xs)
    cotangents = subject.tensors([None if g is None else g + 0 * x for g in (gy, gt)], dtype)
    first = gradient_function(subject, cube, cotangents)
    second = gradient_function(subject, first, subject.tensors([2 + 0 * x], dtype))
    gy, gt = gy or 0, gt or 0
    got = [*first(subject.tensor(x, dtype)), *second(subject.tensor(x, dtype))]
    expected = [3 * a * b * x * x * gy + 2 * a * x * gt, 2 * (6 * a * b * x * gy + 2 * a * gt + 0 * x)]
    subject.assert_all_same("first and second derivative", got=got, expected=expected)


@keeps("SETUP-06")
def test_an_input_returned_as_it_is_cannot_be_saved_in_setup_context(subject, data):
    """save_for_backward raises for an input that is returned unchanged, in setup_context only."""
    _check_returned_inputs(subject, data, "save_for_backward")


@keeps("SETUP-06", variant="forward", needs="jvp")
def test_an_input_returned_as_it_is_cannot_be_saved_for_forward_mode_in_setup_context(subject, data):
    """save_for_forward raises for an input that is returned unchanged, in setup_context only."""
    _check_returned_inputs(subject, data, "save_for_forward")


def _check_returned_inputs(subject, data, method):
    count = subject.draw(data, st.integers(1, 3), "number of inputs")
    masks = flags(count)
    returned, saved = subject.draw(data, masks, "returned unchanged"), subject.draw(data, masks, "saved")
    track = subject.draw(data, masks.filter(any), "requiring grad")
    separate = subject.draw(data, (True, False), "separate")
    tensors = [subject.tensor([float(n)]) for n in range(count)]

    def compute(xs):
        return tuple(x if as_is else x * 2 for x, as_is in zip(xs, returned, strict=True))

    def prepare(ctx, inputs, output):
        getattr(ctx, method)(*(x for x, keep in zip(inputs, saved, strict=True) if keep))

    apply = subject.custom(forward=lambda *xs: compute(xs), setup_context=prepare, separate=separate)

    def action():
        return subject.implementation.vjp(apply, tensors, track=track)[0]

    if separate and any(map(all, zip(returned, saved, strict=True))):
        naming = ["setup_context", ("input", "inputs")]
        subject.assert_raises(RuntimeError, action, f"{method} of an input returned unchanged", naming=naming)
    else:
        outputs = subject.assert_accepted(action, f"{method} of other tensors than inputs returned unchanged")
        subject.assert_all_same("outputs", got=outputs, expected=compute(tensors))


@keeps("SETUP-07")
def test_both_styles_give_the_same_derivatives(subject, data):
    """Both styles give equal outputs, cotangents, gradients and second derivatives."""
    polynomial = subject.polynomial(data, materialize=None, separate=True)
    used = flags(len(polynomial.outputs))
    cotangents = polynomial.cotangents(subject.draw(data, used, "used outputs"))
    functions = polynomial, replace(polynomial, separate=False)
    runs = [subject.run(function) for function in functions]
    subject.assert_all_same("outputs with setup_context", got=runs[0].outputs, expected=runs[1].outputs)
    found = [run.gradients(cotangents) for run in runs]
    subject.assert_all_same("gradients with setup_context", got=found[0], expected=found[1])
    given = [run.seen.cotangents for run in runs]
    subject.assert_all_same("cotangents in backward with setup_context", got=given[0], expected=given[1])
    second = [_second_derivatives(subject, function, cotangents) for function in functions]
    subject.assert_all_same("second derivatives with setup_context", got=second[0], expected=second[1])


def _second_derivatives(subject, polynomial, cotangents):
    xs, track = subject.primals(polynomial), polynomial.track
    weights = [np.full(polynomial.shape, n + 1.0) for n in range(len(xs))]

    f, given = subject.call_of(polynomial), subject.tensors(cotangents, polynomial.dtype)
    first = gradient_function(subject, f, given, track=track)
    return gradient_function(subject, first, subject.tensors(weights, polynomial.dtype), track=track)(*xs)
