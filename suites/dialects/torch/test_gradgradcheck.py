"""gradgradcheck: what it adds to gradcheck, in each of its modes."""

from contextlib import contextmanager
from functools import partial
from itertools import count

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._gradcheck import TOLERANCES, assert_check_fails
from autograd_conformance.suites.dialects.torch._powers import save_inputs


def _power(subject, exponent, weight, kind="right", factor=1, contiguous=None):
    """``weight * x ** exponent`` with a backward of this kind; ``factor`` is that of its wrong second derivative."""
    first, second = weight * exponent, weight * exponent * (exponent - 1)
    in_backward, in_jvp = (factor if kind == wrong else 1 for wrong in ("wrong backward", "wrong jvp"))

    def backward_of_slope(ctx, g):
        given = g + 0 * g.sum().item() if kind == "unbatchable" else g
        return in_backward * second * ctx.saved_tensors[0] ** (exponent - 2) * given

    slope = subject.custom(
        forward=lambda x: first * x ** (exponent - 1),
        setup_context=save_inputs,
        backward=backward_of_slope,
        jvp=lambda ctx, t: in_jvp * second * ctx.saved_tensors[0] ** (exponent - 2) * t,
        separate=False,
    )

    def forward(ctx, x):
        ctx.save_for_backward(first * x ** (exponent - 1) if kind == "intermediate" else x)
        ctx.save_for_forward(x)
        return weight * x**exponent

    def backward(ctx, g):
        if contiguous is not None:
            contiguous.append(g.is_contiguous())
        (saved,) = ctx.saved_tensors
        return g * (saved if kind == "intermediate" else slope(saved))

    once = torch.autograd.function.once_differentiable(backward)
    return subject.custom(
        forward=forward,
        backward=once if kind == "once differentiable" else backward,
        jvp=lambda ctx, t: t * slope(ctx.saved_tensors[0]),
    )


POWERS = st.fixed_dictionaries(
    {
        "exponent": st.sampled_from((2, 3)),
        "weight": st.sampled_from((-2, -1, 1, 3)),
        "shape": st.sampled_from(((2,), (3,), (2, 2))),
        "seed": st.integers(0, 99),
    }
)


