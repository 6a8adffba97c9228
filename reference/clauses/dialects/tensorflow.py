"""Clauses on TensorFlow: custom gradients, variables, nesting, tapes, forward mode, batching, wrappers."""

from autograd_conformance.reference.clauses.definitions import documented, observed

_API = "https://www.tensorflow.org/api_docs/python/tf/"
_CUSTOM = f"{_API}custom_gradient"
_TAPE = f"{_API}GradientTape"
_FORWARD = f"{_API}autodiff/ForwardAccumulator"
_MAP = f"{_API}vectorized_map"
_RECOMPUTE = f"{_API}recompute_grad"
_SOURCE = "tensorflow/python/ops/custom_gradient.py"
_TESTS = "tensorflow/python/ops/gradients_test.py"

_DETERMINED = (
    "A function `h(x)` which returns the same value as `f(x)[0]` and whose gradient (as calculated by `tf.gradients`) "
    "is determined by `f(x)[1]`."
)

_GRAD = {
    "TENSORFLOW-GRAD-01": documented(
        "A function with a custom gradient has the values that it returns and the gradients that grad_fn returns.",
        f"{_CUSTOM}, Returns",
        _DETERMINED,
        "the custom gradient is scaled by two",
    ),
    "TENSORFLOW-GRAD-02": documented(
        "grad_fn gets one cotangent for each tensor of the flattened outputs, which keep their structure.",
        f"{_CUSTOM}, Args",
        "`grad_ys` is a sequence of `Tensor`s the same size as (flattened) `y`",
        "grad_fn gets the cotangents in the opposite order",
    ),
    "TENSORFLOW-GRAD-03": documented(
        "grad_fn returns one gradient for each tensor of the flattened inputs, in any structure.",
        f"{_CUSTOM}, Args",
        "returns a list of `Tensor`s the same size as (flattened) `x`",
        "the gradients of a structure are assigned in the opposite order",
    ),
    "TENSORFLOW-GRAD-04": observed(
        "Another number of gradients than of inputs is a ValueError, that names both if raised eagerly.",
        f"{_SOURCE}, _eager_mode_decorator",
        "gradients beyond the inputs are dropped",
    ),
    "TENSORFLOW-GRAD-05": observed(
        "The cotangent of an output that is not used is zeros of the output's shape and dtype.",
        f"{_TESTS}, CustomGradientTest",
        "the cotangents of unused outputs are ones",
    ),
    "TENSORFLOW-GRAD-06": observed(
        "None from grad_fn comes back as None, or as zeros if unconnected gradients are zeros, and does not change the "
        "other gradients.",
        f"{_SOURCE}, grad_pass_through",
        "None from grad_fn becomes ones",
    ),
    "TENSORFLOW-GRAD-07": documented(
        "What is given by keyword gets the gradient that grad_fn returns for it, like what is given by position.",
        f"{_CUSTOM}, Returns; ValueError of {_SOURCE}, _graph_mode_decorator",
        "The custom_gradient decorator currently supports keywords arguments only when eager execution is enabled.",
        "keywords raise an error",
    ),
    "TENSORFLOW-GRAD-08": documented(
        "Under tf.function keyword arguments of a function with a custom gradient are a ValueError.",
        f"{_SOURCE}, _graph_mode_decorator",
        "The custom_gradient decorator currently supports keywords arguments only when eager execution is enabled.",
        "keywords are dropped under tf.function",
    ),
    "TENSORFLOW-GRAD-09": observed(
        "An argument that is not a tensor reaches the function as it is if run eagerly, as a tensor under tf.function, "
        "and counts as an input.",
        f"{_SOURCE}, custom_gradient",
        "arguments that are not tensors become tensors, also if run eagerly",
    ),
    "TENSORFLOW-GRAD-10": observed(
        "An argument that cannot become a tensor, such as None, is a ValueError.",
        f"{_SOURCE}, custom_gradient",
        "None is passed as zero",
    ),
    "TENSORFLOW-GRAD-11": observed(
        "A decorated method gets its instance, which is not among the inputs.",
        f"{_SOURCE}, Bind",
        "methods get the class instead of the instance",
    ),
    "TENSORFLOW-GRAD-12": documented(
        "A tensor that the function captures, instead of getting it as an argument, receives no gradient.",
        f"{_CUSTOM}, Returns",
        _DETERMINED,
        "functions are differentiated automatically, with all that they use",
    ),
    "TENSORFLOW-GRAD-13": observed(
        "grad_fn runs once in each backward pass that reaches it, and never otherwise.",
        f"{_SOURCE}, custom_gradient",
        "grad_fn runs twice",
    ),
    "TENSORFLOW-GRAD-14": documented(
        "Under a tape an operation without registered gradient in a tf.function is a LookupError, also inside a "
        "function with a custom gradient; with tf.stop_gradient the custom gradient is used.",
        _CUSTOM,
        "If an op is used in `tf.function` without registered gradient, a `LookupError` will be raised.",
        "operations without gradient count as constants",
    ),
    "TENSORFLOW-GRAD-15": observed(
        "An exception in grad_fn reaches the caller of gradient as it is.",
        f"{_SOURCE}, custom_gradient",
        "an exception in grad_fn gives a gradient None",
    ),
    "TENSORFLOW-GRAD-16": documented(
        "What a tf.numpy_function computes has the custom gradient, also under tf.function, in branches and in loops.",
        f"{_API}numpy_function; {_CUSTOM}, Returns",
        _DETERMINED,
        "a custom gradient is replaced by the cotangent",
    ),
    "TENSORFLOW-GRAD-17": observed(
        "tf.IndexedSlices that grad_fn returns come back as they are, and are added to other gradients.",
        f"{_SOURCE}, custom_gradient",
        "the last row of a sparse gradient is lost",
    ),
}

