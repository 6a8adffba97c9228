"""The Functions of fairscale, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of fairscale writes this file anew.
"""

from autograd_conformance import Declaration

from fairscale.experimental.nn.mevo import BackwardTriggerFn
from fairscale.nn.pipe.dependency import Fork, Join

# fairscale.experimental.nn.mevo:BackwardTriggerFn.
backward_trigger_fn = Declaration(
    BackwardTriggerFn,
    "float[...] constant",  # w: backward returns None for it
    "float[...]",
)

# fairscale.nn.pipe.dependency:Fork.
fork = Declaration(
    Fork,
    "float[...]",
)

# fairscale.nn.pipe.dependency:Join.
join = Declaration(
    Join,
    "float[...]",
    "float[...] constant",  # phony: backward returns None for it
)
