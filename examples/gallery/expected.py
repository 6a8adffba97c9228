"""What `check` reports of the declarations, and the scripts in `findings` that show it with the package alone."""

from __future__ import annotations

# By declaration: verdict and test, except what follows from another of them, and the script.
REPORTED: dict[str, dict[tuple[str, str], str]] = {
    "entmax": {
        ("wrong", "DBL-CORRECT"): "entmax_alpha_second.py",
        ("not detected", "VJP-INPLACE-SAFE"): "entmax_alpha_inplace.py",
    },
    "budget": {
        ("wrong", "VJP-FD"): "budget_middle_one.py",
        # Another row, which is all 0 and 1, divides by 0.
        ("not finite", "VJP-FINITE"): "budget_middle_one.py",
        ("not finite", "DBL-CORRECT"): "budget_second_nan.py",
    },
    "spikes": {
        ("not finite", "VJP-REF"): "snntorch_sigmoid_nan.py",
        ("not finite", "VJP-FINITE"): "snntorch_sigmoid_nan.py",
        ("wrong", "VJP-REF/sweep"): "snntorch_sigmoid_nan.py",
        ("not finite", "VJP-FINITE/sweep"): "snntorch_sigmoid_nan.py",
        ("not finite", "VJP-FINITE/far"): "snntorch_sigmoid_nan.py",
        ("misfits", "FWD-DTYPE"): "snntorch_dtype.py",
    },
    "adjoint": {
        ("silently detached", "DBL-CORRECT"): "torchdiffeq_second_detached.py",
        ("not detected", "VJP-INPLACE-SAFE"): "torchdiffeq_frozen_inplace.py",
    },
    "solved": {("wrong", "DBL-CORRECT"): "linear_operator_solve_second.py"},
    "rbf": {("silently detached", "DBL-CORRECT"): "gpytorch_rbf_second.py"},
    "pose": {
        ("wrong", "VJP-REF"): "pypose_se3_small.py",
        ("wrong", "VJP-FD/kinks"): "pypose_se3_flat.py",
        ("wrong", "DBL-CORRECT"): "pypose_act_second.py",
    },
    "invertible": {
        ("silently detached", "DBL-CORRECT"): "memcnn_second_detached.py",
        ("not detected", "VJP-INPLACE-SAFE"): "memcnn_inplace_output.py",
    },
    "simplex": {("wrong", "VJP-FD"): "torch_struct_simplex.py"},
    "sign": {},
}

# True as well, but beyond what these declarations make `check` report, and why.
BEYOND = {
    "entmax_second_nan.py": "the wrong part by alpha is found first, and one example of a property is shown",
    "entmax_large_nan.py": "scores this large are drawn only to see whether gradients are finite where outputs are",
    "gpytorch_rbf_far_nan.py": "points this far apart overflow in any product, and are not counted",
    "memcnn_doubled.py": "declared is the default, keep_input=False; with True VJP-FD and VJP-REF report it",
    "memcnn_inplace_input.py": "the weights are not arguments",
    "memcnn_leak.py": "what is freed is looked at after a backward",
    "pypose_exp_small.py": "single precision has to be right to half of its digits",
    "torch_struct_dim.py": 'declared is the last dimension; with "0 | -1" it raises',
    "torch_struct_second.py": "shown together with VJP-FD",
}