_VAR = {
    "TENSORFLOW-VAR-01": documented(
        "grad_fn gets the variables that the function reads as the keyword variables, and the second of the two that "
        "it returns are their gradients.",
        f"{_CUSTOM}, Args",
        "`grad_fn` should have signature `g(*grad_ys, variables=None)`, where `variables` is a list of the "
        "`Variable`s, and return a 2-tuple `(grad_xs, grad_vars)`",
        "the gradients of variables are reversed",
    ),
    "TENSORFLOW-VAR-02": observed(
        "A function that reads variables and whose grad_fn takes no keyword variables is a TypeError.",
        f"{_SOURCE}, custom_gradient",
        "grad_fn without variables= is called without them",
    ),
    "TENSORFLOW-VAR-03": documented(
        "Another number of variable gradients than of variables is a ValueError.",
        f"{_CUSTOM}, Args",
        "(that is, grad_vars has one Tensor per variable in variables)",
        "missing gradients of variables are None",
    ),
    "TENSORFLOW-VAR-04": documented(
        "A variable that is an argument is not among the variables; its gradient is among those of the inputs.",
        f"{_CUSTOM}, Args",
        "If `f` uses `Variable`s (that are not part of the inputs)",
        "variables among the arguments count as read, too",
    ),
    "TENSORFLOW-VAR-05": documented(
        "A grad_fn with a default for variables keeps that default if the function reads none that can be trained.",
        _CUSTOM,
        "default value of `variables` is set to `None` when no variables are used in the forward function",
        "grad_fn gets an empty list where no variables are read",
    ),
}

_NEST = {
    "TENSORFLOW-NEST-01": observed(
        "The second derivative of a function with a custom gradient is the derivative of what its grad_fn computes.",
        f"{_TESTS}, CustomGradientTest",
        "gradients of gradients are stopped",
    ),
    "TENSORFLOW-NEST-02": documented(
        "A function with a custom gradient that grad_fn calls on the inputs determines the second derivative.",
        _CUSTOM,
        "Instead, wrap nested `@tf.custom_gradients` in another function",
        "the inner custom gradient is scaled by two",
    ),
    "TENSORFLOW-NEST-03": documented(
        "The printed example of nesting runs: the inner function of the input alone, whose rule returns a second-order "
        "gradient and one for the cotangent.",
        _CUSTOM,
        "return second_order_for_x(...), gradient_wrt_dy(...)",
        unplanted="listed as a deviation of every release that was run",
    ),
    "TENSORFLOW-NEST-04": documented(
        "The rule of a grad_fn that is itself decorated is its derivative by the cotangent, and none by the inputs.",
        _CUSTOM,
        "The function `grad_grad_fn` will be calculating the first order gradient of `grad_fn` with respect to `dy`",
        "the inner custom gradient is scaled by two",
    ),
}

_FWD = {
    "TENSORFLOW-FWD-01": documented(
        "The JVP of a function with a custom gradient is that of its grad_fn, transposed.",
        _CUSTOM,
        "which is used to generate forward-mode gradient graphs from backward-mode gradient graphs",
        "tangents are scaled by two",
    ),
    "TENSORFLOW-FWD-02": documented(
        "jvp may be called repeatedly, within the context and after it, and gives the same result.",
        _FORWARD,
        "`acc.jvp` calls can be repeated as long as `acc` is accessible, whether the context manager is active or not.",
        "the second call of jvp gives None",
    ),
    "TENSORFLOW-FWD-03": documented(
        "The JVP of what does not depend on the primal is None, or zeros if unconnected gradients are zeros.",
        f"{_FORWARD}#jvp",
        "alters the value which will be returned if no JVP was computed for `primals`",
        "unconnected JVPs are zeros",
    ),
    "TENSORFLOW-FWD-04": documented(
        "An accumulator around a tape gives Hessian-vector products: the JVP of what grad_fn computes.",
        _FORWARD,
        "memory-efficient forward-over-backward computation of Hessian-vector products",
        "gradients of a tape have no tangent",
    ),
}

