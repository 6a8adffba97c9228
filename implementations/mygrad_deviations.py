"""What is known not to hold of released MyGrad: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_FUNCTIONS = (
    "Exp Square Cube LegendrePolynomial3 ReLU LinearFunction LinearFunctionSetupContext MulConstant SaveForBackward "
    "NumpyMul GradientScaler Select NumpyTake Conv2D FusedConvBN ScipyConv2d"
)

DEVIATIONS = (
    Deviation(
        id="FWD-GRADFLAG",
        function=_FUNCTIONS,
        what="requires_grad without grad mode",
        reason="under no_autodiff nothing is said of an output but its dtype, so that one of floats is no constant, "
        "though it has no creator",
        link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.no_autodiff.html",
        versions="seen on 2.5.0",
        script="no_autodiff_constant.py",
    ),
    Deviation(
        id="MODE-01",
        what="requires_grad of the outputs, and whether they have a node,",
        reason="under no_autodiff nothing is said of an output but its dtype, so that one of floats is no constant, "
        "though it has no creator",
        link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.no_autodiff.html",
        versions="seen on 2.5.0",
        script="no_autodiff_constant.py",
    ),
    Deviation(
        id="FN-24",
        what="requires_grad and grad_fn of the outputs",
        reason="a call on constants is recorded too: its output, a constant, has a creator",
        link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.Tensor.creator.html",
        versions="seen on 2.5.0",
        script="creator_of_constants.py",
    ),
    Deviation(
        id="ENG-10",
        what="steps that ran, sorted",
        reason="a backward pass computes the gradients of all tensors that preceded it; some cannot be asked for",
        link="https://mygrad.readthedocs.io/en/latest/generated/mygrad.Tensor.backward.html",
        versions="seen on 2.5.0",
        script="no_partial_backward.py",
    ),
    Deviation(
        id="MYGRAD-GRAPH-04",
        what="backward from what is no gradient",
        reason="what is given to backward goes to numpy.asarray, whose ValueError or TypeError comes out",
        link="mygrad/errors.py, InvalidGradient",
        versions="seen on 2.5.0",
        promise="An invalid gradient (i.e. a non-numeric or non-array-like object) was produced by an operation or was "
        "supplied by a user.",
        script="gradient_supplied_by_a_user.py",
    ),
)
