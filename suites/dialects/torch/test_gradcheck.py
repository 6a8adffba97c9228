"""gradcheck: what it accepts, what it catches, and which inputs it refuses."""

import warnings
from dataclasses import replace
from functools import partial
from itertools import count

import torch
from hypothesis import strategies as st
from torch.autograd.gradcheck import GradcheckError

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import polynomials
from autograd_conformance.suites.dialects.torch._gradcheck import TOLERANCES, assert_check_fails
from autograd_conformance.suites.dialects.torch._leaves import new_leaves

SHAPES = ((), (1,), (2,), (2, 2))
MODES = st.fixed_dictionaries({"fast_mode": st.booleans(), "check_undefined_grad": st.booleans()})


# Repeated, so that gradcheck often checks several arguments.
KINDS = ("tracked", "tracked", "fixed", "integers", "number", "None")


def _polynomials(outputs=("float",), shapes=SHAPES, **restrictions):
    some = {"arguments": KINDS, "outputs": outputs, "shapes": shapes, "max_arguments": 3}
    return polynomials(dtypes=("float64",), **some, **restrictions)


def _altered(subject, polynomial, change, cotangents=lambda given: given):
    """The Function with gradients ``change(position, gradient)``, computed from ``cotangents(given)``."""
    cls = subject.body(polynomial)

    def backward(ctx, *given):
        return tuple(change(position, g) for position, g in enumerate(cls.backward(ctx, *cotangents(given))))

    return subject.define(cls, backward=backward)


def _changed(subject, polynomial, position, output, change):
    """The Function with a wrong gradient from one output to one argument."""
    cls = subject.body(polynomial)

    def backward(ctx, *given):
        changed = [change(g) if o == output and g is not None else g for o, g in enumerate(given)]
        right, wrong = cls.backward(ctx, *given), cls.backward(ctx, *changed)
        return (*right[:position], wrong[position], *right[position + 1 :])

    return subject.define(cls, backward=backward)


def _one_gradient(subject, data, polynomial):
    """Draw the positions of the argument and the output between which the derivative will be wrong."""
    position = subject.draw(data, polynomial.tracked, "argument whose gradient is wrong")
    return position, subject.draw(data, polynomial.float_outputs, "from output")


def _gradcheck(subject, polynomial, cls=None, **options):
    return torch.autograd.gradcheck(subject.call_of(polynomial, cls), new_leaves(subject, polynomial), **options)


@keeps("CHECK-01")
def test_gradcheck_compares_with_finite_differences(subject, data):
    """gradcheck accepts a right backward and names the input and output of a wrong gradient."""
    polynomial = subject.draw(data, _polynomials(separate=None, materialize=None), "function")
    position, output = _one_gradient(subject, data, polynomial)
    factor = subject.draw(data, (2, -1, 0), "factor of the gradient")
    cls = _changed(subject, polynomial, position, output, lambda g: factor * g)
    modes = subject.draw(data, MODES, "options")
    raising = subject.draw(data, st.booleans(), "raise_exception")
    right = subject.assert_accepted(
        lambda: _gradcheck(subject, polynomial, raise_exception=raising, **modes), "gradcheck of a right backward"
    )
    subject.assert_equal("gradcheck of a right backward", got=right, expected=True)
    facts = [f"input {sum(polynomial.needs[:position])}", f"output {output}"]
    check = partial(_gradcheck, subject, polynomial, cls)
    assert_check_fails(subject, "gradcheck of a wrong backward", check, facts, **modes)


@keeps("CHECK-01", variant="tolerances")
def test_gradcheck_accepts_what_its_tolerances_allow(subject, data):
    """A slope may be wrong by atol and by the share rtol of it, and eps is the step of the finite differences."""
    share, options, passes = subject.draw(data, TOLERANCES, "share, options, passes")
    sign, fast = subject.draw(data, (1, -1), "sign"), {"fast_mode": subject.draw(data, (False, True), "fast_mode")}
    step = subject.draw(data, ({}, {"eps": 1e-6}, {"eps": 1e-3}), "options of the step")

    def check(forward, slope, x, **more):
        cls = subject.define(forward=lambda ctx, x: forward(x), backward=lambda ctx, g: slope * g)
        inputs = (subject.tensor(x, "float64").requires_grad_(),)
        return torch.autograd.gradcheck(cls.apply, inputs, raise_exception=False, **fast, **more)

    got = check(lambda x: x * 1, 1 + sign * share, [2.0], **options)
    subject.assert_equal("gradcheck of a slope that is nearly right", got=got, expected=passes)
    # A step of more than the distance goes beyond the kink.
    got = check(torch.abs, float(sign), [sign * 1e-4], **step)
    subject.assert_equal("gradcheck of abs near its kink", got=got, expected=step.get("eps") != 1e-3)


