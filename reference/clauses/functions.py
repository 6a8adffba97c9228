"""Clauses on Functions and how they are called, on ctx, and on needs_input_grad."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "FN-01",
        "documented",
        "A custom operation is a subclass of Function with static methods forward and backward; calling its class "
        "method apply gives forward's result, with a grad_fn.",
        "extending: How to use",
        needs="requires_grad",
        fault="apply returns its outputs detached",
    ),
    Clause(
        "FN-02",
        "documented",
        "All tensor outputs of a recorded call have one and the same grad_fn, and the output_nr of each is its "
        "position in what forward returned.",
        "tutorials: Double Backward with Custom Functions",
        needs="requires_grad",
        fault="the last of several outputs gets a node of its own",
    ),
    Clause(
        "FN-03",
        "documented",
        "forward takes any number of arguments of any Python type, and every tensor passed directly is differentiated.",
        "extending: Step 1",
        fault="tensors that follow an argument such as a number get no gradient",
    ),
    Clause(
        "FN-04",
        "documented",
        "Tensors inside lists, tuples or dicts given to apply are not registered in the graph: they get no gradient, "
        "and on their own they do not make the outputs require grad.",
        "extending: Step 1",
        needs="requires_grad",
        fault="outputs require grad when a list argument holds a tensor that does",
    ),
    Clause(
        "FN-05",
        "documented",
        "Tensor arguments that require grad reach forward as tensors that do not track history.",
        "extending: Step 1",
        needs="requires_grad",
        fault="tensor arguments reach forward as new leaves that require grad",
    ),
    Clause(
        "FN-06",
        "documented",
        "forward runs with gradient recording off: the results of operations inside it do not require grad.",
        "tutorials: Double Backward with Custom Functions",
        needs="requires_grad",
        fault="forward runs with grad mode on",
    ),
    Clause(
        "FN-07",
        "documented",
        "apply returns a tensor where forward returns a tensor, and a tuple of as many entries where forward returns "
        "a tuple, a tuple of one included.",
        "extending: Step 1",
        fault="a tuple of one output comes back as the bare tensor",
    ),
    Clause(
        "FN-08",
        "observed",
        "A list or dict returned by forward is a single opaque output: apply returns it unchanged, and the tensors "
        "in it do not require grad.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="a list returned by forward comes back as a tuple of tracked tensors",
    ),
    Clause(
        "FN-09",
        "observed",
        "A named tuple returned by forward comes back as a plain tuple of tracked tensors.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="a named tuple returned by forward keeps its type",
    ),
    Clause(
        "FN-10",
        "documented",
        "forward may return objects that are not tensors: apply gives back the same objects at the same positions, "
        "and backward gets None for each of them.",
        "Function: backward",
        needs="objects",
        fault="numbers returned by forward are replaced by None",
    ),
    Clause(
        "FN-11",
        "documented",
        "A parameter of forward with a default value may be left out of the call, and the trailing None that backward "
        "returns for it is accepted.",
        "extending: Step 1",
        needs="keywords",
        fault="a trailing None for an argument that was left out is an error",
    ),
    Clause(
        "FN-12",
        "documented",
        "Keyword arguments given to apply reach forward like other arguments, whether they fill a positional "
        "parameter, a keyword-only one or **kwargs; tensors among them are differentiated.",
        "Function: forward",
        needs="keywords",
        since="2.13",
        fault="keyword arguments of apply are dropped silently",
    ),
    Clause(
        "FN-13",
        "observed",
        "apply raises TypeError for a keyword that forward does not have, and for an argument given by position and "
        "by keyword at once.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="keywords",
        since="2.13",
        fault="keywords that forward does not have are ignored",
    ),
    Clause(
        "FN-14",
        "documented",
        "An alias of apply, and a function that adds defaults and keywords before it calls apply, give the same "
        "results and gradients as apply itself.",
        "extending: Example",
        needs="keywords",
        fault="an alias of apply keeps using the non-tensor arguments of its first call",
    ),
    Clause(
        "FN-15",
        "documented",
        "Applying a class that defines no forward raises NotImplementedError.",
        "Function: forward",
        needs="classes",
        fault="apply without a forward returns its first argument",
    ),
    Clause(
        "FN-16",
        "documented",
        "A class that defines neither backward nor vjp can be applied; NotImplementedError is raised only when a "
        "backward pass reaches its node.",
        "Function: backward",
        needs="classes",
        fault="a missing backward counts as one that returns None",
    ),
    Clause(
        "FN-17",
        "documented",
        "A class that defines vjp instead of backward has the gradients that vjp returns.",
        "Function: backward",
        needs="classes",
        fault="a vjp defined in place of backward is not found",
    ),
    Clause(
        "FN-18",
        "documented",
        "A class must not define both backward and vjp: differentiating it raises an error.",
        "source: torch/autograd/function.py",
        needs="classes",
        fault="vjp silently takes precedence over the backward of the same class",
    ),
    Clause(
        "FN-19",
        "documented",
        "Creating an instance of a Function class gives a DeprecationWarning, and still returns an object.",
        "source: torch/autograd/function.py",
        fault="instances are created without a warning",
    ),
    Clause(
        "FN-20",
        "documented",
        "Calling an instance of a Function class raises RuntimeError.",
        "source: torch/autograd/function.py",
        fault="calling an instance does what apply does",
    ),
    Clause(
        "FN-21",
        "documented",
        "forward and backward are static methods: a class that defines one without @staticmethod raises an error.",
        "Function: forward",
        fault="methods without @staticmethod are made static when the class is created",
    ),
    Clause(
        "FN-22",
        "documented",
        "Calling forward directly does not use the custom backward: the operations in it are recorded one by one, as "
        "in any other function.",
        "Function: first paragraph",
        needs="requires_grad",
        fault="a direct call of forward is differentiated by the custom backward",
    ),
    Clause(
        "FN-23",
        "documented",
        "A tensor that forward and backward capture from their surroundings, instead of getting it as an argument, "
        "receives no gradient.",
        "extending torch.func: Limitations and gotchas",
        fault="tensors in the closure of forward are tracked like arguments",
    ),
    Clause(
        "FN-24",
        "documented",
        "A call in which no tensor requires grad, or with no tensor at all, runs forward and returns tensors with no "
        "grad_fn that do not require grad.",
        "autograd mechanics: Setting requires_grad",
        needs="requires_grad",
        fault="a call is recorded even if no argument requires grad",
    ),
    Clause(
        "FN-25",
        "observed",
        "What forward records under enable_grad is discarded: outputs are differentiated by the custom backward "
        "alone, and those of an unrecorded call do not require grad.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="requires_grad",
        fault="a graph that forward records under enable_grad replaces the custom backward",
    ),
    Clause(
        "FN-26",
        "documented",
        "A Function applied inside another's forward is not recorded; applied inside a backward that builds a graph, "
        "it is.",
        "extending torch.func: Example 1",
        needs="double_backward requires_grad",
        fault="a Function applied inside a backward is never recorded",
    ),
    Clause(
        "FN-27",
        "documented",
        "A subclass of a custom Function that overrides backward is differentiated by the override, and its node "
        "is named after the subclass, with Backward appended.",
        "source: torch/autograd/function.py",
        needs="requires_grad",
        fault="a subclass is differentiated by its parent's backward",
    ),
    Clause(
        "FN-28",
        "observed",
        "backward is looked up on the class when it runs, so that a replacement assigned after the call is the one "
        "that is used.",
        "source: torch/autograd/function.py",
        needs="classes",
        fault="a node keeps the backward that its class had when it was applied",
    ),
    Clause(
        "FN-29",
        "documented",
        "An exception in forward or backward reaches the caller with its own type and leaves grad mode as it was.",
        "autograd: detect_anomaly",
        needs="requires_grad",
        fault="an exception in backward reaches the caller as RuntimeError",
    ),
    Clause(
        "FN-30",
        "observed",
        "A chain of more than 10 000 recorded calls can be differentiated and then freed on a stack of 256 KiB.",
        "source: torch/csrc/autograd/function.cpp",
        fault="a backward pass through more than 10 000 nodes raises RecursionError",
    ),
    Clause(
        "FN-31",
        "documented",
        "forward may take the NumPy array of an input that requires grad, although doing so outside a Function is an "
        "error.",
        "Function: mark_dirty",
        needs="numpy requires_grad",
        fault="numpy() raises in forward too for inputs that require grad",
    ),
    Clause(
        "FN-32",
        "observed",
        "A Function takes tensors of a class that wraps another tensor by __torch_dispatch__: outputs and gradients "
        "are of that class, with the values of plain tensors, for views, changes in place, checkpoints, and compiled.",
        "source: torch/utils/_python_dispatch.py",
        needs="requires_grad compile",
        fault="a change of strides is not seen from outside",
    ),
    Clause(
        "CTX-01",
        "documented",
        "The methods of one call share one ctx object, and any attribute stored on it in forward or setup_context can "
        "be read in backward and jvp.",
        "Function: forward",
        needs="context jvp",
        fault="backward gets another ctx, without the attributes that forward stored",
    ),
    Clause(
        "CTX-02",
        "observed",
        "ctx is the node of the recorded call, the very object that the outputs have as grad_fn, and not an instance "
        "of the Function's class.",
        "source: torch/autograd/function.py",
        needs="requires_grad",
        fault="backward's ctx is a wrapper around the node, not grad_fn itself",
    ),
    Clause(
        "CTX-03",
        "documented",
        "Attributes stored on ctx survive the backward pass and can be read again in a second one.",
        "extending: Step 2",
        needs="context",
        fault="attributes of ctx are deleted once backward has run",
    ),
    Clause(
        "CTX-04",
        "documented",
        "save_for_backward, save_for_forward, mark_dirty and mark_non_differentiable each take effect once per call of "
        "the Function: if one of them is called several times, only its last call has an effect.",
        "Function: save_for_backward",
        needs="inplace jvp nondifferentiable",
        fault="a second save_for_backward adds to what the first one saved",
    ),
    Clause(
        "CTX-05",
        "observed",
        "On ctx metadata, next_functions, requires_grad, saved_tensors and saved_variables are read-only from forward "
        "on, materialize_grads takes only a bool and cannot be read, and all else can be replaced; without its apply "
        "backward fails.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="materialize requires_grad",
        fault="ctx.saved_tensors can be assigned and then reads what was assigned",
    ),
    Clause(
        "CTX-06",
        "observed",
        "In forward and setup_context ctx.saved_tensors does not have what save_for_backward was given; grad_fn and "
        "backward have it until the graph is freed.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="context",
        fault="ctx.saved_tensors can be read in forward right after saving",
    ),
    Clause(
        "CTX-07",
        "observed",
        "In forward ctx.to_save, non_differentiable, dirty_tensors and saved_for_forward hold the tuple that was given "
        "to their method, and can also be assigned; before that, and after apply, they are None.",
        "source: torch/autograd/function.py",
        needs="inplace jvp nondifferentiable",
        fault="ctx.to_save still holds the saved tensors after apply",
    ),
    Clause(
        "CTX-08",
        "documented",
        "ctx.saved_variables holds the same tensors as ctx.saved_tensors, and reading it gives a DeprecationWarning.",
        "tutorials: Custom C++ and CUDA Extensions",
        fault="ctx.saved_variables is read without a warning",
    ),
    Clause(
        "CTX-09",
        "documented",
        "ctx.mark_shared_storage gives a FutureWarning and has no other effect.",
        "source: torch/autograd/function.py",
        fault="ctx.mark_shared_storage gives no warning",
    ),
    Clause(
        "CTX-10",
        "observed",
        "Nodes lack the old interface: they have no _do_forward, _do_backward or retain_variables.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="nodes have a method _do_backward",
    ),
    Clause(
        "CTX-11",
        "documented",
        "After set_output_grad_dtype in forward or setup_context backward gets each cotangent in the dtype declared "
        "for its output, or for None as it comes. Another number of dtypes raises, and one for what is not "
        "differentiable.",
        "Function: set_output_grad_dtype",
        quote="Pass a torch.dtype and the engine guarantees the gradient handed to backward has that dtype. This is "
        "only valid for a differentiable Tensor output. Pass None and the gradient is handed to backward with "
        "whatever dtype it already has.",
        since="2.14",
        fault="declared dtypes are ignored",
    ),
    Clause(
        "NIG-01",
        "documented",
        "ctx.needs_input_grad is a tuple of bools, one for each argument given to forward, in order and without ctx.",
        "Function: backward",
        needs="needs_input_grad",
        fault="needs_input_grad has one entry too few",
    ),
    Clause(
        "NIG-02",
        "documented",
        "ctx.needs_input_grad is False for arguments that are not tensors, for tensors that do not require grad and "
        "for integer tensors.",
        "extending: Step 1",
        needs="needs_input_grad",
        fault="needs_input_grad is True for every tensor argument",
    ),
    Clause(
        "NIG-03",
        "observed",
        "When forward takes ctx, needs_input_grad covers only the arguments that were passed: parameters left at "
        "their defaults have no entry.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="needs_input_grad",
        fault="needs_input_grad of a forward with ctx has entries for defaulted parameters",
    ),
    Clause(
        "NIG-04",
        "observed",
        "When setup_context is defined, needs_input_grad and inputs cover every parameter of forward, those left at "
        "their defaults included.",
        "source: torch/autograd/function.py",
        needs="needs_input_grad",
        fault="needs_input_grad lacks defaulted parameters although setup_context is defined",
    ),
    Clause(
        "NIG-05",
        "observed",
        "Under no_grad and inference_mode needs_input_grad still describes the inputs: it is True for those that "
        "require grad.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="needs_input_grad requires_grad",
        fault="needs_input_grad is all False under no_grad",
    ),
    Clause(
        "NIG-06",
        "documented",
        "During a backward pass needs_input_grad is True exactly for the inputs whose gradients the pass was asked "
        "for.",
        "Function: backward",
        needs="needs_input_grad",
        fault="needs_input_grad is all False when a pass is asked for some inputs only",
    ),
    Clause(
        "NIG-07",
        "documented",
        "A backward need not look at needs_input_grad: a gradient that it returns for an input that needs none is not "
        "an error.",
        "extending: Example",
        needs="needs_input_grad",
        fault="a gradient where needs_input_grad is False is an error",
    ),
)
