"""What torch.library.opcheck accuses an operator of."""

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from autograd_conformance.harness.testing.marks import keeps

SPACE = "autograd_conformance_opcheck"


def _doubled(x: Tensor) -> Tensor:
    return 2 * x


def _changes(x: Tensor) -> Tensor:
    y = 2 * x
    x.detach().add_(1)
    return y


# What is wrong with an operator that doubles, and the test of opcheck that says so: its function, and its fake kernel.
_CASES = {
    "nothing": (None, _doubled, torch.empty_like),
    "a hidden change": ("test_schema", _changes, torch.empty_like),
    "the shape of the fake": ("test_faketensor", _doubled, lambda x: x.new_empty((*x.shape, 1))),
    "the dtype of the fake": ("test_faketensor", _doubled, lambda x: x.new_empty(x.shape, dtype=torch.int64)),
    "the strides of the fake": ("test_faketensor", _doubled, lambda x: x.new_empty(x.mT.shape).mT),
    "no fake": ("test_faketensor", _doubled, None),
}
_REGISTRATION = "test_autograd_registration"
_TESTS = ("test_schema", _REGISTRATION, "test_faketensor", "test_aot_dispatch_dynamic")
# For other devices opcheck says that this test is not implemented yet.
_DEVICES_OF_REGISTRATION = ("cpu", "cuda", "xpu")


@keeps("LIB-13", examples=0.4, slow=True)
def test_opcheck_accuses_what_is_wrong(subject, data):
    """opcheck accepts a right operator, and names the test that finds what is wrong with another one."""
    case = subject.draw(data, tuple(_CASES), "what is wrong")
    tracked = subject.draw(data, st.booleans(), "requires grad")
    test, function, fake = _CASES[case]
    op = torch.library.custom_op(f"{SPACE}::examined", function, mutates_args=())
    op.register_autograd(lambda ctx, g: (2 * g,))
    if fake is not None:
        op.register_fake(fake)
    args = (subject.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).requires_grad_(tracked),)
    found = torch.library.opcheck(op, args, raise_exception=False)
    subject.assert_equal("tests of opcheck", got=set(found), expected=set(_TESTS))
    if subject.device not in _DEVICES_OF_REGISTRATION:
        del found[_REGISTRATION]
    failed = sorted(name for name, said in found.items() if said != "SUCCESS")
    if test is None:
        subject.assert_equal("tests that fail for a right operator", got=failed, expected=[])
    else:
        subject.assert_that(test in failed, "tests that fail", got=failed, expected=f"{test} among them")
        # Its formula is registered as it should be.
        subject.assert_that(
            _REGISTRATION not in failed, "tests that fail", got=failed, expected=f"{_REGISTRATION} not among them"
        )
        what = "opcheck of an operator that is wrong"
        subject.assert_raises(
            Exception,
            lambda: torch.library.opcheck(op, args, test_utils=test),
            what,
        )


@keeps("LIB-13", variant="registration", examples=0.4, slow=True)
def test_opcheck_accuses_a_formula_elsewhere(subject, data):
    """An operator whose kernel for a device records is accused, and one with a registered formula is not."""
    if subject.device not in _DEVICES_OF_REGISTRATION:
        pytest.skip(f"opcheck has no {_REGISTRATION} for {subject.device}")
    registered = subject.draw(data, (True, False), "register_autograd")

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = subject.tensor([1.0, 2.0]).requires_grad_()
    with torch.library._scoped_library(SPACE, "FRAGMENT") as lib:
        lib.define("elsewhere(Tensor x) -> Tensor")
        kernel = _doubled if registered else Doubled.apply
        lib.impl("elsewhere", kernel, torch._C._dispatch_key_for_device(x.device.type))
        if registered:
            torch.library.register_autograd(f"{SPACE}::elsewhere", lambda ctx, g: (2 * g,), lib=lib)
        op = getattr(torch.ops, SPACE).elsewhere.default
        found = torch.library.opcheck(op, (x,), test_utils=_REGISTRATION, raise_exception=False)
    said = found[_REGISTRATION] == "SUCCESS"
    subject.assert_equal("whether opcheck accepts the registration", got=said, expected=registered)


@keeps("LIB-13", variant="tolerances", examples=0.2, slow=True)
def test_opcheck_compares_within_rtol_and_atol(subject, data):
    """A result that differs from call to call is accepted within rtol or atol, and one of the two alone raises."""
    off = subject.draw(data, (0.0, 0.01, 1.0), "what each call adds")
    tolerances = subject.draw(
        data, ({}, {"rtol": 0.01, "atol": 0.2}, {"rtol": 1e-6, "atol": 30.0}), "tolerances that are passed"
    )
    alone = subject.draw(data, ("rtol", "atol"), "tolerance that is passed alone")
    calls = []

    def drifting(x: Tensor) -> Tensor:
        calls.append(None)
        return 2 * x + off * len(calls)

    op = torch.library.custom_op(f"{SPACE}::drifting", drifting, mutates_args=())
    op.register_fake(torch.empty_like)
    op.register_autograd(lambda ctx, g: (2 * g,))
    test, args = "test_aot_dispatch_dynamic", (subject.tensor([0.1, -0.2]).requires_grad_(),)
    examine = lambda **options: torch.library.opcheck(  # noqa: E731
        op, args, test_utils=test, raise_exception=False, **options
    )
    said = examine(**tolerances)[test] == "SUCCESS"
    wanted = off == 0 or tolerances.get("atol", 0) > 5 * off
    subject.assert_equal("whether opcheck accepts the results", got=said, expected=wanted)
    facts = ["rtol", "atol"]
    subject.assert_raises(ValueError, lambda: examine(**{alone: 1.0}), f"{alone} alone", naming=facts)
