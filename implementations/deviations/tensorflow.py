"""The known deviations of TensorFlow: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade, Raised

_API = "https://www.tensorflow.org/api_docs/python/tf/"
_DETERMINED = (
    "A function `h(x)` which returns the same value as `f(x)[0]` and whose gradient (as calculated by `tf.gradients`) "
    "is determined by `f(x)[1]`."
)
_SEEN = ("2.21.0",)

DEVIATIONS = (
    Deviation(
        ids=("ENV-COMPILE",),
        functions=("NumpyTake", "NumpySort", "ScipyConv2d"),
        shows=(Raised("NotImplementedError"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="tf.function traces with symbolic tensors, whose values NumPy cannot see: "
            "NotImplementedError; there NumPy has to be called through tf.numpy_function",
            link="https://www.tensorflow.org/guide/function",
            script="numpy_under_function.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-GRAD-07",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="run eagerly, keyword arguments are not among the inputs: a rule that returns their gradient "
            "raises ValueError, and with any other rule they silently get none",
            promise="The custom_gradient decorator currently supports keywords arguments only when eager "
            "execution is enabled.",
            link="https://github.com/tensorflow/tensorflow/issues/77559",
            script="keyword_argument.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-GRAD-07/all",),
        shows=(Found(starting="gradients, position "),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="run eagerly with keyword arguments only, the custom gradient is silently ignored, and the "
            "function is differentiated automatically",
            promise=_DETERMINED,
            link="https://github.com/tensorflow/tensorflow/issues/65839",
            script="keywords_alone.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-GRAD-12/unwatched",),
        shows=(Found("whether the captured tensor gets a gradient"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="run eagerly with arguments that are not watched, the custom gradient is silently ignored, "
            "and a captured tensor gets the gradient of automatic differentiation; under tf.function, or "
            "if an argument is watched, it gets none",
            promise=_DETERMINED,
            link=f"{_API}custom_gradient",
            script="captured_beside_a_constant.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-NEST-03",),
        shows=(Found("the printed example"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="the printed example of nesting returns two gradients for the only input of the inner "
            "function: ValueError",
            promise="Instead, wrap nested `@tf.custom_gradients` in another function:",
            link=f"{_API}custom_gradient",
            script="printed_nesting.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-FWD-01",),
        shows=(Found(starting="tangents, position "),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="run eagerly, ForwardAccumulator silently ignores the custom gradient, and gives the tangent "
            "of the forward computation; under tf.function it gives that of the custom gradient",
            promise="The function `grad_grad_fn` will be calculating the first order gradient of `grad_fn` with "
            "respect to `dy`, which is used to generate forward-mode gradient graphs from backward-mode "
            "gradient graphs, but is not the same as the second order gradient of `op` with respect to "
            "`x`.",
            link=f"{_API}custom_gradient",
            script="eager_forward_mode.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-TAPE-06/left",),
        shows=(Found("stop_recording of a tape that is not recording"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a tape whose context has ended raises ValueError; only a tape that was never entered raises "
            "RuntimeError",
            promise="RuntimeError: if the tape is not currently recording.",
            link=f"{_API}GradientTape#stop_recording",
            script="stop_recording_after_context.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-TAPE-10",),
        shows=(Found("the gradient of a variable"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="a variable is accepted as the target: its gradient with respect to itself is one",
            promise="ValueError: If the target is a variable or if unconnected gradients is called with an "
            "unknown value.",
            link=f"{_API}GradientTape#gradient",
            script="variable_as_target.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-TAPE-11",),
        shows=(Found("gradient within the context"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="gradient within the context gives a result: a tape that is not persistent stops recording, a "
            "persistent one warns",
            promise="RuntimeError: If called inside the context of the tape.",
            link=f"{_API}GradientTape#gradient",
            script="gradient_within_context.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-MAP-02",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a tape around vectorized_map silently ignores the custom gradient of the mapped function, "
            "and gives the derivative of its forward computation; with map_fn the custom gradient is used",
            promise=_DETERMINED,
            link="tensorflow/python/ops/parallel_for/pfor.py, _convert_identity_n",
            script="vectorized_custom_gradient.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-MAP-03",),
        shows=(Found("shape of the products of empty elements"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the product of an empty element and a matrix that all elements share has the wrong number of "
            "columns",
            promise="Each tensor packs the results of applying fn to tensors unpacked from elems along the first "
            "dimension, from first to last.",
            link="tensorflow/python/ops/parallel_for/pfor.py, _convert_matmul",
            script="vectorized_empty_product.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-REG-01/inside",),
        shows=(Found("gradients before, within and after the context, position 1"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a tape within the tf.function ignores gradient_override_map and takes the default gradient; "
            "tf.gradients, and a tape outside, use the override",
            promise="This context manager can be used to override the gradient function that will be used for ops "
            "within the scope of the context.",
            link=f"{_API}Graph#gradient_override_map",
            script="override_below_tape.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("TENSORFLOW-FUNCTION-01",),
        shows=(Found("how a compiled product with an empty inner dimension ends"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="on x86-64 with AVX-512 the graph optimizer fuses the product and the sum for oneDNN, which "
            "throws an exception that nothing catches, and the process aborts; the adapter turns this "
            "optimization off (remapping)",
            promise="executes a TensorFlow graph (`tf.Graph`) created by trace-compiling the TensorFlow "
            "operations in `func`.",
            link="https://www.tensorflow.org/api_docs/python/tf/config/optimizer/set_experimental_options",
            script="compiled_empty_product.py",
            seen=_SEEN,
        ),
    ),
)
