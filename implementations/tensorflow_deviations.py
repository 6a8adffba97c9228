"""What is known not to hold of TensorFlow: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_API = "https://www.tensorflow.org/api_docs/python/tf/"
_DETERMINED = (
    "A function `h(x)` which returns the same value as `f(x)[0]` and whose gradient (as calculated by `tf.gradients`) "
    "is determined by `f(x)[1]`."
)
_SEEN = "seen on 2.21.0"

DEVIATIONS = (
    Deviation(
        id="ENV-COMPILE",
        function="NumpyTake NumpySort ScipyConv2d",
        what="what came of the call: an exception, NotImplementedError: *",
        reason="tf.function traces with symbolic tensors, of which NumPy sees no values: NotImplementedError; NumPy "
        "has to be called through tf.numpy_function there",
        link="https://www.tensorflow.org/guide/function",
        versions=_SEEN,
        script="numpy_under_function.py",
    ),
    Deviation(
        id="TENSORFLOW-GRAD-07",
        what="gradient",
        reason="run eagerly, what is given by keyword is not among the inputs: a rule that returns its gradient is a "
        "ValueError, and one that does not silently leaves it without one",
        link="https://github.com/tensorflow/tensorflow/issues/77559",
        versions=_SEEN,
        promise="The custom_gradient decorator currently supports keywords arguments only when eager execution is "
        "enabled.",
        script="keyword_argument.py",
    ),
    Deviation(
        id="TENSORFLOW-GRAD-07/all",
        what="gradients, position *",
        reason="run eagerly with keywords alone, the custom gradient is silently ignored, and the function "
        "differentiated automatically",
        link="https://github.com/tensorflow/tensorflow/issues/65839",
        versions=_SEEN,
        promise=_DETERMINED,
        script="keywords_alone.py",
    ),
    Deviation(
        id="TENSORFLOW-GRAD-12/unwatched",
        what="whether the captured tensor gets a gradient",
        reason="run eagerly with arguments that are not watched, the custom gradient is silently ignored, and a "
        "captured tensor gets the gradient that automatic differentiation gives; under tf.function, or if an argument "
        "is watched, it gets none",
        link=f"{_API}custom_gradient",
        versions=_SEEN,
        promise=_DETERMINED,
        script="captured_beside_a_constant.py",
    ),
    Deviation(
        id="TENSORFLOW-NEST-03",
        what="the printed example",
        reason="the printed example of nesting returns two gradients for the one input of the inner function: "
        "ValueError",
        link=f"{_API}custom_gradient",
        versions=_SEEN,
        promise="Instead, wrap nested `@tf.custom_gradients` in another function:",
        script="printed_nesting.py",
    ),
    Deviation(
        id="TENSORFLOW-FWD-01",
        what="tangents, position *",
        reason="run eagerly, ForwardAccumulator silently ignores the custom gradient, and gives the tangent of the "
        "forward computation; under tf.function it gives that of the custom gradient",
        link=f"{_API}custom_gradient",
        versions=_SEEN,
        promise="The function `grad_grad_fn` will be calculating the first order gradient of `grad_fn` with respect to "
        "`dy`, which is used to generate forward-mode gradient graphs from backward-mode gradient graphs, but is not "
        "the same as the second order gradient of `op` with respect to `x`.",
        script="eager_forward_mode.py",
    ),
    Deviation(
        id="TENSORFLOW-TAPE-06/left",
        what="stop_recording of a tape that is not recording",
        reason="a tape whose context has been left raises ValueError; only one that was never entered raises "
        "RuntimeError",
        link=f"{_API}GradientTape#stop_recording",
        versions=_SEEN,
        promise="RuntimeError: if the tape is not currently recording.",
        script="stop_recording_after_context.py",
    ),
    Deviation(
        id="TENSORFLOW-TAPE-10",
        what="the gradient of a variable",
        reason="a variable as the target is accepted: its gradient by itself is one",
        link=f"{_API}GradientTape#gradient",
        versions=_SEEN,
        promise="ValueError: If the target is a variable or if unconnected gradients is called with an unknown value.",
        script="variable_as_target.py",
    ),
    Deviation(
        id="TENSORFLOW-TAPE-11",
        what="gradient within the context",
        reason="gradient within the context gives a result: a tape that is not persistent is left, a persistent one "
        "warns",
        link=f"{_API}GradientTape#gradient",
        versions=_SEEN,
        promise="RuntimeError: If called inside the context of the tape.",
        script="gradient_within_context.py",
    ),
    Deviation(
        id="TENSORFLOW-MAP-02",
        what="gradient",
        reason="a tape around vectorized_map silently ignores the custom gradient of the mapped function, and gives "
        "the derivative of its forward computation; around map_fn it is used",
        link="tensorflow/python/ops/parallel_for/pfor.py, _convert_identity_n",
        versions=_SEEN,
        promise=_DETERMINED,
        script="vectorized_custom_gradient.py",
    ),
    Deviation(
        id="TENSORFLOW-MAP-03",
        what="shape of the products of empty elements",
        reason="the product of an empty element and a matrix that all elements share has a wrong number of columns",
        link="tensorflow/python/ops/parallel_for/pfor.py, _convert_matmul",
        versions=_SEEN,
        promise="Each tensor packs the results of applying fn to tensors unpacked from elems along the first "
        "dimension, from first to last.",
        script="vectorized_empty_product.py",
    ),
    Deviation(
        id="TENSORFLOW-REG-01/inside",
        what="gradients before, within and after the context, position 1",
        reason="a tape within the tf.function ignores gradient_override_map and takes the default gradient; "
        "tf.gradients, and a tape outside, use the override",
        link=f"{_API}Graph#gradient_override_map",
        versions=_SEEN,
        promise="This context manager can be used to override the gradient function that will be used for ops within "
        "the scope of the context.",
        script="override_below_tape.py",
    ),
    Deviation(
        id="TENSORFLOW-FUNCTION-01",
        what="how a compiled product with an empty inner dimension ends",
        reason="the graph optimizer fuses the product and the sum for oneDNN, which throws an exception that nothing "
        "catches, and the process aborts; the adapter turns this optimization off (remapping)",
        link="https://www.tensorflow.org/api_docs/python/tf/config/optimizer/set_experimental_options",
        versions="seen on 2.21.0, x86-64 with AVX-512",
        promise="executes a TensorFlow graph (`tf.Graph`) created by trace-compiling the TensorFlow operations in "
        "`func`.",
        script="compiled_empty_product.py",
    ),
)