_TAPES = {
    "TENSORFLOW-TAPE-01": documented(
        "A tape that is not persistent gives one set of gradients, and RuntimeError after it; a persistent one gives "
        "the same gradients again.",
        f"{_TAPE}#gradient",
        "RuntimeError: If called on a used, non-persistent tape.",
        "a used tape gives None",
    ),
    "TENSORFLOW-TAPE-02": documented(
        "What is not watched, or not connected, gets None; with unconnected gradients zero it gets zeros of its shape.",
        f"{_API}UnconnectedGradients",
        "`ZERO`: Indicates that a zero tensor will be returned in the shape of x.",
        "unconnected gradients are always None",
    ),
    "TENSORFLOW-TAPE-03": documented(
        "The gradients have the structure of the sources.",
        f"{_TAPE}#gradient",
        "Returned structure is the same as the structure of `sources`.",
        "gradients come in a list",
    ),
    "TENSORFLOW-TAPE-04": documented(
        "output_gradients are the cotangents of the targets, which count as ones without them.",
        f"{_TAPE}#gradient",
        "a list of gradients, one for each differentiable element of target",
        "output_gradients are ignored",
    ),
    "TENSORFLOW-TAPE-05": documented(
        "What is computed within stop_recording is not on the tape, and what follows is.",
        f"{_TAPE}#stop_recording",
        "Operations executed while this context manager is active will not be recorded on the tape.",
        "stop_recording does nothing",
    ),
    "TENSORFLOW-TAPE-06": documented(
        "stop_recording of a tape that is not recording is a RuntimeError.",
        f"{_TAPE}#stop_recording",
        "RuntimeError: if the tape is not currently recording.",
        "stop_recording of a tape that never recorded does nothing",
    ),
    "TENSORFLOW-TAPE-07": documented(
        "reset clears a tape: only what follows is differentiated.",
        f"{_TAPE}#reset",
        "Clears all information stored in this tape.",
        "reset does nothing",
    ),
    "TENSORFLOW-TAPE-08": documented(
        "Watching anything but a tensor is a ValueError, also within a list of tensors.",
        f"{_TAPE}#watch",
        "ValueError: if it encounters something that is not a tensor.",
        "an object that is not a tensor is not watched",
    ),
    "TENSORFLOW-TAPE-09": documented(
        "The target None is a TypeError, and an unknown value for unconnected gradients a ValueError.",
        f"{_TAPE}#gradient",
        "TypeError: If the target is a None object.",
        "the gradient of None is None",
    ),
    "TENSORFLOW-TAPE-10": documented(
        "A variable as the target is a ValueError.",
        f"{_TAPE}#gradient",
        "ValueError: If the target is a variable or if unconnected gradients is called with an unknown value.",
        unplanted="listed as a deviation of every release that was run",
    ),
    "TENSORFLOW-TAPE-11": documented(
        "gradient within the context of its tape is a RuntimeError.",
        f"{_TAPE}#gradient",
        "RuntimeError: If called inside the context of the tape.",
        unplanted="listed as a deviation of every release that was run",
    ),
    "TENSORFLOW-TAPE-12": documented(
        "A tape watches the variables that can be trained and are read, others if watch is called with them, and none "
        "by itself with watch_accessed_variables=False.",
        _TAPE,
        "Trainable variables (created by `tf.Variable` or `tf.compat.v1.get_variable`, where `trainable=True` is "
        "default in both cases) are automatically watched.",
        "watch_accessed_variables is ignored",
    ),
    "TENSORFLOW-TAPE-13": documented(
        "watched_variables are those that were read, in the order of their construction.",
        f"{_TAPE}#watched_variables",
        "Returns variables watched by this tape in order of construction.",
        "watched_variables come in the opposite order",
    ),
    "TENSORFLOW-TAPE-14": documented(
        "What grad_fn keeps is released by the first gradient, or together with a tape that is persistent.",
        _TAPE,
        "By default, the resources held by a GradientTape are released as soon as GradientTape.gradient() method "
        "is called.",
        "a tape keeps what it recorded",
    ),
    "TENSORFLOW-TAPE-15": documented(
        "The Jacobian of a function with a custom gradient is made of the rows that grad_fn gives, vectorized or not.",
        f"{_TAPE}#jacobian",
        "This option can be used to disable vectorization in such cases.",
        "a vectorized Jacobian is transposed",
    ),
    "TENSORFLOW-TAPE-16": documented(
        "The batch Jacobian is the stack of the Jacobians of each example, by the custom gradient.",
        f"{_TAPE}#batch_jacobian",
        "`tf.stack([self.jacobian(y[i], x[i]) for i in range(x.shape[0])])`",
        "the batch Jacobian takes the examples in the opposite order",
    ),
}

