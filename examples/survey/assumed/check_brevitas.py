"""The Functions of brevitas, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of brevitas writes this file anew.
"""

from autograd_conformance import Declaration

from brevitas.ops.autograd_ste_ops import (
    AbsBinarySignGradFn,
    BinarySignSteFn,
    CeilSteFn,
    DPURoundSteFn,
    FloorSteFn,
    InplaceTensorClampSteFn,
    RoundSteFn,
    RoundToZeroSteFn,
    ScalarClampMinSteFn,
    ScalarClampSteFn,
    TensorClampSteFn,
    TernarySignSteFn,
)

# brevitas.ops.autograd_ste_ops:ScalarClampSteFn.
scalar_clamp_ste_fn = Declaration(
    ScalarClampSteFn,
    "float[...]",
    "0.5 | 2.0",
    "0.5 | 2.0",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:ScalarClampMinSteFn.
scalar_clamp_min_ste_fn = Declaration(
    ScalarClampMinSteFn,
    "float[...]",
    "0.5 | 2.0",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:TensorClampSteFn.
tensor_clamp_ste_fn = Declaration(
    TensorClampSteFn,
    "float[...]",
    "float[...] constant",  # min_val: backward returns None for it
    "float[...] constant",  # max_val: backward returns None for it
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:InplaceTensorClampSteFn.
inplace_tensor_clamp_ste_fn = Declaration(
    InplaceTensorClampSteFn,
    "float[...]",
    "float[...] constant",  # min_val: backward returns None for it
    "float[...] constant",  # max_val: backward returns None for it
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:RoundToZeroSteFn.
round_to_zero_ste_fn = Declaration(
    RoundToZeroSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:DPURoundSteFn.
dpuround_ste_fn = Declaration(
    DPURoundSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:CeilSteFn.
ceil_ste_fn = Declaration(
    CeilSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:FloorSteFn.
floor_ste_fn = Declaration(
    FloorSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:BinarySignSteFn.
binary_sign_ste_fn = Declaration(
    BinarySignSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:TernarySignSteFn.
ternary_sign_ste_fn = Declaration(
    TernarySignSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:RoundSteFn.
round_ste_fn = Declaration(
    RoundSteFn,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# brevitas.ops.autograd_ste_ops:AbsBinarySignGradFn.
abs_binary_sign_grad_fn = Declaration(
    AbsBinarySignGradFn,
    "float[...]",
)
