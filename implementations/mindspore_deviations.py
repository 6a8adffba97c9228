"""What is known not to hold of released MindSpore: its faults, and what it does otherwise than PyTorch."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_VJP = "the docstring of mindspore.vjp"
_FUNCTION = "mindspore/common/_grad_function.py"
_CELL = "mindspore/nn/cell.py"
_NODE = "mindspore/ccsrc/pynative/backward/hook/custom_function.cc"
_SEEN = "seen on 2.10.0"

# What compares values of all dtypes, and so sees how exactly the kernels compute them.
_VALUES = "FWD-VALUE FWD-EMPTY VJP-REF VJP-REPEAT VJP-SAME-TENSOR VJP-CHAIN VJP-CHAIN/instances"


def _difference(
    id: str, what: str, reason: str, link: str, script: str, *, function: str = "", sometimes: bool = False
) -> Deviation:
    return Deviation(
        id=id,
        what=what,
        reason=reason,
        link=link,
        versions=_SEEN,
        function=function,
        script=script,
        sometimes=sometimes,
    )


OF_THE_ENGINE = (
    _difference(
        "CTX-03",
        "attributes of ctx in each backward",
        "mindspore.vjp runs forward again for a second pass, which warns of it: each pass has a ctx of its own",
        _VJP,
        "forward_in_each_pass.py",
    ),
    _difference(
        "FN-30",
        "number of calls alive before and after the graph is dropped",
        "there is no graph before gradients are asked for: forward runs for each pass",
        _VJP,
        "forward_in_each_pass.py",
    ),
    _difference(
        "MAT-04",
        "number of calls of backward",
        "the pass ends where backward returns None for all inputs: what comes before does not run",
        _NODE,
        "only_none.py",
    ),
    _difference(
        "GRAD-03",
        "*a backward that returns * beyond its gradients",
        "whether what is returned beyond the arguments is looked at depends on the memory behind a list: now and then "
        "a tensor there is taken without an error, and the error speaks of an input that is no tensor",
        _NODE,
        "surplus_gradient.py",
    ),
    _difference(
        "GRAD-10",
        "message of a gradient of shape *",
        "the error tells the shapes and not which gradient it is",
        _NODE,
        "position_in_message.py",
    ),
    _difference(
        "GRAD-02 GRAD-02/bare GRAD-07/list",
        "message of *",
        "the error runs the expected number and the next word together: 'expect: 2but: 1'",
        _NODE,
        "number_in_message.py",
    ),
)

OF_THE_CLASS = (
    _difference("FN-16", "message of *", "vjp is no other name of backward", _FUNCTION, "no_alias.py"),
    _difference("FN-17", "what came of it: NotImplementedError: *", "as FN-16", _FUNCTION, "no_alias.py"),
    _difference("FN-18", "what differentiating a class with both gives", "as FN-16", _FUNCTION, "no_alias.py"),
    _difference(
        "SAVE-02",
        "save_for_backward of what is no tensor",
        "what is saved is set as an attribute and never looked at",
        _FUNCTION,
        "unchecked_arguments.py",
    ),
    _difference(
        "MAT-03",
        "set_materialize_grads of no bool",
        "the argument is looked at when forward is over, and RuntimeError raised instead of TypeError",
        _FUNCTION,
        "unchecked_arguments.py",
    ),
)

OF_THE_KERNELS = (
    _difference(
        _VALUES,
        "* at (*",
        "exp, tanh and sigmoid of float32 on the CPU are off by up to 40 units in the last place",
        "the docstring of mindspore.ops.exp",
        "exp_of_float32.py",
        function="Exp Sinh LLTM",
        sometimes=True,
    ),
    _difference(
        "VJP-REF VJP-REPEAT VJP-CHAIN VJP-CHAIN/instances",
        "gradient of argument 0 (x) at *",
        "a float that meets a tensor is rounded to float32, even where the tensor is float64: 3.14 becomes "
        "3.140000104904175",
        "the docstring of mindspore.ops.mul",
        "float_beside_float64.py",
        function="GradientScaler",
    ),
    _difference(
        "FWD-VALUE FWD-EMPTY VJP-REF VJP-REPEAT VJP-CHAIN VJP-CHAIN/instances",
        "* at (*",
        "as VJP-REF of GradientScaler",
        "the docstring of mindspore.ops.mul",
        "float_beside_float64.py",
        function="FusedConvBN GradientScaler",
        sometimes=True,
    ),
    _difference(
        "VJP-FD",
        "slope *",
        "as VJP-REF of GradientScaler",
        "the docstring of mindspore.ops.mul",
        "float_beside_float64.py",
        function="FusedConvBN GradientScaler",
        sometimes=True,
    ),
    _difference(
        "DBL-CORRECT",
        "second derivative *",
        "an index that is an integer cannot be differentiated twice: TypeError, and from then on every x[0] in the "
        "process raises it",
        "mindspore/ccsrc/pybind_api/pynative/tensor/tensor_index_py.cc",
        "index_in_second_derivative.py",
        function="Select",
    ),
    _difference(
        "VJP-REF VJP-FD VJP-NEEDS VJP-NONE VJP-UNUSED VJP-UNUSED/severed VJP-LINEAR VJP-FIT VJP-REPEAT VJP-FINITE "
        "VJP-CHAIN VJP-CHAIN/instances",
        "what came of the call: an exception, TypeError: Only support integers, slices*",
        "as DBL-CORRECT of Select, in the process in which that was run",
        "mindspore/ccsrc/pybind_api/pynative/tensor/tensor_index_py.cc",
        "index_in_second_derivative.py",
        function="Select",
        sometimes=True,
    ),
)

OF_THE_DIALECT = (
    Deviation(
        id="MINDSPORE-FUNCTION-09/before",
        what="what came of it: RuntimeError: *Output index out of range of metadata*",
        reason="where an output that stands before a differentiable one is marked, the pass ends with an internal "
        "error: Output index out of range of metadata",
        link=_FUNCTION,
        versions=_SEEN,
        promise="The api refers to the following files from pytorch",
        script="marked_before.py",
    ),
    Deviation(
        id="MINDSPORE-VJP-02",
        what="what came of it: RuntimeError: *Can not find top cell for backward*",
        reason="the function of an earlier call finds no graph after a later call: Can not find top cell for backward",
        link=_VJP,
        versions=_SEEN,
        promise="**vjp_fn** (Function) - To calculate vector-jacobian-product. Its inputs are the vectors whose shape "
        "and type should be the same as `net_output` .",
        script="two_products.py",
    ),
    Deviation(
        id="MINDSPORE-HOOK-06/bprop",
        what="output",
        reason="a forward hook of a cell with a bprop is not called: registering it does nothing, without an error",
        link=_CELL,
        versions=_SEEN,
        promise="The `hook_fn` can modify the forward outputs by returning new outputs.",
        script="forward_hook_beside_bprop.py",
    ),
    Deviation(
        id="MINDSPORE-HOOK-02/bprop",
        what="* as a hook",
        reason="as MINDSPORE-HOOK-06/bprop: it is not looked at",
        link=_CELL,
        versions=_SEEN,
        promise="TypeError: If the `hook_fn` is not a function of python.",
        script="forward_hook_beside_bprop.py",
    ),
    _difference(
        "MINDSPORE-FUNCTION-06/views",
        "gradients, position *",
        "a gradient that is an expanded view is summed as if it were contiguous, reading what lies behind it in the "
        "memory: the gradient is silently wrong",
        "mindspore/ccsrc/pynative/backward/grad_utils.cc, AutoCastAndReduce",
        "expanded_gradient.py",
    ),
    _difference(
        "MINDSPORE-CELL-04/compiled",
        "what came of it: RuntimeError: Fn gradient size should larger than next edges size*",
        "a compiled cell whose bprop returns None for an input raises RuntimeError: Fn gradient size should larger "
        "than next edges size",
        _CELL,
        "none_in_compiled_bprop.py",
    ),
)

DEVIATIONS = (*OF_THE_DIALECT, *OF_THE_ENGINE, *OF_THE_CLASS, *OF_THE_KERNELS)
