"""What is known not to hold of released JAX: its faults, and what it does otherwise than PyTorch."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_API = "https://docs.jax.dev/en/latest/_autosummary/"
_RULES = "https://docs.jax.dev/en/latest/301/custom-jvp-vjp.html"
_SOURCE = "https://github.com/jax-ml/jax/blob/main/jax/_src/custom_derivatives.py"
_SEEN = "seen on 0.10.2"


def _dtype(id: str, what: str) -> Deviation:
    return Deviation(
        id=id,
        what=what,
        reason="a cotangent of another inexact dtype than its argument is taken as it is, so that the gradient of a "
        "float64 argument may be float32 or complex128; the source calls it a temporary exception",
        link=f"{_API}jax.grad.html",
        promise="If ``argnums`` is an integer then the gradient has the same shape and type as the positional argument "
        "indicated by that integer.",
        versions=_SEEN,
        script="dtype_of_gradient.py",
    )


def _device(id: str, function: str) -> Deviation:
    return Deviation(
        id=id,
        function=function,
        what="what came of the call: an exception, AttributeError: * has no attribute device*",
        reason="tracers have no attribute device, which this Function's body reads",
        link=f"{_API}jax.Array.device.html",
        versions=_SEEN,
        script="device_of_tracer.py",
    )


def _difference(id: str, what: str, reason: str, script: str, link: str = _SOURCE) -> Deviation:
    return Deviation(id=id, what=what, reason=reason, link=link, versions=_SEEN, script=script)


def _message(id: str, what: str) -> Deviation:
    reason = (
        "the message compares the pytree structures of what the rule returned and of what it should, and counts nothing"
    )
    return _difference(id, what, reason, "messages.py")


FAULTS = (
    _dtype("JAX-VJP-17", "dtype of the gradient"),
    _dtype("GRAD-12", "a complex gradient for a real input"),
    Deviation(
        id="JAX-VJP-19",
        what="hessian | * of grad",
        reason="where fwd calls the function, as the documentation's own examples do, jax.hessian and jvp of grad "
        "raise TypeError: can't apply forward-mode autodiff (jvp) to a custom_vjp function",
        link=f"{_RULES}#custom-vjp-functions-can-t-be-forward-differentiated",
        promise="Reverse mode *composes* fine: `jax.grad`-of-`grad`, `jax.hessian`, and forward-over-reverse "
        "Hessian-vector products all work on functions containing `custom_vjp`",
        versions=_SEEN,
        script="forward_over_reverse.py",
    ),
    Deviation(
        id="JAX-JVP-03/affine",
        what="reverse mode of a rule that adds a constant to a tangent",
        reason="a rule whose tangent is shifted by a constant is transposed as if it were not",
        link=_RULES,
        promise="For automatic transposition to work, the JVP rule's output tangents must be linear as a function of "
        "the input tangents. Otherwise a transposition error is raised.",
        versions=_SEEN,
        script="affine_rule.py",
    ),
    Deviation(
        id="JAX-JVP-04/constant",
        what="None for every argument",
        reason="where defjvps gets None for every argument, differentiating raises TypeError: a symbolic zero stands "
        "for the tangents",
        link=_RULES,
        promise="As a shorthand, with `defjvps` you can pass a `None` value to indicate that the JVP for a particular "
        "argument is zero",
        versions=_SEEN,
        script="defjvps_of_none.py",
    ),
    Deviation(
        id="JAX-GRADIENT-04",
        what="control flow on a value that the gradient function closes over",
        reason="the gradient function is traced with the cotangents alone, so that control flow on intermediate values "
        "raises nothing",
        link=f"{_API}jax.custom_gradient.html",
        promise="it cannot perform Python control flow which depends on the values of the closed-over intermediate "
        "values or its cotangent arguments; if the function includes such control flow, an error is raised",
        versions=_SEEN,
        script="custom_gradient_control_flow.py",
    ),
    Deviation(
        id="JAX-GRADIENT-05",
        what="an argument given by keyword",
        reason="the function that custom_gradient returns refuses keyword arguments: it is a custom_vjp of (*args, "
        "**kwargs), which cannot be resolved to positions",
        link=f"{_API}jax.custom_gradient.html",
        promise="A Python callable that accepts the same arguments as ``fun``",
        versions=_SEEN,
        script="custom_gradient_keywords.py",
    ),
)

DIFFERENCES = (
    _device("BATCH-VMAP/cotangents ENV-COMPILE ENV-SAVED-HOOKS/checkpoint", "Conv2D FusedConvBN GlobalMaxPool Select"),
    _device("BATCH-VMAP", "Select"),
    _device("DBL-CORRECT", "GlobalMaxPool Select"),
    _message("GRAD-02", "message of a backward that returns *"),
    _message("GRAD-02/bare", "message of a backward that returns one bare value for *"),
    _message("GRAD-03", "message of a backward that returns * beyond its gradients"),
    _message("GRAD-07/list", "message of a list of * gradients"),
    _message("JVP-05", "message of forward mode of a Function *"),
    _difference(
        "GRAD-04",
        "a gradient for an argument that is not a tensor",
        "what is no array is closed over, so that bwd has no place for its gradient",
        "arguments_that_are_no_arrays.py",
        _RULES,
    ),
    _difference(
        "GRAD-08",
        "a gradient that is no tensor",
        "Python's numbers are JAX values: bwd may return them",
        "numbers_are_values.py",
    ),
    _difference(
        "JVP-01/missing",
        "forward mode of a Function without jvp",
        "forward mode of a custom_vjp function raises TypeError instead of NotImplementedError",
        "forward_mode_refused.py",
        _RULES,
    ),
    _difference(
        "JVP-06",
        "*a tangent for an output that is not differentiable",
        "stop_gradient makes an output not differentiable, and drops a tangent that the rule gives it",
        "stopped_tangent.py",
        f"{_API}jax.lax.stop_gradient.html",
    ),
    _difference(
        "JVP-09",
        "what came of it: TypeError: Custom JVP rule must produce *",
        "a tangent of another dtype than its output is refused",
        "dtype_of_tangent.py",
    ),
    _difference(
        "ND-02/integers",
        "shapes and dtypes of the cotangents",
        "the cotangent of an integer output is an array of dtype float0",
        "cotangent_of_integers.py",
        _RULES,
    ),
    _difference(
        "MAT-03",
        "set_materialize_grads of no bool",
        "symbolic_zeros is an argument of defvjp, and takes any value for True or False",
        "symbolic_zeros_of_no_bool.py",
        f"{_API}jax.custom_vjp.defvjp.html",
    ),
)

DEVIATIONS = (*FAULTS, *DIFFERENCES)
