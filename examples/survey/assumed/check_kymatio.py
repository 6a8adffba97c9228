"""The Functions of kymatio, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of kymatio writes this file anew.
"""

from autograd_conformance import Declaration

from kymatio.backend.torch_backend import ModulusStable

# kymatio.backend.torch_backend:ModulusStable.
modulus_stable = Declaration(
    ModulusStable,
    "float[n,2]",
)
