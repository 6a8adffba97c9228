"""Clauses on MyGrad: operations, the graph that they make, memory guarding, changes in place and views."""

from autograd_conformance.reference.clauses.definitions import documented, observed

_OPERATIONS = "https://mygrad.readthedocs.io/en/latest/operation.html"
_TENSOR = "https://mygrad.readthedocs.io/en/latest/tensor.html"
_BACKWARD = "https://mygrad.readthedocs.io/en/latest/generated/mygrad.Tensor.backward.html"
_PERFORMANCE = "https://mygrad.readthedocs.io/en/latest/performance_tips.html"
_VIEWS = "https://mygrad.readthedocs.io/en/latest/views.html"

CLAUSES = {
    "MYGRAD-OP-01": documented(
        "execute_op gives an operation a tensor for every input, a constant one for what is only array-like.",
        f"{_OPERATIONS}, Writing Your Own Operations",
        "`execute_op` will take care of: casting `x` and `y` to tensors if they are instead array-likes",
        "array-likes become tensors that are not constants",
    ),
    "MYGRAD-OP-02": documented(
        "The output of an operation is a constant exactly if all its inputs are.",
        f"{_OPERATIONS}, Writing Your Own Operations",
        "propagating 'constant' status to the resulting output based on the inputs",
        "outputs are never constants",
    ),
    "MYGRAD-OP-03": documented(
        "With constant=True the output of an operation is a constant, through which nothing is back-propagated.",
        "mygrad/tensor_base.py, Tensor._op",
        "If True, the resulting Tensor is a constant.",
        "constant= is ignored",
    ),
    "MYGRAD-OP-04": documented(
        "op_args and op_kwargs are passed to the operation's forward pass after its inputs, as they are.",
        "mygrad/tensor_base.py, Tensor._op",
        "Arbitrary positional arguments passed to the operation's forward pass.",
        "op_kwargs are left out",
    ),
    "MYGRAD-OP-05": documented(
        "backward_var gets the total derivative with respect to the output, in the output's shape.",
        f"{_OPERATIONS}, Operation.backward_var",
        "The back-propagated total derivative with respect to the present operation: dL/df. This will have the "
        "same shape as f, the result of the forward pass.",
        "an operation is given ones",
    ),
    "MYGRAD-OP-06": documented(
        "backward_var is called once for each input that is not a constant, with its position in `variables`.",
        f"{_OPERATIONS}, Operation.backward",
        "Constant tensors (`tensor.constant is True`) skipped by this process.",
        "positions are counted without the constants",
    ),
    "MYGRAD-OP-07": documented(
        "A gradient in the shape of the output is summed to the shape of an input that was broadcast.",
        f"{_OPERATIONS}, Writing Your Own Operations",
        "The operation need not incorporate specialized logic for broadcasting. The appropriate sum-reductions "
        "will be performed by MyGrad's autodiff system.",
        "gradients of inputs that were broadcast are averaged",
    ),
    "MYGRAD-OP-08": documented(
        "A gradient that is neither a number nor an array raises InvalidGradient, which names the call.",
        "mygrad/errors.py, InvalidGradient",
        "An invalid gradient (i.e. a non-numeric or non-array-like object) was produced by an operation",
        "an object that is not a gradient counts as zero",
    ),
    "MYGRAD-OP-09": documented(
        "A backward_var that raises SkipGradient adds nothing for that input and leaves the other gradients alone.",
        f"{_OPERATIONS}, Operation.backward_var",
        "Raises SkipGradient",
        "SkipGradient ends the loop over the inputs",
    ),
    "MYGRAD-OP-10": observed(
        "The gradient of a tensor has its dtype, whatever the dtype that the operation returned.",
        "tests/tensor_base/test_backward.py, test_tensor_backward_produces_grad_of_correct_dtype_and_shape",
        "gradients keep the dtype that the operation returned",
    ),
    "MYGRAD-OP-11": observed(
        "A tensor that is given as several inputs gets the sum of their gradients.",
        "mygrad/operation_base.py, Operation.backward",
        "a later gradient replaces an earlier one",
    ),
    "MYGRAD-OP-12": documented(
        "The output's creator is an instance of the operation of its own, whose variables are the inputs themselves.",
        f"{_TENSOR}, Tensor.creator",
        "The operation-instance that created the tensor, or `None`.",
        "calls of one operation share an instance",
    ),
    "MYGRAD-OP-13": documented(
        "An operation derived from UnaryUfunc or BinaryUfunc computes and differentiates only where `where` is True.",
        "mygrad/operation_base.py, UnaryUfunc",
        "Values of True indicate to calculate the ufunc at that position, values of False indicate to leave the "
        "value in the output alone.",
        "gradients do not heed `where`",
    ),
    "MYGRAD-OP-14": documented(
        "With a tensor as `out` it becomes the result of the operation, and its former values get no gradient.",
        f"{_OPERATIONS}, Writing Your Own Operations",
        "handling in-place operations (specified via the `out` parameter)",
        "a tensor given as out is not changed",
    ),
    "MYGRAD-GRAPH-01": documented(
        "backward from a tensor of any shape gives what backward from its sum gives.",
        _BACKWARD,
        "it will behave identically to ``L.sum().backward()``",
        "backward starts from the mean",
    ),
    "MYGRAD-GRAPH-02": documented(
        "backward starts from the gradient that it is given, which may be array-like and is broadcast to the tensor.",
        _BACKWARD,
        "`grad` must be broadcast-compatible with `tensor.shape`",
        "a gradient of a smaller shape is used for the first entry alone",
    ),
    "MYGRAD-GRAPH-03": documented(
        "backward raises for a gradient that cannot be broadcast to the tensor, with a message that names its shape.",
        _BACKWARD,
        "`tensor.backward(grad)` was passed a gradient with an incompatible shape.",
        "a gradient of another shape is cut to fit",
    ),
    "MYGRAD-GRAPH-04": documented(
        "backward raises InvalidGradient for a gradient that is neither a number nor array-like.",
        "mygrad/errors.py, InvalidGradient",
        "An invalid gradient (i.e. a non-numeric or non-array-like object) was produced by an operation or was "
        "supplied by a user.",
        unplanted="MyGrad itself has the fault",
    ),
    "MYGRAD-GRAPH-05": documented(
        "After backward no tensor of the graph has a creator.",
        _BACKWARD,
        "Once back-propagation is finished, the present tensor is removed from all computational graphs, and the "
        "preceding graph is cleared.",
        "the graph outlives backward",
    ),
    "MYGRAD-GRAPH-06": documented(
        "A tensor that is given to an operation loses the gradient that it had.",
        f"{_TENSOR}, Forward and Back-Propagation",
        "involving any of these tensors in a new computational graph will automatically null their gradients",
        "gradients survive the next operation and are added to",
    ),
    "MYGRAD-GRAPH-07": documented(
        "null_grad sets the gradient of a tensor alone to None, and returns the tensor.",
        "https://mygrad.readthedocs.io/en/latest/generated/mygrad.Tensor.null_grad.html",
        "Sets this tensor's gradient to be ``None``. This operation is performed in-place, but a reference to "
        "the tensor is returned",
        "null_grad fills the gradient with zeros",
    ),
    "MYGRAD-GRAPH-08": documented(
        "backward stores a gradient in every tensor of the graph that is not a constant, the intermediate ones "
        "included.",
        _BACKWARD,
        "compute dL/dx for all (non-constant) tensors that preceded L in its computational graph, and store each "
        "of these derivatives in ``x.grad`` respectively",
        "only leaves keep their gradients",
    ),
    "MYGRAD-GRAPH-09": documented(
        "backward through a graph that another backward has partly cleared raises InvalidBackprop.",
        "mygrad/errors.py, InvalidBackprop",
        "Backpropagation was invoked through a partially-cleared graph",
        "a cleared part of a graph is skipped",
    ),
    "MYGRAD-GRAPH-10": documented(
        "A tensor of integers or booleans is a constant, and making one that is not a constant raises ValueError.",
        f"{_TENSOR}, Tensor",
        "Integer-type tensors must be constant.",
        "a tensor of integers may be non-constant",
    ),
    "MYGRAD-GRAPH-11": documented(
        "Within no_autodiff, a context or a decorator, nothing is recorded, and leaving it restores what was before.",
        f"{_PERFORMANCE}, Suspending Graph-Tracking",
        "all computational graph tracking is suspended within the context",
        "leaving an inner no_autodiff turns tracking on",
    ),
    "MYGRAD-GUARD-01": documented(
        "Arrays that are inputs of an operation, or its output, cannot be written to until the graph is cleared.",
        f"{_PERFORMANCE}, Controlling Memory-Guarding Behavior",
        'MyGrad prohibits such mutations with its aforementioned "memory guarding" behavior, however it is smart '
        "about restoring the writeability of all arrays once they are no longer participating in a computational graph",
        "arrays are not locked",
    ),
    "MYGRAD-GUARD-02": documented(
        "mem_guard_off and mem_guard_on say within their context or function whether arrays are locked, the inner one "
        "first.",
        f"{_PERFORMANCE}, Controlling Memory-Guarding Behavior",
        "previous memory-locking behavior is restored",
        "mem_guard_off stays in force",
    ),
    "MYGRAD-GUARD-03": documented(
        "Within no_autodiff no array is locked.",
        "https://mygrad.readthedocs.io/en/latest/generated/mygrad.no_autodiff.html",
        "Note that memory guarding does not occur in the `no_autodiff` context",
        "arrays are locked within no_autodiff as well",
    ),
    "MYGRAD-GUARD-04": documented(
        "An array in several graphs is locked until the last of these is cleared.",
        "mygrad/_utils/lock_management.py, release_writeability_lock_on_op",
        "An array is made writeable only once all of its locks have been released.",
        "the first graph that is cleared unlocks its arrays",
    ),
    "MYGRAD-GUARD-05": observed(
        "An operation whose forward pass raises leaves no array locked that was not, and the exception is its own.",
        "mygrad/tensor_base.py, Tensor._op",
        "arrays stay locked after an exception",
    ),
    "MYGRAD-VIEW-01": documented(
        "A change of a tensor in place after it was given to an operation does not change that operation's gradients.",
        f"{_PERFORMANCE}, Controlling Memory-Guarding Behavior",
        "were ``x`` an instance of Tensor, there would not be any issue with the above calculation, since MyGrad "
        "can track the in-place update on a tensor",
        "changes in place are written into the array of the operation",
    ),
    "MYGRAD-VIEW-02": documented(
        "The gradient of a view is the view of the gradient of its base, also if the view took no part.",
        f"{_VIEWS}, Producing a View of a Tensor",
        "And this view relationship will also manifest between the tensors' gradients",
        "a view that took no part has no gradient",
    ),
    "MYGRAD-VIEW-03": documented(
        "A change of a view in place changes its base, and gradients go back through the change.",
        f"{_VIEWS}, Producing a View of a Tensor",
        "Mutating shared data will propagate through views",
        "gradients go back as if the view had not been changed",
    ),
}
