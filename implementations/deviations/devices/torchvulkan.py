"""The known deviations of torch's tensors on the device that torchvulkan registers."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import (
    Cause,
    Component,
    Deviation,
    Found,
    Frequency,
    Grade,
    Raised,
)
from autograd_conformance.reference.functions import FUNCTIONS

_SEEN = ("0.2.1",)
_DOCS = "https://docs.pytorch.org/docs/stable/"

_LONG_PRODUCTS = Cause(
    grade=Grade.WRONG,
    reason="torch.matmul is wrong where more than some 50,000 products are added up, in every dtype: the product of a "
    "row and a column of 65,504 ones is 58,255",
    promise="If both arguments are 2-dimensional, the matrix-matrix product is returned.",
    link=f"{_DOCS}generated/torch.matmul.html",
    script="long_products.py",
    seen=_SEEN,
)

_EXP_OF_DOUBLES = Cause(
    grade=Grade.DIFFERENCE,
    reason="torch.exp and torch.log of float64 are only as accurate as in float32, which torch.autograd.gradcheck "
    "takes for a wrong derivative",
    link=f"{_DOCS}notes/numerical_accuracy.html",
    script="exp_of_doubles.py",
    seen=_SEEN,
)

_CONJUGATED = Cause(
    grade=Grade.DIFFERENCE,
    reason="copying into a conjugated view is not implemented, which forward mode does for complex tensors",
    link="source: torchvulkan, 'Copying into a conjugated or negated destination is not yet supported'",
    script="conjugated_destination.py",
    seen=_SEEN,
)

DEVIATIONS = (
    Deviation(
        ids=("VJP-REF/sizes", "FWD-VALUE/sizes"),
        functions=("LinearFunction", "LinearFunctionSetupContext", "QKVProjection"),
        shows=(Component(),),
        cause=_LONG_PRODUCTS,
        frequency=Frequency.SOMETIMES,
    ),
    Deviation(
        ids=("CHECK-07", "CHECK-07/forward", "CHECK-08"),
        shows=(Found(starting="gradcheck of "),),
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=("DEV-06",),
        shows=(Found(what="accuracy of float64 (that of float32)"),),
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=("JVP-REF", "JVP-ADJOINT"),
        functions=tuple(FUNCTIONS),
        shows=(Raised("RuntimeError", containing="conjugated or negated destination"),),
        cause=_CONJUGATED,
        frequency=Frequency.SOMETIMES,
    ),
)
