"""The numbers that were chosen, and not derived, for the check of a user's Function.

`run` derives each bound from the reference. `check` knows only the Function's code, and so measures how far off
rounding may put a result; these numbers say how much more than the measured effect counts as rounding.
"""

from __future__ import annotations

from autograd_conformance.reference.rounding import PRECISION

# The oracle: the factor on the largest change that moves of the inputs cause, and the roundings of any result.
MARGIN, ROUNDINGS = 6.0, 8
# The roundings of double precision that differences of computed values may show, for each unit moved.
NOISE = 2.0**12
# The relative difference that counts as rounding where two calls of one Function are compared.
NEAR = 1e-6

# A change of which more than half lies in one of so many parts of the way is a jump. The way is so many roundings long,
# and is gone in so many directions and back.
PARTS, REACH, WAYS = 8, 16, 3

# Half precision: by how many times the errors of two right ways to compute a gradient may differ.
BY_ROUNDING = 4.0

# Extreme values: the share by which a right output may be off, in any dtype, and by which a gradient must be off to be
# looked at.
OFF, OFF_SLOPE = 0.25, 0.02
# The roundings by which differences of outputs may be off, and the noise of a slope that is too small to matter.
NOISE_OF_EXTREMES, NOTHING = 2.0**23, 1e-6
# By how many times the formula in built-in operations has to be better.
BETTER = 8

# The range of float16: the share of the largest entry by which float16 must be off, by how many times the error of
# bfloat16, and the least error to look at, since smaller terms may underflow.
FAR, TIMES = 0.25, 8
LEAST = 8 * PRECISION["float16"].normal
