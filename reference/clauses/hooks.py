"""Clauses on hooks on nodes, tensors, saved tensors and modules, on leaves, and on anomaly mode."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "HOOK-01",
        "documented",
        "A node's pre-hook gets the tuple of cotangents and may return another one to be used instead, until its "
        "handle is removed.",
        "graph: Node.register_prehook",
        needs="requires_grad",
        fault="what a pre-hook returns is ignored",
    ),
    Clause(
        "HOOK-02",
        "documented",
        "A node's post-hook gets the gradients and the cotangents, and what it returns replaces the gradients unless "
        "it is None, until its handle is removed.",
        "graph: Node.register_hook",
        needs="requires_grad",
        fault="what a post-hook returns is ignored",
    ),
    Clause(
        "HOOK-03",
        "observed",
        "The gradients that a post-hook gets have one entry per tensor argument of forward and none for other "
        "arguments.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="post-hooks get an entry for every argument of forward",
    ),
    Clause(
        "HOOK-04",
        "observed",
        "A hook that returns another number of values, or values of another dtype or shape, than it was given raises.",
        "source: torch/csrc/autograd/python_hook.cpp",
        needs="requires_grad",
        fault="surplus values that a hook returns are cut off silently",
    ),
    Clause(
        "HOOK-05",
        "documented",
        "A tensor's hook runs before the tensor's node and may replace the gradient, until its handle is removed; "
        "registering one on a tensor that does not require grad raises.",
        "Tensor: register_hook",
        needs="requires_grad",
        fault="what a tensor's hook returns reaches the node only in the next pass",
    ),
    Clause(
        "HOOK-06",
        "documented",
        "The order is: tensor hooks, node pre-hooks, the .grad of tensors that retain it, the node, post-accumulate "
        "hooks of leaves, node post-hooks.",
        "autograd mechanics: The order in which the different hooks are fired",
        needs="requires_grad accumulate",
        fault="node pre-hooks run after the node",
    ),
    Clause(
        "HOOK-07",
        "documented",
        "The .grad of a tensor that retains it is the gradient as the tensor's hooks left it.",
        "autograd mechanics: The order in which the different hooks are fired",
        needs="requires_grad accumulate",
        fault="retain_grad keeps the gradient from before the hooks that are registered after it",
    ),
    Clause(
        "HOOK-08",
        "documented",
        "The hook of a tensor among the inputs of grad fires even if the tensor's node does not run, in which case "
        "the node's hooks do not fire.",
        "autograd mechanics: Whether a particular hook will be fired",
        needs="requires_grad",
        fault="a tensor's hook fires only if its node runs",
    ),
    Clause(
        "HOOK-09",
        "documented",
        "A post-accumulate hook fires after .grad was set, and so never in autograd.grad, until its handle is removed; "
        "registering one on a tensor that is not a leaf raises.",
        "Tensor: register_post_accumulate_grad_hook",
        needs="requires_grad accumulate",
        fault="post-accumulate hooks fire before .grad is set",
    ),
    Clause(
        "HOOK-10",
        "documented",
        "A hook on several tensors fires once per pass until its handle is removed: in mode all after the last needed "
        "gradient, with None for the others, in mode any at the first.",
        "graph: register_multi_grad_hook",
        needs="requires_grad accumulate",
        fault="a hook in mode any fires at every gradient",
    ),
    Clause(
        "HOOK-11",
        "documented",
        "Hooks may be registered on ctx in forward, and a post-hook that is registered while the node's backward runs "
        "still fires.",
        "graph: Node.register_hook",
        needs="requires_grad",
        since="2.5",
        fault="a post-hook registered during backward fires from the next pass on only",
    ),
    Clause(
        "HOOK-12",
        "documented",
        "A post-accumulate hook may change its leaf and .grad in place, replace .grad or remove it; it runs with grad "
        "mode off, and on under create_graph.",
        "Tensor: register_post_accumulate_grad_hook",
        quote="The hook can in-place modify and access its Tensor argument, including its .grad field. [...] Since "
        "this hook runs during the backward pass, it will run in no_grad mode (unless create_graph is True).",
        needs="requires_grad accumulate inplace",
        fault="a .grad that a post-accumulate hook removes comes back",
    ),
    Clause(
        "LEAF-01",
        "documented",
        "Tensors that do not require grad, and those that the user made, are leaves without a grad_fn; differentiable "
        "outputs of a recorded call are none, and a pass gives leaves alone a .grad.",
        "Tensor: is_leaf",
        needs="requires_grad accumulate",
        fault="tensors that do not require grad are no leaves",
    ),
    Clause(
        "LEAF-02",
        "documented",
        "requires_grad_ returns its tensor and sets requires_grad, by default to True; setting it to False raises for "
        "a tensor that is not a leaf.",
        "Tensor: requires_grad_",
        needs="requires_grad",
        fault="requires_grad=False detaches an output",
    ),
    Clause(
        "LEAF-03",
        "documented",
        "retains_grad is True for what is not a leaf and retains its .grad; retain_grad does nothing to a leaf that "
        "requires grad.",
        "Tensor: retains_grad",
        needs="requires_grad accumulate",
        fault="a leaf on which retain_grad was called says that it retains its grad",
    ),
    Clause(
        "LEAF-04",
        "documented",
        "detach gives a tensor with the same memory that never requires grad and has neither a history nor a tangent.",
        "Tensor: detach",
        needs="requires_grad jvp",
        fault="what detach gives keeps the tangent",
    ),
    Clause(
        "LEAF-05",
        "documented",
        "detach_ makes an output a leaf with neither a history nor a tangent, and raises for a view.",
        "Tensor: detach_",
        needs="requires_grad jvp views",
        fault="detach_ of a view does nothing, silently",
    ),
    Clause(
        "PACK-01",
        "documented",
        "Saved-tensor hooks apply to save_for_backward: pack runs once per saved tensor and not for None, unpack at "
        "every access.",
        "graph: saved_tensors_hooks",
        needs="saved_hooks",
        fault="a tensor that is saved twice is packed once",
    ),
    Clause(
        "PACK-02",
        "documented",
        "Pack hooks see the live tensor, with its requires_grad and node, and run with grad mode off.",
        "autograd mechanics: Registering default hooks for saved tensors",
        needs="saved_hooks requires_grad",
        fault="pack hooks get a detached tensor",
    ),
    Clause(
        "PACK-03",
        "documented",
        "A pack hook may return any object, and the unpacked tensor gets the saved one's place in the graph, so that "
        "second derivatives stay right.",
        "autograd mechanics: Hooks for saved tensors",
        needs="saved_hooks double_backward",
        fault="unpacked tensors are detached",
    ),
    Clause(
        "PACK-04",
        "documented",
        "Of nested saved-tensor hooks only the innermost pair applies; where they are disabled, entering them raises "
        "the message given.",
        "graph: disable_saved_tensors_hooks",
        needs="saved_hooks",
        fault="nested pack hooks are applied one after the other",
    ),
    Clause(
        "PACK-05",
        "documented",
        "A pack hook that changes its tensor in place raises, and so does an unpack hook that returns anything but a "
        "tensor.",
        "autograd mechanics: Hooks for saved tensors",
        needs="saved_hooks inplace",
        fault="pack hooks get a clone, which they can change without an error",
    ),
    Clause(
        "PACK-06",
        "documented",
        "Saved-tensor hooks see neither tensors that are kept as attributes of ctx nor anything of a call that is not "
        "recorded.",
        "Function: save_for_backward",
        needs="saved_hooks",
        fault="tensors of calls that are not recorded are packed too",
    ),
    Clause(
        "PACK-07",
        "documented",
        "If a saved tensor is changed in place, a later access to it raises under saved-tensor hooks as well.",
        "autograd mechanics: In-place correctness checks",
        needs="saved_hooks saved_check",
        fault="under hooks a clone is saved, so that no change is noticed",
    ),
    Clause(
        "PACK-08",
        "documented",
        "Under save_on_cpu and allow_mutation_on_saved_tensors the gradients of custom Functions are right.",
        "graph: save_on_cpu",
        needs="saved_hooks inplace",
        fault="save_on_cpu gives saved tensors back in half precision",
    ),
    Clause(
        "PACK-09",
        "documented",
        "A node lists its saved tensors as _raw_saved_tensors until they are released; register_hooks on one of them "
        "packs at once, and raises the second time; on one of a built-in node that was released it raises, too.",
        "autograd mechanics: Registering hooks for a saved tensor",
        needs="saved_hooks",
        fault="a second pair of hooks on a saved tensor replaces the first",
    ),
    Clause(
        "PACK-10",
        "documented",
        "What allow_mutation_on_saved_tensors keeps for calls in its block is let go when the block ends.",
        "graph: allow_mutation_on_saved_tensors",
        quote="The state managed by the context manager is automatically cleared upon exiting.",
        needs="saved_hooks",
        fault="the state is kept for as long as the graph",
    ),
    Clause(
        "PACK-11",
        "documented",
        "In a module that offload_wrapper wraps, alone or together with checkpoint_wrapper, what Functions and layers "
        "save does not stay where it was; backward gets it on its device and in its dtype.",
        "source: torch/distributed/algorithms/_checkpoint/checkpoint_wrapper.py",
        quote="Offloads intermediate activations to the CPU for modules wrapped with this function. Wrappers with "
        "activation offload can be composed with ones that do recomputation-based checkpoint",
        needs="saved_hooks memory",
        fault="offload_wrapper keeps intermediates where they are",
    ),
    Clause(
        "PACK-12",
        "documented",
        "Saved tensors that hooks write to files come back as often as they are read; what a pack hook returned is "
        "deleted with the pass that frees the graph, and with it a file that removes itself.",
        "tutorials: Hooks for autograd saved tensors, Saving tensors to disk",
        quote="When we call backward, the output of pack_hook will be deleted, which causes the file to be removed",
        needs="saved_hooks memory",
        fault="what pack hooks return is kept for as long as the process",
    ),
    Clause(
        "PACK-13",
        "documented",
        "A saved output is let go with the output if the pack hook detaches or copies it; if the hook keeps it as it "
        "is, with the pass that frees the graph.",
        "autograd mechanics: Registering default hooks for saved tensors",
        quote="Calling .detach() on the input before keeping it breaks the cycle, which is why the examples below do "
        "so. [...] Running backward with retain_graph=False releases the saved tensor and breaks the cycle, so memory "
        "is freed as usual",
        needs="saved_hooks memory",
        fault="pack hooks are kept together with what they got",
    ),
    Clause(
        "ANOM-01",
        "documented",
        "In anomaly mode an error in backward is shown with forward's traceback, and a NaN gradient raises unless "
        "check_nan is False.",
        "autograd: detect_anomaly",
        fault="anomaly mode lets NaN gradients pass",
    ),
    Clause(
        "ANOM-02",
        "documented",
        "In anomaly mode a node's metadata holds the traceback of the call that made it.",
        "graph: Node.metadata",
        needs="requires_grad",
        fault="anomaly mode leaves the metadata empty",
    ),
    Clause(
        "MODULE-01",
        "documented",
        "A module's full backward hook gets the gradients of its positional inputs, None for those that are no tensor, "
        "and of its outputs, in each pass that needs the former, and may replace these, until its handle is removed.",
        "Module: register_full_backward_hook",
        quote="grad_input will only correspond to the inputs given as positional arguments and all kwarg arguments are "
        "ignored. Entries in grad_input and grad_output will be None for all non-Tensor arguments.",
        needs="requires_grad",
        fault="what a module's full backward hook returns is ignored",
    ),
    Clause(
        "MODULE-02",
        "documented",
        "A module's full backward pre-hook gets the tuple of the gradients of its outputs in each pass, None for "
        "those that are no tensor, and may replace it, until its handle is removed.",
        "Module: register_full_backward_pre_hook",
        needs="requires_grad",
        fault="what a module's full backward pre-hook returns is ignored",
    ),
    Clause(
        "MODULE-03",
        "documented",
        "Where no positional input of a module requires grad its full backward hooks fire when the gradients of its "
        "outputs are computed; where no output requires grad they do not fire.",
        "Module: register_full_backward_hook",
        quote="If none of the module inputs require gradients, the hook will fire when the gradients are computed with "
        "respect to module outputs. If none of the module outputs require gradients, then the hooks will not fire.",
        needs="requires_grad",
        fault="a module's hooks do not fire if none of its inputs requires grad",
    ),
    Clause(
        "MODULE-04",
        "documented",
        "Of the backward hooks and pre-hooks of a module those for all modules run first, then those with prepend, the "
        "last first, then the others in the order in which they were registered.",
        "Module: register_full_backward_hook",
        needs="requires_grad",
        fault="a module's own hooks run before those of all modules",
    ),
    Clause(
        "MODULE-05",
        "documented",
        "forward of a module with backward hooks gets a view of each tensor, and so does its caller; changing one that "
        "requires grad in place raises.",
        "Module: register_full_backward_hook",
        quote="Modifying inputs or outputs inplace is not allowed when using backward hooks and will raise an error.",
        needs="requires_grad inplace views",
        fault="forward of a module with hooks gets copies, which it can change",
    ),
    Clause(
        "MODULE-06",
        "observed",
        "A module's backward hook or pre-hook that returns another number of gradients than it got raises, and so does "
        "a hook that returns a gradient where no input requires one.",
        "source: torch/utils/hooks.py",
        needs="requires_grad",
        fault="surplus gradients that a module's hook returns are dropped",
    ),
    Clause(
        "MODULE-07",
        "documented",
        "A tensor of a module that Functions parametrize has their value, and its gradient reaches the original "
        "through their backward.",
        "register_parametrization: first paragraph",
        quote="If the original tensor requires a gradient, the backward pass will differentiate through "
        "parametrization, and the optimizer will update the tensor accordingly.",
        needs="requires_grad accumulate",
        fault="a parametrized tensor is detached",
    ),
    Clause(
        "MODULE-08",
        "documented",
        "A value that is set for a parametrized tensor goes through right_inverse to one or several originals, of "
        "which each has its gradient; another shape, dtype or type raises.",
        "register_parametrization: right_inverse",
        quote="it is possible to initialize a parametrized tensor by assigning to it",
        needs="requires_grad accumulate",
        fault="a value that is set does not reach the originals",
    ),
)
