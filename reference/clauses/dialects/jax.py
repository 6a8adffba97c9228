"""What JAX's documentation and its own tests say of functions with custom rules: derivatives, batching, transposes."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import documented, observed

_API = "https://docs.jax.dev/en/latest/_autosummary/"
_VJP = f"{_API}jax.custom_vjp.html"
_DEFVJP = f"{_API}jax.custom_vjp.defvjp.html"
_JVP = f"{_API}jax.custom_jvp.html"
_DEFJVP = f"{_API}jax.custom_jvp.defjvp.html"
_DEFJVPS = f"{_API}jax.custom_jvp.defjvps.html"
_GRADIENT = f"{_API}jax.custom_gradient.html"
_GRAD = f"{_API}jax.grad.html"
_CONVERT = f"{_API}jax.closure_convert.html"
_VMAP = f"{_API}jax.custom_batching.custom_vmap.html"
_SEQUENTIAL = f"{_API}jax.custom_batching.sequential_vmap.html"
_CHECKPOINT = f"{_API}jax.checkpoint.html"
_LINEAR = "jax.custom_derivatives.linear_call, docstring"
_RULES = "https://docs.jax.dev/en/latest/301/custom-jvp-vjp.html"
_UPDATE = "https://docs.jax.dev/en/latest/jep/4008-custom-vjp-update.html"
_THREADS = "https://docs.jax.dev/en/latest/concurrency.html"
_TESTS = "tests/custom_api_test.py"

# What JAX itself breaks needs no other fault.
_BROKEN = "JAX itself shows the fault"


REVERSE = {
    "JAX-VJP-01": documented(
        "Reverse mode takes the cotangents of the arguments from bwd, one each and in order, instead of "
        "differentiating the function.",
        _VJP,
        "a custom user-supplied VJP rule function is used instead of tracing into and performing automatic "
        "differentiation of the underlying function's implementation",
        "the function itself is differentiated, without its rule",
    ),
    "JAX-VJP-02": documented(
        "A call that is not differentiated, transformed by jit or vmap or not, runs the function and neither fwd nor "
        "bwd.",
        f"{_RULES}: Use jax.custom_vjp",
        "If function is evaluated, or transformed with `jit`, `vmap`, or other non-differentiation transformations, "
        "then only `f` is called.",
        "fwd runs in place of the function in every call",
    ),
    "JAX-VJP-03": documented(
        "jax.vjp runs fwd once and not bwd, and each call of the function that it returns runs bwd once, on the same "
        "residuals.",
        f"{_RULES}: Use jax.custom_vjp",
        '"residual" data of type `c` to be stored for use by the backward pass',
        "fwd is run again by each pullback",
    ),
    "JAX-VJP-04": documented(
        "bwd gets the residuals as fwd returned them: any pytree, values and structure alike.",
        _DEFVJP,
        'the second element represents any "residual" values to store from the forward pass for use on the backward '
        "pass by the function ``bwd``. Input arguments and elements of the output pair may be arrays or nested "
        "tuples/lists/dicts thereof.",
        "bwd gets the residuals as a flat list",
    ),
    "JAX-VJP-05": documented(
        "A bwd whose output has not one entry for each argument raises TypeError.",
        _DEFVJP,
        "The output of ``bwd`` must be a tuple of length equal to the number of arguments of the primal function",
        "surplus cotangents are dropped and missing ones count as zero",
    ),
    "JAX-VJP-06": observed(
        "A cotangent from bwd of another shape than its argument raises ValueError.",
        f"{_TESTS}: test_vjp_bwd_returns_wrong_shape",
        "a cotangent of another shape is taken as it is",
    ),
    "JAX-VJP-07": documented(
        "None from bwd stands for a cotangent of zeros, for a complete argument, whatever its structure.",
        f"{_RULES}: Gradient clipping",
        "use None to indicate zero cotangents for lo and hi",
        "None from bwd gives its argument a cotangent of ones",
    ),
    "JAX-VJP-08": documented(
        "Arguments and outputs may be pytrees: bwd gets the cotangents in the structure of the output, and those that "
        "it returns have the structure of the arguments.",
        f"{_RULES}: Working with list / tuple / dict containers",
        "any pytrees are permissible, so long as their structures are consistent according to the type constraints",
        "bwd gets the cotangents of a container in the opposite order",
    ),
    "JAX-VJP-09": documented(
        "Keyword arguments and defaults are positional arguments to fwd, and bwd has an entry for each of them.",
        f"{_RULES}: Use jax.custom_vjp",
        "Calling a `jax.custom_vjp` function with keyword arguments, or writing a `jax.custom_vjp` function definition "
        "with default arguments, are both allowed so long as they can be unambiguously mapped to positional arguments",
        "keyword arguments follow the positional ones in the order in which they are written",
    ),
    "JAX-VJP-10": documented(
        "Forward mode of a function with a VJP rule raises TypeError: jvp, jacfwd and linearize.",
        f"{_RULES}: custom_vjp functions can't be forward-differentiated",
        "**Forward-mode autodiff cannot be used on the** `jax.custom_vjp` **function** and will raise an error",
        "forward mode differentiates the function without its rule",
    ),
    "JAX-VJP-11": documented(
        "The arguments that nondiff_argnums or nondiff_argnames list come first in bwd, in their order, wherever they "
        "stand in the function, and where they are in fwd.",
        f"{_RULES}: jax.custom_vjp with nondiff_argnums",
        "the non-differentiable arguments are passed as the first arguments to the `_bwd` rule, no matter where they "
        "appear in the signature of the original function. The signature of the `_fwd` rule remains unchanged",
        "the non-differentiable arguments reach bwd in the opposite order",
    ),
    "JAX-VJP-12": documented(
        "A tracer in an argument that nondiff_argnums lists raises UnexpectedTracerError.",
        f"{_RULES}: jax.custom_vjp with nondiff_argnums",
        "If JAX detects that an argument indicated by `nondiff_argnums` contains a JAX Tracer, then an error is "
        "raised.",
        "tracers pass as non-differentiable arguments",
    ),
    "JAX-VJP-13": documented(
        "Arrays of integers need no nondiff_argnums: they are arguments like others, with None from bwd, and get a "
        "cotangent of dtype float0.",
        f"{_UPDATE}",
        "In the `bwd` rule, we need to produce values for them, but we can just produce `None` values to indicate "
        "there's no corresponding gradient value.",
        "the cotangent of an integer argument is of its own dtype",
    ),
    "JAX-VJP-14": documented(
        "With symbolic_zeros fwd gets for each leaf its value, and whether it is involved in differentiation.",
        _DEFVJP,
        "``perturbed`` is a boolean. The ``perturbed`` bit indicates whether the argument is involved in "
        "differentiation",
        "perturbed is True for every argument",
    ),
    "JAX-VJP-15": documented(
        "With symbolic_zeros bwd gets a symbolic zero for each output that is not used, and arrays for the others.",
        _DEFVJP,
        "``bwd`` will be passed objects representing static symbolic zeros in its cotangent argument in correspondence "
        "with unperturbed values",
        "symbolic zeros are made arrays of zeros for bwd",
    ),
    "JAX-VJP-16": documented(
        "Without symbolic_zeros bwd gets arrays of zeros for the outputs that are not used, in their shape and dtype.",
        _DEFVJP,
        "otherwise, only standard JAX types (e.g. array-likes) are passed",
        "bwd gets the zeros of an unused output as float32 scalars",
    ),
    "JAX-VJP-17": documented(
        "The gradient has the dtype of the argument, whatever bwd returned.",
        _GRAD,
        "If ``argnums`` is an integer then the gradient has the same shape and type as the positional argument "
        "indicated by that integer.",
        unplanted=_BROKEN,
    ),
    "JAX-VJP-18": documented(
        "Reverse mode of reverse mode, and forward mode of it, differentiate fwd and bwd.",
        f"{_RULES}: custom_vjp functions can't be forward-differentiated",
        "after one reverse-mode pass the remaining computation is built from your `fwd` and `bwd` rules, which are "
        "themselves differentiable",
        "what bwd returns is constant in second derivatives",
    ),
    "JAX-VJP-19": documented(
        "jax.hessian and forward-over-reverse products work on functions with a VJP rule whose fwd calls the function "
        "itself, as those of the documentation do.",
        f"{_RULES}: custom_vjp functions can't be forward-differentiated",
        "Reverse mode *composes* fine: `jax.grad`-of-`grad`, `jax.hessian`, and forward-over-reverse Hessian-vector "
        "products all work on functions containing `custom_vjp`",
        unplanted=_BROKEN,
    ),
    "JAX-VJP-20": documented(
        "Gradients by the rule are the same under jit, vmap, checkpoint, scan and any composition of jit and vmap.",
        _VJP,
        "Set up a JAX-transformable function for a custom VJP rule definition.",
        "under vmap the rule's cotangents are reversed along the batch",
    ),
    "JAX-VJP-21": documented(
        "A function with a rule may close over tracers of transformations that do not differentiate; differentiating "
        "with respect to what it closes over raises an error.",
        _CONVERT,
        "values stored away in ``g``'s closure will not be visible to the custom derivative rules, and attempts at AD "
        "involving these values will fail",
        "the function is differentiated together with what it closes over",
    ),
    "JAX-VJP-22": documented(
        "jax.checkpoint recomputes fwd in the backward pass, and gives the rule's gradients.",
        _CHECKPOINT,
        "these linearization points are recomputed from the function's saved inputs",
        "jax.checkpoint does nothing",
    ),
    "JAX-VJP-23": documented(
        "With optimize_remat the gradients are the same, under jax.checkpoint too; together with symbolic_zeros it "
        "raises an error.",
        _DEFVJP,
        "an experimental flag to enable an automatic optimization when this function is used under :func:`jax.remat`",
        "optimize_remat drops the residuals that bwd needs",
    ),
    "JAX-VJP-24": documented(
        "Several threads may differentiate functions with rules at the same time.",
        _THREADS,
        "Clients may call JAX APIs (e.g., :func:`~jax.jit` or :func:`~jax.grad`) concurrently from separate Python "
        "threads.",
        "the threads share the residuals of the last fwd",
    ),
    "JAX-VJP-25": observed(
        "Calling a function for which no rule was defined raises AttributeError: with custom_vjp, custom_jvp and "
        "custom_vmap alike.",
        f"{_TESTS}: test_missing_jvp_rule_error_message, test_missing_vjp_rule_error",
        "a function without a rule is called as if it had no decorator",
    ),
    "JAX-VJP-26": observed(
        "A fwd that does not return a pair raises TypeError.",
        f"{_TESTS}: test_fwd_rule_primal_out_type_doesnt_match_primal_error_message",
        "a value from fwd that is not a pair counts as both output and residuals",
    ),
    "JAX-VJP-27": documented(
        "An output under stop_gradient contributes nothing to a gradient: its cotangent in bwd is zero, and a symbolic "
        "zero with symbolic_zeros.",
        f"{_API}jax.lax.stop_gradient.html",
        "``stop_gradient`` prevents the flow of gradients during forward or reverse-mode automatic differentiation",
        "stop_gradient does nothing",
    ),
}

FORWARD = {
    "JAX-JVP-01": documented(
        "Forward mode takes outputs and tangents from the rule, which gets the primals and the tangents of all "
        "arguments.",
        _DEFJVP,
        "the ``jvp`` function should accept two arguments, where the first is a tuple of primal inputs and the second "
        "is a tuple of tangent inputs",
        "the function itself is differentiated, without its rule",
    ),
    "JAX-JVP-02": documented(
        "Reverse mode transposes what the rule computes from the tangents.",
        f"{_RULES}: Use jax.custom_jvp",
        "JAX will automatically transpose the linear computation on tangent values from our custom JVP rule",
        "reverse mode differentiates the function without its rule",
    ),
    "JAX-JVP-03": documented(
        "Reverse mode raises an error where the rule's tangents are not linear in those that it got.",
        f"{_RULES}: Use jax.custom_jvp",
        "For automatic transposition to work, the JVP rule's output tangents must be linear as a function of the input "
        "tangents. Otherwise a transposition error is raised.",
        "exp in a rule is transposed as if it were the identity",
    ),
    "JAX-JVP-04": documented(
        "defjvps takes a function of each argument's tangent, the output and the primals, sums what they give, and "
        "counts None as zero.",
        f"{_RULES}: Use jax.custom_jvp",
        "lets us define a JVP for each argument separately, and the results are computed separately then summed",
        "defjvps counts the last argument's tangent alone",
    ),
    "JAX-JVP-05": documented(
        "defjvps together with nondiff_argnums raises TypeError.",
        _DEFJVPS,
        "This convenience wrapper cannot be used together with ``nondiff_argnums``.",
        "defjvps ignores nondiff_argnums",
    ),
    "JAX-JVP-06": documented(
        "The rule runs in each order of a higher derivative if and only if it calls the function for its primal "
        "output.",
        f"{_RULES}: Use jax.custom_jvp",
        "each application of a differentiation transform will use the custom JVP rule if and only if the rule calls "
        "the original `f` to compute the primal outputs",
        "within a rule the function is called without its rule",
    ),
    "JAX-JVP-07": documented(
        "The arguments that nondiff_argnums or nondiff_argnames list come first in the rule, in their order, before "
        "primals and tangents of the others.",
        f"{_RULES}: jax.custom_jvp with nondiff_argnums",
        "no matter where in the argument list these parameters appear, they're placed at the *start* of the signature "
        "of the corresponding JVP rule",
        "the non-differentiable arguments reach the rule in the opposite order",
    ),
    "JAX-JVP-08": documented(
        "Without symbolic_zeros the rule gets arrays of zeros for the tangents of what does not move, with it symbolic "
        "zeros.",
        _DEFJVP,
        "whether the rule should be passed objects representing static symbolic zeros in its tangent argument in "
        "correspondence with unperturbed values; otherwise, only standard JAX types (e.g. array-likes) are passed",
        "symbolic zeros are made arrays of zeros for the rule",
    ),
    "JAX-JVP-09": documented(
        "Keyword arguments and defaults are positional arguments to the rule.",
        f"{_RULES}: Use jax.custom_jvp",
        "Calling a `jax.custom_jvp` function with keyword arguments, or writing a `jax.custom_jvp` function definition "
        "with default arguments, are both allowed so long as they can be unambiguously mapped to positional arguments",
        "keyword arguments follow the positional ones in the order in which they are written",
    ),
    "JAX-JVP-10": documented(
        "Arguments and outputs may be pytrees: tangents come and go in their structure.",
        _DEFJVP,
        "Elements of the input and output tuples may be arrays or any nested tuples/lists/dicts thereof.",
        "the tangents of a container reach the rule in the opposite order",
    ),
    "JAX-JVP-11": observed(
        "A rule that does not return a pair, or returns tangents of another structure, shape or dtype than its "
        "outputs, raises TypeError.",
        f"{_TESTS}: test_jvp_rule_doesnt_return_pair_error_message, test_primal_tangent_out_disagree",
        "the tangents are not compared with the outputs",
    ),
    "JAX-JVP-12": documented(
        "Function and rule may use Python control flow on the values of the primals.",
        f"{_RULES}: Use jax.custom_jvp",
        "You can use Python control flow with `jax.custom_jvp`",
        "the rule is traced without values",
    ),
    "JAX-JVP-13": documented(
        "A call that is not differentiated, transformed by jit or vmap or not, does not run the rule.",
        f"{_RULES}: Use jax.custom_jvp",
        "When you're not performing differentiation, the function `f` is called just as if it weren't decorated by "
        "`jax.custom_jvp`",
        "the rule runs in every call",
    ),
    "JAX-JVP-14": observed(
        "Derivatives by the rule are the same under jit and vmap, and in jacfwd, jacrev and linearize.",
        f"{_TESTS}: test_vmap, test_jit",
        "jacfwd is negative",
    ),
}

GRADIENT = {
    "JAX-GRADIENT-01": documented(
        "custom_gradient calls the value with the arguments, and takes the cotangents, one an argument, from the "
        "function that is returned with it.",
        _GRADIENT,
        "returns both the primal value (representing the output of the mathematical function to be differentiated) and "
        "the VJP (gradient) function",
        "the value is differentiated, without its gradient function",
    ),
    "JAX-GRADIENT-02": documented(
        "The gradient function may close over intermediate values, under vmap and jit too.",
        _GRADIENT,
        "can close over intermediate values computed when evaluating the function to be differentiated",
        "every call has the intermediate values of the first one",
    ),
    "JAX-GRADIENT-03": documented(
        "Python control flow on a cotangent raises an error.",
        _GRADIENT,
        "it cannot perform Python control flow which depends on the values of the closed-over intermediate values or "
        "its cotangent arguments; if the function includes such control flow, an error is raised",
        "control flow on cotangents follows the value one",
    ),
    "JAX-GRADIENT-04": documented(
        "Python control flow on an intermediate value that the gradient function closes over raises an error.",
        _GRADIENT,
        "it cannot perform Python control flow which depends on the values of the closed-over intermediate values or "
        "its cotangent arguments; if the function includes such control flow, an error is raised",
        unplanted=_BROKEN,
    ),
    "JAX-GRADIENT-05": documented(
        "What custom_gradient returns accepts the arguments of the function, by keyword too.",
        _GRADIENT,
        "A Python callable that accepts the same arguments as ``fun``",
        unplanted=_BROKEN,
    ),
}

LINEAR = {
    "JAX-LINEAR-01": documented(
        "linear_call gives the linear function's value, and its tangents in forward mode.",
        _LINEAR,
        "The call result, i.e. ``fun(residual_args, linear_args)``.",
        "linear_call negates the value",
    ),
    "JAX-LINEAR-02": documented(
        "Transposing a linear_call an odd number of times calls its transpose, and an even number of times itself.",
        _LINEAR,
        "the transpose of a ``linear_call`` primitive is another ``linear_call`` to ``fun_transpose``, with ``fun`` as "
        "its custom transposition",
        "linear_call ignores the transpose that it is given",
    ),
    "JAX-LINEAR-03": observed(
        "A transpose whose output has another structure than the linear inputs raises TypeError.",
        f"{_TESTS}: test_linear_call_transpose_pytree_mismatch",
        "the structure of the transpose's output is not looked at",
    ),
    "JAX-CLOSURE-01": documented(
        "closure_convert gives a function and the values of its closure that may be differentiated, which a rule can "
        "then give cotangents.",
        _CONVERT,
        "a list of values hoisted from the closure",
        "closure_convert leaves the values in the closure",
    ),
}

BATCHING = {
    "JAX-VMAP-01": documented(
        "Under vmap a custom_vmap function is its rule, which gets the size of the axis, which arguments are batched, "
        "and the arguments with their batch in front.",
        f"{_API}jax.custom_batching.custom_vmap.def_vmap.html",
        "(1) an integer ``axis_size`` as its first argument, (2) a pytree of booleans with the same structure as the "
        "inputs to the function, specifying whether each argument is batched, and (3) the batched arguments",
        "the rule gets True for every argument, as if it were batched",
    ),
    "JAX-VMAP-02": documented(
        "Without vmap a custom_vmap function is the function, under jit too.",
        _VMAP,
        "will mostly (see below for caveats) have the same behavior as the underlying function, except when batched "
        "using :py:func:`jax.vmap`",
        "the rule is called without a batch",
    ),
    "JAX-VMAP-03": documented(
        "An output that the rule says is not batched is the same for every element of the batch.",
        f"{_API}jax.custom_batching.custom_vmap.def_vmap.html",
        "a pytree of booleans with the same structure as the output, specifying whether each output element is batched",
        "an output that is not batched is repeated along one axis more",
    ),
    "JAX-VMAP-04": documented(
        "Reverse mode of a custom_vmap function raises an error, and a custom_vjp around it has both rules.",
        _VMAP,
        "``custom_vmap`` functions do not support reverse-mode autodiff. To customize both vmap and reverse-mode "
        "autodiff, combine ``custom_vmap`` with :py:class:`jax.custom_vjp`.",
        "reverse mode differentiates the function without its batching rule",
    ),
    "JAX-VMAP-05": observed(
        "A rule whose output, or whose flags, have another structure than the function's output raises ValueError.",
        "tests/custom_api_test.py: test_rule_multi_output, test_rule_output_vs_batching_output_mismatch",
        "the flags of a rule are not compared with its output",
    ),
    "JAX-VMAP-06": documented(
        "A sequential_vmap function is called on one element of the batch at a time, and its results are stacked.",
        _SEQUENTIAL,
        "A function decorated with ``sequential_vmap`` will be called sequentially within a loop when batched.",
        "a sequential_vmap function is called on all of the batch at once",
    ),
}

CLAUSES = {**REVERSE, **FORWARD, **GRADIENT, **LINEAR, **BATCHING}
