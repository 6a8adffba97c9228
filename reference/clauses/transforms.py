"""Clauses on forward mode and function transforms."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "JVP-01",
        "documented",
        "Forward mode calls the class's jvp(ctx, *tangents); a call with a tangent on a Function that has none raises "
        "NotImplementedError.",
        "Function: jvp",
        needs="jvp",
        fault="a Function without jvp silently drops the tangents",
    ),
    Clause(
        "JVP-02",
        "documented",
        "jvp gets one argument per argument of forward: None for integer tensors and non-tensors, zeros for floating "
        "tensors without a tangent.",
        "Function: jvp",
        needs="jvp materialize",
        fault="floating tensors without a tangent give jvp a None",
    ),
    Clause(
        "JVP-03",
        "documented",
        "After set_materialize_grads(False) jvp gets None for every argument without a tangent.",
        "extending: Forward mode AD",
        needs="jvp materialize",
        fault="set_materialize_grads(False) has no effect on jvp",
    ),
    Clause(
        "JVP-04",
        "documented",
        "jvp runs after forward and before apply returns, in the grad mode of the call and with forward mode off, and "
        "not at all if no argument has a tangent.",
        "extending: Forward mode AD",
        needs="jvp requires_grad",
        fault="jvp also runs when no argument has a tangent",
    ),
    Clause(
        "JVP-05",
        "documented",
        "jvp returns exactly one tangent per output: fewer raise, and so do more, even if they are None.",
        "Function: jvp",
        needs="jvp gradient_count",
        fault="surplus tangents are cut off silently",
    ),
    Clause(
        "JVP-06",
        "documented",
        "For an output that is not a tensor or not differentiable jvp returns None; a tangent for a tensor that is not "
        "differentiable raises.",
        "Function: jvp",
        needs="jvp nondifferentiable",
        fault="a tangent for an integer output is ignored",
    ),
    Clause(
        "JVP-07",
        "documented",
        "jvp may return None for an output with respect to which it does not differentiate, even if that output is a "
        "floating tensor not marked otherwise.",
        "Function: jvp",
        needs="jvp none_gradients",
        fault="a None from jvp gives the output a tangent of ones",
    ),
    Clause(
        "JVP-08",
        "observed",
        "A tangent from jvp must have its output's shape; any other shape raises.",
        "source: torch/csrc/autograd/autograd_meta.cpp",
        needs="jvp gradient_checks",
        fault="tangents are broadcast to the shape of their output",
    ),
    Clause(
        "JVP-09",
        "observed",
        "A tangent from jvp whose dtype is not its output's is used as it is: it neither raises nor is cast.",
        "source: torch/csrc/autograd/autograd_meta.cpp",
        needs="jvp gradient_checks",
        fault="tangents are cast to the dtype of their output",
    ),
    Clause(
        "JVP-10",
        "documented",
        "Where forward returns a view of an input, or the input itself, jvp must return a view of its tangent; any "
        "other tensor raises.",
        "extending: Forward mode AD",
        needs="jvp views gradient_checks",
        fault="a tangent that is a copy is accepted for an output that is a view",
    ),
    Clause(
        "JVP-11",
        "documented",
        "Where forward changes an input in place, jvp must change its tangent in place and return it; any other "
        "tensor raises.",
        "extending: Forward mode AD",
        needs="jvp inplace",
        fault="a new tangent is accepted for an input that was changed in place",
    ),
    Clause(
        "JVP-12",
        "documented",
        "What save_for_forward keeps, which may be tensors and None only, is ctx.saved_tensors in jvp, and is "
        "released when the call is over.",
        "Function: save_for_forward",
        needs="context jvp",
        fault="save_for_forward accepts numbers",
    ),
    Clause(
        "JVP-13",
        "documented",
        "jvp does not see what save_for_backward keeps, nor backward what save_for_forward keeps; the two may differ.",
        "Function: save_for_forward",
        needs="context jvp",
        fault="save_for_backward keeps its tensors for jvp too",
    ),
    Clause(
        "JVP-14",
        "documented",
        "A jvp made of differentiable operations can be differentiated in reverse, and gradcheck can verify jvp as "
        "well as backward.",
        "extending: Forward mode AD",
        needs="jvp requires_grad",
        fault="tangents come back from jvp detached",
    ),
    Clause(
        "JVP-15",
        "documented",
        "Attributes of ctx that only jvp needs may be deleted in jvp.",
        "extending: Forward mode AD",
        needs="context jvp",
        fault="deleting an attribute of ctx raises",
    ),
    Clause(
        "JVP-16",
        "documented",
        "There is one level of forward mode: a nested one raises, its exit removes all tangents, and make_dual needs "
        "it and a floating or complex tensor.",
        "forward_ad: dual_level",
        needs="jvp",
        fault="tangents outlive the level in which they were made",
    ),
    Clause(
        "JVP-17",
        "documented",
        "make_dual gives an alias of its tensor with the tangent itself, or a copy of it if its layout is another; "
        "what unpack_dual gives has no tangent.",
        "forward_ad: make_dual",
        quote="The result is a new tensor aliased to tensor with tangent embedded as an attribute as-is if it has the "
        "same storage layout or copied otherwise.",
        needs="jvp",
        fault="make_dual copies its tensor",
    ),
    Clause(
        "FUNC-01",
        "documented",
        "Function transforms raise for a Function without setup_context, with an error that says that it is needed.",
        "extending torch.func: Basic Usage",
        fault="transforms run a combined forward as ordinary operations",
    ),
    Clause(
        "FUNC-02",
        "documented",
        "func.grad and func.vjp use the Function's backward and give the same gradients as an ordinary backward pass, "
        "nested func.grad included.",
        "extending torch.func: Basic Usage",
        needs="double_backward",
        fault="func.grad differentiates forward's operations instead of calling backward",
    ),
    Clause(
        "FUNC-03",
        "documented",
        "func.jvp uses the Function's jvp and raises NotImplementedError where there is none.",
        "extending torch.func: Basic Usage",
        needs="jvp",
        fault="func.jvp gives zeros for a Function without jvp",
    ),
    Clause(
        "FUNC-04",
        "documented",
        "Without a batching rule jacrev still works if the backward can be batched, whereas jacfwd and hessian raise.",
        "extending torch.func: Defining the vmap staticmethod",
        needs="jvp vmap",
        fault="jacrev raises for a Function without a batching rule",
    ),
    Clause(
        "FUNC-05",
        "observed",
        "Under func.grad a None gradient becomes zeros, an expanded gradient is summed to the input's shape, and "
        "set_materialize_grads(False) is honoured.",
        "source: torch/_functorch/autograd_function.py",
        needs="materialize",
        fault="func.grad returns None where backward did",
    ),
    Clause(
        "FUNC-06",
        "documented",
        "Under a transform only direct arguments are differentiated: a tensor that the methods capture from outside "
        "gets no gradient.",
        "extending torch.func: Limitations and gotchas",
        fault="transforms differentiate forward's operations, captured tensors included",
    ),
    Clause(
        "FUNC-07",
        "documented",
        "Under a transform a tensor that is assigned to ctx, instead of being saved, is not tracked: no derivative "
        "flows through it.",
        "extending torch.func: Limitations and gotchas",
        needs="double_backward",
        fault="intermediates kept on ctx are tracked under a transform",
    ),
    Clause(
        "FUNC-08",
        "documented",
        "A Function that changes an input in place and marks it dirty gives right gradients under func.grad.",
        "source: torch/testing/_internal/autograd_function_db.py",
        needs="inplace",
        fault="under func.grad backward gets double the cotangent of a dirty output",
    ),
    Clause(
        "FUNC-09",
        "documented",
        "Under function transforms a Function that defines vjp works like one that defines backward.",
        "extending: Step 1",
        fault="func.grad of a Function that defines vjp is zero",
    ),
    Clause(
        "FUNC-10",
        "observed",
        "Under function transforms apply takes positional parameters of forward by keyword and raises TypeError for "
        "keyword-only ones.",
        "source: torch/autograd/function.py",
        since="2.13",
        fault="under a transform keyword arguments are dropped in favour of defaults",
    ),
    Clause(
        "FUNC-11",
        "documented",
        "vjp, jvp, jacobian, hessian, vhp and hvp of autograd.functional give right results for custom Functions of "
        "either style; an input on which nothing depends has zeros, or raises if strict.",
        "autograd: Functional higher level API",
        needs="double_backward",
        fault="autograd.functional.jvp returns zeros",
    ),
    Clause(
        "FUNC-12",
        "observed",
        "Under n nested func.grad and func.jvp setup_context runs n + 1 times, each time with its own ctx and "
        "needs_input_grad: first for the call without transforms, then from the outermost transform inwards.",
        "source: torch/_functorch/autograd_function.py",
        fault="setup_context runs twice at each level of a transform",
    ),
    Clause(
        "FUNC-13",
        "documented",
        "func.grad, func.vjp and jacrev respect no_grad within the function that they transform, and not around them.",
        "func.grad: no_grad",
        quote="In this case, grad will respect the inner torch.no_grad, but not the outer one. This is because grad is "
        'a "function transform": its result should not depend on the result of a context manager outside of f.',
        needs="requires_grad",
        fault="func.grad under no_grad gives zeros",
    ),
    Clause(
        "FUNC-14",
        "documented",
        "Nested transforms differentiate a Function's own rules up to third order: forward and reverse mode in any "
        "order, and vmap at any level.",
        "func: What are composable function transforms?",
        quote="These function transforms can compose with each other arbitrarily.",
        needs="jvp vmap double_backward",
        fault="the gradient of a jvp is zero",
    ),
    Clause(
        "FUNC-15",
        "observed",
        "A transform whose function raises is over: calls after it are as before it.",
        "source: torch/_functorch/eager_transforms.py",
        needs="jvp vmap",
        fault="after an exception a transform stays active",
    ),
    Clause(
        "FUNC-16",
        "documented",
        "func.grad and grad_and_value give a tuple of gradients for a tuple of argnums and a gradient for a number, "
        "which may count from the end, then the value, and with has_aux what else the function returned.",
        "func: grad_and_value",
        quote="If argnums is a tuple of integers, a tuple of a tuple of the output gradients with respect to each "
        "argnums value and the forward computation is returned.",
        needs="jvp vmap",
        fault="grad_and_value gives one gradient alone",
    ),
    Clause(
        "FUNC-17",
        "documented",
        "jacrev gives the same Jacobians for any chunk_size, with 1 also through a backward that cannot be batched; "
        "jacrev and jacfwd return with has_aux what else the function returned.",
        "func: jacrev",
        quote="If 1, then compute the jacobian row-by-row with a for-loop. If not None, then compute the jacobian "
        "chunk_size rows at a time (equivalent to doing multiple vmap over vjp).",
        needs="jvp vmap numpy",
        fault="the last chunk of a Jacobian is left out",
    ),
    Clause(
        "FUNC-18",
        "documented",
        "A transform raises for an output that is not what it takes, as a vector for func.grad, and for argnums, "
        "tangents and cotangents that do not fit.",
        "func: jvp",
        quote="Must return a single-element Tensor. [...] Must be the same structure and sizes as the inputs to func.",
        needs="jvp vmap",
        fault="func.grad of a vector is that of its sum",
    ),
    Clause(
        "FUNC-19",
        "documented",
        "func.vjp takes functions that return a structure of tensors; func.linearize, which calls its function twice, "
        "gives its outputs, and a function that gives the tangents of jvp as often as it is called.",
        "func: linearize",
        quote="Returns a (output, jvp_fn) tuple containing the output of func applied to primals and a function that "
        "computes the jvp of func evaluated at primals.",
        needs="jvp vmap",
        fault="linearize gives the tangents of its first call again",
    ),
    Clause(
        "FUNC-20",
        "documented",
        "functionalize keeps results and changes of inputs, and those of func.grad within it, while no operation "
        "changes an intermediate or, if asked, gives a view.",
        "func: functionalize",
        quote="functionalize is a transform that can be used to remove (intermediate) mutations and aliasing from a "
        "function, while preserving the function's semantics.",
        needs="inplace views",
        fault="under functionalize inputs are not changed",
    ),
    Clause(
        "FUNC-21",
        "observed",
        "functionalize around a custom Function, or next to another transform of one, raises.",
        "source: torch/_functorch/autograd_function.py",
        needs="jvp vmap",
        fault="functionalize runs forward of a Function without its backward",
    ),
    Clause(
        "FUNC-22",
        "documented",
        "A transform of a function that calls autograd.grad or backward of a Function is right or raises.",
        "func: torch.autograd APIs",
        quote="the transform may not be able to transform over it. If it is unable to do so, you'll receive an error "
        "message.",
        needs="jvp vmap",
        fault="under a transform backward gives a gradient without a history",
    ),
    Clause(
        "FUNC-23",
        "documented",
        "functional_call gives the result of a module that has the given tensors for its parameters and buffers, with "
        "their gradients; it changes the given buffers, keeps the module's own, and raises for what is ambiguous.",
        "func: functional_call",
        quote="Performs a functional call on the module by replacing the module parameters and buffers with the "
        "provided ones.",
        needs="requires_grad vmap inplace",
        fault="functional_call leaves a tied weight as it was",
    ),
    Clause(
        "FUNC-24",
        "documented",
        "Under vmap a module with the stacked state of several has the results and gradients of each; the state is new "
        "leaves, and modules that are not alike raise.",
        "func: stack_module_state",
        quote="Given a list of M nn.Modules of the same class, returns two dictionaries that stack all of their "
        "parameters and buffers together, indexed by name. The stacked parameters are optimizable",
        needs="requires_grad vmap inplace",
        fault="stacked parameters require no grad",
    ),
    Clause(
        "FUNC-25",
        "documented",
        "jacobian and hessian of autograd.functional are the same row by row and vectorized, and by jvp in forward "
        "mode, which raises if not vectorized; a product with a vector of another size raises.",
        "autograd: Functional higher level API",
        quote='Set to "forward-mode" or "reverse-mode" to determine whether the Jacobian will be computed with forward '
        'or reverse mode AD. Currently, "forward-mode" requires vectorized=True.',
        needs="jvp double_backward",
        fault="what jacobian records is detached",
    ),
)