def _by_numpy(factor):
    """What a backward computes that cannot be batched."""
    return lambda ctx, g: torch.from_numpy(factor * g.detach().cpu().numpy()).to(g.device)


# A rule that is wrong, the options with which gradcheck notices, and those with which it does not.
PARTS = {
    "backward": ({}, {"check_backward_ad": False, "check_forward_ad": True}),
    "jvp": ({"check_forward_ad": True}, {}),
    "batched backward": ({"check_batched_grad": True}, {}),
    "batched jvp": ({"check_forward_ad": True, "check_batched_forward_grad": True}, {"check_forward_ad": True}),
}


@keeps("CHECK-01", variant="parts")
def test_gradcheck_checks_the_parts_asked_for(subject, data):
    """Batched gradients, and jvp, are checked if they are asked for, and backward unless it is left out."""
    wrong = subject.draw(data, PARTS, "wrong, if anything")
    right = subject.draw(data, (False, True), "nothing is wrong")
    noticed = subject.draw(data, (True, False), "gradcheck is asked to look there")
    options = PARTS[wrong][0 if noticed else 1]
    rule = _by_numpy(2.0) if "batched" in wrong else lambda ctx, g: 3 * g
    name = wrong.split()[-1]
    rules = dict.fromkeys(("backward", "jvp"), lambda ctx, g: 2 * g) | ({} if right else {name: rule})
    apply = subject.custom(forward=lambda ctx, x: 2 * x, **rules)
    x = subject.tensor([1.0, 2.0], "float64").requires_grad_()
    got = torch.autograd.gradcheck(apply, (x,), raise_exception=False, **options)
    subject.assert_equal(f"gradcheck with {sorted(options)}", got=got, expected=right or not noticed)


# By which rule a part of what it gets may be taken twice, with the options for gradcheck to look there.
RULES = {"backward": {}, "jvp": {"check_forward_ad": True, "check_backward_ad": False}}


@keeps("CHECK-01", variant="complex", examples=0.6)
def test_gradcheck_looks_at_either_part_of_a_complex_number(subject, data):
    """gradcheck names the part of a complex output, or for jvp of an input, for which alone a rule is wrong."""
    dtype = subject.draw(data, ("complex128", "float64"), "dtype of the input")
    rule = subject.draw(data, RULES if dtype == "complex128" else ("backward",), "rule")
    part = subject.draw(data, ("imaginary", "real"), "part taken twice")
    fast = subject.draw(data, (False, True), "fast_mode")
    factor = subject.draw(data, (2 - 1j, 1 + 1j, -1 + 2j), "factor")
    x = subject.tensor([1.0, 2.0], dtype).requires_grad_()

    def function(twice):
        def taken(g):
            return torch.complex(g.real * (1 + (twice == "real")), g.imag * (1 + (twice == "imaginary")))

        def backward(ctx, g):
            found = factor.conjugate() * taken(g)
            return found if x.is_complex() else found.real

        jvp = lambda ctx, t: factor * taken(t)  # noqa: E731
        return subject.custom(forward=lambda ctx, x: factor * x, backward=backward, jvp=jvp)

    def check(twice):
        return torch.autograd.gradcheck(function(twice), (x,), fast_mode=fast, **RULES[rule])

    got = subject.assert_accepted(lambda: check(""), f"gradcheck of a right {rule}")
    subject.assert_equal(f"gradcheck of a right {rule}", got=got, expected=True)
    what = f"gradcheck of a {rule} that is wrong for one part"
    subject.assert_raises(GradcheckError, lambda: check(part), what, naming=[part])


# Wrong cotangents of a tensor of several elements; in fast mode a single wrong element may go unnoticed.
WRONG = {
    "the last element twice": lambda g: torch.cat((g.reshape(-1)[:-1], 2 * g.reshape(-1)[-1:])).reshape(g.shape),
    "the sum of all elements": lambda g: g.sum().expand_as(g),
}


