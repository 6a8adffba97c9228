"""Clauses on tinygrad: functions with their own gradients, as its tests and its source have them."""

from autograd_conformance.reference.clauses.definitions import observed

_TESTS = "test/unit/test_function.py of tinygrad"
_FUNCTION = "tinygrad/function.py"
_GRADIENT = "tinygrad/mixin/gradient.py"

CLAUSES = {
    "TINYGRAD-01": observed(
        "grad_fxn gets the gradient of the output, in its shape and dtype, and the call, whose inputs follow its body.",
        f"{_TESTS}, test_grad_fxn",
        "grad_fxn gets ones",
    ),
    "TINYGRAD-02": observed(
        "What grad_fxn returns is the gradient of each input, whatever the body computes.",
        f"{_TESTS}, test_grad_fxn",
        "the body is differentiated instead",
    ),
    "TINYGRAD-03": observed(
        "A tensor that is given several times is one input of the call, in the place where it comes first.",
        f"{_FUNCTION}, _function.__call__",
        "an input is placed where it comes last",
    ),
    "TINYGRAD-04": observed(
        "Another number of gradients than of inputs is an AssertionError that names both numbers, counting the body.",
        f"{_GRADIENT}, compute_gradient",
        "missing gradients count as None",
    ),
    "TINYGRAD-05": observed(
        "None means no gradient: the input gets zeros, or the gradients from its other uses.",
        f"{_GRADIENT}, compute_gradient",
        "None counts as ones",
    ),
    "TINYGRAD-06": observed(
        "If all outputs are used, grad_fxn gets their gradients in order, and the call by keyword.",
        f"{_TESTS}, test_grad_fxn_tuple",
        "the gradients come in reverse order",
    ),
    "TINYGRAD-07": observed(
        "A realized tensor that is captured instead of given is a RuntimeError, unless allow_implicit is set.",
        f"{_TESTS}, test_implicit_input",
        "captured tensors are let through",
    ),
    "TINYGRAD-08": observed(
        "A function that returns anything but a tensor or a tuple of tensors raises RuntimeError.",
        f"{_FUNCTION}, _function.__call__",
        "a list of outputs is accepted as a tuple",
    ),
}
