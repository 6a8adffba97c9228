"""What is known not to hold of MLX: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_DOCSTRING = "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core."
_USAGE = "https://ml-explore.github.io/mlx/build/html/usage/"
_SEEN = "seen on 0.32.4"

_OF_EXP = "mx.exp of float64 is as exact as in float32: relative errors of 1e-7"
_OF_EMPTY = "mx.argmax refuses an array without elements, even along an axis that has some"
_OF_VMAP = (
    "the derivative of a batched custom function is that of the operations that it is made of: mx.vmap calls the "
    "function anew and drops its rule for mx.vjp"
)
_EXP = "source: mlx/backend/cpu/simd/math.h, exp"
_RULES = (
    "However, when a function transformation is used (e.g. computing gradients using value_and_grad()) then the "
    "functions defined via custom_function.vjp(), custom_function.jvp() and custom_function.vmap() are used instead of "
    "the default transformation."
)

_PRODUCT = "Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals."

DEVIATIONS = (
    Deviation(
        id="FWD-VALUE FWD-EMPTY VJP-REF VJP-REPEAT VJP-CHAIN VJP-CHAIN/instances BATCH-VMAP/cotangents ENV-COMPILE",
        function="Exp Sinh",
        what="* at *",
        reason=_OF_EXP,
        link=_EXP,
        versions=_SEEN,
        script="exp_of_doubles.py",
    ),
    Deviation(
        id="VJP-FD",
        function="Exp Sinh",
        what="slope of the drawn direction",
        reason=_OF_EXP,
        link=_EXP,
        versions=_SEEN,
        script="exp_of_doubles.py",
    ),
    Deviation(
        id="DBL-CORRECT",
        function="Exp Sinh",
        what="second derivative *",
        reason=_OF_EXP,
        link=_EXP,
        versions=_SEEN,
        script="exp_of_doubles.py",
    ),
    Deviation(
        id="FWD-VALUE FWD-EMPTY VJP-REF VJP-REPEAT VJP-CHAIN VJP-CHAIN/instances VJP-SAME-TENSOR VJP-MASK VJP-SUBSET "
        "VJP-UNUSED BATCH-VMAP/cotangents ENV-COMPILE",
        function="LLTM",
        what="* at *",
        reason=f"{_OF_EXP}; LLTM takes it of negative numbers alone",
        link=_EXP,
        versions=_SEEN,
        script="exp_of_doubles.py",
        sometimes=True,
    ),
    Deviation(
        id="VJP-FD",
        function="LLTM",
        what="slope of the drawn direction",
        reason=f"{_OF_EXP}; LLTM takes it of negative numbers alone",
        link=_EXP,
        versions=_SEEN,
        script="exp_of_doubles.py",
        sometimes=True,
    ),
    Deviation(
        id="FWD-VALUE FWD-EMPTY VJP-REF VJP-FD VJP-NONE VJP-UNUSED VJP-LINEAR VJP-FIT VJP-REPEAT VJP-FINITE VJP-CHAIN "
        "VJP-CHAIN/instances ENV-SAVED-HOOKS/checkpoint ENV-COMPILE",
        function="GlobalMaxPool",
        what="what came of the call: an exception, ValueError: [argmax] Cannot argmax reduce zero size array*",
        reason=_OF_EMPTY,
        link="source: mlx/ops.cpp, argmax",
        versions=_SEEN,
        script="argmax_of_nothing.py",
        sometimes=True,
    ),
    Deviation(
        id="DBL-CORRECT",
        function="GlobalMaxPool",
        what="second derivative *",
        reason=_OF_EMPTY,
        link="source: mlx/ops.cpp, argmax",
        versions=_SEEN,
        script="argmax_of_nothing.py",
        sometimes=True,
    ),
    Deviation(
        id="FWD-DTYPE",
        function="Sort GlobalMaxPool",
        what="shape, dtype and device of the outputs",
        reason="indices from mx.argsort and mx.argmax are uint32, as their documentation says",
        link=f"{_DOCSTRING}argsort.html",
        versions=_SEEN,
        script="indices_are_uint32.py",
    ),
    Deviation(
        id="BATCH-VMAP",
        function="GradientScaler",
        what="gradient of argument 0 (x) at *",
        reason=_OF_VMAP,
        link=f"{_DOCSTRING}custom_function.html",
        versions=_SEEN,
        promise=_RULES,
        script="vmap_drops_the_vjp.py",
    ),
    Deviation(
        id="BATCH-VMAP",
        function="MyCube",
        what="gradient of argument 0 (x) at *",
        reason=f"{_OF_VMAP}; the derivative of a complex power that comes instead lacks its conjugation",
        link=f"{_DOCSTRING}custom_function.html",
        versions=_SEEN,
        promise=_RULES,
        script="vmap_drops_the_vjp.py",
        sometimes=True,
    ),
    Deviation(
        id="BATCH-VMAP",
        function="Select",
        what="the process *",
        reason=f"{_OF_VMAP}; the derivative of an index that comes instead dies of a division by zero where the array "
        "has no elements",
        link=f"{_DOCSTRING}vjp.html",
        versions=_SEEN,
        promise=_PRODUCT,
        script="empty_index.py",
        sometimes=True,
    ),
    Deviation(
        id="BATCH-VMAP",
        function="NumpyMul",
        what="gradient of argument * at *",
        reason=f"{_OF_VMAP}; the derivative of a product that comes instead is memory that was never set, where an "
        "array has no elements",
        link=f"{_DOCSTRING}vjp.html",
        versions=_SEEN,
        promise=_PRODUCT,
        script="empty_product.py",
        sometimes=True,
    ),
    Deviation(
        id="BATCH-VMAP VJP-CHAIN",
        function="NumpyMul ScipyConv2d",
        what="did not finish within the time limit *",
        reason="a sum over no elements does not always end: flags of the array are read that were never set",
        link="source: mlx/backend/common/reduce.cpp",
        versions=_SEEN,
        script="endless_sum.py",
        sometimes=True,
        without_elements=True,
    ),
    Deviation(
        id="BATCH-VMAP/cotangents",
        function="NumpyTake NumpySort ScipyConv2d",
        what="refused in every example: ValueError: [eval] Attempting to eval an array during *",
        reason="a backward that computes with NumPy is refused under mx.vmap, which traces it with arrays that have no "
        "values",
        link=f"{_USAGE}compile.html#debugging",
        versions=_SEEN,
        script="numpy_under_vmap.py",
        always=True,
    ),
    Deviation(
        id="BATCH-VMAP ENV-COMPILE",
        function="NumpyTake NumpySort",
        what="what came of the call: an exception, ValueError: [eval] Attempting to eval an array during *",
        reason="a custom function that computes with NumPy is refused under mx.vmap, even with a vmap rule, and under "
        "mx.compile: both trace it with arrays that have no values",
        link=f"{_USAGE}compile.html#debugging",
        versions=_SEEN,
        script="numpy_under_vmap.py",
    ),
    Deviation(
        id="ENV-COMPILE",
        function="ScipyConv2d",
        what="what came of the call: an exception, ValueError: [eval] Attempting to eval an array during *",
        reason="a custom function that computes with NumPy is refused under mx.compile, which traces it with arrays "
        "that have no values",
        link=f"{_USAGE}compile.html#debugging",
        versions=_SEEN,
        script="numpy_under_vmap.py",
    ),
    Deviation(
        id="ENG-04/repeated",
        what="cotangents of steps *",
        reason="where a function returns one array twice, mx.vjp uses the first of its cotangents and drops the other",
        link=f"{_DOCSTRING}vjp.html",
        versions=_SEEN,
        promise=_PRODUCT,
        script="output_returned_twice.py",
    ),
    Deviation(
        id="FN-07/tuples",
        what="the process *",
        reason="a custom function that has a rule and returns an empty tuple dies of a segmentation fault",
        link=f"{_DOCSTRING}custom_function.html",
        versions=_SEEN,
        promise="Instances are callables that behave identically to the wrapped function.",
        script="no_outputs.py",
    ),
    Deviation(
        id="FN-30",
        what="the process *",
        reason="mx.vjp walks the graph by recursion, and a chain of ten thousand calls exceeds a thread's small stack",
        link="source: mlx/transforms.cpp, vjp",
        versions=_SEEN,
        script="long_chain.py",
    ),
    Deviation(
        id="JVP-01/missing",
        what="forward mode of a Function without jvp",
        reason="all rules are optional: without a jvp rule the tangent is that of the operations in the function",
        link=f"{_DOCSTRING}custom_function.html",
        versions=_SEEN,
        script="default_jvp.py",
    ),
    Deviation(
        id="MLX-CALL-01/constants",
        what="an output that is no array",
        reason="a custom function that has a rule refuses outputs that are no arrays, unlike the wrapped function",
        link=f"{_DOCSTRING}custom_function.html",
        versions=_SEEN,
        promise="Instances are callables that behave identically to the wrapped function.",
        script="constants_among_outputs.py",
    ),
    Deviation(
        id="MLX-CALL-03/without-rules",
        what="gradient of what is captured",
        reason="a custom function that has no rule yet is the wrapped function, and what it captures is differentiated",
        link=f"{_DOCSTRING}custom_function.html",
        versions=_SEEN,
        promise="All custom_function instances behave as pure functions. Namely, any variables captured will be "
        "treated as constants and no gradients will be computed with respect to the captured arrays.",
        script="captured_without_rules.py",
    ),
    Deviation(
        id="MLX-COMP-01/gradient-of-batch",
        what="gradient",
        reason=_OF_VMAP,
        link=f"{_USAGE}function_transforms.html",
        versions=_SEEN,
        promise="Any of the MLX function transformations can be composed in any order to any depth.",
        script="vmap_drops_the_vjp.py",
    ),
    Deviation(
        id="MLX-VJP-08/repeated",
        what="gradient, one array returned twice,",
        reason="where a function returns one array twice, mx.vjp uses the first of its cotangents and drops the other",
        link=f"{_DOCSTRING}vjp.html",
        versions=_SEEN,
        promise=_PRODUCT,
        script="output_returned_twice.py",
    ),
    Deviation(
        id="MLX-VJP-08/stopped",
        what="gradient, the first output from mx.stop_gradient,",
        reason="an output that comes from mx.stop_gradient takes no cotangent: the next output gets it, and so on",
        link=f"{_DOCSTRING}vjp.html",
        versions=_SEEN,
        promise="The cotangents should be the same in number, shape, and type as the outputs of fun.",
        script="stopped_output.py",
    ),
    Deviation(
        id="MLX-CPLX-01/powers",
        what="gradient",
        reason="the gradient of a complex power lacks the conjugation that those of other operations have",
        link="source: mlx/primitives.cpp, Power::vjp",
        versions=_SEEN,
        script="complex_powers.py",
    ),
)