@keeps("CHECK-01", variant="entries")
def test_gradcheck_compares_every_entry(subject, data):
    """gradcheck finds a gradient that is wrong in a single element."""
    polynomial = subject.draw(data, _polynomials(shapes=((2,), (2, 2)), separate=None), "function")
    position, output = _one_gradient(subject, data, polynomial)
    wrong = subject.draw(data, WRONG, "what backward takes for the cotangent")
    cls = _changed(subject, polynomial, position, output, WRONG[wrong])
    assert_check_fails(subject, "gradcheck of a wrong backward", partial(_gradcheck, subject, polynomial, cls))


@keeps("CHECK-02", variant="none")
def test_some_input_must_require_grad(subject, data):
    """gradcheck raises if no input requires grad, also with raise_exception=False."""
    polynomial = subject.draw(data, _polynomials(), "function")
    raising = subject.draw(data, st.booleans(), "raise_exception")
    constants = [x.detach() for x in new_leaves(subject, polynomial)]
    check = partial(torch.autograd.gradcheck, subject.call_of(polynomial), constants, raise_exception=raising)
    subject.assert_raises(
        (ValueError, RuntimeError), check, "gradcheck without tracked inputs", naming=["requires_grad"]
    )


# Tensors of shape (2, 2) in the memory of four numbers; all except the last overlap themselves.
LAYOUTS = {
    "expanded rows": lambda x: x[:2].expand(2, 2),
    "expanded columns": lambda x: x[:2, None].expand(2, 2),
    "sliding windows": lambda x: x.as_strided((2, 2), (1, 1)),
    "transposed": lambda x: x.view(2, 2).t(),
}


@keeps("CHECK-02", variant="overlap")
def test_inputs_must_not_overlap_themselves(subject, data):
    """gradcheck raises for an input that overlaps itself and accepts a transposed one."""
    polynomial = subject.draw(data, _polynomials(shapes=((2, 2),)), "function")
    position = subject.draw(data, [i for i, need in enumerate(polynomial.track) if need], "input")
    overlapping = subject.draw(data, list(LAYOUTS)[:-1], "its layout")
    fast = subject.draw(data, st.booleans(), "fast_mode")

    def check(layout):
        inputs = new_leaves(subject, polynomial)
        inputs[position] = LAYOUTS[layout](subject.tensor([1.0, 2.0, 3.0, -1.0])).requires_grad_()
        return torch.autograd.gradcheck(subject.call_of(polynomial), inputs, fast_mode=fast)

    what = "gradcheck of an input that overlaps itself"
    subject.assert_raises((RuntimeError, ValueError), lambda: check(overlapping), what)
    got = subject.assert_accepted(lambda: check("transposed"), "gradcheck of a transposed input")
    subject.assert_equal("gradcheck of a transposed input", got=got, expected=True)


