"""The known deviations of released PaddlePaddle: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from functools import partial

from autograd_conformance.implementations.deviations import Cause, Deviation, Died, Found, Grade, Raised

_LAYER = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/PyLayer_en.html"
_CONTEXT = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/PyLayerContext_en.html"
_GRAD = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/grad_en.html"
_APPLY = "paddle/fluid/pybind/eager_py_layer.cc"
_NODE = "paddle/fluid/eager/pylayer/py_layer_node.cc"
_ENGINE = "paddle/fluid/eager/backward.cc"
_GRADIENTS = "This API computes the sum of gradients of `outputs` with respect to each `inputs` ."
_SEEN = ("3.3.1",)

# The Functions whose backward returns gradients for several inputs, whichever are wanted.
_OF_SEVERAL_INPUTS = (
    "Conv2D", "FusedConvBN", "LLTM", "LinearFunction", "LinearFunctionSetupContext", "NumpyMul", "QKVProjection",
    "SaveForBackward", "ScipyConv2d",
)  # fmt: skip

_PARTIAL_GRAD = Cause(
    grade=Grade.BROKEN,
    reason="paddle.grad for some of the inputs raises ValueError if backward returns a gradient for "
    "another input that requires one: it has to return None there, but the ctx does not say which "
    "inputs are wanted",
    promise="If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in "
    "``forward``, the returned value must be a ``Tensor``.",
    link=_LAYER,
    script="partial_grad.py",
    seen=_SEEN,
)

_OUTPUTS_AS_GRAD_OUTPUTS = Cause(
    grade=Grade.WRONG,
    reason="if several outputs of one node are their own grad_outputs, the second derivative is silently "
    "wrong: all of them arrive at the node's first output, also for built-in operations",
    promise="When it is True, higher order derivatives are supported to compute",
    link=_GRAD,
    script="outputs_as_grad_outputs.py",
    seen=_SEEN,
)

OF_THE_ENGINE = (
    Deviation(
        ids=("VJP-SUBSET",),
        functions=_OF_SEVERAL_INPUTS,
        shows=(Raised("ValueError", containing="backward function should return None at "),),
        cause=_PARTIAL_GRAD,
    ),
    Deviation(
        ids=("ENG-10", "DBL-06"),
        shows=(Raised("ValueError", containing="backward function should return None at "),),
        cause=_PARTIAL_GRAD,
    ),
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("MyCube", "Sinh"),
        shows=(Found(starting="second derivative (nonlinear, through ", ending=")"),),
        cause=_OUTPUTS_AS_GRAD_OUTPUTS,
    ),
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("LinearFunction", "LinearFunctionSetupContext", "QKVProjection"),
        shows=(Found(starting="second derivative ("),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the second derivative of a product of matrices without elements is refused if only one "
            "factor has a second derivative: Required tensor shall not be nullptr; QKVProjection also "
            "shows what MyCube shows",
            promise="When it is True, higher order derivatives are supported to compute",
            link=_GRAD,
            script="empty_matmul.py",
            seen=_SEEN,
        ),
    ),
)

OF_THE_DIALECT = (
    Deviation(
        ids=("PADDLE-LAYER-04/list",),
        shows=(Found(starting="a backward that returns a list of "),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="only a bare tensor or a tuple is accepted; a list raises ValueError",
            promise="The output of ``backward`` can be ``Tensor`` or ``list/tuple(Tensor)``",
            link=_LAYER,
            script="list_of_gradients.py",
            seen=_SEEN,
        ),
    ),
    Deviation(ids=("PADDLE-LAYER-07",), shows=(Found("the gradient of one input"),), cause=_PARTIAL_GRAD),
    Deviation(
        ids=("PADDLE-LAYER-13",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the process dies with SIGSEGV: the gradients of a list of several tensors are written to a "
            "list as if it were a tuple, and all to its first element",
            promise=_GRADIENTS,
            link=f"{_GRAD}, {_NODE}",
            script="list_among_outputs.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-CTX-05/graph",),
        shows=(Found(containing="gradients"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the new tensor has no node, and the input gets the layer's node instead of its own: a leaf "
            "is cut off with an error, and other inputs silently get a wrong gradient",
            promise="then Paddle will help the user create a new Tensor as output. Thereby preventing the auto grad "
            "information of the input Tensor from being overwritten.",
            link=_CONTEXT,
            script="mark_not_inplace.py",
            seen=_SEEN,
        ),
    ),
    Deviation(ids=("PADDLE-ENGINE-04",), shows=(Found(starting="second derivative"),), cause=_OUTPUTS_AS_GRAD_OUTPUTS),
    Deviation(
        ids=("PADDLE-ENGINE-09/freed",),
        shows=(Found("a second pass through a graph that was freed"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the process dies with SIGSEGV, where built-in operations raise an error: the node has "
            "dropped its ctx, and nothing checks whether it was freed",
            promise="If False, the graph used to compute grads will be freed.",
            link=_NODE,
            script="second_backward.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-ENGINE-09/backward",),
        shows=(Found("gradients of a retained graph, accumulated"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a second backward() through a PyLayer dies with SIGSEGV, with retain_graph=True too: the "
            "node drops its ctx after the first; paddle.grad works on a copy",
            promise="If you would like to add more ops to the built graph after calling this method( "
            ":code:`backward` ), set the parameter :code:`retain_graph` to True, then the grads will be "
            "retained.",
            link=_NODE,
            script="second_backward.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-ENGINE-08",),
        shows=(Found("gradient past some outputs of a layer"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="with outputs of a PyLayer in no_grad_vars, gradients are wrong or the process dies with "
            "SIGSEGV; this can happen with outputs of built-in operations too",
            promise=_GRADIENTS,
            link=_GRAD,
            script="no_grad_vars.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-HOOK-01/output",),
        shows=(Found(".grad with hooks on the output"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="backward of a PyLayer gets the gradients from before the hooks of its outputs; the results "
            "of the hooks are computed and dropped",
            promise="it can optionally return a new gradient Tensor which will be used in place of current "
            "Tensor's gradient.",
            link=_NODE,
            script="hook_on_output.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-HOOK-05",),
        shows=(Found("arguments of pack_hook"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="pack_hook is called with None where None is saved, so the documented hook, x.numpy(), raises "
            "an error",
            promise="The input of `pack_hook` is a tensor need be saved.",
            link="https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/saved_tensors_hooks_en.html",
            script="pack_hook_of_none.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-HOOK-04/list",),
        shows=(Found("what comes of tensors saved in a list under hooks"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the process dies with SIGSEGV: the list of unpacked tensors is written as if it were a tuple",
            promise="`pack_hook` will also be called while any tensor need be saved by "
            "`PyLayerContext.save_for_backward`.",
            link=_APPLY,
            script="pack_hook_of_list.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("PADDLE-TYPE-02",),
        shows=(Found("relative error of exp in complex128, in units of its rounding"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the exponential of complex128 is computed in single precision",
            promise="Computes exp of x element-wise with a natural number `e` as the base. [...] x (Tensor): Input of "
            "Exp operator, an N-D Tensor, with data type int32, int64, bfloat16, float16, float32, float64, "
            "complex64 or complex128.",
            link="https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/exp_en.html",
            script="exp_of_complex128.py",
            seen=_SEEN,
        ),
    ),
)

# Each of these scripts shows several differences.
_ctx = partial(Cause, grade=Grade.DIFFERENCE, script="differences_ctx.py", seen=_SEEN)
_outputs = partial(Cause, grade=Grade.DIFFERENCE, script="differences_outputs.py", seen=_SEEN)
_backward = partial(Cause, grade=Grade.DIFFERENCE, script="differences_backward.py", seen=_SEEN)

OF_THE_CONTRACT = (
    Deviation(
        ids=("FN-30",),
        shows=(Died(starting="ended without a word", call="^calls in a chain: "),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the graph is freed by recursion, so a chain of 10 000 calls overflows a stack of 256 KiB",
            link=_NODE,
            script="long_chain.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("CTX-02",),
        shows=(
            Found(
                "ctx of forward and of backward: type, whether it is a Watched, and whether it is each output's grad_fn"
            ),
        ),
        cause=_ctx(reason="ctx is a separate object, not a node of the graph", link=_APPLY),
    ),
    Deviation(
        ids=("CTX-06",),
        shows=(Found("ctx.saved_tensors right after save_for_backward"),),
        cause=_ctx(reason="saved_tensor() gives the saved tensors immediately, in forward too", link=_CONTEXT),
    ),
    Deviation(
        ids=("SAVE-02",),
        shows=(Found("save_for_backward of a non-tensor"),),
        cause=_ctx(reason="anything can be saved; without saved_tensors_hooks nothing is checked", link=_CONTEXT),
    ),
    Deviation(
        ids=("SAVE-04",),
        shows=(Found("saved tensors that come back as other objects"),),
        cause=_ctx(reason="a saved output comes back as the same object that forward returned", link=_APPLY),
    ),
    Deviation(
        ids=("SAVE-12",),
        shows=(Found(starting="gradients, position "),),
        cause=_ctx(
            reason="save_for_backward in backward replaces what forward saved; it is documented for forward only",
            link=_CONTEXT,
        ),
    ),
    Deviation(
        ids=("MAT-03",),
        shows=(Found(ending="set_materialize_grads of no bool"),),
        cause=_ctx(
            reason="None is accepted as a bool, and the error for other values does not name the method", link=_APPLY
        ),
    ),
    Deviation(
        ids=("ND-04",),
        shows=(Found("a call that marks a non-tensor"),),
        cause=_ctx(reason="arguments that are not tensors are ignored", link=_APPLY),
    ),
    Deviation(
        ids=("ND-06",),
        shows=(Found("requires_grad of the inputs"),),
        cause=_outputs(
            reason="an input that is returned and marked comes back as the same object, and no longer requires "
            "grad itself",
            link=_APPLY,
        ),
    ),
    Deviation(
        ids=("ND-01", "OUT-02"),
        shows=(Found("requires_grad, and having a grad_fn, of each output"),),
        cause=_outputs(reason="integer outputs require grad unless they are marked", link=_APPLY),
    ),
    Deviation(
        ids=("FN-04",),
        shows=(Found("requires_grad of the output"),),
        cause=_outputs(reason="tensors in lists and tuples given to apply are tracked", link=_APPLY),
    ),
    Deviation(
        ids=("FN-07/tuples",),
        shows=(Raised("ValueError", containing="At least one output of `PyLayer.forward` is a `Tensor`"),),
        cause=_outputs(reason="at least one output has to be a tensor", link=_APPLY),
    ),
    Deviation(
        ids=("FN-08",),
        shows=(Found("requires_grad of the tensor in it"),),
        cause=_outputs(reason="tensors in a list or tuple that forward returns are outputs", link=_APPLY),
    ),
    Deviation(
        ids=("FN-09",),
        shows=(Found("type of what apply gives"),),
        cause=_outputs(reason="a named tuple comes back as the object that forward returned", link=_APPLY),
    ),
    Deviation(
        ids=("VIEW-01",),
        shows=(Raised("ValueError", containing=" that doesn't stop gradient can't use inplace strategy"),),
        cause=_outputs(
            reason="an argument that forward returns counts as changed in place, which is an error for a leaf",
            link=_CONTEXT,
        ),
    ),
    Deviation(
        ids=("VIEW-02",),
        shows=(Found("arguments among the outputs"),),
        cause=_outputs(reason="an argument that forward returns comes back as the same object", link=_CONTEXT),
    ),
    Deviation(
        ids=("FN-29",),
        shows=(Found("what the caller gets"),),
        cause=_backward(
            reason="any exception of backward becomes an OSError whose text is the type of the original", link=_NODE
        ),
    ),
    Deviation(
        ids=("GRAD-02", "GRAD-02/bare"),
        shows=(Found(starting="message of a backward that returns "),),
        cause=_backward(
            reason="the error names the position of the first missing gradient, but not the expected number of "
            "gradients",
            link=_NODE,
        ),
    ),
    Deviation(
        ids=("GRAD-03",),
        shows=(Found("a backward that returns None beyond that"),),
        cause=_backward(
            reason="more gradients than tensor arguments are refused, even if the surplus is None", link=_LAYER
        ),
    ),
    Deviation(
        ids=("ENG-03", "ENG-03/ways", "ENG-04/repeated", "ENG-16", "GRAD-14", "OUT-03"),
        shows=(
            Raised("RuntimeError", containing="outputs contain duplicate tensor"),
            Raised("AssertionError", containing="contains duplicate paddle.Tensor object"),
        ),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a tensor that is given twice among the outputs is refused, by paddle.grad and by backward",
            link=_GRAD,
            script="repeated_output.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("GRAD-15",),
        shows=(Found("number of pairs of .grad fields and cotangents that share memory"),),
        cause=_backward(
            reason="a tensor that backward returns becomes the .grad of a leaf without a copy",
            link="paddle/fluid/eager/accumulation/accumulation_node.cc",
        ),
    ),
    Deviation(
        ids=("DBL-01", "DBL-07"),
        shows=(Found("requires_grad of the gradients"),),
        cause=_backward(
            reason="under create_graph every gradient requires grad, even one that depends on nothing", link=_ENGINE
        ),
    ),
    Deviation(
        ids=("DBL-01/backward",),
        shows=(Found("recording in backward"),),
        cause=_backward(
            reason="backward() has no create_graph; only paddle.grad has it",
            link="https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/autograd/backward_en.html",
        ),
    ),
    Deviation(
        ids=("DBL-02",),
        shows=(Raised("RuntimeError", containing="divide_double_grad doesn't have any grad op"),),
        cause=_backward(
            reason="a division in backward can be differentiated two more times; the third is refused",
            link="paddle/phi/ops/yaml/backward.yaml, divide_double_grad",
        ),
    ),
)

DEVIATIONS = (*OF_THE_ENGINE, *OF_THE_DIALECT, *OF_THE_CONTRACT)
