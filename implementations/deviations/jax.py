"""The known deviations of released JAX: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade, Raised

_API = "https://docs.jax.dev/en/latest/_autosummary/"
_RULES = "https://docs.jax.dev/en/latest/301/custom-jvp-vjp.html"
_SOURCE = "https://github.com/jax-ml/jax/blob/main/jax/_src/custom_derivatives.py"
_SEEN = ("0.10.2",)

_DTYPE_OF_GRADIENT = Cause(
    grade=Grade.BROKEN,
    reason="a cotangent of another inexact dtype than its argument's is accepted unchanged, so the "
    "gradient of a float64 argument may be float32 or complex128; the source calls this a "
    "temporary exception",
    promise="If ``argnums`` is an integer then the gradient has the same shape and type as the positional "
    "argument indicated by that integer.",
    link=f"{_API}jax.grad.html",
    script="dtype_of_gradient.py",
    seen=_SEEN,
)

OF_THE_DIALECT = (
    Deviation(ids=("JAX-VJP-17",), shows=(Found("dtype of the gradient"),), cause=_DTYPE_OF_GRADIENT),
    Deviation(ids=("GRAD-12",), shows=(Found("a complex gradient for a real input"),), cause=_DTYPE_OF_GRADIENT),
    Deviation(
        ids=("JAX-VJP-19",),
        shows=(Found("hessian"), Found(ending=" of grad")),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="if fwd calls the function, as in the documentation's own examples, jax.hessian and jvp of "
            "grad raise TypeError: can't apply forward-mode autodiff (jvp) to a custom_vjp function",
            promise="Reverse mode *composes* fine: `jax.grad`-of-`grad`, `jax.hessian`, and forward-over-reverse "
            "Hessian-vector products all work on functions containing `custom_vjp`",
            link=f"{_RULES}#custom-vjp-functions-can-t-be-forward-differentiated",
            script="forward_over_reverse.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JAX-JVP-03/affine",),
        shows=(Found("reverse mode of a rule that adds a constant to a tangent"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a rule that adds a constant to its tangent is transposed as if it did not, without an error",
            promise="For automatic transposition to work, the JVP rule's output tangents must be linear as a "
            "function of the input tangents. Otherwise a transposition error is raised.",
            link=_RULES,
            script="affine_rule.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JAX-JVP-04/constant",),
        shows=(Found("None for every argument"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="if defjvps gets None for every argument, differentiating raises TypeError: the tangents are "
            "a symbolic zero",
            promise="As a shorthand, with `defjvps` you can pass a `None` value to indicate that the JVP for a "
            "particular argument is zero",
            link=_RULES,
            script="defjvps_of_none.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JAX-GRADIENT-04",),
        shows=(Found("control flow on a value that the gradient function closes over"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="the gradient function is traced with respect to the cotangents only, so control flow on "
            "intermediate values raises nothing",
            promise="it cannot perform Python control flow which depends on the values of the closed-over "
            "intermediate values or its cotangent arguments; if the function includes such control flow, "
            "an error is raised",
            link=f"{_API}jax.custom_gradient.html",
            script="custom_gradient_control_flow.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JAX-GRADIENT-05",),
        shows=(Found("an argument given by keyword"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the function that custom_gradient returns refuses keyword arguments: it is a custom_vjp of "
            "(*args, **kwargs), whose keywords cannot be resolved to positions",
            promise="A Python callable that accepts the same arguments as ``fun``",
            link=f"{_API}jax.custom_gradient.html",
            script="custom_gradient_keywords.py",
            seen=_SEEN,
        ),
    ),
)

_DEVICE_OF_TRACER = Cause(
    grade=Grade.DIFFERENCE,
    reason="tracers have no attribute device, which this Function's body reads",
    link=f"{_API}jax.Array.device.html",
    script="device_of_tracer.py",
    seen=_SEEN,
)

_MESSAGES = Cause(
    grade=Grade.DIFFERENCE,
    reason="the message compares pytree structures, the returned one with the expected one, and gives no numbers",
    link=_SOURCE,
    script="messages.py",
    seen=_SEEN,
)

OF_THE_CONTRACT = (
    Deviation(
        ids=("BATCH-VMAP/cotangents", "ENV-COMPILE", "ENV-SAVED-HOOKS/checkpoint"),
        functions=("Conv2D", "FusedConvBN", "GlobalMaxPool", "Select"),
        shows=(Raised("AttributeError", containing=" has no attribute device"),),
        cause=_DEVICE_OF_TRACER,
    ),
    Deviation(
        ids=("BATCH-VMAP",),
        functions=("Select",),
        shows=(Raised("AttributeError", containing=" has no attribute device"),),
        cause=_DEVICE_OF_TRACER,
    ),
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("GlobalMaxPool", "Select"),
        shows=(Raised("AttributeError", containing=" has no attribute device"),),
        cause=_DEVICE_OF_TRACER,
    ),
    Deviation(ids=("GRAD-02",), shows=(Found(starting="message of a backward that returns "),), cause=_MESSAGES),
    Deviation(
        ids=("GRAD-02/bare",),
        shows=(Found(starting="message of a backward that returns one bare value for "),),
        cause=_MESSAGES,
    ),
    Deviation(
        ids=("GRAD-03",),
        shows=(Found(starting="message of a backward that returns ", ending=" beyond its gradients"),),
        cause=_MESSAGES,
    ),
    Deviation(
        ids=("GRAD-07/list",), shows=(Found(starting="message of a list of ", ending=" gradients"),), cause=_MESSAGES
    ),
    Deviation(ids=("JVP-05",), shows=(Found(starting="message of forward mode of a Function "),), cause=_MESSAGES),
    Deviation(
        ids=("GRAD-04",),
        shows=(Found("a gradient for an argument that is not a tensor"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="arguments that are not arrays are closed over, so bwd cannot return a gradient for them",
            link=_RULES,
            script="arguments_that_are_no_arrays.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("GRAD-08",),
        shows=(Found("a gradient that is not a tensor"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="Python numbers are JAX values: bwd may return them",
            link=_SOURCE,
            script="numbers_are_values.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JVP-01/missing",),
        shows=(Found("forward mode of a Function without jvp"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="forward mode of a custom_vjp function raises TypeError instead of NotImplementedError",
            link=_RULES,
            script="forward_mode_refused.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JVP-06",),
        shows=(Found(ending="a tangent for an output that is not differentiable"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="stop_gradient makes an output non-differentiable, and drops the tangent that the rule "
            "returns for it",
            link=f"{_API}jax.lax.stop_gradient.html",
            script="stopped_tangent.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("JVP-09",),
        shows=(Raised("TypeError", starting="Custom JVP rule must produce "),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a tangent of another dtype than its output is refused",
            link=_SOURCE,
            script="dtype_of_tangent.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("ND-02/integers",),
        shows=(Found("shapes and dtypes of the cotangents"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the cotangent of an integer output is an array of dtype float0",
            link=_RULES,
            script="cotangent_of_integers.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("MAT-03",),
        shows=(Found("set_materialize_grads of no bool"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="symbolic_zeros is an argument of defvjp, and takes any value as True or False",
            link=f"{_API}jax.custom_vjp.defvjp.html",
            script="symbolic_zeros_of_no_bool.py",
            seen=_SEEN,
        ),
    ),
)

DEVIATIONS = (*OF_THE_DIALECT, *OF_THE_CONTRACT)
