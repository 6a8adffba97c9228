"""The Functions of efficientnet_pytorch, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of efficientnet_pytorch writes this file anew.
"""

from autograd_conformance import Declaration

from efficientnet_pytorch.utils import SwishImplementation

# efficientnet_pytorch.utils:SwishImplementation.
swish_implementation = Declaration(
    SwishImplementation,
    "float[...]",
)
