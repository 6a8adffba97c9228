"""What MindSpore says of its custom Functions and cells, and of the functions that differentiate them."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import documented, observed

_CELL = "https://mindspore.cn/tutorials/experts/en/r1.9/network/custom_cell_reverse.html"
_FUNCTION = "mindspore/common/_grad_function.py and tests/st/pynative/grad/test_custom_function_grad.py"
_CELL_TESTS = "tests/st/pynative/grad/test_custom_bprop_cell.py"
_TORCHS = "The api refers to the following files from pytorch"
_OUT = (
    "Input parameters in the forward propagation plus out and dout. out indicates the computation result of the "
    "forward propagation, and dout indicates the gradient returned to the nn.Cell object."
)
_COUNT = "The number of return values must be the same as the number of inputs in the forward propagation."
_AUX = (
    "only the first output of `fn` contributes the gradient of `fn`, while the other outputs will be returned directly"
)
_VECTORS = "Its inputs are the vectors whose shape and type should be the same as `net_output`."


CLAUSES = {
    "MINDSPORE-FUNCTION-01": documented(
        "Gradients of a subclass of _Function are what its backward returns for the saved tensors, not what "
        "differentiating forward would give.",
        _FUNCTION,
        "A Class provides the ability to custom autograd function.",
        "forward is differentiated and backward ignored",
    ),
    "MINDSPORE-FUNCTION-02": observed(
        "A backward that returns fewer gradients than forward has arguments raises RuntimeError.",
        _FUNCTION,
        "missing gradients count as zeros",
    ),
    "MINDSPORE-FUNCTION-03": observed(
        "A gradient for an argument that is not a tensor has to be None, anything else raises RuntimeError.",
        _FUNCTION,
        "a gradient for an argument that is not a tensor is dropped",
    ),
    "MINDSPORE-FUNCTION-04": observed(
        "A gradient that is neither a tensor nor None raises RuntimeError.",
        _FUNCTION,
        "a gradient that is not a tensor counts as None",
    ),
    "MINDSPORE-FUNCTION-05": observed(
        "ctx.needs_input_grad says for each argument, in forward and in backward, whether it is differentiated.",
        _FUNCTION,
        "needs_input_grad is True for every argument",
    ),
    "MINDSPORE-FUNCTION-06": observed(
        "Gradients are summed to the shape and cast to the dtype of their input.",
        _FUNCTION,
        "of the leading dimensions of a gradient the first entry is taken",
    ),
    "MINDSPORE-FUNCTION-07": observed(
        "Outputs that are not tensors are returned as they are, and backward gets None for them.",
        _FUNCTION,
        "an output that is not a tensor becomes its text",
    ),
    "MINDSPORE-FUNCTION-08": documented(
        "backward gets zeros for an output that is not used, and None after set_materialize_grads(False).",
        _FUNCTION,
        _TORCHS,
        "set_materialize_grads does nothing",
    ),
    "MINDSPORE-FUNCTION-09": documented(
        "An output that is marked non-differentiable takes no part in gradients, wherever it stands among the outputs.",
        _FUNCTION,
        _TORCHS,
        "mark_non_differentiable does nothing",
    ),
    "MINDSPORE-FUNCTION-10": documented(
        "setup_context gets every parameter of forward, given by position or by keyword or left out.",
        _FUNCTION,
        "Save context information needed for the backward pass.",
        "setup_context gets the default of a parameter that is given",
    ),
    "MINDSPORE-FUNCTION-11": observed(
        "An argument that forward returns unchanged gets the gradient that backward returns.",
        _FUNCTION,
        "the gradient of an argument that is returned is the cotangent",
    ),
    "MINDSPORE-FUNCTION-12": documented(
        "The operations of backward are differentiated where a gradient is differentiated again.",
        _FUNCTION,
        _TORCHS,
        "what backward returns is a constant",
    ),
    "MINDSPORE-FUNCTION-13": observed(
        "An exception of forward or backward arrives as it was raised, and later calls are not affected.",
        _FUNCTION,
        "exceptions become RuntimeError",
    ),
    "MINDSPORE-CELL-01": documented(
        "Gradients of a cell with a bprop are what it returns, not what differentiating construct would give.",
        _CELL,
        "Then we can use the function of customizing the backward propagation function of the Cell object.",
        "construct is differentiated and bprop ignored",
    ),
    "MINDSPORE-CELL-02": documented(
        "bprop gets the arguments of construct, its output and the gradient of that, bare or both as tuples.",
        _CELL,
        _OUT,
        "bprop gets the gradient before the output",
    ),
    "MINDSPORE-CELL-03": documented(
        "A bprop that returns fewer gradients than construct has inputs is an error that states both numbers.",
        _CELL,
        _COUNT,
        "missing gradients count as None",
    ),
    "MINDSPORE-CELL-04": observed(
        "None stands for a gradient of zeros.",
        _CELL_TESTS,
        "None stands for a gradient of ones",
    ),
    "MINDSPORE-CELL-05": documented(
        "A bprop counts alike where the cell, or the function that asks for its gradient, is compiled.",
        "the docstring of mindspore.nn.Cell",
        "Cell will be compiled into a calculation graph in GRAPH_MODE (static graph mode) and used as the basic module "
        "of neural networks in PYNATIVE_MODE (dynamic graph mode).",
        "what is compiled gives gradients twice as large",
    ),
    "MINDSPORE-CELL-06": observed(
        "The operations of bprop are differentiated where a gradient is differentiated again.",
        "mindspore/nn/cell.py",
        "what bprop returns is a constant",
    ),
    "MINDSPORE-CELL-07": observed(
        "What bprop returns is summed to the shape and cast to the dtype of its input.",
        _CELL_TESTS,
        "of the leading dimensions of a gradient the first entry is taken",
    ),
    "MINDSPORE-CELL-08": observed(
        "Besides its gradients a bprop may return those of the parameters that internal_params lists.",
        _CELL_TESTS,
        "gradients of parameters are dropped",
    ),
    "MINDSPORE-GRAD-01": documented(
        "grad gives a bare gradient for one position, and for a tuple of them a tuple in that order.",
        "the docstring of mindspore.grad",
        "If tuple, get the gradients with respect to selected inputs.",
        "gradients come in ascending order of their positions",
    ),
    "MINDSPORE-GRAD-02": documented(
        "Positions that are repeated or negative, or none at all without weights, raise ValueError; anything else "
        "that is not a position raises TypeError.",
        "the docstring of mindspore.grad",
        "ValueError: If both `grad_position` and `weights` are None. TypeError: If type of Args does not belong to "
        "required ones.",
        "anything that is not a position counts as 0",
    ),
    "MINDSPORE-GRAD-03": documented(
        "With has_aux all outputs except the first are returned besides the gradients and take no part in them; a "
        "single output raises an error.",
        "the docstring of mindspore.grad",
        f"{_AUX}. It means the `fn` must return more than one outputs in this case.",
        "with has_aux every output contributes",
    ),
    "MINDSPORE-GRAD-04": documented(
        "With return_ids each gradient comes with its position, by which get_grad finds it, and raises RuntimeError "
        "where there is none.",
        "the docstring of mindspore.get_grad",
        "RuntimeError: If gradient value corresponding to the `identifier` is not found.",
        "get_grad gives the first gradient",
    ),
    "MINDSPORE-GRAD-05": documented(
        "With sens_param the last argument, or the keyword sens, is the cotangent of the output.",
        "the docstring of mindspore.grad",
        "a sensitivity (gradient with respect to output) needs to be transferred through the positional parameter or "
        "key-value pair parameter. If the value is transferred through the key-value pair parameter, the key must be "
        "sens.",
        "the sensitivity is ones whatever is given",
    ),
    "MINDSPORE-GRAD-06": documented(
        "value_and_grad gives the outputs and the gradients.",
        "the docstring of mindspore.value_and_grad",
        "A wrapper function to generate the function to calculate forward output and gradient for the input function.",
        "value_and_grad gives only the first output",
    ),
    "MINDSPORE-GRAD-07": documented(
        "Parameters that a custom Function gets have gradients, after those of the inputs or alone.",
        "the docstring of mindspore.grad",
        "gradient with respect to inputs and weights. In this case, `grad_position` and `weights` are not None.",
        "gradients of weights come in reverse order",
    ),
    "MINDSPORE-GRAD-08": observed(
        "An input that is not used has a gradient of zeros.",
        "tests/st/pynative/grad/test_auto_grad.py",
        "an input that is not used has a gradient of ones",
    ),
    "MINDSPORE-VJP-01": documented(
        "The function that vjp gives forms the product for each vector; from the second on it warns that forward runs "
        "again.",
        "the docstring of mindspore.vjp",
        "To calculate vector-jacobian-product.",
        "later products are those of the first vector",
    ),
    "MINDSPORE-VJP-02": documented(
        "The functions that two calls of vjp give do not disturb each other, in whatever order they are called.",
        "the docstring of mindspore.vjp",
        "To calculate vector-jacobian-product.",
        "all functions that vjp gives are the one of the last call",
    ),
    "MINDSPORE-VJP-03": documented(
        "With has_aux vjp gives the first output, the function, and the other outputs, which take no part.",
        "the docstring of mindspore.vjp",
        "It represents all outputs of `fn(inputs)` except the first one. Specifically, `aux_value` does not contribute "
        "to gradient.",
        "with has_aux the last output is given as the first",
    ),
    "MINDSPORE-VJP-04": documented(
        "Vectors of another shape, dtype or number than the outputs, which have dimensions, raise an error.",
        "the docstring of mindspore.vjp",
        _VECTORS,
        "vectors are broadcast and cast, and too many dropped",
    ),
    "MINDSPORE-VJP-05": documented(
        "vjp raises TypeError for an input that is not a tensor.",
        "the docstring of mindspore.vjp",
        "TypeError: `inputs` or `v` does not belong to required types.",
        "inputs that are not tensors are closed over",
    ),
    "MINDSPORE-STOP-01": documented(
        "stop_gradient gives its argument with a gradient of zeros.",
        "the docstring of mindspore.ops.stop_gradient",
        "StopGradient is used for eliminating the effect of a value on the gradient",
        "stop_gradient does nothing",
    ),
    "MINDSPORE-HOOK-01": documented(
        "What the hooks of a tensor return takes the place of its gradient, one after the other, until their handle "
        "removes them.",
        "the docstring of mindspore.Tensor.register_hook",
        "`grad` is the gradient passed to the tensor, which may be modified by returning a new output gradient.",
        "what a hook returns is ignored",
    ),
    "MINDSPORE-HOOK-02": documented(
        "A hook that is not a function raises TypeError wherever it is registered.",
        "the docstring of mindspore.Tensor.register_hook",
        "TypeError: If the `hook` is not a function of python.",
        "hooks that are not functions are ignored",
    ),
    "MINDSPORE-HOOK-03": documented(
        "HookBackward gives its argument, and the hook gets the gradient in a tuple and returns another or None.",
        "the docstring of mindspore.ops.HookBackward",
        "The hook function must be defined like `hook_fn(grad) -> new gradient or None`, where the 'grad' is the "
        "gradient passed to the primitive.",
        "the node gives twice its argument",
    ),
    "MINDSPORE-HOOK-04": documented(
        "A backward hook of a cell gets the cell and the gradients of its input and output, and may return others of "
        "the input.",
        "the docstring of mindspore.nn.Cell.register_backward_hook",
        "`grad_input` is the gradient computed and passed to the next Cell or primitive, which can return a new "
        "gradient or None. `grad_output` is the gradient passed to the Cell.",
        "what a backward hook of a cell returns is ignored",
    ),
    "MINDSPORE-HOOK-05": documented(
        "A backward pre-hook of a cell gets the gradient of its output, and may return another.",
        "the docstring of mindspore.nn.Cell.register_backward_pre_hook",
        "hook_fn(cell, grad_output) -> New grad_output gradient or None.",
        "what a backward pre-hook returns is ignored",
    ),
    "MINDSPORE-HOOK-06": documented(
        "The output that a forward hook of a cell returns is the cell's, and is differentiated.",
        "the docstring of mindspore.nn.Cell.register_forward_hook",
        "The `hook_fn` can modify the forward outputs by returning new outputs.",
        "what a forward hook returns is ignored",
    ),
    "MINDSPORE-HOOK-07": documented(
        "The arguments that a forward pre-hook of a cell returns are those of construct, and are differentiated.",
        "the docstring of mindspore.nn.Cell.register_forward_pre_hook",
        "The `hook_fn` can modify the forward inputs by returning new inputs.",
        "what a forward pre-hook returns is ignored",
    ),
    "MINDSPORE-SAVED-01": documented(
        "Within saved_tensors_hooks each tensor that a Function saves is packed once, and backward gets what unpacking "
        "gives.",
        "the docstring of mindspore.saved_tensors_hooks",
        "A context manager used to customize how saved tensors are packed and unpacked.",
        "the hooks are not called",
    ),
    "MINDSPORE-RECOMPUTE-01": documented(
        "recompute runs its block once more in backward, and gives the same gradients.",
        "the docstring of mindspore.recompute",
        "rather than storing the intermediate activation computed in forward pass, we will recompute it in backward "
        "pass.",
        "the block is run as if it stood alone",
    ),
    "MINDSPORE-RECOMPUTE-02": documented(
        "By default recompute takes only cells, and raises TypeError for another block.",
        "the docstring of mindspore.recompute",
        "TypeError: If `block` is not Cell object.",
        "any function is taken",
    ),
}
