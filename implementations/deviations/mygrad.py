"""The known deviations of released MyGrad: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade

# Every Function that MyGrad can run.
_FUNCTIONS = (
    "Exp", "Square", "Cube", "LegendrePolynomial3", "ReLU", "LinearFunction", "LinearFunctionSetupContext",
    "MulConstant", "SaveForBackward", "NumpyMul", "GradientScaler", "Select", "NumpyTake", "Conv2D", "FusedConvBN",
    "ScipyConv2d",
)  # fmt: skip
_SEEN = ("2.5.0",)

_NO_AUTODIFF_CONSTANT = Cause(
    grade=Grade.DIFFERENCE,
    reason="under no_autodiff only its dtype decides whether an output is constant: an output of floats "
    "is not, though it has no creator",
    link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.no_autodiff.html",
    script="no_autodiff_constant.py",
    seen=_SEEN,
)

DEVIATIONS = (
    Deviation(
        ids=("FWD-GRADFLAG",),
        functions=_FUNCTIONS,
        shows=(Found("requires_grad without grad mode"),),
        cause=_NO_AUTODIFF_CONSTANT,
    ),
    Deviation(
        ids=("MODE-01",),
        shows=(Found("requires_grad of the outputs, and whether they have a node,"),),
        cause=_NO_AUTODIFF_CONSTANT,
    ),
    Deviation(
        ids=("FN-24",),
        shows=(Found("requires_grad and grad_fn of the outputs"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a call on constants is recorded too: its output, a constant, has a creator",
            link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.Tensor.creator.html",
            script="creator_of_constants.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("ENG-10",),
        shows=(Found("steps that ran, sorted"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a backward pass computes the gradients of all tensors before it; there is no way to request "
            "only some",
            link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.Tensor.backward.html",
            script="no_partial_backward.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MYGRAD-OP-09/alone",),
        shows=(Found("a pass that skips a tensor"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the pass goes on to a tensor that got nothing because SkipGradient was raised for its only use, "
            "and asserts that it has a gradient",
            link="mygrad/operation_base.py, Operation.backward_var",
            script="skipped_alone.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MYGRAD-GRAPH-04",),
        shows=(Found("backward from an invalid gradient"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the argument of backward is given to numpy.asarray, whose ValueError or TypeError is what "
            "the caller sees",
            promise="An invalid gradient (i.e. a non-numeric or non-array-like object) was produced by an "
            "operation or was supplied by a user.",
            link="mygrad/errors.py, InvalidGradient",
            script="gradient_supplied_by_a_user.py",
            seen=_SEEN,
        ),
    ),
)