_MAPS = {
    "TENSORFLOW-MAP-01": documented(
        "vectorized_map of a function that differentiates gives the gradients of each element, by the custom gradient.",
        _MAP,
        "Computing per-example gradients",
        "vectorized_map takes the elements in the opposite order",
    ),
    "TENSORFLOW-MAP-02": documented(
        "Differentiated from outside, a mapped function with a custom gradient has its custom gradient.",
        f"{_CUSTOM}, Returns",
        _DETERMINED,
        "map_fn gives the gradient of the identity",
    ),
    "TENSORFLOW-MAP-03": documented(
        "What vectorized_map returns has the results of each element, stacked, also where an element has no entries.",
        f"{_MAP}, Returns",
        "Each tensor packs the results of applying fn to tensors unpacked from elems along the first dimension, "
        "from first to last.",
        unplanted="listed as a deviation of every release that was run",
    ),
}

_WRAPPERS = {
    "TENSORFLOW-RECOMPUTE-01": documented(
        "A function under recompute_grad runs once forward, and once more in each backward pass.",
        f"{_RECOMPUTE}, Returns",
        "which recomputes `f` on the backwards pass of a gradient call",
        "nothing is recomputed",
    ),
    "TENSORFLOW-RECOMPUTE-02": documented(
        "Values and gradients are those of the function itself: for inputs, and for variables that it reads.",
        _RECOMPUTE,
        "During back-propagation the `recompute_grad` custom gradient (`tf.custom_gradient`) recomputes the "
        "function under a localized Tape object.",
        "the gradients of variables are zeros",
    ),
    "TENSORFLOW-RECOMPUTE-03": documented(
        "__wrapped__ is the function itself.",
        _RECOMPUTE,
        "Either keep a reference of `f` , or use `g.__wrapped__` for accessing these variables and methods.",
        "__wrapped__ is another function",
    ),
    "TENSORFLOW-RECOMPUTE-04": observed(
        "Forward mode through recompute_grad is a NotImplementedError, and so is a second derivative, unless it is "
        "right.",
        f"{_SOURCE}, recompute_grad",
        "forward mode goes through recomputed functions",
    ),
    "TENSORFLOW-PASS-01": documented(
        "grad_pass_through gives the function's values and the gradients of the identity; variables get none.",
        f"{_API}grad_pass_through, Returns",
        "A function `h(x)` which returns the same values as `f(x)` and whose gradients are the same as those of "
        "an identity function.",
        "grad_pass_through keeps the function's gradients",
    ),
    "TENSORFLOW-STOP-01": documented(
        "stop_gradient gives its input's values, and no gradient passes through it.",
        f"{_API}stop_gradient",
        "Stops gradient computation.",
        "stop_gradient is the identity",
    ),
    "TENSORFLOW-REG-01": documented(
        "Within gradient_override_map, and only there, the registered function gives the gradients of an operation.",
        f"{_API}Graph#gradient_override_map",
        "This context manager can be used to override the gradient function that will be used for ops within the "
        "scope of the context.",
        "gradient_override_map does nothing",
    ),
    "TENSORFLOW-REG-02": documented(
        "An operation type that is not a string is a TypeError, for the decorator and in the map.",
        f"{_API}RegisterGradient",
        "TypeError: If `op_type` is not string.",
        "RegisterGradient takes any name",
    ),
    "TENSORFLOW-REG-03": observed(
        "A second registration for an operation type is a KeyError, and an override by a type that is not registered a "
        "LookupError.",
        "tensorflow/python/framework/registry.py, Registry.register",
        "a second registration is ignored",
    ),
}

_FUNCTION = {
    "TENSORFLOW-FUNCTION-01": documented(
        "A tf.function computes what its operations do, also a product with an empty inner dimension, plus a vector.",
        f"{_API}function",
        "executes a TensorFlow graph (`tf.Graph`) created by trace-compiling the TensorFlow operations in `func`.",
        unplanted="listed as a deviation of every release that was run",
    ),
}

CLAUSES = {**_GRAD, **_VAR, **_NEST, **_FWD, **_TAPES, **_MAPS, **_WRAPPERS, **_FUNCTION}
