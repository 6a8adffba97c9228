"""The known deviations of released MindSpore: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import Cause, Component, Deviation, Found, Frequency, Grade, Raised

_VJP = "the docstring of mindspore.vjp"
_FUNCTION = "mindspore/common/_grad_function.py"
_CELL = "mindspore/nn/cell.py"
_NODE = "mindspore/ccsrc/pynative/backward/hook/custom_function.cc"
_SEEN = ("2.10.0",)

# The tests that compare values of all dtypes, and so see how exact the kernels are.
_VALUES = (
    "FWD-VALUE", "FWD-VALUE/sizes", "FWD-VALUE/specials", "FWD-EMPTY", "VJP-REF", "VJP-REF/sizes", "VJP-REF/specials",
    "VJP-REPEAT", "VJP-CHAIN", "VJP-CHAIN/instances",
)  # fmt: skip
# The tests that call backward of Select.
_PULLING_BACK = (
    "VJP-REF", "VJP-FD", "VJP-NEEDS", "VJP-NONE", "VJP-UNUSED", "VJP-UNUSED/severed", "VJP-LINEAR", "VJP-FIT",
    "VJP-REPEAT", "VJP-FINITE", "VJP-CHAIN", "VJP-CHAIN/instances",
)  # fmt: skip

OF_THE_ENGINE = (
    Deviation(
        ids=("CTX-03",),
        shows=(Found("attributes of ctx in each backward"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="mindspore.vjp runs forward again for a second pass, with a warning: each pass has its own ctx",
            link=_VJP,
            script="forward_in_each_pass.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("FN-30",),
        shows=(Found("number of calls alive before and after the graph is dropped"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="there is no graph until gradients are requested: forward runs for each pass",
            link=_VJP,
            script="forward_in_each_pass.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MAT-04",),
        shows=(Found("number of calls of backward"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the pass ends where backward returns None for all inputs: earlier nodes do not run",
            link=_NODE,
            script="only_none.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("GRAD-03",),
        shows=(Found(containing="a backward that returns ", ending=" beyond its gradients"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="whether gradients beyond the arguments are checked depends on the memory behind a list: "
            "sometimes a tensor there is accepted without an error, and the error speaks of an input that "
            "is not a tensor",
            link=_NODE,
            script="surplus_gradient.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("GRAD-10",),
        shows=(Found(starting="message of a gradient of shape "),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the error names the shapes, but not the position of the gradient",
            link=_NODE,
            script="position_in_message.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("GRAD-02", "GRAD-02/bare", "GRAD-07/list"),
        shows=(Found(starting="message of "),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the error has no space between the expected number and the next word: 'expect: 2but: 1'",
            link=_NODE,
            script="number_in_message.py",
            seen=_SEEN,
        ),
    ),
)

_NO_ALIAS = Cause(
    grade=Grade.DIFFERENCE,
    reason="vjp is not another name of backward",
    link=_FUNCTION,
    script="no_alias.py",
    seen=_SEEN,
)

OF_THE_CLASS = (
    Deviation(ids=("FN-16",), shows=(Found(starting="message of "),), cause=_NO_ALIAS),
    Deviation(ids=("FN-17",), shows=(Raised("NotImplementedError"),), cause=_NO_ALIAS),
    Deviation(ids=("FN-18",), shows=(Found("what differentiating a class with both gives"),), cause=_NO_ALIAS),
    Deviation(
        ids=("SAVE-02",),
        shows=(Found("save_for_backward of a non-tensor"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="save_for_backward sets an attribute and checks nothing",
            link=_FUNCTION,
            script="unchecked_arguments.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MAT-03",),
        shows=(Found("set_materialize_grads of no bool"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the argument is checked after forward, with a RuntimeError instead of a TypeError",
            link=_FUNCTION,
            script="unchecked_arguments.py",
            seen=_SEEN,
        ),
    ),
)

_FLOAT_BESIDE_FLOAT64 = Cause(
    grade=Grade.DIFFERENCE,
    reason="a Python float in an operation with a tensor is rounded to float32, even if the tensor is "
    "float64: 3.14 becomes 3.140000104904175",
    link="the docstring of mindspore.ops.mul",
    script="float_beside_float64.py",
    seen=_SEEN,
)

_INDEX_IN_SECOND_DERIVATIVE = Cause(
    grade=Grade.BROKEN,
    reason="an integer index cannot be differentiated twice: it raises TypeError, and so does every "
    "later x[0] in the same process",
    promise="Single-level and multi-level `int` index values are supported.",
    link="https://mindspore.cn/docs/en/r2.5.0/model_train/model_building/tensor_and_parameter.html; "
    "mindspore/ccsrc/pybind_api/pynative/tensor/tensor_index_py.cc",
    script="index_in_second_derivative.py",
    seen=_SEEN,
)

OF_THE_KERNELS = (
    Deviation(
        ids=(*_VALUES, "VJP-SAME-TENSOR"),
        functions=("Exp", "Sinh", "LLTM"),
        shows=(Component(),),
        frequency=Frequency.SOMETIMES,
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="exp, tanh and sigmoid of float32 on the CPU are off by up to 40 units in the last place",
            link="the docstring of mindspore.ops.exp",
            script="exp_of_float32.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("VJP-REF", "VJP-REF/sizes", "VJP-REF/specials", "VJP-REPEAT", "VJP-CHAIN", "VJP-CHAIN/instances"),
        functions=("GradientScaler",),
        shows=(Component("gradient of argument 0 (x)"),),
        cause=_FLOAT_BESIDE_FLOAT64,
    ),
    Deviation(
        ids=_VALUES,
        functions=("FusedConvBN", "GradientScaler"),
        shows=(Component(),),
        frequency=Frequency.SOMETIMES,
        cause=_FLOAT_BESIDE_FLOAT64,
    ),
    Deviation(
        ids=("VJP-FD",),
        functions=("FusedConvBN", "GradientScaler"),
        shows=(Found(starting="slope "),),
        frequency=Frequency.SOMETIMES,
        cause=_FLOAT_BESIDE_FLOAT64,
    ),
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("Select",),
        shows=(Found(starting="second derivative "),),
        cause=_INDEX_IN_SECOND_DERIVATIVE,
    ),
    Deviation(
        ids=_PULLING_BACK,
        functions=("Select",),
        shows=(Raised("TypeError", starting="Only support integers, slices"),),
        frequency=Frequency.SOMETIMES,
        cause=_INDEX_IN_SECOND_DERIVATIVE,
    ),
)

OF_THE_DIALECT = (
    Deviation(
        ids=("MINDSPORE-FUNCTION-09/before",),
        shows=(Raised("RuntimeError", containing="Output index out of range of metadata"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="if an output before a differentiable one is marked, the pass ends with an internal error: "
            "Output index out of range of metadata",
            link=_FUNCTION,
            script="marked_before.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MINDSPORE-VJP-02",),
        shows=(Raised("RuntimeError", containing="Can not find top cell for backward"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the function from an earlier call finds no graph after a later call: Can not find top cell "
            "for backward",
            promise="**vjp_fn** (Function) - To calculate vector-jacobian-product. Its inputs are the vectors "
            "whose shape and type should be the same as `net_output` .",
            link=_VJP,
            script="two_products.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MINDSPORE-HOOK-06/bprop",),
        shows=(Found("output"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a forward hook of a cell with a bprop is not called: registering it does nothing, without an error",
            promise="The `hook_fn` can modify the forward outputs by returning new outputs.",
            link=_CELL,
            script="forward_hook_beside_bprop.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MINDSPORE-HOOK-02/bprop",),
        shows=(Found(ending=" as a hook"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a forward hook of a cell with a bprop is not checked: registering anything does nothing, "
            "without an error",
            promise="TypeError: If the `hook_fn` is not a function of python.",
            link=_CELL,
            script="forward_hook_beside_bprop.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MINDSPORE-FUNCTION-06/views",),
        shows=(Found(starting="gradients, position "),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a gradient that is an expanded view is summed as if it were contiguous, so that memory "
            "behind it is read: the gradient is silently wrong",
            promise="Compute the vector-jacobian-product of the given network.",
            link=f"{_VJP}; mindspore/ccsrc/pynative/backward/grad_utils.cc, AutoCastAndReduce",
            script="expanded_gradient.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MINDSPORE-CELL-04/compiled",),
        shows=(Raised("RuntimeError", starting="Fn gradient size should larger than next edges size"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a compiled cell whose bprop returns None for an input raises RuntimeError: Fn gradient size "
            "should larger than next edges size",
            link=_CELL,
            script="none_in_compiled_bprop.py",
            seen=_SEEN,
        ),
    ),
)

DEVIATIONS = (*OF_THE_DIALECT, *OF_THE_ENGINE, *OF_THE_CLASS, *OF_THE_KERNELS)
