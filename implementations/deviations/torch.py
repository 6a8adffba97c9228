"""The known deviations of released PyTorch: reported as `known` while they show, as `fixed` once they do not."""

from __future__ import annotations

from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Frequency, Grade, Raised, Refused

_SINCE_2_13 = ("2.13.0", "2.14.1", "2.15.0")
_TO_2_14 = ("2.13.0", "2.14.1")
_EVERYWHERE = ("2.4.0", "2.8.0", *_SINCE_2_13)

_DOCS = "https://docs.pytorch.org/docs/stable/"
_SOURCE = "https://github.com/pytorch/pytorch/blob/main/"
_ISSUES = "https://github.com/pytorch/pytorch/issues/"
_TRACING = (
    "Given a Python function, Dynamo Tracing captures a graph of Tensor operations and residual bytecode that when "
    "combined give the same semantics as the Python function."
)
_GRAPH_BREAKS = (
    "Using torch.compile(fullgraph=False) (the default) is a good way to get started with torch.compile: it supports "
    "all Python programs out-of-the-box via the ability to graph break and gives good performance on common cases."
)
_GENERATES = (
    "If your torch.autograd.Function fulfills the following additional constraints, then we are able to generate a "
    "vmap rule for it."
)
_ONCE = "With this decorator, attempts to perform double backward through your function will produce an error."
_AT_KINKS = (
    "To try and reduce the impact of functions that are non-differentiable, we define the gradients of the elementary "
    "operations by applying the following rules in order: [...] If the function is convex (at least locally), use a "
    "subgradient of minimum norm."
)
_WHILE = "`while_loop` is equivalent to the following"
_GRADCHECK = "Returns: True if all differences satisfy allclose condition"

_GRAD_IS_A_VIEW_OF_THE_COTANGENT = Cause(
    grade=Grade.WRONG,
    reason="if a backward returns views of its cotangent, backward() takes them as the .grad of leaves "
    "without copying them: adding to one .grad later changes the caller's cotangent, and the "
    ".grad of other leaves",
    promise="The attribute will then contain the gradients computed and future calls to backward() will "
    "accumulate (add) gradients into it.",
    link=f"{_DOCS}generated/torch.Tensor.grad.html, {_ISSUES}34082",
    script="grad_is_a_view_of_the_cotangent.py",
    seen=_EVERYWHERE,
)

_ONCE_DIFFERENTIABLE_BEHIND_GRAD = Cause(
    grade=Grade.WRONG,
    reason="the node that raises is not on the way to any requested input, so neither autograd.grad nor "
    "backward(inputs=...) runs it: the term is left out without an error (None with "
    "allow_unused=True)",
    promise=_ONCE,
    link=f"{_DOCS}notes/extending.html#how-to-use",
    script="once_differentiable_behind_grad.py",
    seen=_EVERYWHERE,
)

_ONCE_DIFFERENTIABLE_BEHIND_A_CONSTANT_COTANGENT = Cause(
    grade=Grade.WRONG,
    reason="if no cotangent requires grad, the decorator adds no node that raises (its source says 'this "
    "is only an approximation'), and the term is left out: the second derivative is wrong without "
    "an error, also under torch.func.grad(torch.func.grad(f))",
    promise=_ONCE,
    link=f"{_DOCS}notes/extending.html#how-to-use",
    script="once_differentiable_behind_a_constant_cotangent.py",
    seen=_EVERYWHERE,
)

