"""Clauses on PyTorch's C++ API: torch::autograd::Function and its AutogradContext."""

from autograd_conformance.reference.clauses.definitions import documented, observed

_FUNCTION = "torch/csrc/autograd/custom_function.h, struct Function"
_TUTORIAL = "Autograd in C++ Frontend (tutorial), LinearFunction"
_CONTEXT = "torch/csrc/autograd/custom_function.h, struct AutogradContext"

CLAUSES = {
    "CPP-CTX-01": documented(
        "get_saved_variables gives backward the tensors that forward saved, in their order and in their graph.",
        _FUNCTION,
        "Variables saved in `forward` can be accessed with `ctx->get_saved_variables`",
        "saved tensors change places",
    ),
    "CPP-CTX-02": documented(
        "A saved tensor that was changed in place before backward is an error.",
        f"{_CONTEXT}, get_saved_variables",
        "Before returning them to the user, a check is made to ensure that they were not modified by any in-place "
        "operations.",
        "a change of a saved tensor passes unseen",
    ),
    "CPP-CTX-03": documented(
        "saved_data gives backward what forward of the same call kept there.",
        f"{_CONTEXT}, saved_data",
        "Can be used to save non-variable data for `backward`.",
        "saved_data is that of the last call",
    ),
    "CPP-CTX-04": observed(
        "An input that forward changes and marks as dirty is returned as the same tensor, which has the gradient.",
        f"{_CONTEXT}, mark_dirty",
        "mark_dirty is ignored",
    ),
    "CPP-CTX-05": documented(
        "An output that is marked as not differentiable requires no grad, whatever the inputs do.",
        f"{_CONTEXT}, mark_non_differentiable",
        "Marks outputs in the list as not requiring gradients.",
        "mark_non_differentiable is ignored",
    ),
    "CPP-CTX-06": documented(
        "backward gets zeros, of the shape of the output, for an output that is not used.",
        f"{_CONTEXT}, set_materialize_grads",
        "Sets whether undefined output grad tensors should be expanded to tensors full of zeros before calling "
        "backward function. Default value is true.",
        "undefined cotangents stay undefined",
    ),
    "CPP-CTX-07": documented(
        "After set_materialize_grads(false) backward gets an undefined tensor for an output that is not used.",
        f"{_CONTEXT}, set_materialize_grads",
        "Sets whether undefined output grad tensors should be expanded to tensors full of zeros before calling "
        "backward function.",
        "set_materialize_grads is ignored",
    ),
    "CPP-CTX-08": observed(
        "In backward needs_input_grad says of each tensor argument whether this pass needs its gradient; what is no "
        "tensor has no number.",
        f"{_CONTEXT}, needs_input_grad",
        "needs_input_grad is always true",
    ),
    "CPP-CTX-09": observed(
        "get_saved_variables is an error once backward has freed what was saved.",
        "torch/csrc/autograd/custom_function.cpp, AutogradContext::get_saved_variables: ERR_BACKWARD_TWICE",
        "saved tensors are never freed",
    ),
    "CPP-FN-01": documented(
        "A tensor in a std::optional is an input as any other.",
        _FUNCTION,
        "You can use std::optional<Tensor> as one of the arguments and it will be registered as a variable in the "
        "graph if the argument has a value.",
        "an optional tensor is no input",
    ),
    "CPP-FN-02": documented(
        "The tensors of a std::vector are no inputs: they get no gradient.",
        _FUNCTION,
        "Use of any direct Variable arguments will be registered in the graph but no vectors/sets or any other data "
        "structures will be traversed.",
        "the tensors of a list are inputs",
    ),
    "CPP-FN-12": observed(
        "The tensors of an at::TensorList are inputs, each with a gradient of its own.",
        "torch/csrc/autograd/custom_function.h, ExtractVariables",
        "the tensors of a TensorList are no inputs",
    ),
    "CPP-FN-03": documented(
        "backward gets a cotangent for each output of forward.",
        _FUNCTION,
        "a variable list containing as many Variables as there were outputs from `forward` as arguments",
        "backward gets no cotangent for the second output",
    ),
    "CPP-FN-04": documented(
        "backward has to return a gradient for each argument: fewer are an error, and so are more.",
        _FUNCTION,
        "It should return as many Variables as there were inputs",
        "a wrong number of gradients is accepted",
    ),
    "CPP-FN-05": observed(
        "Gradients beyond the arguments are accepted if they are undefined.",
        "torch/csrc/autograd/custom_function.h, CppNode_apply_functional: Returning too many results is ok, but only "
        "as long as they're all undefined.",
        "too many undefined gradients are refused",
    ),
    "CPP-FN-06": observed(
        "An undefined gradient means that there is none.",
        f"{_TUTORIAL}: auto grad_bias = torch::Tensor()",
        "an undefined gradient is zeros",
    ),
    "CPP-FN-07": documented(
        "A gradient for an argument that is no tensor is an error.",
        _FUNCTION,
        "It should return as many Variables as there were inputs with each of them containing the gradient w.r.t. its "
        "corresponding input.",
        "a gradient for a number is dropped",
    ),
    "CPP-FN-08": observed(
        "Under a transform of torch.func, and in forward mode, a call is an error and not silently wrong.",
        "torch/csrc/autograd/custom_function.h, Function::apply: Let's raise an error instead of being silently "
        "incorrect.",
        "a transform sees no Function",
    ),
    "CPP-FN-09": observed(
        "forward runs without recording a graph.",
        "torch/csrc/autograd/custom_function.h, Function::apply: AutoGradMode grad_mode(false)",
        "forward is recorded",
    ),
    "CPP-FN-10": observed(
        "Compiled autograd gives the gradients of the engine, whether a Function is traceable or not.",
        f"{_FUNCTION}, is_traceable",
        "a compiled backward keeps the numbers of the first",
    ),
    "CPP-FN-11": documented(
        "The printed example multiplies its input in place and has a gradient.",
        _FUNCTION,
        "Example backward call: y[0].sum().backward();",
        unplanted="the printed example raises, see the findings",
    ),
}
