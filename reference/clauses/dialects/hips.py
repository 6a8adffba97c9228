"""What HIPS autograd says of primitives, their rules, and the operators that differentiate them."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import documented, observed

_TUTORIAL = "docs/tutorial.md, "
_OWN = _TUTORIAL + "Extend Autograd by defining your own primitives"
_PARTS = _TUTORIAL + "Supported and unsupported parts of numpy/scipy"
_UPDATE = "docs/updateguide.md, "
_NEW = _UPDATE + "New defvjp interface"

CLAUSES = {
    "HIPS-PRIM-01": documented(
        "A primitive is a black box: its function gets plain arrays, and its derivative is what its rule says, "
        "whatever the function does.",
        _OWN,
        "`@primitive` tells Autograd not to look inside the function, but instead to treat it as a black box "
        "whose gradient can be specified later.",
        "the operations within a primitive are differentiated",
    ),
    "HIPS-PRIM-02": documented(
        "A primitive may compute with anything, with NumPy itself and in place included.",
        "examples/define_gradient.py",
        "Functions with this decorator can contain anything that Python knows how to execute, and you can do "
        "things like in-place operations on arrays.",
        "a primitive gets arrays that cannot be changed",
    ),
    "HIPS-PRIM-03": observed(
        "An object that is not an array reaches the primitive and its VJP maker unchanged, in its place or "
        "under its keyword.",
        "autograd/tracer.py, primitive; autograd/numpy/numpy_vjps.py, every rule with an axis",
        "a primitive's rule does not get the keyword arguments",
    ),
    "HIPS-PRIM-04": observed(
        "Without an argument that is traced a primitive is an ordinary function: its rule does not run, and it returns "
        "what its function does.",
        "autograd/tracer.py, primitive",
        "the VJP maker runs in every call",
    ),
    "HIPS-PRIM-05": observed(
        "A primitive that is traced has to return what has a box, an array, a float or complex number, or a container: "
        "anything else is a TypeError.",
        "autograd/tracer.py, new_box",
        "what has no box is returned as it is, outside the trace",
    ),
    "HIPS-PRIM-06": observed(
        "A primitive without a rule can be called, and differentiating it is a NotImplementedError that names it, in "
        "reverse and in forward mode.",
        "autograd/core.py, VJPNode and JVPNode",
        "a primitive without a rule counts as a constant",
    ),
    "HIPS-PRIM-07": observed(
        "A primitive may return a tuple, list or dict: every entry can be differentiated, and the VJP gets zeros for "
        "the entries that are not used.",
        "autograd/numpy/linalg.py, eigh and svd",
        "the gradient of what is used stands for the entries that are not",
    ),
    "HIPS-VJP-01": documented(
        "A VJP maker gets the primitive's output and its arguments, and gives a function from the gradient of the "
        "output to that of the argument.",
        _OWN,
        "`g` will be the gradient of the final objective with respect to `ans` (the output of `logsumexp`). The "
        "calculation can depend on both the input (`x`) and the output (`ans`) of the original function.",
        "the VJP maker gets the gradient's argument in place of the output",
    ),
    "HIPS-VJP-02": documented(
        "VJPs are staged: the maker runs once, during the forward pass, and what it returned once for each pass back.",
        _NEW,
        "VJPs are staged, so that instead of writing `lambda g, ans, vs, gvs, *args: ...` we write "
        "`lambda ans, *args: lambda g: ...`.",
        "the maker runs again in every pass back",
    ),
    "HIPS-VJP-03": documented(
        "A value of the forward pass that no VJP closes over is freed at once, by reference counting.",
        _NEW,
        "because the VJP for `func` with respect to argument index 0 doesn't need the values of `x` or `z` from "
        "the forward pass, those values aren't stored and can instead be immediately garbage-collected.",
        "the graph holds the arguments of every call",
    ),
    "HIPS-VJP-04": documented(
        "defvjp takes the VJPs of several arguments in order, and None says that an argument's gradient is zero.",
        _NEW,
        "`defvjp` lets you define VJPs with respect to multiple arguments at once, and the argnum(s) involved "
        "are often implicit.",
        "None stands for the identity",
    ),
    "HIPS-VJP-05": documented(
        "With argnums, defvjp defines the VJPs of these arguments alone.",
        _NEW,
        "Here's another example, this time showing how to define VJPs with respect to specific argnums, leaving "
        "the others undefined.",
        "defvjp takes its VJPs for those of the first arguments, whatever argnums says",
    ),
    "HIPS-VJP-06": observed(
        "Differentiating with respect to an argument whose VJP is undefined is a NotImplementedError that names the "
        "primitive and the argument.",
        "autograd/core.py, defvjp",
        "an undefined VJP counts as zero",
    ),
    "HIPS-VJP-07": documented(
        "The maker of defvjp_argnums gets the positions of the arguments that are differentiated, all at once, and "
        "gives their gradients in this order.",
        _UPDATE + "Reasoning for the changes",
        "Expensive VJPs can share work across arguments using `defvjp_argnums`.",
        "the maker of defvjp_argnums runs for one argument at a time",
    ),
    "HIPS-VJP-08": observed(
        "The maker of defvjp_argnum gets the position, the output, the arguments and the keyword arguments, once for "
        "each argument that is differentiated.",
        "autograd/core.py, defvjp_argnum; autograd/differential_operators.py, checkpoint",
        "the maker of defvjp_argnum always gets the first position",
    ),
    "HIPS-VJP-09": documented(
        "The makers of the arguments that are differentiated run, and no others.",
        _TUTORIAL + "How can you support ifs, while loops and recursion?",
        "To compute the gradient of a particular input, one only needs to know which continuous transforms were "
        "applied to that particular input, not which other transforms might have been applied.",
        "the makers of all arguments run",
    ),
    "HIPS-VJP-10": documented(
        "A value that is used several times, in one call or in several, gets the sum of the gradients, and none of "
        "these is changed in place.",
        _TUTORIAL + "What's going on under the hood?",
        "To compute the derivative, we simply apply the rules of differentiation to each node in the graph.",
        "gradients are added in place to the first that arrives",
    ),
    "HIPS-VJP-11": documented(
        "A primitive whose VJP is made of operations that have VJPs can be differentiated to any order.",
        _OWN,
        "If you want to be able to take higher-order derivatives, then the code inside the VJP function must be "
        "itself differentiable by Autograd",
        "the VJP gets arrays without a history",
    ),
    "HIPS-VJP-12": observed(
        "Defining the VJP of a primitive again replaces the one that it had, for calls from then on.",
        "autograd/core.py, primitive_vjps",
        "the first definition stays",
    ),
    "HIPS-VJP-13": documented(
        "The methods by which VJPs were defined before 1.2, defvjp, defvjp_is_zero and defgrad, still work, with a "
        "warning that names them and the update guide.",
        "autograd/core.py, deprecated_defvjp_message",
        "The {} method is deprecated. See the update guide and tutorial",
        "the old methods do not warn",
    ),
    "HIPS-JVP-01": documented(
        "make_jvp gives the value and the tangent, by the rules that defjvp has defined for the arguments that move.",
        _UPDATE + "Reasoning for the changes",
        "Forward-mode now comes built-in with `make_jvp`.",
        "the contributions of all arguments but the first are left out",
    ),
    "HIPS-JVP-02": observed(
        "To defjvp, 'same' says that the function is linear in an argument, None that the argument's contribution is "
        "zero, and argnums which arguments are meant.",
        "autograd/core.py, translate_jvp; autograd/numpy/numpy_jvps.py",
        "'same' takes the tangent itself for the contribution",
    ),
    "HIPS-JVP-03": documented(
        "def_linear gives a function that is linear in each argument its tangents.",
        "autograd/core.py, def_linear",
        "Flags that a function is linear wrt all args",
        "def_linear moves all arguments together",
    ),
    "HIPS-JVP-04": documented(
        "Forward and reverse mode can be composed in any order, to any depth, through primitives that have both rules.",
        "README.md",
        "It supports reverse-mode differentiation (a.k.a. backpropagation), which means it can efficiently take "
        "gradients of scalar-valued functions with respect to array-valued arguments, as well as forward-mode "
        "differentiation, and the two can be composed arbitrarily.",
        "the forward-mode rule gets arrays without a history",
    ),
    "HIPS-JVP-05": observed(
        "The rule of defjvp_argnum gets one position and one tangent at a time, that of defjvp_argnums all of those "
        "that move.",
        "autograd/core.py, defjvp_argnum and defjvp_argnums",
        "the rule of defjvp_argnum gets the positions in reverse",
    ),
    "HIPS-CPLX-01": documented(
        "With z = x + iy, the gradient of a real function L is dL/dx - i dL/dy; of any function f only the real part "
        "u counts, du/dx - i du/dy, which is f' if f is holomorphic.",
        _TUTORIAL + "Complex numbers",
        "We define `grad` of `f` as [...] grad(u, 0)(x, y) - i * grad(u, 1)(x, y) [...] So we throw out v, the "
        "imaginary part of f, entirely.",
        "the gradient is the conjugate, as other frameworks have it",
    ),
    "HIPS-CPLX-02": documented(
        "The VJP of a holomorphic primitive is its complex derivative times g, without a conjugate: the rule of a real "
        "function serves for complex numbers too.",
        _TUTORIAL + "Complex numbers",
        "For holomorphic primitives, this is just the regular complex derivative multiplied by `g`, so most "
        "simple math primitives don't need to be changed from their real implementations.",
        "g is conjugated on its way to the VJP",
    ),
    "HIPS-CPLX-03": documented(
        "A real function that is computed by complex primitives has the gradient of the real computation, a real one.",
        _TUTORIAL + "Complex numbers",
        "If `f` is a real-to-real function that happens to use complex primitives internally, [...] then we get "
        "the same result that a purely real implementation would have given.",
        "the gradient with respect to a real argument is complex",
    ),
    "HIPS-OP-01": documented(
        "A gradient is what the argument is: a tuple, list or dict of as many entries, nested alike, of arrays of the "
        "same shapes and dtypes.",
        "autograd.grad, docstring; docs/tutorial.md, What can Autograd differentiate?",
        "The gradient has the same type as the argument.",
        "the gradient of a list is a tuple",
    ),
    "HIPS-OP-02": documented(
        "grad is for functions with one real number as output: any other output is a TypeError.",
        "autograd.grad, docstring",
        "The function `fun` should be scalar-valued.",
        "grad sums what the function returns",
    ),
    "HIPS-OP-03": documented(
        "What an operator returns takes the arguments of the function, keyword arguments included, and differentiates "
        "with respect to argument number argnum, or to several.",
        "autograd.grad, docstring",
        "Returns a function which computes the gradient of `fun` with respect to positional argument number "
        "`argnum`. The returned function takes the same arguments as `fun`, but returns the gradient instead.",
        "keyword arguments are dropped",
    ),
    "HIPS-OP-04": documented(
        "elementwise_grad gives the sum of each column of the Jacobian.",
        "autograd.elementwise_grad, docstring",
        "Returns a function that computes the sum of each column of the Jacobian of `fun`, in one pass.",
        "elementwise_grad gives the mean of each column",
    ),
    "HIPS-OP-05": documented(
        "The Jacobian has the shape of the output followed by that of the input.",
        "autograd.jacobian, docstring",
        "If the input to `fun` has shape (in1, in2, ...) and the output has shape (out1, out2, ...) then the "
        "Jacobian has shape (out1, out2, ..., in1, in2, ...).",
        "the Jacobian is transposed",
    ),
    "HIPS-OP-06": documented(
        "hessian gives the exact Hessian, and make_hvp and hessian_tensor_product its products.",
        "autograd.hessian, docstring",
        "Returns a function that computes the exact Hessian.",
        "hessian leaves out what is off the diagonal",
    ),
    "HIPS-OP-07": documented(
        "value_and_grad gives the value and the gradient, grad_and_aux the gradient of the first output and the second "
        "output as it is.",
        "autograd.value_and_grad and grad_and_aux, docstrings",
        "Builds a function that returns the gradient of the first output and the (unmodified) second output of a "
        "function that returns two outputs.",
        "the second output takes part in the gradient",
    ),
    "HIPS-OP-08": observed(
        "An output that does not depend on the argument gives a warning, and the gradient is zeros of the argument's "
        "shape.",
        "autograd/tracer.py, trace; tests/test_graphs.py, test_grad_const",
        "there is no warning",
    ),
    "HIPS-OP-09": documented(
        "multigrad_dict gives the gradients with respect to all arguments by their names, those left at their defaults "
        "included.",
        "autograd/differential_operators.py, multigrad_dict",
        "Takes gradients wrt all arguments simultaneously,",
        "multigrad_dict leaves out the arguments left at their defaults",
    ),
    "HIPS-CKPT-01": documented(
        "A checkpointed function has the values and the gradients of the function, to any order.",
        "autograd.checkpoint, docstring",
        "Returns a checkpointed version of `fun`, where intermediate values computed during the forward pass of "
        "`fun` are discarded and then recomputed for the backward pass.",
        "a checkpointed function is differentiated at other arguments",
    ),
    "HIPS-CKPT-02": documented(
        "A checkpointed function discards its intermediate values in the forward pass, and runs once more for each "
        "argument that is differentiated.",
        "autograd.checkpoint, docstring",
        "intermediate values computed during the forward pass of `fun` are discarded and then recomputed for the "
        "backward pass.",
        "checkpoint does nothing",
    ),
    "HIPS-FLOW-01": documented(
        "Derivatives go through loops, conditions on values, recursion and closures, as each call took them.",
        _TUTORIAL + "How can you support ifs, while loops and recursion?",
        "Since Autograd keeps track of the relevant operations on each function call separately, it's not a "
        "problem that all the Python control flow operations are invisible to Autograd.",
        "a comparison of what is traced always holds",
    ),
    "HIPS-FLOW-02": documented(
        "A derivative may be taken within a function that is differentiated, of a function that refers to the outer "
        "one's variables: the two are distinguished.",
        "README.md; tests/test_graphs.py, test_enclosing_scope_ref",
        "it can even take derivatives of derivatives of derivatives.",
        "nested derivatives are traced at one level",
    ),
    "HIPS-BOX-01": documented(
        "isinstance of autograd.builtins says of a traced value what it says of the value.",
        _PARTS,
        "those `isinstance` checks will work if you instead use Autograd's provided one, writing "
        "`from autograd.builtins import isinstance`.",
        "the provided isinstance is Python's own",
    ),
    "HIPS-BOX-02": documented(
        "The list, tuple and dict of autograd.builtins work like Python's, and traced values within them reach a "
        "primitive and are differentiated.",
        _PARTS,
        "An alternative is to use the `list`, `dict`, and `tuple` classes in `autograd.builtins`, which should "
        "work just like the Python builtins while also ensuring boxes don't get hidden inside those containers.",
        "the provided list is Python's own",
    ),
    "HIPS-BOX-03": documented(
        "Assigning to an element of an array that is differentiated is a TypeError.",
        _PARTS,
        "For example, we support indexing (`x = A[i, j, :]`) but not assignment (`A[i,j] = x`) in arrays that "
        "are being differentiated with respect to.",
        "an assignment changes the array behind the trace",
    ),
    "HIPS-BOX-04": documented(
        "What a VJP needs is kept by reference: a change in place of an array that is not differentiated raises no "
        "error and is seen in the pass back.",
        _PARTS,
        "Autograd keeps references to variables used in the forward pass if they will be needed on the reverse "
        "pass. Making copies would be too slow.",
        "arrays are copied for the pass back",
    ),
    "HIPS-BOX-05": observed(
        "A notrace_primitive gets plain values and returns one, through which no derivative flows, however deep the "
        "nesting.",
        "autograd/tracer.py, notrace_primitive",
        "a notrace_primitive takes off one level of boxes alone",
    ),
    "HIPS-BOX-06": documented(
        "A class that is registered with a Box and a VSpace can be an argument and an output of primitives, and be "
        "differentiated with respect to.",
        _UPDATE + "Reasoning for the changes",
        "There's now a clear extension API in `autograd.extend`, so you can write custom VJPs or wrap your own "
        "numerical libraries.",
        "the registered VSpace is not used",
    ),
    "HIPS-BOX-07": documented(
        "A user's own tracer gets every call of a primitive on traced values: its value, the primitive, the "
        "arguments, and which of them come from which nodes.",
        _UPDATE + "Reasoning for the changes",
        "Autograd's tracing functionality is now parameterized and easily reusable",
        "a tracer gets the positions in reverse",
    ),
    "HIPS-CHECK-01": documented(
        "check_grads accepts a primitive with right rules, and raises for one whose first or second derivative, in the "
        "modes that it is asked for, is wrong.",
        _UPDATE + "Gradient checking",
        "Here's how to do gradient checking, whether on a composite function or on your primitive with a custom VJP",
        "check_grads checks the first order alone",
    ),
}
