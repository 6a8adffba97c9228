"""What is known not to hold of released PyTorch: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

DEVIATIONS = (
    Deviation(
        id="FWD-GRADFLAG",
        function="Select",
        what="requires_grad without grad mode",
        reason="a forward that returns a view of a leaf, called under no_grad, gives an output with requires_grad True "
        "and no grad_fn; the notes on no-grad mode say that results do not require grad",
        link="docs/source/notes/autograd.md, No-grad Mode",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="FN-05",
        what="requires_grad of the tensors that forward gets",
        reason="forward gets the very tensors that apply was given, with requires_grad True and their grad_fn; only "
        "grad mode is off",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html, Step 1",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="FN-12/keyword-only",
        what="a keyword-only argument",
        reason="apply raises TypeError: unexpected keyword argument; beside setup_context even if only the default "
        "is used",
        link="torch/csrc/autograd/python_function.cpp, THPFunction_apply",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="FN-12/kwargs",
        what="an argument for **kwargs",
        reason="apply raises TypeError: unexpected keyword argument, although the documented signature is "
        "forward(ctx, *args, **kwargs)",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="FN-12/skipped",
        what="a keyword after a skipped default",
        reason="keywords fill the positional parameters of a forward with ctx only without a gap: where a parameter "
        "with a default is left out before one that is given, apply raises TypeError: missing required argument",
        link="torch/csrc/autograd/python_function.cpp, THPFunction_apply",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="FN-21",
        what="what a class with a method that is not static gives",
        reason="methods are looked up on the class, so that undecorated ones work as if they were static",
        link="torch/csrc/autograd/python_function.cpp, THPFunction_apply",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="NIG-06",
        what="ctx.needs_input_grad in a partial backward",
        reason="the flags are fixed when forward runs: autograd.grad(y, inputs) leaves those of the other inputs True",
        link="https://github.com/pytorch/pytorch/issues/174017",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="GRAD-14/views",
        what="whether a later pass changed a cotangent",
        reason="backward() takes a view that a backward returned of its cotangent as the leaf's .grad, without copying "
        "it, and a later pass adds to it in place: the caller's cotangent changes",
        link="https://github.com/pytorch/pytorch/issues/34082",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="GRAD-15/views",
        what="whether .grad fields and the cotangent share memory",
        reason="backward() takes the views that a backward returned of one tensor as the .grad of two leaves, without "
        "copying them: what is later added to one is added to the other",
        link="https://github.com/pytorch/pytorch/issues/34082",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="DIRTY-06/behind-others",
        what="gradients of the arguments, for the view of its base, position 0",
        reason="CopySlices takes the first argument of a Function for the view that it changes: if the dirty view is "
        "another argument, those before it get no gradient and the base a wrong one, without an error",
        link="https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/functions/tensor.cpp",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="DIRTY-13",
        what="backward of a Function that changes what it has saved",
        reason="tensors are packed when forward is over, so that saved_tensors gives the changed values: the gradient "
        "is silently wrong",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="DIRTY-16",
        what="a change in place of a tensor that another shares memory with",
        reason="there is no error: views of the changed tensor are derived from its new history instead",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="BOX-04",
        what="second derivative through a boxed once-differentiable backward",
        reason="once_differentiable looks for a cotangent that requires grad among the arguments of backward, and not "
        "within the list that boxed_grads_call makes of them: a wrong second derivative and no error",
        link="source: torch/autograd/function.py, once_differentiable",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="SETUP-08",
        what="apply with keyword-only parameters",
        reason="apply binds every default and hands keyword-only arguments on to where none are taken: a TypeError, "
        "even if none of them is passed",
        link="https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.Function (forward has **kwargs)",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ONCE-03",
        what="grad of a gradient, unused inputs allowed",
        reason="the node that raises is not on the way to any input, so that autograd.grad never runs it: None with "
        "allow_unused=True and no error",
        link="source: torch/autograd/function.py, once_differentiable",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ONCE-04",
        what="second derivative beside other terms",
        reason="without a cotangent that requires grad the decorator adds no node that raises, and the term is left "
        "out: a wrong second derivative and no error",
        link="source: torch/autograd/function.py, once_differentiable: 'this is only an approximation'",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ONCE-05",
        what="nested func.grad",
        reason="as ONCE-04: the term's second derivative is zero under torch.func.grad(torch.func.grad(f))",
        link="source: torch/autograd/function.py, once_differentiable",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ONCE-07/grad",
        what="grad of a gradient beside other terms",
        reason="as ONCE-03: the node that raises is not on the way to an input, and the term is left out",
        link="source: torch/autograd/function.py, once_differentiable",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ONCE-07/inputs",
        what="backward of a gradient for some inputs",
        reason="as ONCE-07/grad, in backward(inputs=...)",
        link="source: torch/autograd/function.py, once_differentiable",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="DBL-05",
        what="second derivative through what is kept on ctx",
        reason="an attribute that is an input or an output keeps its history, and second derivatives flow through it; "
        "the note says that tensors stored on ctx will not have gradients flowing back for them",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#example",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="MODE-02/enable_grad",
        what="requires_grad of any output under inference_mode",
        reason="with enable_grad within inference_mode a custom Function is recorded, though no operation is: its "
        "outputs are inference tensors that require grad and have a grad_fn, which nothing can use",
        link="https://github.com/pytorch/pytorch/issues/77967",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="KINK-01/clamp",
        releases="<2.14",
        what="gradient",
        reason="clamp, clamp_min and clamp_max pass the whole gradient where the input equals a bound, unlike relu and "
        "hardtanh, and unlike the note on gradients of non-differentiable functions",
        link="https://github.com/pytorch/pytorch/issues/184572",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="KINK-01/fmax",
        releases="<2.14",
        what="gradient, position 0",
        reason="where both inputs of fmax or fmin are equal the first one gets the whole gradient, while maximum and "
        "minimum share it evenly, as the note on gradients of non-differentiable functions asks",
        link="docs/source/notes/autograd.md, Gradients for non-differentiable functions",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="JVP-07",
        what="a None from jvp for a floating output",
        reason="None is taken only for outputs that are not differentiable; for any other it dies of an internal assert"
        " that asks to report a bug",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.jvp.html",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="JVP-14/marked",
        what="gradcheck with check_forward_ad of a right jvp",
        reason="gradcheck compares the numerical Jacobians of the differentiable outputs with the forward-mode "
        "Jacobians of all floating ones: behind an output marked non-differentiable it compares the wrong pairs",
        link="torch/autograd/gradcheck.py, _get_analytical_jacobian_forward_ad",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="FUNC-07",
        what="whether a derivative flows through a tensor that is assigned to ctx",
        reason="inputs and outputs that are assigned to ctx, in lists and dicts too, are tracked all the same: nested "
        "func.grad gives the second derivative that the notes deny",
        link="https://docs.pytorch.org/docs/stable/notes/extending.func.html, Limitations and gotchas",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="FUNC-09",
        what="a transform of a Function that defines vjp",
        reason="transforms look for backward alone: NotImplementedError, though the error itself names vjp as the "
        "other method that may be implemented",
        link="torch/_functorch/autograd_function.py, generate_single_level_function",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="FUNC-10/vmap",
        what="a keyword-only argument under vmap",
        reason="with a generated batching rule keyword-only arguments are dropped without an error, and forward runs "
        "with its defaults: a wrong result",
        link="torch/_functorch/autograd_function.py, custom_function_call_vmap",
        versions="seen on 2.13.0; an error on 2.4.0",
    ),
    Deviation(
        id="ENG-01/constant",
        what="None as the cotangent of an output that does not require grad",
        reason="both functions document that None will do for outputs that do not require grad; the check of the "
        "cotangents lets it pass, and the engine then refuses the output itself",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html (grad_outputs)",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ENG-02/later-message",
        what="message of a cotangent of another shape than its output",
        reason="the message looks up the position with list.index, which compares tensors elementwise: for any output "
        "but the first it says that the truth of a tensor is ambiguous, or names another position",
        link="torch/autograd/__init__.py, _make_grads",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ENG-06",
        what="more cotangents than outputs",
        reason="cotangents and outputs are paired with zip, which drops the surplus in silence",
        link="torch/autograd/__init__.py, _make_grads",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="ENG-09/bare",
        releases="<2.8",
        what="a tensor as inputs",
        reason="backward takes the length of its inputs before it knows whether they are a single tensor: a TypeError "
        "if that tensor has no dimensions",
        link="https://github.com/pytorch/pytorch/issues/150883",
        versions="seen on 2.4.0; held on 2.13.0",
    ),
    Deviation(
        id="NODE-03",
        what="grad_fn.metadata()",
        reason="the documentation shows a method; metadata is an attribute that holds the dictionary, so that calling "
        "it is a TypeError, on built-in nodes too",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="NODE-05/node",
        what="whether the tensors are alive that PolynomialBackward saved, while only the node is held",
        reason="a comment in get_gradient_edge says that the Python object of a custom node does not keep the graph "
        "alive; it does, and all that it saved",
        link="torch/autograd/graph.py, get_gradient_edge",
        versions="seen on 2.13.0; held on 2.4.0",
    ),
    Deviation(
        id="HOOK-06/retain_grad",
        what="whether pre-hooks see a retained .grad",
        reason="the .grad of an output that retains it is set before the node's pre-hooks run; the notes on the order "
        "of hooks say after them",
        link="docs/source/notes/autograd.md, The order in which the different hooks are fired",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="HOOK-10/grad",
        what="autograd.grad where its inputs have a hook in mode all",
        reason="a hook in mode all on a leaf among the inputs of autograd.grad raises: not supported",
        link="https://github.com/pytorch/pytorch/issues/131753",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="HOOK-10/roots",
        what="number of calls of a hook on an output and leaves",
        reason="the node of the only tensor that a pass starts from does not count as one that will run, so that a "
        "hook in mode all on that tensor and others fires too early, and again",
        link="torch/autograd/graph.py, register_multi_grad_hook; torch/csrc/autograd/engine.cpp, compute_dependencies",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="HOOK-10/unused",
        what="gradients that a hook in mode any gets, position 0",
        reason="hooks of unused outputs are called with None, and a hook in mode any takes that for the first gradient",
        link="torch/autograd/graph.py, register_multi_grad_hook",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="PACK-07",
        what="access to a saved tensor that was changed, under hooks",
        reason="the version of a saved tensor is not checked where hooks packed it: with a hook that does not copy, "
        "the gradients are silently those of the changed value",
        link="docs/source/notes/autograd.md, In-place correctness checks; torch/csrc/autograd/saved_variable.cpp",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="CKPT-04",
        what="checkpoint without use_reentrant",
        reason="use_reentrant is still True if it is not given, with a warning that 2.9 will make this an error",
        link="torch/utils/checkpoint.py, checkpoint",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="AMP-03/float64",
        what="dtypes of double factors in forward",
        reason="cast_inputs leaves tensors of double precision as they are; the documentation excepts only those that "
        "are not floating-point",
        link="torch/amp/autocast_mode.py, _cast",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="AMP-04",
        what="bare custom_fwd and custom_bwd",
        reason="device_type has no default, so that the bare decorators of the printed example raise a TypeError",
        link="docs/source/notes/amp_examples.md, Functions with multiple inputs or autocastable ops",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="CHECK-04",
        what="gradcheck of a backward that cannot handle None",
        reason="only a RuntimeError of backward becomes a GradcheckError; a TypeError, AttributeError or "
        "AssertionError about a cotangent None comes out as it is, even with raise_exception=False",
        link="torch/autograd/gradcheck.py, _test_undefined_backward_mode",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="CHECK-05/other",
        what="gradcheck of a gradient of another dtype",
        reason="the engine casts the gradient that backward returns to its input's dtype before check_grad_dtypes "
        "looks at it",
        link="torch/autograd/gradcheck.py, _check_analytical_jacobian_attributes",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="CHECK-06/integers",
        what="gradcheck of a Function with an output that is not differentiable",
        reason="an integer output before a float one is an IndexError: the numerical Jacobians, which are of floating "
        "outputs alone, are paired with all outputs",
        link="torch/autograd/gradcheck.py, _slow_gradcheck, [numerical vs analytical output length]",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="CHECK-06/marked",
        releases="<2.15",
        what="gradcheck of a Function with an output that is not differentiable",
        reason="in fast mode the numerical derivatives of all floating outputs are paired with the analytical ones of "
        "differentiable outputs, so that a marked output before another makes a right backward fail",
        link="torch/autograd/gradcheck.py, _fast_gradcheck",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="COMPILE-01/parent",
        releases="<2.15",
        what="tracing a Function into one graph",
        reason="a backward that calls the backward of its parent class ends in an AssertionError of the compiler, with "
        "or without fullgraph",
        link="torch/_dynamo/variables/misc.py, AutogradFunctionVariable",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="COMPILE-02/argument",
        what="gradients of compiled code, position 0",
        reason="ahead of time, a change that forward makes to an argument of the compiled code is copied back without "
        "a history: the gradients are silently those of a Function that changes nothing",
        link="torch/_functorch/_aot_autograd/runtime_wrappers.py",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="COMPILE-04/forward",
        releases="<2.14",
        what="tangents of compiled code, position 0",
        reason="if no argument requires grad the compiler inlines forward, without looking whether there is a jvp: the "
        "tangents are silently those of forward's operations",
        link="torch/_dynamo/variables/misc.py, AutogradFunctionVariable.call_apply",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="COMPILE-06/one",
        what="gradient of compiled code",
        reason="of a Function with one output the compiled backward gets the cotangent instead of a list of it, so "
        "that grads[0] is its first element: silently wrong, with fullgraph too",
        link="torch/_dynamo/variables/higher_order_ops.py, AutogradFunctionApplyVariable",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="COMPILE-08",
        what="second derivatives through compiled code, position 0",
        reason="the backward of the traced graph runs without recording: with backend eager the second derivative is "
        "silently left out",
        link="torch/_dynamo/variables/higher_order_ops.py, AutogradFunctionApplyVariable",
        versions="seen on 2.4.0 and 2.13.0",
    ),
    Deviation(
        id="COMPILE-09/strict",
        releases=">=2.5",
        what="requires_grad of the outputs of the traced function",
        reason="strict export keeps the no_grad mode in which forward ran, so that nothing can be differentiated "
        "through the exported program",
        link="torch/_functorch/autograd_function.py, DynamoAutogradFunctionTraceHelper",
        versions="seen on 2.13.0; held on 2.4.0",
    ),
    Deviation(
        id="LIB-01/needs_input_grad",
        what="ctx.needs_input_grad of an operator with three inputs, in setup_context and in backward",
        reason="in setup_context of an operator ctx.needs_input_grad has one flag more than inputs, and there as in "
        "backward it has none for an argument that was left out or equals its default",
        link="torch/_library/autograd.py, make_autograd_impl",
        versions="seen on 2.13.0",
    ),
)
