"""What is known not to hold of released PaddlePaddle: its faults, and what it does otherwise than PyTorch."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_LAYER = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/PyLayer_en.html"
_CONTEXT = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/PyLayerContext_en.html"
_GRAD = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/grad_en.html"
_APPLY = "paddle/fluid/pybind/eager_py_layer.cc"
_NODE = "paddle/fluid/eager/pylayer/py_layer_node.cc"
_ENGINE = "paddle/fluid/eager/backward.cc"
_SEEN = "seen on 3.3.1"


def _difference(id: str, what: str, reason: str, link: str, script: str) -> Deviation:
    return Deviation(id=id, what=what, reason=reason, link=link, versions=_SEEN, script=script)


FAULTS = (
    Deviation(
        id="VJP-SUBSET",
        function="Conv2D FusedConvBN LLTM LinearFunction LinearFunctionSetupContext NumpyMul QKVProjection "
        "SaveForBackward ScipyConv2d",
        what="what came of the call: an exception, ValueError: *backward function should return None at *",
        reason="paddle.grad for some of the inputs raises ValueError wherever backward returns a gradient for another "
        "input that requires one: None is asked of it, though the ctx does not tell which inputs are wanted",
        link=_LAYER,
        versions=_SEEN,
        promise="If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in "
        "``forward``, the returned value must be a ``Tensor``.",
        script="partial_grad.py",
    ),
    Deviation(
        id="ENG-10 DBL-06",
        what="what came of it: ValueError: *backward function should return None at *",
        reason="as VJP-SUBSET; in DBL-06 the layer that backward calls is differentiated for some of its inputs",
        link=_LAYER,
        versions=_SEEN,
        promise="If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in "
        "``forward``, the returned value must be a ``Tensor``.",
        script="partial_grad.py",
    ),
    Deviation(
        id="DBL-CORRECT",
        function="MyCube Sinh",
        what="second derivative (nonlinear, through *)",
        reason="where several outputs of one node are their own grad_outputs, the second derivative is silently "
        "wrong: all of them arrive at the node's first output, of built-in operations too",
        link=_GRAD,
        versions=_SEEN,
        promise="When it is True, higher order derivatives are supported to compute",
        script="outputs_as_grad_outputs.py",
    ),
    Deviation(
        id="DBL-CORRECT",
        function="LinearFunction LinearFunctionSetupContext QKVProjection",
        what="second derivative (*",
        reason="of matrices without elements the second derivative of a product is refused where only one of the "
        "factors has one: Required tensor shall not be nullptr; QKVProjection shows what MyCube shows, too",
        link=_GRAD,
        versions=_SEEN,
        promise="When it is True, higher order derivatives are supported to compute",
        script="empty_matmul.py",
    ),
)

OF_THE_DIALECT = (
    Deviation(
        id="PADDLE-LAYER-04/list",
        what="a backward that returns a list of *",
        reason="only a bare tensor or a tuple is taken; a list raises ValueError",
        link=_LAYER,
        versions=_SEEN,
        promise="The output of ``backward`` can be ``Tensor`` or ``list/tuple(Tensor)``",
        script="list_of_gradients.py",
    ),
    Deviation(
        id="PADDLE-LAYER-07",
        what="the gradient of one input",
        reason="as VJP-SUBSET",
        link=_LAYER,
        versions=_SEEN,
        promise="If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in "
        "``forward``, the returned value must be a ``Tensor``.",
        script="partial_grad.py",
    ),
    Deviation(
        id="PADDLE-LAYER-13",
        what="gradient",
        reason="the process dies of SIGSEGV: the gradients of a list of several tensors are written to a list as if it "
        "were a tuple, and all to its first place",
        link=_NODE,
        versions=_SEEN,
        script="list_among_outputs.py",
    ),
    Deviation(
        id="PADDLE-CTX-05/graph",
        what="*gradients*",
        reason="the new tensor has no node; the input gets the layer's in place of its own: a leaf is cut off with an "
        "error, and for other inputs the gradient is silently wrong",
        link=_CONTEXT,
        versions=_SEEN,
        promise="Thereby preventing the auto grad information of the input Tensor from being overwritten.",
        script="mark_not_inplace.py",
    ),
    Deviation(
        id="PADDLE-ENGINE-04",
        what="second derivative*",
        reason="as DBL-CORRECT",
        link=_GRAD,
        versions=_SEEN,
        promise="When it is True, higher order derivatives are supported to compute",
        script="outputs_as_grad_outputs.py",
    ),
    Deviation(
        id="PADDLE-ENGINE-09/freed",
        what="a second pass through a graph that was freed",
        reason="the process dies of SIGSEGV, where built-in operations raise an error: the node has dropped its ctx, "
        "and is not asked whether it was freed",
        link=_NODE,
        versions=_SEEN,
        promise="If False, the graph used to compute grads will be freed.",
        script="second_backward.py",
    ),
    Deviation(
        id="PADDLE-ENGINE-09/backward",
        what="gradients of a retained graph, accumulated",
        reason="a second backward() through a PyLayer dies of SIGSEGV, with retain_graph=True too: the node drops its "
        "ctx after the first; paddle.grad works on a copy",
        link=_NODE,
        versions=_SEEN,
        promise="If you would like to add more ops to the built graph after calling this method( :code:`backward` ), "
        "set the parameter :code:`retain_graph` to True, then the grads will be retained.",
        script="second_backward.py",
    ),
    Deviation(
        id="PADDLE-ENGINE-08",
        what="gradient past some outputs of a layer",
        reason="with outputs of a PyLayer in no_grad_vars gradients are wrong, or the process dies of SIGSEGV, as it "
        "may with those of built-in operations",
        link=_GRAD,
        versions=_SEEN,
        promise="the Tensors whose gradients are not needed to compute",
        script="no_grad_vars.py",
    ),
    Deviation(
        id="PADDLE-HOOK-01/output",
        what=".grad with hooks on the output",
        reason="backward of a PyLayer gets the gradients as they were before the hooks of its outputs, whose results "
        "are computed and dropped",
        link=_NODE,
        versions=_SEEN,
        promise="it can optionally return a new gradient Tensor which will be used in place of current Tensor's "
        "gradient.",
        script="hook_on_output.py",
    ),
    Deviation(
        id="PADDLE-HOOK-05",
        what="arguments of pack_hook",
        reason="pack_hook is called with None where None is saved, so that the documented hook, x.numpy(), raises",
        link="https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/saved_tensors_hooks_en.html",
        versions=_SEEN,
        promise="The input of `pack_hook` is a tensor need be saved.",
        script="pack_hook_of_none.py",
    ),
    Deviation(
        id="PADDLE-HOOK-04/list",
        what="what comes of tensors saved in a list under hooks",
        reason="the process dies of SIGSEGV: the list of unpacked tensors is written as if it were a tuple",
        link=_APPLY,
        versions=_SEEN,
        promise="`pack_hook` will also be called while any tensor need be saved by `PyLayerContext.save_for_backward`.",
        script="pack_hook_of_list.py",
    ),
    Deviation(
        id="PADDLE-TYPE-02",
        what="relative error of exp in complex128, in units of its rounding",
        reason="the exponential of complex128 is computed in single precision",
        link="https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/exp_en.html",
        versions=_SEEN,
        promise="x (Tensor): Input of Exp operator, an N-D Tensor, with data type int32, int64, bfloat16, float16, "
        "float32, float64, complex64 or complex128.",
        script="exp_of_complex128.py",
    ),
)

DIFFERENCES = (
    _difference(
        "FN-30",
        "the process ended without a word*",
        "the graph is freed by recursion, so that a chain of 10 000 calls overflows a stack of 256 KiB",
        _NODE,
        "long_chain.py",
    ),
    _difference(
        "CTX-02",
        "ctx of forward and of backward: type, whether it is a Watched, and whether it is each output's grad_fn",
        "ctx is an object of its own, and no node of the graph",
        _APPLY,
        "differences_ctx.py",
    ),
    _difference(
        "CTX-06",
        "ctx.saved_tensors right after save_for_backward",
        "saved_tensor() gives what was saved at once, in forward too",
        _CONTEXT,
        "differences_ctx.py",
    ),
    _difference(
        "SAVE-02",
        "save_for_backward of what is no tensor",
        "anything can be saved; without saved_tensors_hooks nothing is checked",
        _CONTEXT,
        "differences_ctx.py",
    ),
    _difference(
        "SAVE-04",
        "saved tensors that come back as other objects",
        "a saved output comes back as the very object that forward returned",
        _APPLY,
        "differences_ctx.py",
    ),
    _difference(
        "SAVE-12",
        "gradients, position *",
        "save_for_backward in backward replaces what forward saved; it is documented for forward alone",
        _CONTEXT,
        "differences_ctx.py",
    ),
    _difference(
        "MAT-03",
        "*set_materialize_grads of no bool",
        "None is taken for a bool, and the error for other values names no method",
        _APPLY,
        "differences_ctx.py",
    ),
    _difference(
        "ND-04",
        "a call that marks what is no tensor",
        "what is no tensor is ignored",
        _APPLY,
        "differences_ctx.py",
    ),
    _difference(
        "ND-06",
        "requires_grad of the inputs",
        "an input that is returned and marked is that very object, and no longer requires grad itself",
        _APPLY,
        "differences_outputs.py",
    ),
    _difference(
        "ND-01 OUT-02",
        "requires_grad, and having a grad_fn, of each output",
        "integer outputs require grad unless they are marked",
        _APPLY,
        "differences_outputs.py",
    ),
    _difference(
        "FN-04",
        "requires_grad of the output",
        "tensors in lists and tuples given to apply are tracked",
        _APPLY,
        "differences_outputs.py",
    ),
    _difference(
        "FN-07/tuples",
        "what came of it: ValueError: *At least one output of `PyLayer.forward` is a `Tensor`*",
        "at least one output has to be a tensor",
        _APPLY,
        "differences_outputs.py",
    ),
    _difference(
        "FN-08",
        "requires_grad of the tensor in it",
        "tensors in a list or tuple that forward returns are outputs",
        _APPLY,
        "differences_outputs.py",
    ),
    _difference(
        "FN-09",
        "type of what apply gives",
        "a named tuple comes back as the object that forward returned",
        _APPLY,
        "differences_outputs.py",
    ),
    _difference(
        "VIEW-01",
        "what came of it: ValueError: *Leaf Var * that doesn't stop gradient can't use inplace strategy*",
        "an argument that forward returns counts as changed in place, which a leaf refuses",
        _CONTEXT,
        "differences_outputs.py",
    ),
    _difference(
        "VIEW-02",
        "arguments among the outputs",
        "an argument that forward returns comes back as that very object",
        _CONTEXT,
        "differences_outputs.py",
    ),
    _difference(
        "FN-29",
        "what the caller gets",
        "whatever backward raises comes out as an OSError, with the exception's own type as text",
        _NODE,
        "differences_backward.py",
    ),
    _difference(
        "GRAD-02 GRAD-02/bare",
        "message of a backward that returns *",
        "the error names the position of the first gradient that is missing, and not how many there should be",
        _NODE,
        "differences_backward.py",
    ),
    _difference(
        "GRAD-03",
        "a backward that returns None beyond that",
        "more gradients than tensor arguments are refused, be they None",
        _LAYER,
        "differences_backward.py",
    ),
    _difference(
        "GRAD-15",
        "number of pairs of .grad fields and cotangents that share memory",
        "a tensor that backward returns becomes the .grad of a leaf without a copy",
        "paddle/fluid/eager/accumulation/accumulation_node.cc",
        "differences_backward.py",
    ),
    _difference(
        "DBL-01 DBL-07",
        "requires_grad of the gradients",
        "under create_graph every gradient requires grad, also one that depends on nothing",
        _ENGINE,
        "differences_backward.py",
    ),
    _difference(
        "DBL-01/backward",
        "recording in backward",
        "backward() has no create_graph, only paddle.grad has",
        "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/backward_en.html",
        "differences_backward.py",
    ),
    _difference(
        "DBL-02",
        "what came of it: RuntimeError: *divide_double_grad doesn't have any grad op*",
        "a division in backward has two derivatives more and no third, which is refused",
        "paddle/phi/ops/yaml/backward.yaml, divide_double_grad",
        "differences_backward.py",
    ),
)

DEVIATIONS = (*FAULTS, *OF_THE_DIALECT, *DIFFERENCES)