@contextmanager
def _drawn(subject, data):
    """Draw exponent and weight of a power and its input, and seed torch's generator."""
    power = subject.draw(data, POWERS, "power")
    exponent, weight, shape, seed = (power[name] for name in ("exponent", "weight", "shape", "seed"))
    values = np.random.default_rng(seed).choice([-2.0, -1.0, 1.0, 2.0], size=shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield (exponent, weight), subject.tensor(values, "float64").requires_grad_()


def _assert_passes(subject, what, check, function, x, **options):
    got = subject.assert_accepted(lambda: check(function, x, **options), what)
    subject.assert_equal(what, got=got, expected=True)


def _assert_second_derivative_checked(subject, data, kind, options):
    factor = subject.draw(data, (2, -1), "factor of the wrong second derivative")
    with _drawn(subject, data) as (power, x):
        right, wrong = _power(subject, *power), _power(subject, *power, kind, factor)
        _assert_passes(subject, "gradcheck of a right first derivative", torch.autograd.gradcheck, wrong, x)
        _assert_passes(subject, "gradgradcheck of right derivatives", torch.autograd.gradgradcheck, right, x, **options)
        check = partial(torch.autograd.gradgradcheck, wrong, x, **options)
        assert_check_fails(subject, "gradgradcheck of a wrong second derivative", check)


@keeps("CHECK-07")
def test_gradgradcheck_checks_second_derivatives(subject, data):
    """gradgradcheck finds a wrong second derivative that gradcheck accepts, with any options."""
    flags = ("fast_mode", "check_batched_grad", "gen_non_contig_grad_outputs", "check_undefined_grad")
    options = subject.draw(data, st.fixed_dictionaries({flag: st.booleans() for flag in flags}), "options")
    _assert_second_derivative_checked(subject, data, "wrong backward", options)


@keeps("CHECK-07", variant="forward", needs="jvp", examples=0.4)
def test_gradgradcheck_checks_forward_over_reverse(subject, data):
    """With check_fwd_over_rev it finds a wrong jvp of the gradient."""
    reverse = subject.draw(data, st.booleans(), "check_rev_over_rev")
    options = {"check_fwd_over_rev": True, "check_rev_over_rev": reverse, "check_undefined_grad": reverse}
    _assert_second_derivative_checked(subject, data, "wrong jvp", options)


@keeps("CHECK-07", variant="batched", needs="batched_cotangents")
def test_gradgradcheck_checks_batches(subject, data):
    """With check_batched_grad it rejects a derivative that cannot be batched."""
    fast = subject.draw(data, st.booleans(), "fast_mode")
    with _drawn(subject, data) as (power, x):
        function, check = _power(subject, *power, "unbatchable"), torch.autograd.gradgradcheck
        _assert_passes(subject, "gradgradcheck without check_batched_grad", check, function, x, fast_mode=fast)
        batched = partial(check, function, x, check_batched_grad=True, fast_mode=fast)
        assert_check_fails(subject, "gradgradcheck of a derivative that cannot be batched", batched)


@keeps("CHECK-07", variant="strided")
def test_gradgradcheck_gives_cotangents_that_are_not_contiguous(subject, data):
    """backward sees non-contiguous cotangents exactly if gen_non_contig_grad_outputs is set."""
    wanted = subject.draw(data, st.booleans(), "gen_non_contig_grad_outputs")
    seen = []
    with _drawn(subject, data) as (power, x):
        function = _power(subject, *power, contiguous=seen)
        _assert_passes(
            subject, "gradgradcheck", torch.autograd.gradgradcheck, function, x, gen_non_contig_grad_outputs=wanted
        )
    what = "whether backward saw contiguous cotangents alone"
    subject.assert_equal(what, got=all(seen), expected=not wanted)


def _half_square(subject, second):
    """Half of the square, with ``second(x, g)`` for the derivative of its slope."""
    slope = subject.custom(
        forward=lambda x: x * 1,
        setup_context=save_inputs,
        backward=lambda ctx, g: second(ctx.saved_tensors[0], g),
        separate=False,
    )
    return subject.custom(
        forward=lambda x: x * x / 2,
        setup_context=save_inputs,
        backward=lambda ctx, g: g * slope(ctx.saved_tensors[0]),
        separate=False,
    )


@keeps("CHECK-07", variant="tolerances", examples=0.6)
def test_gradgradcheck_accepts_what_its_tolerances_allow(subject, data):
    """A second derivative may be wrong by atol and rtol, vary by nondet_tol, and have no kink within eps."""
    share, options, passes = subject.draw(data, TOLERANCES, "share, options, passes")
    varying = subject.draw(data, ({}, {"nondet_tol": 1e-3}), "options of what varies")
    step = subject.draw(data, ({}, {"eps": 1e-3}), "options of the step")
    sign, fast = subject.draw(data, (1, -1), "sign"), subject.draw(data, (False, True), "fast_mode")

    def check(function, x, **more):
        given = [subject.tensor([values], "float64").requires_grad_() for values in (x, 1.0)]
        return torch.autograd.gradgradcheck(function, *given, raise_exception=False, fast_mode=fast, **more)

    got = check(_half_square(subject, lambda x, g: (1 + sign * share) * g), 2.0, **options)
    subject.assert_equal("gradgradcheck of a second derivative that is nearly right", got=got, expected=passes)
    runs = count()
    got = check(_half_square(subject, lambda x, g: (1 + 1e-6 * next(runs)) * g), 2.0, **varying)
    subject.assert_equal("gradgradcheck of a second derivative that varies", got=got, expected=bool(varying))
    # A step of more than the distance goes beyond the kink of the slope.
    bent = subject.custom(
        forward=lambda x: x * x.abs() / 2,
        setup_context=save_inputs,
        backward=lambda ctx, g: g * ctx.saved_tensors[0].abs(),
        separate=False,
    )
    got = check(bent, sign * 1e-4, **step)
    subject.assert_equal("gradgradcheck near a kink of the slope", got=got, expected=not step)


@keeps("CHECK-08")
def test_gradcheck_does_not_tell_whether_backward_is_differentiable(subject, data):
    """A once-differentiable backward, or one with a saved intermediate, fails gradgradcheck only."""
    kind = subject.draw(data, ("once differentiable", "intermediate"), "backward")
    fast = subject.draw(data, st.booleans(), "fast_mode")
    with _drawn(subject, data) as (power, x):
        right, once = _power(subject, *power), _power(subject, *power, kind)
        _assert_passes(subject, f"gradcheck of {kind}", torch.autograd.gradcheck, once, x, fast_mode=fast)
        _assert_passes(subject, "gradgradcheck of a right one", torch.autograd.gradgradcheck, right, x, fast_mode=fast)
        check = partial(torch.autograd.gradgradcheck, once, x, fast_mode=fast)
        subject.assert_raises(RuntimeError, check, f"gradgradcheck of {kind}")
