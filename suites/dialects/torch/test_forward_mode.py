"""Forward mode through torch's own interface: levels, dual tensors, gradcheck."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch.autograd import forward_ad
from torch.autograd.gradcheck import gradcheck

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import polynomials
from autograd_conformance.suites.contract._jvp_functions import drawn_jvp_function, right_rule, with_jvp
from autograd_conformance.suites.dialects.torch._leaves import new_leaves

# Small shapes, so that gradcheck is fast.
SMALL = ((), (1,), (2,))

# How to leave a level: by its end, or by an exception.
LEAVING = ("end", "exception")


@keeps("JVP-14", variant="gradcheck", examples=0.4)
def test_gradcheck_verifies_jvp_if_asked_to(subject, data):
    """gradcheck finds a wrong jvp with check_forward_ad only, and a wrong backward always."""
    kinds = {"arguments": ("tracked", "None"), "outputs": ("float",)}
    polynomial = drawn_jvp_function(subject, data, shapes=SMALL, **kinds)
    wrong = subject.draw(data, ("neither", "jvp", "backward"), "which is wrong")
    rule, body = right_rule(polynomial), subject.body(polynomial)

    def jvp(ctx, *given):
        return tuple(t if t is None or wrong != "jvp" else 3 * t for t in rule(ctx, *given))

    def backward(ctx, *given):
        return tuple(g if g is None or wrong != "backward" else 3 * g for g in body.backward(ctx, *given))

    f = subject.call_of(polynomial, with_jvp(subject, polynomial, jvp, backward=backward))
    inputs = _wide_leaves(subject, polynomial)
    got = [gradcheck(f, inputs, check_forward_ad=flag, raise_exception=False) for flag in (False, True)]
    what = "gradcheck without and with check_forward_ad"
    subject.assert_equal(what, got=got, expected=[wrong != "backward", wrong == "neither"])


@keeps("JVP-14", variant="marked", examples=0.4)
def test_gradcheck_verifies_jvp_behind_an_output_that_is_not_differentiable(subject, data):
    """gradcheck accepts a right jvp if a marked output comes before a differentiable one."""
    mixed = polynomials(arguments=("tracked",), outputs=("float", "marked"), shapes=SMALL, separate=None)
    behind = mixed.filter(lambda p: "marked" in p.outputs and p.outputs[-1] == "float")
    polynomial = subject.draw(data, behind, "function")
    f, inputs = subject.call_of(polynomial, with_jvp(subject, polynomial)), _wide_leaves(subject, polynomial)
    got = gradcheck(f, inputs, check_forward_ad=True, raise_exception=False)
    subject.assert_equal("gradcheck with check_forward_ad of a right jvp", got=got, expected=True)


def _wide_leaves(subject, polynomial):
    """Leaves in the dtype that gradcheck needs."""
    wide = getattr(torch, subject.supported("float64"))
    return [x.to(wide).detach().requires_grad_() for x in new_leaves(subject, polynomial)]


@keeps("JVP-16")
def test_levels_of_forward_mode_cannot_be_nested(subject, data):
    """A nested dual level raises and leaves the outer one intact; after it a new level works."""
    x, t = _drawn_dual(subject, data)
    nest = subject.draw(data, ("dual_level", "enter_dual_level"), "nested by")
    enter = {"dual_level": forward_ad.dual_level().__enter__, "enter_dual_level": forward_ad.enter_dual_level}[nest]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        subject.assert_raises(RuntimeError, enter, "a nested level", naming=["nested"])
        subject.assert_same("tangent after it", got=forward_ad.unpack_dual(dual).tangent, expected=t)
    subject.assert_accepted(lambda: _tangent_in_a_new_level(x), "another level after the first")


@keeps("JVP-16", variant="exit")
def test_tangents_end_with_their_level(subject, data):
    """When a level is left, by its end or by an exception, all tangents are gone."""
    polynomial = drawn_jvp_function(subject, data, arguments=("tracked",), outputs=("float",))
    calls = subject.draw(data, st.integers(0, 2), "further calls")
    leaving = subject.draw(data, LEAVING, "level left by")
    f = subject.call_of(polynomial, with_jvp(subject, polynomial))
    made = []
    try:
        with forward_ad.dual_level():
            made += [forward_ad.make_dual(x, torch.ones_like(x)) for x in new_leaves(subject, polynomial)]
            count = len(made)
            for _ in range(calls + 1):
                made += f(*made[-1:] * count)
            within = [forward_ad.unpack_dual(x).tangent is None for x in made]
            if leaving == "exception":
                raise KeyError("left")
    except KeyError:
        pass
    subject.assert_equal("tensors without tangent within the level", got=within, expected=[False] * len(made))
    _assert_left(subject)
    after = [_tangent_in_a_new_level(x) for x in made]
    subject.assert_all_same("tangents after the level", got=after, expected=[None] * len(made))


def _assert_left(subject):
    """Assert that no level is entered; leave what is, because other tests enter one."""
    level = forward_ad._current_level
    while forward_ad._current_level >= 0:
        forward_ad.exit_dual_level()
    subject.assert_equal("level of forward mode after its block", got=level, expected=-1)


@keeps("JVP-16", variant="make_dual")
def test_make_dual_needs_a_level_and_a_floating_or_complex_tensor(subject, data):
    """make_dual raises outside a level and for integer or bool tensors."""
    x, t = _drawn_dual(subject, data)
    other = subject.draw(data, (torch.int64, torch.int32, torch.uint8, torch.bool), "dtype without derivatives")
    given = subject.draw(data, ("primal", "tangent", "both"), "which has it")
    primal = x.to(other) if given != "tangent" else x
    tangent = t.to(other) if given != "primal" else t
    what = "make_dual outside of a level"
    subject.assert_raises(RuntimeError, lambda: forward_ad.make_dual(x, t), what, naming=["level"])
    with forward_ad.dual_level():
        facts = ["floating", "complex", str(other).removeprefix("torch.")]
        what = "make_dual of a tensor without derivatives"
        subject.assert_raises(
            (ValueError, TypeError), lambda: forward_ad.make_dual(primal, tangent), what, naming=facts
        )
        dual = subject.assert_accepted(lambda: forward_ad.make_dual(x, t), "make_dual of floating or complex tensors")
        subject.assert_same("its tangent", got=forward_ad.unpack_dual(dual).tangent, expected=t)


def _drawn_dual(subject, data):
    dtypes = [d for d in (*subject.dtypes, "complex128", "complex64") if d in subject.implementation.dtypes]
    dtype = subject.draw(data, dtypes, "dtype")
    shape = subject.draw(data, ((), (3,), (2, 1)), "shape")
    options = {"dtype": getattr(torch, dtype), "device": subject.device}
    return torch.ones(shape, **options), torch.full(shape, 2.0, **options)


def _tangent_in_a_new_level(x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(x).tangent


LAYOUTS = {"rows": lambda x: x.contiguous(), "columns": lambda x: x.mT.contiguous().mT}


def _memory(x):
    return x.untyped_storage().data_ptr()


@keeps("JVP-17")
def test_dual_tensors_share_the_memory_of_what_they_are_made_of(subject, data):
    """make_dual copies nothing but a tangent of another layout; what unpack_dual gives has no tangent."""
    layouts = [subject.draw(data, LAYOUTS, f"layout of the {what}") for what in ("tensor", "tangent")]
    shape = subject.draw(data, ((2, 3), (3, 2), (2, 2, 3)), "shape")
    called = subject.draw(data, (False, True), "unpacked after a call of a Function")
    ones = subject.tensor(np.ones(shape))
    x, tangent = (LAYOUTS[layout](factor * ones) for factor, layout in zip((2, 3), layouts, strict=True))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        found = forward_ad.unpack_dual(dual)
        shared = [_memory(dual) == _memory(x), _memory(found.primal) == _memory(x)]
        what = "whether the dual tensor, and its primal, share the memory of the tensor"
        subject.assert_equal(what, got=shared, expected=[True, True])
        what = "whether the tangent of the dual tensor shares the memory of the tangent"
        same = layouts[0] == layouts[1]
        subject.assert_equal(what, got=_memory(found.tangent) == _memory(tangent), expected=same)
        if called:
            double = lambda ctx, x: 2 * x  # noqa: E731
            found = forward_ad.unpack_dual(subject.custom(forward=double, jvp=double)(dual))
        factor = 2 if called else 1
        subject.assert_all_same("primal and tangent", got=found, expected=[2 * factor * ones, 3 * factor * ones])
        nested = [forward_ad.unpack_dual(part).tangent for part in found]
        subject.assert_equal("tangents of the primal and of the tangent", got=nested, expected=[None, None])
