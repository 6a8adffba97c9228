"""The known deviations of HIPS autograd: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade, Raised

_CHECKPOINT = (
    "Returns a checkpointed version of `fun`, where intermediate values computed during the forward pass of `fun` are "
    "discarded and then recomputed for the backward pass."
)
_BLOB = "https://github.com/HIPS/autograd/blob/master/"
_SEEN = ("1.9.1",)

DEVIATIONS = (
    Deviation(
        ids=("DBL-CORRECT",),
        functions=("Select", "GlobalMaxPool"),
        shows=(Raised("AttributeError", ending=" object has no attribute 'device'"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the boxes that stand for arrays while a derivative is traced have shape, ndim, size and "
            "dtype, but not device, which arrays have since NumPy 2.0: a backward that reads it raises "
            "AttributeError under a second derivative",
            link=_BLOB + "autograd/numpy/numpy_boxes.py",
            script="device_of_a_box.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-PRIM-01/keywords",),
        shows=(Found("rules that ran"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a primitive looks for traced arrays among its positional arguments only: one that is passed by "
            "keyword reaches the operations inside, and the gradient is theirs, not the rule's",
            promise="Wraps a function so that its gradient can be specified and its invocation can be recorded.",
            link=_BLOB + "autograd/tracer.py",
            script="array_by_keyword.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-CKPT-01/containers",),
        shows=(Found(starting="gradients of a checkpointed function that returns a container, position "),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the recomputation returns a tuple or list that is not traced and is taken for a constant: "
            "the gradients are zeros, with a warning that the output seems independent of the input",
            promise=_CHECKPOINT,
            link=_BLOB + "autograd/differential_operators.py",
            script="checkpoint_of_a_tuple.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-CKPT-01/closures",),
        shows=(Found("gradients of a checkpointed closure, position 0"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the values that a checkpointed closure captures are not arguments of its primitive: the "
            "derivative with respect to them is silently left out, or the result is a box",
            promise=_CHECKPOINT,
            link=_BLOB + "autograd/differential_operators.py",
            script="checkpoint_of_a_closure.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-CPLX-01/grad",),
        shows=(Found("grad of a complex function"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="grad raises TypeError for every complex output and refers to holomorphic_grad, though the "
            "tutorial says what grad gives there",
            promise="We define `grad` of `f` as [...] So we throw out v, the imaginary part of f, entirely.",
            link=_BLOB + "docs/tutorial.md#complex-numbers",
            script="grad_of_a_complex_function.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-OP-05/empty",),
        shows=(Found("an empty Jacobian"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="jacobian stacks one gradient for each element of the output, and stack raises ValueError if "
            "there are none",
            promise="If the input to `fun` has shape (in1, in2, ...) and the output has shape (out1, out2, ...) "
            "then the Jacobian has shape (out1, out2, ..., in1, in2, ...).",
            link=_BLOB + "autograd/differential_operators.py",
            script="jacobian_of_an_empty_output.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-OP-09",),
        shows=(Found("multigrad_dict"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="multigrad_dict imports funcsigs, a package for Python 2 that autograd does not require",
            promise="Takes gradients wrt all arguments simultaneously, returns a dict mapping 'argname' to 'gradval'",
            link=_BLOB + "autograd/differential_operators.py",
            script="multigrad_dict.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-BOX-02/empty",),
        shows=(Found("list() or tuple() of autograd.builtins"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the provided list and tuple need an argument: without one they raise TypeError",
            promise="An alternative is to use the `list`, `dict`, and `tuple` classes in `autograd.builtins`, "
            "which should work just like the Python builtins",
            link=_BLOB + "docs/tutorial.md#supported-and-unsupported-parts-of-numpyscipy",
            script="empty_list.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-VJP-06/which",),
        shows=(Found("message of differentiating with respect to one argument, without a VJP"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the message has the number 0, whichever argument has no VJP",
            link=_BLOB + "autograd/core.py",
            script="undefined_vjp.py",
            seen=_SEEN,
        ),
    ),
    Deviation(
        ids=("HIPS-VJP-06/several",),
        shows=(Found("differentiating with respect to three arguments or more, some without a VJP"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="an undefined VJP is a KeyError if three or more arguments are differentiated, and a "
            "NotImplementedError for one or two",
            link=_BLOB + "autograd/core.py",
            script="undefined_vjp.py",
            seen=_SEEN,
        ),
    ),
)
