"""What is known not to hold of released PyTorch: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

DEVIATIONS = (
    Deviation(
        id="FWD-GRADFLAG",
        function="Select",
        what="requires_grad without grad mode",
        reason="a forward that returns a view of a leaf, called under no_grad, gives an output with requires_grad "
        "True and no grad_fn",
        promise="In this mode, the result of every computation will have requires_grad=False, even when the inputs "
        "have requires_grad=True.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="view_under_no_grad_requires_grad.py",
    ),
    Deviation(
        id="BATCH-VMAP/cotangents",
        function="LLTM Select Conv2D FusedConvBN",
        what="refused in every example: RuntimeError: Batching rule not implemented for aten::concat. *",
        reason="grad with is_grads_batched refuses a backward that calls torch.concat, while torch.cat, which is the "
        "same, is batched; the feature is called experimental, and which operations it knows is not said",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="batched_cotangents_of_concat.py",
        always=True,
    ),
    Deviation(
        id="BATCH-VMAP/cotangents",
        function="NumpyTake NumpySort ScipyConv2d",
        what="refused in every example: RuntimeError: Batching rule not implemented for aten::detach; *",
        reason="grad with is_grads_batched refuses a backward that computes with NumPy, since it runs once, on a "
        "tensor that stands for the whole batch and has no array to give",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="batched_cotangents_of_numpy.py",
        always=True,
    ),
    Deviation(
        id="ENV-AUTOCAST",
        function="QKVProjection",
        what="refused in every example: RuntimeError: expected m1 and m2 to have the same dtype, *",
        reason="the printed Function multiplies in lower precision under autocast, while its backward runs outside of "
        "it and multiplies the cotangent with the saved weight; its documentation leaves out custom_fwd and "
        "custom_bwd, which it needs there",
        link="https://docs.pytorch.org/docs/stable/notes/amp_examples.html"
        "#functions-with-multiple-inputs-or-autocastable-ops",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="autocast_of_a_matrix_product.py",
        always=True,
    ),
    Deviation(
        id="FN-05",
        what="requires_grad of the tensors that forward gets",
        reason="forward gets the very tensors that apply was given, with requires_grad True and their grad_fn; only "
        "grad mode is off",
        promise="Tensor arguments that track history (i.e., with requires_grad=True) will be converted to ones that "
        "don't track history before the call, and their use will be registered in the graph.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="forward_gets_tracking_tensors.py",
    ),
    Deviation(
        id="FN-12/keyword-only",
        what="a keyword-only argument",
        reason="apply raises TypeError: unexpected keyword argument; an explanation of the compiler (graph break "
        "GB4372) says that apply does not support keyword-only arguments",
        link="https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/python_function.cpp",
        versions="seen on 2.13.0, 2.14.1 and 2.15.0",
        script="keyword_only_parameters.py",
    ),
    Deviation(
        id="FN-12/kwargs",
        what="an argument for **kwargs",
        reason="apply raises TypeError: unexpected keyword argument, beside setup_context too",
        promise="Override forward with the signature forward(ctx, *args, **kwargs).",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.setup_context.html",
        versions="seen on 2.13.0, 2.14.1 and 2.15.0",
        script="kwargs_parameter.py",
    ),
    Deviation(
        id="FN-12/skipped",
        what="a keyword after a skipped default",
        reason="keywords fill the positional parameters of a forward with ctx only without a gap: where a parameter "
        "with a default is left out before one that is given, apply raises TypeError: missing required argument",
        link="https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/python_function.cpp",
        versions="seen on 2.13.0, 2.14.1 and 2.15.0",
        script="keyword_after_skipped_default.py",
    ),
    Deviation(
        id="FN-21",
        what="what a class with a method that is not static gives",
        reason="methods are looked up on the class, so that undecorated ones work as if they were static; the "
        "documentation shows static methods and does not say that others are refused",
        link="https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/python_function.cpp",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="methods_without_staticmethod.py",
    ),
    Deviation(
        id="NIG-06",
        what="ctx.needs_input_grad in a partial backward",
        reason="the flags are fixed when forward runs: autograd.grad(y, inputs) leaves those of the other inputs True",
        promise="If your inputs didn't require gradient (ctx.needs_input_grad is a tuple of booleans indicating "
        "whether each input needs gradient computation), or were non-Tensor objects, you can return None.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use, "
        "https://github.com/pytorch/pytorch/issues/174017",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="needs_input_grad_in_partial_backward.py",
    ),
    Deviation(
        id="GRAD-14/views",
        what="whether a later pass changed a cotangent",
        reason="backward() takes a view that a backward returned of its cotangent as the leaf's .grad, without "
        "copying it, and a later pass adds to it in place: the caller's cotangent changes",
        link="https://github.com/pytorch/pytorch/issues/34082",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="grad_is_a_view_of_the_cotangent.py",
    ),
    Deviation(
        id="GRAD-15/views",
        what="whether .grad fields and the cotangent share memory",
        reason="backward() takes the views that a backward returned of one tensor as the .grad of two leaves, without "
        "copying them: what is later added to one is added to the other",
        link="https://github.com/pytorch/pytorch/issues/34082",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="grad_is_a_view_of_the_cotangent.py",
    ),
    Deviation(
        id="DIRTY-06/behind-others",
        what="gradients of the arguments, for the view of its base, position 0",
        reason="CopySlices takes the first argument of a Function for the view that it changes: if the dirty view is "
        "another argument, those before it get no gradient and the base a wrong one, without an error",
        promise="This ensures that if you're using in-place functions and not seeing any errors, you can be sure that "
        "the computed gradients are correct.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="dirty_view_behind_another_argument.py",
    ),
    Deviation(
        id="DIRTY-13",
        what="backward of a Function that changes what it has saved",
        reason="tensors are packed when forward is over, so that saved_tensors gives the changed values: the gradient "
        "is silently wrong",
        promise="Before returning them to the user, a check is made to ensure they weren't used in any in-place "
        "operation that modified their content.",
        link=""
        "https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="saved_before_change_in_forward.py",
    ),
    Deviation(
        id="DIRTY-16",
        what="a change in place of a tensor that another shares memory with",
        reason="there is no error: views of the changed tensor are derived from its new history instead",
        promise="This can be tricky, especially if there are many Tensors that reference the same storage (e.g. "
        "created by indexing or transposing), and in-place functions will raise an error if the storage of modified "
        "inputs is referenced by any other Tensor.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="changed_storage_that_others_refer_to.py",
    ),
    Deviation(
        id="BOX-04",
        what="second derivative through a boxed once-differentiable backward",
        reason="once_differentiable looks for a cotangent that requires grad among the arguments of backward, and not "
        "within the list that boxed_grads_call makes of them: a wrong second derivative and no error",
        promise="With this decorator, attempts to perform double backward through your function will produce an error.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.13.0, 2.14.1 and 2.15.0",
        script="once_differentiable_boxed.py",
    ),
    Deviation(
        id="SETUP-08",
        what="apply with keyword-only parameters",
        reason="apply binds every default and hands keyword-only arguments on to where none are taken: a TypeError, "
        "even if none of them is passed",
        link="https://github.com/pytorch/pytorch/blob/main/torch/autograd/function.py",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="keyword_only_parameters.py",
    ),
    Deviation(
        id="ONCE-03",
        what="grad of a gradient, unused inputs allowed",
        reason="the node that raises is not on the way to any input, so that autograd.grad never runs it: None with "
        "allow_unused=True and no error",
        promise="With this decorator, attempts to perform double backward through your function will produce an error.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="once_differentiable_behind_grad.py",
    ),
    Deviation(
        id="ONCE-04",
        what="second derivative beside other terms",
        reason="without a cotangent that requires grad the decorator adds no node that raises ('this is only an "
        "approximation', says its source), and the term is left out: a wrong second derivative and no error",
        promise="With this decorator, attempts to perform double backward through your function will produce an error.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="once_differentiable_behind_a_constant_cotangent.py",
    ),
    Deviation(
        id="ONCE-05",
        what="nested func.grad",
        reason="as ONCE-04: the term's second derivative is zero under torch.func.grad(torch.func.grad(f))",
        promise="With this decorator, attempts to perform double backward through your function will produce an error.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="once_differentiable_behind_a_constant_cotangent.py",
    ),
    Deviation(
        id="ONCE-07/grad",
        what="grad of a gradient beside other terms",
        reason="as ONCE-03: the node that raises is not on the way to an input, and the term is left out",
        promise="With this decorator, attempts to perform double backward through your function will produce an error.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="once_differentiable_behind_grad.py",
    ),
    Deviation(
        id="ONCE-07/inputs",
        what="backward of a gradient for some inputs",
        reason="as ONCE-07/grad, in backward(inputs=...)",
        promise="With this decorator, attempts to perform double backward through your function will produce an error.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="once_differentiable_behind_grad.py",
    ),
    Deviation(
        id="DBL-05",
        what="second derivative through what is kept on ctx",
        reason="an attribute that is an input or an output keeps its history, and second derivatives flow through it",
        promise="In this case, the tensors saved with save_for_backward can also be used in the backward and have "
        "gradients flowing back but tensors saved in the ctx won't have gradients flowing back for them.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#example",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="kept_on_ctx.py",
    ),
    Deviation(
        id="MODE-02/enable_grad",
        what="requires_grad of any output under inference_mode",
        reason="with enable_grad within inference_mode a custom Function is recorded, though no operation is: its "
        "outputs are inference tensors that require grad and have a grad_fn, which nothing can use",
        promise="requires_grad is always overridden to be False in both the two other modes.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#grad-modes, "
        "https://github.com/pytorch/pytorch/issues/77967",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="enable_grad_in_inference_mode.py",
    ),
    Deviation(
        id="KINK-01/clamp",
        releases="<2.14",
        what="gradient",
        reason="clamp, clamp_min and clamp_max pass the whole gradient where the input equals a bound, unlike relu "
        "and hardtanh",
        promise="If the function is convex (at least locally), use a subgradient of minimum norm.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions, "
        "https://github.com/pytorch/pytorch/issues/184572",
        versions="seen on 2.4.0, 2.8.0 and 2.13.0; held on 2.14.1 and 2.15.0",
        script="clamp_at_its_bound.py",
    ),
    Deviation(
        id="KINK-01/fmax",
        releases="<2.14",
        what="gradient, position 0",
        reason="where both inputs of fmax or fmin are equal the first one gets the whole gradient, while maximum and "
        "minimum share it evenly",
        promise="If the function is convex (at least locally), use a subgradient of minimum norm.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions",
        versions="seen on 2.4.0, 2.8.0 and 2.13.0; held on 2.14.1 and 2.15.0",
        script="fmax_of_equal_inputs.py",
    ),
    Deviation(
        id="JVP-07",
        what="a None from jvp for a floating output",
        reason="None is taken only for outputs that are not differentiable; for any other it dies of an internal "
        "assert that asks to report a bug",
        promise="If an output is not a Tensor or the function is not differentiable with respect to that output, you "
        "can just pass None as a gradient for that input.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.jvp.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="jvp_returns_none.py",
    ),
    Deviation(
        id="JVP-14/marked",
        what="gradcheck with check_forward_ad of a right jvp",
        reason="gradcheck compares the numerical Jacobians of the differentiable outputs with the forward-mode "
        "Jacobians of all floating ones: behind an output marked non-differentiable it compares the wrong pairs",
        promise="check_forward_ad (bool, optional) - if True, check that the gradients computed with forward mode AD "
        "match the numerical ones.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="gradcheck_of_jvp_behind_a_marked_output.py",
    ),
    Deviation(
        id="FUNC-07",
        what="whether a derivative flows through a tensor that is assigned to ctx",
        reason="inputs and outputs that are assigned to ctx, in lists and dicts too, are tracked all the same; the "
        "notes say that they will not get tracked, and also that what comes of it is undefined",
        link="https://docs.pytorch.org/docs/stable/notes/extending.func.html#limitations-and-gotchas",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="kept_on_ctx_under_func_grad.py",
    ),
    Deviation(
        id="FUNC-09",
        what="a transform of a Function that defines vjp",
        reason="transforms look for backward alone: NotImplementedError, though the error itself names vjp as the "
        "other method that may be implemented",
        promise="Defining this function is equivalent to defining the vjp function.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="vjp_under_transforms.py",
    ),
    Deviation(
        id="FUNC-10/vmap",
        what="a keyword-only argument under vmap",
        reason="with a generated batching rule keyword-only arguments are dropped without an error, and forward runs "
        "with its defaults: a wrong result",
        link="https://github.com/pytorch/pytorch/blob/main/torch/_functorch/autograd_function.py",
        versions="seen on 2.8.0, 2.13.0, 2.14.1 and 2.15.0; an error on 2.4.0",
        script="keyword_only_under_vmap.py",
    ),
    Deviation(
        id="ENG-01/constant",
        what="None as the cotangent of an output that does not require grad",
        reason="the check of the cotangents lets None pass, and the engine then refuses the output itself, in grad "
        "and in backward",
        promise="None values can be specified for scalar Tensors or ones that don't require grad.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="none_for_a_constant_output.py",
    ),
    Deviation(
        id="ENG-02/later-message",
        what="message of a cotangent of another shape than its output",
        reason="the message looks up the position with list.index, which compares tensors elementwise: for any output "
        "but the first it says that the truth of a tensor is ambiguous, or names another position",
        link="https://github.com/pytorch/pytorch/blob/main/torch/autograd/__init__.py",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="message_of_a_misshapen_cotangent.py",
    ),
    Deviation(
        id="ENG-06",
        what="more cotangents than outputs",
        reason="cotangents and outputs are paired with zip, which drops the surplus in silence; the documentation "
        "asks the caller for matching lengths and does not promise a check",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="surplus_cotangents.py",
    ),
    Deviation(
        id="ENG-09/bare",
        releases="<2.8",
        what="a tensor as inputs",
        reason="backward takes the length of its inputs before it knows whether they are a single tensor: a TypeError "
        "if that tensor has no dimensions",
        promise="inputs (Sequence[Tensor] or Tensor or Sequence[GradientEdge], optional) - Inputs w.r.t. which the "
        "gradient be accumulated into .grad.",
        link="https://docs.pytorch.org/docs/2.4/generated/torch.autograd.backward.html, "
        "https://github.com/pytorch/pytorch/issues/150883",
        versions="seen on 2.4.0; held on 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="bare_tensor_as_inputs.py",
    ),
    Deviation(
        id="NODE-03",
        what="grad_fn.metadata()",
        reason="the documentation shows a method; metadata is an attribute that holds the dictionary, so that calling "
        "it is a TypeError, on built-in nodes too",
        promise="Node.metadata(): Return the metadata.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="node_metadata.py",
    ),
    Deviation(
        id="NODE-05/node",
        what="whether the tensors are alive that PolynomialBackward saved, while only the node is held",
        reason="a comment in get_gradient_edge says that the Python object of a custom node does not keep the graph "
        "alive; it does, and all that it saved",
        link="https://github.com/pytorch/pytorch/blob/main/torch/autograd/graph.py",
        versions="seen on 2.13.0, 2.14.1 and 2.15.0; held on 2.4.0 and 2.8.0",
        script="node_keeps_the_graph_alive.py",
    ),
    Deviation(
        id="HOOK-06/retain_grad",
        what="whether pre-hooks see a retained .grad",
        reason="the .grad of an output that retains it is set before the node's pre-hooks run",
        promise="The order in which things happen are: 1. hooks registered to Tensor are executed 2. pre-hooks "
        "registered to Node are executed (if Node is executed). 3. the .grad field is updated for Tensors that "
        "retain_grad",
        link=""
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#the-order-in-which-the-different-hooks-are-fired",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="prehook_sees_retained_grad.py",
    ),
    Deviation(
        id="HOOK-10/grad",
        what="autograd.grad where its inputs have a hook in mode all",
        reason="a hook in mode all on a leaf among the inputs of autograd.grad raises: not supported, though the "
        "documentation speaks of grad as of backward",
        promise="If a tensor is in tensors but is not part of the graph, or if a tensor is not needed to compute the "
        "gradients for any inputs specified for the current .backward() or .grad() call, this tensor will be ignored "
        "and the hook will not wait for its gradient to be computed.",
        link="https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook, "
        "https://github.com/pytorch/pytorch/issues/131753",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="multi_grad_hook_in_autograd_grad.py",
    ),
    Deviation(
        id="HOOK-10/roots",
        what="number of calls of a hook on an output and leaves",
        reason="the node of the only tensor that a pass starts from does not count as one that will run, so that a "
        "hook in mode all on that tensor and others fires too early, and again",
        promise="After every non-ignored tensor's gradient has been computed, fn will be called with those gradients.",
        link="https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="multi_grad_hook_on_the_root.py",
    ),
    Deviation(
        id="HOOK-10/unused",
        what="gradients that a hook in mode any gets, position 0",
        reason="hooks of unused outputs are called with None, and a hook in mode any takes that for the first gradient",
        promise='Under the "any" mode, the hook will be called after the first gradient with respect to a tensor in '
        "tensors has been computed.",
        link="https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="multi_grad_hook_any_gets_none.py",
    ),
    Deviation(
        id="PACK-07",
        what="access to a saved tensor that was changed, under hooks",
        reason="the version of a saved tensor is not checked where hooks packed it: with a hook that does not copy, "
        "the gradients are silently those of the changed value",
        promise="This ensures that if you're using in-place functions and not seeing any errors, you can be sure that "
        "the computed gradients are correct.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="change_of_a_saved_tensor_under_hooks.py",
    ),
    Deviation(
        id="CKPT-04",
        releases="<2.15",
        what="checkpoint without use_reentrant",
        reason="use_reentrant is still True if it is not given, with a warning",
        promise="In version 2.9 we will raise an exception if use_reentrant is not passed.",
        link="https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.checkpoint",
        versions="seen on 2.13.0 and 2.14.1",
        script="checkpoint_without_use_reentrant.py",
    ),
    Deviation(
        id="CKPT-04",
        releases=">=2.15",
        what="checkpoint without use_reentrant",
        reason="use_reentrant is still True if it is not given, with a warning; the documentation has put the "
        "exception off to a future release",
        link="https://docs.pytorch.org/docs/2.15/checkpoint.html#torch.utils.checkpoint.checkpoint",
        versions="seen on 2.15.0",
        script="checkpoint_without_use_reentrant.py",
    ),
    Deviation(
        id="AMP-03/float64",
        what="dtypes of double factors in forward",
        reason="cast_inputs leaves tensors of double precision as they are",
        promise="If not None, when forward runs in an autocast-enabled region, casts incoming floating-point Tensors "
        "to the target dtype (non-floating-point Tensors are not affected), then executes forward with autocast "
        "disabled.",
        link="https://docs.pytorch.org/docs/stable/amp.html#torch.amp.custom_fwd",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="cast_inputs_of_double_precision.py",
    ),
    Deviation(
        id="AMP-04",
        what="bare custom_fwd and custom_bwd",
        reason="device_type has no default, so that the bare decorators of the printed example raise a TypeError",
        promise="Apply custom_fwd and custom_bwd (with no arguments) to forward and backward respectively.",
        link=""
        "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#functions-with-multiple-inputs-or-autocastable-ops",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="bare_custom_fwd.py",
    ),
    Deviation(
        id="CHECK-04",
        what="gradcheck of a backward that cannot handle None",
        reason="only a RuntimeError of backward becomes a GradcheckError; a TypeError, AttributeError or "
        "AssertionError about a cotangent None comes out as it is, even with raise_exception=False",
        promise="raise_exception (bool, optional) - indicating whether to raise an exception if the check fails.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="gradcheck_of_a_backward_without_none.py",
    ),
    Deviation(
        id="CHECK-05/other",
        what="gradcheck of a gradient of another dtype",
        reason="the engine casts the gradient that backward returns to its input's dtype before check_grad_dtypes "
        "looks at it; no document says what check_grad_dtypes checks",
        link="https://github.com/pytorch/pytorch/blob/main/torch/autograd/gradcheck.py",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="gradcheck_of_gradient_dtypes.py",
    ),
    Deviation(
        id="CHECK-06/integers",
        what="gradcheck of a Function with an output that is not differentiable",
        reason="an integer output before a float one is an IndexError: the numerical Jacobians, which are of floating "
        "outputs alone, are paired with all outputs",
        promise="func (function) - a Python function that takes Tensor inputs and returns a Tensor or a tuple of "
        "Tensors",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="gradcheck_of_an_integer_output.py",
    ),
    Deviation(
        id="CHECK-06/marked",
        releases="<2.15",
        what="gradcheck of a Function with an output that is not differentiable",
        reason="in fast mode the numerical derivatives of all floating outputs are paired with the analytical ones of "
        "differentiable outputs, so that a marked output before another makes a right backward fail",
        promise="Returns: True if all differences satisfy allclose condition",
        link="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0 and 2.14.1; held on 2.15.0",
        script="gradcheck_fast_of_a_marked_output.py",
    ),
    Deviation(
        id="COMPILE-01/parent",
        releases="<2.15",
        what="tracing a Function into one graph",
        reason="a backward that calls the backward of its parent class ends in an AssertionError of the compiler, "
        "with or without fullgraph",
        promise="Using torch.compile(fullgraph=False) (the default) is a good way to get started with torch.compile: "
        "it supports all Python programs out-of-the-box via the ability to graph break and gives good performance on "
        "common cases.",
        link=""
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.fullgraph_true.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0 and 2.14.1; held on 2.15.0",
        script="compiled_backward_calls_its_parents.py",
    ),
    Deviation(
        id="COMPILE-02/argument",
        what="gradients of compiled code, position 0",
        reason="ahead of time, a change that forward makes to an argument of the compiled code, which it returns, is "
        "copied back without a history: the gradients are silently those of a Function that changes nothing",
        promise="Supported methods are `__setattr__`, `save_for_backward`, `mark_dirty` and `mark_non_differentiable`.",
        link="https://meta-pytorch.org/compile-graph-break-site/gb/gb0139.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="compiled_mark_dirty_of_an_argument.py",
    ),
    Deviation(
        id="COMPILE-04/forward",
        releases="<2.14",
        what="tangents of compiled code, position 0",
        reason="if no argument requires grad the compiler inlines forward, without looking whether there is a jvp: "
        "the tangents are silently those of forward's operations",
        promise="Given a Python function, Dynamo Tracing captures a graph of Tensor operations and residual bytecode "
        "that when combined give the same semantics as the Python function.",
        link="https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/"
        "programming_model.non_strict_tracing_model.html, https://github.com/pytorch/pytorch/issues/192985",
        versions="seen on 2.4.0, 2.8.0 and 2.13.0; held on 2.14.1 and 2.15.0",
        script="compiled_jvp.py",
    ),
    Deviation(
        id="COMPILE-06/one",
        what="gradient of compiled code",
        reason="of a Function with one output the compiled backward gets the cotangent instead of a list of it, so "
        "that grads[0] is its first element: silently wrong, with fullgraph too",
        promise="When set to True on the Function subclass, backward receives grads as a single mutable list argument "
        "instead of individual args in an immutable tuple.",
        link="https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use",
        versions="seen on 2.13.0, 2.14.1 and 2.15.0",
        script="compiled_boxed_backward.py",
    ),
    Deviation(
        id="COMPILE-08",
        what="second derivatives through compiled code, position 0",
        reason="the backward of the traced graph runs without recording: with backend eager the second derivative is "
        "silently left out; no document promises it, and one says that torch.compile has different autograd semantics",
        link="https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_backward.html",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="compiled_second_derivative.py",
    ),
    Deviation(
        id="COMPILE-09/strict",
        releases=">=2.5",
        what="requires_grad of the outputs of the traced function",
        reason="strict export keeps the no_grad mode in which forward ran, so that nothing can be differentiated "
        "through the exported program",
        promise="This Training IR, which may contain mutations, is designed for training use cases and can be used "
        "with eager PyTorch Autograd.",
        link="https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export.html#training-ir-default",
        versions="seen on 2.8.0, 2.13.0, 2.14.1 and 2.15.0; held on 2.4.0",
        script="strict_export_of_a_function.py",
    ),
    Deviation(
        id="LIB-01/needs_input_grad",
        what="ctx.needs_input_grad of an operator with three inputs, in setup_context and in backward",
        reason="in setup_context of an operator ctx.needs_input_grad has one flag more than inputs, and there as in "
        "backward it has none for an argument that was left out or equals its default",
        promise="The ctx object is the same ctx object used by torch.autograd.Function.",
        link="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd",
        versions="seen on 2.4.0, 2.8.0, 2.13.0, 2.14.1 and 2.15.0",
        script="needs_input_grad_of_an_operator.py",
    ),
)
