"""What PaddlePaddle's documentation and its own tests say of `paddle.autograd.PyLayer` and its engine."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import documented, observed

_API = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/"
_LAYER = f"{_API}autograd/PyLayer_en.html"
_CONTEXT = f"{_API}autograd/PyLayerContext_en.html"
_GRAD = f"{_API}grad_en.html"
_BACKWARD = f"{_API}autograd/backward_en.html"
_TENSOR = f"{_API}Tensor_en.html"
_HOOKS = f"{_API}autograd/saved_tensors_hooks_en.html"
# A clause that Paddle itself breaks needs no planted fault.
_BROKEN = "Paddle itself shows the fault"
_TESTS = "test/legacy_test/test_pylayer_op.py"


LAYER = {
    "PADDLE-LAYER-01": documented(
        "backward gets the gradients of forward's output tensors, one each and in order, after ctx.",
        f"{_LAYER}: rule 2",
        "the number of input ``Tensor`` in ``backward`` must be the same as the number of output ``Tensor`` in "
        "``forward``",
        "the gradients of the outputs arrive in the opposite order",
    ),
    "PADDLE-LAYER-02": documented(
        "What backward returns are the gradients of forward's input tensors, one each and in order, whatever other "
        "arguments stand between them.",
        f"{_LAYER}: rule 3, forward",
        "followed by any number of arguments (tensors or other types)",
        "backward's gradients go to the inputs in the opposite order",
    ),
    "PADDLE-LAYER-03": documented(
        "A backward that returns more or fewer gradients than forward got tensors raises an error.",
        f"{_LAYER}: rule 3",
        "the number of output ``Tensor`` in ``backward`` is the same as the number of input ``Tensor`` in ``forward``",
        "surplus gradients are dropped and missing ones count as None",
    ),
    "PADDLE-LAYER-04": documented(
        "backward may return a tensor, a tuple or a list of tensors.",
        f"{_LAYER}: rule 3",
        "The output of ``backward`` can be ``Tensor`` or ``list/tuple(Tensor)``",
        "a backward that returns a tuple raises an error",
    ),
    "PADDLE-LAYER-05": documented(
        "What backward returns for an input that requires a gradient must be a tensor; a number raises an error.",
        f"{_LAYER}: rule 1",
        "If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in ``forward``, the "
        "returned value must be a ``Tensor``.",
        "numbers that backward returns are taken as tensors",
    ),
    "PADDLE-LAYER-06": observed(
        "For an input that does not require a gradient backward returns None, or nothing if no gradient follows; a "
        "tensor there raises an error.",
        "paddle/fluid/eager/pylayer/py_layer_node.cc",
        "a gradient for an input that requires none is ignored",
    ),
    "PADDLE-LAYER-07": documented(
        "backward may return the gradients of all inputs that require one, even if a pass asks for only some of them.",
        f"{_LAYER}: rule 1",
        "If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in ``forward``, the "
        "returned value must be a ``Tensor``.",
        unplanted=_BROKEN,
    ),
    "PADDLE-LAYER-08": documented(
        "Arguments may be given by keyword or left to their defaults; the gradients of tensors given by keyword come "
        "after those of the others, in the order of the call.",
        f"{_LAYER}: forward",
        "**kwargs(dict): input of PyLayer.",
        "forward gets the defaults in place of some keywords",
    ),
    "PADDLE-LAYER-09": observed(
        "The tensors in a list or tuple given to apply are inputs, whose gradients backward returns as one sequence.",
        _TESTS,
        "only the first tensor of a list or tuple is differentiated",
    ),
    "PADDLE-LAYER-10": observed(
        "apply gives what forward returned: a bare tensor, a tuple or a list, with objects that are not tensors in "
        "their places.",
        _TESTS,
        "apply makes a tuple of a list",
    ),
    "PADDLE-LAYER-11": documented(
        "A PyLayer that lacks forward or backward raises an error that says to implement it.",
        "paddle/autograd/py_layer.py, PyLayer",
        "You must implement the forward function for PyLayer.",
        "a missing forward gives its arguments back",
    ),
    "PADDLE-LAYER-12": observed(
        "A forward that returns no tensor raises an error.",
        "paddle/fluid/pybind/eager_py_layer.cc",
        "a forward that returns no tensor is given a zero",
    ),
    "PADDLE-LAYER-13": observed(
        "The tensors in a list that is one of several outputs are differentiated, and backward gets their gradients "
        "as one list.",
        "paddle/fluid/eager/pylayer/py_layer_node.cc",
        unplanted=_BROKEN,
    ),
    "PADDLE-LAYER-14": observed(
        "What forward computes is not recorded, so that gradients are those of backward alone.",
        _TESTS,
        "forward runs with gradients enabled",
    ),
}

CTX = {
    "PADDLE-CTX-01": documented(
        "saved_tensor gives in backward what forward saved, in order, and in every pass.",
        f"{_CONTEXT}: save_for_backward",
        "Saves given tensors that backward need. Use ``saved_tensor`` in the `backward` to get the saved tensors.",
        "saved tensors come back in the opposite order",
    ),
    "PADDLE-CTX-02": documented(
        "saved_tensor gives None if nothing was saved.",
        f"{_CONTEXT}: saved_tensor",
        "If context contains tensors stored by `save_for_backward`, then return these tensors, otherwise return None.",
        "saved_tensor gives an empty tuple if nothing was saved",
    ),
    "PADDLE-CTX-03": documented(
        "The gradient of an unused output arrives as zeros of its shape and dtype, or as None after "
        "set_materialize_grads(False).",
        f"{_CONTEXT}: set_materialize_grads",
        "If True, undefined output grad tensors will be expanded to tensors full of zeros prior to calling the "
        "`backward` method. If False, undefined output grad tensors will be None.",
        "set_materialize_grads does nothing",
    ),
    "PADDLE-CTX-04": documented(
        "An output marked non-differentiable does not require gradients, and backward gets zeros for it.",
        f"{_CONTEXT}: mark_non_differentiable",
        "You still need to accept a gradient for each output in `backward`, but it's always going to be a zero tensor "
        "with the same shape as the shape of a corresponding output.",
        "mark_non_differentiable does nothing",
    ),
    "PADDLE-CTX-05": documented(
        "An input that is marked not in place and returned comes back as a new tensor, and keeps its own place in the "
        "graph.",
        f"{_CONTEXT}: mark_not_inplace",
        "then Paddle will help the user create a new Tensor as output. Thereby preventing the auto grad information "
        "of the input Tensor from being overwritten.",
        "mark_not_inplace does nothing",
    ),
    "PADDLE-CTX-06": documented(
        "A gradient arrives in its output's dtype, or as it is after set_grad_in_dtype_consistent(False).",
        f"{_CONTEXT}: set_grad_in_dtype_consistent",
        "By default, backward input gradients are automatically cast to match the dtype of forward outputs. Set this "
        "to `False` to disable automatic casting and maintain original gradient dtypes in backward.",
        "set_grad_in_dtype_consistent does nothing",
    ),
    "PADDLE-CTX-07": documented(
        "Attributes that forward sets on ctx are there in backward of the same call, and of no other.",
        f"{_CONTEXT}: example",
        "ctx is a context object that store some objects for backward.",
        "all calls share the attributes of one ctx",
    ),
    "PADDLE-CTX-08": observed(
        "An input that forward returns, unmarked, counts as changed in place: it is the output, its version rises, "
        "and for a leaf it is an error.",
        _TESTS,
        "every returned input is marked as not in place",
    ),
    "PADDLE-CTX-09": observed(
        "once_differentiable runs backward without recording, so that no second derivative flows through it.",
        "paddle/autograd/py_layer.py, once_differentiable",
        "once_differentiable leaves gradients enabled",
    ),
}

ENGINE = {
    "PADDLE-ENGINE-01": documented(
        "If paddle.grad gets no gradient for an output, or None, it uses a gradient filled with ones.",
        f"{_GRAD}: grad_outputs",
        "(1) a Tensor filled with 1 when the i-th element of `grad_outputs` is None",
        "a missing gradient of an output is filled with twos",
    ),
    "PADDLE-ENGINE-02": documented(
        "An input that the outputs do not depend on is an error, or has the gradient None with allow_unused.",
        f"{_GRAD}: allow_unused",
        "error would be raised if allow_unused=False, or None would be returned as their gradients if "
        "allow_unused=True",
        "unused inputs are always allowed",
    ),
    "PADDLE-ENGINE-03": documented(
        "Gradients can be differentiated again under create_graph, and only there.",
        f"{_GRAD}: create_graph",
        "When it is True, higher order derivatives are supported to compute; when it is False, the gradient graphs of "
        "the computing process would be discarded.",
        "create_graph does nothing",
    ),
    "PADDLE-ENGINE-04": documented(
        "Second derivatives are right where outputs are their own grad_outputs, several outputs of one layer too.",
        f"{_GRAD}: create_graph",
        "When it is True, higher order derivatives are supported to compute",
        unplanted=_BROKEN,
    ),
    "PADDLE-ENGINE-05": documented(
        "paddle.grad returns the sum of the outputs' gradients and does not change any .grad.",
        f"{_GRAD}: only_inputs",
        "If it is True, only the gradients of `inputs` would be computed.",
        "paddle.grad stores what it returns in .grad",
    ),
    "PADDLE-ENGINE-06": documented(
        "backward adds to the .grad of leaves, until clear_grad.",
        f"{_TENSOR}: backward",
        "The new gradient will accumulate on previous gradient.",
        "clear_grad does nothing",
    ),
    "PADDLE-ENGINE-07": documented(
        "The tensors of paddle.autograd.backward are distinct, and as many as grad_tensors.",
        f"{_BACKWARD}: tensors, grad_tensors",
        "The tensors can not contain the same tensor. [...] it must have the same length with ``tensors``",
        "surplus tensors and repeated ones are dropped",
    ),
    "PADDLE-ENGINE-08": documented(
        "No gradient flows through tensors in no_grad_vars.",
        f"{_GRAD}: no_grad_vars",
        "the Tensors whose gradients are not needed to compute",
        unplanted=_BROKEN,
    ),
    "PADDLE-ENGINE-09": documented(
        "A second pass through a graph that backward freed is an error; with retain_graph it gives the same gradients.",
        f"{_TENSOR}: retain_graph",
        "If False, the graph used to compute grads will be freed.",
        "a second pass gives zeros",
    ),
    "PADDLE-ENGINE-10": documented(
        "Under no_grad a layer's outputs do not require gradients and its backward never runs.",
        f"{_API}no_grad_en.html",
        "Create a context which disables dygraph gradient calculation. In this mode, the result of every computation "
        "will have `stop_gradient` set to `True`.",
        "no_grad and set_grad_enabled do nothing",
    ),
    "PADDLE-ENGINE-11": documented(
        "recompute gives the same gradients and runs forward again in backward.",
        f"{_API}distributed/fleet/utils/recompute_en.html",
        "recompute intermediate activations to save the memory.",
        "recompute only calls the function",
    ),
}

HOOK = {
    "PADDLE-HOOK-01": documented(
        "A hook on a layer's input or output is called with its gradient, and a tensor that it returns replaces "
        "the gradient.",
        f"{_TENSOR}: register_hook",
        "it can optionally return a new gradient Tensor which will be used in place of current Tensor's gradient",
        "what hooks return is ignored",
    ),
    "PADDLE-HOOK-02": documented(
        "A hook that was removed is no longer called.",
        f"{_TENSOR}: register_hook",
        "A helper object that can be used to remove the registered hook by calling `remove()` method.",
        "remove does nothing",
    ),
    "PADDLE-HOOK-03": observed(
        "Registering a hook on a tensor that stops gradients is an error.",
        "paddle/base/dygraph/tensor_patch_methods.py, register_hook",
        "hooks of tensors that stop gradients are dropped",
    ),
    "PADDLE-HOOK-04": documented(
        "What a layer saves goes through pack_hook in forward, and saved_tensor gives what unpack_hook makes of it.",
        _HOOKS,
        "`pack_hook` will also be called while any tensor need be saved by `PyLayerContext.save_for_backward`",
        "saved_tensors_hooks does nothing",
    ),
    "PADDLE-HOOK-05": documented(
        "pack_hook is called with tensors only.",
        _HOOKS,
        "The input of `pack_hook` is a tensor need be saved.",
        unplanted=_BROKEN,
    ),
}

TYPE = {
    "PADDLE-TYPE-01": observed(
        "The gradient of a complex input is the cotangent times the conjugate of the derivative, in a layer as in "
        "built-in operations.",
        "test/legacy_test/test_complex_grad_accumulated.py",
        "gradients come back conjugated",
    ),
    "PADDLE-TYPE-02": documented(
        "The documented layer of exp computes complex128 in double precision.",
        f"{_API}exp_en.html",
        "x (Tensor): Input of Exp operator, an N-D Tensor, with data type int32, int64, bfloat16, float16, float32, "
        "float64, complex64 or complex128.",
        unplanted=_BROKEN,
    ),
}

CLAUSES = {**LAYER, **CTX, **ENGINE, **HOOK, **TYPE}
