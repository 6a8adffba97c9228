"""Clauses on operators of torch.library: schemas, kernels, fakes, rules for transforms, and opcheck."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "LIB-01",
        "documented",
        "register_autograd gives an operator a Function's backward and setup_context, with a Function's ctx; the "
        "latter gets keyword-only arguments as keyword_only_inputs.",
        "library: torch.library.register_autograd",
        fault="keyword_only_inputs is always empty",
    ),
    Clause(
        "LIB-02",
        "documented",
        "An operator without a formula raises when backward reaches it, one that mutates an input cannot have a "
        "formula, and outputs that alias inputs raise.",
        "library: torch.library.register_autograd",
        fault="an operator without a formula gives zero gradients",
    ),
    Clause(
        "LIB-03",
        "documented",
        "custom_op infers the schema from the function's annotations: the operator has its defaults and keyword-only "
        "arguments, by its name as well; a function without annotations is refused.",
        "library: torch.library.custom_op",
        quote="If None (recommended) we'll infer a schema for the operator from its type annotations.",
        fault="the operator has no defaults",
    ),
    Clause(
        "LIB-04",
        "documented",
        "Arguments of the documented types reach the function of an operator as they are, and it may return tensors, "
        "lists of tensors, and numbers.",
        "library: torch.library.custom_op",
        quote="The following types are supported for the wrapped function's input parameters: Scalars: int, float, "
        "bool, str, torch.types.Number; Tensors: torch.Tensor; Enums/devices: torch.dtype, torch.device; Flat list of "
        "the same type [...]; Optionals: Optional of any of the above scalar/tensor types",
        fault="a number with a fraction reaches the function rounded",
    ),
    Clause(
        "LIB-05",
        "documented",
        "The arguments that mutates_args names have changed after a call, so that backward refuses what was saved of "
        "them before; the others have not. \"unknown\" stands for all.",
        "library: torch.library.custom_op",
        quote="The names of args that the function mutates. This MUST be accurate, otherwise, the behavior is "
        'undefined. If "unknown", it pessimistically assumes that all inputs to the operator are being mutated.',
        needs="inplace numpy",
        fault="the version of a changed argument stays",
    ),
    Clause(
        "LIB-06",
        "documented",
        "A kernel that is registered for a device takes the place of the default one there, and nowhere else; without "
        "device types a function is the kernel of all devices.",
        "library: torch.library.register_kernel",
        quote="Register an implementation for a device type for this operator. [...] If None, we will register to all "
        "device types",
        fault="a kernel of one device is that of all",
    ),
    Clause(
        "LIB-07",
        "documented",
        "While set_kernel_enabled disables the kernel of a device, the default one runs there, also after another one "
        "was registered; afterwards the state is what it was.",
        "library: torch.library.CustomOpDef.set_kernel_enabled",
        quote="If a kernel is first disabled and then registered, it is disabled until enabled again.",
        since="2.6",
        fault="a kernel cannot be disabled",
    ),
    Clause(
        "LIB-08",
        "documented",
        "The fake kernel runs instead of the operator's for fake and for meta tensors, with the same arguments; "
        "where there is none, the call raises. Gradients have their shapes there, too.",
        "library: torch.library.register_fake",
        quote="The FakeTensor implementation has the same signature as the operator. It is run for both FakeTensors "
        "and meta tensors.",
        fault="for tensors without values the operator's own kernel runs",
    ),
    Clause(
        "LIB-09",
        "documented",
        "A rule for vmap gets the batch size, the randomness, and for each argument the batched dimension, None where "
        "there is none; its results have the batch where out_dims says. Gradients are those of a loop.",
        "library: torch.library.register_vmap",
        quote="For each arg in args, in_dims has a corresponding Optional[int]. It is None if the arg is not a Tensor "
        "or if the arg is not being vmapped over, otherwise, it is an integer specifying what dimension of the Tensor "
        "is being vmapped over.",
        needs="vmap",
        since="2.5",
        fault="a rule for vmap gets 0 for an argument that is not batched",
    ),
    Clause(
        "LIB-10",
        "documented",
        "In a region of autocast an operator with a rule gets floating-point tensors in the rule's dtype, others as "
        "they are, and runs with autocast switched off.",
        "library: torch.library.register_autocast",
        quote="When custom op runs in an autocast-enabled region, casts incoming floating-point Tensors to the target "
        "dtype (non-floating-point Tensors are not affected), then executes custom op with autocast disabled.",
        needs="autocast",
        since="2.7",
        fault="an operator with a rule for autocast gets its arguments as they are",
    ),
    Clause(
        "LIB-11",
        "documented",
        "A backward that cannot be traced may be an operator of its own, called in the backward of another: second "
        "derivatives come from its formula.",
        "library: torch.library.register_autograd",
        quote="If you need a non-traceable backward, you can make it a separate custom_op that you call inside "
        "backward_fn.",
        needs="double_backward numpy",
        fault="operators that a backward calls are not recorded",
    ),
    Clause(
        "LIB-12",
        "documented",
        "torch.compile traces into the function of a triton_op, but never into that of a custom_op; both give the "
        "uncompiled results and gradients.",
        "library: torch.library.triton_op",
        quote="torch.library.custom_op treats custom operators as opaque (torch.compile and torch.export.export will "
        "never trace into them), but triton_op makes the implementation visible to these subsystems",
        needs="compile",
        since="2.6",
        fault="a triton_op is as opaque as a custom_op",
    ),
    Clause(
        "LIB-13",
        "documented",
        "opcheck says SUCCESS for each of its four tests of a right operator, and accuses by the right one a hidden "
        "change, a formula that is not registered, and a fake kernel with another shape, dtype or strides.",
        "library: torch.library.opcheck",
        quote="Given an operator and some sample arguments, tests if the operator is registered correctly.",
        needs="compile",
        fault="opcheck accepts everything",
    ),
    Clause(
        "LIB-14",
        "documented",
        "An optional tensor that is None or left out is None in setup_context, has no flag and gets no gradient; where "
        "it is given, it is an input like any other.",
        "library: torch.library.custom_op",
        quote="Optionals: Optional of any of the above scalar/tensor types",
        fault="an optional tensor that was not given is a tensor in setup_context",
    ),
    Clause(
        "LIB-15",
        "documented",
        "An operator with a keyword-only tensor is refused; keyword-only arguments of other types are not.",
        "library: torch.library.register_vmap",
        quote="We do not support kwarg-only Tensor args.",
        fault="an operator may have a keyword-only tensor",
    ),
    Clause(
        "LIB-16",
        "documented",
        "A fake kernel can say that a size depends on the values: a graph that was traced with some values gives the "
        "right sizes for others.",
        "library: torch.library.get_ctx",
        quote="Constructs a new symint (symbolic int) representing a data-dependent value.",
        needs="compile",
        fault="a size that depends on the values is that of the first call",
    ),
    Clause(
        "LIB-17",
        "observed",
        "Backward through an operator without any kernel for autograd warns, and no gradient comes of it; in the "
        "fallback mode \"nothing\" its output requires no grad.",
        "source: torch/csrc/autograd/autograd_not_implemented_fallback.h",
        fault="the fallback mode of autograd cannot be changed",
    ),
    Clause(
        "LIB-18",
        "documented",
        "An operator with the tag out gives the tensors that it fills. While gradients are recorded it raises if any "
        "of its tensors requires grad: also an optional one, one in a list, and one to fill. A formula for it is "
        "refused.",
        "library: torch.library.custom_op",
        quote="Use torch.Tag.out for operators that mutate keyword-only output tensors and return them. Like PyTorch's "
        "built-in out= operators, torch.Tag.out custom ops do not support autograd.",
        needs="inplace",
        since="2.13",
        fault="an operator that fills a tensor gives a constant for what requires grad",
    ),
    Clause(
        "LIB-19",
        "documented",
        "An operator with the tag inplace gives the argument that it changes. Where gradients are recorded, a backward "
        "pass through what an operator changed raises, or the gradient is right.",
        "library: torch.library.custom_op",
        quote="Use torch.Tag.inplace for operators that mutate their first Tensor argument and return it.",
        needs="inplace",
        since="2.13",
        fault="an operator gives a copy of the argument that it changes",
    ),
    Clause(
        "LIB-20",
        "documented",
        "An operator that a Library defines from a schema, by either define, has the kernel, the fake kernel, the "
        "formula and the rules for vmap and for modes that were registered for its name or its OpOverload, until the "
        "Library of each ends.",
        "library: torch.library.define",
        quote="lib (Optional[Library]): If provided, the lifetime of this operator will be tied to the lifetime of the "
        "Library object.",
        needs="vmap",
        since="2.6",
        fault="a fake kernel outlives its Library",
    ),
    Clause(
        "LIB-21",
        "documented",
        "A second kernel or fake kernel of a Library's operator replaces the first, and with allow_override=False it "
        "raises and leaves the first; a second definition raises.",
        "library: torch.library.Library.impl",
        quote="Flag controlling if we want to override an existing registered kernel implementation. This is on by "
        "default; pass False to error if a kernel is already registered for this dispatch key.",
        since="2.13",
        fault="allow_override=False is ignored",
    ),
    Clause(
        "LIB-22",
        "documented",
        "infer_schema gives the schema of a function: its parameters by their annotations, strings included, with "
        "defaults, keyword-only ones apart, what mutates_args says, the result, and op_name; what no schema has is "
        "refused by name.",
        "library: torch.library.infer_schema",
        quote="Parses the schema of a given function with type hints. The schema is inferred from the function's type "
        "hints, and can be used to define a new operator.",
        since="2.13",
        fault="op_name is left out",
    ),
    Clause(
        "LIB-23",
        "documented",
        "A triton_op has the changed arguments that mutates_args names, of which \"unknown\" stands for all, and a "
        "schema that is given, as a custom_op has.",
        "library: torch.library.triton_op",
        quote='The names of args that the function mutates. [...] If "unknown", it pessimistically assumes that all '
        "inputs to the operator are being mutated. [...] A schema string for the operator. If None (recommended) we'll "
        "infer a schema for the operator from its type annotations.",
        needs="inplace",
        since="2.6",
        fault="a triton_op changes nothing",
    ),
    Clause(
        "LIB-24",
        "documented",
        "Operators with the tags inplace and out have a fake kernel of their own, which gives the arguments that they "
        "change; one that is registered runs in its place.",
        "library: torch.library.custom_op",
        quote="In-place and out= custom ops get an autogenerated fake kernel from their tag and schema. Registering a "
        "fake kernel for these ops is usually unnecessary, though it is still allowed if you need to override the "
        "autogenerated behavior.",
        needs="inplace",
        since="2.13",
        fault="an operator with a tag has no fake kernel of its own",
    ),
    Clause(
        "LIB-25",
        "documented",
        "A rule that register_torch_dispatch registers for a mode or a subclass of tensors runs there instead of the "
        "kernel, and nowhere else; gradients are those of the formula. A second rule replaces the first.",
        "library: torch.library.register_torch_dispatch",
        quote="This allows for open registration to specify the behavior between the operator and the "
        "torch_dispatch_class without needing to modify the torch_dispatch_class or the operator directly.",
        since="2.6",
        fault="a rule for a mode is ignored",
    ),
    Clause(
        "LIB-26",
        "documented",
        "get_kernel gives the kernel of an operator for a dispatch key, which another kernel for that key can call; "
        "gradients stay those of the formula. Without such an operator it raises.",
        "library: torch.library.get_kernel",
        quote="The intended use case for this function is to retrieve the original kernel for a given dispatch key and "
        "then register another kernel to the same dispatch key that calls into the original kernel for certain cases.",
        since="2.9",
        fault="get_kernel takes a dispatch key as text alone",
    ),
    Clause(
        "LIB-27",
        "observed",
        "A schema with the tag inplace has a first tensor that it changes, alone, and gives it; one with the tag out "
        "has keyword-only tensors that it changes, and gives these in order. Another one raises.",
        "source: torch/library.py",
        since="2.13",
        fault="a schema with the tag out may give nothing",
    ),
)  # fmt: skip
