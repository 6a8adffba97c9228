"""Clauses on setup_context, second derivatives, grad modes, complex numbers and kinks."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "SETUP-01",
        "documented",
        "Where setup_context is overridden forward gets no ctx, and setup_context(ctx, inputs, output) runs after it "
        "with the tuple of the arguments themselves.",
        "Function: forward",
        needs="classes",
        fault="setup_context gets copies of the inputs that do not require grad",
    ),
    Clause(
        "SETUP-02",
        "documented",
        "The output that setup_context gets is what forward returned: a bare tensor, a tuple, or a tuple of one.",
        "extending torch.func: Example 1",
        needs="classes",
        fault="a tuple of one output reaches setup_context as a bare tensor",
    ),
    Clause(
        "SETUP-03",
        "observed",
        "setup_context runs with grad mode off, on outputs that have no node yet, and its return value is ignored.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="setup_context runs with grad mode on",
    ),
    Clause(
        "SETUP-04",
        "observed",
        "setup_context runs even if the call will not be recorded: without inputs that require grad, and under "
        "no_grad.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="requires_grad",
        fault="setup_context is skipped when no input requires grad",
    ),
    Clause(
        "SETUP-05",
        "documented",
        "An intermediate that forward returns as one more output can be saved in setup_context and gives right first "
        "and second derivatives.",
        "extending torch.func: Basic Usage",
        needs="double_backward",
        fault="the cotangent of an output that was saved is replaced by zeros",
    ),
    Clause(
        "SETUP-06",
        "documented",
        "Saving in setup_context an input that is returned as it is raises; returning it unsaved works, and so does "
        "saving it in a combined forward.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="classes",
        fault="saving an input that is returned as it is raises no error",
    ),
    Clause(
        "SETUP-07",
        "documented",
        "A combined forward and a forward with setup_context, for the same computation, give equal outputs, gradients "
        "and second derivatives.",
        "extending: Combined or separate forward and setup_context",
        needs="double_backward",
        fault="tensors saved in setup_context come back detached",
    ),
    Clause(
        "SETUP-08",
        "documented",
        "If setup_context is defined, forward may have keyword-only parameters, and apply takes them by keyword or "
        "leaves them at their defaults.",
        "Function: forward",
        fault="apply raises TypeError for every forward with keyword-only parameters",
    ),
    Clause(
        "ONCE-01",
        "documented",
        "A once-differentiable backward gives unchanged first derivatives and runs with grad mode off, even under "
        "create_graph.",
        "extending: Step 3",
        needs="once_differentiable requires_grad",
        fault="once_differentiable leaves grad mode on in backward",
    ),
    Clause(
        "ONCE-02",
        "documented",
        "Calling backward() on a gradient that a once-differentiable backward made from a cotangent that requires "
        "grad raises an error that says so.",
        "extending: Step 3",
        needs="once_differentiable double_backward accumulate",
        fault="the error of a second derivative does not mention once_differentiable",
    ),
    Clause(
        "ONCE-03",
        "documented",
        "Asking grad for a second derivative through a once-differentiable backward raises an error, also if unused "
        "inputs are allowed.",
        "extending: Step 3",
        needs="once_differentiable double_backward",
        fault="grad gives zeros instead of the error of a once-differentiable backward",
    ),
    Clause(
        "ONCE-04",
        "documented",
        "Where the cotangent does not require grad, a second derivative through a once-differentiable backward raises "
        "too, whatever terms are added.",
        "extending: Step 3",
        needs="once_differentiable double_backward accumulate",
        fault="once_differentiable does nothing when no cotangent requires grad",
    ),
    Clause(
        "ONCE-05",
        "documented",
        "A nested func.grad through a once-differentiable backward raises an error.",
        "extending: Step 3",
        needs="once_differentiable double_backward",
        fault="once_differentiable does nothing under func.grad",
    ),
    Clause(
        "ONCE-06",
        "observed",
        "A None among the gradients of a once-differentiable backward stays None, also under create_graph.",
        "source: torch/autograd/function.py",
        needs="once_differentiable double_backward",
        fault="once_differentiable turns None gradients into zeros",
    ),
    Clause(
        "ONCE-07",
        "documented",
        "Where the cotangent requires grad and other terms are added, a second derivative through a "
        "once-differentiable backward raises in backward(), backward(inputs=...) and grad.",
        "extending: Step 3",
        needs="once_differentiable double_backward accumulate",
        fault="once_differentiable adds no error when a cotangent requires grad",
    ),
    Clause(
        "ONCE-08",
        "documented",
        "Forward mode over a once-differentiable backward, as in func.jvp of func.grad, raises or is right.",
        "func: What are composable function transforms?",
        quote="These function transforms can compose with each other arbitrarily.",
        needs="once_differentiable jvp",
        fault="tangents of once-differentiable gradients are twice as large",
    ),
    Clause(
        "DBL-01",
        "documented",
        "Backward runs with grad mode off by default, and on under create_graph, also if the caller is under no_grad; "
        "its gradients may then require grad.",
        "tutorials: Double Backward with Custom Functions",
        needs="double_backward requires_grad",
        fault="under no_grad backward runs with grad mode off despite create_graph",
    ),
    Clause(
        "DBL-02",
        "documented",
        "A backward made of differentiable operations on its cotangents and on saved inputs or outputs can be "
        "differentiated to any order.",
        "tutorials: Double Backward with Custom Functions",
        needs="double_backward",
        fault="saved outputs come back detached",
    ),
    Clause(
        "DBL-03",
        "documented",
        "A saved intermediate, neither input nor output, has no history: first derivatives are right, and second "
        "derivatives leave out its part.",
        "Function: save_for_backward",
        needs="context double_backward",
        fault="forward runs with grad mode on, so that intermediates have a history",
    ),
    Clause(
        "DBL-04",
        "documented",
        "Intermediates that forward returns as further outputs, and whose cotangents backward takes into account, "
        "make second derivatives right.",
        "tutorials: Double Backward with Custom Functions",
        needs="double_backward",
        fault="only the first output's cotangent arrives when a graph is created",
    ),
    Clause(
        "DBL-05",
        "documented",
        "No gradient flows back through a tensor that is kept as an attribute of ctx instead of being saved.",
        "extending: Example",
        needs="double_backward",
        fault="intermediates kept on ctx get a history, because forward runs with grad mode on",
    ),
    Clause(
        "DBL-06",
        "documented",
        "A backward that cannot be traced may call another custom Function, whose own backward then gives the second "
        "derivative.",
        "tutorials: Double Backward with Custom Functions",
        needs="double_backward",
        fault="a Function called within a backward is not recorded",
    ),
    Clause(
        "DBL-07",
        "observed",
        "A backward that computes outside the framework, as with NumPy, and is not declared once-differentiable gives "
        "gradients that do not require grad.",
        "source: torch/csrc/autograd/python_function.cpp",
        needs="double_backward requires_grad numpy",
        fault="every gradient requires grad under create_graph, whatever it was computed with",
    ),
    Clause(
        "MODE-01",
        "documented",
        "A call under no_grad runs forward and records nothing: no output requires grad.",
        "autograd mechanics: No-grad Mode",
        needs="requires_grad",
        fault="apply switches grad mode on, so that calls under no_grad are recorded",
    ),
    Clause(
        "MODE-02",
        "documented",
        "The outputs that a call computes under inference_mode are inference tensors and do not require grad.",
        "autograd mechanics: Inference Mode",
        needs="requires_grad",
        fault="apply leaves inference mode, so that its outputs are ordinary tensors",
    ),
    Clause(
        "MODE-03",
        "documented",
        "An inference tensor may be an argument of a recorded call that does not save it.",
        "autograd mechanics: Inference Mode",
        needs="requires_grad",
        fault="apply raises for inference tensors in every recorded call",
    ),
    Clause(
        "MODE-04",
        "documented",
        "Forward mode works under no_grad, and is off under inference_mode, where outputs have no tangent.",
        "autograd: Locally disabling gradient computation",
        needs="jvp requires_grad",
        fault="under no_grad the outputs have no tangent",
    ),
    Clause(
        "MODE-05",
        "documented",
        "no_grad, enable_grad, inference_mode and set_grad_enabled hold for their block, and the first three for what "
        "they decorate: a call after it is recorded exactly if one before it is, also if an exception left the block.",
        "autograd: Locally disabling gradient computation",
        needs="requires_grad",
        fault="no_grad switches grad mode on when it ends",
    ),
    Clause(
        "MODE-06",
        "documented",
        "Grad modes, autocast and saved-tensor hooks hold for their thread: one that is started within them, or runs "
        "beside, has none of them.",
        "autograd: Locally disabling gradient computation",
        quote="This context manager is thread local; it will not affect computation in other threads.",
        needs="saved_hooks threads requires_grad",
        fault="a new thread has the grad mode of the one that started it",
    ),
    Clause(
        "MODE-07",
        "documented",
        "set_grad_enabled, called as a function, holds until it is called again or a block around it ends; functions "
        "that make a tensor with requires_grad=True do so under no_grad, too.",
        "autograd: Locally disabling gradient computation",
        quote="It can be used as a context-manager or as a function. [...] All factory functions, or functions that "
        "create a new Tensor and take a requires_grad kwarg, will NOT be affected by this mode.",
        needs="requires_grad",
        fault="set_grad_enabled called as a function does nothing",
    ),
    Clause(
        "MODE-08",
        "documented",
        "set_multithreading_enabled(False), which keeps backward on the calling thread, and enforce_grad_layout_policy "
        "hold for their block, or as functions until they are called again, for their thread alone.",
        "autograd: Locally disabling gradient computation",
        quote="This can be used as a context-manager or as a function. It is thread-local and will not affect "
        "computation in other threads.",
        needs="threads",
        since="2.13",
        fault="set_multithreading_enabled as a function does nothing",
    ),
    Clause(
        "CPLX-01",
        "documented",
        "For a complex input backward returns the conjugate Wirtinger derivative: a holomorphic f gives its cotangent "
        "times conj(f').",
        "autograd mechanics: Autograd for Complex Numbers",
        fault="gradients of complex inputs come out conjugated",
    ),
    Clause(
        "CPLX-02",
        "documented",
        "A real gradient for a complex input is promoted, whereas a complex gradient for a real input raises: its "
        "real part must be taken in backward.",
        "autograd mechanics: What about cross-domain functions?",
        fault="a complex gradient for a real input silently loses its imaginary part",
    ),
    Clause(
        "CPLX-03",
        "documented",
        "The gradient is 2*g*ds/dz* for a real function of a complex z, and Re(g*conj(ds/dx)) for a complex function "
        "of a real x.",
        "autograd mechanics: What about cross-domain functions?",
        fault="gradients from real outputs to complex inputs are halved",
    ),
    Clause(
        "KINK-01",
        "documented",
        "At a kink of a locally convex or concave function the gradient is its subgradient of least norm, such as 0 "
        "for relu at 0, and equal shares for the inputs of maximum that tie; where there is none it is the limit.",
        "autograd mechanics: Gradients for non-differentiable functions",
        fault="relu passes half of its cotangent at 0",
    ),
    Clause(
        "KINK-02",
        "documented",
        "A NaN cotangent reaches the gradient's entries that use it and no others; where the input is NaN any "
        "gradient is allowed.",
        "autograd mechanics: Gradients for non-differentiable functions",
        fault="NaN cotangents arrive in backward as zeros",
    ),
    Clause(
        "KINK-03",
        "documented",
        "A built-in operation that is random is not differentiable: a pass through it raises.",
        "autograd mechanics: Gradients for non-differentiable functions",
        quote="If the function is not a deterministic mapping (i.e. it is not a mathematical function), it will be "
        "marked as non-differentiable. This will make it error out in the backward if used on tensors that require "
        "grad outside of a no_grad environment.",
        needs="requires_grad",
        fault="rand_like has the gradient of its argument",
    ),
)