@keeps("CHECK-02", variant="single")
def test_inputs_in_single_precision_are_warned_of(subject, data):
    """gradcheck warns of an input below double precision and names its position."""
    polynomial = subject.draw(data, _polynomials(), "function")
    position = subject.draw(data, [i for i, need in enumerate(polynomial.track) if need], "input")
    low = subject.draw(data, ("float32", "float16", "bfloat16"), "its dtype")
    inputs = new_leaves(subject, polynomial)
    lower = [x.detach().to(getattr(torch, low)).requires_grad_() if i == position else x for i, x in enumerate(inputs)]
    check = partial(torch.autograd.gradcheck, subject.call_of(polynomial), raise_exception=False)
    what = "gradcheck of an input in lower precision"
    subject.assert_warns(UserWarning, lambda: check(lower), what, naming=[position, "precision"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subject.assert_accepted(lambda: check(inputs), "gradcheck of inputs in double precision")


@keeps("CHECK-03", variant="cotangent")
def test_a_backward_that_ignores_its_cotangent_is_caught(subject, data):
    """gradcheck fails if backward ignores its cotangent."""
    function = _polynomials(shapes=((), (1,)), max_outputs=1, separate=None)
    polynomial = subject.draw(data, function, "function")
    modes = subject.draw(data, MODES, "options")
    cls = _altered(subject, polynomial, lambda position, g: g, cotangents=lambda given: map(torch.ones_like, given))
    check = partial(_gradcheck, subject, polynomial, cls)
    assert_check_fails(subject, "gradcheck of a backward that ignores its cotangent", check, **modes)


@keeps("CHECK-03", variant="repeated")
def test_a_backward_that_varies_is_caught(subject, data):
    """gradcheck fails if backward varies between runs, unless nondet_tol allows it."""
    polynomial = subject.draw(data, _polynomials(separate=None), "function")
    modes = subject.draw(data, MODES, "options")

    def check(**options):
        runs = count()
        cls = _altered(subject, polynomial, lambda position, g: g if g is None else g * (1 + 1e-8 * next(runs)))
        return _gradcheck(subject, polynomial, cls, **options)

    assert_check_fails(subject, "gradcheck of a backward that varies from run to run", check, **modes)
    got = subject.assert_accepted(lambda: check(nondet_tol=1e-3, **modes), "gradcheck with nondet_tol")
    subject.assert_equal("gradcheck of a backward that varies by less than nondet_tol", got=got, expected=True)


@keeps("CHECK-03", variant="missing")
def test_a_missing_gradient_is_caught(subject, data):
    """gradcheck fails if backward returns None for an input that has a gradient."""
    polynomial = subject.draw(data, _polynomials(separate=None), "function")
    position = subject.draw(data, polynomial.tracked, "argument without gradient")
    modes = subject.draw(data, MODES, "options")
    cls = _altered(subject, polynomial, lambda p, g: None if p == position else g)
    check = partial(_gradcheck, subject, polynomial, cls)
    assert_check_fails(subject, "gradcheck of a backward that lacks a gradient", check, **modes)


def _refusing(given, ones):
    if any(g is None for g in given):
        raise RuntimeError("a cotangent is missing")
    return given


def _presuming(given, ones):
    return [ones if g is None else g for g in given]


# What a backward that does not expect undefined cotangents may do.
UNDEFINED = {"raises": _refusing, "takes ones for granted": _presuming}


@keeps("CHECK-03", variant="undefined")
def test_a_backward_that_fails_on_undefined_cotangents_is_caught(subject, data):
    """gradcheck fails if backward mishandles None cotangents, unless check_undefined_grad is off."""
    function = _polynomials(max_outputs=1, separate=None, materialize=False)
    polynomial = subject.draw(data, function, "function")
    treat = UNDEFINED[subject.draw(data, UNDEFINED, "what backward does with an undefined cotangent")]
    fast = subject.draw(data, st.booleans(), "fast_mode")
    ones = torch.ones_like(subject.tensor(polynomial.forward()[0]))
    cls = _altered(subject, polynomial, lambda position, g: g, cotangents=lambda given: treat(given, ones))
    check = partial(_gradcheck, subject, polynomial, cls, fast_mode=fast)
    assert_check_fails(subject, "gradcheck of a backward that cannot handle undefined cotangents", check)
    got = subject.assert_accepted(lambda: check(check_undefined_grad=False), "gradcheck without check_undefined_grad")
    subject.assert_equal("gradcheck without check_undefined_grad", got=got, expected=True)


def _asserting(given):
    assert all(g is not None for g in given)
    return given


# What users write in a backward that does not expect undefined cotangents.
CARELESS = {
    "multiplies": lambda given: [g * 1 for g in given],
    "reads the shape": lambda given: [g.reshape(g.shape) for g in given],
    "asserts": _asserting,
}


@keeps("CHECK-04")
def test_a_backward_that_presumes_cotangents_fails_the_check(subject, data):
    """A backward that raises on None makes gradcheck raise GradcheckError or return False."""
    function = _polynomials(max_outputs=1, separate=None, materialize=False)
    polynomial = subject.draw(data, function, "function")
    careless = CARELESS[subject.draw(data, CARELESS, "what backward does with cotangents")]
    fast = subject.draw(data, st.booleans(), "fast_mode")
    cls = _altered(subject, polynomial, lambda position, g: g, cotangents=careless)
    check = partial(_gradcheck, subject, polynomial, cls, fast_mode=fast)
    assert_check_fails(subject, "gradcheck of a backward that cannot handle None", check)


@keeps("CHECK-05", variant="same")
def test_gradients_of_the_right_dtype_are_accepted(subject, data):
    """check_grad_dtypes accepts gradients in the dtype of their inputs."""
    polynomial = subject.draw(data, _polynomials(separate=None, materialize=None), "function")
    modes = subject.draw(data, MODES, "options")
    check = partial(_gradcheck, subject, polynomial, check_grad_dtypes=True, **modes)
    got = subject.assert_accepted(check, "gradcheck with check_grad_dtypes")
    subject.assert_equal("gradcheck with check_grad_dtypes", got=got, expected=True)


@keeps("CHECK-05", variant="other")
def test_gradients_of_another_dtype_are_caught(subject, data):
    """check_grad_dtypes rejects a gradient in another dtype."""
    polynomial = subject.draw(data, _polynomials(separate=None), "function")
    position = subject.draw(data, polynomial.tracked, "argument")
    dtype = getattr(torch, subject.draw(data, ("float32", "float16", "bfloat16"), "dtype of its gradient"))
    modes = subject.draw(data, MODES, "options")
    cls = _altered(subject, polynomial, lambda p, g: g.to(dtype) if p == position else g)
    check = partial(_gradcheck, subject, polynomial, cls, check_grad_dtypes=True)
    assert_check_fails(subject, "gradcheck of a gradient of another dtype", check, ["dtype"], **modes)


def _assert_checked_next_to_others(subject, data, function, **options):
    """Whatever the other outputs are, a right backward passes gradcheck and a wrong one does not."""
    polynomial = subject.draw(data, function, "function")
    position, output = _one_gradient(subject, data, polynomial)
    factor = subject.draw(data, (2, -1, 0), "factor of the gradient")
    wrong = _changed(subject, polynomial, position, output, lambda g: factor * g)
    what = "gradcheck of a Function with an output that is not differentiable"
    got = subject.assert_accepted(lambda: _gradcheck(subject, polynomial, **options), what)
    subject.assert_equal(what, got=got, expected=True)
    check = partial(_gradcheck, subject, polynomial, wrong, **options)
    assert_check_fails(subject, "gradcheck of a wrong gradient next to such an output", check)


def _functions(kind, before=((),), after=((),)):
    """Functions with float outputs and outputs of this kind, and optionally some first and last."""
    ends = (st.sampled_from(before), st.sampled_from(after))
    drawn = _polynomials(("float", kind), separate=None)
    return st.builds(lambda p, first, last: replace(p, outputs=(*first, *p.outputs, *last)), drawn, *ends)


@keeps("CHECK-06", variant="slow")
def test_marked_outputs_are_skipped(subject, data):
    """Slow mode checks the other outputs right if a marked one follows a differentiable one."""
    functions = _functions("marked", after=((), ("integers",)))
    _assert_checked_next_to_others(subject, data, functions)


@keeps("CHECK-06", variant="fast")
def test_integer_outputs_are_skipped_in_fast_mode(subject, data):
    """Fast mode checks the other outputs right if an integer one follows a differentiable one."""
    functions = _functions("integers", after=((), ("marked",)))
    _assert_checked_next_to_others(subject, data, functions, fast_mode=True)


@keeps("CHECK-06", variant="integers")
def test_integer_outputs_before_others_are_skipped(subject, data):
    """Slow mode checks the other outputs right if an integer one comes first."""
    functions = _functions("integers", before=(("integers",),))
    _assert_checked_next_to_others(subject, data, functions)


@keeps("CHECK-06", variant="marked")
def test_marked_outputs_before_others_are_skipped_in_fast_mode(subject, data):
    """Fast mode checks the other outputs right if a marked one comes first."""
    functions = _functions("marked", before=(("marked",),))
    _assert_checked_next_to_others(subject, data, functions, fast_mode=True)


@keeps("CHECK-06", variant="zero")
def test_without_differentiable_outputs_nothing_may_vary(subject, data):
    """If all outputs are marked, gradcheck accepts step functions and rejects functions that vary."""
    drawn = _polynomials(separate=None)
    kinds = st.lists(st.sampled_from(("marked", "integers")), max_size=2).map(lambda more: ("marked", *more))
    polynomial = subject.draw(data, st.builds(lambda p, k: replace(p, outputs=k), drawn, kinds), "function")
    modes = subject.draw(data, MODES, "options")
    check = partial(_gradcheck, subject, polynomial)
    assert_check_fails(subject, "gradcheck of an output that varies and is marked", check, ["zero"], **modes)
    f = subject.call_of(polynomial)
    inputs = new_leaves(subject, polynomial)
    steps = partial(torch.autograd.gradcheck, lambda *xs: f(*map(torch.round, xs)), inputs, **modes)
    got = subject.assert_accepted(steps, "gradcheck of a step function")
    subject.assert_equal("gradcheck of a step function", got=got, expected=True)
