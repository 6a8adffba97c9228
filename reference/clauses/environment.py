"""Clauses on checkpointing, threads, autocast and checkers."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "CKPT-01",
        "documented",
        "Checkpointing, reentrant or not, runs forward a second time in the backward pass and leaves the gradients "
        "unchanged.",
        "checkpoint: checkpoint",
        needs="checkpoint",
        fault="checkpoint runs its function as it is and recomputes nothing",
    ),
    Clause(
        "CKPT-02",
        "observed",
        "Under non-reentrant checkpointing the saved tensors can be read once per backward: reading ctx.saved_tensors "
        "again raises.",
        "source: torch/utils/checkpoint.py",
        needs="checkpoint",
        fault="a second read of checkpointed tensors gives zeros",
    ),
    Clause(
        "CKPT-03",
        "documented",
        "Under reentrant checkpointing grad and backward(inputs=...) raise an error.",
        "checkpoint: use_reentrant",
        needs="checkpoint",
        fault="grad through reentrant checkpointing gives zeros",
    ),
    Clause(
        "CKPT-04",
        "documented",
        "Calling checkpoint without use_reentrant raises, and checkpoint_sequential without it raises or warns.",
        "checkpoint: use_reentrant",
        needs="checkpoint",
        since="2.9",
        fault="checkpoint silently assumes use_reentrant=False",
    ),
    Clause(
        "CKPT-05",
        "documented",
        "Unless told otherwise, checkpointing stashes and restores the state of the random number generator: forward "
        "draws the same numbers when it runs again, and those that follow are as without checkpointing.",
        "checkpoint: torch.utils.checkpoint",
        quote="By default, checkpointing includes logic to juggle the RNG state such that checkpointed passes making "
        "use of RNG (through dropout for example) have deterministic output as compared to non-checkpointed passes.",
        needs="checkpoint",
        fault="the state of the generator is never restored",
    ),
    Clause(
        "CKPT-06",
        "documented",
        "With preserve_rng_state=False the state is neither stashed nor restored: forward draws the next numbers when "
        "it runs again, and the generator goes on from there.",
        "checkpoint: preserve_rng_state",
        quote="If deterministic output compared to non-checkpointed passes is not required, supply "
        "preserve_rng_state=False to checkpoint or checkpoint_sequential to omit stashing and restoring the RNG state "
        "during each checkpoint.",
        needs="checkpoint",
        fault="preserve_rng_state=False is ignored",
    ),
    Clause(
        "CKPT-07",
        "documented",
        "The default determinism check of non-reentrant checkpointing raises if a tensor that is saved in the "
        "recomputation has another shape, dtype or device than in forward; other values pass.",
        "checkpoint: determinism_check",
        quote='By default it is set to "default" which compares the shapes, dtypes, and devices of the recomputed '
        "tensors against those the saved tensors.",
        needs="checkpoint",
        fault="no recomputation is checked",
    ),
    Clause(
        "CKPT-08",
        "documented",
        'With determinism_check="none", and always with use_reentrant=True, a recomputation that differs from forward '
        "is used as it is.",
        "checkpoint: determinism_check",
        quote='To turn off this check, specify "none". [...] if use_reentrant=True, the determinism check is always '
        "disabled.",
        needs="checkpoint",
        fault='"none" is taken for "default"',
    ),
    Clause(
        "CKPT-09",
        "documented",
        'A determinism_check other than "default" and "none" raises.',
        "checkpoint: determinism_check",
        quote="Currently these are the only two supported values.",
        needs="checkpoint",
        fault="an unknown determinism_check is silently the default",
    ),
    Clause(
        "CKPT-10",
        "documented",
        "Non-reentrant checkpointing stops recomputing as soon as all saved tensors are there, unless early_stop=False "
        "or set_checkpoint_early_stop(False), which overrides it, says otherwise when forward runs; reentrant "
        "checkpointing runs all of it.",
        "checkpoint: early_stop",
        quote="If True, non-reentrant checkpoint stops recomputation as soon as it has computed all needed Tensors. "
        "This argument is ignored if use_reentrant=True. Can be overridden globally using set_checkpoint_early_stop() "
        "context manager.",
        needs="checkpoint",
        since="2.9",
        fault="early_stop is ignored",
    ),
    Clause(
        "CKPT-11",
        "documented",
        "Non-reentrant checkpointing passes keyword arguments to both runs of its function; the reentrant variant and "
        "checkpoint_sequential refuse them, as they do context_fn and debug.",
        "checkpoint: use_reentrant",
        quote="This allows checkpoint to support additional functionality, such as [...] support for keyword arguments "
        "input into the checkpointed function.",
        needs="checkpoint",
        fault="the recomputation gets no keyword arguments",
    ),
    Clause(
        "CKPT-12",
        "documented",
        "Of the two context managers that context_fn returns, the first is around the call, the second around the "
        "recomputation.",
        "checkpoint: context_fn",
        quote="The function and its recomputation will be run under the first and second context managers "
        "respectively.",
        needs="checkpoint",
        fault="the two context managers are swapped",
    ),
    Clause(
        "CKPT-13",
        "documented",
        "With debug=True or set_checkpoint_debug_enabled, which overrides it, the error of a recomputation that "
        "differs names the operators of both runs.",
        "checkpoint: debug",
        quote="If True, error messages will also include a trace of the operators ran during the original forward "
        "computation as well as the recomputation.",
        needs="checkpoint",
        fault="debug adds nothing to the error",
    ),
    Clause(
        "CKPT-14",
        "documented",
        "Non-reentrant checkpointing supports all ways to run a backward pass, also within another checkpoint and "
        "around a vmap.",
        "checkpoint: use_reentrant",
        quote="The reentrant checkpoint only supports the torch.autograd.backward() API for the backward pass without "
        "its inputs argument, while the non-reentrant version supports all ways of performing the backward pass.",
        needs="checkpoint vmap double_backward",
        fault="a checkpoint within another gives no gradient",
    ),
    Clause(
        "CKPT-15",
        "documented",
        "Under selective checkpointing an operator whose output is to be saved or offloaded, MUST or PREFER, does not "
        "run again in the backward pass, and one to be recomputed does; gradients of Functions are right.",
        "checkpoint: CheckpointPolicy",
        quote="{MUST,PREFER}_SAVE: The operation's output will be saved during the forward pass and will not be "
        "recomputed during the backward pass. {MUST,PREFER}_RECOMPUTE: The operation's output will not be saved during "
        "the forward pass and will be recomputed during the backward pass. {MUST,PREFER}_CPU_OFFLOAD: The operation's "
        "output will be saved during the forward pass",
        needs="checkpoint",
        fault="an operator with the policy PREFER_SAVE runs again",
    ),
    Clause(
        "CKPT-16",
        "documented",
        "Checkpointing saves the tensor arguments of its function: backward raises if one was changed in place, and "
        "hooks on saved tensors see those of the reentrant variant.",
        "autograd mechanics: In-place correctness checks",
        quote="This ensures that if you're using in-place functions and not seeing any errors, you can be sure that "
        "the computed gradients are correct.",
        needs="checkpoint",
        fault="the reentrant variant keeps its arguments on ctx",
    ),
    Clause(
        "CKPT-17",
        "documented",
        "checkpoint_sequential divides a list or a Sequential into segments, of which all but the last are "
        "checkpointed, in the variant asked for.",
        "checkpoint: checkpoint_sequential",
        quote="All segments except the last will not store the intermediate activations. The inputs of each "
        "checkpointed segment will be saved for re-running the segment in the backward pass.",
        needs="checkpoint",
        fault="the last segment is checkpointed too",
    ),
    Clause(
        "CKPT-18",
        "documented",
        "Without an input that requires grad the reentrant variant warns and gives a constant; the other one "
        "differentiates what its function captures.",
        "checkpoint: use_reentrant",
        quote="At least one input and output must have requires_grad=True for the reentrant variant. If this condition "
        "is unmet, the checkpointed part of the model will not have gradients. The non-reentrant version does not have "
        "this requirement.",
        needs="checkpoint",
        fault="the reentrant variant does not warn",
    ),
    Clause(
        "CKPT-19",
        "documented",
        "Backward raises if a tensor that selective checkpointing saved was changed in place, unless "
        "allow_cache_entry_mutation is True.",
        "checkpoint: create_selective_checkpoint_contexts",
        quote="By default, an error is raised if any tensors cached by selective activation checkpoint are mutated in "
        "order to ensure correctness. If set to True, this check is disabled.",
        needs="checkpoint",
        fault="allow_cache_entry_mutation is ignored",
    ),
    Clause(
        "CKPT-20",
        "documented",
        "What a checkpointed function saves is not alive between the call and the backward pass, in both variants, in "
        "the segments of a sequence, and in a checkpoint within another.",
        "checkpoint: checkpoint",
        quote="To reduce this memory usage, tensors produced in the passed function are not kept alive until the "
        "backward pass.",
        needs="checkpoint",
        since="2.9",
        fault="what is saved in forward is kept until the pass",
    ),
    Clause(
        "CKPT-21",
        "observed",
        "The recomputation has the innermost torch.device around the call, and the state of autocast there, whatever "
        "is around the pass; that of the reentrant variant has the latter alone.",
        "source: torch/utils/checkpoint.py",
        needs="checkpoint autocast",
        since="2.9",
        fault="the recomputation makes tensors on the default device",
    ),
    Clause(
        "CKPT-22",
        "documented",
        "The first run of a checkpoint records as the mode around it says, that of the reentrant variant never. "
        "Tensors in lists and dicts get gradients, except in the reentrant variant, for which outputs that are all "
        "detached raise.",
        "checkpoint: use_reentrant",
        quote="The reentrant version does not consider tensors in nested structures (e.g., custom objects, lists, "
        "dicts, etc) as participating in autograd, while the non-reentrant version does.",
        needs="checkpoint",
        fault="the first run of the reentrant variant records",
    ),
    Clause(
        "CKPT-23",
        "documented",
        "The policy of selective checkpointing is asked for each operator of the first run, with is_recompute False, "
        "and never in the recomputation; True stands for saving.",
        "checkpoint: SelectiveCheckpointContext",
        quote="The policy function is only called during the forward pass.",
        needs="checkpoint",
        since="2.13",
        fault="is_recompute is True in forward",
    ),
    Clause(
        "CKPT-24",
        "documented",
        "Backward passes within one GraphExecGroup run the function of a checkpoint again once, of the reentrant "
        "variant once for each pass; groups cannot be nested, and end with their block.",
        "checkpoint: GraphExecGroup",
        quote="Any checkpointed regions encountered by backward under the same instance of this context manager will "
        "trigger recompute at most once, even if there are multiple calls to backward.",
        needs="checkpoint",
        since="2.13",
        fault="a group changes nothing",
    ),
    Clause(
        "CKPT-25",
        "documented",
        "A compiled checkpoint recomputes with the random numbers of forward, whatever preserve_rng_state says.",
        "checkpoint: preserve_rng_state",
        quote="Note that under torch.compile, this flag doesn't take effect and we always preserve RNG state.",
        needs="checkpoint compile",
        since="2.13",
        fault="a compiled checkpoint draws other random numbers in the backward pass",
    ),
    Clause(
        "CKPT-26",
        "documented",
        "checkpoint without a function gives a decorator, with which each call of a function is checkpointed with the "
        "decorator's options, and gets all arguments.",
        "checkpoint: checkpoint",
        quote="torch.utils.checkpoint.checkpoint() can now be called without a function to create an eager-mode "
        "decorator with checkpoint configuration separated from the wrapped function's arguments.",
        needs="checkpoint",
        since="2.14",
        fault="a function that checkpoint decorates is not checkpointed",
    ),
    Clause(
        "CKPT-27",
        "observed",
        "A module in checkpoint_wrapper is recomputed by the implementation that is asked for, with the module's "
        "results and gradients; apply_activation_checkpointing wraps the modules that check_fn chooses.",
        "source: torch/distributed/algorithms/_checkpoint/checkpoint_wrapper.py",
        needs="checkpoint",
        fault="a wrapped module is never recomputed by the reentrant implementation",
    ),
    Clause(
        "THREAD-01",
        "documented",
        "On the CPU a backward pass runs on the thread that called it, and passes over separate graphs in several "
        "threads are all right.",
        "autograd mechanics: Concurrency on CPU",
        needs="threads",
        fault="backward passes run on a thread of their own",
    ),
    Clause(
        "THREAD-02",
        "documented",
        "Threads that run backward on one graph, even at the same time, each get its gradients if it is retained; "
        "otherwise one of them frees the saved tensors, and the others get the error of a second backward.",
        "autograd mechanics: Graph retaining",
        needs="threads",
        fault="backward passes in other threads than the main one retain the graph",
    ),
    Clause(
        "AMP-01",
        "documented",
        "custom_fwd without a cast leaves autocast as it is in forward, and custom_bwd runs backward in the state "
        "that forward had.",
        "amp examples: Functions with multiple inputs or autocastable ops",
        needs="autocast",
        fault="custom_bwd runs backward with autocast off",
    ),
    Clause(
        "AMP-02",
        "documented",
        "Without custom_bwd backward does not have the autocast state of forward: in a pass outside autocast, one that "
        "mixes the lower and the full precision in a product raises.",
        "amp examples: Functions with multiple inputs or autocastable ops",
        needs="autocast",
        fault="backward runs in forward's autocast state without custom_bwd too",
    ),
    Clause(
        "AMP-03",
        "documented",
        "custom_fwd with cast_inputs casts floating tensors and switches autocast off in forward and backward; "
        "outside autocast it does nothing.",
        "amp examples: Functions that need a particular dtype",
        needs="autocast",
        fault="cast_inputs casts outside autocast too",
    ),
    Clause(
        "AMP-04",
        "documented",
        "torch.amp's custom_fwd and custom_bwd can decorate a method bare, without arguments.",
        "amp examples: Functions with multiple inputs or autocastable ops",
        needs="autocast",
        fault="a bare custom_fwd switches autocast off in forward",
    ),
    Clause(
        "AMP-05",
        "documented",
        "custom_fwd and custom_bwd work for a Function with setup_context as for one whose forward takes ctx.",
        "amp examples: Functions with multiple inputs or autocastable ops",
        quote="Apply custom_fwd and custom_bwd (with no arguments) to forward and backward respectively. These ensure "
        "that forward executes with the current autocast state and that backward executes with the same autocast state "
        "as forward.",
        needs="autocast",
        fault="custom_bwd switches autocast off for a Function with setup_context",
    ),
    Clause(
        "AMP-06",
        "documented",
        "Within autocast a product in forward has the region's dtype, by default that of get_autocast_dtype, on the "
        "CPU bfloat16; double precision and integers stay. Gradients are right with and without the cache.",
        "amp: autocast",
        quote="It uses the default value (torch.float16 for CUDA and torch.bfloat16 for CPU), given by "
        "torch.get_autocast_dtype, if dtype is None. [...] Ops that run in float64 or non-floating-point dtypes are "
        "not eligible, and will run in these types whether or not autocast is enabled.",
        needs="autocast",
        since="2.13",
        fault="without a dtype autocast has half precision",
    ),
    Clause(
        "AMP-07",
        "documented",
        "The backward of code compiled under autocast runs in the state that backward_pass_autocast says, whatever is "
        'around the pass: by default in that of forward, for "off" without autocast.',
        "amp: Automatic Mixed Precision package",
        quote="When combining AMP with torch.compile, note that the default torch._functorch.config."
        'backward_pass_autocast setting is "same_as_forward". [...] If you follow AMP\'s recommended training pattern '
        'and run backward outside autocast, set torch._functorch.config.backward_pass_autocast to "off" for the '
        "compiled region.",
        needs="autocast compile",
        since="2.9",
        fault="backward_pass_autocast is ignored",
    ),
    Clause(
        "CHECK-01",
        "documented",
        "gradcheck compares backward with finite differences in double precision: True if they agree, else "
        "GradcheckError, or False with raise_exception=False.",
        "gradcheck: gradcheck",
        fault="gradcheck accepts gradients that are twice too large",
    ),
    Clause(
        "CHECK-02",
        "documented",
        "gradcheck raises if no input requires grad or if an input overlaps itself in memory, and warns if inputs are "
        "in single precision.",
        "gradcheck: gradcheck",
        needs="requires_grad",
        fault="gradcheck makes inputs contiguous instead of raising for those that overlap",
    ),
    Clause(
        "CHECK-03",
        "documented",
        "gradcheck catches a backward that ignores its cotangent, varies from run to run, lacks a gradient, or fails "
        "on undefined cotangents.",
        "gradcheck: gradcheck",
        fault="gradcheck assumes that the gradients of repeated runs are equal",
    ),
    Clause(
        "CHECK-04",
        "documented",
        "A backward that cannot handle unmaterialized cotangents makes gradcheck raise GradcheckError, or return "
        "False with raise_exception=False.",
        "gradcheck: check_undefined_grad",
        needs="materialize",
        fault="gradcheck does not try undefined cotangents",
    ),
    Clause(
        "CHECK-05",
        "documented",
        "With check_grad_dtypes gradcheck fails exactly if backward returns a gradient whose dtype is not its input's.",
        "gradcheck: check_grad_dtypes",
        fault="check_grad_dtypes fails for every backward",
    ),
    Clause(
        "CHECK-06",
        "documented",
        "gradcheck skips outputs that are not differentiable, and requires a numerical gradient of zero if there are "
        "no others.",
        "source: torch/autograd/gradcheck.py",
        needs="nondifferentiable",
        fault="gradcheck passes whatever has no differentiable output",
    ),
    Clause(
        "CHECK-07",
        "documented",
        "gradgradcheck checks the derivative of the gradients, also in fast mode, batched, with non-contiguous "
        "cotangents and forward over reverse.",
        "gradcheck mechanics: Gradgradcheck implementation",
        needs="double_backward",
        fault="gradgradcheck only checks the first derivative",
    ),
    Clause(
        "CHECK-08",
        "documented",
        "gradcheck alone does not establish second derivatives: a backward that is once-differentiable or saves "
        "intermediates passes it and fails gradgradcheck.",
        "tutorials: Double Backward with Custom Functions",
        needs="double_backward once_differentiable",
        fault="gradgradcheck accepts derivatives that are all zero",
    ),
)
