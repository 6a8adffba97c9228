"""The Functions of mambapy, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of mambapy writes this file anew.
"""

from autograd_conformance import Declaration

from mambapy.pscan import PScan

# mambapy.pscan:PScan.
pscan = Declaration(
    PScan,
    "float[n,m,k,l]",
    "float[n,m,k,l]",
)
