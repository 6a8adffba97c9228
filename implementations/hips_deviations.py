"""What is known not to hold of HIPS autograd: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

_CHECKPOINT = (
    "Returns a checkpointed version of `fun`, where intermediate values computed during the forward pass of `fun` are "
    "discarded and then recomputed for the backward pass."
)
_BLOB = "https://github.com/HIPS/autograd/blob/master/"
_SEEN = "seen on 1.9.1"

DEVIATIONS = (
    Deviation(
        id="DBL-CORRECT",
        function="Select GlobalMaxPool",
        what="what came of the call: an exception, AttributeError: * object has no attribute 'device'",
        reason="the boxes that stand for arrays while a derivative is traced have shape, ndim, size and dtype, and no "
        "device, which arrays have from NumPy 2.0 on: a backward that asks for it dies of an AttributeError under a "
        "second derivative",
        link=_BLOB + "autograd/numpy/numpy_boxes.py",
        versions=_SEEN,
        script="device_of_a_box.py",
    ),
    Deviation(
        id="HIPS-CKPT-01/containers",
        what="gradients of a checkpointed function that returns a container, position *",
        reason="the recomputation returns a tuple or list that is not traced, which is taken for a constant: the "
        "gradients are zeros, with a warning that the output seems independent of the input",
        link=_BLOB + "autograd/differential_operators.py",
        versions=_SEEN,
        promise=_CHECKPOINT,
        script="checkpoint_of_a_tuple.py",
    ),
    Deviation(
        id="HIPS-CKPT-01/closures",
        what="gradients of a checkpointed closure, position 0",
        reason="what a checkpointed closure captures is no argument of the primitive that it becomes: the derivative "
        "with respect to it is silently left out, or what comes back is a box",
        link=_BLOB + "autograd/differential_operators.py",
        versions=_SEEN,
        promise=_CHECKPOINT,
        script="checkpoint_of_a_closure.py",
    ),
    Deviation(
        id="HIPS-CPLX-01/grad",
        what="grad of a complex function",
        reason="grad raises TypeError for every complex output, and refers to holomorphic_grad; the tutorial says what "
        "it gives",
        link=_BLOB + "docs/tutorial.md#complex-numbers",
        versions=_SEEN,
        promise="We define `grad` of `f` as [...] So we throw out v, the imaginary part of f, entirely.",
        script="grad_of_a_complex_function.py",
    ),
    Deviation(
        id="HIPS-OP-05/empty",
        what="an empty Jacobian",
        reason="jacobian stacks one gradient for each element of the output, and stack raises ValueError where there "
        "is none",
        link=_BLOB + "autograd/differential_operators.py",
        versions=_SEEN,
        promise="If the input to `fun` has shape (in1, in2, ...) and the output has shape (out1, out2, ...) then the "
        "Jacobian has shape (out1, out2, ..., in1, in2, ...).",
        script="jacobian_of_an_empty_output.py",
    ),
    Deviation(
        id="HIPS-OP-09",
        what="multigrad_dict",
        reason="multigrad_dict imports funcsigs, a package for Python 2 that autograd does not require",
        link=_BLOB + "autograd/differential_operators.py",
        versions=_SEEN,
        promise="Takes gradients wrt all arguments simultaneously,",
        script="multigrad_dict.py",
    ),
    Deviation(
        id="HIPS-BOX-02/empty",
        what="list() or tuple() of autograd.builtins",
        reason="the provided list and tuple need an argument: without one they raise TypeError",
        link=_BLOB + "docs/tutorial.md#supported-and-unsupported-parts-of-numpyscipy",
        versions=_SEEN,
        promise="An alternative is to use the `list`, `dict`, and `tuple` classes in `autograd.builtins`, which should "
        "work just like the Python builtins",
        script="empty_list.py",
    ),
    Deviation(
        id="HIPS-VJP-06/which",
        what="message of differentiating with respect to one argument, without a VJP",
        reason="the message has the number 0, whichever argument has no VJP",
        link=_BLOB + "autograd/core.py",
        versions=_SEEN,
        script="undefined_vjp.py",
    ),
    Deviation(
        id="HIPS-VJP-06/several",
        what="differentiating with respect to three arguments or more, some without a VJP",
        reason="an undefined VJP is a KeyError where three arguments or more are differentiated, and a "
        "NotImplementedError where one or two are",
        link=_BLOB + "autograd/core.py",
        versions=_SEEN,
        script="undefined_vjp.py",
    ),
)
