"""What MLX says of its custom functions, and of the transformations that apply their rules."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import documented, observed

_API = "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core."
_USAGE = "https://ml-explore.github.io/mlx/build/html/usage/"
_TESTS = "https://github.com/ml-explore/mlx/blob/main/python/tests/"
_SOURCE = "https://github.com/ml-explore/mlx/blob/main/python/src/transforms.cpp"

_RULES = (
    "when a function transformation is used (e.g. computing gradients using value_and_grad()) then the functions "
    "defined via custom_function.vjp(), custom_function.jvp() and custom_function.vmap() are used instead of the "
    "default transformation"
)
_COMPOSED = "Any of the MLX function transformations can be composed in any order to any depth."

CLAUSES = {
    "MLX-CALL-01": documented(
        "A custom function gives what the function that it wraps gives, for any tree of arguments, by position or by "
        "keyword, whatever rules it has.",
        f"{_API}custom_function.html",
        "Instances are callables that behave identically to the wrapped function.",
        "a custom function loses its keyword arguments",
    ),
    "MLX-CALL-02": documented(
        "Where a rule is not defined, the transformation differentiates or batches the wrapped function itself.",
        f"{_API}custom_function.html",
        "Note, all custom transformations are optional. Undefined transformations fall back to the default behaviour.",
        "a custom function without a rule for mx.vjp gets one that gives zeros",
    ),
    "MLX-CALL-03": documented(
        "An array that a custom function captures is a constant: its gradient is zero, and no rule runs for it.",
        f"{_API}custom_function.html",
        "All custom_function instances behave as pure functions. Namely, any variables captured will be treated "
        "as constants and no gradients will be computed with respect to the captured arrays.",
        "a custom function is differentiated with respect to what it captures",
    ),
    "MLX-VJP-01": documented(
        "A vjp rule is used instead of the default derivative, by mx.vjp, mx.grad and mx.value_and_grad.",
        f"{_API}custom_function.html",
        _RULES,
        "mx.custom_function forgets its vjp rule",
    ),
    "MLX-VJP-02": documented(
        "A vjp rule gets its primals as they were given by position: a single argument as itself, several as a tuple.",
        f"{_API}custom_function.vjp.html",
        "primals: A pytree that contains all the positional arguments to the function. It could be a single "
        "array, a tuple of arrays or a full blown tuple of dicts of arrays etc.",
        "a vjp rule gets its primals in reverse",
    ),
    "MLX-VJP-03": documented(
        "A vjp rule gets cotangents in the structure of the output.",
        f"{_API}custom_function.vjp.html",
        "cotangents: A pytree that matches the structure of the output but contains the cotangents (usually the "
        "gradients of the loss function with respect to the outputs).",
        "a vjp rule gets a cotangent of ones for each output",
    ),
    "MLX-VJP-04": documented(
        "A vjp rule gets the outputs of the function, in their structure.",
        f"{_API}custom_function.vjp.html",
        "outputs: The outputs of the function to be used to avoid recomputing them for the gradient computation.",
        "a vjp rule gets its cotangents where the outputs should be",
    ),
    "MLX-VJP-05": documented(
        "What a vjp rule returns in the structure of its primals are their gradients, each at its place.",
        f"{_API}custom_function.vjp.html",
        "The vjp function should return the same pytree structure as the primals but containing the "
        "corresponding computed cotangents.",
        "the gradients that a vjp rule returns are given to the arguments in reverse",
    ),
    "MLX-VJP-06": observed(
        "The cotangent of an output that the loss does not use is zero, in the output's shape and dtype.",
        "https://github.com/ml-explore/mlx/blob/main/mlx/transforms.cpp, vjp",
        "a vjp rule gets ones for the outputs that are not used",
    ),
    "MLX-VJP-07": documented(
        "Gradients of any order are taken through the rule: a rule made of differentiable operations, and the outputs "
        "that it gets, are differentiated again.",
        f"{_USAGE}function_transforms.html",
        "Using grad() on the output of grad() is always ok. You keep getting higher order derivatives.",
        "what a vjp rule returns is cut off from its primals",
    ),
    "MLX-VJP-08": documented(
        "mx.vjp gives the outputs, and for each primal the sum over all outputs of cotangent times derivative.",
        f"{_API}vjp.html",
        "Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals.",
        "mx.vjp leaves the last output's cotangent out",
    ),
    "MLX-VJP-09": observed(
        "A vjp rule runs once for each call on the way from a differentiated input to a used output, and else not.",
        "https://github.com/ml-explore/mlx/blob/main/mlx/transforms.cpp, vjp",
        "a vjp rule runs twice",
    ),
    "MLX-JVP-01": documented(
        "A jvp rule is used instead of the default derivative by mx.jvp, and by nothing else.",
        f"{_API}custom_function.html",
        _RULES,
        "mx.custom_function forgets its jvp rule",
    ),
    "MLX-JVP-02": documented(
        "A jvp rule gets tangents in the structure of its primals, None for an input that does not move.",
        f"{_API}custom_function.jvp.html",
        "tangents: A pytree that matches the structure of the inputs but instead contains the gradients wrt to "
        "each input. Tangents could be None if some inputs don't have an associated gradient.",
        "a jvp rule gets the primals' values for tangents",
    ),
    "MLX-JVP-03": documented(
        "What a jvp rule returns in the structure of the outputs are their tangents, each at its place.",
        f"{_API}custom_function.jvp.html",
        "The jvp function should return the same pytree structure as the outputs of the function but containing "
        "the tangents.",
        "the tangents that a jvp rule returns are given to the outputs in reverse",
    ),
    "MLX-VMAP-01": documented(
        "A vmap rule gets the complete inputs and the axis of each, None for an input that is not batched.",
        f"{_API}custom_function.vmap.html",
        "axes: A pytree that matches the structure of the inputs but instead contains the vectorization axis for "
        "each input or None if an input is not vectorized.",
        "a vmap rule gets 0 as the axis of every input",
    ),
    "MLX-VMAP-02": documented(
        "The axes that a vmap rule returns say where its outputs are batched; one with the axis None is not.",
        f"{_API}custom_function.vmap.html",
        "It should also return a pytree with the vectorization axes of each output. If some outputs are no "
        "longer vectorized, then their vectorization axis should be None.",
        "the axes that a vmap rule returns are taken for 0",
    ),
    "MLX-COMP-01": documented(
        "The rule holds under any composition of transformations: of gradients, batches, compilation and checkpoints.",
        f"{_USAGE}function_transforms.html",
        _COMPOSED,
        "a compiled function has no gradient",
    ),
    "MLX-GRAD-01": documented(
        "mx.grad gives the gradients of the arguments that argnums and argnames name: of one position by itself, of "
        "several in a tuple, of keywords in a dict that comes second.",
        f"{_API}grad.html",
        "argnums (int or list(int), optional) - Specify the index (or indices) of the positional arguments of "
        "fun to compute the gradient with respect to. ... argnames (str or list(str), optional) - Specify keyword "
        "arguments of fun to compute gradients with respect to.",
        "mx.grad leaves argnums out and takes the first argument",
    ),
    "MLX-GRAD-02": documented(
        "The gradient of an argument that is a tree of arrays is a tree of the same structure.",
        f"{_USAGE}function_transforms.html",
        "Notice the tree structure of the parameters is preserved in the gradients.",
        "mx.grad gives a flat list of gradients for a tree",
    ),
    "MLX-GRAD-03": documented(
        "mx.value_and_grad returns all that the function returns: a scalar, or a tuple of a scalar and anything else.",
        f"{_API}value_and_grad.html",
        "The function passed to value_and_grad() should return either a scalar loss or a tuple in which the "
        "first element is a scalar loss and the remaining elements can be anything.",
        "mx.value_and_grad returns the loss alone",
    ),
    "MLX-GRAD-04": observed(
        "mx.grad raises ValueError for a result that is not a scalar array, and for an argnums that is negative, "
        "repeated or beyond the arguments.",
        f"{_TESTS}test_autograd.py, test_grad",
        "mx.grad takes argnums modulo the number of arguments",
    ),
    "MLX-STOP-01": documented(
        "mx.stop_gradient gives its input unchanged, and no gradient flows through it.",
        f"{_API}stop_gradient.html",
        "The operation is the identity but it prevents gradients from flowing through the array.",
        "mx.stop_gradient lets gradients through",
    ),
    "MLX-DEP-01": documented(
        "mx.depends gives its inputs unchanged, and gradients flow through it to the inputs and not to the "
        "dependencies.",
        f"{_API}depends.html",
        "The outputs are identical to inputs but with dependencies on dependencies.",
        "mx.depends adds its dependencies to its inputs",
    ),
    "MLX-CKPT-01": documented(
        "A checkpointed function gives the same results and gradients, and is called again for a gradient.",
        f"{_API}checkpoint.html",
        "A callable that recomputes intermediate states during gradient computation.",
        "mx.checkpoint returns the function itself",
    ),
    "MLX-COMPILE-01": documented(
        "A compiled function gives what the function gives, and so does its gradient.",
        f"{_API}compile.html",
        "Returns a compiled function which produces the same output as fun.",
        "a compiled function gives what it gave first",
    ),
    "MLX-COMPILE-02": documented(
        "A function is compiled once for inputs of the same number, shapes and dtypes, and again for others.",
        f"{_USAGE}compile.html",
        "However, MLX will cache compiled functions, so calling a compiled function multiple times will not "
        "initiate a new compilation.",
        "mx.compile traces the function at every call",
    ),
    "MLX-COMPILE-03": documented(
        "What a compiled function captures is a constant of the first call, unless it is among its inputs.",
        f"{_USAGE}compile.html",
        "Compiled functions will also treat any inputs not in the parameter list as constants.",
        "mx.compile leaves its inputs out",
    ),
    "MLX-EVAL-01": documented(
        "A function may evaluate its arrays, and decide by them, while it is differentiated.",
        f"{_USAGE}lazy_evaluation.html",
        "The above example works and can even be used with gradient transformations.",
        "mx.eval raises for arrays within a gradient",
    ),
    "MLX-EVAL-02": documented(
        "Arrays cannot be evaluated within a compiled or batched function: ValueError.",
        f"{_USAGE}compile.html#debugging",
        "This means you can't evaluate arrays (for example to print their contents) inside compiled functions.",
        "mx.compile calls the function without tracing it",
    ),
    "MLX-CPLX-01": observed(
        "The gradient of a holomorphic function is the cotangent times the conjugate of the derivative.",
        f"{_TESTS}test_autograd.py, test_complex_vjps",
        "mx.vjp conjugates its cotangents",
    ),
}
