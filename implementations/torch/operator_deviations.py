"""The known deviations of operators of torch.library: what torch does with any body, and one of their own."""

from __future__ import annotations

from dataclasses import replace

from autograd_conformance.implementations.deviations import Deviation, Found, Frequency
from autograd_conformance.implementations.deviations.torch import DEVIATIONS as OF_TORCH

# Of the engine and its transforms, whatever they run.
_SHARED = ("ENV-AUTOCAST", "BATCH-VMAP", "BATCH-VMAP/cotangents")

# Their backward calls an operator with a rule for batches, where a Function's has NumPy.
_BATCHED = ("NumpyTake", "NumpySort")

(_FLAGS,) = (d.cause for d in OF_TORCH if "LIB-01/needs_input_grad" in d.ids)

# In setup_context there is a flag too many. In backward there is none for an argument that was left out.
_SEPARATE = (
    "MyCube", "LinearFunctionSetupContext", "MulConstant", "MulConstantUnmaterialized", "NumpyMul", "GradientScaler",
    "NumpyTake", "NumpySort",
)  # fmt: skip
_WITH_DEFAULTS = ("LinearFunction", "FusedConvBN")

DEVIATIONS = (
    *(
        replace(d, functions=tuple(name for name in d.functions if name not in _BATCHED))
        for d in OF_TORCH
        if set(_SHARED).intersection(d.ids)
    ),
    Deviation(
        ids=("VJP-NEEDS",),
        functions=_SEPARATE,
        shows=(Found("ctx.needs_input_grad in forward"),),
        cause=_FLAGS,
    ),
    Deviation(
        ids=("VJP-NEEDS",),
        functions=_WITH_DEFAULTS,
        shows=(Found("ctx.needs_input_grad in backward"),),
        frequency=Frequency.SOMETIMES,
        cause=_FLAGS,
    ),
)
