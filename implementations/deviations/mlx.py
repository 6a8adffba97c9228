"""The known deviations of MLX: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import (
    WITHOUT_ELEMENTS,
    Cause,
    Component,
    Deviation,
    Died,
    Found,
    Frequency,
    Grade,
    Hung,
    Raised,
    Refused,
)

_DOCSTRING = "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core."
_USAGE = "https://ml-explore.github.io/mlx/build/html/usage/"
_EXP = "source: mlx/backend/cpu/simd/math.h, exp"
_RULES = (
    "However, when a function transformation is used (e.g. computing gradients using value_and_grad()) then the "
    "functions defined via custom_function.vjp(), custom_function.jvp() and custom_function.vmap() are used instead of "
    "the default transformation."
)
_PRODUCT = "Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals."
_SEEN = ("0.32.4",)

# Arrays are computed when their values are read, by native threads: this is where a test waits for them.
_EVALUATION = "mlx.py in as_numpy"

# The tests that compare values of all dtypes, and so see how exact the kernels are.
_VALUES = (
    "FWD-VALUE", "FWD-VALUE/sizes", "FWD-VALUE/specials", "FWD-EMPTY", "VJP-REF", "VJP-REF/sizes", "VJP-REF/specials",
    "VJP-REPEAT", "VJP-CHAIN", "VJP-CHAIN/instances",
)  # fmt: skip
# The tests that run Functions with arrays that may have no elements.
_RUNNING = (
    "FWD-VALUE", "FWD-EMPTY", "VJP-REF", "VJP-FD", "VJP-NONE", "VJP-UNUSED", "VJP-LINEAR", "VJP-FIT", "VJP-REPEAT",
    "VJP-FINITE", "VJP-CHAIN", "VJP-CHAIN/instances", "ENV-SAVED-HOOKS/checkpoint", "ENV-COMPILE",
    "FWD-PURE", "VJP-PURE",
)  # fmt: skip

_EXP_OF_DOUBLES = Cause(
    grade=Grade.DIFFERENCE,
    reason="mx.exp of float64 is only as exact as in float32, with relative errors of 1e-7; so are sin, cos and "
    "sigmoid, which no Function of the corpus shows; LLTM shows it only for negative numbers",
    link=_EXP,
    script="exp_of_doubles.py",
    seen=_SEEN,
)

_ARGMAX_OF_NOTHING = Cause(
    grade=Grade.DIFFERENCE,
    reason="mx.argmax refuses an array without elements, even along an axis that has some",
    link="source: mlx/ops.cpp, argmax",
    script="argmax_of_nothing.py",
    seen=_SEEN,
)

_NUMPY_UNDER_VMAP = Cause(
    grade=Grade.DIFFERENCE,
    reason="mx.vmap, even of a function with a vmap rule, and mx.compile trace custom functions with "
    "arrays that have no values, so a function or rule that computes with NumPy is refused",
    link=f"{_USAGE}compile.html#debugging",
    script="numpy_under_vmap.py",
    seen=_SEEN,
)

_OUTPUT_RETURNED_TWICE = Cause(
    grade=Grade.WRONG,
    reason="if a function returns one array twice, mx.vjp uses the first of its cotangents and drops the other",
    promise=_PRODUCT,
    link=f"{_DOCSTRING}vjp.html",
    script="output_returned_twice.py",
    seen=_SEEN,
)

_NONE_IN_RULE = Cause(
    grade=Grade.WRONG,
    reason="None in what a vjp rule returns is dropped without a word: the gradients behind it go to the arguments "
    "before them, and the last arguments get the cotangent as their gradient",
    promise=_RULES,
    link=f"{_DOCSTRING}custom_function.html",
    script="none_in_rule.py",
    seen=_SEEN,
)

DEVIATIONS = (
    Deviation(ids=("MLX-VJP-05/none",), shows=(Found("the other gradients"),), cause=_NONE_IN_RULE),
    Deviation(ids=("FN-03",), shows=(Found(starting="gradients, position "),), cause=_NONE_IN_RULE),
    Deviation(
        ids=("VMAP-07", "VMAP-07/numpy"),
        shows=(Found(starting="gradients", containing=", position "),),
        cause=_NONE_IN_RULE,
    ),
    Deviation(
        ids=(*_VALUES, "BATCH-VMAP/cotangents", "ENV-COMPILE"),
        functions=("Exp", "Sinh"),
        shows=(Component(),),
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=("VJP-FD",),
        functions=("Exp", "Sinh"),
        shows=(Found("slope of the drawn direction"),),
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("Exp", "Sinh"),
        shows=(Found(starting="second derivative "),),
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=(
            *_VALUES,
            "VJP-SAME-TENSOR",
            "VJP-MASK",
            "VJP-SUBSET",
            "VJP-UNUSED",
            "BATCH-VMAP/cotangents",
            "ENV-COMPILE",
        ),
        functions=("LLTM",),
        shows=(Component(),),
        frequency=Frequency.SOMETIMES,
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=("VJP-FD",),
        functions=("LLTM",),
        shows=(Found("slope of the drawn direction"),),
        frequency=Frequency.SOMETIMES,
        cause=_EXP_OF_DOUBLES,
    ),
    Deviation(
        ids=_RUNNING,
        functions=("GlobalMaxPool",),
        shows=(Raised("ValueError", starting="[argmax] Cannot argmax reduce zero size array"),),
        frequency=Frequency.SOMETIMES,
        cause=_ARGMAX_OF_NOTHING,
    ),
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("GlobalMaxPool",),
        shows=(Found(starting="second derivative "),),
        frequency=Frequency.SOMETIMES,
        cause=_ARGMAX_OF_NOTHING,
    ),
    Deviation(
        ids=("FWD-DTYPE",),
        functions=("Sort", "GlobalMaxPool"),
        shows=(Found("shape, dtype and device of the outputs"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="indices from mx.argsort and mx.argmax are uint32, as their documentation says",
            link=f"{_DOCSTRING}argsort.html",
            script="indices_are_uint32.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP",),
        functions=("GradientScaler",),
        shows=(Component("gradient of argument 0 (x)"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="mx.vmap calls a custom function again and drops its rule for mx.vjp, so the derivative of "
            "the batched function is that of its operations",
            promise=_RULES,
            link=f"{_DOCSTRING}custom_function.html",
            script="vmap_drops_the_vjp.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP",),
        functions=("MyCube",),
        shows=(Component("gradient of argument 0 (x)"),),
        frequency=Frequency.SOMETIMES,
        cause=Cause(
            grade=Grade.WRONG,
            reason="mx.vmap calls a custom function again and drops its rule for mx.vjp, so the derivative of "
            "the batched function is that of its operations; for a complex power that derivative lacks "
            "the conjugation",
            promise=_RULES,
            link=f"{_DOCSTRING}custom_function.html",
            script="vmap_drops_the_vjp.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP",),
        functions=("Select",),
        shows=(Died(starting="died: Floating point exception", call=WITHOUT_ELEMENTS, at=_EVALUATION),),
        frequency=Frequency.SOMETIMES,
        cause=Cause(
            grade=Grade.WRONG,
            reason="mx.vmap calls a custom function again and drops its rule for mx.vjp, so the derivative of "
            "the batched function is that of its operations; for an index that derivative divides by zero "
            "if the array has no elements, and the process dies",
            promise=_PRODUCT,
            link=f"{_DOCSTRING}vjp.html",
            script="empty_index.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP",),
        functions=("NumpyMul",),
        shows=(Component("gradient of argument 0 (x)"), Component("gradient of argument 1 (y)")),
        frequency=Frequency.SOMETIMES,
        cause=Cause(
            grade=Grade.WRONG,
            reason="mx.vmap calls a custom function again and drops its rule for mx.vjp, so the derivative of "
            "the batched function is that of its operations; for a product that derivative is "
            "uninitialized memory if an array has no elements",
            promise=_PRODUCT,
            link=f"{_DOCSTRING}vjp.html",
            script="empty_product.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP", "VJP-CHAIN"),
        functions=("LinearFunction", "LinearFunctionSetupContext", "NumpyMul"),
        shows=(Hung(call=WITHOUT_ELEMENTS, at=_EVALUATION),),
        frequency=Frequency.SOMETIMES,
        cause=Cause(
            grade=Grade.WRONG,
            reason="a sum over no elements does not always end: it reads flags of the array that were never set",
            promise="Sum reduce the array over the given axes.",
            link=f"{_DOCSTRING}sum.html; source: mlx/backend/common/reduce.cpp",
            script="endless_sum.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP/cotangents",),
        functions=("NumpyTake", "NumpySort", "ScipyConv2d"),
        shows=(Refused("ValueError", starting="[eval] Attempting to eval an array during "),),
        frequency=Frequency.ALWAYS,
        cause=_NUMPY_UNDER_VMAP,
    ),
    Deviation(
        ids=("BATCH-VMAP", "ENV-COMPILE"),
        functions=("NumpyTake", "NumpySort"),
        shows=(Raised("ValueError", starting="[eval] Attempting to eval an array during "),),
        cause=_NUMPY_UNDER_VMAP,
    ),
    Deviation(
        ids=("ENV-COMPILE",),
        functions=("ScipyConv2d",),
        shows=(Raised("ValueError", starting="[eval] Attempting to eval an array during "),),
        cause=_NUMPY_UNDER_VMAP,
    ),
    Deviation(ids=("ENG-04/repeated",), shows=(Found(starting="cotangents of steps "),), cause=_OUTPUT_RETURNED_TWICE),
    Deviation(
        ids=("FN-07/tuples",),
        shows=(
            Died(starting="died: Segmentation fault", call=r"^weights of the outputs: \[\],", at="mlx.py in _apply"),
        ),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a custom function that has a rule and returns an empty tuple causes a segmentation fault",
            promise="Instances are callables that behave identically to the wrapped function.",
            link=f"{_DOCSTRING}custom_function.html",
            script="no_outputs.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("FN-30",),
        shows=(Died(starting="ended without a word", call="^calls in a chain: "),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="mx.vjp walks the graph by recursion, and a chain of ten thousand calls overflows a thread's "
            "small stack",
            link="source: mlx/transforms.cpp, vjp",
            script="long_chain.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JVP-01/missing",),
        shows=(Found("forward mode of a Function without jvp"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="all rules are optional: without a jvp rule the tangent is that of the operations in the function",
            link=f"{_DOCSTRING}custom_function.html",
            script="default_jvp.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MLX-CALL-01/constants",),
        shows=(Found("an output that is not an array"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a custom function that has a rule refuses outputs that are not arrays, unlike the wrapped function",
            promise="Instances are callables that behave identically to the wrapped function.",
            link=f"{_DOCSTRING}custom_function.html",
            script="constants_among_outputs.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MLX-CALL-03/without-rules",),
        shows=(Found("gradient of what is captured"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a custom function without a rule is the wrapped function, and what it captures is differentiated",
            promise="All custom_function instances behave as pure functions. Namely, any variables captured will "
            "be treated as constants and no gradients will be computed with respect to the captured "
            "arrays.",
            link=f"{_DOCSTRING}custom_function.html",
            script="captured_without_rules.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MLX-COMP-01/gradient-of-batch",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="mx.vmap calls a custom function again and drops its rule for mx.vjp, so the derivative of "
            "the batched function is that of its operations",
            promise="Any of the MLX function transformations can be composed in any order to any depth.",
            link=f"{_USAGE}function_transforms.html",
            script="vmap_drops_the_vjp.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MLX-VJP-08/repeated",),
        shows=(Found("gradient, one array returned twice,"),),
        cause=_OUTPUT_RETURNED_TWICE,
    ),
    Deviation(
        ids=("MLX-VJP-08/stopped",),
        shows=(Found("gradient, the first output from mx.stop_gradient,"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="an output from mx.stop_gradient takes no cotangent: the next output gets it instead, and so on",
            promise=_PRODUCT,
            link=f"{_DOCSTRING}vjp.html",
            script="stopped_output.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MLX-CPLX-01/powers",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the gradient of a complex power lacks the conjugation that the gradients of other operations have",
            promise=_PRODUCT,
            link=f"{_DOCSTRING}vjp.html; source: mlx/primitives.cpp, Power::vjp",
            script="complex_powers.py",
            seen=_SEEN,
        ),
    ),
)
