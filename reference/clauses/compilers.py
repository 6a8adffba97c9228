"""Clauses on compilers, and on an old interface."""

from autograd_conformance.reference.clauses.definitions import Clause

TRACING = "compiler: Non-strict Tracing Programming Model"
SEMANTICS = (
    "Given a Python function, Dynamo Tracing captures a graph of Tensor operations and residual bytecode that when "
    "combined give the same semantics as the Python function."
)

CLAUSES = (
    Clause(
        "COMPILE-01",
        "documented",
        "A compiler traces a Function, whether its forward is combined or has a setup_context, into one graph and "
        "uses the Function's own backward.",
        "compiler: graph break registry",
        needs="compile",
        fault="compiled code differentiates forward's operations instead of using backward",
    ),
    Clause(
        "COMPILE-02",
        "documented",
        "Attributes of ctx, save_for_backward, mark_dirty and mark_non_differentiable are traced into one graph, with "
        "the same results as without a compiler.",
        "compiler: graph break registry, GB0139",
        needs="compile inplace nondifferentiable",
        since="2.13",
        fault="compiled code ignores mark_non_differentiable",
    ),
    Clause(
        "COMPILE-03",
        "documented",
        "A compiled call that passes one tensor for two arguments gives the uncompiled gradients; if it cannot be "
        "traced, demanding a full graph raises.",
        "compiler: graph break registry, GB6297",
        needs="compile",
        fault="compiled code keeps one of the two gradients of a tensor passed twice",
    ),
    Clause(
        "COMPILE-04",
        "documented",
        "A compiled Function that defines jvp gives the uncompiled gradients and tangents; if it cannot be traced, "
        "demanding a full graph raises.",
        "compiler: graph break registry, GB0144",
        needs="compile jvp",
        fault="compiling a Function that defines jvp detaches its outputs",
    ),
    Clause(
        "COMPILE-05",
        "documented",
        "A compiled Function that defines vjp for backward gives the uncompiled results; if it cannot be traced, "
        "demanding a full graph raises.",
        "compiler: graph break registry, GB0145",
        needs="compile",
        fault="compiling a Function that defines vjp differentiates forward's operations",
    ),
    Clause(
        "COMPILE-06",
        "observed",
        "A compiled Function with boxed_grads_call gives the uncompiled results; if it cannot be traced, demanding a "
        "full graph raises.",
        "source: torch/_dynamo/variables/higher_order_ops.py",
        needs="compile",
        since="2.13",
        fault="compiling a Function with boxed_grads_call detaches its outputs",
    ),
    Clause(
        "COMPILE-07",
        "documented",
        "A second derivative through a region compiled ahead of time raises, unless it is right.",
        "source: torch/_functorch/_aot_autograd/runtime_wrappers.py",
        needs="compile double_backward",
        fault="code compiled ahead of time gives zero second derivatives",
    ),
    Clause(
        "COMPILE-08",
        "observed",
        "With a backend that runs the traced graph as it is, a compiled Function keeps its second derivative or "
        "raises.",
        "source: torch/_dynamo/variables/higher_order_ops.py",
        needs="compile double_backward",
        fault="the second derivative of compiled code is twice too large",
    ),
    Clause(
        "COMPILE-09",
        "documented",
        "make_fx, symbolic_trace and torch.export see the operations of forward and nothing of the Function itself.",
        "source: torch/_functorch/autograd_function.py",
        needs="compile",
        fault="make_fx treats the outputs of a Function as constants",
    ),
    Clause(
        "COMPILE-10",
        "observed",
        "A function traced by torch.jit.trace keeps the custom gradient in the process that traced it.",
        "source: torch/csrc/autograd/python_function.cpp",
        fault="a traced function differentiates forward's operations",
    ),
    Clause(
        "COMPILE-11",
        "documented",
        "Function transforms within compiled code, and of compiled code, use a Function's own rules; if it cannot be "
        "traced, demanding a full graph raises.",
        TRACING,
        quote=SEMANTICS,
        needs="compile jvp vmap",
        fault="compiled vmaps differentiate forward's operations",
    ),
    Clause(
        "COMPILE-12",
        "documented",
        "Compiled code may change tensors in place in forward, in backward and around a call; where it changes what a "
        "Function saved, it raises or still gives right gradients.",
        "autograd mechanics: In-place correctness checks",
        needs="compile",
        fault="compiled code forgets changes in place",
    ),
    Clause(
        "COMPILE-13",
        "documented",
        "A compiled Function that returns one tensor twice, or a view of another output, gives the uncompiled results; "
        "if it cannot be traced, demanding a full graph raises.",
        TRACING,
        quote=SEMANTICS,
        needs="compile views",
        fault="of two outputs that share memory compiled code keeps one cotangent",
    ),
    Clause(
        "COMPILE-14",
        "documented",
        "In compiled code, too, backward gets None for an unused output after set_materialize_grads(False); if it "
        "cannot be traced, demanding a full graph raises.",
        TRACING,
        quote=SEMANTICS,
        needs="compile materialize",
        fault="compiled code ignores set_materialize_grads",
    ),
    Clause(
        "COMPILE-15",
        "documented",
        "Several calls of Functions in one compiled region, with hooks on what is in between, and several runs of it "
        "before the first backward pass give the uncompiled gradients.",
        TRACING,
        quote=SEMANTICS,
        needs="compile",
        fault="runs of compiled code share what their Functions save",
    ),
    Clause(
        "COMPILE-16",
        "documented",
        "An exported program keeps a custom operator as one node: it has the operator's outputs for other inputs, and "
        "for other sizes of a dynamic dimension, and the gradients of the registered formula.",
        "library: torch.library.custom_op",
        quote="Preventing torch.compile/export/FX tracing from peeking inside your function.",
        needs="compile",
        since="2.6",
        fault="torch.export traces into the function of a custom operator",
    ),
    Clause(
        "COMPILE-17",
        "documented",
        "An exported program of a custom operator or Function has the outputs of the module, also decomposed, and "
        "saved and loaded; its gradients are those of the operator's formula, or of a Function's forward, or backward "
        "raises.",
        "compiler: torch.export.export",
        quote="which can subsequently be executed with different inputs or serialized",
        needs="compile",
        since="2.6",
        fault="a loaded program gives the gradients of one of two outputs",
    ),
    Clause(
        "COMPILE-18",
        "documented",
        "What AOTInductor compiles of a custom operator or Function has the outputs of the module, for other inputs "
        "too; a backward pass raises, or gives the gradients of the exported program.",
        "compiler: torch._inductor.aoti_compile_and_package",
        quote="Compiles the exported program with AOTInductor, and packages it into a .pt2 artifact specified by the "
        "input package_path.",
        needs="compile",
        since="2.6",
        fault="what AOTInductor compiles gives gradients of zeros",
    ),
    Clause(
        "COMPILE-19",
        "documented",
        "What inductor compiles of a Function gives the uncompiled results where an argument, or a cotangent, is "
        "negated lazily, as z.conj().imag is.",
        TRACING,
        quote=SEMANTICS,
        needs="compile views",
        fault="compiled code reads the memory of a negated tensor",
    ),
    Clause(
        "COMPILE-20",
        "documented",
        "Compiled code that sets modes, asks for gradients, changes or looks at tensors, or runs a checkpoint, around "
        "a call of a Function has the uncompiled results.",
        TRACING,
        quote=SEMANTICS,
        needs="compile",
        fault="compiled code ignores no_grad",
    ),
    Clause(
        "COMPILE-21",
        "documented",
        "Compiled under a region_activation_memory_budget of all its operations a Function has its gradients; around "
        "a part of them the budget is refused, and so it is where nothing is compiled.",
        "graph: region_activation_memory_budget",
        quote="the annotation must cover every forward op in the graph (a partial annotation is rejected rather than "
        "silently applied graph-wide) [...] using it outside of a compiled region raises a RuntimeError.",
        needs="compile",
        since="2.13",
        fault="a budget is taken where nothing is compiled",
    ),
    Clause(
        "LEGACY-01",
        "documented",
        "InplaceFunction and NestedIOFunction still exist for old code, and a subclass of InplaceFunction works "
        "through apply.",
        "Function: InplaceFunction",
        fault="a subclass of InplaceFunction gives no gradient",
    ),
)
