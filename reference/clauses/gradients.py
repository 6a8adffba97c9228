"""Clauses on gradients, on outputs, and on which gradients are materialized."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "GRAD-01",
        "documented",
        "backward gets, besides ctx, exactly one positional argument for each output of forward.",
        "Function: backward",
        fault="backward gets the gradients of more than three outputs as one tuple",
    ),
    Clause(
        "GRAD-02",
        "documented",
        "backward returns as many values as forward got arguments, and fewer are an error.",
        "Function: backward",
        needs="gradient_count",
        fault="missing trailing gradients count as None",
    ),
    Clause(
        "GRAD-03",
        "documented",
        "backward may return more values than forward got arguments only if all the extra ones are None.",
        "extending: Step 1",
        needs="gradient_count",
        fault="extra gradients are dropped whatever they are",
    ),
    Clause(
        "GRAD-04",
        "documented",
        "The gradient returned for an argument that is not a tensor has to be None, and anything else is an error.",
        "extending: Example",
        needs="gradient_checks",
        fault="a gradient returned for a non-tensor argument is dropped",
    ),
    Clause(
        "GRAD-05",
        "documented",
        "For a tensor that does not require grad backward may return None or any tensor, which is ignored whatever "
        "its shape.",
        "extending: Step 1",
        needs="gradient_fitting",
        fault="the shape of a gradient that is not needed is checked",
    ),
    Clause(
        "GRAD-06",
        "observed",
        "None returned for an input that requires grad means no gradient: .grad stays None, and grad() raises an "
        "error unless allow_unused is set.",
        "extending: Example",
        needs="accumulate",
        fault="returning None for an input that requires grad gives zeros",
    ),
    Clause(
        "GRAD-07",
        "documented",
        "backward returns several gradients as a tuple and a single one bare or in a tuple; a list is an error.",
        "extending: Step 2",
        needs="gradient_checks",
        fault="a list of gradients is accepted like a tuple",
    ),
    Clause(
        "GRAD-08",
        "observed",
        "A number, an array or another object that is not a tensor, returned as the gradient of a tensor that requires "
        "grad, is an error.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="gradient_checks",
        fault="a number returned as a gradient is turned into a tensor",
    ),
    Clause(
        "GRAD-09",
        "observed",
        "A gradient whose shape is an expansion of its input's shape is summed down to the input's shape.",
        "source: torch/csrc/autograd/input_metadata.cpp",
        needs="gradient_fitting",
        fault="a gradient of expanded shape is cut to its first slice instead of summed",
    ),
    Clause(
        "GRAD-10",
        "observed",
        "A gradient whose shape is neither its input's nor an expansion of it is an error, even if it could be "
        "broadcast to the input.",
        "source: torch/csrc/autograd/engine.cpp",
        needs="gradient_checks",
        fault="a gradient that broadcasts to the input's shape is expanded",
    ),
    Clause(
        "GRAD-11",
        "observed",
        "A real, integer or bool gradient of another dtype than its floating-point input is cast to the input's dtype.",
        "source: torch/csrc/autograd/engine.cpp",
        needs="gradient_fitting",
        fault="gradients keep the dtype in which backward returned them",
    ),
    Clause(
        "GRAD-12",
        "documented",
        "A complex gradient for a real input is an error: its imaginary part is not dropped silently.",
        "autograd mechanics: Autograd for Complex Numbers",
        needs="gradient_checks",
        fault="the real part of a complex gradient is taken for a real input",
    ),
    Clause(
        "GRAD-13",
        "observed",
        "A gradient of at least one dimension on another device than its input is an error.",
        "source: torch/csrc/autograd/engine.cpp",
        fault="a gradient on another device is replaced by one on the input's device",
    ),
    Clause(
        "GRAD-14",
        "documented",
        "The gradients that backward gets are not modified in place: after a pass whose backwards leave them alone, "
        "the caller's cotangents hold the same values.",
        "extending: Step 1",
        fault="a cotangent that is given for two outputs is changed in place",
    ),
    Clause(
        "GRAD-15",
        "observed",
        "backward may return the same tensor object that it got, and grad() may return it too, but the .grad fields of "
        "two leaves never share memory.",
        "source: torch/csrc/autograd/functions/accumulate_grad.h",
        needs="accumulate",
        fault="two leaves that get the same gradient tensor share it as their .grad",
    ),
    Clause(
        "GRAD-16",
        "documented",
        "A tensor passed for two arguments gets the sum of the gradients that backward returns for them.",
        "backward: first paragraph",
        fault="of the gradients of a tensor passed twice only the last one counts",
    ),
    Clause(
        "GRAD-17",
        "observed",
        "A sparse gradient for a dense input is accepted and stays sparse.",
        "source: torch/csrc/autograd/engine.cpp",
        needs="sparse",
        fault="sparse gradients are made dense",
    ),
    Clause(
        "OUT-01",
        "documented",
        "In a recorded call every output of floating-point or complex dtype requires grad unless it is marked "
        "otherwise, even a constant that ignores the inputs.",
        "extending: Step 2",
        needs="requires_grad",
        fault="outputs of complex dtype do not require grad",
    ),
    Clause(
        "OUT-02",
        "documented",
        "Outputs of integer or bool dtype never require grad, without being marked.",
        "extending: Step 2",
        needs="requires_grad",
        fault="integer outputs come back as floating-point tensors that require grad",
    ),
    Clause(
        "OUT-03",
        "observed",
        "A tensor that forward returns twice comes back as one object with the last position's output_nr: all of its "
        "gradient arrives there, and zeros at the earlier position.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="requires_grad",
        fault="a tensor returned twice comes back as two tensors",
    ),
    Clause(
        "OUT-04",
        "documented",
        "An output that is not a view may be modified in place after the call, and the gradients of both steps "
        "compose.",
        "autograd mechanics: In-place operations with autograd",
        needs="inplace",
        fault="outputs are views that cannot be modified in place",
    ),
    Clause(
        "OUT-05",
        "observed",
        "Outputs keep the tensor subclass that forward gave them, and a call on a Parameter gives plain tensors.",
        "source: torch/csrc/autograd/python_function.cpp",
        fault="outputs of a tensor subclass come back as plain tensors",
    ),
    Clause(
        "ND-01",
        "documented",
        "An output given to mark_non_differentiable has no grad_fn and does not require grad, while the other outputs "
        "of the call still do.",
        "Function: mark_non_differentiable",
        needs="nondifferentiable requires_grad",
        fault="marking one output makes all of them non-differentiable",
    ),
    Clause(
        "ND-02",
        "documented",
        "backward still takes an argument for an output marked non-differentiable, and gets zeros of the output's "
        "shape and dtype.",
        "Function: mark_non_differentiable",
        needs="nondifferentiable",
        fault="the zeros for a marked output are a 0-d tensor",
    ),
    Clause(
        "ND-03",
        "documented",
        "After set_materialize_grads(False) backward gets None for an output marked non-differentiable.",
        "Function: set_materialize_grads",
        needs="materialize nondifferentiable",
        fault="marked outputs get zeros even after set_materialize_grads(False)",
    ),
    Clause(
        "ND-04",
        "documented",
        "mark_non_differentiable is for tensor outputs: anything but a tensor is an error, and a tensor that is not "
        "returned has no effect.",
        "Function: mark_non_differentiable",
        needs="context nondifferentiable",
        fault="mark_non_differentiable skips arguments that are not tensors",
    ),
    Clause(
        "ND-05",
        "observed",
        "If all outputs are marked non-differentiable none requires grad, and starting a backward pass from one is an "
        "error.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="accumulate nondifferentiable requires_grad",
        fault="a backward pass from a marked output does nothing, silently",
    ),
    Clause(
        "ND-06",
        "observed",
        "An input that is returned as it is and marked non-differentiable comes back as a detached alias, and the "
        "input itself still requires grad.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="nondifferentiable requires_grad views",
        fault="a returned input that is marked no longer requires grad itself",
    ),
    Clause(
        "ND-07",
        "observed",
        "With ctx._materialize_non_diff_grads set to False backward gets None for non-differentiable outputs, and "
        "zeros for unused differentiable ones as before.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="materialize nondifferentiable",
        fault="ctx._materialize_non_diff_grads has no effect",
    ),
    Clause(
        "MAT-01",
        "documented",
        "By default the gradient of an output that was not used reaches backward as a dense tensor of zeros with the "
        "output's shape and dtype.",
        "Function: set_materialize_grads",
        fault="the gradient of an unused output is None by default",
    ),
    Clause(
        "MAT-02",
        "documented",
        "After set_materialize_grads(False), in forward or in setup_context, the gradient of an unused output reaches "
        "backward as None.",
        "Function: set_materialize_grads",
        needs="materialize",
        fault="set_materialize_grads(False) has no effect in setup_context",
    ),
    Clause(
        "MAT-03",
        "observed",
        "set_materialize_grads takes a bool, and any other type is an error.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="materialize",
        fault="set_materialize_grads accepts any value and uses its truth",
    ),
    Clause(
        "MAT-04",
        "documented",
        "A node that only undefined gradients reach still runs its backward, with zeros by default and with None "
        "after set_materialize_grads(False).",
        "gradcheck: check_undefined_grad",
        needs="materialize",
        fault="the backward of a node that only undefined gradients reach is skipped",
    ),
    Clause(
        "MAT-05",
        "observed",
        "Hooks registered on a node see None for an output that was not used, even where backward itself gets zeros.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="hooks on a node see zeros for an unused output",
    ),
)