DEVIATIONS = (
    Deviation(
        ids=("FWD-GRADFLAG",),
        functions=("Select",),
        shows=(Found("requires_grad without grad mode"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a forward that returns a view of a leaf, called under no_grad, gives an output with "
            "requires_grad True and no grad_fn",
            promise="In this mode, the result of every computation will have requires_grad=False, even when the "
            "inputs have requires_grad=True.",
            link=f"{_DOCS}generated/torch.no_grad.html",
            script="view_under_no_grad_requires_grad.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP/cotangents",),
        functions=("LLTM", "Select", "Conv2D", "FusedConvBN"),
        shows=(Refused("RuntimeError", starting="Batching rule not implemented for aten::concat. "),),
        frequency=Frequency.ALWAYS,
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="grad with is_grads_batched refuses a backward that calls torch.concat, but batches "
            "torch.cat, which is the same operation; the feature is called experimental, and no document "
            "says which operations it supports",
            link=f"{_DOCS}generated/torch.autograd.grad.html",
            script="batched_cotangents_of_concat.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("BATCH-VMAP/cotangents",),
        functions=("NumpyTake", "NumpySort", "ScipyConv2d"),
        shows=(Refused("RuntimeError", starting="Batching rule not implemented for aten::detach; "),),
        frequency=Frequency.ALWAYS,
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="grad with is_grads_batched refuses a backward that computes with NumPy: backward runs once, "
            "on a tensor that stands for the complete batch and cannot be converted to an array",
            link=f"{_DOCS}generated/torch.autograd.grad.html",
            script="batched_cotangents_of_numpy.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("ENV-AUTOCAST",),
        functions=("QKVProjection",),
        shows=(Refused("RuntimeError", starting="expected m1 and m2 to have the same dtype, "),),
        frequency=Frequency.ALWAYS,
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the printed Function multiplies in lower precision under autocast, but its backward runs "
            "outside of autocast and multiplies the cotangent by the saved weight; its documentation "
            "leaves out custom_fwd and custom_bwd, which it needs there",
            link=f"{_DOCS}notes/amp_examples.html#functions-with-multiple-inputs-or-autocastable-ops",
            script="autocast_of_a_matrix_product.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("FN-05",),
        shows=(Found("requires_grad of the tensors that forward gets"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="forward gets the same tensor objects as apply, with requires_grad True and their grad_fn; "
            "only grad mode is off",
            promise="Tensor arguments that track history (i.e., with requires_grad=True) will be converted to "
            "ones that don't track history before the call, and their use will be registered in the "
            "graph.",
            link=f"{_DOCS}notes/extending.html#how-to-use",
            script="forward_gets_tracking_tensors.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("FN-12/keyword-only",),
        shows=(Found("a keyword-only argument"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="apply raises TypeError: unexpected keyword argument; a compiler message (graph break GB4372) "
            "says that apply does not support keyword-only arguments",
            link=f"{_SOURCE}torch/csrc/autograd/python_function.cpp",
            script="keyword_only_parameters.py",
            seen=_SINCE_2_13,
        ),
    ),
    Deviation(
        ids=("FN-12/kwargs",),
        shows=(Found("an argument for **kwargs"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="apply raises TypeError: unexpected keyword argument, also if the class has a setup_context; "
            "the documentation shows signatures of forward with **kwargs, and does not say that apply "
            "fills them",
            link=f"{_DOCS}generated/torch.autograd.Function.setup_context.html",
            script="kwargs_parameter.py",
            seen=_SINCE_2_13,
        ),
    ),
    Deviation(
        ids=("FN-12/skipped",),
        shows=(Found("a keyword after a skipped default"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="if forward takes ctx, keywords can fill its positional parameters only without a gap: if a "
            "parameter with a default is left out before one that is given, apply raises TypeError: "
            "missing required argument",
            link=f"{_SOURCE}torch/csrc/autograd/python_function.cpp",
            script="keyword_after_skipped_default.py",
            seen=_SINCE_2_13,
        ),
    ),
    Deviation(
        ids=("FN-21",),
        shows=(Found("what a class with a method that is not static gives"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="methods are looked up on the class, so methods without @staticmethod work as if they had it; "
            "the documentation shows static methods and does not say that others are refused",
            link=f"{_SOURCE}torch/csrc/autograd/python_function.cpp",
            script="methods_without_staticmethod.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("NIG-06",),
        shows=(Found("ctx.needs_input_grad in a partial backward"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the flags are fixed when forward runs: autograd.grad(y, inputs) leaves those of the other "
            "inputs True; the documentation does not say whether they are about a pass or about what "
            "requires grad",
            link=f"{_DOCS}notes/extending.html#how-to-use, {_ISSUES}174017",
            script="needs_input_grad_in_partial_backward.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("GRAD-14/views",),
        shows=(Found("whether a later pass changed a cotangent"),),
        cause=_GRAD_IS_A_VIEW_OF_THE_COTANGENT,
    ),
    Deviation(
        ids=("GRAD-15/views",),
        shows=(Found("whether .grad fields and the cotangent share memory"),),
        cause=_GRAD_IS_A_VIEW_OF_THE_COTANGENT,
    ),
    Deviation(
        ids=("DIRTY-06/behind-others",),
        shows=(Found("gradients of the arguments, for the view of its base, position 0"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="CopySlices assumes that a Function changes the view in its first argument: if the dirty view "
            "is another argument, the arguments before it get no gradient and the base gets a wrong one, "
            "without an error",
            promise="This ensures that if you're using in-place functions and not seeing any errors, you can be "
            "sure that the computed gradients are correct.",
            link=f"{_DOCS}notes/autograd.html#in-place-correctness-checks",
            script="dirty_view_behind_another_argument.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("DIRTY-13",),
        shows=(Found("backward of a Function that changes what it has saved"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="tensors are packed after forward has ended, so saved_tensors gives the changed values: the "
            "gradient is silently wrong",
            promise="Before returning them to the user, a check is made to ensure they weren't used in any "
            "in-place operation that modified their content.",
            link=f"{_DOCS}generated/torch.autograd.function.FunctionCtx.save_for_backward.html",
            script="saved_before_change_in_forward.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("DIRTY-16",),
        shows=(Found("a change in place of a tensor that another shares memory with"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="there is no error: views of the changed tensor are derived from its new history instead",
            promise="This can be tricky, especially if there are many Tensors that reference the same storage "
            "(e.g. created by indexing or transposing), and in-place functions will raise an error if the "
            "storage of modified inputs is referenced by any other Tensor.",
            link=f"{_DOCS}notes/autograd.html#in-place-operations-with-autograd",
            script="changed_storage_that_others_refer_to.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("BOX-04",),
        shows=(Found("second derivative through a boxed once-differentiable backward"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="once_differentiable looks for a cotangent that requires grad among the arguments of "
            "backward, but not in the list into which boxed_grads_call packs them: the second derivative "
            "is wrong, without an error",
            promise="With this decorator, attempts to perform double backward through your function will produce "
            "an error.",
            link=f"{_DOCS}notes/extending.html#how-to-use",
            script="once_differentiable_boxed.py",
            seen=_SINCE_2_13,
        ),
    ),
    Deviation(
        ids=("BOX-05",),
        shows=(Found("backward with boxed_grads_call under a transform"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a transform calls backward with one argument for each output: a TypeError, and if there is one "
            "output, grads[0] is the first row of its cotangent, so that the gradient is silently wrong",
            promise="When set to True on the Function subclass, backward receives grads as a single mutable list "
            "argument instead of individual args in an immutable tuple.",
            link=f"{_DOCS}notes/extending.html#how-to-use",
            script="boxed_backward_under_transforms.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("SETUP-08",),
        shows=(Found("apply with keyword-only parameters"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="apply binds every default and passes keyword-only arguments on to code that takes none: a "
            "TypeError, even if none of them is given",
            link=f"{_SOURCE}torch/autograd/function.py",
            script="keyword_only_parameters.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("ONCE-03",),
        shows=(Found("grad of a gradient, unused inputs allowed"),),
        cause=_ONCE_DIFFERENTIABLE_BEHIND_GRAD,
    ),
    Deviation(
        ids=("ONCE-04",),
        shows=(Found("second derivative next to other terms"),),
        cause=_ONCE_DIFFERENTIABLE_BEHIND_A_CONSTANT_COTANGENT,
    ),
    Deviation(
        ids=("ONCE-05",), shows=(Found("nested func.grad"),), cause=_ONCE_DIFFERENTIABLE_BEHIND_A_CONSTANT_COTANGENT
    ),
    Deviation(
        ids=("ONCE-07/grad",),
        shows=(Found("grad of a gradient next to other terms"),),
        cause=_ONCE_DIFFERENTIABLE_BEHIND_GRAD,
    ),
    Deviation(
        ids=("ONCE-07/inputs",),
        shows=(Found("backward of a gradient for some inputs"),),
        cause=_ONCE_DIFFERENTIABLE_BEHIND_GRAD,
    ),
    Deviation(
        ids=("ONCE-08/cotangent",),
        shows=(Found("forward over reverse, where the cotangent moves"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="where a cotangent requires grad, the decorator returns new tensors without the tangents of the "
            "gradients: forward mode over such a backward silently gives zero",
            promise="These function transforms can compose with each other arbitrarily.",
            link=f"{_DOCS}func.html#what-are-composable-function-transforms",
            script="once_differentiable_under_forward_mode.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("DBL-05",),
        shows=(Found("second derivative through what is kept on ctx"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="an attribute that is an input or an output keeps its history, and second derivatives flow "
            "through it",
            promise="In this case, the tensors saved with save_for_backward can also be used in the backward and "
            "have gradients flowing back but tensors saved in the ctx won't have gradients flowing back "
            "for them.",
            link=f"{_DOCS}notes/extending.html#example",
            script="kept_on_ctx.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("MODE-02/enable_grad",),
        shows=(Found("requires_grad of any output under inference_mode"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="with enable_grad within inference_mode a custom Function is recorded, unlike any other "
            "operation: its outputs are inference tensors that require grad and have a grad_fn, which "
            "nothing can use",
            promise="requires_grad is always overridden to be False in both the two other modes.",
            link=f"{_DOCS}notes/autograd.html#grad-modes, {_ISSUES}77967",
            script="enable_grad_in_inference_mode.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("KINK-01/clamp",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="clamp, clamp_min and clamp_max pass the full gradient where the input equals a bound, unlike "
            "relu and hardtanh",
            promise=_AT_KINKS,
            link=f"{_DOCS}notes/autograd.html#gradients-for-non-differentiable-functions, {_ISSUES}184572",
            script="clamp_at_its_bound.py",
            seen=("2.4.0", "2.8.0", "2.13.0"),
            held=("2.14.1", "2.15.0"),
            releases="<2.14",
        ),
    ),
    Deviation(
        ids=("KINK-01/bounds",),
        shows=(Found("gradient, position 0"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="where the input of clamp, clamp_min or clamp_max equals a bound that is a tensor, the input gets "
            "the full gradient and the bound none; the inputs of maximum share it evenly",
            promise=_AT_KINKS,
            link=f"{_DOCS}notes/autograd.html#gradients-for-non-differentiable-functions",
            script="clamp_at_a_bound_that_is_a_tensor.py",
            seen=("2.13.0",),
            held=("2.14.1",),
            releases="<2.14",
        ),
    ),
    Deviation(
        ids=("KINK-01/bound-tangents",),
        shows=(Found("tangent"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="where inputs tie, forward mode of fmax, fmin and clamp passes one of the tangents, and not always "
            "the one whose input gets the gradient in reverse mode",
            promise=_AT_KINKS,
            link=f"{_DOCS}notes/autograd.html#gradients-for-non-differentiable-functions",
            script="tangents_of_equal_inputs.py",
            seen=("2.13.0",),
            held=("2.14.1",),
            releases="<2.14",
        ),
    ),
    Deviation(
        ids=("KINK-01/fmax",),
        shows=(Found("gradient, position 0"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="where both inputs of fmax or fmin are equal, the first one gets the full gradient; maximum "
            "and minimum share it evenly",
            promise=_AT_KINKS,
            link=f"{_DOCS}notes/autograd.html#gradients-for-non-differentiable-functions",
            script="fmax_of_equal_inputs.py",
            seen=("2.4.0", "2.8.0", "2.13.0"),
            held=("2.14.1", "2.15.0"),
            releases="<2.14",
        ),
    ),
    Deviation(
        ids=("FUNC-23/parametrized",),
        shows=(Found(starting="result"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="functional_call assigns a value for a parametrized tensor, which goes through right_inverse and "
            "the parametrization: the module runs with another value, without an error",
            promise="If the module has active parametrizations, passing a value in the parameter_and_buffer_dicts "
            "argument with the name set to the regular parameter name will completely disable the parametrization.",
            link=f"{_DOCS}generated/torch.func.functional_call.html",
            script="functional_call_of_a_parametrized_module.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("KINK-03/samples",),
        shows=(Found(starting="the gradient of "),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="what bernoulli, poisson and normal draw requires grad, and a pass gives their parameters zeros "
            "without an error",
            promise="If the function is not a deterministic mapping (i.e. it is not a mathematical function), it will "
            "be marked as non-differentiable. This will make it error out in the backward if used on tensors that "
            "require grad outside of a no_grad environment.",
            link=f"{_DOCS}notes/autograd.html#gradients-for-non-differentiable-functions, {_ISSUES}4159",
            script="gradients_of_samples.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("JVP-07",),
        shows=(Found("a None from jvp for a floating output"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="None is accepted only for outputs that are not differentiable; for any other output it fails "
            "an internal assert that asks to report a bug",
            promise="If an output is not a Tensor or the function is not differentiable with respect to that "
            "output, you can just pass None as a gradient for that input.",
            link=f"{_DOCS}generated/torch.autograd.Function.jvp.html",
            script="jvp_returns_none.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("JVP-14/marked",),
        shows=(Found("gradcheck with check_forward_ad of a right jvp"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="gradcheck compares the numerical Jacobians of the differentiable outputs with the "
            "forward-mode Jacobians of all floating outputs: after an output marked non-differentiable it "
            "compares the wrong pairs",
            promise="check_forward_ad (bool, optional) - if True, check that the gradients computed with forward "
            "mode AD match the numerical ones.",
            link=f"{_DOCS}generated/torch.autograd.gradcheck.gradcheck.html",
            script="gradcheck_of_jvp_behind_a_marked_output.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("FUNC-07",),
        shows=(Found("whether a derivative flows through a tensor that is assigned to ctx"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="inputs and outputs that are assigned to ctx, also in lists and dicts, are tracked; the notes "
            "say that they will not be tracked, and also that the result is undefined",
            link=f"{_DOCS}notes/extending.func.html#limitations-and-gotchas",
            script="kept_on_ctx_under_func_grad.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("FUNC-09",),
        shows=(Found("a transform of a Function that defines vjp"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="transforms look only for backward and raise NotImplementedError, though the error itself "
            "names vjp as the other method that may be implemented",
            promise="Defining this function is equivalent to defining the vjp function.",
            link=f"{_DOCS}generated/torch.autograd.Function.backward.html",
            script="vjp_under_transforms.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("FUNC-10/vmap",),
        shows=(Found("a keyword-only argument under vmap"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="with a generated batching rule, keyword-only arguments are dropped without an error (2.4.0 "
            "raises one), and forward runs with its defaults: the result is wrong",
            promise="vmap is the vectorizing map; vmap(func) returns a new function that maps func over some "
            "dimension of the inputs.",
            link=f"{_DOCS}generated/torch.func.vmap.html, {_SOURCE}torch/_functorch/autograd_function.py",
            script="keyword_only_under_vmap.py",
            seen=("2.8.0", "2.13.0", "2.14.1", "2.15.0"),
        ),
    ),
    Deviation(
        ids=("FUNC-14/forward",),
        shows=(Found("derivative by nested transforms"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="jvp runs with forward mode off at every level, so that a jvp or jacfwd around another one finds no "
            "tangent in what it computes: that part of the derivative is zero, without an error",
            promise="These function transforms can compose with each other arbitrarily.",
            link=f"{_DOCS}func.html#what-are-composable-function-transforms, {_ISSUES}197867",
            script="forward_mode_of_forward_mode.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("VMAP-07/calling",),
        shows=(Found(starting="second derivatives of a batch"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="is_grads_batched maps with an older vmap, under which a Function that a backward calls is recorded "
            "for tensors that end with the map: with create_graph its part of the second derivatives is left out, "
            "without an error if there are others",
            promise="If True, graph of the derivative will be constructed, allowing to compute higher order derivative "
            "products.",
            link=f"{_DOCS}generated/torch.autograd.grad.html",
            script="batched_cotangents_and_called_functions.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("VMAP-02/shared-output",),
        shows=(Found(starting="derivatives where calls share an output"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the generated rule sums over the batch what belongs to a shared argument or output: if an output "
            "depends on shared arguments alone, its part of gradients and tangents is too large by the batch size, "
            "without an error",
            promise=_GENERATES,
            link=f"{_DOCS}notes/extending.func.html#automatically-generate-a-vmap-rule",
            script="generated_rule_and_shared_outputs.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("VMAP-09/saved",),
        shows=(Found(starting="derivatives of a vmap"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the generated rule remembers the batched dimensions of the last of save_for_backward and "
            "save_for_forward, and uses them for both: other tensors, or another order, give gradients that are "
            "silently wrong, or an error",
            promise=_GENERATES,
            link=f"{_DOCS}notes/extending.func.html#automatically-generate-a-vmap-rule",
            script="generated_rule_and_save_for_forward.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("VMAP-09/dirty",),
        shows=(Found("derivative of a vmap with a change in place"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="under the generated rule mark_dirty gets batched tensors, which are none of the inputs: a "
            "RuntimeError says that the changed input is not returned, though it is",
            promise=_GENERATES,
            link=f"{_DOCS}notes/extending.func.html#automatically-generate-a-vmap-rule",
            script="generated_rule_and_mark_dirty.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("VMAP-09/marked",),
        shows=(
            Found("requires_grad of the outputs of a vmap"),
            Found("forward mode of a vmap with a marked output"),
        ),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="under the generated rule mark_non_differentiable gets batched tensors, which are none of the "
            "outputs, and is ignored: the outputs require grad, and forward mode fails an internal assert",
            promise=_GENERATES,
            link=f"{_DOCS}notes/extending.func.html#automatically-generate-a-vmap-rule",
            script="generated_rule_and_marked_outputs.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("ENG-01/constant",),
        shows=(Found("None as the cotangent of an output that does not require grad"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the check of the cotangents accepts None, and the engine then refuses the output itself, in "
            "grad and in backward",
            promise="None values can be specified for scalar Tensors or ones that don't require grad.",
            link=f"{_DOCS}generated/torch.autograd.grad.html",
            script="none_for_a_constant_output.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("ENG-02/later-message",),
        shows=(Found("message of a cotangent of another shape than its output"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the message looks up the position with list.index, which compares tensors elementwise: for "
            "any output after the first it says that the truth of a tensor is ambiguous, or names another "
            "position",
            link=f"{_SOURCE}torch/autograd/__init__.py",
            script="message_of_a_misshapen_cotangent.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("ENG-06",),
        shows=(Found("more cotangents than outputs"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="cotangents and outputs are paired with zip, which silently drops the surplus; the "
            "documentation asks the caller for matching lengths and does not promise a check",
            link=f"{_DOCS}generated/torch.autograd.grad.html",
            script="surplus_cotangents.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("ENG-09/bare",),
        shows=(Found("a tensor as inputs"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="backward takes the length of its inputs before it checks whether they are a single tensor: a "
            "TypeError if that tensor has no dimensions",
            promise="inputs (Sequence[Tensor] or Tensor or Sequence[GradientEdge], optional) - Inputs w.r.t. "
            "which the gradient be accumulated into .grad.",
            link=f"https://docs.pytorch.org/docs/2.4/generated/torch.autograd.backward.html, {_ISSUES}150883",
            script="bare_tensor_as_inputs.py",
            seen=("2.4.0",),
            held=("2.8.0", "2.13.0", "2.14.1", "2.15.0"),
            releases="<2.8",
        ),
    ),
    Deviation(
        ids=("NODE-03",),
        shows=(Found("grad_fn.metadata()"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="the documentation shows a method, but metadata is an attribute that holds the dictionary: "
            "calling it is a TypeError, on built-in nodes too",
            promise="Node.metadata(): Return the metadata.",
            link=f"{_DOCS}generated/torch.autograd.graph.Node.metadata.html",
            script="node_metadata.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("NODE-05/node",),
        shows=(Found("whether the tensors are alive that PolynomialBackward saved, while only the node is held"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a comment in get_gradient_edge says that the Python object of a custom node does not keep "
            "the graph alive; but it keeps alive the graph and everything that the graph saved",
            link=f"{_SOURCE}torch/autograd/graph.py",
            script="node_keeps_the_graph_alive.py",
            seen=_SINCE_2_13,
            held=("2.4.0", "2.8.0"),
        ),
    ),
    Deviation(
        ids=("FUNC-16/forward",),
        shows=(Found(starting="Jacobians, position "),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="jacfwd and hessian look for argnums that count from the end among the positions from 0, and find "
            "none: their result is zero, without an error, where jacrev and grad are right",
            promise="Computes the Jacobian of func with respect to the arg(s) at index argnum using forward-mode "
            "autodiff",
            link=f"{_DOCS}generated/torch.func.jacfwd.html",
            script="jacfwd_of_the_last_argument.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("FUNC-20/views",),
        shows=(Found("gradient"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason='under functionalize with remove="mutations_and_views" the gradient of a change in place through a '
            "view is silently wrong, as if another part of the tensor had been changed",
            promise="If you want to use autograd, you can compute gradients directly with functionalize(grad(f)).",
            link=f"{_DOCS}generated/torch.func.functionalize.html",
            script="functionalize_of_a_change_through_a_view.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("HOOK-06/retain_grad",),
        shows=(Found("whether pre-hooks see a retained .grad"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="the .grad of an output that retains it is set before the node's pre-hooks run",
            promise="The order in which things happen are: 1. hooks registered to Tensor are executed 2. "
            "pre-hooks registered to Node are executed (if Node is executed). 3. the .grad field is "
            "updated for Tensors that retain_grad",
            link=f"{_DOCS}notes/autograd.html#the-order-in-which-the-different-hooks-are-fired",
            script="prehook_sees_retained_grad.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("HOOK-10/grad",),
        shows=(Found("autograd.grad where its inputs have a hook in mode all"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a hook in mode all on a leaf among the inputs of autograd.grad raises an error (not "
            "supported), though the documentation mentions grad along with backward",
            promise='Under the "all" mode, the hook will be called after gradients with respect to every tensor in '
            "tensors have been computed. [...] for any inputs specified for the current .backward() or .grad() call",
            link=f"{_DOCS}autograd.html#torch.autograd.graph.register_multi_grad_hook, {_ISSUES}131753",
            script="multi_grad_hook_in_autograd_grad.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("HOOK-10/roots",),
        shows=(Found("number of calls of a hook on an output and leaves"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="if a pass starts from a single tensor, its node does not count as one that will run: a hook "
            "in mode all on that tensor and others fires too early, and a second time",
            promise="After every non-ignored tensor's gradient has been computed, fn will be called with those "
            "gradients.",
            link=f"{_DOCS}autograd.html#torch.autograd.graph.register_multi_grad_hook",
            script="multi_grad_hook_on_the_root.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("HOOK-10/unused",),
        shows=(Found("gradients that a hook in mode any gets, position 0"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="hooks of unused outputs are called with None, and a hook in mode any takes that for the "
            "first gradient",
            promise='Under the "any" mode, the hook will be called after the first gradient with respect to a '
            "tensor in tensors has been computed.",
            link=f"{_DOCS}autograd.html#torch.autograd.graph.register_multi_grad_hook",
            script="multi_grad_hook_any_gets_none.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("LAYOUT-06/overlapping",),
        shows=(Found("a pass that adds to .grad"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="under enforce_grad_layout_policy(False) an expanded gradient, such as that of a sum, becomes "
            ".grad as it is, and the next pass raises because it cannot add to elements that share memory",
            promise="The attribute will then contain the gradients computed and future calls to backward() will "
            "accumulate (add) gradients into it.",
            link=f"{_DOCS}generated/torch.Tensor.grad.html, {_SOURCE}torch/csrc/autograd/functions/accumulate_grad.h",
            script="grad_without_layout_policy.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("PACK-07",),
        shows=(Found("access to a saved tensor that was changed, under hooks"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the version of a saved tensor is not checked where hooks packed it: with a hook that does "
            "not copy, the gradients are silently those of the changed value",
            promise="This ensures that if you're using in-place functions and not seeing any errors, you can be "
            "sure that the computed gradients are correct.",
            link=f"{_DOCS}notes/autograd.html#in-place-correctness-checks",
            script="change_of_a_saved_tensor_under_hooks.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("CKPT-04",),
        shows=(Found("checkpoint without use_reentrant"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="if use_reentrant is not given, it is still True, with a warning",
            promise="In version 2.9 we will raise an exception if use_reentrant is not passed.",
            link="https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.checkpoint",
            script="checkpoint_without_use_reentrant.py",
            seen=("2.13.0", "2.14.1"),
            releases="<2.15",
        ),
    ),
    Deviation(
        ids=("CKPT-04",),
        shows=(Found("checkpoint without use_reentrant"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="if use_reentrant is not given, it is still True, with a warning; the documentation has put "
            "the exception off to a future release",
            link="https://docs.pytorch.org/docs/2.15/checkpoint.html#torch.utils.checkpoint.checkpoint",
            script="checkpoint_without_use_reentrant.py",
            seen=("2.15.0",),
            releases=">=2.15",
        ),
    ),
    Deviation(
        ids=("CKPT-15/offload",),
        shows=(Found("runs of each operator in forward and in the pass"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="without a compiler the policies MUST_CPU_OFFLOAD and PREFER_CPU_OFFLOAD recompute: nothing is "
            "saved, and the operator runs again",
            promise="{MUST,PREFER}_CPU_OFFLOAD: The operation's output will be saved during the forward pass, "
            "offloaded to CPU, and reloaded to GPU during the backward pass",
            link=f"{_DOCS}checkpoint.html#torch.utils.checkpoint.CheckpointPolicy",
            script="offloading_policy_of_a_checkpoint.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("CKPT-25/eager",),
        shows=(Found(starting="gradient, which is the random factor of forward"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the captured graph checkpoints without preserve_rng_state and leaves the random numbers to a "
            'compiler, which the backend "eager" has not: the gradient is silently that of other random numbers',
            promise="under torch.compile, this flag doesn't take effect and we always preserve RNG state.",
            link=f"{_DOCS}checkpoint.html#torch.utils.checkpoint.checkpoint",
            script="compiled_checkpoint_of_random_numbers.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("AMP-03/float64",),
        shows=(Found("dtypes of double factors in forward"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="cast_inputs leaves tensors of double precision unchanged",
            promise="If not None, when forward runs in an autocast-enabled region, casts incoming floating-point "
            "Tensors to the target dtype (non-floating-point Tensors are not affected), then executes "
            "forward with autocast disabled.",
            link=f"{_DOCS}amp.html#torch.amp.custom_fwd",
            script="cast_inputs_of_double_precision.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("AMP-04",),
        shows=(Found("bare custom_fwd and custom_bwd"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="device_type has no default, so the bare decorators of the printed example raise a TypeError",
            promise="Apply custom_fwd and custom_bwd (with no arguments) to forward and backward respectively.",
            link=f"{_DOCS}notes/amp_examples.html#functions-with-multiple-inputs-or-autocastable-ops",
            script="bare_custom_fwd.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("AMP-05",),
        shows=(Found("backward under custom_bwd of a Function with setup_context"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="custom_fwd notes the state on the first argument of forward, which is not ctx but a tensor of the "
            "caller: custom_bwd raises an AttributeError, outside of autocast too",
            promise="Ensures that backward executes with the same autocast state as forward.",
            link=f"{_DOCS}amp.html#torch.amp.custom_bwd, {_ISSUES}132388",
            script="custom_fwd_with_setup_context.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("CHECK-04",),
        shows=(Found("gradcheck of a backward that cannot handle None"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="only a RuntimeError of backward becomes a GradcheckError; gradcheck lets a TypeError, "
            "AttributeError or AssertionError about a cotangent None through, even with "
            "raise_exception=False",
            promise="raise_exception (bool, optional) - indicating whether to raise an exception if the check fails.",
            link=f"{_DOCS}generated/torch.autograd.gradcheck.gradcheck.html",
            script="gradcheck_of_a_backward_without_none.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("CHECK-05/other",),
        shows=(Found("gradcheck of a gradient of another dtype"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the engine casts the gradient that backward returns to its input's dtype before "
            "check_grad_dtypes sees it; no document says what check_grad_dtypes checks",
            link=f"{_SOURCE}torch/autograd/gradcheck.py",
            script="gradcheck_of_gradient_dtypes.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("CHECK-06/integers",),
        shows=(Found("gradcheck of a Function with an output that is not differentiable"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="an integer output before a float output is an IndexError: the numerical Jacobians, which "
            "exist for floating outputs only, are paired with all outputs",
            promise=_GRADCHECK,
            link=f"{_DOCS}generated/torch.autograd.gradcheck.gradcheck.html",
            script="gradcheck_of_an_integer_output.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("CHECK-06/marked",),
        shows=(Found("gradcheck of a Function with an output that is not differentiable"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="in fast mode the numerical derivatives of all floating outputs are paired with the "
            "analytical derivatives of the differentiable outputs: if a marked output comes before "
            "another one, a correct backward fails",
            promise=_GRADCHECK,
            link=f"{_DOCS}generated/torch.autograd.gradcheck.gradcheck.html",
            script="gradcheck_fast_of_a_marked_output.py",
            seen=("2.4.0", "2.8.0", "2.13.0", "2.14.1"),
            held=("2.15.0",),
            releases="<2.15",
        ),
    ),
    Deviation(
        ids=("COMPILE-01/parent",),
        shows=(Found("tracing a Function into one graph"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a backward that calls the backward of its parent class causes an AssertionError in the "
            "compiler, with or without fullgraph",
            promise=_GRAPH_BREAKS,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.fullgraph_true.html",
            script="compiled_backward_calls_its_parents.py",
            seen=("2.4.0", "2.8.0", "2.13.0", "2.14.1"),
            held=("2.15.0",),
            releases="<2.15",
        ),
    ),
    Deviation(
        ids=("COMPILE-02/argument",),
        shows=(Found("gradients of compiled code, position 0"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="if forward changes an argument of the compiled code in place and returns it, ahead-of-time "
            "compilation copies the change back without a history: the gradients are silently those of a "
            "Function that changes nothing",
            promise="Supported methods are `__setattr__`, `save_for_backward`, `mark_dirty` and "
            "`mark_non_differentiable`.",
            link="https://meta-pytorch.org/compile-graph-break-site/gb/gb0139.html",
            script="compiled_mark_dirty_of_an_argument.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("COMPILE-04/forward",),
        shows=(Found("tangents of compiled code, position 0"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="if no argument requires grad, the compiler inlines forward without checking whether there is "
            "a jvp: the tangents are silently those of forward's operations",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/"
            "programming_model.non_strict_tracing_model.html, https://github.com/pytorch/pytorch/issues/192985",
            script="compiled_jvp.py",
            seen=("2.4.0", "2.8.0", "2.13.0"),
            held=("2.14.1", "2.15.0"),
            releases="<2.14",
        ),
    ),
    Deviation(
        ids=("COMPILE-06/one",),
        shows=(Found("gradient of compiled code"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="if a Function has one output, the compiled backward gets the cotangent instead of a list "
            "that holds it, so grads[0] is the cotangent's first element: silently wrong, with fullgraph "
            "too",
            promise="When set to True on the Function subclass, backward receives grads as a single mutable list "
            "argument instead of individual args in an immutable tuple.",
            link=f"{_DOCS}notes/extending.html#how-to-use",
            script="compiled_boxed_backward.py",
            seen=_SINCE_2_13,
        ),
    ),
    Deviation(
        ids=("COMPILE-08",),
        shows=(Found("second derivatives through compiled code, position 0"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the backward of the traced graph runs without recording: with backend eager the second "
            "derivative is silently left out; the page on how torch.compile's autograd semantics differ "
            "does not mention it",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html, "
            f"{_DOCS}user_guide/torch_compiler/torch.compiler_backward.html",
            script="compiled_second_derivative.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("COMPILE-09/strict",),
        shows=(Found("requires_grad of the outputs of the traced function"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="strict export keeps the no_grad mode in which forward ran, so the exported program cannot be "
            "differentiated",
            promise="This Training IR, which may contain mutations, is designed for training use cases and can be "
            "used with eager PyTorch Autograd.",
            link=f"{_DOCS}user_guide/torch_compiler/export.html#training-ir-default",
            script="strict_export_of_a_function.py",
            seen=("2.8.0", "2.13.0", "2.14.1", "2.15.0"),
            held=("2.4.0",),
            releases=">=2.5",
        ),
    ),
    Deviation(
        ids=("COMPILE-11/grad", "COMPILE-11/jvp"),
        shows=(Found("derivative by compiled code"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="where a function transform is compiled, the compiler inlines forward and drops backward and jvp: "
            "the derivatives are silently those of forward's operations, with fullgraph too",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html, "
            f"{_ISSUES}193279, {_ISSUES}192985",
            script="compiled_function_transforms.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-11",),
        shows=(Found("gradient of a compiled vmap"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="where a vmap is compiled, the compiler inlines forward and drops backward: the gradient is "
            "silently that of forward's operations, with fullgraph too",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html, "
            "https://github.com/pytorch/pytorch/pull/186366",
            script="compiled_vmap.py",
            seen=("2.14.1",),
            held=("2.13.0",),
            releases=">=2.14",
        ),
    ),
    Deviation(
        ids=("COMPILE-11/mapped",),
        shows=(Found("gradient of a vmap of compiled code"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="in a vmap compiled code gets tensors that do not say that they require grad: the compiler inlines "
            "forward and drops backward, and the gradient is silently that of forward's operations",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html, "
            "https://github.com/pytorch/pytorch/pull/186303",
            script="vmap_of_compiled_code.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-12/saved",),
        shows=(Found("gradient after a change in compiled code"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="if compiled code changes in place what a Function saved, backward gets the changed values: the "
            "gradient is silently wrong, where uncompiled code raises",
            promise="This ensures that if you're using in-place functions and not seeing any errors, you can be "
            "sure that the computed gradients are correct.",
            link=f"{_DOCS}notes/autograd.html#in-place-correctness-checks",
            script="compiled_change_of_a_saved_tensor.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-12/later",),
        shows=(Found("a backward pass of compiled code after a change of what was saved"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="with backend eager the backward of the traced graph does not look at the versions of what a "
            "Function saved: after a change in place the gradient is silently that of the changed values, where "
            "uncompiled code raises, and so does aot_eager",
            promise="This ensures that if you're using in-place functions and not seeing any errors, you can be "
            "sure that the computed gradients are correct.",
            link=f"{_DOCS}notes/autograd.html#in-place-correctness-checks",
            script="compiled_later_change_of_a_saved_tensor.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("COMPILE-13/twice",),
        shows=(Raised("AssertionError", starting="Placeholder node not found in env"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="a Function that returns one tensor for two outputs causes an AssertionError in the compiler, with "
            "or without fullgraph",
            promise=_GRAPH_BREAKS,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.fullgraph_true.html",
            script="compiled_output_returned_twice.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-13/view",),
        shows=(Found("gradient of outputs that share memory"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="ahead-of-time compilation takes an output that is a view of another one for a view made after the "
            "call: its cotangent reaches backward as a part of the other output's, and the gradient is silently wrong",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html",
            script="compiled_view_of_another_output.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-14",),
        shows=(Found("gradient where an output is unused"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the compiler ignores set_materialize_grads: the backward that it traces gets zeros for an unused "
            "output, with fullgraph too",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html, "
            f"{_ISSUES}118396",
            script="compiled_set_materialize_grads.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-17/strict",),
        shows=tuple(Found(f"gradients through the program, position {i}") for i in (0, 1)),
        cause=Cause(
            grade=Grade.WRONG,
            reason="strict export keeps the no_grad mode in which forward ran: where something else in the program has "
            "a history, a backward pass leaves out what goes through the Function, and the gradient is silently wrong",
            promise="This Training IR, which may contain mutations, is designed for training use cases and can be "
            "used with eager PyTorch Autograd.",
            link=f"{_DOCS}user_guide/torch_compiler/export.html#training-ir-default",
            script="strict_export_of_a_function_beside_others.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("COMPILE-19",),
        shows=(Found("output of compiled code"), Found("gradient of compiled code")),
        cause=Cause(
            grade=Grade.WRONG,
            reason="what inductor compiles reads the memory of a tensor that is negated lazily, as z.conj().imag is: "
            "outputs and gradients silently have the wrong sign, with any function, custom or not",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html, "
            f"{_ISSUES}145093",
            script="compiled_negated_argument.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("PROG-01/hooked",),
        shows=(Found("gradients of compiled code, position 0"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="compiled ahead of time, a hook on an input is lost if the input is changed in place after it was "
            "registered: the gradient is silently the one without the hook",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html",
            script="compiled_hook_on_what_is_changed_later.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("FLOW-05/none",),
        shows=(Found(starting="gradients of what requires grad, position"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a while_loop that runs no round keeps its carry as if it came of one, and backward differentiates "
            "that round: the gradient is silently wrong. The documentation says that training is not supported, so an "
            "error would be right, too",
            promise=_WHILE,
            link=f"{_SOURCE}torch/_higher_order_ops/while_loop.py",
            script="while_loop_without_a_round.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("PROG-01/unused",),
        shows=(Raised("TypeError"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="compiled ahead of time, a hook on an input is called with None if the result does not depend on "
            "the input: a hook that computes with its argument raises",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html",
            script="compiled_hook_without_a_gradient.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("PROG-01/none",),
        shows=(Found("gradients of compiled code, position 0"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="compiled ahead of time, an input that is changed in place has a gradient of zeros, and not None, "
            "if the result does not depend on it",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html",
            script="compiled_zeros_for_none.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("PROG-01/saved",),
        shows=(Raised("RuntimeError"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="ahead-of-time compilation may save an input and compute from it again what a Function saves: a "
            "change of the input before backward is then an error, where uncompiled code is right",
            promise=_TRACING,
            link=f"{_DOCS}user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html",
            script="compiled_code_saves_its_input.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("FLOW-05/mixed",),
        shows=(Found(starting="gradients of what requires grad, position"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="a carry that requires no grad before a while_loop is a constant in the backward of every round, "
            "also where it depends on something else from the second round on: the gradient is silently wrong, as that "
            "of scan was until 2.13. The documentation says that training is not supported, so an error would be "
            "right, too",
            promise=_WHILE,
            link=f"{_SOURCE}torch/_higher_order_ops/while_loop.py, https://github.com/pytorch/pytorch/pull/185332",
            script="while_loop_of_a_carry_without_grad.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("LIB-01/needs_input_grad",),
        shows=(Found("ctx.needs_input_grad of an operator with three inputs, in setup_context and in backward"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="in setup_context of an operator ctx.needs_input_grad has one flag more than inputs; there "
            "and in backward it has no flag for an argument that was left out or equals its default",
            promise="The ctx object is the same ctx object used by torch.autograd.Function.",
            link=f"{_DOCS}library.html#torch.library.register_autograd",
            script="needs_input_grad_of_an_operator.py",
            seen=_EVERYWHERE,
        ),
    ),
    Deviation(
        ids=("LIB-19/history",),
        shows=(Found(starting="gradients after a change by an operator, position"),),
        cause=Cause(
            grade=Grade.WRONG,
            reason="the history of a tensor that an operator changes stays as it was, so that a backward pass goes "
            "around the change: the gradient is silently that of a tensor that nothing changed, and what was put into "
            "it gets none",
            promise="This ensures that if you're using in-place functions and not seeing any errors, you can be "
            "sure that the computed gradients are correct.",
            link=f"{_DOCS}notes/autograd.html#in-place-correctness-checks",
            script="change_by_an_operator.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("LIB-23/unknown",),
        shows=(Found("an operator that may change unknown"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="triton_op gives custom_op an inferred schema and mutates_args, and custom_op refuses "
            "'unknown' beside a schema: a ValueError for every function",
            promise='If "unknown", it pessimistically assumes that all inputs to the operator are being mutated.',
            link=f"{_DOCS}library.html#torch.library.triton_op",
            script="triton_op_of_unknown_changes.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("LIB-23/schema",),
        shows=(Found("an operator with a schema"), Found("a schema that mutates_args denies")),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="triton_op ignores its argument schema: the operator has the inferred schema, and a function "
            "without annotations is refused",
            promise="A schema string for the operator. If None (recommended) we'll infer a schema for the operator "
            "from its type annotations.",
            link=f"{_DOCS}library.html#torch.library.triton_op",
            script="triton_op_with_a_schema.py",
            seen=("2.13.0",),
            held=("2.14.1",),
            releases="<2.14",
        ),
    ),
    Deviation(
        ids=("LIB-26/custom-op",),
        shows=(Found("get_kernel of a CustomOpDef"),),
        cause=Cause(
            grade=Grade.BROKEN,
            reason="get_kernel raises a ValueError for what custom_op gives, and takes names and OpOverloads alone",
            promise='Can be a string (e.g., "aten::add.Tensor"), an OpOverload, or a CustomOpDef.',
            link=f"{_DOCS}library.html#torch.library.get_kernel",
            script="get_kernel_of_a_custom_op.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("LIB-10/double",),
        shows=(Found("dtype of a tensor in double precision in the operator"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="within autocast a rule of register_autocast casts half and single precision, and leaves double "
            "precision as it is, as the rest of autocast does",
            promise="When custom op runs in an autocast-enabled region, casts incoming floating-point Tensors to the "
            "target dtype (non-floating-point Tensors are not affected), then executes custom op with autocast "
            "disabled.",
            link=f"{_DOCS}library.html#torch.library.register_autocast",
            script="autocast_of_an_operator_in_double_precision.py",
            seen=("2.13.0",),
        ),
    ),
    Deviation(
        ids=("CPP-FN-11",),
        shows=(Found("backward of the printed example"),),
        cause=Cause(
            grade=Grade.OUTDATED,
            reason="the example in the comment on torch::autograd::Function takes a number and a tensor and returns "
            "one gradient: backward raises",
            promise="It should return as many Variables as there were inputs with each of them containing the gradient "
            "w.r.t. its corresponding input.",
            link=f"{_SOURCE}torch/csrc/autograd/custom_function.h",
            script="example_of_a_function_in_cpp.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("DIST-06",),
        shows=(Found(starting="gradient of broadcast"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="a functional broadcast has no formula: backward warns of that, and gives each process its own "
            "cotangent instead of the sum to the one that sends and zeros to the others, as the collective does that "
            "it replaces",
            link=f"{_SOURCE}torch/distributed/nn/functional.py, the warning of broadcast",
            script="broadcast_of_functional_collectives.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("DIST-03/transposed",),
        shows=tuple(Found(f"gradient of {name} in each process") for name in ("all_gather", "gather")),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="the collectives that backward of all_gather and gather of torch.distributed.nn.functional calls "
            "read and write memory as if it were contiguous: if a cotangent is transposed, the gradients have its "
            "elements in another order, without an error",
            link=f"{_SOURCE}torch/distributed/nn/functional.py, _AllGather and _Gather",
            script="gathers_of_transposed_cotangents.py",
            seen=_TO_2_14,
        ),
    ),
    Deviation(
        ids=("DIST-03/reductions",),
        shows=(Found("gradient of a reduction that backward does not refuse"),),
        cause=Cause(
            grade=Grade.DIFFERENCE,
            reason="all_reduce, reduce and reduce_scatter of torch.distributed.nn.functional have the gradient of a "
            "sum, or reduce the cotangents by the same operation, which is wrong of MAX, MIN and PRODUCT; there is no "
            "error",
            link=f"{_SOURCE}torch/distributed/nn/functional.py, _AllReduce",
            script="reductions_of_collectives.py",
            seen=_TO_2_14,
        ),
    ),
)
