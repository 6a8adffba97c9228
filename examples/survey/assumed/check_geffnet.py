"""The Functions of geffnet, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of geffnet writes this file anew.
"""

from autograd_conformance import Declaration

from geffnet.activations.activations_me import (
    HardSigmoidJitAutoFn,
    HardSwishJitAutoFn,
    MishJitAutoFn,
    SwishJitAutoFn,
)

# geffnet.activations.activations_me:SwishJitAutoFn.
swish_jit_auto_fn = Declaration(
    SwishJitAutoFn,
    "float[...]",
)

# geffnet.activations.activations_me:MishJitAutoFn.
mish_jit_auto_fn = Declaration(
    MishJitAutoFn,
    "float[...]",
)

# geffnet.activations.activations_me:HardSigmoidJitAutoFn.
hard_sigmoid_jit_auto_fn = Declaration(
    HardSigmoidJitAutoFn,
    "float[...]",
)

# geffnet.activations.activations_me:HardSwishJitAutoFn.
hard_swish_jit_auto_fn = Declaration(
    HardSwishJitAutoFn,
    "float[...]",
)
